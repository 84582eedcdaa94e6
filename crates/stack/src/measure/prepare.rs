//! Everything that is settled before anything is made.

use super::ladder::{Choice, On, Recipe, settle};
use super::part::Part;
use super::{Environment, MeasureError};
use assay_host::Host;
use assay_instruments::fio::Fio;
use assay_lab::{Accel, Disk};
use assay_model::ladder::{Ladder, RungPlace};
use assay_model::plan::{Plan, PlanSpec, Settings};
use assay_model::run::{Origin, Run, RunId, RunState};
use assay_model::target::TargetKind;
use assay_model::workload::Engine;
use assay_model::{Bytes, Nanos, TargetInfo};
use assay_runner::estimate::{self, Pace};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

/// What the user wants.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// A directory on the storage to measure, absolute.
    pub target: PathBuf,
    /// Layers.
    pub parts: BTreeSet<Part>,
    /// The virtual disk: format, bus, cache mode, aio, thread. Its size is not used.
    pub disk: Disk,
    /// Workloads, rounds, times, size of the test file. Targets are the rungs.
    pub plan: PlanSpec,
    /// Memory of the guest, MiB.
    pub memory_mib: u32,
    /// KVM or TCG; found out when none.
    pub accel: Option<Accel>,
}

/// Something that will be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The rung it is for.
    pub rung: String,
    /// In words: `file`, `qcow2 image over NBD`, `guest disk, LUKS, ext4`.
    pub what: String,
    /// Space it takes at most.
    pub space: Bytes,
}

/// A ladder that can be measured.
pub struct Prepared {
    /// The run as it will be stored.
    pub run: Run,
    /// What will be made, all of it in the target directory.
    pub makes: Vec<Made>,
    /// How long it takes, roughly.
    pub estimate: Nanos,
    pub(crate) recipes: Vec<Recipe>,
    pub(crate) wanted: Wanted,
    pub(crate) fio: Fio,
    pub(crate) paces: Paces,
}

/// Size of the test file when the plan does not say.
const SIZE: Bytes = Bytes(256 << 20);
/// Measured time of a sample when the plan does not say.
const RUNTIME: Nanos = Nanos(2_000_000_000);
/// Until an emulated guest answers.
const BOOT: Nanos = Nanos(60_000_000_000);

/// How much longer a sample takes than its load, here and in a guest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paces {
    pub host: Pace,
    pub guest: Pace,
}

impl Paces {
    fn new() -> Self {
        let pace = |overhead| Pace {
            layout: None,
            overhead: Nanos(overhead),
        };
        Self {
            host: pace(400_000_000),
            guest: pace(2_000_000_000),
        }
    }

    pub(crate) fn of(&mut self, place: RungPlace) -> &mut Pace {
        match place {
            RungPlace::Guest => &mut self.guest,
            RungPlace::Host | RungPlace::Nbd => &mut self.host,
        }
    }

    /// Time for what is left of the plan after `done` slots.
    pub(crate) fn left(&self, run: &Run, done: usize) -> Nanos {
        let guest = |target: usize| {
            let rung = run
                .ladder
                .as_ref()
                .and_then(|ladder| ladder.rungs.get(target));
            rung.is_some_and(|rung| rung.place == RungPlace::Guest)
        };
        let slots = run.plan.order.get(done..).unwrap_or_default();
        let part = |wanted: bool, pace: &Pace| {
            let ours = slots.iter().filter(|slot| guest(slot.target) == wanted);
            estimate::slots(&run.plan, ours, pace).0
        };
        Nanos(part(true, &self.guest).saturating_add(part(false, &self.host)))
    }
}

