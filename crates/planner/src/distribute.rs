//! Simulates how ZFS distributes writes over the vdevs of a pool, block by block.
//!
//! The statement "ZFS writes to the vdev with the most free space" was correct only before version 0.7. Since 0.7, a
//! vdev with a full queue is skipped while other vdevs have room. Since 2.4, a fast vdev gets more turns in the
//! rotation of vdevs. The simulation assigns blocks by the rules of the version, and each vdev completes its blocks at
//! its own speed.

mod zpool;

pub use zpool::{parse_zpool_iostat, parse_zpool_list};

use crate::error::PlannerError;
use crate::zfs::Version;
use serde::Serialize;
use std::collections::VecDeque;

/// Maximum number of blocks per simulated step. A longer write is divided into several steps, and the fill levels of
/// the vdevs are updated between the steps.
const BLOCKS_A_STEP: u64 = 16_384;
/// Maximum number of steps for one write.
const STEPS: u64 = 48;

/// A top-level vdev that takes part in the simulation.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Vdev {
    /// Name of the vdev, as `zpool list` prints it.
    pub name: String,
    /// Capacity of the vdev in bytes.
    pub size: u64,
    /// Bytes of the vdev that are used before the write.
    pub used: u64,
    /// Write speed in bytes per second.
    pub speed: f64,
    /// Number of data disks of the vdev. A raidz or dRAID vdev with more data disks allocates more bytes per turn.
    pub data_disks: u64,
}

/// Allocation rules, which depend on the OpenZFS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Rules")]
pub enum AllocationRules {
    /// Before version 0.7, or with `zio_dva_throttle_enabled=0`: only free space decides (`metaslab_alloc_dva`,
    /// metaslab.c).
    FreeSpace,
    /// Version 0.7 to 2.3: at most 128 allocations wait for a vdev while another vdev has room
    /// (`metaslab_group_allocatable`; `zfs_vdev_def_queue_depth` 32 × 4 allocators).
    Throttle,
    /// Since version 2.4 with `metaslab_perf_bias=1`: in a busy pool, a vdev whose queue empties quickly gets up to 2.5
    /// turns at once (`metaslab_class_balance`, `metaslab_class_rotate`).
    Performance,
}

impl AllocationRules {
    /// Returns the rules of an OpenZFS version, with or without the allocation throttle.
    #[must_use]
    pub fn of(version: Version, throttle: bool) -> Self {
        if version >= Version::new(2, 4, 0) && throttle {
            Self::Performance
        } else if version >= Version::new(0, 7, 0) && throttle {
            Self::Throttle
        } else {
            Self::FreeSpace
        }
    }
}

/// What one vdev received of a write.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Share")]
pub struct VdevShare {
    /// Name of the vdev, as in the question.
    pub name: String,
    /// Bytes written to the vdev.
    pub bytes: u64,
    /// Fraction of the whole write, 0 to 1.
    pub share: f64,
    /// Fill level of the vdev after the write, 0 to 1.
    pub full: f64,
    /// Fraction of the total time in which the vdev was writing, 0 to 1.
    pub busy: f64,
}

/// How a write was distributed over the vdevs.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Distribution {
    /// Allocation rules that were simulated.
    pub rules: AllocationRules,
    /// What each vdev received.
    pub vdevs: Vec<VdevShare>,
    /// Duration of the write in seconds.
    pub seconds: f64,
    /// Write speed of the pool in bytes per second.
    pub speed: f64,
    /// Write speed of the pool divided by the sum of the speeds of all vdevs.
    pub of_possible: f64,
}

/// How data is written in the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Writer")]
pub struct WriterModel {
    /// Total number of bytes to write.
    pub bytes: u64,
    /// Size of each written block in bytes.
    pub block: u64,
    /// Bytes per transaction group. The next group starts when all writes of a group are complete.
    pub txg: u64,
    /// Rate at which the writer produces data, in bytes per second; unlimited if `None`. A slow writer's data is
    /// distributed by free space only, because a vdev's queue fills only if data arrives faster than the vdev can
    /// write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

impl Default for WriterModel {
    /// Returns a writer of 1 GiB, in blocks of 128 KiB and transaction groups of 64 MiB.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            block: 128 << 10,
            txg: 64 << 20,
            rate: None,
        }
    }
}

