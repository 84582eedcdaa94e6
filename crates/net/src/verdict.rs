//! Computes verdicts from a record: the fraction of late events, when and for how long the result was bad, and a grade.

use crate::air::{AirVerdict, judge as judge_air};
use crate::cause::{Cause, PathState, cause};
use crate::player::{Film, Played, play};
use crate::queue::{self, LinkLoad, Queue};
use crate::record::{PersonRecord, Probe, RecordEvent, RoleRecord, SLOT_US};
use crate::role::{Role, Workload};
use assay_model::Histogram;
use serde::{Deserialize, Serialize};

/// Grade of a person's or a role's result.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The quality is good; no user would complain.
    Good,
    /// Problems are noticeable now and then.
    Tolerable,
    /// A user would not accept the quality.
    Bad,
    /// There are too few measurements, or the client itself was too busy.
    Unknown,
}

/// Results of a role in one second of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Second {
    /// Number of the second, from 0.
    pub at: u32,
    /// Number of valid events that were due in this second.
    pub due: u32,
    /// Number of events due in this second that were late, failed or lost.
    pub over: u32,
    /// Longest duration of an event due in this second that finished, in microseconds.
    pub longest_us: u64,
    /// Number of bytes that arrived in this second.
    pub bytes: u64,
    /// Whether a part of this second is void, because the client was late or asleep.
    pub void: bool,
}

/// Latencies in microseconds. A failed event counts as slower than any other. A percentile is `None` if it
/// falls on a failed event or has too few events: p99 needs 100, p99.9 needs 1,000.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Percentiles {
    /// Median latency of all events.
    pub p50: Option<u64>,
    /// 90th percentile of the latency.
    pub p90: Option<u64>,
    /// 99th percentile of the latency.
    pub p99: Option<u64>,
    /// 99.9th percentile of the latency.
    pub p999: Option<u64>,
    /// Maximum latency; `None` if an event failed.
    pub max: Option<u64>,
}

/// Losses of a role on the path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Lost {
    /// What the counts mean: packets or segments.
    pub what: LossUnit,
    /// Fraction of units lost or retransmitted, 0 to 1.
    pub share: f64,
    /// Number of units sent, including lost units.
    pub of: u64,
}

/// Unit in which losses are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Counted")]
pub enum LossUnit {
    /// UDP packets without an echo.
    Packets,
    /// TCP segments that the sender retransmitted.
    Segments,
}

/// Verdict on the results of one role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RoleVerdict {
    /// Name of the role.
    pub role: String,
    /// Grade of the role.
    pub grade: Grade,
    /// Number of valid events.
    pub counted: u64,
    /// Number of void events, which do not count because the client itself was late or asleep.
    pub void: u64,
    /// Number of events that failed, were lost or were never sent.
    pub failed: u64,
    /// Losses on the path, if counted: UDP packets without an echo, or retransmitted TCP segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Number of late events, including failed ones.
    pub over: u64,
    /// Percentiles of the latencies of all valid events.
    pub latency: Percentiles,
    /// Mean difference between the delays of consecutive packets, in microseconds (RFC 3550 section 6.4.1, without
    /// smoothing).
    pub jitter_us: Option<u64>,
    /// Bits per second over the run.
    pub bit_per_s: Option<f64>,
    /// Round trips per minute on new connections (`Foreign_Responsiveness` of the IETF draft on responsiveness).
    pub rpm: Option<f64>,
    /// Second with the most late events. For a download, the second with the fewest bytes.
    pub worst: Option<Second>,
    /// Interruptions, in which no event was in time: start and end in microseconds from the start.
    pub breaks: Vec<(u64, u64)>,
    /// Simulated playback, if the role is a film.
    pub played: Option<Played>,
    /// Results of each second, in order.
    pub seconds: Vec<Second>,
    /// Cause of the result, if the record shows one.
    pub cause: Option<Cause>,
    /// Whether the result is unknown because the client itself could hardly receive more (see [`CEILING`]).
    #[serde(default)]
    pub at_ceiling: bool,
}

