//! Plans a measurement completely before anything is created.

use super::layer_names::{FileSystem, LadderPart};
use super::order::order;
use super::pace::Paces;
use super::rungs::{Choice, Recipe, settle};
use super::scratch_plan::{Made, Within, plan_scratch};
use super::sibling_layers::{Scratch, SiblingLayers, Volume, find_sibling_layers};
use super::{Environment, Lab, MeasureError, free_space};
use crate::{StackTarget, discover};
use assay_host::Host;
use assay_lab::{Accel, Disk};
use assay_loads::fio::Fio;
use assay_measure::runner::estimate;
use assay_model::plan::{PlanSpec, Settings};
use assay_model::run::{Origin, Run, RunId, RunState};
use assay_model::target::TargetKind;
use assay_model::workload::Engine;
use assay_model::{Bytes, Nanos, TargetInfo};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What the user wants to measure, and how.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Absolute path of a directory on the storage to measure.
    pub target: PathBuf,
    /// Layers that the user selected.
    pub parts: BTreeSet<LadderPart>,
    /// Pool or volume group in which volumes may be created.
    pub scratch: Scratch,
    /// Remarks to store with the run. They describe the disk whose settings are copied, and the settings that are not
    /// copied.
    pub remarks: Vec<String>,
    /// Settings of the virtual disk: format, bus, cache mode, aio, thread. Its size is not used.
    pub disk: Disk,
    /// Workloads, rounds, durations, and size of the test file. The targets are the measured layers.
    pub plan: PlanSpec,
    /// Memory of the guest in MiB.
    pub memory_mib: u32,
    /// Accelerator of the guest, KVM or TCG; `None` means that assay detects it.
    pub accel: Option<Accel>,
    /// Id of the run: 128 random bits in hex.
    pub uid: String,
    /// Seed that is used if the plan has no seed.
    pub seed: u64,
}

/// A stack measurement that has passed all checks and can begin.
pub struct PreparedLadder<'a> {
    /// Run, as it will be stored.
    pub run: Run,
    /// Objects that will be created.
    pub makes: Vec<Made>,
    /// Estimated duration of the measurement.
    pub estimate: Nanos,
    pub(crate) recipes: Vec<Recipe>,
    pub(crate) wanted: Wanted,
    /// Open directory on the storage to measure.
    pub(crate) on: assay_measure::runner::OpenTarget,
    pub(crate) fio: Fio,
    pub(crate) paces: Paces,
    /// Guest image and registry of guests; `None` if no guest is needed or possible.
    pub(crate) lab: Option<Lab<'a>>,
}

/// Default size of the test file.
const SIZE: Bytes = Bytes(256 << 20);
/// Default measured time of a sample.
const RUNTIME: Nanos = Nanos(2_000_000_000);
/// Approximate time until an emulated guest responds.
const BOOT: Nanos = Nanos(60_000_000_000);

