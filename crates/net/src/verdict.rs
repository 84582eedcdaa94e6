//! What a record means for the person: what share was over the goal, when and for how long it was bad, and
//! one grade.

use crate::air::{AirVerdict, judge as judge_air};
use crate::cause::{Cause, Way, cause};
use crate::player::{Film, Played, play};
use crate::queue::{self, LinkLoad, Queue};
use crate::record::{PersonRecord, Probe, RecordEvent, RoleRecord, SLOT_US};
use crate::role::{Role, Workload};
use assay_model::Histogram;
use serde::{Deserialize, Serialize};

/// How it was.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Nobody would complain.
    Good,
    /// Noticed now and then.
    Tolerable,
    /// Not what anybody wants.
    Bad,
    /// It was measured too little, or the client was itself too busy.
    Unknown,
}

/// A second of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Second {
    /// Which, from 0.
    pub at: u32,
    /// What was due in it and counts.
    pub due: u32,
    /// Of these, over the goal, failed or lost.
    pub over: u32,
    /// Longest time in microseconds, of those that came.
    pub longest_us: u64,
    /// Bytes that came in it.
    pub bytes: u64,
    /// Something in it does not count.
    pub void: bool,
}

/// Latencies in microseconds. What failed counts as slower than anything: a percentile that falls among
/// failures is none. So is one for which there is too little: p99 below 100, p99.9 below 1,000.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Percentiles {
    /// Half were as fast.
    pub p50: Option<u64>,
    /// Nine in ten.
    pub p90: Option<u64>,
    /// 99 in 100.
    pub p99: Option<u64>,
    /// 999 in 1,000.
    pub p999: Option<u64>,
    /// The slowest; none when anything failed.
    pub max: Option<u64>,
}

/// What was lost of a role.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Lost {
    /// What was counted.
    pub what: LossUnit,
    /// Share that was lost, or sent again.
    pub share: f64,
    /// Of so many.
    pub of: u64,
}

/// What losses are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Counted")]
pub enum LossUnit {
    /// Packets of UDP that did not come back.
    Packets,
    /// Segments of TCP, which were sent again.
    Segments,
}

/// What one role was like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RoleVerdict {
    /// Its name.
    pub role: String,
    /// How it was.
    pub grade: Grade,
    /// What was due and counts.
    pub counted: u64,
    /// What was due and does not count, because the client itself was late or asleep.
    pub void: u64,
    /// Failed, lost or never sent.
    pub failed: u64,
    /// What was lost on the way, where it was counted: packets that did not come back, or segments of TCP that
    /// were sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Over the goal, those that failed included.
    pub over: u64,
    /// Latencies.
    pub latency: Percentiles,
    /// Mean difference of two packets after one another (RFC 3550, section 6.4.1, without its smoothing), in
    /// microseconds.
    pub jitter_us: Option<u64>,
    /// Bits per second over the run.
    pub bit_per_s: Option<f64>,
    /// Round trips per minute of new connections: the foreign half of the responsiveness draft.
    pub rpm: Option<f64>,
    /// The second with most over its goal; of a download the one with the least bytes.
    pub worst: Option<Second>,
    /// Stretches without anything in time: from, to, in microseconds from the start.
    pub breaks: Vec<(u64, u64)>,
    /// Of a film.
    pub played: Option<Played>,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// What was the matter, where it can be shown.
    pub cause: Option<Cause>,
    /// It is not known because the client itself could hardly have taken in more: see [`CEILING`].
    #[serde(default)]
    pub at_ceiling: bool,
}

/// What a person was content with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PersonVerdict {
    /// Who.
    pub person: String,
    /// Name of the device.
    #[serde(default)]
    pub client: String,
    /// The worst of the roles that were measured.
    pub grade: Grade,
    /// The full queue on the way to this device, where the record shows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// What its radio went through, where it looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub air: Option<AirVerdict>,
    /// Role by role.
    pub roles: Vec<RoleVerdict>,
}

impl RoleVerdict {
    /// Share over the goal.
    #[must_use]
    pub fn share_over(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.over as f64 / self.counted as f64)
    }
}

/// From this share of what a client can take in at most on, it may itself be what was slow: a page reads bytes of
/// its own without TLS and connections.
pub const CEILING: f64 = 0.5;
/// More than this share of void events, and nothing is said of the rest.
const MOST_VOID: f64 = 0.1;
/// Fewer events than these are no measurement.
pub(crate) const LEAST_EVENTS: u64 = 5;

/// Judges a person alone.
#[must_use]
pub fn judge(record: &PersonRecord, roles: &[Role]) -> PersonVerdict {
    let mut load = LinkLoad::default();
    load.add(record, roles);
    judge_among(record, roles, &load)
}

/// Judges a person among others; `load` is what all of them moved.
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
    let way = Way {
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
    let known = verdicts.iter().map(|verdict| verdict.grade);
    let worst = known.filter(|grade| *grade != Grade::Unknown).max();
    PersonVerdict {
        person: record.person.clone(),
        client: record.client.clone(),
        grade: worst.unwrap_or(Grade::Unknown),
        air: record.air.as_ref().map(judge_air),
        queue,
        roles: verdicts,
    }
}

/// Whether something does not count: the client was late by more than a tenth of the goal, or away.
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

fn judge_role(role: &Role, seen: &RoleRecord, record: &PersonRecord, way: Way<'_>) -> RoleVerdict {
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

/// Packets that did not come back, or segments that were sent again.
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

/// Whether the client took in about as much as it can, in all of its roles together.
fn at_ceiling(record: &PersonRecord) -> bool {
    let slots = record.roles.iter().flat_map(|role| &role.slots);
    let bytes = slots.fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let rate = bytes as f64 * 8e6 / record.ran_us.max(1) as f64;
    let ceiling = record.ceiling_bit_per_s.filter(|ceiling| *ceiling > 0.0);
    ceiling.is_some_and(|ceiling| rate >= CEILING * ceiling)
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
        _ if mostly_void || verdict.counted < LEAST_EVENTS => Grade::Unknown,
        Workload::Stream { .. } => {
            let stood = verdict.played.as_ref().map_or(0, Played::stood_us);
            let began = verdict
                .played
                .as_ref()
                .is_some_and(|p| p.began_us.is_some());
            match (began, stood) {
                (false, _) => Grade::Bad,
                (true, 0) => by_share(verdict.share_over().unwrap_or(1.0)).min(Grade::Tolerable),
                // It stood: that is what "must never fall below" is about.
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

/// 60,000 by the mean of the three parts in milliseconds, each the mean of its fastest 95 %
/// (draft-ietf-ippm-responsiveness-08, section 5.3.1.1, `Foreign_Responsiveness`).
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

/// Fewest in a row that are a break: a call hides one lost packet, and nobody overlooks a page.
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
