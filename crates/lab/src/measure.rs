//! Virtual disks measured against each other: one boot, many disks, fio in the guest, the samples
//! of all disks interleaved in random order.
//!
//! Both sides are counted: what fio did in the guest, what QEMU's device was asked for, and what
//! the QEMU process moved to and from the host's storage.

mod doubts;

pub use doubts::doubts;

use crate::counters;
use crate::disk::Disk;
use crate::error::LabError;
use crate::guest::Guest;
use assay_host::Host as _;
use assay_model::workload::{Durability, Workload};
use assay_model::{Bytes, Doubt, shuffle};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use serde::Serialize;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What is measured: every workload on every disk in every round.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The disks, as the guest was booted with them.
    pub disks: Vec<Disk>,
    /// The workloads; their runtimes are set and their engines settled.
    pub workloads: Vec<Workload>,
    /// How often.
    pub rounds: u32,
    /// Chooses order, offsets and data.
    pub seed: u64,
}

/// What was counted on the host while a sample was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostSide {
    /// Reads that the device was asked for.
    pub reads: u64,
    /// Writes that the device was asked for.
    pub writes: u64,
    /// Bytes that the device was asked to read.
    pub read_bytes: u64,
    /// Bytes that the device was asked to write.
    pub written_bytes: u64,
    /// Flushes that the device was asked for; QEMU 7.2 does not count those of NVMe.
    pub flushes: u64,
    /// Bytes that QEMU's process fetched from storage (proc_pid_io(5), `read_bytes`).
    pub process_read: u64,
    /// Bytes that QEMU's process sent to storage (`write_bytes`). Through the page cache the kernel
    /// counts every folio that became dirty, whole: with large folios a hundred times too much.
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

/// What was counted in the guest while a sample was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GuestSide {
    /// Bytes that fio read.
    pub fio_read: u64,
    /// Bytes that fio wrote.
    pub fio_written: u64,
    /// How often fio asked for durability: calls of fsync and fdatasync, or writes with O_DSYNC.
    pub syncs: u64,
    /// Flushes that the guest's kernel finished on the device; it joins those that wait.
    pub flushes: u64,
    /// Whether the kernel can make a single write durable (forced unit access), without a flush.
    pub fua: bool,
}

/// One fio run on one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which disk of the plan.
    pub disk: usize,
    /// Which workload of the plan.
    pub workload: usize,
    /// Which round, from 0.
    pub round: u32,
    /// fio's JSON+ document.
    pub fio: Vec<u8>,
    /// The guest's side of it.
    pub guest: GuestSide,
    /// The host's side of it.
    pub host: HostSide,
    /// Why it may not mean what it seems to.
    pub doubts: Vec<Doubt>,
}

/// Takes all samples and hands each over as it comes. Disks are filled first, so that no read meets
/// a hole.
///
/// # Errors
/// fio fails in the guest, or the guest is gone.
pub fn run(guest: &Guest, plan: &Plan, taken: &mut dyn FnMut(Sample)) -> Result<(), LabError> {
    let names: Vec<_> = plan.disks.iter().map(|disk| disk.name.as_str()).collect();
    let devices = guest.devices(&names)?;
    for (disk, device) in plan.disks.iter().zip(&devices) {
        let job = assay_fio::job::layout_job(device, Bytes(disk.size), plan.seed);
        let job = job.map_err(|error| refuse(disk, error))?;
        fio(guest, disk, &job, LAYOUT_LIMIT)?;
    }
    for (round, slot) in order(plan) {
        let (disk, workload) = (&plan.disks[slot.0], &plan.workloads[slot.1]);
        let seed = plan.seed ^ (u64::from(round) << 32 | slot.1 as u64);
        let job = assay_fio::job::render(workload, &devices[slot.0], Bytes(disk.size), seed);
        let job = job.map_err(|error| refuse(disk, error))?;
        let time = workload.runtime.unwrap_or_default().0 + workload.ramp.unwrap_or_default().0;
        let flushed = flushes(guest, &devices[slot.0])?;
        let before = host_side(guest, disk)?;
        let fio = fio(guest, disk, &job, Duration::from_nanos(time) + START_LIMIT)?;
        let host = host_side(guest, disk)?.since(before);
        let mut inside = fio_side(&fio, workload).map_err(|error| refuse(disk, error))?;
        inside.flushes = flushes(guest, &devices[slot.0])?.saturating_sub(flushed);
        inside.fua = queue(guest, &devices[slot.0], "queue/fua")?.trim() == "1";
        taken(Sample {
            guest: inside,
            doubts: doubts(disk, workload, &inside, &host),
            disk: slot.0,
            workload: slot.1,
            round,
            fio,
            host,
        });
    }
    Ok(())
}

