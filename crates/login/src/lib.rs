//! Logins taken apart: how long each phase takes, which one waits, and what is likely to be the cause.
//!
//! A login is made as a user makes it: by the system's own `ssh`, or over the same protocol that a mail
//! program or a browser speaks. Nothing on the server is changed; whoever logs in does no more than a
//! login does.
#![allow(
    clippy::disallowed_methods,
    reason = "it reads the clock around what it waits for, and starts ssh through host::process"
)]

pub mod activity;
pub mod cause;
pub mod client_trace;
pub mod concurrent_logins;
pub mod failure;
pub mod http;
pub mod mail;
mod pipe;
pub mod ssh;
pub mod startup;
pub mod watch;

use assay_model::Nanos;
use serde::Serialize;

/// A part of a login, in the order in which they come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "method")]
#[schemars(rename = "Part")]
pub enum LoginPart {
    /// The client starts, reads its configuration and looks the name up.
    Name,
    /// The connection is made, over all addresses that had to be tried.
    Tcp,
    /// TLS is agreed on.
    Tls,
    /// The server says who it is.
    Banner,
    /// Keys are exchanged, and the host's key is checked.
    KeyExchange,
    /// The server's first word on who logs in: it has looked the user up by then.
    User,
    /// A method of authentication, until it succeeds or the next one begins.
    Method(String),
    /// From there until the session says its first word.
    Session,
    /// What a shell for a person does before its first prompt: its start-up files.
    Prompt,
    /// The answer to what was asked.
    Answer,
}

impl LoginPart {
    /// For people.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Name => "name".to_owned(),
            Self::Tcp => "TCP".to_owned(),
            Self::Tls => "TLS".to_owned(),
            Self::Banner => "banner".to_owned(),
            Self::KeyExchange => "key exchange".to_owned(),
            Self::User => "user".to_owned(),
            Self::Method(method) => method.clone(),
            Self::Session => "session".to_owned(),
            Self::Prompt => "prompt".to_owned(),
            Self::Answer => "answer".to_owned(),
        }
    }
}

/// How long a part took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Phase")]
pub struct PartTime {
    /// Which.
    pub part: LoginPart,
    /// How long.
    pub took: Nanos,
}

/// One login.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Login {
    /// Its parts, in order.
    pub phases: Vec<PartTime>,
    /// What was said on the way that may explain a wait: addresses that refused, methods that failed.
    pub remarks: Vec<String>,
    /// What processes of both ends were seen doing.
    #[serde(skip)]
    #[schemars(skip)]
    pub shares: Vec<activity::ActivityShare>,
    /// What the client told of this login.
    #[serde(skip)]
    #[schemars(skip)]
    pub clues: client_trace::Clues,
}

impl Login {
    fn add(&mut self, part: LoginPart, took: impl Into<Nanos>) {
        let took = took.into();
        self.phases.push(PartTime { part, took });
    }

    /// From the start to the end.
    #[must_use]
    pub fn total(&self) -> Nanos {
        Nanos(self.phases.iter().map(|phase| phase.took.0).sum())
    }
}

