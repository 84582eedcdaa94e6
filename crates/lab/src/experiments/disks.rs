//! Compares virtual disks. Boots one guest with many disks, and runs fio in the guest on each disk. All samples are
//! taken in random order.
//!
//! Three places count the I/O: fio in the guest, QEMU's device (requests), and the QEMU process (bytes transferred to
//! and from the host's storage).

mod doubts;

pub use doubts::judge_disk_sample;

use crate::{Disk, FIO_START_AND_END, Guest, LabError, counters};
use assay_host::Host as _;
use assay_loads::counters::Sources;
use assay_loads::fio::FioEnd;
use assay_measure::engine::{
    Carried, EngineError, Environment, LoadTarget, Meter, SampleSink, Stopped, Tell, Tools, Turn,
    carry_out_plan,
};
use assay_model::plan::{self, PlanError, PlanSpec, Settings, WorkloadSpec};
use assay_model::sample::{Outcome, Sample};
use assay_model::workload::{Durability, Engine, Workload};
use assay_model::{Bytes, Doubt, Nanos, Plan};
use serde::Serialize;
use serde_json::json;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Counters on the host during a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct HostSide {
    /// Number of read requests at the device.
    pub reads: u64,
    /// Number of write requests at the device.
    pub writes: u64,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Bytes written to the device.
    pub written_bytes: u64,
    /// Number of flush requests at the device. QEMU 7.2 does not count flushes of NVMe devices.
    pub flushes: u64,
    /// Bytes that QEMU's process read from storage (proc_pid_io(5), `read_bytes`).
    pub process_read: u64,
    /// Bytes that QEMU's process wrote to storage (`write_bytes`). If QEMU writes through the page cache, the kernel
    /// counts every modified folio as a whole. With large folios the number may then be a hundred times too large.
    pub process_written: u64,
}

impl HostSide {
    fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            writes: self.writes.saturating_sub(before.writes),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            flushes: self.flushes.saturating_sub(before.flushes),
            process_read: self.process_read.saturating_sub(before.process_read),
            process_written: self.process_written.saturating_sub(before.process_written),
        }
    }
}

/// Counters in the guest during a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct GuestSide {
    /// Bytes that fio read.
    pub fio_read: u64,
    /// Bytes that fio wrote.
    pub fio_written: u64,
    /// Number of durability requests of fio: fsync and fdatasync calls, or writes with O_DSYNC.
    pub syncs: u64,
    /// Number of flushes that the guest's kernel completed on the device. The kernel merges flushes that wait.
    pub flushes: u64,
    /// Whether the kernel can make a single write durable without a flush (forced unit access).
    pub fua: bool,
}

/// A sample of a disk, with the counters of guest and host.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskSample {
    /// The sample as fio measured it.
    pub sample: Sample,
    /// JSON+ document that fio printed.
    pub fio: Vec<u8>,
    /// Counters in the guest.
    pub guest: GuestSide,
    /// Counters on the host.
    pub host: HostSide,
    /// Doubts about the sample.
    pub doubts: Vec<Doubt>,
}

