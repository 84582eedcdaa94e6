//! Measures how a dataset, its snapshot and its clone diverge, in a pool in a guest.

use super::zpool::{POOL, Pools, rounded_bytes};
use crate::{BenchContext, Outline, StudyBench, StudyError, settings, to_observation};
use assay_model::Bytes;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use assay_planner::clones::{Graph, PROPERTIES, parse_zfs_get, report};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

const ORIGIN: &str = "study/story/demo";
const CLONE: &str = "study/story/clone";

/// Point of the scenario at which the space is measured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    until: State,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// The dataset was created and filled with data.
    Filled,
    /// A snapshot of the dataset and a clone of the snapshot exist.
    Cloned,
    /// The data is deleted from the origin.
    Emptied,
    /// New data is written to the origin.
    Refilled,
    /// Different new data is written to the clone.
    Diverged,
    /// The clone is promoted, so that it owns the snapshot.
    Promoted,
    /// The clone is promoted. Then the old origin and the snapshot are destroyed.
    Freed,
    /// The datasets diverged. Then the snapshot was destroyed with `-R`.
    Destroyed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    of: Of,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Of {
    /// `used` of the origin, as a multiple of the data. All figures up to `planned-used-clone` are multiples of the
    /// data.
    UsedOrigin,
    /// `referenced` of the origin.
    ReferOrigin,
    /// `usedbysnapshots` of the origin.
    BySnapshotsOrigin,
    /// `used` of the snapshot.
    UsedSnapshot,
    /// `used` of the clone.
    UsedClone,
    /// `referenced` of the clone.
    ReferClone,
    /// `written` of the clone.
    WrittenClone,
    /// `logicalused` of the clone.
    LogicalClone,
    /// Total space of origin, snapshot and clone.
    Together,
    /// `used` of the origin after a promotion, as `assay plan clones` predicts it.
    PlannedUsedOrigin,
    /// `used` of the clone after a promotion, as `assay plan clones` predicts it.
    PlannedUsedClone,
    /// 1 if `zfs destroy` refuses the snapshot.
    SnapshotRefused,
    /// 1 if `zfs destroy -r` refuses the origin.
    OriginRefused,
    /// 1 if the clone exists and contains every byte that was written into it.
    CloneThere,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Size {
    /// Number of bytes that are written as the data.
    data: Bytes,
    /// Record size of the datasets in bytes.
    record: Bytes,
}

/// Bench that creates the datasets, the snapshot and the clone, and measures their space.
pub(super) struct Clones<'a> {
    place: &'a BenchContext<'a>,
    size: Size,
    pools: Option<Pools>,
}

/// ZFS properties of all datasets at one point of the scenario, in bytes.
struct SpaceSnapshot {
    values: BTreeMap<(String, String), u64>,
    planned: Option<(u64, u64)>,
    snapshot: String,
}

impl SpaceSnapshot {
    fn of(&self, name: &str, property: &str) -> Option<u64> {
        let key = (name.to_owned(), property.to_owned());
        self.values.get(&key).copied()
    }
}

impl<'a> Clones<'a> {
    pub fn new(place: &'a BenchContext<'a>) -> Self {
        Self {
            place,
            size: Size::default(),
            pools: None,
        }
    }

    fn pools(&self) -> Result<&Pools, StudyError> {
        let none = || StudyError::measure("a pool", "there is no guest");
        self.pools.as_ref().ok_or_else(none)
    }

    /// Writes data into a dataset. Each write has its own blocks, because a copy-on-write file system shares blocks
    /// between clones by reference, and not because of equal content.
    fn fill(&self, dataset: &str) -> Result<(), StudyError> {
        let path = format!("/{dataset}/data");
        self.pools()?.write(&path, self.size.data.0).map(drop)
    }

    fn sums(&self, dataset: &str) -> Result<String, StudyError> {
        let sums = format!("cat /{dataset}/data.* | sha256sum");
        self.pools()?.run(&["sh", "-c", &sums])
    }

    fn tell(&self, until: State) -> Result<SpaceSnapshot, StudyError> {
        let pools = self.pools()?;
        let zfs = |words: &[&str]| pools.run(&[&["zfs"], words].concat()).map(drop);
        let snapshot = format!("{ORIGIN}@parent");
        let story = format!("{POOL}/story");
        if pools.succeeds(&["zfs", "list", &story])? {
            zfs(&["destroy", "-R", &story])?;
        }
        zfs(&["create", &story])?;
        zfs(&["create", ORIGIN])?;
        self.fill(ORIGIN)?;
        let data = format!("rm /{ORIGIN}/data.*");
        if until >= State::Cloned {
            zfs(&["snapshot", &snapshot])?;
            zfs(&["clone", &snapshot, CLONE])?;
        }
        if until >= State::Emptied {
            pools.run(&["sh", "-c", &data])?;
        }
        if until >= State::Refilled {
            self.fill(ORIGIN)?;
        }
        if until >= State::Diverged {
            self.fill(CLONE)?;
        }
        pools.run(&["zpool", "sync"])?;
        let mut picture = self.picture(&story, snapshot)?;
        match until {
            State::Promoted | State::Freed => {
                let before = self.sums(CLONE)?;
                zfs(&["promote", CLONE])?;
                let moved = format!("{CLONE}@parent");
                if until == State::Freed {
                    zfs(&["destroy", ORIGIN])?;
                    zfs(&["destroy", &moved])?;
                }
                pools.run(&["zpool", "sync"])?;
                let planned = picture.planned;
                picture = self.picture(&story, moved)?;
                picture.planned = planned;
                if self.sums(CLONE)? != before {
                    return Err(StudyError::measure(
                        "zfs promote",
                        "the clone's data changed",
                    ));
                }
            }
            State::Destroyed => {
                zfs(&["destroy", "-R", &picture.snapshot])?;
                pools.run(&["zpool", "sync"])?;
                picture = self.picture(&story, picture.snapshot)?;
            }
            _ => {}
        }
        Ok(picture)
    }

