//! What a load of HTTP requests is, and what was seen of it and around it.
//!
//! Everything is stored as it was counted; who was the limit, and whether a figure may be believed, is
//! derived from it by `assay-judge`.

mod combined_load;
mod over_time;
pub mod result;
mod sample;

pub use combined_load::Part;
pub use over_time::Point;

use crate::histogram::Histogram;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Pace {
    /// Each connection sends the next request as soon as it has an answer: how much the server can do.
    Closed,
    /// At even times that are fixed before the start: what a user waits at this rate.
    Constant {
        /// Requests per second.
        per_s: f64,
    },
    /// At random times with exponential gaps, fixed before the start as well.
    Poisson {
        /// Requests per second on average.
        per_s: f64,
    },
    /// At the times of a list, such as an access log.
    Replay {
        /// Requests per second on average.
        per_s: f64,
    },
}

impl Pace {
    /// Requests per second that are asked for; none in a closed loop.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant { per_s } | Self::Poisson { per_s } | Self::Replay { per_s } => {
                Some(per_s)
            }
        }
    }
}

/// What is spoken with a web server.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time on a connection.
    #[default]
    #[serde(rename = "http/1.1")]
    Http1,
    /// HTTP/2, agreed on in the handshake of TLS (ALPN), or known before without TLS.
    #[serde(rename = "h2")]
    Http2,
}

impl Protocol {
    /// For people.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// Why a request has failed.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Nothing listens, or the host refuses.
    Refused,
    /// No route, or the network is down.
    Unreachable,
    /// No connection within the limit.
    ConnectTimeout,
    /// This machine has no local port left for the address (EADDRNOTAVAIL).
    NoPort,
    /// TLS was not agreed on, or the certificate was refused.
    Tls,
    /// The server cut the connection (RST) during a request.
    Reset,
    /// The connection was closed before anything of the answer came.
    EarlyClose,
    /// The connection was closed in the middle of the answer.
    ShortBody,
    /// What came is not HTTP, or its framing is wrong.
    NotHttp,
    /// A status other than the one expected.
    WrongStatus,
    /// A body of another length, or with other content, than expected.
    WrongBody,
    /// No whole answer within the limit.
    TimedOut,
    /// This machine refused something: descriptors, memory.
    Local,
    /// The server does not speak HTTP/2, which was asked for.
    NoHttp2,
    /// HTTP/2: the server cut the stream of one request (RST_STREAM).
    StreamReset,
    /// HTTP/2: the server ended the connection (GOAWAY) and left this request out.
    GoneAway,
    /// HTTP/2: a window was overrun, or grew too large, or was never opened for the body of a request.
    FlowControl,
    /// HTTP/2: settings that must not be.
    Settings,
}

impl FailureKind {
    /// All kinds, in the order in which they are counted.
    pub const ALL: [Self; 18] = [
        Self::Refused,
        Self::Unreachable,
        Self::ConnectTimeout,
        Self::NoPort,
        Self::Tls,
        Self::Reset,
        Self::EarlyClose,
        Self::ShortBody,
        Self::NotHttp,
        Self::WrongStatus,
        Self::WrongBody,
        Self::TimedOut,
        Self::Local,
        Self::NoHttp2,
        Self::StreamReset,
        Self::GoneAway,
        Self::FlowControl,
        Self::Settings,
    ];

    /// For people.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Unreachable => "no route to the host",
            Self::ConnectTimeout => "no connection within the limit",
            Self::NoPort => "no local port left",
            Self::Tls => "TLS failed",
            Self::Reset => "connection reset",
            Self::EarlyClose => "closed without an answer",
            Self::ShortBody => "closed in the middle of the answer",
            Self::NotHttp => "not HTTP, or framed wrongly",
            Self::WrongStatus => "another status",
            Self::WrongBody => "another body",
            Self::TimedOut => "no answer within the limit",
            Self::Local => "refused by this machine",
            Self::NoHttp2 => "no HTTP/2",
            Self::StreamReset => "stream reset",
            Self::GoneAway => "left out when the server ended the connection",
            Self::FlowControl => "flow control",
            Self::Settings => "wrong settings",
        }
    }
}

