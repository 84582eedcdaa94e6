//! Collects the evidence that the rules need from a job, its results and the machine. The rules are in the sibling
//! modules.

use assay_fio::json::DiskUtil;
use assay_fio::options::{self, EngineKind, JobOptions, SyncOption};
use assay_model::sample::{Counters, Operation, Operations, RatePoint, Worker};
use assay_model::target::FileState;
use assay_model::{Bytes, Facts, Nanos, TargetInfo};

/// Where the judged options or figures come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvidenceOrigin {
    /// A command line or job file that was not run by assay.
    #[default]
    CommandLine,
    /// A result that another program wrote.
    Imported,
    /// A sample that assay measured itself.
    Measured,
}

/// Evidence about a job. A field without evidence is `None` or empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct DoubtEvidence<'a> {
    /// Options of the job; `None` if unknown.
    pub options: Option<&'a JobOptions>,
    /// Names of other jobs of the same command that run at the same time on the same file.
    pub beside: &'a [&'a str],
    /// Names of other sections of the same command whose figures fio adds to those of this job.
    pub grouped: &'a [&'a str],
    /// Results of all jobs that ran together on the target.
    pub results: &'a [Worker],
    /// Rate of the job over time.
    pub series: &'a [RatePoint],
    /// fio's own counters of the disks, over the lifetime of the fio process.
    pub disks: &'a [DiskUtil],
    /// Kernel counters over the sample.
    pub counters: Option<&'a Counters>,
    /// Target of the job; `None` if unknown.
    pub target: Option<&'a TargetInfo>,
    /// State of the file before the sample.
    pub file: Option<&'a FileState>,
    /// Facts of the machine; `None` if unknown.
    pub facts: Option<&'a Facts>,
    /// Whether fio merged reads, writes and trims into one figure (`unified_rw_reporting`).
    pub unified: bool,
    /// Where the evidence comes from; some rules apply only to assay's own samples.
    pub source: EvidenceOrigin,
}

/// If at least this fraction of the bytes or of the time is accounted for, a quantity counts as complete. Other
/// processes, rounding and the edges of the sample explain the rest.
pub(crate) const ENOUGH: f64 = 0.9;
/// If less than this fraction of a quantity comes from one source, most of the quantity has another source.
pub(crate) const HALF: f64 = 0.5;

/// Fraction of the load that reached the device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceShare {
    /// Bytes at the device ÷ bytes at fio. Above 1 if other programs used the device too.
    pub value: f64,
    /// Both figures as text, such as `the device read 3 MiB of the 2.5 GiB that fio read`.
    pub seen: String,
}

/// Minimum number of bytes from which a cache can be inferred.
const LEAST_BYTES: u64 = 1 << 20;
/// Maximum bytes of a request of the block layer by default (`max_sectors_kb`): 1280 KiB before Linux 6.17, 4096 KiB
/// since (block/blk.h, BLK_DEF_MAX_SECTORS_CAP).
const LARGEST_REQUEST: u64 = 4096 << 10;
const LARGEST_REQUEST_BEFORE: u64 = 1280 << 10;
/// Minimum duration of a job from which fio's disk counters are comparable, because fio reads them late.
const LEAST_TIME: Nanos = Nanos(1_000_000_000);
/// Maximum bytes of a random I/O that the block layer does not merge into larger requests.
const UNMERGED: u64 = 128 << 10;