/// Why the comparison ended early.
#[derive(Debug, thiserror::Error)]
pub enum DisksError {
    /// The guest, or fio in it, failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The load of a sample could not start.
    #[error(transparent)]
    Slot(#[from] EngineError),
    /// Several consecutive samples failed.
    #[error(transparent)]
    Failing(#[from] Stopped),
    /// The plan of the comparison is not possible.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Plans every workload on every disk in every round. `seed` determines order, offsets and data.
///
/// # Errors
/// A workload is not possible.
pub fn plan(
    disks: &[Disk],
    workloads: Vec<WorkloadSpec>,
    rounds: u32,
    seed: u64,
) -> Result<Plan, PlanError> {
    let spec = PlanSpec {
        name: "disks".to_owned(),
        rounds: Some(rounds),
        seed: Some(seed),
        ramp: Some(Nanos(0)),
        workloads,
        ..PlanSpec::default()
    };
    spec.resolve(&Settings {
        targets: disks.iter().map(|disk| disk.name.clone()).collect(),
        engine: Engine::Libaio,
        seed,
    })
}

/// Takes all samples, and passes each sample to the caller as soon as it is complete. Fills the disks first, so that no
/// read hits a range that was never written.
///
/// # Errors
/// fio fails in the guest, or the guest has ended.
pub fn run(
    guest: &Guest,
    disks: &[Disk],
    plan: &Plan,
    env: &Environment<'_>,
    taken: &mut dyn FnMut(DiskSample),
    tell: &mut Tell<'_>,
) -> Result<Carried, DisksError> {
    let names: Vec<_> = disks.iter().map(|disk| disk.name.as_str()).collect();
    let devices = guest.devices(&names)?;
    for (disk, device) in disks.iter().zip(&devices) {
        let job = assay_fio::job::layout_job(device, Bytes(disk.size), plan.seed);
        let job = job.map_err(|error| refuse(disk, error))?;
        let output = guest.load(&job, LAYOUT_LIMIT)?;
        if output.ended != FioEnd::Exited(0) {
            return Err(refuse(disk, format!("fio: {}", output.stderr)).into());
        }
    }
    let places = devices
        .iter()
        .cloned()
        .map(|path| LoadTarget::Guest { path });
    let todo: Vec<_> = (0u32..).zip(plan.order.iter().copied()).collect();
    let tools = Tools::default();
    let mut by = Keeper {
        guest,
        plan,
        disks,
        places: places.collect(),
        devices: &devices,
        meter: env.meter(guest.dir(), &tools),
        sources: Sources::find(env.host, &[]),
        beside: None,
        taken,
    };
    carry_out_plan(plan, &todo, env.cancel, &mut by, tell)
}

/// Maximum time to fill a disk of an emulated guest.
const LAYOUT_LIMIT: Duration = Duration::from_secs(600);
/// Time that a sample in an emulated guest takes in addition to its load: start and end of fio, and reading the
/// counters.
const AROUND: Nanos = Nanos(3_000_000_000);

/// Measures the planned samples in the guest, and passes each to the caller.
struct Keeper<'a> {
    guest: &'a Guest,
    plan: &'a Plan,
    disks: &'a [Disk],
    places: Vec<LoadTarget>,
    devices: &'a [PathBuf],
    meter: Meter<'a>,
    sources: Sources,
    /// Data of the current sample: fio's document, the counters in the guest, and the counters on the host.
    beside: Option<(Vec<u8>, GuestSide, HostSide)>,
    taken: &'a mut dyn FnMut(DiskSample),
}

impl SampleSink<DisksError> for Keeper<'_> {
    fn take(&mut self, turn: Turn<'_>) -> Result<Sample, DisksError> {
        let (guest, index) = (self.guest, turn.slot.target);
        let (disk, device) = (&self.disks[index], &self.devices[index]);
        let slot = turn.measured(&self.places[index], &self.sources, Bytes(disk.size));
        let flushed = count_flushes(guest, device)?;
        let before = host_side(guest, disk)?;
        let mut json = Vec::new();
        let sample = self.meter.take_in(&slot, &mut |job, planned| {
            let output = guest.load(job, Duration::from(planned) + FIO_START_AND_END)?;
            json.clone_from(&output.json);
            Ok::<_, DisksError>(output)
        })?;
        let host = host_side(guest, disk)?.since(before);
        match &sample.outcome {
            Outcome::Completed | Outcome::Interrupted => {}
            Outcome::Failed { error } => return Err(refuse(disk, format!("fio: {error}")).into()),
            Outcome::TimedOut { after } => {
                return Err(refuse(disk, format!("fio did not end within {after}")).into());
            }
        }
        let mut inside = turn
            .workload
            .fio()
            .map_or_else(GuestSide::default, |workload| fio_side(&sample, workload));
        inside.flushes = count_flushes(guest, device)?.saturating_sub(flushed);
        inside.fua = read_queue_file(guest, device, "queue/fua")?.trim() == "1";
        self.beside = Some((json, inside, host));
        Ok(sample)
    }

    fn keep(&mut self, turn: Turn<'_>, sample: &Sample) -> Result<(), DisksError> {
        let Some((fio, guest, host)) = self.beside.take() else {
            return Ok(());
        };
        let disk = &self.disks[turn.slot.target];
        let workload = turn.workload.fio();
        (self.taken)(DiskSample {
            doubts: workload.map_or_else(Vec::new, |load| {
                judge_disk_sample(disk, load, &guest, &host)
            }),
            sample: sample.clone(),
            fio,
            guest,
            host,
        });
        Ok(())
    }

    fn left(&self, todo: &[(u32, plan::Slot)]) -> Nanos {
        let time = |slot: &plan::Slot| self.plan.workloads[slot.workload].time().0 + AROUND.0;
        Nanos(todo.iter().map(|(_, slot)| time(slot)).sum())
    }
}

fn refuse(disk: &Disk, source: impl Into<Box<dyn Error + Send + Sync>>) -> LabError {
    LabError::Disk {
        name: disk.name.clone(),
        source: source.into(),
    }
}

/// Returns the guest counters that come from fio.
fn fio_side(sample: &Sample, workload: &Workload) -> GuestSide {
    let mut side = GuestSide::default();
    for job in &sample.workers {
        let (read, write) = (job.read(), job.write());
        side.fio_read += read.map_or(0, |stats| stats.bytes.0);
        side.fio_written += write.map_or(0, |stats| stats.bytes.0);
        side.syncs += match workload.durability {
            Durability::None => 0,
            Durability::Dsync => write.map_or(0, |stats| stats.count),
            Durability::Fdatasync | Durability::Fsync => {
                job.flush().map_or(0, |flushes| flushes.count)
            }
        };
    }
    side
}

/// Reads a file of a disk in /sys/block of the guest.
fn read_queue_file(guest: &Guest, device: &Path, file: &str) -> Result<String, LabError> {
    let name = device.file_name().unwrap_or_default();
    let path = Path::new("/sys/block").join(name).join(file);
    let bytes = guest.read(&path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the flushes that the guest's kernel completed on a disk.
fn count_flushes(guest: &Guest, device: &Path) -> Result<u64, LabError> {
    Ok(counters::parse_flushes(&read_queue_file(guest, device, "stat")?).unwrap_or(0))
}

fn host_side(guest: &Guest, disk: &Disk) -> Result<HostSide, LabError> {
    let answer = guest.qmp("query-blockstats", json!({}))?;
    let ours = counters::of_disk(&answer, &disk.name)
        .ok_or_else(|| refuse(disk, "QEMU has no counters for it"))?;
    let count = |name: &str| ours[name].as_u64().unwrap_or(0);
    let process = fs::read_to_string(format!("/proc/{}/io", guest.entry().pid)).unwrap_or_default();
    let moved = |name: &str| {
        let line = process.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok())
            .unwrap_or(0)
    };
    Ok(HostSide {
        reads: count("rd_operations"),
        writes: count("wr_operations"),
        read_bytes: count("rd_bytes"),
        written_bytes: count("wr_bytes"),
        flushes: count("flush_operations"),
        process_read: moved("read_bytes:"),
        process_written: moved("write_bytes:"),
    })
}
