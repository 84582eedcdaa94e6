//! Measures logins: the duration of each part, the part with the longest wait, and its likely cause.
//!
//! A login uses the system's own `ssh`, or the protocol of a mail program or browser. assay changes nothing on the
//! server and does nothing except log in.
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
pub mod motd_programs;
pub mod pam_timing;
mod pipe;
pub mod ssh;
pub mod startup;
pub mod watch;

use assay_model::Nanos;
use serde::Serialize;

/// A part of a login, in order of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "method")]
#[schemars(rename = "Part")]
pub enum LoginPart {
    /// The client starts, reads its configuration and resolves the host name.
    Name,
    /// TCP connection, including all addresses that had to be tried.
    Tcp,
    /// TLS handshake.
    Tls,
    /// Banner or greeting of the server.
    Banner,
    /// Key exchange, with the check of the host key.
    KeyExchange,
    /// From the client's request for the user until the server's first answer. By then the server has looked the user
    /// up.
    User,
    /// An authentication method, until it succeeds or the next method starts.
    Method(String),
    /// From the authentication until the first output of the session.
    Session,
    /// Start-up files of an interactive shell, and what it runs for its first prompt.
    Prompt,
    /// End of an interactive session, until the connection is closed. Not part of the time of a login.
    Logout,
    /// Request, until the server's answer to it.
    Answer,
}

impl LoginPart {
    /// Returns the name for output.
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
            Self::Logout => "logout".to_owned(),
            Self::Answer => "answer".to_owned(),
        }
    }
}

/// Duration of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Phase")]
pub struct PartTime {
    /// The part.
    pub part: LoginPart,
    /// Duration of the part.
    pub took: Nanos,
}

/// One login.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Login {
    /// Parts in order.
    pub phases: Vec<PartTime>,
    /// Messages that may explain a wait: addresses that refused, methods that failed.
    pub remarks: Vec<String>,
    /// Activities of the processes on both sides.
    #[serde(skip)]
    #[schemars(skip)]
    pub shares: Vec<activity::ActivityShare>,
    /// Facts from the client's trace.
    #[serde(skip)]
    #[schemars(skip)]
    pub clues: client_trace::Clues,
}

impl Login {
    fn add(&mut self, part: LoginPart, took: impl Into<Nanos>) {
        let took = took.into();
        self.phases.push(PartTime { part, took });
    }

    /// Returns the duration of the whole login.
    #[must_use]
    pub fn total(&self) -> Nanos {
        Nanos(self.phases.iter().map(|phase| phase.took.0).sum())
    }
}

/// Reasons why a login has no result.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The target is invalid.
    #[error("{target}: {why}")]
    Target {
        /// Target as the user wrote it.
        target: String,
        /// Error and remedy.
        why: String,
    },
    /// The program is missing, or does not start.
    #[error("{program}: {source}; install openssh-client")]
    Start {
        /// Name of the program.
        program: &'static str,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The login was refused.
    #[error("{target}: no login after {}: {why}", .so_far.total())]
    Refused {
        /// Target of the login.
        target: String,
        /// Last message.
        why: String,
        /// All messages.
        said: Vec<String>,
        /// Parts before the refusal.
        so_far: Box<Login>,
    },
    /// The login exceeded its time limit.
    #[error("{target}: no end within {limit}; it waited in: {}", .waited.name())]
    TimedOut {
        /// Target of the login.
        target: String,
        /// Time limit.
        limit: Nanos,
        /// Part of the login that was running when the time was over.
        waited: LoginPart,
        /// Parts so far, including the running one.
        so_far: Box<Login>,
    },
    /// The user interrupted the login.
    #[error("interrupted")]
    Interrupted,
}

/// Summary of a part over all logins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// The part.
    pub part: LoginPart,
    /// Median duration.
    pub median: Nanos,
    /// Maximum duration.
    pub longest: Nanos,
    /// Number of logins with this part.
    pub count: usize,
}

/// Summarises the parts of several logins, in the order of their first occurrence.
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

/// Time of whole logins. This is not the sum of the parts' medians: that sum counts a part that occurs in one login of
/// five as if every login had it, and a wait that moves from part to part is in no median.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeTime {
    /// Median.
    pub median: Nanos,
    /// Maximum.
    pub longest: Nanos,
}

impl WholeTime {
    /// Summarises the whole logins without the parts that `left_out` names; `None` without a login.
    #[must_use]
    pub fn of(logins: &[Login], left_out: &dyn Fn(&LoginPart) -> bool) -> Option<Self> {
        let of_parts = |login: &Login| -> u64 {
            let parts = login.phases.iter().filter(|phase| !left_out(&phase.part));
            parts.map(|phase| phase.took.0).sum()
        };
        let mut times: Vec<u64> = logins.iter().map(of_parts).collect();
        times.sort_unstable();
        Some(Self {
            median: Nanos(*times.get(times.len().checked_sub(1)? / 2)?),
            longest: Nanos(*times.last()?),
        })
    }
}

/// Computes the fraction of the time of all logins that a part took. The fractions of all parts add up to 1.
#[must_use]
pub fn share_of_time(logins: &[Login], part: &LoginPart) -> f64 {
    let phases = || logins.iter().flat_map(|login| &login.phases);
    let own = phases().filter(|phase| phase.part == *part);
    let (own, all) = (
        own.map(|phase| phase.took.0).sum::<u64>(),
        phases().map(|phase| phase.took.0).sum::<u64>(),
    );
    own as f64 / all.max(1) as f64
}

/// Returns the position of a part in the order of a login. Authentication methods have the same position, so they keep
/// the order in which they were tried.
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
        LoginPart::Logout => 10,
    }
}

/// Minimum duration of a part that counts as a wait and is investigated.
pub const LEAST: Nanos = Nanos(200_000_000);
/// Minimum fraction of the whole login that a part must take to be investigated, 0 to 1.
pub const LEAST_SHARE: f64 = 0.1;

/// Returns whether a duration within a login of length `whole` counts as a wait.
#[must_use]
pub fn is_wait(took: Nanos, whole: Nanos) -> bool {
    took >= LEAST && took.0 as f64 >= whole.0 as f64 * LEAST_SHARE
}

/// Returns the longest part, if it counts as a wait.
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
            // A part that occurs only in some logins.
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
        // Two of three logins take 2 s; the sum of the medians would contain the name that one login alone has.
        let whole = WholeTime::of(&slow, &|_| false).unwrap();
        assert_eq!(whole.median, Nanos(2_021_000_000));
        assert_eq!(whole.longest, Nanos(5_040_000_000));
        let command = WholeTime::of(&slow, &|part| *part == LoginPart::User).unwrap();
        assert_eq!(command.median, Nanos(31_000_000));
        let shares: f64 = all.iter().map(|one| share_of_time(&slow, &one.part)).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        assert!(share_of_time(&slow, &LoginPart::Name) < 0.01);
        assert_eq!(WholeTime::of(&[], &|_| false), None);
        let quick = [login(&[(LoginPart::Tcp, 1), (key(), 80)])];
        assert_eq!(super::longest_wait(&summarize_parts(&quick)), None);
        assert_eq!(super::longest_wait(&[]), None);
    }
}