    fn picture(&self, story: &str, snapshot: String) -> Result<SpaceSnapshot, StudyError> {
        let kinds = "filesystem,volume,snapshot";
        let wanted = format!("{PROPERTIES},logicalused");
        let argv = ["zfs", "get", "-Hp", "-r", "-t", kinds, &wanted, story];
        let text = self.pools()?.run(&argv)?;
        let fail = |error: assay_planner::PlannerError| StudyError::measure("zfs get", error);
        let mut values = BTreeMap::new();
        for line in text.lines() {
            if let [name, property, value, ..] = line.split('\t').collect::<Vec<_>>()[..]
                && let Ok(value) = value.parse()
            {
                values.insert((name.to_owned(), property.to_owned()), value);
            }
        }
        let graph = Graph::new(parse_zfs_get("zfs get -Hp", &text).map_err(fail)?).map_err(fail)?;
        let clones = report(&graph, None).map_err(fail)?.clones;
        let planned = clones.iter().find(|clone| clone.name == CLONE);
        let planned = planned.and_then(|clone| {
            clone
                .promote
                .origin_used_after
                .zip(clone.promote.clone_used_after)
        });
        Ok(SpaceSnapshot {
            values,
            planned,
            snapshot,
        })
    }

    fn figure(&self, of: Of, picture: &SpaceSnapshot) -> Result<Option<f64>, StudyError> {
        let pools = self.pools()?;
        let there = |name: &str| picture.of(name, "used").is_some();
        let refused = |argv: &[&str]| Ok(Some(f64::from(!pools.succeeds(argv)?)));
        let bytes = match of {
            Of::UsedOrigin => picture.of(ORIGIN, "used"),
            Of::ReferOrigin => picture.of(ORIGIN, "referenced"),
            Of::BySnapshotsOrigin => picture.of(ORIGIN, "usedbysnapshots"),
            Of::UsedSnapshot => picture.of(&picture.snapshot, "used"),
            Of::UsedClone => picture.of(CLONE, "used"),
            Of::ReferClone => picture.of(CLONE, "referenced"),
            Of::WrittenClone => picture.of(CLONE, "written"),
            Of::LogicalClone => picture.of(CLONE, "logicalused"),
            Of::Together => picture.of(&format!("{POOL}/story"), "usedbychildren"),
            Of::PlannedUsedOrigin => picture.planned.map(|planned| planned.0),
            Of::PlannedUsedClone => picture.planned.map(|planned| planned.1),
            // Dry runs: a real destroy would be refused for the same reasons.
            Of::SnapshotRefused if there(&picture.snapshot) => {
                return refused(&["zfs", "destroy", "-n", &picture.snapshot]);
            }
            Of::OriginRefused if there(ORIGIN) => {
                return refused(&["zfs", "destroy", "-n", "-r", ORIGIN]);
            }
            Of::CloneThere => return Ok(Some(f64::from(there(CLONE)))),
            Of::SnapshotRefused | Of::OriginRefused => None,
        };
        Ok(bytes.map(|bytes| bytes as f64 / rounded_bytes(self.size.data.0) as f64))
    }
}

impl StudyBench for Clones<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        let size: Size = settings::of_form(form)?;
        for figure in study.measured() {
            settings::of_figure::<Wanted>(figure)?;
        }
        for one in study.tried(form) {
            settings::of_configuration::<Told>(one)?;
        }
        Ok(Outline {
            makes: vec![format!(
                "one guest with a pool of one sparse disk; up to three times {} are written",
                Bytes(rounded_bytes(size.data.0))
            )],
            leaves_out: Vec::new(),
            guest: true,
            setup: Duration::from_secs(90),
            step: Duration::from_secs(8 + size.data.0 / (4 << 20)),
        })
    }

    fn begin(&mut self, _: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        self.size = settings::of_form(form)?;
        let size = (rounded_bytes(self.size.data.0) * 4).max(512 << 20);
        let pools = Pools::boot(self.place, "clones", &[("disk".to_owned(), size)])?;
        pools.create(self.size.record.0, &[pools.node("disk")])?;
        self.pools = Some(pools);
        Ok(Vec::new())
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        self.place.go_on()?;
        let told: Told = settings::of_configuration(configuration)?;
        let picture = self.tell(told.until)?;
        let mut all = Vec::new();
        for figure in figures {
            let of = settings::of_figure::<Wanted>(figure)?.of;
            let value = self.figure(of, &picture)?;
            all.extend(value.map(|value| to_observation(configuration, figure, round, value)));
        }
        Ok(all)
    }

    fn machine(&self) -> Vec<(String, String)> {
        self.pools.as_ref().map_or_else(Vec::new, Pools::machine)
    }

    fn emulated(&self) -> bool {
        self.pools.as_ref().is_some_and(Pools::emulated)
    }
}
