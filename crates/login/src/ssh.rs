//! Logs in with the system's own `ssh` and its configuration, keys and agent. `ssh -vvv` prints a line when each part
//! starts; assay records when the line arrives.

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

/// Text that the remote command prints when the session is established. Neither ssh nor a start-up file prints it.
pub const MARK: &str = "assay-login-is-there";

/// Target of an ssh login, with options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshTarget {
    /// `[USER@]HOST`, or a name in the user's ssh configuration.
    host: String,
    /// Options in the syntax of `ssh -o`.
    options: Vec<String>,
}

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
        Ok(Self { host, options })
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
pub(crate) const SAY: &str = "printf '%s-%s\\n' assay-login is-there";
/// Text that the remote side prints when the session is established and the interactive shell starts.
const BEGINS: &str = "assay-shell-begins";
/// Runs the user's own shell as an interactive shell. An interactive shell with `-c` writes no history. `/bin/sh`
/// interprets the quotes, because the user's shell may have other rules.
const SAY_AS_PERSON: &str = concat!(
    "exec /bin/sh -c 'printf \"%s-%s\\n\" assay-shell begins; ",
    "exec \"${SHELL:-/bin/sh}\" -l -i -c \"printf %s-%s\\\\\\\\n assay-login is-there\"'"
);

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

/// Extends a login for a command by the part in which an interactive shell reads its start-up files.
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
