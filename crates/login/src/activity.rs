//! Records what the processes of client and server did during a login, and how much of each part of the login an
//! activity explains. Module `watch` collects the sightings; module `cause` interprets them.

use crate::{LoginPart, PartTime};
use assay_model::Nanos;

/// Side of the connection to which a process belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionSide {
    /// The program that logs in.
    Client,
    /// The server that accepts the login.
    Server,
}

/// Something for which a process needs time. The variants are ordered by precedence: if two processes are busy at the
/// same time, the first variant explains the wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// A program that the client or server started.
    Program {
        /// Words of two command lines: of the program, then of its innermost child process.
        words: Vec<String>,
        /// Name of the innermost child.
        inner: String,
    },
    /// A request to a name server, given by its address.
    NameServer(String),
    /// The process sleeps until a timer expires.
    Sleep,
    /// A request to the service behind a Unix socket, given by its path.
    Socket(String),
    /// A request to another machine or service: `ADDRESS:PORT`.
    Peer(String),
    /// The process waits for a disk or a network file system.
    Disk,
    /// The process computes.
    Cpu,
    /// The process is runnable but waits for a free CPU.
    CpuQueue,
}

/// A process with its activity during an interval. Times are measured from the start of the login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Start of the interval.
    pub from: Nanos,
    /// End of the interval.
    pub to: Nanos,
    /// Side to which the process belongs.
    pub side: ConnectionSide,
    /// Process number.
    pub pid: u32,
    /// Name of the process.
    pub process: String,
    /// Activity of the process.
    pub activity: Activity,
}

/// Time of an activity within a part of the login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityShare {
    /// Part of the login.
    pub part: LoginPart,
    /// Side to which the process belongs.
    pub side: ConnectionSide,
    /// Name of the process.
    pub process: String,
    /// Activity of the process.
    pub activity: Activity,
    /// Duration of the activity within the part.
    pub took: Nanos,
}

/// A program that started within a part must run at least this long in the part, in nanoseconds. Shorter times may come
/// from a look at the processes that was late by one interval.
const BEGUN: u64 = 20_000_000;

/// Divides sightings among the parts of a login. A program of the client counts only in the part in which it
/// started: a long-running program such as a ProxyCommand carries the connection.
#[must_use]
pub fn divide_among_parts(sightings: &[Sighting], phases: &[PartTime]) -> Vec<ActivityShare> {
    let mut shares: Vec<ActivityShare> = Vec::new();
    let mut programs: Vec<(u32, usize)> = Vec::new();
    for one in sightings {
        let mut begin = 0;
        for (index, phase) in phases.iter().enumerate() {
            let end = begin + phase.took.0;
            let took = one.to.0.min(end).saturating_sub(one.from.0.max(begin));
            begin = end;
            if took == 0 {
                continue;
            }
            if one.side == ConnectionSide::Client
                && matches!(one.activity, Activity::Program { .. })
            {
                match programs.iter().find(|(pid, _)| *pid == one.pid) {
                    Some((_, first)) if *first != index => continue,
                    Some(_) => {}
                    None if took < BEGUN => continue,
                    None => programs.push((one.pid, index)),
                }
            }
            let same = shares.iter_mut().find(|share| {
                share.part == phase.part
                    && share.side == one.side
                    && share.process == one.process
                    && share.activity == one.activity
            });
            match same {
                Some(share) => share.took.0 += took,
                None => shares.push(ActivityShare {
                    part: phase.part.clone(),
                    side: one.side,
                    process: one.process.clone(),
                    activity: one.activity.clone(),
                    took: Nanos(took),
                }),
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(
        from: u64,
        to: u64,
        side: ConnectionSide,
        pid: u32,
        activity: Activity,
    ) -> Sighting {
        Sighting {
            from: Nanos(from),
            to: Nanos(to),
            side,
            pid,
            process: "p".to_owned(),
            activity,
        }
    }

    #[test]
    fn intervals_are_cut_at_parts_and_a_proxy_counts_where_it_began() {
        const MS: u64 = 1_000_000;
        let phases = [
            (LoginPart::Name, 10),
            (LoginPart::Banner, 100),
            (LoginPart::KeyExchange, 200),
            (LoginPart::User, 50),
        ];
        let phases = phases.map(|(part, took)| PartTime {
            part,
            took: Nanos(took * MS),
        });
        let program = Activity::Program {
            words: vec!["nc".to_owned()],
            inner: "nc".to_owned(),
        };
        let shares = divide_among_parts(
            &[
                sighting(2 * MS, 400 * MS, ConnectionSide::Client, 7, program),
                sighting(
                    60 * MS,
                    130 * MS,
                    ConnectionSide::Server,
                    8,
                    Activity::Sleep,
                ),
                sighting(
                    210 * MS,
                    260 * MS,
                    ConnectionSide::Server,
                    8,
                    Activity::Sleep,
                ),
            ],
            &phases,
        );
        let all: Vec<(LoginPart, ConnectionSide, u64)> = shares
            .into_iter()
            .map(|share| (share.part, share.side, share.took.0 / MS))
            .collect();
        assert_eq!(
            all,
            [
                (LoginPart::Banner, ConnectionSide::Client, 100),
                (LoginPart::Banner, ConnectionSide::Server, 50),
                (LoginPart::KeyExchange, ConnectionSide::Server, 70),
            ]
        );
    }
}
