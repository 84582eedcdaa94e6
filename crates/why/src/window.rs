//! Values over several looks: rates of counters, means of levels, and values derived from them. Pure.

mod curves;
mod derived;
mod disk_numbers;
mod waiting;

use crate::WatchSubject;
use crate::machine_look::{EntityKind, MachineLook, Numbers, TOTAL};
use std::collections::BTreeMap;

/// An entity over the whole window.
#[derive(Clone, Debug)]
pub struct WatchedEntity {
    /// What it is.
    pub kind: EntityKind,
    /// Identity.
    pub id: String,
    /// Name, not escaped.
    pub name: String,
    /// Rates per second and mean levels. A level also has `NAME.max` and `NAME.last`.
    pub numbers: Numbers,
    /// Its last texts, not escaped.
    pub texts: BTreeMap<String, String>,
    /// Whether it belongs to the subject of the user.
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

/// A machine over some time.
#[derive(Clone, Debug)]
pub struct WatchWindow {
    /// Seconds from the first look to the last.
    pub seconds: f64,
    /// Number of looks.
    pub looks: usize,
    /// The whole machine; `kind` is [`EntityKind::Machine`].
    pub machine: WatchedEntity,
    /// What it has.
    pub entities: Vec<WatchedEntity>,
    /// Waiting of the subject by class, in task-seconds per second.
    pub waiting: BTreeMap<String, f64>,
    /// Curves of the machine by name.
    pub curves: BTreeMap<String, Curve>,
    /// What could not be read.
    pub missing: Vec<String>,
    /// Control groups of the subject.
    pub groups: Vec<String>,
}

impl WatchWindow {
    /// Computes a window from looks. With fewer than two looks, all values are zero.
    #[must_use]
    pub fn new(looks: &[MachineLook], thing: &WatchSubject) -> Self {
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
            machine.add(&look.machine, false);
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
                gathered.add(&entity.numbers, is_new && number > 0);
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

    /// Entities of a kind.
    pub fn of_kind(&self, kind: EntityKind) -> impl Iterator<Item = &WatchedEntity> {
        self.entities
            .iter()
            .filter(move |entity| entity.kind == kind)
    }
}

/// A level over several looks.
#[derive(Default)]
struct Level {
    sum: f64,
    count: f64,
    most: f64,
    last: f64,
}

/// Numbers of one entity over all looks.
#[derive(Default)]
struct Gathered {
    name: String,
    counters: Numbers,
    growth: BTreeMap<String, f64>,
    levels: BTreeMap<String, Level>,
    texts: BTreeMap<String, String>,
}

impl Gathered {
    /// Adds a look. `is_new`: counters that appear for the first time started from zero.
    fn add(&mut self, numbers: &Numbers, is_new: bool) {
        for (key, value) in numbers {
            if !value.is_finite() {
                continue;
            }
            match key.strip_suffix(TOTAL) {
                Some(name) => {
                    // A counter that was reset has an unknown increase.
                    let base = self.counters.insert(key.clone(), *value);
                    let base = base.or(is_new.then_some(0.0)).unwrap_or(*value);
                    *self.growth.entry(name.to_owned()).or_default() += (value - base).max(0.0);
                }
                None => {
                    let level = self.levels.entry(key.clone()).or_default();
                    level.sum += value;
                    level.count += 1.0;
                    level.most = level.most.max(*value);
                    level.last = *value;
                }
            }
        }
    }

    fn finish(self, kind: EntityKind, id: &str, seconds: f64, looks: usize) -> WatchedEntity {
        let mut numbers = Numbers::new();
        for (key, growth) in self.growth {
            numbers.insert(key, if seconds > 0.0 { growth / seconds } else { 0.0 });
        }
        for (key, level) in self.levels {
            // A task that waited in few of the looks waited little: missing looks count as zero.
            let count = match key.starts_with("wait.") || key == "ready" {
                true => looks as f64,
                false => level.count,
            };
            numbers.insert(format!("{key}.max"), level.most);
            numbers.insert(format!("{key}.last"), level.last);
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
