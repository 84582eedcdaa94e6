//! Detects bufferbloat. Reports how much longer round trips took under load than before the run, in which seconds,
//! which roles filled the queue, and how many packets were lost. Performs no I/O.

use crate::record::{PersonRecord, RecordEvent, SLOT_US};
use crate::role::{Direction, Role, Workload};
use serde::{Deserialize, Serialize};

/// Minimum additional delay that counts as a queue, in microseconds. A smaller delay may be the jitter of a wireless
/// network.
pub const QUEUED: u64 = 30_000;
/// Minimum fraction of slow seconds. With a smaller fraction, no queue is reported.
const SLOW_SHARE: f64 = 0.1;
/// Minimum number of slow seconds. With fewer, no queue is reported.
const SLOW_LEAST: usize = 2;
/// Minimum fraction of the bytes that a role must transfer to be reported as a cause of the queue.
const FILLED: f64 = 0.1;
/// Maximum number of roles that are reported as causes of a queue.
const MOST_FILLERS: usize = 3;
/// Minimum traffic of the run that can fill a queue, in bits per second. If the run had less traffic, other traffic
/// filled the queue.
const LEAST_LOAD: f64 = 200e3;

/// A full queue on the path to a device, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Queue {
    /// Median round trip before the run, in microseconds.
    pub idle_us: u64,
    /// Median round trip in the slow seconds, in microseconds.
    pub loaded_us: u64,
    /// Numbers of the slow seconds, from 0. In a slow second a round trip took at least 30 ms and 25 % longer
    /// than before the run.
    pub slow: Vec<u32>,
    /// Number of seconds in which round trips were measured.
    pub seconds: u32,
    /// Where the round trips come from.
    pub measured_by: MeasuredBy,
    /// Fraction of packets lost in the slow seconds, 0 to 1; `None` if no role sends packets.
    pub lost: Option<f64>,
    /// Fraction of packets lost in the other seconds, 0 to 1; `None` if no role sends packets.
    pub lost_otherwise: Option<f64>,
    /// Roles that transferred the most bytes in the slow seconds, the largest first. Empty if all roles
    /// together transferred too little to fill a queue.
    pub filled_by: Vec<Filler>,
}

/// Where the round trips of a queue come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredBy {
    /// UDP packets of a role that sends packets.
    Packets,
    /// The client's own small requests to the server, two per second.
    Control,
}

/// A role that filled a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Filler {
    /// Name of the person.
    pub person: String,
    /// Name of the role.
    pub role: String,
    /// Direction in which the role filled the queue.
    pub direction: Direction,
    /// Rate of the role in the slow seconds, in bits per second.
    pub bit_per_s: f64,
    /// The role's fraction of all bytes that the run transferred in this direction in the slow seconds, 0 to 1.
    pub share: f64,
}

impl Queue {
    /// Returns whether an event was due in a slow second. `due` is in microseconds from the start.
    #[must_use]
    pub fn is_slow(&self, due: u64) -> bool {
        u32::try_from(due / 1_000_000).is_ok_and(|second| self.slow.binary_search(&second).is_ok())
    }

    /// Returns the additional delay caused by the queue, in microseconds.
    #[must_use]
    pub fn added_us(&self) -> u64 {
        self.loaded_us.saturating_sub(self.idle_us)
    }
}

/// Bytes that all people together transferred, per second of the run.
#[derive(Clone, Debug, Default)]
pub struct LinkLoad(Vec<Moved>);

#[derive(Clone, Debug)]
struct Moved {
    person: String,
    role: String,
    direction: Direction,
    seconds: Vec<u64>,
}

impl LinkLoad {
    /// Adds the bytes of one person.
    pub fn add(&mut self, record: &PersonRecord, roles: &[Role]) {
        for role in roles {
            let seen = record.roles.iter().find(|seen| seen.role == role.name);
            let Some(seen) = seen.filter(|seen| !seen.slots.is_empty()) else {
                continue;
            };
            let per_second = usize::try_from(1_000_000 / SLOT_US).unwrap_or(1);
            let sum = |slots: &[u64]| slots.iter().fold(0u64, |sum, one| sum.saturating_add(*one));
            self.0.push(Moved {
                person: record.person.clone(),
                role: role.name.clone(),
                direction: direction(role),
                seconds: seen.slots.chunks(per_second).map(sum).collect(),
            });
        }
    }

    /// Returns the highest rate of all people together in one direction, in bits per second. Rates are averaged over
    /// three seconds, so that a burst from a buffer does not count.
    #[must_use]
    pub fn best_bit_per_s(&self, direction: Direction) -> f64 {
        let of = || self.0.iter().filter(|one| one.direction == direction);
        let longest = of().map(|one| one.seconds.len()).max().unwrap_or(0);
        let all = |second: usize| {
            let bytes = of().filter_map(|one| one.seconds.get(second));
            bytes.fold(0u64, |sum, one| sum.saturating_add(*one)) as f64 * 8.0
        };
        let seconds: Vec<f64> = (0..longest).map(all).collect();
        let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len() as f64;
        let windows = seconds.windows(longest.clamp(1, 3));
        windows.map(mean).fold(0.0, f64::max)
    }

