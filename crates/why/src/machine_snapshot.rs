//! One snapshot of a machine (a look): numbers of the machine, and of its disks, groups, processes and other entities.
//! `read` collects them, and `window` computes values over time.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Numbers by name. A name that ends in [`TOTAL`] is a counter since the start of its entity; any
/// other number is the current level.
pub type Numbers = BTreeMap<String, f64>;

/// Suffix of the name of a counter.
pub const TOTAL: &str = "_total";

/// Prefix of those texts of the machine that are facts: `fact.sysctl.vm.swappiness`.
pub const FACT: &str = "fact.";

/// Kind of an entity.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EntityKind {
    /// The machine as a whole.
    Machine,
    /// A block device.
    Disk,
    /// A control group.
    Group,
    /// A process with its threads.
    Process,
    /// A network interface.
    Interface,
    /// A listening TCP socket.
    Listener,
    /// A ZFS pool.
    Pool,
    /// An md array.
    Array,
    /// A local file system that is mounted for writing.
    FileSystem,
    /// A TCP connection that makes no progress.
    Connection,
    /// A disk of a QEMU guest, with QEMU's own counters.
    GuestDisk,
}

/// A part of the machine: a disk, a group, a process, …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// Kind of the entity.
    pub kind: EntityKind,
    /// Identity over time. For a process it is `PID@START`, so that a reused process id is a different entity.
    pub id: String,
    /// Name for users, as the kernel reports it; not escaped.
    pub name: String,
    /// Its numbers.
    #[serde(default, skip_serializing_if = "Numbers::is_empty")]
    pub numbers: Numbers,
    /// Texts of the entity, not escaped: `group`, `wchan`, `guest` …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
}

impl Entity {
    /// Returns an entity without numbers.
    #[must_use]
    pub fn new(kind: EntityKind, id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind,
            id: id.into(),
            name: name.into(),
            numbers: Numbers::new(),
            texts: BTreeMap::new(),
        }
    }

    /// Sets a number.
    pub fn set(&mut self, key: &str, value: f64) {
        self.numbers.insert(key.to_owned(), value);
    }
}

/// One snapshot of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSnapshot {
    /// Time of the snapshot in milliseconds since the first snapshot (monotonic clock).
    pub at_ms: u64,
    /// Numbers of the whole machine.
    #[serde(default)]
    pub machine: Numbers,
    /// Texts of the machine: `clocksource`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
    /// Entities of the machine.
    #[serde(default)]
    pub entities: Vec<Entity>,
    /// Sources that could not be read, each with the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl MachineSnapshot {
    /// Sets a number of the machine.
    pub fn set(&mut self, key: impl Into<String>, value: f64) {
        self.machine.insert(key.into(), value);
    }
}
