//! Runs one ssh session with a machine: sends the collector and receives a bundle. Uses the system's `ssh` with the
//! user's configuration, agent and known hosts. So every login that works by hand also works here.

use assay_host::process::{Dies, Keep, Leftovers, Running};
use assay_render::text::escape_line;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum number of bytes that a machine may send. A bundle has some hundred thousand bytes.
pub const MAX_SENT: usize = 32 << 20;

/// Maximum number of bytes that are stored of the error messages of ssh and the machine.
const MAX_COMPLAINT: usize = 16 << 10;

/// Default time limit of a session.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// How to log in to a machine.
#[derive(Clone, Debug)]
pub struct SshSession {
    /// Destination for ssh: a name, `user@name`, a name from the ssh configuration, or `ssh://…`.
    pub host: String,
    /// Whether to become root with one `sudo -n`.
    pub sudo: bool,
    /// Time limit for the whole session.
    pub deadline: Duration,
    /// Path of an ssh configuration file; `None` means the user's own.
    pub config: Option<PathBuf>,
}

/// What a machine sent in a session.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Standard output of the machine.
    pub bytes: Vec<u8>,
    /// Most informative line of standard error; `None` if it is empty.
    pub complaint: Option<String>,
    /// Error of ssh, if ssh failed after the bundle began. If the bundle is incomplete, this error is the reason.
    pub lost: Option<SessionError>,
}

/// Error: a session failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {reason}{}", way_out.as_ref().map_or_else(String::new, |way| format!(": {way}")))]
pub struct SessionError {
    /// Machine as the user named it, with escaped control characters.
    pub host: String,
    /// Kind of the failure, which selects the way to proceed.
    pub kind: SessionFault,
    /// Description of the failure in one line, without control characters.
    pub reason: String,
    /// What the user can do about the failure.
    pub way_out: Option<String>,
}

/// Kind of failure of a session, which selects the way to proceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionFault {
    /// The name of the machine is invalid.
    Name,
    /// ssh is not installed on this machine.
    NoSsh,
    /// The machine did not answer or refused the connection.
    Unreachable,
    /// The host key is unknown or has changed.
    HostKey,
    /// The login was refused.
    Login,
    /// sudo refused to run the script as root.
    Sudo,
    /// The session exceeded its time limit.
    Deadline,
    /// The machine sent too many bytes.
    TooMuch,
    /// The output is not a bundle.
    Bundle,
    /// The user interrupted the session.
    Interrupted,
    /// The session failed for another reason.
    Other,
}

/// Pauses before the first and the second retry after a dropped connection.
const PAUSES: [Duration; 2] = [Duration::from_millis(700), Duration::from_millis(2300)];

/// Interval at which `stop` is checked during a pause.
const LOOK: Duration = Duration::from_millis(50);

impl SessionError {
    /// Returns whether the server closed the connection before it sent its banner.
    fn is_turned_away(&self) -> bool {
        let early = ["kex_exchange_identification", "ssh_exchange_identification"];
        self.kind == SessionFault::Unreachable
            && early.iter().any(|word| self.reason.contains(word))
    }
}

