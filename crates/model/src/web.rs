//! An HTTP load, and the observations during the load. The raw counts are stored; `assay-judge` derives the limiting
//! cause and the doubts from them.

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
    /// Closed loop: each connection sends the next request after the response to the previous one. This measures the
    /// capacity of the server.
    Closed,
    /// Open loop with constant intervals. The schedule is fixed before the start. This measures the response time at
    /// the rate.
    Constant {
        /// Requests per second, constant over time.
        per_s: f64,
    },
    /// Open loop with random, exponentially distributed intervals. The schedule is also fixed before the start.
    Poisson {
        /// Requests per second on average.
        per_s: f64,
    },
    /// Open loop at the times of a list, such as an access log.
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
    /// HTTP/1.1, with one request at a time on a connection.
    #[default]
    #[serde(rename = "http/1.1")]
    Http1,
    /// HTTP/2, negotiated in the TLS handshake (ALPN), or without TLS by prior knowledge.
    #[serde(rename = "h2")]
    Http2,
}

impl Protocol {
    /// Returns the name of the protocol for people.
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
    /// Connection refused: no service listens, or the host rejects connections.
    Refused,
    /// There is no route to the host, or the network is down.
    Unreachable,
    /// The connection was not established before the timeout.
    ConnectTimeout,
    /// There is no free local port for the address (EADDRNOTAVAIL).
    NoPort,
    /// The TLS handshake failed, or the certificate was rejected.
    Tls,
    /// The server reset the connection (RST) during a request.
    Reset,
    /// The connection was closed before the response began.
    EarlyClose,
    /// The connection was closed before the response was complete.
    ShortBody,
    /// The response is not HTTP, or its framing is invalid.
    NotHttp,
    /// The response has an unexpected status.
    WrongStatus,
    /// The body of the response has an unexpected length or content.
    WrongBody,
    /// The complete response did not arrive before the timeout.
    TimedOut,
    /// A resource of this machine is exhausted, such as descriptors or memory.
    Local,
    /// HTTP/2 was requested, but the server does not support it.
    NoHttp2,
    /// HTTP/2: the server reset the stream of the request (RST_STREAM).
    StreamReset,
    /// HTTP/2: the server closed the connection (GOAWAY) without processing the request.
    GoneAway,
    /// HTTP/2: a flow-control window was exceeded, overflowed, or never opened for the body of a
    /// request.
    FlowControl,
    /// HTTP/2: the settings of the server are invalid.
    Settings,
}

impl FailureKind {
    /// All kinds of failure, in the order in which they are counted.
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

    /// Returns a description for users.
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
    /// Cause of the failures.
    pub kind: FailureKind,
    /// Number of failed requests with this cause.
    pub count: u64,
    /// Message of the first failure of this kind.
    pub first: String,
}

/// Number of responses that had one particular unexpected status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StatusCount {
    /// HTTP status, such as 503.
    pub status: u16,
    /// Number of responses with this status to requests due in the window.
    pub count: u64,
}

/// Counts for one second of a load. Seconds are counted from the start of the window.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Second {
    /// Number of successful responses that ended in this second.
    pub answers: u64,
    /// Number of requests that failed in this second.
    pub failures: u64,
    /// Longest latency of a response that ended in this second.
    pub longest: Nanos,
}

/// One of the intervals of equal length into which the measured window is divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stretch {
    /// Number of successful responses that ended in the interval.
    pub answers: u64,
    /// Number of requests that failed in the interval.
    pub failures: u64,
    /// Latency of successful responses to requests that were due in the interval, with a precision of 2 %.
    pub latency: Histogram,
}

