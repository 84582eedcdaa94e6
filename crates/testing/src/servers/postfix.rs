//! A private Postfix that delivers all mail to a sink.

use crate::servers::{find_program, open_dir, path_text, start, start_listening};
use assay_host::process::Running;
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Postfix 3.3 or later with its own queue. Its only destination is smtp-sink.
#[derive(Debug)]
pub struct Postfix {
    // Dropped first: the program that was started may end before its master does.
    _stop: StopMaster,
    _sink: Running,
    _master: Running,
    port: u16,
    dir: tempfile::TempDir,
}

impl Postfix {
    /// Starts Postfix and the sink. This needs root, and Debian's package postfix with its users.
    ///
    /// # Errors
    /// A requirement is missing, or Postfix does not start.
    pub fn start() -> io::Result<Self> {
        Self::configured("")
    }

    /// Starts Postfix and the sink, with additional lines in `main.cf`.
    ///
    /// # Errors
    /// See [`Postfix::start`].
    pub fn configured(settings: &str) -> io::Result<Self> {
        let (program, sink) = (find_program("postfix")?, find_program("smtp-sink")?);
        let dir = open_dir()?;
        for name in ["etc", "spool", "data"] {
            fs::create_dir(dir.path().join(name))?;
        }
        chown(dir.path().join("data"), Some(queue_owner()?), None)?;
        let log = dir.path().join("log");
        let (sink, to) = start_listening(&log, |port| {
            let mut command = Command::new(&sink);
            command.args(["-u", "nobody", &format!("127.0.0.1:{port}"), "64"]);
            start(command)
        })?;
        let etc = dir.path().join("etc");
        let stop = StopMaster { etc: etc.clone() };
        let (master, port) = start_listening(&log, |port| {
            // An earlier attempt with another port may have come up late.
            stop.stop();
            fs::write(etc.join("main.cf"), main(dir.path(), to) + settings)?;
            fs::write(etc.join("master.cf"), master_services(port))?;
            let mut command = Command::new(&program);
            command.arg("-c").arg(&etc).arg("start-fg");
            start(command)
        })?;
        Ok(Self {
            _stop: stop,
            _sink: sink,
            _master: master,
            port,
            dir,
        })
    }

    /// Returns the address of the SMTP server as `HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the path of `main.cf`.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("etc/main.cf")
    }

    /// Returns the port of Postfix's SMTP server on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the command that runs a program of Postfix with this configuration.
    #[must_use]
    pub fn program(&self, words: &str) -> String {
        let (name, rest) = words.split_once(' ').unwrap_or((words, ""));
        format!(
            "{name} -c {} {rest}",
            path_text(&self.dir.path().join("etc"))
        )
    }

    /// Returns a shell script that sends `mails` mails and waits until all of them are delivered.
    #[must_use]
    pub fn send(&self, mails: u32) -> String {
        let queue = ["incoming", "active", "maildrop"]
            .map(|name| path_text(&self.dir.path().join("spool").join(name)))
            .join(" ");
        format!(
            "smtp-source -s 2 -m {mails} -f a@example.org -t b@example.org inet:127.0.0.1:{} && \
             until [ -z \"$(find {queue} -type f)\" ]; do sleep 0.05; done",
            self.port
        )
    }
}

/// Stops the master daemon of Postfix when the value is dropped. This is needed because the daemon leaves the process
/// group of the program that started it.
#[derive(Debug)]
struct StopMaster {
    etc: PathBuf,
}

impl StopMaster {
    /// Kills the master and its processes. `postfix abort` is not used, because it writes to the log socket. If the
    /// master has died, nobody reads this socket any more, and the command would wait forever.
    fn stop(&self) {
        let Some(pid) = self.find_master() else {
            return;
        };
        // The master leads a session and a process group of its own.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }

    /// Returns the process id of the master; `None` if it does not run any more.
    fn find_master(&self) -> Option<rustix::process::Pid> {
        let file = self.etc.parent()?.join("spool/pid/master.pid");
        let number: i32 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
        let name = fs::read_to_string(format!("/proc/{number}/comm")).ok()?;
        if name.trim() != "master" {
            return None;
        }
        rustix::process::Pid::from_raw(number)
    }
}

impl Drop for StopMaster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the user id that must own the queue.
fn queue_owner() -> io::Result<u32> {
    let passwd = fs::read_to_string("/etc/passwd")?;
    let line = passwd
        .lines()
        .find_map(|line| line.strip_prefix("postfix:"));
    let number = line.and_then(|line| line.split(':').nth(1)?.parse().ok());
    number.ok_or_else(|| io::Error::other("there is no user postfix"))
}

fn main(dir: &Path, sink: u16) -> String {
    let dir = dir.display();
    format!(
        "compatibility_level = 3.6
queue_directory = {dir}/spool
data_directory = {dir}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
maillog_file = {dir}/log
maillog_file_prefixes = {dir}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = test.invalid
mydestination =
mynetworks = 127.0.0.0/8
relayhost = [127.0.0.1]:{sink}
smtp_dns_support_level = disabled
service_throttle_time = 1s
"
    )
}

/// Returns the services for receiving and sending mail, without chroot.
fn master_services(port: u16) -> String {
    format!(
        "127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"
    )
}
