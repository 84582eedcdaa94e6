//! Stage 3 (comparison) on rotating disks: one thread reads the files in the order of their data on the disk.

use crate::compare::{Job, Learnt};
use crate::group::Sizes;
use crate::read::SMALL;
use crate::sys;
use crate::table::{FileId, Files};
use crate::worker::Worker;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Minimum response time of a rotating disk. It needs on average half a revolution (4 ms at 7,200/min); a
/// faster disk does not rotate, whatever it reports.
const TURN: Duration = Duration::from_millis(2);
/// Number of blocks that are read to measure the response time.
const SAMPLES: usize = 9;

/// Returns whether the files are on a rotating disk. The disk must report that it rotates (virtual disks often do so
/// wrongly), and must respond as slowly as a rotating disk.
pub(crate) fn is_spinning(files: &Files, sizes: &Sizes) -> bool {
    let Some(group) = sizes.open.first() else {
        return false;
    };
    let first = sizes.order[group.files().start];
    let Ok(fd) = files.roots.open_file(&files.path(first)) else {
        return false;
    };
    let Ok(stat) = sys::stat_fd(&fd) else {
        return false;
    };
    claims_to_rotate(stat.stx_dev_major, stat.stx_dev_minor) && answers_slowly(files, sizes)
}

/// Reads `queue/rotational` of the disk that contains a partition or volume (sysfs-block ABI). Returns false for file
/// systems without their own block device (ZFS, NFS, tmpfs).
fn claims_to_rotate(major: u32, minor: u32) -> bool {
    let base = format!("/sys/dev/block/{major}:{minor}");
    ["queue/rotational", "../queue/rotational"]
        .iter()
        .find_map(|file| std::fs::read_to_string(format!("{base}/{file}")).ok())
        .is_some_and(|text| text.trim() == "1")
}

/// Returns whether the disk responds as slowly as a rotating disk. Reads one block, past the page cache, from several
/// of the files.
fn answers_slowly(files: &Files, sizes: &Sizes) -> bool {
    #[repr(align(4096))]
    struct Block([u8; 4096]);
    let step = (sizes.order.len() / SAMPLES).max(1);
    let mut times = Vec::new();
    for id in sizes.order.iter().step_by(step).take(SAMPLES) {
        let Ok(fd) = files.roots.open_direct(&files.path(*id)) else {
            continue;
        };
        let mut block = Block([0; 4096]);
        let begun = Instant::now();
        if rustix::io::pread(&fd, &mut block.0, 0).is_ok() {
            times.push(begun.elapsed());
        }
    }
    times.sort_unstable();
    // If direct reads are impossible, the reported value applies. The fastest quarter is used, because other
    // programs only slow the disk down.
    times.get(times.len() / 4).is_none_or(|fast| *fast > TURN)
}

/// Reads everything in two sweeps over the disk. The first sweep reads small files and the probes of large files, the
/// second large files whose probes agree. Files are equal if the hashes of their whole contents are equal.
pub(crate) fn run(job: Job<'_>) -> Learnt {
    let (files, control) = (job.files, job.control);
    let first: Vec<FileId> = job
        .open
        .iter()
        .flat_map(|group| job.members(group))
        .copied()
        .collect();
    let mut worker = Worker::new(files, job.doors, control);
    let mut probes: HashMap<(u64, [u8; 16]), Vec<FileId>> = HashMap::new();
    let mut second = Vec::new();
    for id in by_place(files, &first) {
        if control.stopped() {
            return worker.learnt;
        }
        control.tick();
        let size = files.file(id).id.size;
        if size <= SMALL {
            worker.hash_all(&[id]);
        } else if job.all {
            second.push(id);
        } else if let Some(key) = worker.probe_one(id) {
            probes.entry((size, key)).or_default().push(id);
        }
    }
    second.extend(probes.into_values().filter(|same| same.len() > 1).flatten());
    for id in by_place(files, &second) {
        control.tick();
        worker.hash_all(&[id]);
    }
    if !control.stopped() {
        worker.learnt.finished = (0..job.open.len()).collect();
    }
    worker.learnt
}

/// Orders files by the physical address of their first extent. Files with an unknown address are ordered by
/// inode number, as an approximation.
fn by_place(files: &Files, ids: &[FileId]) -> Vec<FileId> {
    let mut placed: Vec<(u64, u64, FileId)> = ids
        .iter()
        .map(|id| {
            let place = files
                .roots
                .open_file(&files.path(*id))
                .and_then(|fd| sys::read_extents(fd, 1))
                .ok()
                .and_then(|extents| extents.first().map(|extent| extent.physical))
                .unwrap_or(0);
            (place, files.file(*id).id.ino, *id)
        })
        .collect();
    placed.sort_unstable();
    placed.into_iter().map(|one| one.2).collect()
}