/// Settles the ladder, the plan and what will be made; touches nothing.
///
/// # Errors
/// The target is no directory, may not be written or is too full; no fio; a plan that cannot be
/// carried out.
pub fn prepare(wanted: &Wanted, env: &Environment<'_>) -> Result<Prepared, MeasureError> {
    let host: &dyn Host = env.host;
    let fio = Fio::find(host, env.fio)?;
    fio.has_engine(host, Engine::Libaio)?;
    let mut spec = wanted.plan.clone();
    spec.file_size = spec.file_size.or(Some(SIZE));
    spec.runtime = spec.runtime.or(Some(RUNTIME));
    let info = assay_facts::target(host, &wanted.target)?;
    let name = wanted.target.display().to_string();
    if info.kind != TargetKind::Directory {
        return Err(MeasureError::NotADirectory(name.escape_debug().to_string()));
    }
    let disk = Disk {
        size: spec.file_size.unwrap_or(SIZE).0,
        dir: Some(wanted.target.clone()),
        ..wanted.disk.clone()
    };
    let (ladder, recipes) = settle(&Choice {
        target: &name,
        parts: &wanted.parts,
        disk: &disk,
        no_image: no_image(host, &fio),
        no_guest: env.lab.as_ref().err().cloned(),
    });
    let mut plan = spec.resolve(&Settings {
        targets: ladder.rungs.iter().map(|rung| rung.name.clone()).collect(),
        // The same on every rung, so that the engine is none of the differences.
        engine: Engine::Libaio,
        seed: env.seed,
    })?;
    order(&mut plan, &ladder);
    let makes = makes(&ladder, &recipes, plan.file_size);
    let space = Bytes(makes.iter().map(|made| made.space.0).sum());
    let fits = TargetInfo {
        name: name.clone(),
        size: space,
        ..info.clone()
    };
    assay_runner::scratch_fits(&fits, &wanted.target)?;
    let targets = ladder.rungs.iter().map(|rung| TargetInfo {
        name: rung.name.clone(),
        kind: match rung.name.starts_with("file") {
            true => TargetKind::Directory,
            false => TargetKind::BlockDevice,
        },
        size: plan.file_size,
        ..info.clone()
    });
    let targets: Vec<TargetInfo> = targets.collect();
    let facts = assay_facts::collect(
        host,
        &assay_facts::Options {
            with_identity: false,
            targets: std::slice::from_ref(&wanted.target),
        },
    );
    let run = Run {
        id: RunId(0),
        uid: env.uid.clone(),
        assay_version: env.version.to_owned(),
        started: (env.now)(),
        ended: None,
        state: RunState::Running,
        origin: Origin::Measured,
        facts: assay_runner::relevant(facts, &targets),
        plan,
        targets,
        remarks: fio.remark.clone().into_iter().collect(),
        ladder: Some(ladder),
    };
    let paces = Paces::new();
    let booted = recipes
        .iter()
        .any(|recipe| matches!(recipe, Recipe::Disk { .. }));
    let laid_out = estimate::layout(
        Bytes(run.plan.file_size.0 * makes.len() as u64),
        &paces.host,
    );
    let boot = if booted { BOOT.0 } else { 0 };
    Ok(Prepared {
        estimate: Nanos(paces.left(&run, 0).0 + laid_out.0 + boot),
        run,
        makes,
        recipes,
        wanted: Wanted {
            disk,
            ..wanted.clone()
        },
        fio,
        paces,
    })
}

/// Why images cannot be served here.
fn no_image(host: &dyn Host, fio: &Fio) -> Option<String> {
    let missing = |names: &[&str]| {
        names
            .iter()
            .all(|name| host.which(OsStr::new(name)).is_none())
    };
    if missing(&["qemu-img"]) || missing(&["qemu-storage-daemon", "qemu-nbd"]) {
        let why = "qemu-img, and qemu-nbd or qemu-storage-daemon, are not installed: `apt install qemu-utils`";
        return Some(why.to_owned());
    }
    let engine = fio.has_engine(host, Engine::Nbd);
    engine.err().map(|error| error.to_string())
}

