//! The queue on the way: how much longer a round trip took under load than before the run, in which seconds, who
//! moved the bytes that filled the queue, and what was lost meanwhile. Pure.

use crate::record::{PersonRecord, RecordEvent, SLOT_US};
use crate::role::{Direction, Role, Workload};
use serde::{Deserialize, Serialize};

/// A queue adds at least so much to a round trip, in microseconds: less is jitter of a wireless network.
pub const QUEUED: u64 = 30_000;
/// Share of the seconds that has to be slow before a queue is reported.
const SLOW_SHARE: f64 = 0.1;
/// Seconds that have to be slow at least.
const SLOW_LEAST: usize = 2;
/// Who moved less than this share of the bytes had no part in it.
const FILLED: f64 = 0.1;
/// Most roles that are named.
const MOST_FILLERS: usize = 3;
/// Bits per second: a queue that fills at less is not filled by this run.
const LEAST_LOAD: f64 = 200e3;

/// A full queue, with its evidence. Times in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Queue {
    /// Median round trip before the run.
    pub idle_us: u64,
    /// Median round trip in the slow seconds.
    pub loaded_us: u64,
    /// Seconds, from 0, in which a round trip took at least 30 ms (and a quarter) longer than before the run.
    pub slow: Vec<u32>,
    /// Seconds in which round trips were measured.
    pub seconds: u32,
    /// What measured the round trips.
    pub measured_by: MeasuredBy,
    /// Share of packets that were lost in the slow seconds; none without a role that sends packets.
    pub lost: Option<f64>,
    /// Share of packets that were lost in the other seconds.
    pub lost_otherwise: Option<f64>,
    /// Who moved most bytes in the slow seconds, the most first; empty when the roles of this run together moved too
    /// little to fill a queue.
    pub filled_by: Vec<Filler>,
}

/// What measures round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredBy {
    /// Packets of a role.
    Packets,
    /// The client's own small requests to the server, two a second.
    Control,
}

/// Who filled a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Filler {
    /// Who.
    pub person: String,
    /// With which role.
    pub role: String,
    /// Which way.
    pub direction: Direction,
    /// Bits per second in the slow seconds.
    pub bit_per_s: f64,
    /// Share of all bytes that the run moved in this direction in these seconds.
    pub share: f64,
}

impl Queue {
    /// Whether something was due in a slow second; `due` in microseconds from the start.
    #[must_use]
    pub fn is_slow(&self, due: u64) -> bool {
        u32::try_from(due / 1_000_000).is_ok_and(|second| self.slow.binary_search(&second).is_ok())
    }

    /// Microseconds that the queue added to a round trip.
    #[must_use]
    pub fn added_us(&self) -> u64 {
        self.loaded_us.saturating_sub(self.idle_us)
    }
}

/// What everybody moved, second by second.
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
    /// Adds what one person moved.
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

    /// The most that all together moved in one direction in three seconds, in bits per second: a burst out of a
    /// buffer is no rate of a link.
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

    /// Who moved most in these seconds, in the direction in which more was moved.
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

/// Which way the bytes of a role go mostly.
fn direction(role: &Role) -> Direction {
    match role.workload {
        Workload::Bulk { direction, .. } => direction,
        _ => Direction::Down,
    }
}

/// Round trips of one second, in microseconds; none where nothing came.
struct Trips {
    seconds: Vec<Vec<u64>>,
    by: MeasuredBy,
}

/// Packets where a role sends any, else the client's own requests.
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

/// Looks for a queue in the record of a person; `packets` are the events of the roles that send packets, without
/// those that do not count.
#[must_use]
pub fn find(record: &PersonRecord, packets: &[Vec<RecordEvent>], load: &LinkLoad) -> Option<Queue> {
    let idle = match record.start.idle_median_us {
        0 => record.start.idle_us,
        median => median,
    };
    let limit = idle.saturating_add(QUEUED.max(idle / 4));
    let trips = trips(record, packets);
    // The lower quartile: one lost request is no queue.
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
