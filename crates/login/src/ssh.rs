//! Logs in with the system's own `ssh` and its configuration, keys and agent. `ssh -vvv` prints a line when each part
//! starts; assay records when the line arrives.

pub mod control_master;
mod interactive_shell;
mod transcript;

pub use transcript::Transcript;

use crate::pipe::{From, PipeOutput, ProgramLines};
use crate::watch::{PreparedWatch, RunningWatch, WatchedServer};
use crate::{Login, LoginError, LoginPart, activity};
use assay_model::Nanos;
use interactive_shell::{BEGINS, open_interactive_shell};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Text that the remote command prints when the session is established. Neither ssh nor a start-up file prints it.
pub const MARK: &str = "assay-login-is-there";

/// Target of an ssh login, with options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshTarget {
    /// `[USER@]HOST`, or a name in the user's ssh configuration.
    host: String,
    /// Options in the syntax of `ssh -o`.
    options: Vec<String>,
    /// Program that prints the password, and the file that it reads; `None` for a login without a password.
    password: Option<PasswordProgram>,
}

/// A program that ssh starts to read a password (SSH_ASKPASS), as OpenSSH 8.4 and newer do.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PasswordProgram {
    program: PathBuf,
    file: PathBuf,
}

/// Script of the program. It answers only questions for a password.
const ANSWER_PASSWORD: &str = "#!/bin/sh\n\
    case \"$1\" in *[Pp]assword*) head -n 1 -- \"$ASSAY_PASSWORD_FILE\" ;; *) exit 1 ;; esac\n";

impl SshTarget {
    /// Parses `[USER@]HOST[:PORT]`; options look like `Port=2222`.
    ///
    /// # Errors
    /// The text is not a host, or ssh would treat it as an option.
    pub fn new(text: &str, options: &[String]) -> Result<Self, LoginError> {
        let wrong = |why: &str| LoginError::Target {
            target: text.to_owned(),
            why: why.to_owned(),
        };
        let mut options = options.to_vec();
        let host = match text.rsplit_once(':') {
            // A text with more than one colon is an IPv6 address, unless it is in brackets.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port: u16 = port
                    .parse()
                    .map_err(|_| wrong("the port is not a number"))?;
                options.push(format!("Port={port}"));
                host.replace(['[', ']'], "")
            }
            _ => text.replace(['[', ']'], ""),
        };
        let plain = |c: char| !c.is_control() && !c.is_whitespace();
        if host.is_empty() || host.starts_with('-') || !host.chars().all(plain) {
            return Err(wrong("write it as [USER@]HOST[:PORT]"));
        }
        Ok(Self {
            host,
            options,
            password: None,
        })
    }

    /// Returns a target that logs in with the password in the first line of `file`. The program that prints it is
    /// written into `dir`.
    ///
    /// # Errors
    /// The program cannot be written.
    pub fn with_password(mut self, file: &Path, dir: &Path) -> std::io::Result<Self> {
        let program = dir.join("askpass");
        std::fs::write(&program, ANSWER_PASSWORD)?;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
        let file = std::path::absolute(file)?;
        self.password = Some(PasswordProgram { program, file });
        Ok(self)
    }

    /// Returns the host without the user.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.rsplit('@').next().unwrap_or(&self.host)
    }

    /// Returns ssh's effective configuration for this target (`ssh -G`): keywords and values. Empty if ssh
    /// fails.
    #[must_use]
    pub fn effective(&self) -> Vec<(String, String)> {
        let Ok(mut lines) = ProgramLines::start(self.command(&["-G"], &[])) else {
            return Vec::new();
        };
        let end = Instant::now() + Duration::from_secs(10);
        let mut found = Vec::new();
        while let Ok((_, PipeOutput::Line(from, line))) = lines.next(end, &|| false) {
            if let (From::Out, Some((name, value))) = (from, line.split_once(' ')) {
                found.push((name.to_lowercase(), value.trim().to_owned()));
            }
        }
        found
    }

    /// Builds an `ssh` command with these arguments before the host and a remote command.
    pub(crate) fn command(&self, arguments: &[&str], remote: &[&str]) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        words.extend(arguments.iter().map(Into::into));
        // Nobody can answer a prompt. The first value of an option wins, so these come first.
        let first = match self.password {
            Some(_) => ["BatchMode=no", "NumberOfPasswordPrompts=1"],
            None => ["BatchMode=yes", "NumberOfPasswordPrompts=0"],
        };
        let by_password = "PreferredAuthentications=keyboard-interactive,password";
        let last = self.password.as_ref().map(|_| by_password);
        let options = self.options.iter().map(String::as_str);
        for option in first.into_iter().chain(options).chain(last) {
            words.extend(["-o".into(), option.into()]);
        }
        words.push("--".into());
        words.push(OsString::from(&self.host));
        words.extend(remote.iter().map(Into::into));
        let mut command = Command::new("ssh");
        command.args(words).env("LC_ALL", "C");
        if let Some(password) = &self.password {
            command
                .env("SSH_ASKPASS", &password.program)
                .env("SSH_ASKPASS_REQUIRE", "force")
                .env("ASSAY_PASSWORD_FILE", &password.file);
        }
        command
    }
}

