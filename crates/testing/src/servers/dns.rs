//! A network namespace whose only DNS resolver is slow or does not answer.

use crate::servers::{check, find_program, is_running, open_dir, path_text, start};
use assay_host::process::Running;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An address in the namespace that is not a loopback address (RFC 5737, TEST-NET-1).
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// A network and mount namespace with a loopback interface. Its only DNS server answers every query with "no such name"
/// after a delay, or does not answer.
///
/// In the mount namespace, the user databases (/etc/passwd, group, shadow, nsswitch.conf), /etc/resolv.conf, /etc/hosts
/// and /run are replaced. The namespace is anonymous, and ends when the value is dropped. Inside, root has an empty
/// home and the shell /bin/sh, so that no start-up files of a user's shell run.
#[derive(Debug)]
pub struct SlowDns {
    holder: Running,
    stop: Arc<AtomicBool>,
    queries: Arc<AtomicU64>,
    server: Option<JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl SlowDns {
    /// Creates the namespace, which needs root. Without a delay, the resolver does not answer, and programs wait until
    /// the resolver library gives up; here this is one attempt of 5 s.
    ///
    /// # Errors
    /// The user is not root, iproute2 or util-linux is missing, or creating namespaces is forbidden.
    pub fn start(delay: Option<Duration>) -> io::Result<Self> {
        find_program("ip")?;
        find_program("nsenter")?;
        let dir = open_dir()?;
        let mut command = Command::new(find_program("unshare")?);
        command.args(["--net", "--mount", "sleep", "infinity"]);
        let holder = start(command)?;
        wait_for_namespace(&holder)?;
        let mut rig = Self {
            holder,
            stop: Arc::default(),
            queries: Arc::default(),
            server: None,
            _dir: dir,
        };
        let dir = rig._dir.path().to_owned();
        rig.network()?;
        rig.files(&dir)?;
        let namespace = File::open(format!("/proc/{}/ns/net", rig.holder.pid()))?;
        let stop = Arc::clone(&rig.stop);
        let queries = Arc::clone(&rig.queries);
        let (ready, started) = std::sync::mpsc::channel();
        rig.server = Some(std::thread::spawn(move || {
            let socket = socket_in(&namespace);
            let failed = socket.as_ref().err().map(ToString::to_string);
            let _ = ready.send(failed);
            if let Ok(socket) = socket {
                serve(&socket, delay, &stop, &queries);
            }
        }));
        match started.recv() {
            Ok(None) => Ok(rig),
            Ok(Some(error)) => Err(io::Error::other(error)),
            Err(_) => Err(io::Error::other("the resolver ended at once")),
        }
    }

    /// Returns the number of queries that the resolver has received.
    #[must_use]
    pub fn queries(&self) -> u64 {
        self.queries.load(Ordering::SeqCst)
    }

    /// Returns a command that runs `argv` inside the namespaces.
    #[must_use]
    pub fn inside(&self, argv: &[impl Into<OsString> + Clone]) -> Vec<OsString> {
        let pid = self.holder.pid().to_string();
        let enter = [
            "nsenter", "--target", &pid, "--net", "--mount", "--root", "--wd", "--",
        ];
        let enter = enter.into_iter().map(OsString::from);
        enter.chain(argv.iter().cloned().map(Into::into)).collect()
    }

    /// Returns root's home directory in the namespace.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self._dir.path().join("home")
    }

    /// Sets root's shell inside the namespace.
    ///
    /// # Errors
    /// The file of users cannot be written.
    pub fn set_shell(&self, shell: &str) -> io::Result<()> {
        fs::write(
            self._dir.path().join("passwd"),
            passwd_file(&self.home(), shell),
        )
    }

    /// Assigns two addresses to a name: first an IPv6 address that drops all packets, then [`ADDRESS`].
    ///
    /// # Errors
    /// This machine has no IPv6.
    pub fn add_dead_address(&self, name: &str) -> io::Result<()> {
        let (own, dead) = ("2001:db8::1", "2001:db8::99");
        self.run(&[
            "ip",
            "address",
            "add",
            &format!("{own}/128"),
            "dev",
            "lo",
            "nodad",
        ])?;
        self.run(&["ip", "route", "add", &format!("{dead}/128"), "dev", "lo"])?;
        let lines = format!("{dead} {name}\n{ADDRESS} {name}\n");
        fs::write(self._dir.path().join("hosts"), lines)
    }