impl SshSession {
    /// Creates a session with the default time limit and without sudo.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            sudo: false,
            deadline: DEADLINE,
            config: None,
        }
    }

    /// Sends a script to a remote shell and returns the output. The script begins with an assignment of the time limit
    /// in seconds to `assay_deadline`. Calls `stop` several times a second with the elapsed time. If the server closes
    /// the connection before its banner (MaxStartups of sshd, a rate-limiting firewall), retries up to twice.
    ///
    /// # Errors
    /// [`SessionError`], whose message contains a way to proceed.
    pub fn run(
        &self,
        script: &str,
        stop: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Sent, SessionError> {
        let begin = now();
        for pause in PAUSES {
            let outcome = self.run_once(script, begin, stop);
            let turned_away = outcome.as_ref().is_err_and(SessionError::is_turned_away);
            if !turned_away || begin.elapsed() + pause * 2 >= self.deadline {
                return outcome;
            }
            let until = now() + pause;
            while now() < until {
                if stop(begin.elapsed()) {
                    return Err(self.stopped(SessionFault::Interrupted));
                }
                std::thread::sleep(LOOK);
            }
        }
        self.run_once(script, begin, stop)
    }

    fn run_once(
        &self,
        script: &str,
        begin: Instant,
        stop: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Sent, SessionError> {
        check_name(&self.host)?;
        let other =
            |error: std::io::Error| self.fault(SessionFault::Other, format!("ssh: {error}"));
        let mut command = Command::new("ssh");
        command
            .args(self.arguments())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A script that uses this variable ends by itself, even if the connection is lost.
        let seconds = self.deadline.as_secs().max(1);
        let script = format!("assay_deadline={seconds}\n{script}");
        let running = Running::start_with_bytes(command, script.as_bytes(), Dies::WithThread)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => SessionError {
                    way_out: Some("install the OpenSSH client".to_owned()),
                    ..self.fault(SessionFault::NoSsh, "there is no ssh here".to_owned())
                },
                _ => other(error),
            })?;
        let keep = Keep {
            stdout: MAX_SENT,
            stderr: MAX_COMPLAINT,
            leftovers: Leftovers::Leave,
        };
        let mut why = None;
        let collected = running
            .collect(keep, |look| {
                let passed = look.now.saturating_duration_since(begin);
                if stop(passed) {
                    why = Some(SessionFault::Interrupted);
                } else if passed >= self.deadline {
                    why = Some(SessionFault::Deadline);
                } else if look.overfull {
                    why = Some(SessionFault::TooMuch);
                }
                why.is_some()
            })
            .map_err(other)?;
        match why {
            Some(kind) if collected.stopped => return Err(self.stopped(kind)),
            _ if collected.stdout.len() >= MAX_SENT => {
                return Err(self.stopped(SessionFault::TooMuch));
            }
            _ => {}
        }
        // The presence of a bundle is more reliable than the exit status of the last command.
        let (status, stderr) = (collected.ended.code(), &collected.stderr);
        if collected.ended.success() || holds_bundle(&collected.stdout) {
            return Ok(Sent {
                complaint: worst_line(&String::from_utf8_lossy(stderr)),
                lost: has_lost_connection(status).then(|| self.lost(status, stderr)),
                bytes: collected.stdout,
            });
        }
        // On a busy machine ssh may have given up before this check.
        if now().saturating_duration_since(begin) >= self.deadline {
            return Err(self.stopped(SessionFault::Deadline));
        }
        Err(self.complaint(status, stderr, &collected.stdout))
    }

    /// Returns the arguments of `ssh`. The remote command is one word that every login shell understands.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        // Shorter than the time limit, to distinguish an unreachable machine from a hanging one. ssh counts
        // whole seconds.
        let seconds = match self.deadline.as_secs() {
            short @ 0..=3 => short + 1,
            seconds => (seconds * 3 / 4).min(30),
        };
        let mut all: Vec<OsString> = Vec::new();
        if let Some(config) = &self.config {
            all.extend(["-F".into(), config.clone().into_os_string()]);
        }
        let options = [
            // Nobody can type input. Forwarding and a terminal are not needed.
            "BatchMode=yes",
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "RequestTTY=no",
            "UpdateHostKeys=no",
            "ServerAliveInterval=10",
        ];
        for option in options {
            all.extend(["-o".into(), option.into()]);
        }
        all.extend(["-o".into(), format!("ConnectTimeout={seconds}").into()]);
        all.extend(["--".into(), self.host.clone().into()]);
        all.push(if self.sudo { "sudo -n sh" } else { "sh" }.into());
        all
    }

    /// Builds an error about this machine and this login.
    #[must_use]
    pub fn failed(&self, kind: SessionFault, reason: &str) -> SessionError {
        self.fault(kind, escape_line(reason))
    }

    /// Builds the error that the output is not a bundle. Its text includes the machine's own message, for example about
    /// a missing program. If the connection was lost, returns that error instead.
    #[must_use]
    pub fn no_bundle(&self, why: &str, sent: &Sent) -> SessionError {
        if let Some(lost) = &sent.lost {
            return lost.clone();
        }
        let complaint = sent.complaint.as_ref();
        let said = complaint.map_or_else(String::new, |line| format!(" (it says: {line})"));
        self.fault(SessionFault::Bundle, escape_line(&format!("{why}{said}")))
    }

    /// Builds the error that the connection was lost while the machine sent its bundle.
    fn lost(&self, status: i32, stderr: &[u8]) -> SessionError {
        let line = ended_by_signal(status)
            .or_else(|| worst_line(&String::from_utf8_lossy(stderr)))
            .unwrap_or_else(|| format!("exit status {status} of ssh"));
        SessionError {
            way_out: Some("nothing was changed on it; ask it again".to_owned()),
            ..self.fault(
                SessionFault::Unreachable,
                format!("the connection was lost before its bundle was complete: {line}"),
            )
        }
    }

    fn fault(&self, kind: SessionFault, reason: String) -> SessionError {
        SessionError {
            host: escape_line(&self.host),
            kind,
            reason,
            way_out: None,
        }
    }

    fn stopped(&self, kind: SessionFault) -> SessionError {
        let (reason, way_out) = match kind {
            SessionFault::Deadline => (
                format!("no bundle after {} s", self.deadline.as_secs_f32()),
                Some(match self.deadline < Duration::from_secs(4) {
                    // ssh had no time to report an unreachable machine.
                    true => "the machine is not reached, hangs, or is slow: --deadline gives it more time".to_owned(),
                    false => "the machine hangs, or is slow: --deadline gives it more time".to_owned(),
                }),
            ),
            SessionFault::TooMuch => (
                format!(
                    "cut off after {} MiB: it sends more than a machine has to say",
                    MAX_SENT >> 20
                ),
                Some("look at what its login shell prints".to_owned()),
            ),
            _ => ("interrupted".to_owned(), None),
        };
        SessionError {
            way_out,
            ..self.fault(kind, reason)
        }
    }

    /// Builds an error from the messages of ssh, sudo or the remote shell.
    #[must_use]
    pub fn complaint(&self, status: i32, stderr: &[u8], stdout: &[u8]) -> SessionError {
        let all = String::from_utf8_lossy(stderr);
        let has = |words: &str| all.contains(words);
        let name = &self.host;
        let (kind, way_out) = match () {
            () if has("HOST IDENTIFICATION HAS CHANGED") => (
                SessionFault::HostKey,
                Some(format!(
                    "its key is another one than before: ask the person who installed it, then `ssh-keygen -R` and `ssh {}` \
                     once by hand",
                    escape_line(name)
                )),
            ),
            () if has("Host key verification failed") || has("No ED25519 host key is known") => (
                SessionFault::HostKey,
                Some(format!(
                    "its key is not known here: `ssh {}` once by hand, and compare the fingerprint",
                    escape_line(name)
                )),
            ),
            () if has("sudo:") => (
                SessionFault::Sudo,
                Some("let this user run `sh` by sudo without a password, log in as root, or leave --sudo out and know less".to_owned()),
            ),
            () if has("Permission denied (") || has("Too many authentication failures") => (
                SessionFault::Login,
                Some("a key is needed that nobody has to type for: `ssh-add`, or IdentityFile in the configuration of ssh".to_owned()),
            ),
            () if has_lost_connection(status) => (SessionFault::Unreachable, None),
            () => (SessionFault::Other, None),
        };
        let said = || worst_line(&all).or_else(|| worst_line(&String::from_utf8_lossy(stdout)));
        let line = ended_by_signal(status)
            .map(|line| format!("the connection was lost: {line}"))
            .or_else(said)
            .unwrap_or_else(|| format!("exit status {status}"));
        SessionError {
            way_out,
            ..self.fault(kind, line)
        }
    }
}