/// Verdict on the results of one person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PersonVerdict {
    /// Name of the person.
    pub person: String,
    /// Name of the device.
    #[serde(default)]
    pub client: String,
    /// Worst grade of all roles with a known grade.
    pub grade: Grade,
    /// Full queue on the path to this device, if the record shows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Summary of the Wi-Fi history, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub air: Option<AirVerdict>,
    /// Verdict on each role.
    pub roles: Vec<RoleVerdict>,
}

impl RoleVerdict {
    /// Returns the fraction of valid events that were late, 0 to 1.
    #[must_use]
    pub fn share_over(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.over as f64 / self.counted as f64)
    }
}

/// If a client receives more than this fraction of its own maximum rate, the client itself may be the bottleneck. The
/// fraction is low because a web page measures its maximum without TLS and without connections.
pub const CEILING: f64 = 0.5;
/// Maximum fraction of void events. A role with more void events has no result.
const MOST_VOID: f64 = 0.1;
/// If a tolerable role would give a result like this with a lower probability, the result counts as more than chance.
const CHANCE: f64 = 0.01;
/// Minimum number of events for a result, unless all of them are late.
pub(crate) const LEAST_EVENTS: u64 = 5;

/// Computes the verdict for one person, without the traffic of other people.
#[must_use]
pub fn judge(record: &PersonRecord, roles: &[Role]) -> PersonVerdict {
    let mut load = LinkLoad::default();
    load.add(record, roles);
    judge_among(record, roles, &load)
}

/// Computes the verdict for one person. `load` is the traffic of all people together.
#[must_use]
pub fn judge_among(record: &PersonRecord, roles: &[Role], load: &LinkLoad) -> PersonVerdict {
    let packets: Vec<Vec<RecordEvent>> = roles
        .iter()
        .filter(|role| matches!(role.workload, Workload::Packets { .. }))
        .filter_map(|role| {
            let seen = record.roles.iter().find(|seen| seen.role == role.name)?;
            let counts = |event: &RecordEvent| !is_void(role, event, &record.void);
            Some(seen.events.iter().copied().filter(counts).collect())
        })
        .collect();
    let queue = queue::find(record, &packets, load);
    let way = PathState {
        queue: queue.as_ref(),
        load,
    };
    let verdicts: Vec<RoleVerdict> = roles
        .iter()
        .map(|role| {
            let of = record.roles.iter().find(|seen| seen.role == role.name);
            judge_role(role, of.unwrap_or(&RoleRecord::default()), record, way)
        })
        .collect();
    PersonVerdict {
        person: record.person.clone(),
        client: record.client.clone(),
        grade: grade_person(roles, &verdicts),
        air: record.air.as_ref().map(judge_air),
        queue,
        roles: verdicts,
    }
}

/// Returns the grade of the worst role with a known grade. A download without a goal is good at any speed, so it alone
/// does not make a person's verdict good if roles with a goal are unknown.
fn grade_person(roles: &[Role], verdicts: &[RoleVerdict]) -> Grade {
    let known = |verdict: &&RoleVerdict| verdict.grade != Grade::Unknown;
    let worst = verdicts
        .iter()
        .filter(known)
        .map(|verdict| verdict.grade)
        .max();
    let mut with_goal = roles
        .iter()
        .zip(verdicts)
        .filter(|(role, _)| role.has_goal())
        .peekable();
    let unproved = with_goal.peek().is_some() && !with_goal.any(|(_, verdict)| known(&verdict));
    worst
        .filter(|grade| *grade != Grade::Good || !unproved)
        .unwrap_or(Grade::Unknown)
}

/// Returns whether an event is void: the client was asleep or hidden, or was itself late by more than a tenth of the
/// goal.
fn is_void(role: &Role, event: &RecordEvent, away: &[(u64, u64)]) -> bool {
    let most = role
        .within_us()
        .map_or(20_000, |within| (within / 10).max(5_000));
    let end = event.due.saturating_add(event.took.unwrap_or(0));
    event.late > most
        || away
            .iter()
            .any(|(from, to)| event.due < *to && *from <= end)
}

