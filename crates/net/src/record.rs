//! Records of a client. They contain only observations, from which verdicts are computed later.

use crate::air::Air;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Length of a time slot in which bytes are counted, in microseconds.
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
    /// Duration of the TCP connect.
    pub tcp: u64,
    /// Duration of the TLS handshake, which follows the connect.
    pub tls: u64,
    /// Duration of the HTTP request, which follows the handshake.
    pub http: u64,
}

/// Number of TCP segments with data, as counted by the sender's kernel.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Segments {
    /// Number of segments sent, including retransmissions.
    pub sent: u64,
    /// Number of retransmitted segments.
    pub again: u64,
}

/// TCP congestion control algorithms of both directions, by their kernel names. `None` means unknown, as in a browser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Congestion {
    /// Algorithm with which the server sends to this device.
    pub server: Option<String>,
    /// Algorithm with which the device sends to the server.
    pub client: Option<String>,
}

impl Congestion {
    /// Returns whether both algorithms are unknown.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// What a client observed for one role during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RoleRecord {
    /// Name of the role.
    pub role: String,
    /// Events in the order of their due times.
    pub events: Vec<RecordEvent>,
    /// Body bytes in each time slot of [`SLOT_US`] microseconds. For uploads, the server counts the bytes.
    pub slots: Vec<u64>,
    /// Measurements on new connections; only for a responsiveness role.
    pub probes: Vec<Probe>,
    /// Number of failures for each error text.
    pub failures: BTreeMap<String, u64>,
    /// TCP segments, counted by the sender; `None` in records of older clients and of web pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Segments>,
}

/// Accuracy of a client's start, and the latency before the run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct Start {
    /// How much later than ordered the client started on its own clock, in microseconds.
    pub late_us: i64,
    /// Uncertainty of the offset to the server's clock, in microseconds.
    pub error_us: i64,
    /// Smallest round trip before the run, in microseconds: the latency of the idle network.
    pub idle_us: u64,
    /// Median round trip before the run, in microseconds.
    pub idle_median_us: u64,
    /// Number of exchanges with the server from which the offset was estimated.
    pub exchanges: u32,
    /// Change of the clock offset during the run, in microseconds, if it could be measured.
    pub drift_us: Option<i64>,
}

/// Observations of one person in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PersonRecord {
    /// Name of the person.
    pub person: String,
    /// Name of the client.
    pub client: String,
    /// Program of the client and its version.
    pub agent: String,
    /// Accuracy of the start, and the latency before the run.
    pub start: Start,
    /// Duration of the measurement, in microseconds.
    pub ran_us: u64,
    /// Intervals that do not count, in microseconds from the start, because the web page was hidden or the device
    /// slept.
    pub void: Vec<(u64, u64)>,
    /// Warnings about the measurement, for the reader of the report.
    pub remarks: Vec<String>,
    /// Maximum rate at which the client itself can receive, in bits per second; `None` if unknown. Only web pages
    /// report this rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling_bit_per_s: Option<f64>,
    /// Wi-Fi history; `None` with a cable, and for clients that do not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub air: Option<Air>,
    /// Congestion control algorithms of both directions.
    #[serde(skip_serializing_if = "Congestion::is_unknown")]
    pub congestion: Congestion,
    /// Start and duration of the client's own small requests during the run. Such a request takes one round trip, which
    /// includes queueing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trips: Vec<(u64, u64)>,
    /// Observations of each role.
    pub roles: Vec<RoleRecord>,
}

impl RoleRecord {
    /// Counts `bytes` in the time slot of their arrival `at`, in microseconds from the start.
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

    /// Adds the counts of TCP segments from another connection of the role.
    pub fn add_segments(&mut self, more: Segments) {
        let all = self.segments.get_or_insert_default();
        all.sent = all.sent.saturating_add(more.sent);
        all.again = all.again.saturating_add(more.again);
    }

    /// Counts a failure with this error text.
    pub fn fail(&mut self, why: &str) {
        // Limits the number of reasons, so that a hostile network cannot fill memory.
        let known = self.failures.len() < 20 || self.failures.contains_key(why);
        let why = if known { why } else { "other reasons" };
        *self.failures.entry(why.to_owned()).or_default() += 1;
    }
}
