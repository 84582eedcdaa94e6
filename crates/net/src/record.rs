//! What a client saw, as it saw it. What it means is derived from it later.

use crate::air::Air;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Microseconds of a slot in which bytes are counted.
pub const SLOT_US: u64 = 100_000;
/// Most events of one role that are kept; a longer run than that is not carried out.
pub const MOST_EVENTS: usize = 400_000;

/// Something that was due, and what became of it. Microseconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "(u64, u64, Option<u64>)", into = "(u64, u64, Option<u64>)")]
#[schemars(rename = "Event")]
pub struct RecordEvent {
    /// When it was due.
    pub due: u64,
    /// How late the client was with its own part: it had been due, and nothing but the client was in the way.
    pub late: u64,
    /// From when it was due until the whole answer was there; none when it failed, was lost, or was never begun
    /// because all connections were in use until the end.
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

/// One probe on a new connection, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Probe {
    /// Until TCP was connected.
    pub tcp: u64,
    /// From then until TLS was agreed on.
    pub tls: u64,
    /// From then until the answer was there.
    pub http: u64,
}

/// Segments of TCP with data, as the sender's kernel counted them.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Segments {
    /// Sent, those that were sent again included.
    pub sent: u64,
    /// Of these, sent again, because they were lost or seemed to be.
    pub again: u64,
}

/// Congestion control of TCP, by its name in the kernel; none where it is not known, as in a browser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Congestion {
    /// With which the server sends to this device.
    pub server: Option<String>,
    /// With which the device sends to the server.
    pub client: Option<String>,
}

impl Congestion {
    /// Whether neither is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// What was seen of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RoleRecord {
    /// Name of the role.
    pub role: String,
    /// In the order in which they were due.
    pub events: Vec<RecordEvent>,
    /// Bytes of bodies in every slot of [`SLOT_US`]; of an upload as the server counted them.
    pub slots: Vec<u64>,
    /// Of responsiveness.
    pub probes: Vec<Probe>,
    /// Why requests failed, and how many of each.
    pub failures: BTreeMap<String, u64>,
    /// Of TCP, from whoever sent the bytes; none in records of older clients and of pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Segments>,
}

/// How well a client's start is known.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct Start {
    /// By how much it began after the planned time on its own clock, in microseconds.
    pub late_us: i64,
    /// The offset to the server's clock was known to that, in microseconds.
    pub error_us: i64,
    /// Smallest round trip of an exchange before the run: what an idle network takes, in microseconds.
    pub idle_us: u64,
    /// Median round trip of these exchanges.
    pub idle_median_us: u64,
    /// Exchanges that were made.
    pub exchanges: u32,
    /// How far the offset had moved after the run, in microseconds, where it could be asked.
    pub drift_us: Option<i64>,
}

/// What was seen by one person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PersonRecord {
    /// Who.
    pub person: String,
    /// Name of the client.
    pub client: String,
    /// What it is: version and kind.
    pub agent: String,
    /// Its start.
    pub start: Start,
    /// So long was measured, in microseconds.
    pub ran_us: u64,
    /// Stretches that do not count, in microseconds from the start: the page was hidden, the device slept.
    pub void: Vec<(u64, u64)>,
    /// What a reader must know.
    pub remarks: Vec<String>,
    /// Bits per second that the client itself could take in at most, where it is known: of a page in a browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling_bit_per_s: Option<f64>,
    /// What its radio saw; none where it has a cable, and of clients that do not look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub air: Option<Air>,
    /// Congestion control of both ends.
    #[serde(skip_serializing_if = "Congestion::is_unknown")]
    pub congestion: Congestion,
    /// Round trips of the client's own small requests during the run: when one began and how long it took, in
    /// microseconds. Nothing but the network and its queues is in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trips: Vec<(u64, u64)>,
    /// Role by role.
    pub roles: Vec<RoleRecord>,
}

impl RoleRecord {
    /// Counts bytes that came at a time, in microseconds from the start.
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

    /// Adds segments of TCP.
    pub fn add_segments(&mut self, more: Segments) {
        let all = self.segments.get_or_insert_default();
        all.sent = all.sent.saturating_add(more.sent);
        all.again = all.again.saturating_add(more.again);
    }

    /// Notes a failure.
    pub fn fail(&mut self, why: &str) {
        // A hostile network must not fill memory with reasons.
        let known = self.failures.len() < 20 || self.failures.contains_key(why);
        let why = if known { why } else { "other reasons" };
        *self.failures.entry(why.to_owned()).or_default() += 1;
    }
}
