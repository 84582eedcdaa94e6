//! Machines whose truth is known.

use crate::noise::normal;
use assay_tune::Row;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

/// Gains flatten above this (ln).
const FLAT: f64 = 0.64;

/// What is true of a machine. Effects are ln of the rate.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Of each setting by itself.
    pub effects: Vec<f64>,
    /// Of two together, on top.
    pub together: Vec<(usize, usize, f64)>,
    /// ln of the rise of p99.
    pub tail: Vec<(usize, f64)>,
    /// Settings with which the load fails, alone or beside another.
    pub breaks: Vec<(usize, Option<usize>)>,
    /// A setting with which one slot in so many is three times slower.
    pub stalls: Option<(usize, f64)>,
    /// A setting whose effect is gone after so many seconds.
    pub evaporates: Option<(usize, f64)>,
    /// A setting that has its effect only while so many seconds have passed since the last change.
    pub works: Option<(usize, Range<f64>)>,
}

impl World {
    /// So many settings that do nothing.
    pub fn still(settings: usize) -> Self {
        Self {
            effects: vec![0.0; settings],
            ..Self::default()
        }
    }

    /// ln of the rate with these on, after so many seconds, long after the last change.
    pub fn value(&self, row: &Row, seconds: f64) -> f64 {
        self.value_at_age(row, seconds, f64::MAX)
    }

    /// The same, so many seconds after the last change.
    fn value_at_age(&self, row: &Row, seconds: f64, age: f64) -> f64 {
        let gone = |at: &usize| {
            self.evaporates
                .is_some_and(|(of, end)| of == *at && seconds > end)
                || (self.works.as_ref()).is_some_and(|(of, ages)| of == at && !ages.contains(&age))
        };
        let alone: f64 = row
            .iter()
            .filter(|at| !gone(at))
            .map(|at| self.effects[*at])
            .sum();
        let both = |(a, b, _): &&(usize, usize, f64)| row.contains(a) && row.contains(b);
        let extra: f64 = self
            .together
            .iter()
            .filter(both)
            .map(|(_, _, effect)| effect)
            .sum();
        let stalls = match self.stalls {
            Some((at, share)) if row.contains(&at) => -(1.0 + 2.0 * share).ln(),
            _ => 0.0,
        };
        flatten(alone + extra) + stalls
    }

    /// The same without the rare stalls: what a slot without one measures.
    pub fn slot_value(&self, row: &Row, seconds: f64, age: f64, random: &mut ChaCha8Rng) -> f64 {
        let quiet = Self {
            stalls: None,
            ..self.clone()
        };
        let stalled = self
            .stalls
            .is_some_and(|(at, share)| row.contains(&at) && random.random::<f64>() < share);
        quiet.value_at_age(row, seconds, age) - if stalled { 3f64.ln() } else { 0.0 }
    }

    /// ln of the rise of p99.
    pub fn tail(&self, row: &Row) -> f64 {
        let on = self.tail.iter().filter(|(at, _)| row.contains(at));
        on.map(|(_, rise)| rise).sum()
    }

    /// Whether the load fails.
    pub fn fails(&self, row: &Row) -> bool {
        self.breaks.iter().any(|(at, beside)| {
            row.contains(at) && beside.is_none_or(|beside| row.contains(&beside))
        })
    }

    /// The best that some row reaches whose p99 rises by at most this (ln), by climbing from each
    /// setting: exact for the few settings that matter here.
    pub fn attainable(&self, tail: f64) -> f64 {
        let n = self.effects.len();
        let lawful = |row: &Row| self.tail(row) <= tail && !self.fails(row);
        let climb = |mut row: Row| {
            loop {
                let now = self.value(&row, 0.0);
                let steps = (0..n).map(|at| {
                    let mut next = row.clone();
                    if !next.remove(&at) {
                        next.insert(at);
                    }
                    next
                });
                let best = steps
                    .filter(lawful)
                    .max_by(|a, b| self.value(a, 0.0).total_cmp(&self.value(b, 0.0)));
                match best {
                    Some(next) if self.value(&next, 0.0) > now + 1e-9 => row = next,
                    _ => return now,
                }
            }
        };
        let starts = (0..n)
            .map(|at| Row::from([at]))
            .chain([Row::new()])
            .filter(lawful);
        starts.map(climb).fold(0.0, f64::max)
    }

    /// Whether a piece of a row does nothing there.
    pub fn is_useless(&self, row: &Row, at: usize) -> bool {
        let mut without = row.clone();
        without.remove(&at);
        self.value(row, 0.0) - self.value(&without, 0.0) < 1e-6
    }
}

fn flatten(sum: f64) -> f64 {
    if sum > FLAT {
        FLAT + 0.25 * (sum - FLAT)
    } else {
        sum
    }
}

/// A machine drawn by chance: in a third of them nothing helps; else one to four settings by +3 to
/// +40 %; three hurt by 3 to 29 %; some pairs interact.
pub fn draw(settings: usize, random: &mut ChaCha8Rng) -> World {
    let mut world = World::still(settings);
    let mut places: Vec<usize> = (0..settings).collect();
    for at in (1..settings).rev() {
        places.swap(at, random.random_range(0..=at));
    }
    let between =
        |low: f64, high: f64, random: &mut ChaCha8Rng| low + (high - low) * random.random::<f64>();
    let helpers = match random.random::<f64>() < 1.0 / 3.0 {
        true => 0,
        false => random.random_range(1..=4usize),
    };
    for at in &places[..helpers] {
        world.effects[*at] = between(1.03f64.ln().ln(), 1.4f64.ln().ln(), random).exp();
    }
    for at in &places[helpers..helpers + 3] {
        world.effects[*at] = -between(0.03, 0.34, random);
    }
    let harmless = places[helpers + 3];
    if helpers >= 2 && random.random::<f64>() < 0.35 {
        let second = places[1];
        world
            .together
            .push((places[0], second, -0.9 * world.effects[second]));
    }
    if helpers >= 1 && random.random::<f64>() < 0.2 {
        world.together.push((places[0], harmless, -0.2));
    }
    if helpers >= 1 && random.random::<f64>() < 0.2 {
        let only_beside = places[helpers + 4];
        world
            .together
            .push((places[0], only_beside, between(0.05, 0.2, random)));
    }
    world
}

/// What is expected of each setting: a diagnosis that is right three times in four.
pub fn priors(world: &World, random: &mut ChaCha8Rng) -> Vec<f64> {
    let likely = |effect: &f64| {
        let right = random.random::<f64>() < 0.75;
        let jitter = 0.01 * normal(random);
        (if (*effect > 0.0) == right { 0.4 } else { 0.1 }) + jitter
    };
    world.effects.iter().map(likely).collect()
}