/// Requests that failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failures {
    /// How.
    pub kind: FailureKind,
    /// How many.
    pub count: u64,
    /// What the first one said.
    pub first: String,
}

/// Answers with one status other than the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StatusCount {
    /// HTTP status, such as 503.
    pub status: u16,
    /// Answers to requests due in the window that had it.
    pub count: u64,
}

/// One second of a load, from the start of the counted time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Second {
    /// Good answers that ended in it.
    pub answers: u64,
    /// Requests that failed in it.
    pub failures: u64,
    /// Longest latency of an answer that ended in it.
    pub longest: Nanos,
}

/// One of the equal stretches that the counted time of a load is divided into.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stretch {
    /// Good answers that ended in it.
    pub answers: u64,
    /// Requests that failed in it.
    pub failures: u64,
    /// Latency of good answers to requests that were due in it, to 2 %.
    pub latency: Histogram,
}

/// What the generator saw of one load, and of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Measured {
    /// Time in which was counted; shorter than asked when it was interrupted.
    pub window: Nanos,
    /// Good answers that ended in the window. Failures never count here.
    pub answers: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Bytes that came in, heads and failed answers included, without TLS and TCP.
    pub received: u64,
    /// Latency of good answers to requests that were due in the window: from the intended time in an
    /// open loop, which counts what a stalled server made others wait; from the first byte out in a
    /// closed one, with the connection when one had to be made.
    pub latency: Histogram,
    /// The same from the first byte out. Equal to `latency` in a closed loop.
    pub service: Histogram,
    /// Requests due in the window that failed, by kind.
    pub failures: Vec<Failures>,
    /// Answers with a status other than the expected one, by status; their sum is the count of
    /// [`FailureKind::WrongStatus`]. Empty in runs stored before 0.3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<StatusCount>,
    /// Requests due in the window.
    pub due: u64,
    /// Of these, never sent: they were still waiting for a connection when the load ended.
    pub unsent: u64,
    /// Requests that had to wait because all connections were in use.
    pub waited: u64,
    /// How late the generator was with its own work: a request that was due and had a connection.
    /// In a closed loop, time from a wake-up until the last of its requests was sent, sampled.
    pub lateness: Histogram,
    /// Mean number of requests under way in the window, from counting them.
    pub under_way: f64,
    /// CPU time of the generator's threads in the window.
    pub cpu: Nanos,
    /// Time in which they were ready and no CPU was free (`/proc/self/task/N/schedstat`).
    pub cpu_waited: Option<Nanos>,
    /// Threads of the generator.
    pub threads: u32,
    /// Connections made in the window.
    pub connections: u64,
    /// Idle connections that the server closed before the next request; the request was sent again on a new one.
    pub reopened: u64,
    /// Time to make a connection, TLS included.
    pub connect: Histogram,
    /// TLS sessions that were resumed.
    pub resumed: u64,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// Length of a stretch; the last one may be shorter. Zero in runs stored before 0.3.
    #[serde(default)]
    pub stretch: Nanos,
    /// The counted time in about forty stretches, for the rate and the latency over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stretches: Vec<Stretch>,
    /// Nothing ever succeeded, and it was given up before the time was over.
    pub gave_up: bool,
    /// The user interrupted it.
    pub interrupted: bool,
}

