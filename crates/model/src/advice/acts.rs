//! What a change acts on: the `[acts]` table of a page, by which `assay tune` chooses and orders
//! candidates. The mapping to candidates is in `assay-tune`.

use crate::criterion::Metric;
use crate::result::LimitKind;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// What a change acts on, which operations it can move, and what is expected of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActsOn {
    /// Parts of the machine that the change acts on; at least one.
    pub on: Vec<MachinePart>,
    /// Limits that the change relieves; at least one.
    pub relieves: Vec<LimitKind>,
    /// Loads that the change can move; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadName>,
    /// How the change is switched on and off.
    pub toggle: ToggleCost,
    /// Ids of other pages that cannot be on beside this one. Pages that change the same setting exclude
    /// each other without being named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// Why `assay tune` never keeps the change, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never: Option<String>,
    /// Which operations it can move; all when absent.
    #[serde(default, skip_serializing_if = "MovedOperations::is_any")]
    pub moves: MovedOperations,
    /// What is expected before anything is measured.
    pub prior: ExpectedGain,
}

/// A part of the machine: a layer of the storage stack, the kernel or a program.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MachinePart {
    /// The file system.
    FileSystem,
    /// The journal or log of a file system.
    Journal,
    /// The page cache and writeback.
    PageCache,
    /// A file that is a disk: its format.
    Image,
    /// The virtual disk of a guest: cache mode and submission.
    VirtualDisk,
    /// A ZFS file system or volume.
    Dataset,
    /// A ZFS pool: transaction groups, queues of its devices.
    Pool,
    /// ZFS's cache in memory or on a fast device.
    Arc,
    /// dm-crypt.
    Crypt,
    /// Software RAID.
    Md,
    /// The queue of a block device.
    DeviceQueue,
    /// The flush of a device's write cache.
    DeviceFlush,
    /// Memory management.
    Memory,
    /// Frequency, idle states and scheduling of the CPUs.
    Cpu,
    /// The kernel's network stack.
    NetworkStack,
    /// The queue of connections that wait to be accepted.
    AcceptQueue,
    /// A server's processes and their work.
    Server,
    /// A database: its cache, its log, its plans.
    Database,
    /// Authentication and the start of a session.
    Login,
}

/// A kind of load, as `kind` of a load names it.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LoadName {
    /// fio.
    Fio,
    /// HTTP requests.
    Http,
    /// IMAP sessions.
    Imap,
    /// Small files with an extended attribute.
    Attributes,
    /// A command.
    Command,
}

/// What switching costs.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ToggleCost {
    /// Written to the kernel, in effect at once.
    Live,
    /// A file system is remounted.
    Remount,
    /// A service reads its configuration again.
    Reload,
    /// A service is restarted.
    Restart,
    /// Things are made anew and measured side by side.
    Recreate,
    /// Takes effect at the next boot.
    Reboot,
}

/// Which operations a change can move. What is absent is not restricted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MovedOperations {
    /// Reads, writes or flushes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<MovedOperation>,
    /// Figures: `iops`, `p99`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Only operations through the page cache, or only those past it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CachePath>,
    /// Only random or only sequential operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessOrder>,
    /// Only writes that are flushed, or only those that are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<bool>,
    /// Only blocks of these sizes, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Between<Bytes>>,
    /// Only with so many operations in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Between<u32>>,
}

impl MovedOperations {
    /// Whether nothing is restricted.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

/// An operation on storage.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MovedOperation {
    /// Reads.
    Read,
    /// Writes, the flush that follows them included.
    Write,
    /// Flushes.
    Flush,
}

/// Whether operations pass through the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CachePath {
    /// Through the page cache.
    Buffered,
    /// Past the page cache, with O_DIRECT.
    Direct,
}

/// The order of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessOrder {
    /// Random offsets.
    Random,
    /// Ascending offsets.
    Sequential,
}

/// A range; both ends belong to it, and one may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Between<T> {
    /// The smallest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<T>,
    /// The largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<T>,
}

impl<T: PartialOrd + Copy> Between<T> {
    /// Whether a value lies in the range.
    #[must_use]
    pub fn contains(&self, value: T) -> bool {
        self.from.is_none_or(|from| from <= value) && self.to.is_none_or(|to| value <= to)
    }

    /// Whether no value can lie in the range, or the range has no end at all.
    #[must_use]
    pub fn is_empty_or_open(&self) -> bool {
        match (self.from, self.to) {
            (None, None) => true,
            (Some(from), Some(to)) => from > to,
            _ => false,
        }
    }
}

/// What is expected of a change before anything is measured. It decides an order and no verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedGain {
    /// Probability that the change helps where it applies, 0 to 1.
    pub helps: f64,
    /// Smallest and largest usual gain where it helps, 0.1 for 10 % more or a time shorter by 1 − 1/1.1.
    pub gain: [f64; 2],
    /// Who measured that, or from what it was derived.
    pub from: String,
}

crate::named!(MachinePart, "part of the machine": FileSystem = "file-system", Journal = "journal",
    PageCache = "page-cache", Image = "image", VirtualDisk = "virtual-disk", Dataset = "dataset",
    Pool = "pool", Arc = "arc", Crypt = "crypt", Md = "md", DeviceQueue = "device-queue",
    DeviceFlush = "device-flush", Memory = "memory", Cpu = "cpu", NetworkStack = "network-stack",
    AcceptQueue = "accept-queue", Server = "server", Database = "database", Login = "login");
crate::named!(LoadName, "load": Fio = "fio", Http = "http", Imap = "imap",
    Attributes = "attributes", Command = "command");
crate::named!(ToggleCost, "toggle": Live = "live", Remount = "remount", Reload = "reload",
    Restart = "restart", Recreate = "recreate", Reboot = "reboot");
crate::named!(MovedOperation, "operation": Read = "read", Write = "write", Flush = "flush");
