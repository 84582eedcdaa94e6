//! Replays the chunks that `mkfs.btrfs` creates.
//!
//! Source: mkfs/main.c (`create_metadata_block_groups`, `create_data_block_groups`, `create_raid_groups`,
//! `cleanup_temp_chunks`), mkfs/common.c (`make_btrfs`) and kernel-shared/volumes.c
//! (`init_alloc_chunk_ctl_policy_regular`, `decide_stripe_size_regular`, `btrfs_alloc_chunk`, `create_chunk`)
//! of btrfs-progs 6.2; the allocator is the same in 6.6 to 6.19.

use super::profile::Profile;
use super::space::{Chunk, Device, Holds, STRIPE_LEN, State};
use crate::error::PlannerError;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Size of the first system chunk in bytes (`BTRFS_MKFS_SYSTEM_GROUP_SIZE`).
const SYSTEM_GROUP: u64 = 4 * MIB;
/// Size in bytes of a temporary chunk of mkfs, which has no profile.
const TEMPORARY: u64 = 8 * MIB;
/// Maximum number of devices of a system chunk (`BTRFS_MAX_DEVS_SYS_CHUNK`).
const MAX_DEVS_SYSTEM: u64 = 58;

/// Checks that the devices are large enough for mkfs. The temporary chunks and one real chunk of each kind must fit
/// (`btrfs_min_dev_size`, mkfs/common.c).
pub(super) fn check_sizes(
    sizes: &[u64],
    data: Profile,
    metadata: Profile,
) -> Result<(), PlannerError> {
    let needs = |profile: Profile, single: u64, other: u64| match profile {
        Profile::Single => single,
        Profile::Dup => 2 * other,
        _ => other,
    };
    let least = MIB
        + SYSTEM_GROUP
        + 2 * TEMPORARY
        + needs(metadata, 16 * MIB, 40 * MIB)
        + needs(data, 8 * MIB, 64 * MIB);
    match sizes.iter().find(|&&size| size < least) {
        Some(small) => Err(PlannerError::Size {
            input: small.to_string(),
            reason: format!(
                "mkfs.btrfs -d {data} -m {metadata} needs devices of {} MiB or more",
                least / MIB
            ),
        }),
        None => Ok(()),
    }
}

/// Creates the chunks of a new file system.
pub(super) fn mkfs(
    state: &mut State,
    data: Profile,
    metadata: Profile,
) -> Result<(), PlannerError> {
    // Temporary single chunks at the start of the first device: system, metadata, data.
    let (system_at, metadata_at) = (MIB, MIB + SYSTEM_GROUP);
    let data_at = metadata_at + TEMPORARY;
    let first = &mut state.devices[0];
    first.take(system_at, SYSTEM_GROUP);
    first.take(metadata_at, TEMPORARY);
    first.take(data_at, TEMPORARY);
    let single = |at: u64, length: u64| Chunk {
        profile: Profile::Single,
        stripes: vec![(0, at)],
        stripe: length,
        length,
    };

    // mkfs inserts devices at the head of the list one after another.
    let mut order: Vec<usize> = (0..state.devices.len()).rev().collect();
    if metadata == Profile::Single {
        state.book(Holds::System, &single(system_at, SYSTEM_GROUP));
        state.book(Holds::Metadata, &single(metadata_at, TEMPORARY));
    } else {
        for holds in [Holds::System, Holds::Metadata] {
            let chunk = allocate_chunk(state, &mut order, holds, metadata)?;
            state.book(holds, &chunk);
        }
    }
    if data == Profile::Single {
        state.book(Holds::Data, &single(data_at, TEMPORARY));
    } else {
        let chunk = allocate_chunk(state, &mut order, Holds::Data, data)?;
        state.book(Holds::Data, &chunk);
    }

    let first = &mut state.devices[0];
    if metadata != Profile::Single {
        first.give(system_at, SYSTEM_GROUP);
        first.give(metadata_at, TEMPORARY);
    }
    if data != Profile::Single {
        first.give(data_at, TEMPORARY);
    }
    Ok(())
}

