//! An HTTP load, and the observations during the load.
//!
//! Raw counts are stored; `assay-judge` derives the limiting cause and the doubts.

mod combined_load;
mod over_time;
pub mod result;
mod sample;

pub use combined_load::Part;
pub use over_time::Point;

use crate::histogram::Histogram;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Schedule of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Pace {
    /// Closed loop: each connection sends the next request after the response. Measures the
    /// capacity of the server.
    Closed,
    /// Open loop with constant intervals that are fixed before the start: measures the response
    /// time at this rate.
    Constant {
        /// Requests per second.
        per_s: f64,
    },
    /// Open loop with random exponential intervals, also fixed before the start.
    Poisson {
        /// Requests per second on average.
        per_s: f64,
    },
    /// Replays the times of a list, such as an access log.
    Replay {
        /// Requests per second on average.
        per_s: f64,
    },
}

impl Pace {
    /// Returns the requested rate per second; `None` for a closed loop.
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

/// Protocol between load generator and web server.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time on a connection.
    #[default]
    #[serde(rename = "http/1.1")]
    Http1,
    /// HTTP/2, negotiated in the TLS handshake (ALPN), or without TLS by prior knowledge.
    #[serde(rename = "h2")]
    Http2,
}

impl Protocol {
    /// Returns the name for people.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// Cause of a failed request.
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
    /// Connection refused: no service listens, or the host rejects.
    Refused,
    /// No route, or the network is down.
    Unreachable,
    /// Timeout of connecting.
    ConnectTimeout,
    /// No free local port for the address (EADDRNOTAVAIL).
    NoPort,
    /// The TLS handshake failed, or the certificate was rejected.
    Tls,
    /// The server reset the connection (RST) during a request.
    Reset,
    /// The connection was closed before any byte of the response.
    EarlyClose,
    /// The connection was closed within the response.
    ShortBody,
    /// The response is not HTTP, or its framing is invalid.
    NotHttp,
    /// Unexpected status.
    WrongStatus,
    /// A body with unexpected length or content.
    WrongBody,
    /// Timeout of the complete response.
    TimedOut,
    /// A resource of this machine is exhausted: descriptors, memory.
    Local,
    /// HTTP/2 was requested, and the server does not support it.
    NoHttp2,
    /// HTTP/2: the server reset the stream of the request (RST_STREAM).
    StreamReset,
    /// HTTP/2: the server closed the connection (GOAWAY) without processing the request.
    GoneAway,
    /// HTTP/2: a flow-control window was exceeded, overflowed, or never opened for the body of a
    /// request.
    FlowControl,
    /// HTTP/2: invalid settings.
    Settings,
}

impl FailureKind {
    /// All kinds in counting order.
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

    /// Returns a description for people.
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

/// Failed requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failures {
    /// Kind.
    pub kind: FailureKind,
    /// Number of requests.
    pub count: u64,
    /// Message of the first one.
    pub first: String,
}

/// Number of responses with one unexpected status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StatusCount {
    /// HTTP status, such as 503.
    pub status: u16,
    /// Number of responses to requests due in the window.
    pub count: u64,
}

/// One second of a load, counted from the start of the window.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Second {
    /// Successful responses that ended in this second.
    pub answers: u64,
    /// Requests that failed in this second.
    pub failures: u64,
    /// Longest latency of a response that ended in this second.
    pub longest: Nanos,
}

/// One of the equal intervals of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stretch {
    /// Successful responses that ended in the interval.
    pub answers: u64,
    /// Requests that failed in the interval.
    pub failures: u64,
    /// Latency of successful responses to requests due in the interval, with 2 % precision.
    pub latency: Histogram,
}

