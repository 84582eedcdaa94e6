//! Why it was bad, where the record itself shows it.

mod radio;

use crate::queue::{LinkLoad, QUEUED, Queue};
use crate::record::{PersonRecord, RecordEvent};
use crate::role::{Direction, Role, Workload};
use crate::verdict::{RoleVerdict, Second};
use assay_wifi::channel::Channel;
use serde::{Deserialize, Serialize};

/// What was the matter, with its evidence. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Cause {
    /// Everything waited, and what did not fit was dropped: a queue on the way is long and full.
    Queue {
        /// What half of the round trips took at least during the run.
        during_us: u64,
        /// What one took before it.
        before_us: u64,
    },
    /// Much was lost.
    Loss {
        /// Share that was lost.
        share: f64,
    },
    /// The network was slow before anybody used it.
    Far {
        /// What a round trip took before the run.
        before_us: u64,
    },
    /// Fewer bytes came than the role needs.
    Rate {
        /// Bits per second that came.
        bit_per_s: f64,
        /// Bits per second that it needs.
        needs: f64,
    },
    /// Nothing came through any more from then on, until the end.
    Cut {
        /// Microseconds from the start.
        from_us: u64,
    },
    /// The device went from one access point to another, and most of what was late was due then.
    Roam {
        /// Last seen with the first one, in microseconds from the start.
        from_us: u64,
        /// First seen with the second one.
        to_us: u64,
        /// Where it was.
        from: Option<Channel>,
        /// Where it was then.
        to: Option<Channel>,
        /// Share of all that was over the goal that was due meanwhile.
        share: f64,
    },
    /// The device was with no access point, and most of what was late was due then.
    Away {
        /// Microseconds from the start.
        from_us: u64,
        /// Until then.
        to_us: u64,
        /// Share of all that was over the goal that was due meanwhile.
        share: f64,
    },
    /// The access point was heard weakly, and it was worse then.
    Signal {
        /// How weakly at most, in dBm.
        dbm: i32,
        /// When that was, in microseconds from the start.
        at_us: u64,
        /// Share over the goal while it was weak.
        share: f64,
        /// Share over the goal at other times; none when it was weak all the time.
        otherwise: Option<f64>,
    },
    /// The device was on 2.4 GHz, and would have been better off in another band.
    Band {
        /// Where it was.
        channel: Channel,
        /// Share over the goal there.
        share: f64,
        /// Where its network is as well.
        other: Channel,
        /// Share over the goal while it was there itself, when it was.
        other_share: Option<f64>,
        /// How strong it was heard there in dBm, when it was only heard.
        other_signal: Option<i32>,
    },
}

/// More than this share lost is called loss.
const LOSS: f64 = 0.02;

/// What is known of the way between server and device beside a role.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    /// The queue on it.
    pub queue: Option<&'a Queue>,
    /// What everybody moved.
    pub load: &'a LinkLoad,
}

pub(crate) fn cause(
    role: &Role,
    verdict: &RoleVerdict,
    events: &[RecordEvent],
    record: &PersonRecord,
    way: Way<'_>,
) -> Option<Cause> {
    let lost = events.iter().filter(|event| event.took.is_none()).count();
    // Everything from some time on failed, that is most of what did, and no byte came any more: what is late may
    // not have been begun before the end.
    let last = events.iter().rposition(|event| event.took.is_some());
    let tail = &events[last.map_or(0, |at| at + 1)..];
    if let (Some(_), Some(first)) = (last, tail.first())
        && tail.len() >= 5
        && tail.len() * 2 > lost
    {
        let after = |second: &&Second| u64::from(second.at) * 1_000_000 > first.due;
        let mut after = verdict.seconds.iter().filter(after).peekable();
        if after.peek().is_some() && after.all(|second| second.bytes == 0) {
            return Some(Cause::Cut { from_us: first.due });
        }
    }
    radio::differs(role, events, record)
        .or_else(|| path(role, verdict, events, record, way))
        .or_else(|| radio::always(role, events, record))
}

/// What the way between server and device did.
fn path(
    role: &Role,
    verdict: &RoleVerdict,
    events: &[RecordEvent],
    record: &PersonRecord,
    way: Way<'_>,
) -> Option<Cause> {
    if let Workload::Stream {
        bit_per_s: needs, ..
    } = role.workload
    {
        let got = verdict.bit_per_s?;
        return (got < 0.98 * needs).then_some(Cause::Rate {
            bit_per_s: got,
            needs,
        });
    }
    let Some(within) = role.within_us() else {
        return loss(role, events);
    };
    let best = way.load.best_bit_per_s(Direction::Down);
    let needs = needs_bit_per_s(role, within);
    if let Some(needs) = needs.filter(|needs| best > 0.0 && best < *needs) {
        return Some(Cause::Rate {
            bit_per_s: best,
            needs,
        });
    }
    let before = record.start.idle_us;
    if before > within {
        return Some(Cause::Far { before_us: before });
    }
    queued(events, within, way.queue)
        .or_else(|| loss(role, events))
        .or_else(|| (before > within / 2).then_some(Cause::Far { before_us: before }))
        .or_else(|| slow_answers(role, events, within, before))
}

/// A full queue delays and drops: what it dropped is no other loss. At least half of what was over the goal was
/// due while the queue was long.
fn queued(events: &[RecordEvent], within: u64, queue: Option<&Queue>) -> Option<Cause> {
    let queue = queue?;
    let late = events
        .iter()
        .filter(|event| event.took.is_none_or(|took| took > within));
    let (all, meanwhile) = late.fold((0u64, 0u64), |(all, meanwhile), event| {
        (all + 1, meanwhile + u64::from(queue.is_slow(event.due)))
    });
    (meanwhile * 2 >= all).then_some(Cause::Queue {
        during_us: queue.loaded_us,
        before_us: queue.idle_us,
    })
}

/// The answer to small things is a round trip and nothing else: of those over the goal, half took far longer
/// than an idle round trip.
fn slow_answers(role: &Role, events: &[RecordEvent], within: u64, before: u64) -> Option<Cause> {
    let small = match role.workload {
        Workload::Packets { .. } => true,
        Workload::Fetches { bytes, .. } => bytes <= 16 << 10,
        _ => false,
    };
    let came = events.iter().filter_map(|event| event.took);
    let mut over: Vec<u64> = came.filter(|took| *took > within).collect();
    over.sort_unstable();
    let during = *over.get(over.len() / 2)?;
    // The idle round trip is at least one exchange of a few hundred bytes; a queue is many times that.
    (small && during > before.saturating_mul(3).saturating_add(QUEUED)).then_some(Cause::Queue {
        during_us: during,
        before_us: before,
    })
}

/// Only packets get lost for whoever sends them: TCP sends again what was.
fn loss(role: &Role, events: &[RecordEvent]) -> Option<Cause> {
    let packets = matches!(role.workload, Workload::Packets { .. });
    let lost = events.iter().filter(|event| event.took.is_none()).count();
    let share = lost as f64 / events.len().max(1) as f64;
    (packets && share > LOSS).then_some(Cause::Loss { share })
}

/// Bits per second that a page needs to come within its goal, in microseconds, on an idle link.
fn needs_bit_per_s(role: &Role, within: u64) -> Option<f64> {
    match role.workload {
        Workload::Pages { objects, bytes, .. } => {
            Some(f64::from(objects) * bytes as f64 * 8e6 / within.max(1) as f64)
        }
        _ => None,
    }
}
