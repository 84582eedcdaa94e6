//! A fio workload: the work of one fio job on a target.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Access pattern, with fio's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Random reads.
    RandRead,
    /// Random writes.
    RandWrite,
    /// Sequential mix of reads and writes.
    Rw,
    /// Random mix of reads and writes.
    RandRw,
}

impl Pattern {
    /// Returns fio's `rw=` value.
    #[must_use]
    pub fn fio(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::Rw => "rw",
            Self::RandRw => "randrw",
        }
    }

    /// Returns whether the offsets are random.
    #[must_use]
    pub fn random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandRw)
    }

    /// Returns whether the pattern contains writes.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::RandRead)
    }

    /// Returns whether the pattern contains reads.
    #[must_use]
    pub fn reads(self) -> bool {
        !matches!(self, Self::Write | Self::RandWrite)
    }

    /// Returns whether the pattern mixes reads and writes. Such a pattern needs a percentage of reads.
    #[must_use]
    pub fn mixed(self) -> bool {
        matches!(self, Self::Rw | Self::RandRw)
    }
}

/// Engine with which fio submits I/O.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// io_uring if the kernel permits it, else libaio. The choice is made before the plan is executed.
    #[default]
    Auto,
    /// io_uring.
    #[serde(rename = "io_uring")]
    IoUring,
    /// Linux native asynchronous I/O.
    Libaio,
    /// One `pread` or `pwrite` at a time.
    Psync,
    /// An NBD export through libnbd. Neither the page cache nor O_DIRECT is used.
    Nbd,
}

impl Engine {
    /// Returns fio's `ioengine=` value; `None` for `Auto`.
    #[must_use]
    pub fn fio(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::IoUring => Some("io_uring"),
            Self::Libaio => Some("libaio"),
            Self::Psync => Some("psync"),
            Self::Nbd => Some("nbd"),
        }
    }
}

/// When a write counts as complete.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When the kernel or device reports completion. The data may still be in a volatile cache.
    #[default]
    None,
    /// When the data is durable: the file is opened with O_DSYNC (`sync=dsync`), so the write returns only then.
    Dsync,
    /// After an `fdatasync`, which follows every write. Its time is part of the latency.
    Fdatasync,
    /// After an `fsync`, which follows every write. Its time is part of the latency.
    Fsync,
}

/// Parameters of one fio job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name in results and criteria, such as `randwrite-4k-qd1`: letters, digits and `-`.
    pub name: String,
    /// Order and direction of the I/Os.
    pub pattern: Pattern,
    /// Size of one I/O in bytes.
    pub block_size: Bytes,
    /// Number of I/Os in flight for each job.
    #[serde(default = "default_one")]
    pub queue_depth: u32,
    /// Number of concurrent jobs. For sequential patterns, each job works on its own part of the file.
    #[serde(default = "default_one")]
    pub jobs: u32,
    /// Percentage of reads in a mixed pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<u8>,
    /// Engine with which fio submits I/O.
    #[serde(default)]
    pub engine: Engine,
    /// Whether to bypass the page cache (O_DIRECT).
    #[serde(default = "default_true")]
    pub direct: bool,
    /// When a write counts as complete.
    #[serde(default)]
    pub durability: Durability,
    /// Duration of the measurement; that of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Nanos>,
    /// Duration of the load before the measurement; that of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Nanos>,
}

fn default_one() -> u32 {
    1
}
fn default_true() -> bool {
    true
}

impl Workload {
    /// Returns the default name, such as `randwrite-4k-qd1` or `randrw75-4k-qd8-j4`. The suffix `-buffered`, `-dsync`,
    /// `-fdatasync` or `-fsync` is appended if set.
    #[must_use]
    pub fn default_name(&self) -> String {
        let mix = match self.read_percent {
            Some(share) if self.pattern.mixed() => share.to_string(),
            _ => String::new(),
        };
        let mut name = format!(
            "{}{mix}-{}-qd{}",
            self.pattern.fio(),
            self.block_size.short().to_ascii_lowercase(),
            self.queue_depth
        );
        if self.jobs > 1 {
            name.push_str(&format!("-j{}", self.jobs));
        }
        if !self.direct {
            name.push_str("-buffered");
        }
        name.push_str(match self.durability {
            Durability::None => "",
            Durability::Dsync => "-dsync",
            Durability::Fdatasync => "-fdatasync",
            Durability::Fsync => "-fsync",
        });
        name
    }

    /// Returns the number of I/Os in flight over all jobs together.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.queue_depth.saturating_mul(self.jobs)
    }

    /// Returns a description on one line, such as `random write, 4 KiB, queue depth 1, direct, O_DSYNC`.
    #[must_use]
    pub fn describe(&self) -> String {
        let pattern = match self.pattern {
            Pattern::Read => "sequential read".to_owned(),
            Pattern::Write => "sequential write".to_owned(),
            Pattern::RandRead => "random read".to_owned(),
            Pattern::RandWrite => "random write".to_owned(),
            Pattern::Rw => format!(
                "sequential mix, {} % reads",
                self.read_percent.unwrap_or(50)
            ),
            Pattern::RandRw => format!("random mix, {} % reads", self.read_percent.unwrap_or(50)),
        };
        let jobs = match self.jobs {
            1 => String::new(),
            n => format!(", {n} jobs"),
        };
        let direct = match (self.engine, self.direct) {
            (Engine::Nbd, _) => "over NBD",
            (_, true) => "direct",
            (_, false) => "through the page cache",
        };
        let durability = match self.durability {
            Durability::None => "",
            Durability::Dsync => ", durable (O_DSYNC)",
            Durability::Fdatasync => ", fdatasync after every write",
            Durability::Fsync => ", fsync after every write",
        };
        format!(
            "{pattern}, {}, queue depth {}{jobs}, {direct}{durability}",
            self.block_size, self.queue_depth
        )
    }
}
