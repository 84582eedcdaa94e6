//! Replays how the kernel allocates chunks while files are written.
//!
//! Source: fs/btrfs/volumes.c (`init_alloc_chunk_ctl_policy_regular`, `gather_device_info`, `btrfs_cmp_device_info`,
//! `decide_stripe_size_regular`, `create_chunk`) and fs/btrfs/space-info.c (`calc_chunk_size`), Linux 6.18.

use super::profile::{Attributes, Profile};
use super::sort::heapsort;
use super::space::{Chunk, Holds, STRIPE_LEN, State};

const GIB: u64 = 1 << 30;
/// Maximum size of a data chunk in bytes (`BTRFS_MAX_DATA_CHUNK_SIZE`).
const MAX_DATA_CHUNK: u64 = 10 * GIB;

/// A device that can take part in the next chunk.
struct Candidate {
    device: usize,
    start: u64,
    max_avail: u64,
    total_avail: u64,
}

/// Adds data chunks until no more fits. Adds the first `exact` chunks one by one. If more chunks are needed, adds
/// several at once while every device has room for them, and returns true.
pub(super) fn fill(state: &mut State, profile: Profile, exact: u64) -> bool {
    let attributes = profile.attributes();
    let limit = MAX_DATA_CHUNK;
    let free: u64 = state.devices.iter().map(|d| d.free()).sum();
    let expected = free / usual_chunk(state, attributes).max(1);
    let most = expected.div_ceil(exact.max(1)).max(1);
    let bulk = most > 1;
    let mut times = most;
    while times > 0 {
        match allocate_chunk(state, profile, limit, Step { times, rough: bulk }) {
            Some(chunk) => {
                state.book(Holds::Data, &chunk);
                times = (times * 2).min(most);
            }
            // A device is nearly full, so reduce the step, down to single chunks.
            None => times /= 2,
        }
    }
    bulk
}

/// Returns the size of a data chunk in raw bytes, as long as all devices have room.
fn usual_chunk(state: &State, attributes: Attributes) -> u64 {
    let devices = state.devices.len().min(attributes.devs_max) / attributes.devs_increment
        * attributes.devs_increment;
    let stripes = devices as u64 * attributes.dev_stripes;
    let data_stripes = (stripes.saturating_sub(attributes.parity) / attributes.copies).max(1);
    let max_chunk = MAX_DATA_CHUNK.min(state.total / 10);
    let stripe = (max_chunk / data_stripes)
        .next_multiple_of(16 << 20)
        .min(GIB);
    stripe * stripes
}

/// Adds a metadata chunk. mkfs creates 8 MiB of metadata with the single profile. The kernel adds a chunk when these
/// are full, which happens within the first gigabytes of data.
pub(super) fn more_metadata(state: &mut State, profile: Profile) {
    let limit = match state.total > 50 * GIB {
        true => GIB,
        false => 256 << 20,
    };
    if let Some(chunk) = allocate_chunk(state, profile, limit, ONE) {
        state.book(Holds::Metadata, &chunk);
    }
}

/// How one allocation step is replayed.
#[derive(Clone, Copy)]
struct Step {
    /// Number of chunks that the step allocates at once.
    times: u64,
    /// Whether to ignore the kernel's order of devices with equal free space. If several chunks are allocated at once,
    /// this order hardly changes the result.
    rough: bool,
}

/// One allocation step of the kernel: a single chunk, in the exact order of devices.
const ONE: Step = Step {
    times: 1,
    rough: false,
};

/// Replays `btrfs_create_chunk` for chunks of at most `limit` bytes.
fn allocate_chunk(state: &mut State, profile: Profile, limit: u64, step: Step) -> Option<Chunk> {
    let times = step.times;
    let attributes = profile.attributes();
    let max_chunk = limit.min(state.total / 10);
    let max_stripe = max_chunk.min(GIB);
    let want = max_stripe * attributes.dev_stripes;
    let mut candidates: Vec<Candidate> = Vec::with_capacity(state.devices.len());
    for (index, device) in state.devices.iter().enumerate() {
        let total_avail = device.total - device.used;
        if total_avail < STRIPE_LEN * attributes.dev_stripes {
            continue;
        }
        let (start, max_avail) = device.find(want);
        if max_avail < STRIPE_LEN * attributes.dev_stripes {
            continue;
        }
        candidates.push(Candidate {
            device: index,
            start,
            max_avail,
            total_avail,
        });
    }
    let most_first = |a: &Candidate, b: &Candidate| {
        (b.max_avail, b.total_avail).cmp(&(a.max_avail, a.total_avail))
    };
    // A mirrored chunk uses only two of many devices, so only those must be found.
    if step.rough && attributes.devs_max < candidates.len() {
        candidates.select_nth_unstable_by(attributes.devs_max, most_first);
        candidates.truncate(attributes.devs_max);
    }
    heapsort(&mut candidates, most_first);
    let devices = candidates.len() / attributes.devs_increment * attributes.devs_increment;
    if devices < attributes.devs_min {
        return None;
    }
    let devices = devices.min(attributes.devs_max);
    let smallest = candidates[devices - 1].max_avail;
    let mut stripe = smallest / attributes.dev_stripes;
    let stripes = devices as u64 * attributes.dev_stripes;
    let data_stripes = (stripes - attributes.parity) / attributes.copies;
    if stripe * data_stripes > max_chunk {
        stripe = stripe.min((max_chunk / data_stripes).next_multiple_of(16 << 20));
    }
    stripe = stripe.min(GIB) / STRIPE_LEN * STRIPE_LEN;
    if stripe == 0 {
        return None;
    }
    let stripe = stripe * times;
    let room = |c: &Candidate| {
        let needs = stripe * attributes.dev_stripes;
        let (start, length) = state.devices[c.device].find(needs);
        start == c.start && length == needs
    };
    if times > 1 && !candidates[..devices].iter().all(room) {
        return None;
    }
    let mut ranges = Vec::with_capacity(stripes as usize);
    for candidate in &candidates[..devices] {
        for copy in 0..attributes.dev_stripes {
            let start = candidate.start + copy * stripe;
            state.devices[candidate.device].take(start, stripe);
            ranges.push((candidate.device, start));
        }
    }
    Some(Chunk {
        profile,
        stripes: ranges,
        stripe,
        length: stripe * data_stripes,
    })
}