/// Returns the capacity in bytes of a chunk of `stripes` stripes of `stripe` bytes.
fn chunk_length(profile: Profile, stripes: u64, stripe: u64) -> u64 {
    match profile {
        Profile::Raid1 | Profile::Raid1c3 | Profile::Raid1c4 | Profile::Dup => stripe,
        Profile::Raid10 => stripe * (stripes / 2),
        Profile::Raid5 | Profile::Raid6 => stripe * (stripes - profile.attributes().parity),
        Profile::Single | Profile::Raid0 => stripe * stripes,
    }
}

/// Replays `btrfs_alloc_chunk` of btrfs-progs. The kernel takes the devices with the most free space. btrfs-progs,
/// however, takes the devices at the front of a list whose order changes with every chunk.
fn allocate_chunk(
    state: &mut State,
    order: &mut Vec<usize>,
    holds: Holds,
    profile: Profile,
) -> Result<Chunk, PlannerError> {
    let attributes = profile.attributes();
    let devices = state.devices.len() as u64;
    let (mut stripe, max_chunk, min_stripe, max_stripes) = match holds {
        Holds::System => (8 * MIB, 16 * MIB, MIB, MAX_DEVS_SYSTEM),
        Holds::Data => (GIB, 10 * GIB, 64 * MIB, attributes.devs_max as u64),
        Holds::Metadata => {
            let size = if state.total > 50 * GIB {
                GIB
            } else {
                256 * MIB
            };
            (size, size, 32 * MIB, attributes.devs_max as u64)
        }
    };
    let max_chunk = max_chunk.min(state.total / 10);
    let (min_stripes, mut stripes) = match profile {
        Profile::Dup => (2, 2),
        Profile::Raid1 | Profile::Raid1c3 | Profile::Raid1c4 => (
            attributes.devs_min as u64,
            (attributes.devs_min as u64).min(devices),
        ),
        Profile::Raid10 => (2, max_stripes.min(devices) & !1),
        _ => (attributes.devs_min as u64, max_stripes.min(devices)),
    };
    let full = || {
        PlannerError::layout(
            format!("btrfs-{profile}"),
            "mkfs.btrfs finds no room for its first chunks; the devices are too small",
        )
    };
    let mut looped = false;
    loop {
        if chunk_length(profile, stripes, stripe) > max_chunk {
            stripe = max_chunk / stripes / STRIPE_LEN * STRIPE_LEN;
        }
        stripe = stripe.max(min_stripe) / STRIPE_LEN * STRIPE_LEN;
        let per_device = if profile == Profile::Dup { 2 } else { 1 };
        let min_free = stripe * per_device;
        // Selected devices go to the head of a private list, which reverses their order.
        let mut chosen: Vec<usize> = Vec::new();
        let mut left = Vec::new();
        let mut max_avail = 0;
        let mut index = 0;
        for &device in order.iter() {
            let avail = state.devices[device].free();
            if index < stripes && avail >= min_free {
                chosen.insert(0, device);
                index += per_device;
            } else {
                if index < stripes {
                    max_avail = max_avail.max(avail);
                }
                left.push(device);
            }
        }
        if index >= stripes {
            // Each device returns to the head of the list when its stripe is created.
            let ranges = place(&mut state.devices, &chosen, stripe, per_device).ok_or_else(full)?;
            for device in chosen {
                left.insert(0, device);
            }
            *order = left;
            return Ok(Chunk {
                profile,
                stripes: ranges,
                stripe,
                length: chunk_length(profile, stripes, stripe),
            });
        }
        chosen.extend(left);
        *order = chosen;
        if index >= min_stripes {
            stripes = index;
            if profile == Profile::Raid10 {
                stripes &= !1;
            }
            looped = true;
        } else if !looped && max_avail > 0 {
            looped = true;
            stripe = max_avail / per_device;
        } else {
            return Err(full());
        }
    }
}

fn place(
    devices: &mut [Device],
    chosen: &[usize],
    stripe: u64,
    per_device: u64,
) -> Option<Vec<(usize, u64)>> {
    let mut ranges = Vec::new();
    for &device in chosen {
        for _ in 0..per_device {
            let (start, length) = devices[device].find(stripe);
            if length < stripe {
                return None;
            }
            devices[device].take(start, stripe);
            ranges.push((device, start));
        }
    }
    Some(ranges)
}
