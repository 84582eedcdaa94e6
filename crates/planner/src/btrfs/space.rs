//! State of a replay: the devices, the chunks, and sums over them.

use super::{kernel, mkfs, profile::Profile};
use crate::error::PlannerError;
use serde::Serialize;

/// Size of a stripe in bytes (`BTRFS_STRIPE_LEN`).
pub(super) const STRIPE_LEN: u64 = 64 << 10;
/// `BTRFS_DEVICE_RANGE_RESERVED`: the first MiB of a device contains no chunk.
pub(super) const RESERVED: u64 = 1 << 20;
/// Offsets of superblock copies 1 and 2 on every device (`btrfs_sb_offset`, fs.h).
const SUPERBLOCKS: [u64; 2] = [64 << 20, 256 << 30];
/// Maximum product of chunks and devices for an exact replay, which then takes about a tenth of a second. Above this
/// product, several chunks are replayed at once, see [`Filesystem::bulk`].
const EXACT_WORK: u64 = 1_000_000;

/// A device with its free ranges during the replay.
#[derive(Clone, Debug)]
pub(super) struct Device {
    /// Size in bytes, rounded down to 4 KiB.
    pub total: u64,
    /// Bytes of the device in allocated chunks.
    pub used: u64,
    /// Free ranges in ascending order, as (start, end).
    pub holes: Vec<(u64, u64)>,
}

impl Device {
    fn new(size: u64) -> Self {
        let total = size / 4096 * 4096;
        Self {
            total,
            used: 0,
            holes: vec![(RESERVED, total)],
        }
    }

    /// Returns the first free range of at least `want` bytes or, if there is none, the largest free range. The result
    /// is (start, length), with a length of at most `want` (`find_free_dev_extent`, volumes.c).
    pub fn find(&self, want: u64) -> (u64, u64) {
        let mut largest = (RESERVED, 0);
        for &(start, end) in &self.holes {
            if end - start >= want {
                return (start, want);
            }
            if end - start > largest.1 {
                largest = (start, end - start);
            }
        }
        largest
    }

    /// Allocates `length` bytes at `start`, which must be free.
    pub fn take(&mut self, start: u64, length: u64) {
        if length == 0 {
            return;
        }
        let index = self
            .holes
            .iter()
            .position(|&(from, to)| from <= start && start + length <= to)
            .expect("the range was found free");
        let (from, to) = self.holes[index];
        let rest = [(from, start), (start + length, to)];
        self.holes
            .splice(index..=index, rest.into_iter().filter(|(a, b)| a < b));
        self.used += length;
    }

    /// Frees `length` bytes at `start`.
    pub fn give(&mut self, start: u64, length: u64) {
        self.holes.push((start, start + length));
        self.holes.sort_unstable();
        self.holes.dedup_by(|next, hole| {
            let touching = hole.1 == next.0;
            if touching {
                hole.1 = next.1;
            }
            touching
        });
        self.used -= length;
    }

    /// Returns the total of all free ranges in bytes.
    pub fn free(&self) -> u64 {
        self.holes.iter().map(|(start, end)| end - start).sum()
    }
}

/// Kind of data in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Data,
    Metadata,
    System,
}

/// A chunk: one range of `stripe` bytes on each of its devices.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub profile: Profile,
    /// Device index and offset of each stripe.
    pub stripes: Vec<(usize, u64)>,
    /// Bytes per stripe.
    pub stripe: u64,
    /// Capacity of the chunk for data, in bytes.
    pub length: u64,
}

impl Chunk {
    /// Returns the number of bytes in the chunk that cannot be used because of superblock copies. For each copy on one
    /// of the chunk's devices, the kernel excludes the 64 KiB around the copy; for parity profiles it excludes the full
    /// stripe (`exclude_super_stripes`, block-group.c; `btrfs_rmap_block`, volumes.c; Linux 6.18).
    pub fn excluded(&self) -> u64 {
        let attributes = self.profile.attributes();
        let stripes = self.stripes.len() as u64;
        let full = match attributes.parity {
            0 => STRIPE_LEN,
            parity => (stripes - parity) * STRIPE_LEN,
        };
        let mut ranges: Vec<u64> = Vec::new();
        for superblock in SUPERBLOCKS {
            for (i, &(_, start)) in self.stripes.iter().enumerate() {
                if superblock < start || superblock >= start + self.stripe {
                    continue;
                }
                let mut row = (superblock - start) / STRIPE_LEN;
                if matches!(self.profile, Profile::Raid0 | Profile::Raid10) {
                    row = row * (stripes / attributes.sub_stripes)
                        + i as u64 / attributes.sub_stripes;
                }
                ranges.push(row * full);
            }
        }
        ranges.sort_unstable();
        ranges.dedup();
        ranges
            .iter()
            .map(|&start| full.min(self.length.saturating_sub(start)))
            .sum()
    }
}