pub(crate) fn is_over(role: &Role, event: &RecordEvent) -> bool {
    match (event.took, role.within_us()) {
        (None, _) => true,
        (Some(took), Some(within)) => took > within,
        (Some(_), None) => false,
    }
}

fn judge_role(
    role: &Role,
    seen: &RoleRecord,
    record: &PersonRecord,
    way: PathState<'_>,
) -> RoleVerdict {
    let (void, events): (Vec<RecordEvent>, Vec<RecordEvent>) = seen
        .events
        .iter()
        .copied()
        .partition(|event| is_void(role, event, &record.void));
    let failed = events.iter().filter(|event| event.took.is_none()).count() as u64;
    let over = events.iter().filter(|event| is_over(role, event)).count() as u64;
    let counted = events.len() as u64;
    let seconds = seconds(role, seen, record, &events, &void);
    let played = match &role.workload {
        Workload::Stream {
            bytes,
            bit_per_s,
            start_ms,
            ..
        } => Some(play(
            Film {
                piece_us: (*bytes as f64 * 8e6 / bit_per_s) as u64,
                start_us: (start_ms * 1e3) as u64,
                until_us: record.ran_us,
            },
            &seen
                .events
                .iter()
                .map(|event| Some(event.due.saturating_add(event.took?)))
                .collect::<Vec<_>>(),
        )),
        _ => None,
    };
    let moved = seen
        .slots
        .iter()
        .fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let bit_per_s = (!seen.slots.is_empty() && record.ran_us > 0)
        .then(|| moved as f64 * 8e6 / record.ran_us as f64);
    let mut verdict = RoleVerdict {
        role: role.name.clone(),
        grade: Grade::Unknown,
        counted,
        void: void.len() as u64,
        failed,
        lost: lost(role, seen, failed, counted),
        over,
        latency: percentiles(&events),
        jitter_us: jitter(role, &events),
        bit_per_s,
        rpm: rpm(&seen.probes),
        worst: worst(role, &seconds),
        breaks: match &role.workload {
            Workload::Stream { .. } => played.iter().flat_map(|p| p.stops.clone()).collect(),
            _ => breaks(role, &events, record.ran_us),
        },
        played,
        seconds,
        cause: None,
        at_ceiling: false,
    };
    verdict.grade = grade(role, &verdict, record);
    if matches!(verdict.grade, Grade::Bad | Grade::Tolerable) && at_ceiling(record) {
        verdict.grade = Grade::Unknown;
        verdict.at_ceiling = true;
    }
    if matches!(verdict.grade, Grade::Bad | Grade::Tolerable) {
        verdict.cause = cause(role, &verdict, &events, record, way);
    }
    verdict
}

/// Returns the UDP packets without an echo, or the retransmitted TCP segments.
fn lost(role: &Role, seen: &RoleRecord, failed: u64, counted: u64) -> Option<Lost> {
    let (what, lost, of) = match (&role.workload, seen.segments) {
        (Workload::Packets { .. }, _) => (LossUnit::Packets, failed, counted),
        (_, Some(segments)) => (LossUnit::Segments, segments.again, segments.sent),
        (_, None) => return None,
    };
    (of > 0).then(|| Lost {
        what,
        share: lost as f64 / of as f64,
        of,
    })
}

/// Returns whether all roles together received bytes at about the client's maximum rate.
fn at_ceiling(record: &PersonRecord) -> bool {
    let slots = record.roles.iter().flat_map(|role| &role.slots);
    let bytes = slots.fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let rate = bytes as f64 * 8e6 / record.ran_us.max(1) as f64;
    let ceiling = record.ceiling_bit_per_s.filter(|ceiling| *ceiling > 0.0);
    ceiling.is_some_and(|ceiling| rate >= CEILING * ceiling)
}