/// Measurements of the load generator about the load and about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Measured {
    /// Length of the window; shorter than requested after an interruption.
    pub window: Nanos,
    /// Successful responses that ended in the window. Failures never count.
    pub answers: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Received bytes, including headers and failed responses, without TLS and TCP overhead.
    pub received: u64,
    /// Latency of successful responses to requests due in the window. In an open loop it is counted
    /// from the intended time, which includes the delay that a stalled server causes for later
    /// requests. In a closed loop it is counted from the first byte sent, including the connection
    /// if one had to be made.
    pub latency: Histogram,
    /// Latency from the first byte sent. Equal to `latency` in a closed loop.
    pub service: Histogram,
    /// Failed requests due in the window, by kind.
    pub failures: Vec<Failures>,
    /// Responses with an unexpected status, by status; their sum is the count of
    /// [`FailureKind::WrongStatus`]. Empty in runs stored before 0.3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<StatusCount>,
    /// Requests due in the window.
    pub due: u64,
    /// Requests that were never sent, because they still waited for a connection when the load
    /// ended.
    pub unsent: u64,
    /// Requests that had to wait because all connections were in use.
    pub waited: u64,
    /// Delay of the generator's own work: for a request that was due and had a connection. In a
    /// closed loop the sampled time from a wake-up until its last request was sent.
    pub lateness: Histogram,
    /// Mean number of requests in flight in the window, by counting.
    pub under_way: f64,
    /// CPU time of the generator's threads in the window.
    pub cpu: Nanos,
    /// Time in which these threads were runnable and no CPU was free
    /// (`/proc/self/task/N/schedstat`).
    pub cpu_waited: Option<Nanos>,
    /// Number of threads of the generator.
    pub threads: u32,
    /// Connections made in the window.
    pub connections: u64,
    /// Idle connections that the server closed before the next request; the request was sent again
    /// on a new one.
    pub reopened: u64,
    /// Time to connect, including TLS.
    pub connect: Histogram,
    /// Resumed TLS sessions.
    pub resumed: u64,
    /// Counts for each second.
    pub seconds: Vec<Second>,
    /// Length of an interval; the last one may be shorter. Zero in runs stored before 0.3.
    #[serde(default)]
    pub stretch: Nanos,
    /// The window in about forty intervals, for rate and latency over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stretches: Vec<Stretch>,
    /// Whether the load was ended early because no request ever succeeded.
    pub gave_up: bool,
    /// Whether the user interrupted it.
    pub interrupted: bool,
}

impl Measured {
    /// Returns successful responses per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self.window.0 {
            0 => 0.0,
            window => self.answers as f64 * 1e9 / window as f64,
        }
    }

    /// Returns the number of requests that failed or were never sent.
    #[must_use]
    pub fn failed(&self) -> u64 {
        let failed = self.failures.iter().map(|failures| failures.count);
        failed.fold(self.unsent, u64::saturating_add)
    }

    /// Returns the number of failures of this kind.
    #[must_use]
    pub fn failed_by(&self, kind: FailureKind) -> u64 {
        let of = self
            .failures
            .iter()
            .filter(|failures| failures.kind == kind);
        of.map(|failures| failures.count).sum()
    }

    /// Returns the latency that `percent` of all requests did not exceed. A failed or unsent
    /// request counts as slower than any response, so errors never improve the figure. `None` if
    /// the percentile falls among them, or without requests.
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

/// CPU use of a server, on the same clock as the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerUse {
    /// Name of the server: `nginx (2 processes from 812)`, or a cgroup.
    pub what: String,
    /// Time between the two readings.
    pub window: Nanos,
    /// CPU time in this interval.
    pub cpu: Nanos,
    /// Time in which its threads waited for a CPU, if the kernel reports it.
    pub waited: Option<Nanos>,
    /// Fraction of the time in which the busiest thread used or waited for a CPU.
    pub busiest: Option<f64>,
    /// Number of threads that were active.
    pub active: u32,
    /// The server's machine, if it is not the generator's. Times are by its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<ServerMachine>,
    /// CPU quota of its control groups that throttled it most often; `None` without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaUse>,
    /// Its sockets during the load, if they can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketUse>,
}

/// Effect of a CPU quota on a control group (`cpu.stat`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuotaUse {
    /// Directory of the group.
    pub group: String,
    /// CPUs that the group may use on average over a period; `None` if the limit cannot be read.
    pub cpus: Option<f64>,
    /// Periods in the window in which the group had work.
    pub periods: u64,
    /// Periods in which the group used up its quota and was throttled.
    pub throttled: u64,
    /// Throttled time, summed over all CPUs.
    pub time: Nanos,
}

/// Sockets of a server: means over several readings during the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SocketUse {
    /// Number of readings.
    pub looks: u32,
    /// Connections of clients.
    pub clients: f64,
    /// Connections with sent bytes that the client has not acknowledged.
    pub sending: f64,
    /// Servers of which this server is a client, those with most waiting sockets first.
    pub upstreams: Vec<Upstream>,
}