/// Plans the ladder and its objects. Changes nothing. Without a `lab`, the layers in a guest are left out, with the
/// reason.
///
/// # Errors
/// The target is not a directory, not writable or too full; fio is missing; or the plan cannot be executed.
pub fn prepare<'a>(
    wanted: &Wanted,
    lab: Result<Lab<'a>, String>,
    env: &Environment<'_>,
) -> Result<PreparedLadder<'a>, MeasureError> {
    let host: &dyn Host = env.host;
    let fio = Fio::find(host, env.fio)?;
    fio.has_engine(host, Engine::Libaio)?;
    let mut spec = wanted.plan.clone();
    spec.file_size = spec.file_size.or(Some(SIZE));
    spec.runtime = spec.runtime.or(Some(RUNTIME));
    let name = wanted.target.display().to_string();
    let on = assay_measure::runner::OpenTarget::open(host, &name)?;
    let info = on.info().clone();
    if info.kind != TargetKind::Directory {
        return Err(MeasureError::NotADirectory(name.escape_debug().to_string()));
    }
    let disk = Disk {
        size: spec.file_size.unwrap_or(SIZE).0,
        dir: Some(wanted.target.clone()),
        ..wanted.disk.clone()
    };
    let ground = lies_on(host, wanted)?;
    let (ladder, recipes) = settle(&Choice {
        target: &name,
        parts: &wanted.parts,
        disk: &disk,
        ground: &ground,
        no_image: no_image(host, &fio),
        no_guest: lab.as_ref().err().cloned(),
        no_loop: find_missing_loop_layers(host),
    });
    let mut plan = spec.resolve(&Settings {
        targets: ladder.rungs.iter().map(|rung| rung.name.clone()).collect(),
        // Equal on every rung, so that the engine is not a difference.
        engine: Engine::Libaio,
        seed: wanted.seed,
    })?;
    if let Some(other) = plan.workloads.iter().find(|load| load.fio().is_none()) {
        return Err(MeasureError::Job {
            workload: other.name.clone(),
            reason:
                "the layers of a stack are measured with fio alone: give a pattern and a block_size"
                    .to_owned(),
        });
    }
    order(&mut plan, &ladder);
    let makes = plan_scratch(&ladder, &recipes, plan.file_size);
    has_room(host, wanted, &on, &makes)?;
    let pool_devices = pool_device_names(host, &ground);
    let of_pool = |parent: &str, info: TargetInfo| TargetInfo {
        fs_type: Some("zfs".to_owned()),
        mount_source: Some(parent.to_owned()),
        devices: match info.fs_type.as_deref() {
            Some("zfs") => info.devices,
            // The counters of a zvol do not separate the disks from the ARC.
            _ => pool_devices.clone(),
        },
        ..info
    };
    let targets = ladder.rungs.iter().zip(&recipes).map(|(rung, recipe)| {
        let recipe = match recipe {
            Recipe::Again(of) => &recipes[*of],
            own => own,
        };
        let info = TargetInfo {
            name: rung.name.clone(),
            kind: match recipe {
                Recipe::File | Recipe::Home(_) | Recipe::Loop(_) => TargetKind::Directory,
                _ => TargetKind::BlockDevice,
            },
            size: plan.file_size,
            ..info.clone()
        };
        match (recipe, &ground.home) {
            (Recipe::Volume(Volume::Dataset { parent, .. } | Volume::Zvol { parent, .. }), _)
            // Properties that it does not set are inherited from there.
            | (_, Some(Volume::Dataset { parent, .. })) => of_pool(parent, info),
            _ => info,
        }
    });
    let targets: Vec<TargetInfo> = targets.collect();
    let survey = assay_facts::survey(host, std::slice::from_ref(&wanted.target));
    let mut facts = survey.about(&targets);
    env.enter_open_changes(&mut facts);
    let run = Run {
        id: RunId(0),
        uid: wanted.uid.clone(),
        assay_version: env.version.to_owned(),
        started: (env.now)(),
        ended: None,
        state: RunState::Running,
        origin: Origin::Measured,
        facts,
        plan,
        targets,
        remarks: fio.remark.iter().chain(&wanted.remarks).cloned().collect(),
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
    Ok(PreparedLadder {
        estimate: paces.left(&run, 0).and(laid_out).and(Nanos(boot)),
        run,
        makes,
        recipes,
        wanted: Wanted {
            disk,
            ..wanted.clone()
        },
        on,
        fio,
        paces,
        lab: lab.ok(),
    })
}

/// Returns the layers below the target that assay may create a second time, in the pool or volume group that the user
/// named.
fn lies_on(host: &dyn Host, wanted: &Wanted) -> Result<SiblingLayers, MeasureError> {
    let scratch = &wanted.scratch;
    let asked = [
        ("--scratch-vg", &scratch.group),
        ("--scratch-dataset", &scratch.dataset),
    ];
    let mut asked = asked
        .into_iter()
        .filter_map(|(option, name)| Some((option, name.as_ref()?)));
    let Some((option, name)) = asked.next() else {
        return Ok(SiblingLayers::default());
    };
    let stack = discover(host, &StackTarget::Path(wanted.target.clone()))
        .map_err(|error| MeasureError::ground(option, name, error.to_string()))?;
    find_sibling_layers(&stack, scratch)
}