/// Grades a role with fewer than [`LEAST_EVENTS`] events. On a slow link there are few pages, because each page takes
/// long. If all events are late, the role is bad, provided that a tolerable role would give this result with a
/// probability below [`CHANCE`].
fn grade_few(verdict: &RoleVerdict, tolerable_over: f64) -> Grade {
    let chance = tolerable_over.powf(verdict.counted as f64);
    match verdict.counted > 0 && verdict.over == verdict.counted && chance < CHANCE {
        true => Grade::Bad,
        false => Grade::Unknown,
    }
}

fn grade(role: &Role, verdict: &RoleVerdict, record: &PersonRecord) -> Grade {
    let goal = &role.goal;
    let by_share = |share: f64| match share {
        share if share <= goal.good_over => Grade::Good,
        share if share <= goal.tolerable_over => Grade::Tolerable,
        _ => Grade::Bad,
    };
    let due = verdict.counted + verdict.void;
    let mostly_void = due > 0 && verdict.void as f64 / due as f64 > MOST_VOID;
    match &role.workload {
        Workload::Bulk { .. } | Workload::Responsiveness { .. } => {
            let away = record
                .void
                .iter()
                .map(|(from, to)| to.saturating_sub(*from) as f64)
                .sum::<f64>();
            match (verdict.bit_per_s, goal.bit_per_s) {
                _ if away > MOST_VOID * record.ran_us as f64 => Grade::Unknown,
                (None, _) => Grade::Unknown,
                (Some(rate), _) if rate <= 0.0 => Grade::Bad,
                (Some(rate), Some(least)) if rate < least => Grade::Bad,
                _ => Grade::Good,
            }
        }
        _ if mostly_void => Grade::Unknown,
        _ if verdict.counted < LEAST_EVENTS => grade_few(verdict, goal.tolerable_over),
        Workload::Stream { .. } => {
            let stood = verdict.played.as_ref().map_or(0, Played::stood_us);
            let began = verdict
                .played
                .as_ref()
                .is_some_and(|p| p.began_us.is_some());
            match (began, stood) {
                (false, _) => Grade::Bad,
                (true, 0) => by_share(verdict.share_over().unwrap_or(1.0)).min(Grade::Tolerable),
                // The film stalled, which the minimum bit rate excludes.
                (true, _) => Grade::Bad,
            }
        }
        _ => by_share(verdict.share_over().unwrap_or(1.0)),
    }
}

fn percentiles(events: &[RecordEvent]) -> Percentiles {
    let times: Histogram = events
        .iter()
        .filter_map(|event| Some((event.took?, 1)))
        .collect();
    let (good, all) = (times.count(), events.len() as u64);
    let at = |percent: f64, least: u64| {
        let rank = (percent / 100.0 * all as f64).ceil().max(1.0) as u64;
        (all >= least && rank <= good)
            .then(|| times.at_rank(rank))
            .flatten()
    };
    Percentiles {
        p50: at(50.0, 1),
        p90: at(90.0, 10),
        p99: at(99.0, 100),
        p999: at(99.9, 1000),
        max: at(100.0, 1),
    }
}

fn jitter(role: &Role, events: &[RecordEvent]) -> Option<u64> {
    if !matches!(role.workload, Workload::Packets { .. }) {
        return None;
    }
    let times: Vec<u64> = events.iter().filter_map(|event| event.took).collect();
    let (sum, n) = times.windows(2).fold((0u64, 0u64), |(sum, n), pair| {
        (sum.saturating_add(pair[0].abs_diff(pair[1])), n + 1)
    });
    sum.checked_div(n)
}

