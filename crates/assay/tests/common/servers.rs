//! OpenSSH servers on ports of this machine, and small root directories for them.

use super as common;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Servers with one common key, and an ssh configuration with their names.
pub struct Servers {
    pub dir: tempfile::TempDir,
    running: Vec<Child>,
    config: String,
    pub known: String,
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
        separation(-1);
    }
}

/// Creates the directory that sshd requires and systemd usually creates. Removed with the last
/// test, if it did not exist before.
fn separation(more: i32) {
    static USERS: Mutex<(i32, bool)> = Mutex::new((0, false));
    const DIR: &str = "/run/sshd";
    let mut users = USERS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if users.0 == 0 && more > 0 {
        users.1 = std::fs::create_dir(DIR).is_ok();
    }
    users.0 += more;
    if users.0 == 0 && users.1 {
        let _ = std::fs::remove_dir(DIR);
    }
}

impl Servers {
    pub fn new() -> Option<Self> {
        for program in ["sshd", "ssh", "ssh-keygen"] {
            let found = assay_host::Host::which(&assay_host::LiveHost, program.as_ref());
            if found.is_none() {
                assay_testing::skipped(program, "not installed");
                return None;
            }
        }
        if !common::root() {
            return None;
        }
        separation(1);
        let dir = tempfile::tempdir().unwrap();
        for name in ["id", "host", "other"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(dir.path().join(name))
                .status()
                .unwrap();
            assert!(made.success());
        }
        Some(Self {
            dir,
            running: Vec::new(),
            config: String::new(),
            known: String::new(),
        })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn public(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
        text.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Starts a server; `more` are additional lines of its configuration. Its log is NAME.log.
    pub fn start(&mut self, name: &str, more: &str) -> u16 {
        self.start_below(name, more, &[])
    }

    /// Starts a server through another program.
    pub fn start_in(&mut self, name: &str, program: &[&str]) -> u16 {
        self.start_below(name, "", program)
    }

    fn start_below(&mut self, name: &str, more: &str, program: &[&str]) -> u16 {
        // Another test may take the port before sshd does.
        for attempt in 0.. {
            if let Some(port) = self.try_start_below(name, more, program, attempt) {
                return port;
            }
        }
        unreachable!("the last attempt panics")
    }

    /// Starts sshd on a free port; `None` if another process has taken the port, unless it was the
    /// last attempt.
    fn try_start_below(
        &mut self,
        name: &str,
        more: &str,
        program: &[&str],
        attempt: u32,
    ) -> Option<u16> {
        let port = free_port();
        let at = |file: &str| self.path(file).display().to_string();
        // A temporary home, so that start-up files of root have no effect. Of several SetEnv lines
        // sshd uses the first.
        let home = self.path("home");
        std::fs::create_dir_all(&home).unwrap();
        let (before, after) = more.split_once("SetEnv ").unwrap_or((more, ""));
        let more = format!("{before}\nSetEnv HOME={} {after}", home.display());
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile {}\nAuthorizedKeysFile {}\n\
             StrictModes no\nPermitRootLogin yes\nUsePAM no\nLogLevel VERBOSE\n{more}\n",
            at("host"),
            at(&format!("{name}.pid")),
            at("id.pub"),
        );
        let file = self.path(&format!("{name}.sshd"));
        std::fs::write(&file, config).unwrap();
        let sshd = assay_host::Host::which(&assay_host::LiveHost, "sshd".as_ref()).unwrap();
        let words = program.iter().map(|word| OsStr::new(*word));
        let mut words = words.chain([sshd.as_os_str()]);
        let child = Command::new(words.next().unwrap_or_default())
            .args(words)
            .args(["-D", "-f"])
            .arg(&file)
            .arg("-E")
            .arg(self.path(&format!("{name}.log")))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.running.push(child);
        let end = Instant::now() + Duration::from_secs(20);
        while !self.path(&format!("{name}.pid")).exists() {
            let log = self.log(name);
            if attempt < 5 && log.contains("Address already in use") {
                let _ = std::fs::remove_file(self.path(&format!("{name}.log")));
                return None;
            }
            assert!(Instant::now() < end, "{name}: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let key = self.public("host");
        let _ = writeln!(self.known, "[127.0.0.1]:{port} {key}");
        Some(port)
    }

    /// Adds a name for a port to the ssh configuration.
    pub fn name(&mut self, name: &str, port: u16, more: &str) {
        let _ = writeln!(
            self.config,
            "Host {name}\n  HostName 127.0.0.1\n  Port {port}\n{more}"
        );
    }

    pub fn machine(&mut self, name: &str, more: &str) {
        let port = self.start(name, more);
        self.name(name, port, "");
    }

    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default()
    }

    /// Writes the ssh configuration.
    pub fn config(&self) -> String {
        let at = |file: &str| self.path(file).display().to_string();
        std::fs::write(self.path("known"), &self.known).unwrap();
        let text = format!(
            "{}\nHost *\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile none\n",
            self.config,
            at("id"),
            at("known")
        );
        std::fs::write(self.path("config"), text).unwrap();
        at("config")
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Creates a root directory with a shell and only these files.
pub fn little_root(servers: &Servers, name: &str, files: &[(&str, &str)]) -> Option<PathBuf> {
    let Some(busybox) = assay_testing::servers::busybox::is_static() else {
        assay_testing::skipped("busybox", "a static busybox is not installed");
        return None;
    };
    let root = servers.path(name);
    std::fs::create_dir_all(&root).unwrap();
    assay_testing::servers::busybox::furnish(&root, &busybox).unwrap();
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Some(root)
}
