//! Values over several snapshots: rates of counters, means of levels, and values derived from them. Pure.

mod asked_part;
mod counted_syncs;
mod curves;
mod derived;
mod disk_numbers;
mod guest_disks;
mod memory_growth;
mod stuck;
mod waiting;

use crate::WatchSubject;
use crate::machine_snapshot::{EntityKind, MachineSnapshot, Numbers, TOTAL};
use std::collections::BTreeMap;

/// An entity over the whole window.
#[derive(Clone, Debug)]
pub struct WatchedEntity {
    /// Kind of the entity.
    pub kind: EntityKind,
    /// Identity.
    pub id: String,
    /// Name, not escaped.
    pub name: String,
    /// Rates of counters per second, and mean levels. Each level also has `NAME.max`, `NAME.min` and `NAME.last`.
    pub numbers: Numbers,
    /// Texts of the last snapshot, not escaped.
    pub texts: BTreeMap<String, String>,
    /// Whether the entity belongs to the watched subject.
    pub is_asked: bool,
}

impl WatchedEntity {
    /// Returns a number; 0 when it is missing.
    #[must_use]
    pub fn number(&self, key: &str) -> f64 {
        self.numbers.get(key).copied().unwrap_or(0.0)
    }
}

/// A value over time: pairs of seconds since the first look and the value of the interval that ends
/// there.
pub type Curve = Vec<(f64, f64)>;

/// Values of a machine over the duration of a watch.
#[derive(Clone, Debug)]
pub struct WatchWindow {
    /// Seconds from the first snapshot to the last.
    pub seconds: f64,
    /// Number of snapshots.
    pub looks: usize,
    /// The whole machine; `kind` is [`EntityKind::Machine`].
    pub machine: WatchedEntity,
    /// Entities of the machine.
    pub entities: Vec<WatchedEntity>,
    /// Waiting of the watched subject by class, in task-seconds per second.
    pub waiting: BTreeMap<String, f64>,
    /// Curves of the machine by name.
    pub curves: BTreeMap<String, Curve>,
    /// Sources that could not be read.
    pub missing: Vec<String>,
    /// Control groups of the watched subject.
    pub groups: Vec<String>,
}

impl WatchWindow {
    /// Computes a window from snapshots. With fewer than two snapshots, all values are zero.
    #[must_use]
    pub fn new(looks: &[MachineSnapshot], thing: &WatchSubject) -> Self {
        let first = looks.first().map_or(0, |look| look.at_ms);
        let last = looks.last().map_or(0, |look| look.at_ms);
        let seconds = last.saturating_sub(first) as f64 / 1000.0;
        let mut machine = Gathered::default();
        let mut entities: BTreeMap<(EntityKind, &str), Gathered> = BTreeMap::new();
        let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
        let boot = looks
            .first()
            .and_then(|look| look.machine.get("uptime"))
            .copied();
        for (number, look) in looks.iter().enumerate() {
            let previous = number.checked_sub(1).and_then(|number| looks.get(number));
            machine.add(&look.machine, false, look.at_ms);
            machine.texts.extend(look.texts.clone());
            if let Some(previous) = previous {
                curves::add_points(&mut curves, previous, look, first);
            }
            for entity in &look.entities {
                let key = (entity.kind, entity.id.as_str());
                let gathered = entities.entry(key).or_default();
                // A process that started within the window counted from zero.
                let is_new = boot
                    .zip(entity.numbers.get("started"))
                    .is_some_and(|(boot, started)| *started > boot);
                gathered.add(&entity.numbers, is_new && number > 0, look.at_ms);
                gathered.name.clone_from(&entity.name);
                gathered.texts.extend(entity.texts.clone());
            }
        }
        let mut missing: Vec<String> = looks.iter().flat_map(|look| look.missing.clone()).collect();
        missing.sort();
        missing.dedup();
        let entities = entities
            .into_iter()
            .map(|((kind, id), gathered)| gathered.finish(kind, id, seconds, looks.len()))
            .collect();
        let mut window = Self {
            seconds,
            looks: looks.len(),
            machine: machine.finish(EntityKind::Machine, "machine", seconds, looks.len()),
            entities,
            waiting: BTreeMap::new(),
            curves,
            missing,
            groups: Vec::new(),
        };
        derived::complete(&mut window, thing);
        window
    }