/// Why there was no login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// It cannot be meant.
    #[error("{target}: {why}")]
    Target {
        /// As the user wrote it.
        target: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The program is missing, or does not start.
    #[error("{program}: {source}; install openssh-client")]
    Start {
        /// Program.
        program: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// It did not get in.
    #[error("{target}: no login after {}: {why}", .so_far.total())]
    Refused {
        /// Target.
        target: String,
        /// What was said last.
        why: String,
        /// All that was said.
        said: Vec<String>,
        /// The parts until then.
        so_far: Box<Login>,
    },
    /// It took too long.
    #[error("{target}: no end within {limit}; it waited in: {}", .waited.name())]
    TimedOut {
        /// Target.
        target: String,
        /// Limit.
        limit: Nanos,
        /// Which part it waited in.
        waited: LoginPart,
        /// The parts until then, the waiting one included.
        so_far: Box<Login>,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// A part over all logins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// Which.
    pub part: LoginPart,
    /// Half of the logins were faster in it.
    pub median: Nanos,
    /// The slowest.
    pub longest: Nanos,
    /// In how many logins it came.
    pub count: usize,
}

/// The parts of several logins, in the order in which they came first.
#[must_use]
pub fn summarize_parts(logins: &[Login]) -> Vec<Summary> {
    let mut parts: Vec<(LoginPart, Vec<u64>)> = Vec::new();
    for phase in logins.iter().flat_map(|login| &login.phases) {
        match parts.iter_mut().find(|(part, _)| *part == phase.part) {
            Some((_, times)) => times.push(phase.took.0),
            None => parts.push((phase.part.clone(), vec![phase.took.0])),
        }
    }
    parts.sort_by_key(|(part, _)| order(part));
    parts
        .into_iter()
        .map(|(part, mut times)| {
            times.sort_unstable();
            Summary {
                part,
                median: Nanos(times[(times.len() - 1) / 2]),
                longest: Nanos(times[times.len() - 1]),
                count: times.len(),
            }
        })
        .collect()
}

/// Methods keep the order in which they were tried.
fn order(part: &LoginPart) -> u8 {
    match part {
        LoginPart::Name => 0,
        LoginPart::Tcp => 1,
        LoginPart::Tls => 2,
        LoginPart::Banner => 3,
        LoginPart::KeyExchange => 4,
        LoginPart::User => 5,
        LoginPart::Method(_) => 6,
        LoginPart::Session => 7,
        LoginPart::Prompt => 8,
        LoginPart::Answer => 9,
    }
}

/// A wait that is looked into: so long, and so much of the whole login.
pub const LEAST: Nanos = Nanos(200_000_000);
/// The share of a login from which a wait is looked into.
pub const LEAST_SHARE: f64 = 0.1;

/// Returns whether a wait within a login of this length is one to look into.
#[must_use]
pub fn is_wait(took: Nanos, whole: Nanos) -> bool {
    took >= LEAST && took.0 as f64 >= whole.0 as f64 * LEAST_SHARE
}

/// The longest part, when it is long enough to look into.
#[must_use]
pub fn longest_wait(summaries: &[Summary]) -> Option<&Summary> {
    let all = Nanos(summaries.iter().map(|one| one.median.0).sum());
    let longest = summaries.iter().max_by_key(|one| one.median)?;
    is_wait(longest.median, all).then_some(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(times: &[(LoginPart, u64)]) -> Login {
        let mut login = Login::default();
        for (part, ms) in times {
            login.add(part.clone(), Nanos(ms * 1_000_000));
        }
        login
    }

    #[test]
    fn the_part_that_waits_is_named_and_a_quick_login_has_none() {
        let key = || LoginPart::Method("publickey".to_owned());
        let slow = [
            login(&[(LoginPart::Tcp, 1), (LoginPart::User, 2_000), (key(), 20)]),
            login(&[(LoginPart::Tcp, 1), (LoginPart::User, 1_990), (key(), 30)]),
            // A part that comes in some logins alone.
            login(&[
                (LoginPart::Name, 9),
                (LoginPart::Tcp, 1),
                (LoginPart::User, 5_000),
                (key(), 30),
            ]),
        ];
        let all = summarize_parts(&slow);
        assert_eq!(all[0].part, LoginPart::Name);
        let waits = longest_wait(&all).unwrap();
        assert_eq!(
            (&waits.part, waits.median),
            (&LoginPart::User, Nanos(2_000_000_000))
        );
        assert_eq!((waits.count, waits.longest), (3, Nanos(5_000_000_000)));
        let quick = [login(&[(LoginPart::Tcp, 1), (key(), 80)])];
        assert_eq!(super::longest_wait(&summarize_parts(&quick)), None);
        assert_eq!(super::longest_wait(&[]), None);
    }
}