    /// Replaces a file or directory of the machine by another one, inside the namespace only.
    ///
    /// # Errors
    /// One of the two does not exist.
    pub fn replace(&self, target: &str, with: &Path) -> io::Result<()> {
        self.run(&["mount", "--bind", &path_text(with), target])
    }

    fn run(&self, argv: &[&str]) -> io::Result<()> {
        check(&self.inside(argv))
    }

    fn network(&self) -> io::Result<()> {
        self.run(&["ip", "link", "set", "lo", "up"])?;
        let address = format!("{ADDRESS}/32");
        self.run(&["ip", "address", "add", &address, "dev", "lo"])
    }

    fn files(&self, dir: &Path) -> io::Result<()> {
        let home = dir.join("home");
        fs::create_dir(&home)?;
        let people = passwd_file(&home, "/bin/sh");
        let order = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n";
        let resolver = "nameserver 127.0.0.1\noptions timeout:5 attempts:1\n";
        for (name, content) in [
            ("passwd", &people[..]),
            ("group", "root:x:0:\nnogroup:x:65534:\n"),
            ("shadow", "root:*:19000:0:99999:7:::\nsshd:*:19000::::::\n"),
            ("resolv.conf", resolver),
            ("hosts", ""),
            ("nsswitch.conf", order),
        ] {
            let file = dir.join(name);
            fs::write(&file, content)?;
            let target = format!("/etc/{name}");
            self.run(&["mount", "--bind", &path_text(&file), &target])?;
        }
        // Hides the sockets of caches, and provides the empty directory of sshd.
        self.run(&["mount", "-t", "tmpfs", "tmpfs", "/run"])?;
        self.run(&["mkdir", "-m", "755", "/run/sshd"])
    }
}

/// Returns the content of `passwd` in the namespace.
fn passwd_file(home: &Path, shell: &str) -> String {
    format!(
        "root:x:0:0:root:{}:{shell}\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n",
        home.display()
    )
}

impl Drop for SlowDns {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// Waits until the process that keeps the namespaces alive has entered them.
fn wait_for_namespace(holder: &Running) -> io::Result<()> {
    let ours = fs::read_link("/proc/self/ns/net")?;
    let theirs = format!("/proc/{}/ns/net", holder.pid());
    let comm = format!("/proc/{}/comm", holder.pid());
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end && is_running(holder) {
        // Both namespaces exist once unshare has executed its command.
        let moved = fs::read_link(&theirs).is_ok_and(|theirs| theirs != ours);
        if moved && fs::read_to_string(&comm).is_ok_and(|comm| comm == "sleep\n") {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(io::Error::other("no network namespace can be made here"))
}

/// Moves the calling thread into the network namespace permanently, and opens the resolver's socket there.
fn socket_in(namespace: &File) -> io::Result<UdpSocket> {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    use std::os::fd::AsFd as _;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53))?;
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    Ok(socket)
}

fn serve(socket: &UdpSocket, delay: Option<Duration>, stop: &AtomicBool, queries: &AtomicU64) {
    std::thread::scope(|scope| {
        let mut query = [0; 512];
        while !stop.load(Ordering::SeqCst) {
            let Ok((length, from)) = socket.recv_from(&mut query) else {
                continue;
            };
            queries.fetch_add(1, Ordering::SeqCst);
            let (Some(delay), Some(answer)) = (delay, no_such_name(&query[..length])) else {
                continue;
            };
            scope.spawn(move || {
                std::thread::sleep(delay);
                let _ = socket.send_to(&answer, from);
            });
        }
    });
}

/// Returns a DNS response (RFC 1035, section 4.1) with the query's header and question. QR, RA and RCODE 3 are set, and
/// there is no other record.
fn no_such_name(query: &[u8]) -> Option<Vec<u8>> {
    let name = query.get(12..)?;
    let mut end = 0;
    while *name.get(end)? != 0 {
        end += 1 + usize::from(name[end]);
    }
    let mut answer = query.get(..12 + end + 5)?.to_vec();
    answer[2] |= 0x80;
    answer[3] = 0x83;
    answer[6..12].fill(0);
    Some(answer)
}