/// What the load generator measured about the load and about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Measured {
    /// Duration of the measured window. It is shorter than requested if the load was interrupted.
    pub window: Nanos,
    /// Number of successful responses that ended in the window.
    pub answers: u64,
    /// Number of bytes in the bodies of these responses.
    pub bytes: u64,
    /// Number of received bytes, including headers and failed responses, but without the overhead of TLS and TCP.
    pub received: u64,
    /// Latency of successful responses to requests that were due in the window. In an open loop, the latency starts at
    /// the intended send time, so it includes the delay that a stalled server causes for later requests. In a closed
    /// loop, it starts at the first byte sent, or before connecting if a new connection is needed.
    pub latency: Histogram,
    /// Latency from the first byte sent. In a closed loop, it is equal to `latency`.
    pub service: Histogram,
    /// Failed requests that were due in the window, by kind.
    pub failures: Vec<Failures>,
    /// Responses with an unexpected status, by status. Their sum is the count of [`FailureKind::WrongStatus`]. Empty in
    /// runs stored before 0.3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<StatusCount>,
    /// Number of requests that were due in the window.
    pub due: u64,
    /// Number of requests that were never sent, because they were still waiting for a connection when the load ended.
    pub unsent: u64,
    /// Number of requests that had to wait because all connections were in use.
    pub waited: u64,
    /// Delays that the load generator itself caused. In an open loop, these are delays of requests that were due and
    /// had a connection. In a closed loop, they are the times from a wake-up of the generator until it sent the last
    /// request of this wake-up, for a sample of wake-ups.
    pub lateness: Histogram,
    /// Mean number of requests in flight in the window, measured by counting.
    pub under_way: f64,
    /// CPU time of the generator's threads in the window.
    pub cpu: Nanos,
    /// Time for which the generator's threads were runnable but no CPU was free (`/proc/self/task/N/schedstat`).
    pub cpu_waited: Option<Nanos>,
    /// Number of threads of the generator.
    pub threads: u32,
    /// Number of connections that were opened in the window.
    pub connections: u64,
    /// Number of idle connections that the server closed before the next request. These requests were sent again on a
    /// new connection.
    pub reopened: u64,
    /// Time to open a connection, including TLS.
    pub connect: Histogram,
    /// Number of resumed TLS sessions.
    pub resumed: u64,
    /// Counts for each second of the load.
    pub seconds: Vec<Second>,
    /// Duration of an interval in `stretches`. The last interval may be shorter. Zero in runs stored by versions before
    /// 0.3.
    #[serde(default)]
    pub stretch: Nanos,
    /// Rate and latency over time: the window, divided into about forty intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stretches: Vec<Stretch>,
    /// Whether the load was ended early, because no request succeeded.
    pub gave_up: bool,
    /// Whether the user interrupted the load.
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

    /// Returns the latency that `percent` of all requests did not exceed. A failed or unsent request counts as slower
    /// than any response, so errors never improve the figure. Returns `None` if the percentile falls among the failed
    /// or unsent requests, or if there are no requests.
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

/// CPU use of a server during the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerUse {
    /// Name of the server, such as `nginx (2 processes from 812)`, or a cgroup.
    pub what: String,
    /// Time between the two readings of the CPU time.
    pub window: Nanos,
    /// CPU time of the server between the two readings.
    pub cpu: Nanos,
    /// Time for which the server's threads waited for a CPU, if the kernel reports it.
    pub waited: Option<Nanos>,
    /// Fraction of the time, from 0 to 1, in which the busiest thread used a CPU or waited for a CPU.
    pub busiest: Option<f64>,
    /// Number of threads of the server that used CPU time.
    pub active: u32,
    /// CPU use of the server's machine, if the load generator runs on another machine. Times are by the clock of the
    /// server's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<ServerMachine>,
    /// CPU quota of the server's control groups. If several groups have a quota, it is the one that throttled most
    /// often. `None` without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaUse>,
    /// Sockets of the server during the load; absent if they cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketUse>,
}

/// Effect of a CPU quota on a control group (`cpu.stat`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuotaUse {
    /// Directory of the control group.
    pub group: String,
    /// Number of CPUs that the group may use on average over a period; `None` if the limit cannot be read.
    pub cpus: Option<f64>,
    /// Number of quota periods in the window in which the group had work.
    pub periods: u64,
    /// Number of periods in which the group used up its quota and was throttled.
    pub throttled: u64,
    /// Throttled time, summed over all CPUs of the group.
    pub time: Nanos,
}