/// Returns whether the output contains a bundle, possibly after output of the login shell.
fn holds_bundle(stdout: &[u8]) -> bool {
    let begin = &stdout[..stdout.len().min(64 << 10)];
    let mark = b"assay-bundle 1 ";
    begin.windows(mark.len()).any(|window| window == mark)
}

/// Returns whether ssh itself failed, and not the command on the machine.
fn has_lost_connection(status: i32) -> bool {
    status == 255 || ended_by_signal(status).is_some()
}

/// Describes the signal that ended ssh. An exit status above 128 means a signal, both from a shell and from the local
/// wrapper of ssh.
fn ended_by_signal(status: i32) -> Option<String> {
    let signal = (129..=192).contains(&status).then(|| status - 128)?;
    Some(format!("ssh was ended by signal {signal}"))
}

/// Beginnings of the lines with which ssh reports the end of a connection.
const ENDS: [&str; 6] = [
    "Connection ",
    "Received disconnect",
    "Timeout, server",
    "client_loop: ",
    "packet_write_",
    "ssh_dispatch_run_fatal: ",
];

/// Beginnings of lines of ssh that do not explain a failure.
const HARMLESS: [&str; 3] = ["Offending", "Warning: Permanently added", "** "];

/// Returns the most informative line of ssh's messages. This is the last line if it reports the end of the connection;
/// else the last line that contains a colon. Lines in ssh's frame of `@` characters and harmless warnings do not count.
fn worst_line(text: &str) -> Option<String> {
    let begins = |line: &str, words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let lines = text.lines().map(str::trim);
    let mut lines =
        lines.filter(|line| !line.is_empty() && !line.starts_with('@') && !begins(line, &HARMLESS));
    let last = lines.clone().next_back().filter(|line| begins(line, &ENDS));
    let line = last
        .or_else(|| lines.clone().rfind(|line| line.contains(": ")))
        .or_else(|| lines.next_back())?;
    let text = assay_model::secrets::withhold_in_text(line);
    Some(escape_line(&text.chars().take(200).collect::<String>()))
}

