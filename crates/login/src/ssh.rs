//! A login by the system's own `ssh`, with its configuration, keys and agent: `-v` says when each part
//! begins, and the line is read when it comes.

pub mod control;
mod transcript;

pub use transcript::Transcript;

use crate::pipe::{Came, From, Lines};
use crate::{Login, LoginError, Part};
use assay_model::Nanos;
use std::ffi::OsString;
use std::process::Command;
use std::time::{Duration, Instant};

/// Printed by the far end when it is there; nothing that ssh or a start-up file prints is that.
pub const MARK: &str = "assay-login-is-there";

/// Where to log in, and with which options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `[USER@]HOST`, or a name of the user's ssh configuration.
    host: String,
    /// Options, as after `ssh -o`.
    options: Vec<String>,
}

impl Target {
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

    /// The port, where an option says one; else that of SSH.
    #[must_use]
    pub fn port(&self) -> u16 {
        let said = self.options.iter().find_map(|option| {
            let (name, value) = option.split_once(['=', ' '])?;
            name.trim()
                .eq_ignore_ascii_case("port")
                .then(|| value.trim().parse().ok())?
        });
        said.unwrap_or(22)
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
pub enum Session {
    /// A command in a shell that nobody types at.
    Command,
    /// A login shell at a terminal: it reads all that it reads for a person.
    Person,
}

/// `printf` with the mark in two parts, so that no trace of the command is taken for it.
const SAY: &str = "printf '%s-%s\\n' assay-login is-there";
/// The user's own shell as for a person. An interactive `-c` leaves no history.
const SAY_AS_PERSON: &str =
    "exec \"${SHELL:-/bin/sh}\" -l -i -c \"printf '%s-%s\\n' assay-login is-there\"";

/// Logs in once over a connection of its own.
///
/// # Errors
/// It did not get in, or not in time.
pub fn login(
    target: &Target,
    session: Session,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Login, LoginError> {
    let own = ["-v", "-o", "ControlMaster=no", "-o", "ControlPath=none"];
    let command = match session {
        Session::Command => target.command(&[&own[..], &["-T"]].concat(), &[SAY]),
        Session::Person => target.command(&[&own[..], &["-tt"]].concat(), &[SAY_AS_PERSON]),
    };
    let begin = Instant::now();
    let start = |source| LoginError::Start {
        program: "ssh",
        source,
    };
    let mut lines = Lines::start(command).map_err(start)?;
    let mut transcript = Transcript::default();
    let name = || target.host.clone();
    loop {
        let (at, came) = lines.next(begin + limit, stop).map_err(start)?;
        let since = Nanos::from(at - begin);
        match came {
            Came::Line(From::Out, line) => {
                if transcript.said(since, line.trim() == MARK) {
                    return Ok(transcript.finish());
                }
            }
            Came::Line(From::Error, line) => transcript.line(since, &line),
            Came::Ended => {
                return Err(LoginError::Refused {
                    target: name(),
                    why: transcript.complaint(),
                    so_far: Box::new(transcript.cut(since)),
                });
            }
            Came::Late => {
                let waited = transcript.waiting();
                return Err(LoginError::TimedOut {
                    target: name(),
                    limit: limit.into(),
                    waited,
                    so_far: Box::new(transcript.cut(since)),
                });
            }
            Came::Stopped => return Err(LoginError::Interrupted),
        }
    }
}

/// What a login for a person takes more than one for a command: the start-up files of the shell.
#[must_use]
pub fn with_prompt(command: Login, person: &Login) -> Login {
    let session = |login: &Login| {
        let found = login
            .phases
            .iter()
            .find(|phase| phase.part == Part::Session);
        found.map_or(0, |phase| phase.took.0)
    };
    let more = session(person).saturating_sub(session(&command));
    let mut all = command;
    all.add(Part::Prompt, Nanos(more));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_no_options() {
        let target = |text: &str| Target::new(text, &[]);
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