/// Simulates how a write is distributed over the vdevs.
///
/// # Errors
/// There is no vdev, a vdev has no space or speed, the block size is zero, or the data exceeds the free space.
pub fn distribute_writes(
    vdevs: &[Vdev],
    rules: AllocationRules,
    writer: WriterModel,
) -> Result<Distribution, PlannerError> {
    let free: u128 = vdevs
        .iter()
        .map(|v| u128::from(v.size.saturating_sub(v.used)))
        .sum();
    if vdevs.is_empty() {
        return Err(PlannerError::value(
            "vdevs",
            "name at least one, such as 2T@50%,150MB/s",
        ));
    }
    for vdev in vdevs {
        if vdev.size == 0 || vdev.used > vdev.size || !(vdev.speed.is_finite() && vdev.speed >= 1.0)
        {
            return Err(PlannerError::value(
                format!("vdev {}", vdev.name.escape_debug()),
                "needs a size, no more used than that, and a speed of 1 B/s or more",
            ));
        }
    }
    if writer.block == 0 || writer.txg < writer.block || writer.bytes < writer.block {
        return Err(PlannerError::value(
            "writer",
            "the write and each transaction group must be at least one block, and a block not 0",
        ));
    }
    if writer
        .rate
        .is_some_and(|rate| !(rate.is_finite() && rate >= 1.0))
    {
        return Err(PlannerError::value("rate", "needs to be 1 B/s or more"));
    }
    if u128::from(writer.bytes) > free {
        return Err(PlannerError::value(
            format!("a write of {} bytes", writer.bytes),
            format!("does not fit {free} free bytes"),
        ));
    }
    let mut state: Vec<State> = vdevs.iter().map(State::new).collect();
    let mut rotor = Rotor::default();
    let blocks = writer.bytes / writer.block;
    let steps = blocks.div_ceil(BLOCKS_A_STEP).clamp(1, STEPS);
    let mut seconds = 0.0;
    for step in 0..steps {
        let todo = blocks * (step + 1) / steps - blocks * step / steps;
        let simulated = todo.min(BLOCKS_A_STEP);
        let before: Vec<u64> = state.iter().map(|s| s.got).collect();
        let busy: Vec<f64> = state.iter().map(|s| s.busy).collect();
        let elapsed = write(&mut state, &mut rotor, rules, writer, simulated);
        // One simulated step stands for todo / simulated equal steps before fill levels are updated.
        let times = todo as f64 / simulated.max(1) as f64;
        seconds += elapsed * times;
        for (i, s) in state.iter_mut().enumerate() {
            let more = ((s.got - before[i]) as f64 * (times - 1.0)) as u64;
            let more = more.min(s.size.saturating_sub(s.used));
            s.got += more;
            s.used += more;
            s.busy += (s.busy - busy[i]) * (times - 1.0);
        }
    }
    let written: u64 = state.iter().map(|s| s.got).sum();
    let possible: f64 = vdevs.iter().map(|v| v.speed).sum();
    let speed = written as f64 / seconds.max(1e-12);
    Ok(Distribution {
        rules,
        vdevs: vdevs
            .iter()
            .zip(&state)
            .map(|(vdev, s)| VdevShare {
                name: vdev.name.clone(),
                bytes: s.got,
                share: s.got as f64 / written.max(1) as f64,
                full: s.used as f64 / s.size as f64,
                busy: s.busy / seconds.max(1e-12),
            })
            .collect(),
        seconds,
        speed,
        of_possible: speed / possible,
    })
}

/// State of a vdev during the simulation.
struct State {
    size: u64,
    used: u64,
    got: u64,
    speed: f64,
    data_disks: u64,
    /// Completion time of each block in the queue, the earliest first.
    queue: VecDeque<f64>,
    busy: f64,
}

impl State {
    fn new(vdev: &Vdev) -> Self {
        Self {
            size: vdev.size,
            used: vdev.used,
            got: 0,
            speed: vdev.speed,
            data_disks: vdev.data_disks.max(1),
            queue: VecDeque::new(),
            busy: 0.0,
        }
    }

    fn free(&self) -> u64 {
        self.size.saturating_sub(self.used)
    }

    fn take(&mut self, now: f64, block: u64) {
        let start = self.queue.back().copied().unwrap_or(now).max(now);
        let takes = block as f64 / self.speed;
        self.queue.push_back(start + takes);
        self.busy += takes;
        self.got += block;
        self.used += block;
    }
}

/// The vdev whose turn it is, and the number of bytes allocated in this turn.
#[derive(Default)]
struct Rotor {
    at: usize,
    had: u64,
}

/// Maximum number of allocations that wait for one vdev (`zfs_vdev_def_queue_depth` for each of 4 allocators).
const QUEUE: usize = 128;