/// Refuses names that ssh would not treat as the name of a machine.
///
/// # Errors
/// The name is empty, starts with a hyphen, or contains blanks or control characters.
pub fn check_name(name: &str) -> Result<(), SessionError> {
    let odd = |c: char| c.is_control() || c.is_whitespace();
    let reason = match () {
        () if name.is_empty() => "a name of a machine is empty",
        () if name.starts_with('-') || name.contains("@-") => {
            "a name of a machine begins with a hyphen"
        }
        () if name.contains(odd) => "a name of a machine has blanks or control characters in it",
        () if name.len() > 255 => "a name of a machine is longer than 255 bytes",
        () => return Ok(()),
    };
    Err(SessionError {
        host: escape_line(name),
        kind: SessionFault::Name,
        reason: reason.to_owned(),
        way_out: None,
    })
}

fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_none_do_not_reach_ssh() {
        for name in [
            "",
            "-oProxyCommand=x",
            "root@-x",
            "a b",
            "a\nb",
            "\u{1b}[31m",
        ] {
            let error = SshSession::new(name).run("", &mut |_| false).unwrap_err();
            assert_eq!(error.kind, SessionFault::Name, "{name:?}");
            assert!(!error.to_string().contains('\u{1b}'));
        }
        assert!(check_name("root@box1").is_ok() && check_name("ssh://u@[::1]:22").is_ok());
    }

    #[test]
    fn a_machine_that_is_not_reached_is_told_before_the_deadline() {
        for (deadline, connects) in [(1, 2), (3, 4), (4, 3), (5, 3), (60, 30), (3600, 30)] {
            let session = SshSession {
                deadline: Duration::from_secs(deadline),
                ..SshSession::new("box")
            };
            let wanted = format!("ConnectTimeout={connects}");
            assert!(
                session.arguments().iter().any(|word| *word == *wanted),
                "{deadline}"
            );
        }
    }

    #[test]
    fn a_server_that_turns_connections_away_is_asked_again() {
        let session = SshSession::new("box");
        for (status, text, again) in [
            (
                255,
                "kex_exchange_identification: read: Connection reset by peer\n",
                true,
            ),
            (
                255,
                "kex_exchange_identification: Connection closed by remote host\n",
                true,
            ),
            (
                255,
                "ssh: connect to host box port 22: Connection refused\n",
                false,
            ),
            (255, "root@box: Permission denied (publickey).\n", false),
            (137, "", false),
        ] {
            let error = session.complaint(status, text.as_bytes(), b"");
            assert_eq!(error.is_turned_away(), again, "{error}");
        }
        let killed = session.complaint(137, b"", b"");
        assert_eq!(killed.kind, SessionFault::Unreachable);
        assert!(killed.reason.contains("signal 9"), "{killed}");
    }

    #[test]
    fn a_lost_connection_is_named_whatever_else_was_printed() {
        let session = SshSession::new("box");
        let known = "Warning: Permanently added 'box' (ED25519) to the list of known hosts.\n";
        let banner = "NOTICE: authorised users only\n";
        for (status, text, named) in [
            (
                255,
                format!("{known}Connection to box closed by remote host.\n"),
                "closed by remote host",
            ),
            (
                255,
                format!("{banner}Connection to box closed by remote host.\n"),
                "closed by remote host",
            ),
            (
                255,
                format!("{banner}client_loop: send disconnect: Broken pipe\n"),
                "Broken pipe",
            ),
            (
                255,
                "Timeout, server box not responding.\n".to_owned(),
                "not responding",
            ),
            (137, format!("{known}{banner}"), "signal 9"),
            (255, known.to_owned(), "255"),
        ] {
            let lost = session.lost(status, text.as_bytes());
            let complaint = session.complaint(status, text.as_bytes(), b"");
            for error in [lost, complaint] {
                assert_eq!(error.kind, SessionFault::Unreachable, "{error}");
                assert!(error.reason.contains(named), "{error}");
            }
        }
        // A complete bundle does not matter; an incomplete one has this error.
        let mut sent = Sent {
            bytes: b"assay-bundle 1 ".to_vec(),
            complaint: None,
            lost: Some(session.lost(255, b"Connection to box closed by remote host.\n")),
        };
        assert_eq!(
            session.no_bundle("it is cut off", &sent).kind,
            SessionFault::Unreachable
        );
        sent.lost = None;
        assert_eq!(
            session.no_bundle("it is cut off", &sent).kind,
            SessionFault::Bundle
        );
    }

    #[test]
    fn what_ssh_complains_about_has_its_kind() {
        let session = SshSession::new("box");
        // OpenSSH 9.2.
        for (text, kind) in [
            (
                "@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\r\n",
                SessionFault::HostKey,
            ),
            ("Host key verification failed.\n", SessionFault::HostKey),
            (
                "root@box: Permission denied (publickey).\n",
                SessionFault::Login,
            ),
            (
                "ssh: connect to host box port 22: Connection refused\n",
                SessionFault::Unreachable,
            ),
            ("sudo: a password is required\n", SessionFault::Sudo),
        ] {
            let error = session.complaint(255, text.as_bytes(), b"");
            assert_eq!(error.kind, kind, "{error}");
        }
    }
}