/// State of a replay: the devices, and the sums of each kind of chunk.
pub(super) struct State {
    pub devices: Vec<Device>,
    pub total: u64,
    pub data: Sums,
    pub metadata: Sums,
    pub system: Sums,
}

/// Sums over all chunks with one kind of data.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// Capacity in bytes, including the parts that superblock copies exclude.
    pub length: u64,
    /// Bytes that superblock copies exclude.
    pub excluded: u64,
    /// Raw bytes in these chunks on each device.
    pub per_device: Vec<u64>,
    /// Number of chunks of this kind.
    pub chunks: u64,
    /// Capacity of the largest chunk in bytes.
    pub longest: u64,
}

impl State {
    fn new(sizes: &[u64]) -> Result<Self, PlannerError> {
        let devices: Vec<Device> = sizes.iter().map(|&size| Device::new(size)).collect();
        let total = devices
            .iter()
            .try_fold(0u64, |sum, d| sum.checked_add(d.total))
            .filter(|&sum| sum < 1 << 63)
            .ok_or_else(|| PlannerError::Overflow {
                what: "the file system".into(),
                reason: "more than 8 EiB".into(),
            })?;
        let sums = Sums {
            per_device: vec![0; devices.len()],
            ..Sums::default()
        };
        Ok(Self {
            devices,
            total,
            data: sums.clone(),
            metadata: sums.clone(),
            system: sums,
        })
    }

    /// Adds a chunk to the sums. The caller has already allocated its ranges on the devices.
    pub fn book(&mut self, holds: Holds, chunk: &Chunk) {
        let sums = match holds {
            Holds::Data => &mut self.data,
            Holds::Metadata => &mut self.metadata,
            Holds::System => &mut self.system,
        };
        sums.length += chunk.length;
        sums.excluded += chunk.excluded();
        sums.chunks += 1;
        sums.longest = sums.longest.max(chunk.length);
        for &(device, _) in &chunk.stripes {
            sums.per_device[device] += chunk.stripe;
        }
    }
}

/// Usage of one device of a full file system. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DeviceUse {
    /// Total size of the device.
    pub size: u64,
    /// Bytes of the device in data chunks.
    pub data: u64,
    /// Bytes of the device in metadata chunks.
    pub metadata: u64,
    /// Bytes of the device in system chunks.
    pub system: u64,
    /// Bytes outside of all chunks. Either no other device has room for the remaining stripes of a chunk, or the bytes
    /// are in the reserved first MiB.
    pub unallocated: u64,
}

/// Space of a file system that is completely full. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Filesystem {
    /// Profile of the data chunks.
    pub data: Profile,
    /// Profile of the metadata chunks.
    pub metadata: Profile,
    /// Maximum amount of file data: the sum of all `fallocate` calls until ENOSPC.
    pub stored: u64,
    /// Size of the largest data chunk. The result of the replay may differ from the real value by this size.
    pub chunk: u64,
    /// Number of data chunks of the full file system.
    pub data_chunks: u64,
    /// Bytes in data chunks that cannot be used because of superblock copies.
    pub superblocks: u64,
    /// Value of "Device size" in `btrfs filesystem usage -b`.
    pub device_size: u64,
    /// Value of "Device allocated" for a new file system.
    pub allocated_empty: u64,
    /// Value of "Free (estimated)" for a new file system: unallocated space divided by the data ratio of its first
    /// chunk. btrfs reports a wrong value for unequal devices.
    pub usage_free_estimated: u64,
    /// Value of "Free (estimated) … (min: …)" for a new file system.
    pub usage_free_min: u64,
    /// Metadata capacity of a new file system in bytes.
    pub metadata_length: u64,
    /// Whether several chunks were replayed at once, because chunks × devices exceeds 1,000,000. The result may then
    /// differ from the real value by one or two chunks.
    pub bulk: bool,
    /// Usage of each device.
    pub devices: Vec<DeviceUse>,
}