impl DoubtEvidence<'_> {
    /// Whether the load generator is fio; true if only options are known.
    pub(crate) fn is_fio(&self) -> bool {
        let own = |worker: &Worker| {
            worker.fio.is_empty()
                && worker.asked().all(|(kind, _)| !kind.is_io())
                && !worker.operations.is_empty()
        };
        self.results.is_empty() || !self.results.iter().all(own)
    }

    /// Whether a server does the I/O for the load.
    pub(crate) fn is_served(&self) -> bool {
        let served = |kind| matches!(kind, Operation::Request | Operation::Login);
        self.results
            .iter()
            .any(|worker| worker.asked().any(|(kind, _)| served(kind)))
    }

    /// Iterates over the reads and writes of all jobs.
    pub(crate) fn directions(&self) -> impl Iterator<Item = &Operations> {
        self.results
            .iter()
            .flat_map(|job| job.read().into_iter().chain(job.write()))
    }

    /// Counts the I/Os of all jobs.
    pub(crate) fn count_ios(&self) -> u64 {
        self.directions()
            .fold(0, |sum, io| sum.saturating_add(io.count))
    }

    /// Sums the bytes that all jobs read.
    pub(crate) fn bytes_read(&self) -> u64 {
        sum_ios(self.results.iter().filter_map(|job| job.read()))
    }

    /// Sums the bytes that all jobs wrote.
    pub(crate) fn bytes_written(&self) -> u64 {
        sum_ios(self.results.iter().filter_map(|job| job.write()))
    }

    pub(crate) fn reads(&self) -> bool {
        match self.options {
            Some(options) => options.access.reads,
            None => self.bytes_read() > 0,
        }
    }

    /// Returns the run time of the longest direction of any job. `job_runtime` cannot be used, because it is a sum if
    /// jobs are grouped. `None` if nothing ran.
    pub(crate) fn longest_runtime(&self) -> Option<Nanos> {
        self.directions().map(|io| io.runtime).max()
    }

    /// Whether the engine bypasses the page cache because it does no file I/O through the kernel.
    pub(crate) fn bypasses_kernel(&self) -> bool {
        self.options.is_some_and(|options| {
            matches!(
                options.engine.as_str(),
                "null"
                    | "nbd"
                    | "rbd"
                    | "rados"
                    | "http"
                    | "libiscsi"
                    | "libhdfs"
                    | "gfapi"
                    | "gfapi_async"
                    | "nfs"
                    | "net"
                    | "netsplice"
                    | "cpuio"
                    | "filecreate"
                    | "filestat"
                    | "filedelete"
                    | "io_uring_cmd"
                    | "sg"
                    | "rdma"
                    | "dev-dax"
                    | "libpmem"
                    | "pmemblk"
                    | "libzbc"
                    | "libblkio"
                    | "libcufile"
                    | "libhipfile"
                    | "dfs"
                    | "mtd"
                    | "xnvme"
            ) || options::find_engine(&options.engine) == Some(EngineKind::NoData)
        })
    }

    /// Whether the target is on ZFS.
    pub(crate) fn is_on_zfs(&self) -> bool {
        self.target
            .is_some_and(|target| target.fs_type.as_deref() == Some("zfs"))
    }

    /// Returns a property of the ZFS dataset that contains the target.
    pub(crate) fn dataset_property(&self, name: &str) -> Option<String> {
        let dataset = self.target?.mount_source.as_deref()?;
        let value = self.facts?.get(&format!("zfs.dataset.{dataset}.{name}"))?;
        Some(match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        })
    }

    /// Counts how often fio waited until a write was durable.
    pub(crate) fn count_flushes(&self) -> u64 {
        let each = self
            .options
            .is_some_and(|options| options.sync != SyncOption::No);
        let of = |job: &Worker| match each {
            true => job.write().map_or(0, |write| write.count),
            false => job.flush().map_or(0, |flushes| flushes.count),
        };
        self.results.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Computes bytes read by the device ÷ bytes read by fio.
    pub(crate) fn device_read_share(&self) -> Option<DeviceShare> {
        let devices = self.counters.map(|counters| &counters.devices);
        let device = devices.and_then(|devices| {
            let bytes = devices.iter().map(|d| d.read_bytes.0);
            (!devices.is_empty()).then(|| bytes.fold(0, u64::saturating_add))
        });
        let ios: u64 = self
            .results
            .iter()
            .filter_map(|job| job.read())
            .fold(0, |sum, io| sum.saturating_add(io.count));
        let disk = self.disks.iter().map(|disk| disk.read_ios).max();
        self.device_share("read", self.bytes_read(), device, ios, disk)
    }

    /// Computes bytes written by the device ÷ bytes written by fio.
    pub(crate) fn device_write_share(&self) -> Option<DeviceShare> {
        let devices = self.counters.map(|counters| &counters.devices);
        let device = devices.and_then(|devices| {
            let bytes = devices.iter().map(|d| d.write_bytes.0);
            (!devices.is_empty()).then(|| bytes.fold(0, u64::saturating_add))
        });
        let ios: u64 = self
            .results
            .iter()
            .filter_map(|job| job.write())
            .fold(0, |sum, io| sum.saturating_add(io.count));
        let disk = self.disks.iter().map(|disk| disk.write_ios).max();
        self.device_share("wrote", self.bytes_written(), device, ios, disk)
    }

    /// Returns the largest default request of this kernel; of an unknown kernel the larger one, which doubts less.
    fn largest_request(&self) -> u64 {
        let release = self.facts.and_then(|facts| facts.str("kernel.release"));
        let mut numbers = release.unwrap_or_default().split(['.', '-']);
        let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
        match (next(), next()) {
            (Some(major), Some(minor)) if (major, minor) < (6, 17) => LARGEST_REQUEST_BEFORE,
            _ => LARGEST_REQUEST,
        }
    }

    fn device_share(
        &self,
        verb: &str,
        bytes: u64,
        device: Option<u64>,
        ios: u64,
        disk_ios: Option<u64>,
    ) -> Option<DeviceShare> {
        if bytes < LEAST_BYTES || self.unified {
            return None;
        }
        if let Some(device) = device {
            return Some(DeviceShare {
                value: device as f64 / bytes as f64,
                seen: format!(
                    "the device {verb} {} of the {} that fio {verb}",
                    Bytes(device),
                    Bytes(bytes)
                ),
            });
        }
        // fio counts requests of the disk, not bytes, and reads the counters late: up to 250 ms of
        // a run are missing (`DISK_UTIL_MSEC`, fio 3.33), so only gross differences are
        // significant.
        let requests = disk_ios?;
        if self.longest_runtime().is_none_or(|time| time < LEAST_TIME) {
            return None;
        }
        let random = self.options.is_some_and(|options| options.access.random);
        let size = bytes / ios.max(1);
        let (value, exact) = if random && size <= UNMERGED && ios > 0 {
            (requests as f64 / ios as f64, true)
        } else {
            let most = requests.saturating_mul(self.largest_request());
            (most as f64 / bytes as f64, false)
        };
        if value >= HALF && !(exact && value >= ENOUGH) {
            return None;
        }
        Some(DeviceShare {
            value,
            seen: format!(
                "the device saw {requests} requests for the {ios} I/Os ({}) of fio",
                Bytes(bytes)
            ),
        })
    }
}

fn sum_ios<'a>(stats: impl Iterator<Item = &'a Operations>) -> u64 {
    stats.fold(0, |sum, io| sum.saturating_add(io.bytes.0))
}
