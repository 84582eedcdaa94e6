//! Defines what a change acts on: the `[acts]` table of an advice page, by which `assay tune` selects and orders
//! candidates. `assay-tune` converts the table to candidates.

use crate::criterion::Metric;
use crate::result::LimitKind;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// What a change acts on: the parts of the machine, the operations that the change can affect, and its expected gain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActsOn {
    /// Parts of the machine that the change affects; at least one.
    pub on: Vec<MachinePart>,
    /// Limits that the change can remove or raise, as [`LimitKind`]; at least one.
    pub relieves: Vec<LimitKind>,
    /// Kinds of load that the change can affect. Empty if it can affect all kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadName>,
    /// Cost of applying and reverting the change.
    pub toggle: ToggleCost,
    /// Ids of pages that cannot be combined with this one. Pages that change the same setting need not be listed,
    /// because assay never combines them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// Reason why `assay tune` never keeps the change; absent if it may keep the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never: Option<String>,
    /// Operations that the change can affect. If absent, it can affect all operations.
    #[serde(default, skip_serializing_if = "MovedOperations::is_any")]
    pub moves: MovedOperations,
    /// Expected gain before any measurement.
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
    /// The file system and its options.
    FileSystem,
    /// The journal or log of a file system.
    Journal,
    /// The page cache and writeback.
    PageCache,
    /// The format of a disk image, such as qcow2.
    Image,
    /// The virtual disk of a guest: cache mode and I/O backend.
    VirtualDisk,
    /// A ZFS file system or volume.
    Dataset,
    /// A ZFS pool: transaction groups, and the queues of its devices.
    Pool,
    /// The cache of ZFS, in memory (ARC) or on a fast device (L2ARC).
    Arc,
    /// Encryption of a block device by dm-crypt.
    Crypt,
    /// Software RAID (md).
    Md,
    /// The queue of a block device.
    DeviceQueue,
    /// The flush of a device's write cache.
    DeviceFlush,
    /// Memory management of the kernel.
    Memory,
    /// Frequency, idle states and scheduling of CPUs.
    Cpu,
    /// The kernel's network stack, such as its buffers and congestion control.
    NetworkStack,
    /// The server's queue of connections that it has not yet accepted.
    AcceptQueue,
    /// The processes of a server program.
    Server,
    /// A database: its cache, log and query plans.
    Database,
    /// Authentication and the start of a session.
    Login,
}

/// A kind of load, with the names that files use for a load's `kind`.
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
    /// I/O by fio.
    Fio,
    /// HTTP requests.
    Http,
    /// IMAP sessions.
    Imap,
    /// Creation of small files with an extended attribute.
    Attributes,
    /// A command that runs repeatedly.
    Command,
}

/// What it takes to switch between the two sides of a trial.
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
    /// A value is written to the kernel, with immediate effect.
    Live,
    /// A file system is remounted.
    Remount,
    /// A service reloads its configuration.
    Reload,
    /// A service is restarted.
    Restart,
    /// Two objects are created and measured side by side, so that no setting is switched.
    Recreate,
    /// The change has an effect only after the next boot.
    Reboot,
}

/// Operations that a change can affect. Each field restricts the operations; an absent field does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MovedOperations {
    /// Only these kinds of operation: reads, writes, flushes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<MovedOperation>,
    /// Only these metrics, such as `iops` or `p99`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Only operations through the page cache, or only direct operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CachePath>,
    /// Only random or only sequential operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessOrder>,
    /// Only writes with a flush if true, only writes without one if false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<bool>,
    /// Only blocks of a size in this range, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Between<Bytes>>,
    /// Only loads with a number of operations in flight in this range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Between<u32>>,
}

impl MovedOperations {
    /// Returns whether no field restricts the operations.
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
    /// Writes, including the flush after them.
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
    /// Direct, with O_DIRECT.
    Direct,
}

/// The order of offsets in a file or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessOrder {
    /// Random offsets.
    Random,
    /// Ascending offsets.
    Sequential,
}

/// An inclusive range. One of its ends may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Between<T> {
    /// Smallest value; absent if the range has no lower limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<T>,
    /// Largest value; absent if the range has no upper limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<T>,
}

impl<T: PartialOrd + Copy> Between<T> {
    /// Returns whether the range contains a value.
    #[must_use]
    pub fn contains(&self, value: T) -> bool {
        self.from.is_none_or(|from| from <= value) && self.to.is_none_or(|to| value <= to)
    }

    /// Returns whether the range contains no value, or has no limits at all.
    #[must_use]
    pub fn is_empty_or_open(&self) -> bool {
        match (self.from, self.to) {
            (None, None) => true,
            (Some(from), Some(to)) => from > to,
            _ => false,
        }
    }
}

/// Expected gain of a change before any measurement. It affects only the order of trials, never a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedGain {
    /// Probability from 0 to 1 that the change helps on a machine to which the advice applies.
    pub helps: f64,
    /// Smallest and largest usual gain if the change helps, as fractions. 0.1 means 10 % more of a rate, or a time that
    /// is shorter by 1 − 1/1.1.
    pub gain: [f64; 2],
    /// Source of these figures, or their derivation.
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