/// Round by round, workload by workload, all rungs in an order that the seed chooses: what is
/// compared lies close together in time. All rungs of a round meet the same offsets and data, second
/// measurements others, so that no cache below knows them.
fn order(plan: &mut Plan, ladder: &Ladder) {
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    let workloads = plan.workloads.len();
    let mut slots = std::mem::take(&mut plan.order);
    for slot in &mut slots {
        let again = ladder.rungs[slot.target].again.is_some();
        let number = u64::from(slot.round) * workloads as u64 + slot.workload as u64;
        slot.seed = plan.seed.wrapping_add(2 * number + u64::from(again)) & i64::MAX as u64;
    }
    for round in 1..=plan.rounds {
        let mut turn: Vec<usize> = (0..workloads).collect();
        turn.shuffle(&mut random);
        for workload in turn {
            let ours =
                |slot: &&assay_model::plan::Slot| slot.round == round && slot.workload == workload;
            let mut block: Vec<_> = slots.iter().filter(ours).copied().collect();
            block.shuffle(&mut random);
            plan.order.extend(block);
        }
    }
}

/// What a file system writes of its own into a fresh image: its log and tables.
const OWN: u64 = 160 << 20;

fn makes(ladder: &Ladder, recipes: &[Recipe], size: Bytes) -> Vec<Made> {
    let made = |(rung, recipe): (&assay_model::ladder::Rung, &Recipe)| {
        let (what, space) = match recipe {
            Recipe::File => ("file".to_owned(), size.0),
            Recipe::Image(arm) => {
                let format = match arm.format {
                    assay_model::change::ImageFormat::Raw => "raw",
                    assay_model::change::ImageFormat::Qcow2 => "qcow2",
                };
                (
                    format!("{format} image over NBD"),
                    size.0 + size.0 / 32 + (4 << 20),
                )
            }
            Recipe::Disk { disk, on } => {
                let layers = on.iter().map(|on| match on {
                    On::Luks => "LUKS",
                    On::Lvm => "LVM",
                    On::FileSystem(system) => system.name(),
                });
                let layers: Vec<&str> = std::iter::once("disk of a guest").chain(layers).collect();
                let own = if disk.size > size.0 + size.0 / 4 {
                    OWN
                } else {
                    32 << 20
                };
                (
                    format!("{} {}", disk.format.name(), layers.join(", ")),
                    size.0 + size.0 / 16 + own,
                )
            }
            Recipe::Again(_) => return None,
        };
        Some(Made {
            rung: rung.name.clone(),
            what,
            space: Bytes(space),
        })
    };
    ladder.rungs.iter().zip(recipes).filter_map(made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_lies_close_together_and_meets_the_same_offsets() {
        let disk = Disk::scratch("d", 64 << 20);
        let parts: BTreeSet<Part> = Part::ALL.into();
        let (ladder, _) = settle(&Choice {
            target: "/srv",
            parts: &parts,
            disk: &disk,
            no_image: None,
            no_guest: None,
        });
        let spec = PlanSpec::from_toml(super::super::DEFAULT_PLAN, "stack.toml").unwrap();
        let settings = Settings {
            targets: ladder.rungs.iter().map(|rung| rung.name.clone()).collect(),
            engine: Engine::Libaio,
            seed: 7,
        };
        let mut plan = spec.resolve(&settings).unwrap();
        let all = plan.order.len();
        order(&mut plan, &ladder);
        assert_eq!(plan.order.len(), all);
        let mut orders = BTreeSet::new();
        for block in plan.order.chunks(ladder.rungs.len()) {
            let (round, workload) = (block[0].round, block[0].workload);
            assert!(
                block
                    .iter()
                    .all(|slot| (slot.round, slot.workload) == (round, workload))
            );
            let again = |target: usize| ladder.rungs[target].again.is_some();
            let seeds = |wanted: bool| -> BTreeSet<u64> {
                let ours = block.iter().filter(|slot| again(slot.target) == wanted);
                ours.map(|slot| slot.seed).collect()
            };
            assert_eq!((seeds(true).len(), seeds(false).len()), (1, 1));
            assert_ne!(seeds(true), seeds(false));
            orders.insert(block.iter().map(|slot| slot.target).collect::<Vec<_>>());
        }
        assert!(orders.len() > 10, "every block has an order of its own");
    }
}