/// Filling an emulated guest's disk takes its time.
const LAYOUT_LIMIT: Duration = Duration::from_secs(600);
/// fio's own start and end in an emulated guest.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Rounds with every disk and workload once each, in an order that the seed chooses.
fn order(plan: &Plan) -> Vec<(u32, (usize, usize))> {
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    let mut all = Vec::new();
    for round in 0..plan.rounds {
        let mut slots: Vec<_> = (0..plan.disks.len())
            .flat_map(|disk| (0..plan.workloads.len()).map(move |workload| (disk, workload)))
            .collect();
        shuffle(&mut slots, &mut random);
        all.extend(slots.into_iter().map(|slot| (round, slot)));
    }
    all
}

fn refuse(disk: &Disk, reason: impl ToString) -> LabError {
    LabError::Disk {
        name: disk.name.clone(),
        reason: reason.to_string(),
    }
}

/// Runs a job file in the guest and returns what fio printed.
fn fio(guest: &Guest, disk: &Disk, job: &str, limit: Duration) -> Result<Vec<u8>, LabError> {
    let output = guest.fio(job, limit)?;
    match output.success() {
        true => Ok(output.stdout),
        false => Err(refuse(disk, format!("fio: {}", output.complaint()))),
    }
}

/// What fio says that it did.
fn fio_side(fio: &[u8], workload: &Workload) -> Result<GuestSide, assay_fio::json::JsonError> {
    let documents = assay_fio::json::parse(fio)?;
    let mut side = GuestSide::default();
    for job in assay_fio::json::last(&documents).map_or(&[][..], |last| &last.jobs) {
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
    Ok(side)
}

/// A file of a disk in the guest's /sys/block.
fn queue(guest: &Guest, device: &Path, file: &str) -> Result<String, LabError> {
    let name = device.file_name().unwrap_or_default();
    let path = Path::new("/sys/block").join(name).join(file);
    let bytes = guest.read(&path).map_err(|error| LabError::Refused {
        path,
        errno: 0,
        reason: error.to_string(),
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Flushes that the guest's kernel finished on a disk so far.
fn flushes(guest: &Guest, device: &Path) -> Result<u64, LabError> {
    Ok(counters::flushes(&queue(guest, device, "stat")?).unwrap_or(0))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_everything_once_and_its_own_order() {
        let workload: Workload = serde_json::from_value(json!({
            "name": "w", "pattern": "randread", "block_size": "4k"
        }))
        .unwrap();
        let plan = Plan {
            disks: vec![
                Disk::scratch("a", 512),
                Disk::scratch("b", 512),
                Disk::scratch("c", 512),
            ],
            workloads: vec![workload.clone(), workload],
            rounds: 3,
            seed: 1,
        };
        let order = order(&plan);
        assert_eq!(order.len(), 18);
        let mut rounds: Vec<Vec<_>> = (0..3)
            .map(|round| {
                let ours = order.iter().filter(|slot| slot.0 == round);
                ours.map(|slot| slot.1).collect()
            })
            .collect();
        assert_ne!(rounds[0], rounds[1]);
        for round in &mut rounds {
            round.sort_unstable();
            assert_eq!(*round, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
        }
    }
}