/// Checks that there is space for all objects.
fn has_room(
    host: &dyn Host,
    wanted: &Wanted,
    on: &assay_measure::runner::OpenTarget,
    makes: &[Made],
) -> Result<(), MeasureError> {
    let mut needed: BTreeMap<&Within, u64> = BTreeMap::new();
    for made in makes {
        *needed.entry(&made.within).or_default() += made.space.0;
    }
    // The directory must be writable in any case: arms keep logs and sockets there.
    let files = needed.get(&Within::Directory).copied().unwrap_or(0);
    on.fits(Bytes(files))?;
    for (within, needed) in needed {
        let needed = Bytes(needed);
        match within {
            Within::Directory => {}
            Within::Dataset(parent) => free_space::of_dataset(host, parent, needed)
                .map_err(|reason| MeasureError::ground("--scratch-dataset", parent, reason))?,
            Within::Group(group) => {
                free_space::of_group(host, group, wanted.scratch.thin_pool.as_deref(), needed)
                    .map_err(|reason| MeasureError::ground("--scratch-vg", group, reason))?;
            }
        }
    }
    Ok(())
}

/// Returns the kernel names of the pool's devices.
fn pool_device_names(host: &dyn Host, ground: &SiblingLayers) -> Vec<String> {
    let name = |place: &PathBuf| {
        let real = host.realpath(place).ok()?;
        Some(real.file_name()?.to_str()?.to_owned())
    };
    ground.pool_devices.iter().filter_map(name).collect()
}

/// Returns the layers that the host cannot create on loop devices, each with its reason. The error is the reason why
/// the host cannot create any layer.
fn find_missing_loop_layers(host: &dyn Host) -> Result<BTreeMap<LadderPart, String>, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("layers on loop devices need root".to_owned());
    }
    if host.stat(Path::new("/dev/loop-control")).is_err() {
        return Err("this kernel has no loop devices".to_owned());
    }
    let read = |path: &str| host.read_text(Path::new(path)).unwrap_or_default();
    let known = read("/proc/filesystems");
    let release = read("/proc/sys/kernel/osrelease");
    let list = |name: &str| read(&format!("/lib/modules/{}/{name}", release.trim()));
    let modules = list("modules.dep") + &list("modules.builtin");
    let mut missing = BTreeMap::new();
    let has_mapper = read("/proc/misc").contains("device-mapper") || modules.contains("/dm-mod.ko");
    let has_crypt = modules.contains("/dm-crypt.ko");
    for (part, is_there) in [
        (LadderPart::Luks, has_mapper && has_crypt),
        (LadderPart::Lvm, has_mapper),
    ] {
        if !is_there {
            let why = "this kernel has no device mapper for it; a guest has one: `assay lab build`";
            missing.insert(part, why.to_owned());
        } else if host.which(OsStr::new("dmsetup")).is_none() {
            let why = "dmsetup is not installed: `apt install dmsetup`";
            missing.insert(part, why.to_owned());
        }
    }
    for system in FileSystem::ALL {
        let name = system.name();
        let is_known = known.split_whitespace().any(|word| word == name);
        let package = match system {
            FileSystem::Ext4 => "e2fsprogs",
            FileSystem::Xfs => "xfsprogs",
            FileSystem::Btrfs => "btrfs-progs",
        };
        if host.which(OsStr::new(&format!("mkfs.{name}"))).is_none() {
            let why = format!("mkfs.{name} is not installed: `apt install {package}`");
            missing.insert(LadderPart::FileSystem(system), why);
        } else if !is_known && !modules.contains(&format!("/{name}.ko")) {
            let why = format!("this kernel has no {name}");
            missing.insert(LadderPart::FileSystem(system), why);
        }
    }
    Ok(missing)
}

/// Returns why images cannot be served on this machine; `None` if they can.
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