    /// Returns the entities of a kind.
    pub fn of_kind(&self, kind: EntityKind) -> impl Iterator<Item = &WatchedEntity> {
        self.entities
            .iter()
            .filter(move |entity| entity.kind == kind)
    }
}

/// A level over several snapshots.
#[derive(Default)]
struct Level {
    sum: f64,
    count: f64,
    most: f64,
    least: Option<f64>,
    last: f64,
    /// How often the level was lower than in the previous snapshot.
    falls: f64,
}

/// Levels for which the number of falls matters: a level that only grows is a leak or a growing queue.
const GROWING: [&str; 2] = ["memory", "children"];

/// Growth of a counter, and the times of its first and last value.
struct Growth {
    sum: f64,
    first_ms: u64,
    last_ms: u64,
}

/// Numbers of one entity over all snapshots.
#[derive(Default)]
struct Gathered {
    name: String,
    counters: Numbers,
    growth: BTreeMap<String, Growth>,
    levels: BTreeMap<String, Level>,
    texts: BTreeMap<String, String>,
}

impl Gathered {
    /// Adds a snapshot. With `is_new`, the entity is new, so its counters are assumed to have started from zero.
    fn add(&mut self, numbers: &Numbers, is_new: bool, at_ms: u64) {
        for (key, value) in numbers {
            if !value.is_finite() {
                continue;
            }
            match key.strip_suffix(TOTAL) {
                Some(name) => {
                    // A counter that was reset has an unknown increase.
                    let base = self.counters.insert(key.clone(), *value);
                    let base = base.or(is_new.then_some(0.0)).unwrap_or(*value);
                    let growth = self.growth.entry(name.to_owned()).or_insert(Growth {
                        sum: 0.0,
                        first_ms: at_ms,
                        last_ms: at_ms,
                    });
                    growth.sum += (value - base).max(0.0);
                    growth.last_ms = at_ms;
                }
                None => {
                    let level = self.levels.entry(key.clone()).or_default();
                    level.sum += value;
                    level.count += 1.0;
                    level.most = level.most.max(*value);
                    level.least = Some(level.least.map_or(*value, |least| least.min(*value)));
                    if level.count > 1.0 && *value < level.last {
                        level.falls += 1.0;
                    }
                    level.last = *value;
                }
            }
        }
    }

    fn finish(self, kind: EntityKind, id: &str, seconds: f64, looks: usize) -> WatchedEntity {
        let mut numbers = Numbers::new();
        // What is read in some looks only has grown from the first of them to the last.
        let is_read_seldom = matches!(kind, EntityKind::GuestDisk | EntityKind::Interface);
        for (key, growth) in self.growth {
            let read = growth.last_ms.saturating_sub(growth.first_ms) as f64 / 1000.0;
            let seconds = if is_read_seldom { read } else { seconds };
            let rate = if seconds > 0.0 {
                growth.sum / seconds
            } else {
                0.0
            };
            numbers.insert(key, rate);
        }
        for (key, level) in self.levels {
            // A task that waited in few of the looks waited little: missing looks count as zero.
            let is_sampled = key.starts_with("wait.")
                || key.starts_with("asleep")
                || (kind == EntityKind::Listener && key == "queue");
            let count = match is_sampled || key == "ready" {
                true => looks as f64,
                false => level.count,
            };
            numbers.insert(format!("{key}.max"), level.most);
            numbers.insert(format!("{key}.min"), level.least.unwrap_or(0.0));
            numbers.insert(format!("{key}.last"), level.last);
            if GROWING.contains(&key.as_str()) {
                numbers.insert(format!("{key}.falls"), level.falls);
            }
            if kind == EntityKind::Listener && key == "queue" {
                let seen = level.count / looks.max(1) as f64;
                numbers.insert("queue.seen".to_owned(), seen);
            }
            numbers.insert(key, level.sum / count.max(1.0));
        }
        WatchedEntity {
            kind,
            id: id.to_owned(),
            name: if self.name.is_empty() {
                id.to_owned()
            } else {
                self.name
            },
            numbers,
            texts: self.texts,
            is_asked: false,
        }
    }
}