impl Measured {
    /// Good answers per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self.window.0 {
            0 => 0.0,
            window => self.answers as f64 * 1e9 / window as f64,
        }
    }

    /// Requests that failed or were never sent.
    #[must_use]
    pub fn failed(&self) -> u64 {
        let failed = self.failures.iter().map(|failures| failures.count);
        failed.fold(self.unsent, u64::saturating_add)
    }

    /// How many failed in this way.
    #[must_use]
    pub fn failed_by(&self, kind: FailureKind) -> u64 {
        let of = self
            .failures
            .iter()
            .filter(|failures| failures.kind == kind);
        of.map(|failures| failures.count).sum()
    }

    /// The latency that `percent` of all requests did not exceed, where a request that failed or was
    /// never sent counts as slower than any answer: `None` when the percentile falls among those, or
    /// when there is nothing. So errors make no figure better.
    #[must_use]
    pub fn percentile(&self, histogram: &Histogram, percent: f64) -> Option<Nanos> {
        let good = histogram.count();
        let all = good.checked_add(self.failed())?;
        let rank = (percent / 100.0 * all as f64).ceil().max(1.0);
        if good == 0 || rank > good as f64 {
            return None;
        }
        histogram.at_rank(rank as u64).map(Nanos)
    }
}

/// CPU time that a server used, on the same clock as the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerUse {
    /// Which: `nginx (2 processes from 812)`, or a cgroup.
    pub what: String,
    /// Time between the two looks.
    pub window: Nanos,
    /// CPU time used in it.
    pub cpu: Nanos,
    /// Time its threads waited for a CPU, where the kernel tells.
    pub waited: Option<Nanos>,
    /// Share of the time in which the busiest thread was on a CPU or waited for one.
    pub busiest: Option<f64>,
    /// Threads that did anything.
    pub active: u32,
    /// Its machine, when that is another one than the generator's. The times are by the clock there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<ServerMachine>,
    /// CPU quota of its control groups, the one that stopped it most often; none where there is no quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaUse>,
    /// Its sockets during the load, where they can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketUse>,
}

/// What a CPU quota did to a control group (`cpu.stat`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuotaUse {
    /// Directory of the group.
    pub group: String,
    /// CPUs that the group may use, on average over a period; none where the limit cannot be read.
    pub cpus: Option<f64>,
    /// Periods that began in the window in which the group had work.
    pub periods: u64,
    /// Of these, periods in which the group used up its quota and was stopped.
    pub throttled: u64,
    /// Time for which it was stopped, of all CPUs together.
    pub time: Nanos,
}

/// Sockets of a server, as means over several looks during the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SocketUse {
    /// Number of looks.
    pub looks: u32,
    /// Connections of clients.
    pub clients: f64,
    /// Of these, connections with bytes of the server that the client has not acknowledged.
    pub sending: f64,
    /// What the server itself is a client of, most sockets that wait first.
    pub upstreams: Vec<Upstream>,
}

/// A server that another server waits for, such as a backend or a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Upstream {
    /// `127.0.0.1:9000`, or the path of a socket.
    pub address: String,
    /// Sockets on which something was asked and no answer had come, on average.
    pub waiting: f64,
    /// CPU time of the processes that listen there, or why it is not known.
    pub used: Result<ServerUse, String>,
}

/// The machine of a server that is not the generator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerMachine {
    /// CPUs.
    pub cpus: u32,
    /// CPU time of everything but idle, on all CPUs, in the server's window.
    pub busy: Nanos,
    /// Taken by the hypervisor for other guests.
    pub stolen: Nanos,
    /// Connections that found an accept queue full (`TcpExt: ListenOverflows`).
    pub listen_overflows: u64,
}

/// What the network did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LinkUse {
    /// Interface.
    pub interface: String,
    /// Bits per second towards this machine, on the wire as the interface counts.
    pub received: f64,
    /// Bits per second away from it.
    pub sent: f64,
    /// What the link carries, in bits per second: said by the user or by the driver. Loopback and
    /// virtual links have none.
    pub speed: Option<f64>,
}

/// The machine of the generator during the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MachineUse {
    /// CPUs.
    pub cpus: u32,
    /// Time between the two looks.
    pub window: Nanos,
    /// CPU time of everything but idle, on all CPUs.
    pub busy: Nanos,
    /// Taken by the hypervisor for other guests.
    pub stolen: Nanos,
    /// Connections that found an accept queue full (`TcpExt: ListenOverflows`), when the server is
    /// on this machine; [`ServerMachine`] has those of another one.
    pub listen_overflows: u64,
    /// Connections dropped for that or another reason (`ListenDrops`).
    pub listen_drops: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Segments sent.
    pub segments: u64,
}

