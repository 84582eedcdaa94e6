//! A login by the system's own `ssh`, with its configuration, keys and agent: `-vvv` prints when each part
//! begins, and the line is read when it comes.

pub mod control_master;
mod transcript;

pub use transcript::Transcript;

use crate::pipe::{From, PipeOutput, ProgramLines};
use crate::watch::{PreparedWatch, RunningWatch, WatchedServer};
use crate::{Login, LoginError, LoginPart, activity};
use assay_model::Nanos;
use std::ffi::OsString;
use std::process::Command;
use std::time::{Duration, Instant};

/// Printed by the far end when it is there; nothing that ssh or a start-up file prints is that.
pub const MARK: &str = "assay-login-is-there";

/// Where to log in, and with which options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshTarget {
    /// `[USER@]HOST`, or a name of the user's ssh configuration.
    host: String,
    /// Options, as after `ssh -o`.
    options: Vec<String>,
}

impl SshTarget {
    /// As the user writes it: `[USER@]HOST[:PORT]`, and options such as `Port=2222`.
    ///
    /// # Errors
    /// ssh would take it for an option, or it is no host.
    pub fn new(text: &str, options: &[String]) -> Result<Self, LoginError> {
        let wrong = |why: &str| LoginError::Target {
            target: text.to_owned(),
            why: why.to_owned(),
        };
        let mut options = options.to_vec();
        let host = match text.rsplit_once(':') {
            // More than one colon is an IPv6 address, unless it is in brackets.
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
        Ok(Self { host, options })
    }

    /// The host, without a user.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.rsplit('@').next().unwrap_or(&self.host)
    }

    /// Returns what ssh makes of its configuration for this target (`ssh -G`): keyword and value. Empty when
    /// ssh does not answer.
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

    /// `ssh` with these arguments before the host, and the command for the far end.
    pub(crate) fn command(&self, arguments: &[&str], remote: &[&str]) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        words.extend(arguments.iter().map(Into::into));
        // Nobody is there to answer a question. These come first, so that they hold.
        for option in ["BatchMode=yes", "NumberOfPasswordPrompts=0"] {
            words.extend(["-o".into(), option.into()]);
        }
        for option in &self.options {
            words.extend(["-o".into(), option.into()]);
        }
        words.push("--".into());
        words.push(OsString::from(&self.host));
        words.extend(remote.iter().map(Into::into));
        let mut command = Command::new("ssh");
        command.args(words).env("LC_ALL", "C");
        command
    }
}

/// What the far end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteSession {
    /// A command in a shell that nobody types at.
    Command,
    /// A login shell at a terminal: it reads all that it reads for a person.
    Person,
}

/// `printf` with the mark in two parts, so that no trace of the command is taken for it.
const SAY: &str = "printf '%s-%s\\n' assay-login is-there";
/// Printed by the far end when the session is there and the shell for a person begins.
const BEGINS: &str = "assay-shell-begins";
/// The user's own shell as for a person. An interactive `-c` leaves no history. `/bin/sh` does the quoting,
/// because the user's shell may be one that reads it differently.
const SAY_AS_PERSON: &str = concat!(
    "exec /bin/sh -c 'printf \"%s-%s\\n\" assay-shell begins; ",
    "exec \"${SHELL:-/bin/sh}\" -l -i -c \"printf %s-%s\\\\\\\\n assay-login is-there\"'"
);

/// Logs in once over a connection of its own, while the processes of both ends are watched.
///
/// # Errors
/// It did not get in, or not in time.
pub fn login(
    target: &SshTarget,
    session: RemoteSession,
    server: &WatchedServer,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Login, LoginError> {
    let own = ["-vvv", "-o", "ControlMaster=no", "-o", "ControlPath=none"];
    let command = match session {
        RemoteSession::Command => target.command(&[&own[..], &["-T"]].concat(), &[SAY]),
        RemoteSession::Person => target.command(&[&own[..], &["-tt"]].concat(), &[SAY_AS_PERSON]),
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
    loop {
        let (at, came) = lines.next(begin + limit, stop).map_err(start)?;
        let since = Nanos::from(at - begin);
        match came {
            PipeOutput::Line(From::Out, line) if line.trim() == BEGINS => {
                transcript.shell_begins(since)
            }
            PipeOutput::Line(From::Out, line) => {
                if transcript.said(since, line.trim() == MARK) {
                    return Ok(seen(watch, transcript.finish()));
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

/// Adds to a login for a command what the shell for a person took: its start-up files.
#[must_use]
pub fn with_prompt(command: Login, person: &Login) -> Login {
    let is_prompt = |part: &LoginPart| *part == LoginPart::Prompt;
    let phases = person.phases.iter().filter(|phase| is_prompt(&phase.part));
    let took = phases.map(|phase| phase.took.0).sum();
    let mut all = command;
    all.add(LoginPart::Prompt, Nanos(took));
    let shares = person.shares.iter().filter(|share| is_prompt(&share.part));
    all.shares.extend(shares.cloned());
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
