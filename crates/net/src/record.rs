//! Records of a client: raw observations. Verdicts are derived from them later.

use crate::air::Air;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Length of a slot for byte counts, in microseconds.
pub const SLOT_US: u64 = 100_000;
/// Maximum number of events per role. A plan with more events is refused.
pub const MOST_EVENTS: usize = 400_000;

/// An event that was due, and its result. Times are in microseconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "(u64, u64, Option<u64>)", into = "(u64, u64, Option<u64>)")]
#[schemars(rename = "Event")]
pub struct RecordEvent {
    /// Time at which the event was due.
    pub due: u64,
    /// Delay that the client itself caused, although the event was due and nothing else prevented it.
    pub late: u64,
    /// Time from the due time until the complete answer. `None` if the event failed, was lost, or never
    /// started because all connections were in use until the end.
    pub took: Option<u64>,
}

impl From<(u64, u64, Option<u64>)> for RecordEvent {
    fn from((due, late, took): (u64, u64, Option<u64>)) -> Self {
        Self { due, late, took }
    }
}

impl From<RecordEvent> for (u64, u64, Option<u64>) {
    fn from(event: RecordEvent) -> Self {
        (event.due, event.late, event.took)
    }
}

/// Durations of one probe on a new connection, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Probe {
    /// TCP connect.
    pub tcp: u64,
    /// TLS handshake after the connect.
    pub tls: u64,
    /// HTTP request after the handshake.
    pub http: u64,
}

/// Number of TCP segments with data, as counted by the sender's kernel.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Segments {
    /// Sent segments, including retransmissions.
    pub sent: u64,
    /// Retransmitted segments.
    pub again: u64,
}

/// TCP congestion control by its name in the kernel; `None` if unknown, as in a browser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Congestion {
    /// Algorithm from the server to this device.
    pub server: Option<String>,
    /// Algorithm from the device to the server.
    pub client: Option<String>,
}

impl Congestion {
    /// Returns whether both algorithms are unknown.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Observations of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RoleRecord {
    /// Name of the role.
    pub role: String,
    /// Events in the order of their due times.
    pub events: Vec<RecordEvent>,
    /// Bytes of bodies in each time slot of [`SLOT_US`]. For uploads, as counted by the server.
    pub slots: Vec<u64>,
    /// Probes of a responsiveness role.
    pub probes: Vec<Probe>,
    /// Number of failures for each reason.
    pub failures: BTreeMap<String, u64>,
    /// TCP segments, counted by the sender; `None` in records of older clients and of web pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Segments>,
}

/// How exactly a client started, and the latency before the run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct Start {
    /// Delay of the start on the client's own clock, in microseconds.
    pub late_us: i64,
    /// Uncertainty of the offset to the server's clock, in microseconds.
    pub error_us: i64,
    /// Smallest round trip before the run, in microseconds: the latency of the idle network.
    pub idle_us: u64,
    /// Median round trip before the run, in microseconds.
    pub idle_median_us: u64,
    /// Number of exchanges.
    pub exchanges: u32,
    /// Change of the clock offset during the run, in microseconds, if it could be measured.
    pub drift_us: Option<i64>,
}

/// Observations of one person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PersonRecord {
    /// Name of the person.
    pub person: String,
    /// Name of the client.
    pub client: String,
    /// Version and kind of the client.
    pub agent: String,
    /// Accuracy of the start.
    pub start: Start,
    /// Measured time in microseconds.
    pub ran_us: u64,
    /// Intervals that do not count, in microseconds from the start, because the web page was hidden or the device
    /// slept.
    pub void: Vec<(u64, u64)>,
    /// Warnings for the reader.
    pub remarks: Vec<String>,
    /// Maximum rate at which the client itself can receive, in bits per second; `None` if unknown. Only a web page
    /// reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling_bit_per_s: Option<f64>,
    /// Wi-Fi history; `None` with a cable, and for clients that do not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub air: Option<Air>,
    /// Congestion control of both sides.
    #[serde(skip_serializing_if = "Congestion::is_unknown")]
    pub congestion: Congestion,
    /// Round trips of the client's own small requests during the run: start and duration in microseconds. Such a
    /// request takes only network delay and queueing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trips: Vec<(u64, u64)>,
    /// Observations of each role.
    pub roles: Vec<RoleRecord>,
}

impl RoleRecord {
    /// Counts bytes by their arrival time `at`, in microseconds from the start.
    pub fn count(&mut self, at: u64, bytes: u64) {
        let slot = (at / SLOT_US) as usize;
        if slot >= MOST_EVENTS {
            return;
        }
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] = self.slots[slot].saturating_add(bytes);
    }

    /// Adds TCP segments.
    pub fn add_segments(&mut self, more: Segments) {
        let all = self.segments.get_or_insert_default();
        all.sent = all.sent.saturating_add(more.sent);
        all.again = all.again.saturating_add(more.again);
    }

    /// Counts a failure.
    pub fn fail(&mut self, why: &str) {
        // Limits the number of reasons, so that a hostile network cannot fill memory.
        let known = self.failures.len() < 20 || self.failures.contains_key(why);
        let why = if known { why } else { "other reasons" };
        *self.failures.entry(why.to_owned()).or_default() += 1;
    }
}