/// One load as it was carried out, with what was seen around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// Which of the URLs, from 0.
    pub target: usize,
    /// From 0; a step of one shape is repeated in every round.
    pub round: u32,
    /// Connections, at most.
    pub connections: u32,
    /// What was spoken.
    #[serde(default)]
    pub protocol: Protocol,
    /// Requests at once on each connection, at most.
    #[serde(default = "default_one")]
    pub streams: u32,
    /// When requests are sent.
    pub pace: Pace,
    /// In an open loop: the share of the capacity that was found.
    pub share: Option<f64>,
    /// What the generator saw.
    pub measured: Measured,
    /// CPU of the server, or why it is not known.
    pub server: Result<ServerUse, String>,
    /// The network, or why it is not known.
    pub link: Result<LinkUse, String>,
    /// The machine of the generator; of several generators, that of the server, where this is it.
    pub machine: MachineUse,
    /// What each of several generators did of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

fn default_one() -> u32 {
    1
}

impl Step {
    /// Requests at once, at most: each of them is a user who waits for an answer.
    #[must_use]
    pub fn places(&self) -> u64 {
        u64::from(self.connections) * u64::from(self.streams)
    }

    /// CPUs of the server's machine, and how many of them were busy on average.
    #[must_use]
    pub fn server_cpus(&self) -> (u32, f64) {
        let there = self.server.as_ref().ok().and_then(|server| {
            let machine = server.machine.as_ref()?;
            Some((machine.cpus, cpu_share(machine.busy, server.window)))
        });
        there.unwrap_or((
            self.machine.cpus,
            cpu_share(self.machine.busy, self.machine.window),
        ))
    }

    /// CPU time of the generator's machine that neither the generator nor the server used, as CPUs.
    #[must_use]
    pub fn foreign_cpus(&self) -> Option<f64> {
        let server = self.server.as_ref().ok()?;
        let own = match self.parts.is_empty() {
            true => cpu_share(self.measured.cpu, self.measured.window),
            // The generators are elsewhere.
            false => 0.0,
        };
        let busy = cpu_share(self.machine.busy, self.machine.window);
        let server = match server.machine {
            Some(_) => 0.0,
            None => cpu_share(server.cpu, server.window),
        };
        Some((busy - own - server).max(0.0))
    }

    /// The same of the server's machine, when that is another one, with its CPUs.
    #[must_use]
    pub fn foreign_cpus_there(&self) -> Option<(f64, u32)> {
        let server = self.server.as_ref().ok()?;
        let machine = server.machine.as_ref()?;
        let foreign = cpu_share(machine.busy, server.window) - cpu_share(server.cpu, server.window);
        Some((foreign.max(0.0), machine.cpus))
    }
}

/// CPUs that a time is, on average.
fn cpu_share(cpu: Nanos, window: Nanos) -> f64 {
    match window.0 {
        0 => 0.0,
        window => cpu.0 as f64 / window as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_make_no_percentile_better() {
        let latency: Histogram = [(1_000, 98), (9_000, 2)].into_iter().collect();
        let mut measured = Measured {
            latency: latency.clone(),
            ..Measured::default()
        };
        assert_eq!(measured.percentile(&latency, 99.0), Some(Nanos(9_000)));
        assert_eq!(measured.percentile(&latency, 50.0), Some(Nanos(1_000)));
        measured.unsent = 2;
        assert_eq!(measured.percentile(&latency, 98.0), Some(Nanos(9_000)));
        assert_eq!(measured.percentile(&latency, 99.0), None);
        let nothing = Measured::default();
        assert_eq!(nothing.percentile(&Histogram::default(), 50.0), None);
    }
}