    /// Returns the roles that transferred the most bytes in the slow seconds, in the direction with more bytes.
    fn fillers(&self, slow: &[usize]) -> Vec<Filler> {
        let moved = |one: &Moved| {
            let bytes = slow.iter().filter_map(|second| one.seconds.get(*second));
            bytes.fold(0u64, |sum, bytes| sum.saturating_add(*bytes))
        };
        let all = |direction: Direction| {
            let same = self.0.iter().filter(|one| one.direction == direction);
            same.fold(0u64, |sum, one| sum.saturating_add(moved(one)))
        };
        let (down, up) = (all(Direction::Down), all(Direction::Up));
        let (direction, all) = match up > down {
            true => (Direction::Up, up),
            false => (Direction::Down, down),
        };
        let rate = |bytes: u64| bytes as f64 * 8.0 / slow.len().max(1) as f64;
        if rate(all) < LEAST_LOAD {
            return Vec::new();
        }
        let same = self.0.iter().filter(|one| one.direction == direction);
        let mut fillers: Vec<Filler> = same
            .map(|one| Filler {
                person: one.person.clone(),
                role: one.role.clone(),
                direction,
                bit_per_s: rate(moved(one)),
                share: moved(one) as f64 / all.max(1) as f64,
            })
            .filter(|filler| filler.share >= FILLED)
            .collect();
        fillers.sort_by(|a, b| b.share.total_cmp(&a.share));
        fillers.truncate(MOST_FILLERS);
        fillers
    }
}

/// Returns the direction in which a role transfers most of its bytes.
fn direction(role: &Role) -> Direction {
    match role.workload {
        Workload::Bulk { direction, .. } => direction,
        _ => Direction::Down,
    }
}

/// Round trips in microseconds, grouped by second. `None` stands for a packet without an echo.
struct Trips {
    seconds: Vec<Vec<u64>>,
    by: MeasuredBy,
}

/// Returns the round trips of the packets if a role sends packets, else the round trips of the client's own requests.
fn trips(record: &PersonRecord, packets: &[Vec<RecordEvent>]) -> Trips {
    let count = usize::try_from(record.ran_us.div_ceil(1_000_000)).unwrap_or(0);
    let mut seconds = vec![Vec::new(); count.min(crate::plan::LONGEST as usize)];
    let mut put = |at: u64, took: u64| {
        let second = usize::try_from(at / 1_000_000).unwrap_or(usize::MAX);
        if let Some(second) = seconds.get_mut(second) {
            second.push(took);
        }
    };
    let by = match packets.is_empty() {
        true => MeasuredBy::Control,
        false => MeasuredBy::Packets,
    };
    match by {
        MeasuredBy::Packets => {
            let events = packets.iter().flatten();
            events.for_each(|event| {
                if let Some(took) = event.took {
                    put(event.due, took);
                }
            });
        }
        MeasuredBy::Control => record.trips.iter().for_each(|(at, took)| put(*at, *took)),
    }
    seconds.iter_mut().for_each(|second| second.sort_unstable());
    Trips { seconds, by }
}

/// Detects a queue in the record of a person. `packets` contains the valid events of the roles that send packets.
#[must_use]
pub fn find(record: &PersonRecord, packets: &[Vec<RecordEvent>], load: &LinkLoad) -> Option<Queue> {
    let idle = match record.start.idle_median_us {
        0 => record.start.idle_us,
        median => median,
    };
    let limit = idle.saturating_add(QUEUED.max(idle / 4));
    let trips = trips(record, packets);
    // The lower quartile is robust: one lost request does not make a second slow.
    let quartile = |second: &Vec<u64>| second.get(second.len() / 4).copied();
    let measured = trips.seconds.iter().filter(|second| !second.is_empty());
    let measured = measured.count();
    let slow: Vec<usize> = (0..trips.seconds.len())
        .filter(|at| quartile(&trips.seconds[*at]).is_some_and(|took| took >= limit))
        .collect();
    let least = (measured as f64 * SLOW_SHARE).max(SLOW_LEAST as f64);
    if idle == 0 || (slow.len() as f64) < least {
        return None;
    }
    let mut loaded: Vec<u64> = slow
        .iter()
        .flat_map(|at| trips.seconds[*at].iter().copied())
        .collect();
    loaded.sort_unstable();
    let is_slow = |event: &RecordEvent| {
        let second = usize::try_from(event.due / 1_000_000).unwrap_or(usize::MAX);
        slow.binary_search(&second).is_ok()
    };
    let lost = |wanted: bool| {
        let events = packets.iter().flatten();
        let (due, lost) = events
            .filter(|event| is_slow(event) == wanted)
            .fold((0u64, 0u64), |(due, lost), event| {
                (due + 1, lost + u64::from(event.took.is_none()))
            });
        (due > 0).then(|| lost as f64 / due as f64)
    };
    Some(Queue {
        idle_us: idle,
        loaded_us: *loaded.get(loaded.len() / 2)?,
        seconds: u32::try_from(measured).unwrap_or(u32::MAX),
        measured_by: trips.by,
        lost: lost(true),
        lost_otherwise: lost(false),
        filled_by: load.fillers(&slow),
        slow: slow
            .into_iter()
            .filter_map(|at| u32::try_from(at).ok())
            .collect(),
    })
}

#[cfg(test)]
mod tests;