/// Computes round trips per minute: 60,000 divided by the mean of the three parts in milliseconds. Each part
/// is the mean of its fastest 95 % (draft-ietf-ippm-responsiveness-08 section 5.3.1.1,
/// `Foreign_Responsiveness`).
fn rpm(probes: &[Probe]) -> Option<f64> {
    let trimmed = |part: fn(&Probe) -> u64| {
        let mut times: Vec<u64> = probes.iter().map(part).collect();
        times.sort_unstable();
        let kept = (times.len() as f64 * 0.95).ceil() as usize;
        times.truncate(kept);
        times.iter().map(|us| *us as f64).sum::<f64>() / kept as f64 / 1e3
    };
    if probes.len() < LEAST_EVENTS as usize {
        return None;
    }
    let parts: [fn(&Probe) -> u64; 3] = [|p| p.tcp, |p| p.tls, |p| p.http];
    let mean = parts.map(trimmed).iter().sum::<f64>() / 3.0;
    (mean > 0.0).then(|| 60_000.0 / mean)
}

fn seconds(
    role: &Role,
    seen: &RoleRecord,
    record: &PersonRecord,
    events: &[RecordEvent],
    void: &[RecordEvent],
) -> Vec<Second> {
    let count = record
        .ran_us
        .div_ceil(1_000_000)
        .min(u64::from(crate::plan::LONGEST)) as usize;
    let mut seconds: Vec<Second> = (0..count)
        .map(|at| Second {
            at: at as u32,
            ..Second::default()
        })
        .collect();
    for event in events {
        if let Some(second) = seconds.get_mut((event.due / 1_000_000) as usize) {
            second.due += 1;
            second.over += u32::from(is_over(role, event));
            second.longest_us = second.longest_us.max(event.took.unwrap_or(0));
        }
    }
    let away = record.void.iter().flat_map(|(from, to)| {
        let last = to.saturating_sub(1).max(*from) / 1_000_000;
        from / 1_000_000..=last.min(count as u64)
    });
    for at in void.iter().map(|event| event.due / 1_000_000).chain(away) {
        if let Some(second) = seconds.get_mut(at as usize) {
            second.void = true;
        }
    }
    for (slot, bytes) in seen.slots.iter().enumerate() {
        if let Some(second) = seconds.get_mut((slot as u64 * SLOT_US / 1_000_000) as usize) {
            second.bytes = second.bytes.saturating_add(*bytes);
        }
    }
    seconds
}

fn worst(role: &Role, seconds: &[Second]) -> Option<Second> {
    let counted = seconds.iter().filter(|second| !second.void).copied();
    match &role.workload {
        Workload::Bulk { .. } => counted.min_by_key(|second| second.bytes),
        _ => {
            let due = counted.filter(|second| second.due > 0);
            due.max_by(|a, b| {
                let share = |s: &Second| f64::from(s.over) / f64::from(s.due);
                share(a)
                    .total_cmp(&share(b))
                    .then(a.longest_us.cmp(&b.longest_us))
            })
        }
    }
}

/// Returns how many consecutive events must be late for an interruption. In a call, a single lost packet is inaudible;
/// a missing page is always noticed.
fn least_in_a_row(role: &Role) -> usize {
    match role.workload {
        Workload::Packets { .. } => 3,
        _ => 1,
    }
}

fn breaks(role: &Role, events: &[RecordEvent], end: u64) -> Vec<(u64, u64)> {
    if matches!(
        role.workload,
        Workload::Bulk { .. } | Workload::Responsiveness { .. }
    ) {
        return Vec::new();
    }
    let mut breaks = Vec::new();
    let mut row: Option<(u64, usize)> = None;
    for event in events {
        match (is_over(role, event), row) {
            (true, None) => row = Some((event.due, 1)),
            (true, Some((from, n))) => row = Some((from, n + 1)),
            (false, Some((from, n))) => {
                if n >= least_in_a_row(role) {
                    breaks.push((from, event.due));
                }
                row = None;
            }
            (false, None) => {}
        }
    }
    if let Some((from, n)) = row
        && n >= least_in_a_row(role)
    {
        breaks.push((from, end.max(from)));
    }
    breaks
}

#[cfg(test)]
mod tests;