/// Kind of remote session to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteSession {
    /// A command without a terminal, as in `ssh HOST COMMAND`.
    Command,
    /// A login shell on a terminal, which reads the start-up files of an interactive user.
    Person,
}

/// Remote command that prints [`MARK`]. The command contains the mark in two parts, so that a trace of the command does
/// not contain the mark.
pub(crate) const PRINT_MARK: &str = "printf '%s-%s\\n' assay-login is-there";
/// Longest end of a session that is waited for.
const LONGEST_LOGOUT: Duration = Duration::from_secs(30);

/// Logs in once over a new connection and watches the processes of client and server.
///
/// # Errors
/// The login is refused or exceeds its time limit.
pub fn login(
    target: &SshTarget,
    session: RemoteSession,
    server: &WatchedServer,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Login, LoginError> {
    let own = ["-vvv", "-o", "ControlMaster=no", "-o", "ControlPath=none"];
    let command = match session {
        RemoteSession::Command => target.command(&[&own[..], &["-T"]].concat(), &[PRINT_MARK]),
        RemoteSession::Person => {
            let shell = open_interactive_shell();
            target.command(&[&own[..], &["-tt"]].concat(), &[&shell])
        }
    };
    let prepared = PreparedWatch::new(server);
    let begin = Instant::now();
    let start = |source| LoginError::Start {
        program: "ssh",
        source,
    };
    let mut lines = ProgramLines::start(command).map_err(start)?;
    let watch = prepared.start(Some(lines.pid()), begin);
    let mut transcript = Transcript::default();
    let name = || target.host.clone();
    let seen = |watch: RunningWatch, mut login: Login| {
        login.shares = activity::divide_among_parts(&watch.finish(), &login.phases);
        login
    };
    let mut end = begin + limit;
    let mut is_in = false;
    loop {
        let (at, came) = lines.next(end, stop).map_err(start)?;
        let since = Nanos::from(at - begin);
        match came {
            PipeOutput::Ended | PipeOutput::Late if is_in => {
                return Ok(seen(watch, transcript.cut(since)));
            }
            PipeOutput::Line(From::Out, line) if line.trim() == BEGINS => {
                transcript.shell_begins(since)
            }
            PipeOutput::Line(From::Out, line) => {
                if !is_in && transcript.said(since, line.trim() == MARK) {
                    if session == RemoteSession::Command {
                        return Ok(seen(watch, transcript.finish()));
                    }
                    is_in = true;
                    end = at + LONGEST_LOGOUT.min(limit);
                }
            }
            PipeOutput::Line(From::Error, line) => transcript.line(since, &line),
            PipeOutput::Ended if transcript.ran_another_command() => {
                return Ok(seen(watch, transcript.cut(since)));
            }
            PipeOutput::Ended => {
                let (why, said) = (transcript.complaint(), transcript.complaints());
                return Err(LoginError::Refused {
                    target: name(),
                    why,
                    said,
                    so_far: Box::new(seen(watch, transcript.cut(since))),
                });
            }
            PipeOutput::Late => {
                let waited = transcript.waiting();
                return Err(LoginError::TimedOut {
                    target: name(),
                    limit: limit.into(),
                    waited,
                    so_far: Box::new(seen(watch, transcript.cut(since))),
                });
            }
            PipeOutput::Stopped => return Err(LoginError::Interrupted),
        }
    }
}

/// Extends a login for a command by the parts of an interactive shell: its first prompt, and its end.
#[must_use]
pub fn with_prompt(command: Login, person: &Login) -> Login {
    let mut all = command;
    for part in [LoginPart::Prompt, LoginPart::Logout] {
        let phases = person.phases.iter().filter(|phase| phase.part == part);
        let took: Vec<u64> = phases.map(|phase| phase.took.0).collect();
        // A login that was cut off has no end.
        if took.is_empty() && part == LoginPart::Logout {
            continue;
        }
        let shares = person.shares.iter().filter(|share| share.part == part);
        all.shares.extend(shares.cloned());
        all.add(part, Nanos(took.into_iter().sum()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_no_options() {
        let target = |text: &str| SshTarget::new(text, &[]);
        for bad in [
            "",
            "-oProxyCommand=reboot",
            "a b",
            "a\nb",
            "host:x",
            "host:70000",
        ] {
            assert!(target(bad).is_err(), "{bad}");
        }
        let at = target("me@host:2222").unwrap();
        assert_eq!(
            (at.host(), at.options.as_slice()),
            ("host", &["Port=2222".to_owned()][..])
        );
        assert_eq!(target("::1").unwrap().host(), "::1");
        assert_eq!(target("[::1]:22").unwrap().host(), "::1");
    }
}
