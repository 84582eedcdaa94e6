//! Rule `foreign-io`: other programs read or wrote the same device while the sample ran. The rule compares the kernel's
//! counters of the device with the I/O of the load. It skips a direction (reads or writes) in which the load itself
//! causes additional I/O: flushes with a journal, the page cache, copy-on-write.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::sample::DeviceDelta;
use assay_model::{Bytes, Doubt};

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "foreign-io";
/// Minimum fraction of the device's bytes or requests that other programs must cause for a doubt.
const MUCH: f64 = 0.2;
/// Minimum busy fraction of the device for a doubt, because other I/O on a nearly idle device delays no request.
const BUSY: f64 = 0.2;
/// Minimum number of requests by other programs for a doubt. Journals and logs of an idle machine cause fewer.
const LEAST_REQUESTS: u64 = 50;

/// I/O that other programs caused at the device during a sample, in one direction.
#[derive(Clone, Copy, Default)]
struct Foreign {
    bytes: u64,
    /// Number of requests; 0 if the load uses this direction too, because merged and split requests cannot be
    /// subtracted.
    requests: u64,
}

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let counters = evidence.counters?;
    // Of several devices the figures depend on mirrors and parity.
    let [device] = &counters.devices[..] else {
        return None;
    };
    let elapsed = counters.elapsed.as_secs_f64();
    let busy = device.busy_ms as f64 / 1e3;
    if elapsed <= 0.0 || busy < BUSY * elapsed || evidence.unified || evidence.bypasses_kernel() {
        return None;
    }
    let (read, written) = (
        find_foreign_reads(evidence, device),
        find_foreign_writes(evidence, device),
    );
    let share = |foreign: u64, all: u64| {
        if all == 0 {
            0.0
        } else {
            foreign as f64 / all as f64
        }
    };
    let bytes = share(
        read.bytes + written.bytes,
        device.read_bytes.0.saturating_add(device.write_bytes.0),
    );
    let foreign_requests = read.requests + written.requests;
    let requests = share(foreign_requests, device.reads.saturating_add(device.writes));
    let matters = bytes >= MUCH || requests >= MUCH && foreign_requests >= LEAST_REQUESTS;
    let enough = foreign_requests >= LEAST_REQUESTS || read.bytes + written.bytes >= 1 << 20;
    (matters && enough).then(|| {
        let seen = [("read", read), ("wrote", written)]
            .into_iter()
            .filter(|(_, foreign)| foreign.bytes > 0)
            .map(|(verb, foreign)| match foreign.requests {
                0 => format!("{verb} {}", Bytes(foreign.bytes)),
                requests => format!("{verb} {} in {requests} requests", Bytes(foreign.bytes)),
            });
        let seen: Vec<String> = seen.collect();
        suspect_doubt(
            CODE,
            format!(
                "other programs {} on {} during the sample",
                seen.join(" and "),
                device.name
            ),
            "Measure again when nothing else uses the disk; or keep the figure as that of a busy disk.",
        )
    })
}

/// Returns the time that the counters cover ÷ the run time of the load, at least 1. The counters also cover start, ramp
/// and end of the load generator.
fn stretch(evidence: &DoubtEvidence) -> f64 {
    let elapsed = evidence
        .counters
        .map_or(0.0, |counters| counters.elapsed.as_secs_f64());
    let runtime = evidence
        .longest_runtime()
        .map_or(0.0, |time| time.as_secs_f64());
    if runtime > 0.0 {
        (elapsed / runtime).max(1.0)
    } else {
        1.0
    }
}

fn subtract(evidence: &DoubtEvidence, device: Bytes, load: u64) -> Foreign {
    let own = load as f64 * stretch(evidence);
    Foreign {
        bytes: (device.0 as f64 - own).max(0.0) as u64,
        requests: 0,
    }
}

/// Returns whether each byte of the load causes exactly one byte at the device.
fn is_one_to_one(evidence: &DoubtEvidence) -> bool {
    let copies = evidence
        .target
        .and_then(|target| target.fs_type.as_deref())
        .is_some_and(|kind| matches!(kind, "zfs" | "btrfs" | "bcachefs" | "f2fs" | "overlay"));
    !copies && evidence.options.is_some_and(|options| options.direct)
}

fn find_foreign_reads(evidence: &DoubtEvidence, device: &DeviceDelta) -> Foreign {
    match evidence.bytes_read() {
        0 if evidence.is_on_zfs() => Foreign::default(),
        0 => Foreign {
            bytes: device.read_bytes.0,
            requests: device.reads,
        },
        load if is_one_to_one(evidence) => subtract(evidence, device.read_bytes, load),
        _ => Foreign::default(),
    }
}

fn find_foreign_writes(evidence: &DoubtEvidence, device: &DeviceDelta) -> Foreign {
    let is_flushed =
        evidence.count_flushes() > 0 || evidence.options.is_some_and(|options| options.end_fsync);
    match evidence.bytes_written() {
        0 if evidence.is_on_zfs() => Foreign::default(),
        0 => Foreign {
            bytes: device.write_bytes.0,
            requests: device.writes,
        },
        load if is_one_to_one(evidence) && !is_flushed => {
            subtract(evidence, device.write_bytes, load)
        }
        _ => Foreign::default(),
    }
}