/// Sockets of a server. The numbers are means over several readings during the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SocketUse {
    /// Number of readings during the load.
    pub looks: u32,
    /// Mean number of client connections.
    pub clients: f64,
    /// Mean number of connections with sent bytes that the client has not yet acknowledged.
    pub sending: f64,
    /// Other servers to which this server sends requests. The server with the most waiting sockets comes first.
    pub upstreams: Vec<Upstream>,
}

/// A server from which another server requests data, such as a backend or a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Upstream {
    /// Address such as `127.0.0.1:9000`, or the path of a socket.
    pub address: String,
    /// Mean number of sockets that wait for a response after a request was sent.
    pub waiting: f64,
    /// CPU use of the processes that listen at the address, or the reason why it is unknown.
    pub used: Result<ServerUse, String>,
}

/// CPU use of the server's machine, if the load generator runs on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerMachine {
    /// Number of CPUs of the server's machine.
    pub cpus: u32,
    /// CPU time that was not idle in the server's window, summed over all CPUs.
    pub busy: Nanos,
    /// CPU time that the hypervisor took for other guests.
    pub stolen: Nanos,
    /// Number of connections that found a full accept queue (`TcpExt: ListenOverflows`).
    pub listen_overflows: u64,
}

/// Use of a network link during the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LinkUse {
    /// Name of the network interface.
    pub interface: String,
    /// Received bits per second on the wire, from the counters of the interface.
    pub received: f64,
    /// Sent bits per second on the wire, from the counters of the interface.
    pub sent: f64,
    /// Link speed in bits per second, from the user or the driver. `None` for loopback and virtual interfaces.
    pub speed: Option<f64>,
}

/// Counters of the load generator's machine during the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MachineUse {
    /// Number of CPUs of the generator's machine.
    pub cpus: u32,
    /// Time between the two readings of the counters.
    pub window: Nanos,
    /// CPU time that was not idle in the window, summed over all CPUs.
    pub busy: Nanos,
    /// CPU time that the hypervisor took for other guests.
    pub stolen: Nanos,
    /// Number of connections that found a full accept queue (`TcpExt: ListenOverflows`). Meaningful only if the server
    /// runs on this machine. For a server on another machine, see [`ServerMachine`].
    pub listen_overflows: u64,
    /// Number of connections that were dropped for this or another reason (`ListenDrops`).
    pub listen_drops: u64,
    /// Number of retransmitted TCP segments.
    pub retransmitted: u64,
    /// Number of TCP segments sent.
    pub segments: u64,
}

/// One execution of a load, with the observations during it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// Index of the target's URL among the URLs of the load.
    pub target: usize,
    /// Number of the round, counted from 0. Every round repeats the step.
    pub round: u32,
    /// Maximum number of connections to the server.
    pub connections: u32,
    /// Protocol between load generator and server.
    #[serde(default)]
    pub protocol: Protocol,
    /// Maximum number of concurrent requests on each connection.
    #[serde(default = "default_one")]
    pub streams: u32,
    /// When the requests were sent.
    pub pace: Pace,
    /// Rate as a fraction of the measured capacity; present only in an open loop.
    pub share: Option<f64>,
    /// Measurements of the load generator.
    pub measured: Measured,
    /// CPU use of the server, or the reason why it is unknown.
    pub server: Result<ServerUse, String>,
    /// Use of the network link, or the reason why it is unknown.
    pub link: Result<LinkUse, String>,
    /// Use of the generator's machine. With several generators, this is the use of the server's machine, if the server
    /// runs on the coordinating machine.
    pub machine: MachineUse,
    /// Contributions of the load generators; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

fn default_one() -> u32 {
    1
}

impl Step {
    /// Returns the maximum number of concurrent requests. Each corresponds to a user who waits for a response.
    #[must_use]
    pub fn places(&self) -> u64 {
        u64::from(self.connections) * u64::from(self.streams)
    }

    /// Returns the number of CPUs of the server's machine, and the mean number of CPUs that were busy.
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

    /// Returns the mean number of CPUs on the generator's machine that programs other than generator and server used.
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

    /// Returns the mean number of CPUs on the server's machine that other programs used, and the number of its CPUs.
    /// `None` if the server runs on the generator's machine.
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