/// A server that another server waits for, such as a backend or a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Upstream {
    /// `127.0.0.1:9000`, or the path of a socket.
    pub address: String,
    /// Mean number of sockets with a request and no response yet.
    pub waiting: f64,
    /// CPU time of the processes that listen there, or why it is unknown.
    pub used: Result<ServerUse, String>,
}

/// Machine of a server, if it is not the generator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerMachine {
    /// Number of CPUs.
    pub cpus: u32,
    /// CPU time other than idle on all CPUs, in the server's window.
    pub busy: Nanos,
    /// CPU time that the hypervisor took for other guests.
    pub stolen: Nanos,
    /// Connections that met a full accept queue (`TcpExt: ListenOverflows`).
    pub listen_overflows: u64,
}

/// Use of the network link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LinkUse {
    /// Interface.
    pub interface: String,
    /// Received bits per second on the wire, as the interface counts them.
    pub received: f64,
    /// Sent bits per second.
    pub sent: f64,
    /// Link speed in bits per second, from the user or the driver. `None` for loopback and virtual
    /// links.
    pub speed: Option<f64>,
}

/// The load generator's machine during the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MachineUse {
    /// Number of CPUs.
    pub cpus: u32,
    /// Time between the two readings.
    pub window: Nanos,
    /// CPU time other than idle on all CPUs.
    pub busy: Nanos,
    /// CPU time that the hypervisor took for other guests.
    pub stolen: Nanos,
    /// Connections that met a full accept queue (`TcpExt: ListenOverflows`), if the server is on
    /// this machine; for another machine see [`ServerMachine`].
    pub listen_overflows: u64,
    /// Connections that were dropped for this or another reason (`ListenDrops`).
    pub listen_drops: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Segments sent.
    pub segments: u64,
}

/// One executed load, with the observations around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// Index of the URL.
    pub target: usize,
    /// Round from 0; every round repeats the step.
    pub round: u32,
    /// Most connections.
    pub connections: u32,
    /// Protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// Most concurrent requests on each connection.
    #[serde(default = "default_one")]
    pub streams: u32,
    /// Schedule of requests.
    pub pace: Pace,
    /// In an open loop: fraction of the measured capacity.
    pub share: Option<f64>,
    /// Measurements of the generator.
    pub measured: Measured,
    /// CPU use of the server, or why it is unknown.
    pub server: Result<ServerUse, String>,
    /// The network link, or why it is unknown.
    pub link: Result<LinkUse, String>,
    /// The generator's machine; with several generators the server's machine, if it is this one.
    pub machine: MachineUse,
    /// Contributions of several generators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

fn default_one() -> u32 {
    1
}

impl Step {
    /// Returns the most concurrent requests: each represents a user who waits for a response.
    #[must_use]
    pub fn places(&self) -> u64 {
        u64::from(self.connections) * u64::from(self.streams)
    }

    /// Returns the CPUs of the server's machine, and the mean number of busy ones.
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

    /// Returns the CPU time on the generator's machine of other programs than generator and server,
    /// in CPUs.
    #[must_use]
    pub fn foreign_cpus(&self) -> Option<f64> {
        let server = self.server.as_ref().ok()?;
        let own = match self.parts.is_empty() {
            true => cpu_share(self.measured.cpu, self.measured.window),
            // The generators run on other machines.
            false => 0.0,
        };
        let busy = cpu_share(self.machine.busy, self.machine.window);
        let server = match server.machine {
            Some(_) => 0.0,
            None => cpu_share(server.cpu, server.window),
        };
        Some((busy - own - server).max(0.0))
    }

    /// Returns the same for the server's machine, if it is another one, with its CPUs.
    #[must_use]
    pub fn foreign_cpus_there(&self) -> Option<(f64, u32)> {
        let server = self.server.as_ref().ok()?;
        let machine = server.machine.as_ref()?;
        let foreign = cpu_share(machine.busy, server.window) - cpu_share(server.cpu, server.window);
        Some((foreign.max(0.0), machine.cpus))
    }
}

/// Converts a CPU time to a mean number of CPUs.
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
