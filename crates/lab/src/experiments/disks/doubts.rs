//! Finds doubts about a sample by comparing its counters. The functions are pure.
//!
//! Three places count the I/O: fio in the guest, the guest's kernel (iostats), and QEMU (requests at the device, and
//! bytes that its process transferred on the host).

use super::{GuestSide, HostSide};
use crate::disk::{Bus, CacheMode, Disk, DiskFormat};
use assay_model::doubt::Severity;
use assay_model::workload::{Durability, Workload};
use assay_model::{Bytes, Doubt};

/// If at least this fraction of a value is accounted for, the value counts as complete. The rest may be edge effects of
/// the sample.
const ENOUGH: f64 = 0.9;
/// If less than this fraction of a value has one source, most of the value has another source.
const HALF: f64 = 0.5;
/// Minimum ratio of the bytes written by the host to the bytes written by the guest for writes to count as amplified.
const AMPLIFIED: f64 = 1.5;
/// Minimum number of bytes for a comparison. Metadata and the kernel's own reads may amount to fewer bytes.
const LEAST: u64 = 1 << 20;
/// Minimum number of flushes for a comparison.
const LEAST_FLUSHES: u64 = 8;

/// Returns all doubts about a sample.
#[must_use]
pub fn judge_disk_sample(
    disk: &Disk,
    workload: &Workload,
    guest: &GuestSide,
    host: &HostSide,
) -> Vec<Doubt> {
    [
        find_cached_io(guest, host),
        host_cache(disk, guest, host),
        find_amplification(disk, guest, host),
        flushes_uncounted(disk, guest, host),
        flushes_missing(disk, guest, host),
        flushes_dropped(disk, host),
        no_flush_asked(disk, workload, guest),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn make_doubt(code: &str, severity: Severity, evidence: String, remedy: &str) -> Option<Doubt> {
    Some(Doubt {
        code: code.to_owned(),
        severity,
        evidence,
        remedy: remedy.to_owned(),
    })
}

fn share_of(part: u64, whole: u64) -> f64 {
    part as f64 / (whole as f64).max(1.0)
}

/// Returns a doubt if fio read or wrote more than the device received. The guest's page cache then served the rest.
fn find_cached_io(guest: &GuestSide, host: &HostSide) -> Option<Doubt> {
    let fio = guest.fio_read + guest.fio_written;
    let device = host.read_bytes + host.written_bytes;
    if fio < LEAST || share_of(device, fio) >= ENOUGH {
        return None;
    }
    make_doubt(
        "guest-cache",
        Severity::Void,
        format!(
            "fio moved {} in the guest, the device was asked for {}",
            Bytes(fio),
            Bytes(device)
        ),
        "direct I/O in the guest, so that its page cache takes no part",
    )
}

/// Returns a doubt if the host's page cache served reads of the guest.
fn host_cache(disk: &Disk, guest: &GuestSide, host: &HostSide) -> Option<Doubt> {
    if guest.fio_read < LEAST || share_of(host.process_read, host.read_bytes) >= HALF {
        return None;
    }
    let remedy = match disk.cache.direct() {
        true => "look for a cache below: the host's file system has one of its own",
        false => "cache=none or directsync, or a disk much larger than the host's memory",
    };
    make_doubt(
        "host-cache-read",
        Severity::Suspect,
        format!(
            "the device was asked for {}, QEMU fetched {} from storage: the host's memory answered \
             the rest",
            Bytes(host.read_bytes),
            Bytes(host.process_read)
        ),
        remedy,
    )
}

/// Returns a doubt if the host wrote more than the device received. This cannot be determined if the host writes
/// through its page cache.
fn find_amplification(disk: &Disk, guest: &GuestSide, host: &HostSide) -> Option<Doubt> {
    let factor = share_of(host.process_written, host.written_bytes);
    if guest.fio_written < LEAST || !disk.cache.direct() || factor < AMPLIFIED {
        return None;
    }
    let remedy = match disk.format {
        DiskFormat::Qcow2 { .. } => {
            "qcow2 allocates as it goes: preallocation=metadata, or fill the disk before measuring"
        }
        DiskFormat::Raw | DiskFormat::Luks => {
            "the host's blocks are larger than the guest's writes: compare block sizes"
        }
    };
    make_doubt(
        "host-write-amplified",
        Severity::Suspect,
        format!(
            "the device was asked to write {}, QEMU sent {} to storage, {factor:.1} times as much",
            Bytes(host.written_bytes),
            Bytes(host.process_written)
        ),
        remedy,
    )
}

/// Returns a doubt that flushes are not counted: QEMU's NVMe device does not count them (hw/nvme/ctrl.c of 7.2,
/// `nvme_flush`).
fn flushes_uncounted(disk: &Disk, guest: &GuestSide, host: &HostSide) -> Option<Doubt> {
    if disk.bus != Bus::Nvme || host.flushes > 0 || guest.flushes < LEAST_FLUSHES {
        return None;
    }
    make_doubt(
        "flushes-not-counted",
        Severity::Suspect,
        format!(
            "the guest sent {} flushes; QEMU 7.2 counts none of an nvme device",
            guest.flushes
        ),
        "`assay lab power-cut` with this disk: it logs what QEMU sends to the host",
    )
}

/// Returns a doubt if flushes of the guest's kernel did not reach the device.
fn flushes_missing(disk: &Disk, guest: &GuestSide, host: &HostSide) -> Option<Doubt> {
    let counted = disk.bus != Bus::Nvme;
    let missing = share_of(host.flushes, guest.flushes) < ENOUGH;
    if !counted || guest.flushes < LEAST_FLUSHES || !missing {
        return None;
    }
    make_doubt(
        "flushes-missing",
        Severity::Void,
        format!(
            "the guest's kernel finished {} flushes, QEMU's device was asked for {}",
            guest.flushes, host.flushes
        ),
        "`assay lab power-cut` with this disk: it tells whether anything was lost",
    )
}

/// Returns a doubt if QEMU receives flushes but its cache mode never sends them to the host.
fn flushes_dropped(disk: &Disk, host: &HostSide) -> Option<Doubt> {
    if disk.cache != CacheMode::Unsafe || host.flushes == 0 {
        return None;
    }
    make_doubt(
        "flushes-dropped",
        Severity::Suspect,
        format!(
            "the device was asked for {} flushes; with cache=unsafe QEMU sends none to the host",
            host.flushes
        ),
        "any other cache mode, for data that is to survive a power cut",
    )
}

/// Returns a doubt if fio requested durability but the guest's kernel sent almost no flush.
fn no_flush_asked(disk: &Disk, workload: &Workload, guest: &GuestSide) -> Option<Doubt> {
    // Without a volatile write cache, each completed write is durable, which QEMU ensures.
    let forced = guest.fua && workload.durability == Durability::Dsync;
    let asked = workload.durability != Durability::None && disk.cache.shows_write_cache();
    // The kernel merges waiting flushes, at most as many as are in flight.
    let joined = u64::from(workload.queue_depth.max(1)) * u64::from(workload.jobs.max(1));
    let sent = guest.flushes.saturating_mul(joined);
    if !asked || forced || guest.syncs < LEAST_FLUSHES || share_of(sent, guest.syncs) >= HALF {
        return None;
    }
    make_doubt(
        "flushes-not-sent",
        Severity::Void,
        format!(
            "fio asked {} times for durability, the guest's kernel sent {} flushes",
            guest.syncs, guest.flushes
        ),
        "/sys/block/DISK/queue/write_cache in the guest: `write through` there sends none",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn workload(durability: &str) -> Workload {
        serde_json::from_value(serde_json::json!({
            "name": "w", "pattern": "randwrite", "block_size": "4k", "durability": durability,
        }))
        .unwrap()
    }

    fn disk(text: &str) -> Disk {
        Disk::parse(text, "d").unwrap()
    }

    fn codes(disk: &Disk, durability: &str, guest: GuestSide, host: HostSide) -> Vec<String> {
        let found = judge_disk_sample(disk, &workload(durability), &guest, &host);
        found.into_iter().map(|doubt| doubt.code).collect()
    }

    fn read(device: u64, process: u64) -> (GuestSide, HostSide) {
        let guest = GuestSide {
            fio_read: 100 * MIB,
            ..GuestSide::default()
        };
        let host = HostSide {
            read_bytes: device,
            process_read: process,
            ..HostSide::default()
        };
        (guest, host)
    }

    fn flushed(syncs: u64, guest: u64, host: u64) -> (GuestSide, HostSide) {
        let guest = GuestSide {
            syncs,
            flushes: guest,
            ..GuestSide::default()
        };
        let host = HostSide {
            flushes: host,
            ..HostSide::default()
        };
        (guest, host)
    }

    #[test]
    fn reads_that_a_cache_answered_are_doubted() {
        let plain = disk("64M,cache=writeback");
        let (guest, host) = read(100 * MIB, 0);
        assert_eq!(codes(&plain, "none", guest, host), ["host-cache-read"]);
        let (guest, host) = read(100 * MIB, 99 * MIB);
        assert_eq!(codes(&plain, "none", guest, host), Vec::<String>::new());
        let (guest, host) = read(5 * MIB, 5 * MIB);
        assert_eq!(codes(&plain, "none", guest, host), ["guest-cache"]);
    }

    #[test]
    fn amplified_writes_are_doubted_where_they_are_known() {
        let guest = GuestSide {
            fio_written: 10 * MIB,
            ..GuestSide::default()
        };
        let host = HostSide {
            written_bytes: 10 * MIB,
            process_written: 160 * MIB,
            ..HostSide::default()
        };
        let direct = disk("64M,cache=none,format=qcow2");
        assert_eq!(
            codes(&direct, "none", guest, host),
            ["host-write-amplified"]
        );
        // Through the page cache the kernel counts whole folios.
        let cached = disk("64M,cache=writeback");
        assert_eq!(codes(&cached, "none", guest, host), Vec::<String>::new());
    }

    #[test]
    fn flushes_are_followed_from_fio_to_the_host() {
        let plain = disk("64M");
        let all = flushed(100, 100, 100);
        assert_eq!(codes(&plain, "fsync", all.0, all.1), Vec::<String>::new());
        let lost = flushed(100, 100, 3);
        assert_eq!(codes(&plain, "fsync", lost.0, lost.1), ["flushes-missing"]);
        let none = flushed(100, 0, 0);
        assert_eq!(codes(&plain, "fsync", none.0, none.1), ["flushes-not-sent"]);
        // The guest sees no cache, so it has nothing to flush.
        let through = disk("64M,cache=writethrough");
        assert_eq!(
            codes(&through, "fsync", none.0, none.1),
            Vec::<String>::new()
        );
        let unsafe_ = disk("64M,cache=unsafe");
        assert_eq!(codes(&unsafe_, "fsync", all.0, all.1), ["flushes-dropped"]);
        let nvme = disk("64M,bus=nvme");
        assert_eq!(
            codes(&nvme, "fsync", lost.0, HostSide::default()),
            ["flushes-not-counted"]
        );
        // Single writes can be made durable directly.
        let forced = GuestSide {
            fua: true,
            ..none.0
        };
        assert_eq!(codes(&plain, "dsync", forced, none.1), Vec::<String>::new());
        // A few flushes at the edges of a sample do not matter.
        let few = flushed(0, 3, 0);
        assert_eq!(codes(&plain, "none", few.0, few.1), Vec::<String>::new());
    }
}
