//! One ssh session with a machine: the collector in, a bundle out. The system's `ssh` is used with the user's
//! own configuration, agent and known hosts, so whatever works by hand works here.

use assay_host::process::{Dies, Keep, Leftovers, Running};
use assay_render::text::escape_line;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Most bytes that a machine may send, as they come. A bundle has some hundred thousand.
pub const MAX_SENT: usize = 32 << 20;

/// What is kept of the complaints of ssh and of the machine.
const MAX_COMPLAINT: usize = 16 << 10;

/// How long a session may take when nothing else is said.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// How to reach a machine.
#[derive(Clone, Debug)]
pub struct SshSession {
    /// As ssh takes it: a name, `user@name`, a name in the user's configuration of ssh, or `ssh://…`.
    pub host: String,
    /// As root by one `sudo -n` on the machine.
    pub sudo: bool,
    /// Everything has to be there by then.
    pub deadline: Duration,
    /// Another configuration of ssh than the user's own.
    pub config: Option<PathBuf>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Standard output.
    pub bytes: Vec<u8>,
    /// The line of standard error that says most.
    pub complaint: Option<String>,
}

/// Why there is no bundle of a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {reason}{}", way_out.as_ref().map_or_else(String::new, |way| format!(": {way}")))]
pub struct SessionError {
    /// Which machine, as it was named; with escapes where its name has control characters.
    pub host: String,
    /// What kind of fault it is.
    pub kind: SessionFault,
    /// What happened: one line, without control characters.
    pub reason: String,
    /// What can be done.
    pub way_out: Option<String>,
}

/// Kinds of faults of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionFault {
    /// It cannot be a name of a machine.
    Name,
    /// There is no ssh here.
    NoSsh,
    /// It did not answer, or refused the connection.
    Unreachable,
    /// Its key is not known, or is another one than before.
    HostKey,
    /// It did not let us in.
    Login,
    /// It did not let us become root.
    Sudo,
    /// It did not come to an end in time.
    Deadline,
    /// It sent more than a machine has to say.
    TooMuch,
    /// What it sent is no bundle.
    Bundle,
    /// The user does not want to wait any longer.
    Interrupted,
    /// Anything else.
    Other,
}

/// How long is waited before a server that turned us away is asked again.
const PAUSES: [Duration; 2] = [Duration::from_millis(700), Duration::from_millis(2300)];

/// How often is looked meanwhile whether to give up.
const LOOK: Duration = Duration::from_millis(50);

impl SessionError {
    /// The server ended the connection before it said who it is.
    fn is_turned_away(&self) -> bool {
        let early = ["kex_exchange_identification", "ssh_exchange_identification"];
        self.kind == SessionFault::Unreachable
            && early.iter().any(|word| self.reason.contains(word))
    }
}

impl SshSession {
    /// A session with the usual deadline, as the user who logs in.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            sudo: false,
            deadline: DEADLINE,
            config: None,
        }
    }

    /// Sends a script to a shell on the machine and returns what it writes. The script begins with the deadline
    /// in seconds, `assay_deadline`. `stop` is asked several times a second whether to give up, and told how long
    /// it has taken so far. A server that turns a connection away before it says anything (MaxStartups of sshd, a
    /// firewall that counts) is asked up to two times more.
    ///
    /// # Errors
    /// [`SessionError`], with what can be done.
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
        // A script that knows this name ends itself by then, whatever becomes of the link.
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
        // Whether it is a bundle says more than the status of the last of several commands.
        if collected.ended.success() || holds_bundle(&collected.stdout) {
            return Ok(Sent {
                complaint: worst_line(&String::from_utf8_lossy(&collected.stderr)),
                bytes: collected.stdout,
            });
        }
        // On a busy machine ssh may have given up before anybody looked.
        if now().saturating_duration_since(begin) >= self.deadline {
            return Err(self.stopped(SessionFault::Deadline));
        }
        Err(self.complaint(collected.ended.code(), &collected.stderr, &collected.stdout))
    }

    /// The words behind `ssh`. The machine gets one word, which means the same to every login shell.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        // Shorter than the deadline, so that a machine that is not reached is told from one that hangs; ssh counts
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
            // Nobody is there to type anything, and nothing is to be forwarded or allocated.
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

    /// An error of this login.
    #[must_use]
    pub fn failed(&self, kind: SessionFault, reason: &str) -> SessionError {
        self.fault(kind, escape_line(reason))
    }

    /// What it sent is no bundle: why, and what the machine complained about, such as a program that it lacks.
    #[must_use]
    pub fn no_bundle(&self, why: &str, complaint: Option<&str>) -> SessionError {
        let said = complaint.map_or_else(String::new, |line| format!(" (it says: {line})"));
        self.fault(SessionFault::Bundle, escape_line(&format!("{why}{said}")))
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
                    // ssh had no time to report that it is not reached.
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

    /// What ssh, sudo or the shell there complained about.
    #[must_use]
    pub fn complaint(&self, status: i32, stderr: &[u8], stdout: &[u8]) -> SessionError {
        let all = String::from_utf8_lossy(stderr);
        let has = |words: &str| all.contains(words);
        let name = &self.host;
        let (kind, way_out) = match () {
            () if has("HOST IDENTIFICATION HAS CHANGED") => (
                SessionFault::HostKey,
                Some(format!(
                    "its key is another one than before: ask whoever installed it, then `ssh-keygen -R` and `ssh {}` once by hand",
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
            () if status == 255 || (129..=192).contains(&status) => (SessionFault::Unreachable, None),
            () => (SessionFault::Other, None),
        };
        // A shell names a signal so, and so does what waited for ssh here.
        let signal = (129..=192).contains(&status).then(|| status - 128);
        let line = worst_line(&all)
            .or_else(|| worst_line(&String::from_utf8_lossy(stdout)))
            .or_else(|| {
                signal.map(|signal| format!("the link was lost: ssh was ended by signal {signal}"))
            })
            .unwrap_or_else(|| format!("exit status {status}"));
        SessionError {
            way_out,
            ..self.fault(kind, line)
        }
    }
}

/// A bundle stands somewhere behind what the login shell printed.
fn holds_bundle(stdout: &[u8]) -> bool {
    let begin = &stdout[..stdout.len().min(64 << 10)];
    let mark = b"assay-bundle 1 ";
    begin.windows(mark.len()).any(|window| window == mark)
}

/// The line that says most: the last one of ssh with a colon in it, not a line of its frame of `@`.
fn worst_line(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('@'));
    let line = lines
        .clone()
        .rfind(|line| line.contains(": ") && !line.starts_with("Offending"))
        .or_else(|| lines.next_back())?;
    let text = assay_model::secrets::withhold_in_text(line);
    Some(escape_line(&text.chars().take(200).collect::<String>()))
}

/// Refuses what ssh would take for something else than a machine.
///
/// # Errors
/// Empty, begins with a hyphen, or has blanks or control characters in it.
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