/// Replays `mkfs.btrfs -d data -m metadata` on devices of `sizes` bytes and fills the file system.
///
/// # Errors
/// There are too few devices, a device is too small, or the total exceeds 8 EiB.
pub fn simulate_filesystem(
    sizes: &[u64],
    data: Profile,
    metadata: Profile,
) -> Result<Filesystem, PlannerError> {
    replay_mkfs(sizes, data, metadata, EXACT_WORK)
}

fn replay_mkfs(
    sizes: &[u64],
    data: Profile,
    metadata: Profile,
    work: u64,
) -> Result<Filesystem, PlannerError> {
    for (what, profile) in [("data", data), ("metadata", metadata)] {
        if sizes.len() < profile.min_devices() {
            return Err(PlannerError::layout(
                format!("btrfs-{profile}"),
                format!(
                    "{what} profile {profile} needs at least {} devices, {} are given",
                    profile.min_devices(),
                    sizes.len()
                ),
            ));
        }
    }
    mkfs::check_sizes(sizes, data, metadata)?;
    let mut state = State::new(sizes)?;
    mkfs::mkfs(&mut state, data, metadata)?;
    let empty = state.data.clone();
    let allocated_empty: u64 = state.devices.iter().map(|d| d.used).sum();
    let (usage_free_estimated, usage_free_min) =
        usage_free(&state, &empty, allocated_empty, data, metadata);
    if metadata == Profile::Single {
        kernel::more_metadata(&mut state, metadata);
    }
    let metadata_length = state.metadata.length;
    let bulk = kernel::fill(&mut state, data, work / sizes.len() as u64);
    let devices = (0..sizes.len())
        .map(|i| {
            let device = &state.devices[i];
            DeviceUse {
                size: device.total,
                data: state.data.per_device[i],
                metadata: state.metadata.per_device[i],
                system: state.system.per_device[i],
                unallocated: device.total - device.used,
            }
        })
        .collect();
    Ok(Filesystem {
        data,
        metadata,
        stored: (state.data.length - state.data.excluded) / 4096 * 4096,
        chunk: state.data.longest,
        data_chunks: state.data.chunks,
        superblocks: state.data.excluded,
        device_size: state.total,
        allocated_empty,
        usage_free_estimated,
        usage_free_min,
        metadata_length,
        bulk,
        devices,
    })
}

/// Computes "Free (estimated)" and its minimum. The floating-point steps are those of `print_filesystem_usage_overall`
/// (cmds/filesystem-usage.c, btrfs-progs 6.2).
fn usage_free(
    state: &State,
    empty: &Sums,
    allocated: u64,
    data: Profile,
    metadata: Profile,
) -> (u64, u64) {
    let raw: u64 = empty.per_device.iter().sum();
    // The tool uses the ratio of an actual chunk and not the ratio of the profile.
    let held = empty.length.max(1);
    let ratio = raw as f64 / held as f64;
    let ratio_of = |profile: Profile, sums: &Sums| match profile {
        Profile::Raid5 | Profile::Raid6 => {
            sums.per_device.iter().sum::<u64>() as f64 / sums.length.max(1) as f64
        }
        _ => profile.attributes().copies as f64,
    };
    let worst = ratio_of(data, empty).max(ratio_of(metadata, &state.metadata));
    let free = raw as f64 / ratio;
    let unused = (state.total - allocated) as f64;
    (
        (free as u64 as f64 + unused / ratio) as u64,
        (free as u64 as f64 + unused / worst) as u64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_chunks_at_once_end_where_single_ones_do() {
        let sizes: Vec<u64> = [8, 4, 4, 2, 1, 6, 3]
            .map(|tb| tb * 1_000_000_000_000)
            .to_vec();
        for data in Profile::ALL {
            if data == Profile::Dup {
                continue;
            }
            let metadata = data.metadata(sizes.len());
            let exact = replay_mkfs(&sizes, data, metadata, u64::MAX).unwrap();
            let coarse = replay_mkfs(&sizes, data, metadata, 7_000).unwrap();
            assert!(!exact.bulk && coarse.bulk);
            let off = exact.stored.abs_diff(coarse.stored);
            assert!(off <= 2 * exact.chunk, "{data}: off by {off}");
        }
    }
}
