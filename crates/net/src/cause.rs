//! Finds the cause of a bad result, if the record shows it.

mod radio;

use crate::queue::{LinkLoad, QUEUED, Queue};
use crate::record::{PersonRecord, RecordEvent};
use crate::role::{Direction, Role, Workload};
use crate::verdict::{RoleVerdict, Second};
use assay_wifi::channel::Channel;
use serde::{Deserialize, Serialize};

/// The cause of a bad result, with its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Cause {
    /// Bufferbloat: a long queue on the path delayed packets, and dropped packets when it was full.
    Queue {
        /// Median round trip during the run, in microseconds.
        during_us: u64,
        /// Median round trip before the run, in microseconds.
        before_us: u64,
    },
    /// The network lost more than 2 % of the packets.
    Loss {
        /// Fraction of packets lost, 0 to 1.
        share: f64,
    },
    /// The round trip was already long before the run.
    Far {
        /// Median round trip before the run, in microseconds.
        before_us: u64,
    },
    /// The data rate was lower than the role's goal requires.
    Rate {
        /// Measured rate in bits per second.
        bit_per_s: f64,
        /// Required rate in bits per second.
        needs: f64,
    },
    /// The connection failed and did not recover until the end of the run.
    Cut {
        /// Time of the failure, in microseconds from the start.
        from_us: u64,
    },
    /// The device changed its access point, and most late events were due during the change.
    Roam {
        /// Last time at the first access point, in microseconds from the start.
        from_us: u64,
        /// First time at the second access point, in microseconds from the start.
        to_us: u64,
        /// Channel of the first access point.
        from: Option<Channel>,
        /// Channel of the second access point.
        to: Option<Channel>,
        /// Fraction of late events that were due in this interval, 0 to 1.
        share: f64,
    },
    /// The device had no access point for some time, and most late events were due during this time.
    Away {
        /// Start of the interval, in microseconds from the start.
        from_us: u64,
        /// End of the interval, in microseconds from the start.
        to_us: u64,
        /// Fraction of late events that were due in this interval, 0 to 1.
        share: f64,
    },
    /// The signal was weak for part of the run, and a larger fraction of events was late during this part.
    Signal {
        /// Weakest signal in dBm.
        dbm: i32,
        /// Time of the weakest signal, in microseconds from the start.
        at_us: u64,
        /// Fraction of events that were late while the signal was weak, 0 to 1.
        share: f64,
        /// Fraction of events that were late while the signal was strong enough; `None` if the signal was always weak.
        otherwise: Option<f64>,
    },
    /// The device used 2.4 GHz although another band was better.
    Band {
        /// Channel of the device in the 2.4 GHz band.
        channel: Channel,
        /// Fraction of events that were late while the device used this channel.
        share: f64,
        /// Channel of the same network in the better band.
        other: Channel,
        /// Fraction of events that were late while the device used the better band; `None` if the device never used
        /// that band.
        other_share: Option<f64>,
        /// Signal strength in dBm in the better band, if the device received that band but did not use it.
        other_signal: Option<i32>,
    },
}

/// Minimum fraction of lost packets for the cause `Loss`.
const LOSS: f64 = 0.02;

/// What is known about the path between server and device, apart from the records of the roles.
#[derive(Clone, Copy)]
pub(crate) struct PathState<'a> {
    /// Full queue on the path, if the round trips show one.
    pub queue: Option<&'a Queue>,
    /// Bytes that all people of the run transferred.
    pub load: &'a LinkLoad,
}

pub(crate) fn cause(
    role: &Role,
    verdict: &RoleVerdict,
    events: &[RecordEvent],
    record: &PersonRecord,
    way: PathState<'_>,
) -> Option<Cause> {
    let lost = events.iter().filter(|event| event.took.is_none()).count();
    // All events from some time on failed, these are most of the failures, and no more bytes arrived. Late
    // events near the end may not have started at all.
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

/// Finds a cause on the path: a full queue, packet loss, a distant server or a low data rate.
fn path(
    role: &Role,
    verdict: &RoleVerdict,
    events: &[RecordEvent],
    record: &PersonRecord,
    way: PathState<'_>,
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

/// Attributes the result to a full queue if at least half of the late events were due while the queue was long. Packets
/// that the queue dropped are attributed to the queue, not to `Loss`.
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

/// Detects a queue by small responses, which take one round trip. The median duration of the late responses must be
/// much longer than a round trip of the idle network.
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
    // An idle exchange has a few hundred bytes. A queue adds many times its round trip.
    (small && during > before.saturating_mul(3).saturating_add(QUEUED)).then_some(Cause::Queue {
        during_us: during,
        before_us: before,
    })
}

/// Detects packet loss. Applies only to roles that send packets, because TCP retransmits lost segments.
fn loss(role: &Role, events: &[RecordEvent]) -> Option<Cause> {
    let packets = matches!(role.workload, Workload::Packets { .. });
    let lost = events.iter().filter(|event| event.took.is_none()).count();
    let share = lost as f64 / events.len().max(1) as f64;
    (packets && share > LOSS).then_some(Cause::Loss { share })
}

/// Returns the bits per second that a page needs on an idle link to finish within its goal. `within` is in
/// microseconds.
fn needs_bit_per_s(role: &Role, within: u64) -> Option<f64> {
    match role.workload {
        Workload::Pages { objects, bytes, .. } => {
            Some(f64::from(objects) * bytes as f64 * 8e6 / within.max(1) as f64)
        }
        _ => None,
    }
}