/// Writes `blocks` blocks in transaction groups. Returns the duration in seconds.
fn write(
    state: &mut [State],
    rotor: &mut Rotor,
    rules: AllocationRules,
    writer: WriterModel,
    blocks: u64,
) -> f64 {
    let a_txg = (writer.txg / writer.block).max(1);
    let mut now: f64 = 0.0;
    let mut left = blocks;
    while left > 0 {
        let begun = now;
        for count in 1..=left.min(a_txg) {
            if let Some(rate) = writer.rate {
                now = now.max(begun + (count * writer.block) as f64 / rate);
            }
            now = allocate_block(state, rotor, rules, writer.block, now);
        }
        left -= left.min(a_txg);
        // The group is committed when the last vdev has finished.
        for s in state.iter_mut() {
            now = s.queue.drain(..).fold(now, f64::max);
        }
    }
    now
}

/// Assigns one block to a vdev. Returns the time of the allocation in seconds, which is later than `now` if all queues
/// were full.
fn allocate_block(
    state: &mut [State],
    rotor: &mut Rotor,
    rules: AllocationRules,
    block: u64,
    mut now: f64,
) -> f64 {
    let groups = state.len() as u64;
    let total_free: u128 = state.iter().map(|s| u128::from(s.free())).sum();
    let total_size: u128 = state.iter().map(|s| u128::from(s.size)).sum();
    let disks: u64 = state.iter().map(|s| s.data_disks).sum();
    let turn = |s: &State| -> u64 {
        match rules {
            // mg_aliquot + mg_bias: 1 MiB per data disk, scaled by the ratio of free space to the mean.
            AllocationRules::FreeSpace | AllocationRules::Throttle => {
                let ratio = u128::from(s.free()) * u128::from(groups) * 100 / (total_free + 1);
                (u128::from(s.data_disks << 20) * ratio / 100) as u64
            }
            // 2 MiB per mean data disk, scaled by size and by the ratio of free space to the mean.
            AllocationRules::Performance => {
                let aliquot = ((2u64 << 20) * disks / groups).max(block * 4) as f64;
                let size = s.size as f64 * groups as f64 / total_size as f64;
                let share = s.free() as f64 / s.size as f64;
                let mean = total_free as f64 / total_size as f64;
                (aliquot * size * share / mean.max(1e-9)) as u64
            }
        }
    };
    loop {
        for s in state.iter_mut() {
            while s.queue.front().is_some_and(|&done| done <= now) {
                s.queue.pop_front();
            }
        }
        let full = |s: &State| match rules {
            AllocationRules::FreeSpace | AllocationRules::Performance => false,
            AllocationRules::Throttle => s.queue.len() >= QUEUE,
        };
        // 2.4: all vdevs together may have four rounds in flight.
        let waiting: u64 = state.iter().map(|s| s.queue.len() as u64 * block).sum();
        let round: u64 = state.iter().map(&turn).sum();
        let stop = match rules {
            AllocationRules::FreeSpace => false,
            AllocationRules::Throttle => state.iter().all(|s| full(s) || s.free() < block),
            AllocationRules::Performance => waiting + block > (round * 4).max(block * 2),
        };
        if stop {
            let soonest = state
                .iter()
                .filter_map(|s| s.queue.front().copied())
                .fold(f64::INFINITY, f64::min);
            if soonest.is_finite() {
                now = soonest;
                continue;
            }
        }
        for _ in 0..=state.len() {
            let s = &state[rotor.at];
            if s.free() < block || full(s) {
                rotor.at = (rotor.at + 1) % state.len();
                rotor.had = 0;
                continue;
            }
            break;
        }
        let quota = turn(&state[rotor.at]);
        let s = &mut state[rotor.at];
        s.take(now, block);
        rotor.had += block;
        let rotate = match rules {
            AllocationRules::FreeSpace | AllocationRules::Throttle => rotor.had >= quota,
            AllocationRules::Performance => {
                let expected = rotor.had + block / 2;
                let share = s.free() as f64 / s.size as f64;
                let target =
                    (quota as f64 * (share * 3.0 + 0.25).min(2.5)).max(quota as f64) as u64;
                let queued = s.queue.len() as u64 * block;
                expected >= quota && (expected >= target || queued + block * 3 / 2 >= target)
            }
        };
        if rotate {
            rotor.at = (rotor.at + 1) % state.len();
            rotor.had = 0;
        }
        return now;
    }
}

#[cfg(test)]
mod tests;
