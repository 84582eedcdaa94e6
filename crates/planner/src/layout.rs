//! Finds all sensible layouts for a set of disks, and computes their properties.

mod describe;
mod enumerate;
mod families;
mod growth;
mod layout_filter;
mod pools;
mod stripes;

pub use describe::{
    BlockShare, Content, Costs, Growth, LayoutPlan, Ownership, Scaling, Segment, describe,
};
pub use enumerate::{Search, search};
pub use layout_filter::{Io, Want, best, is_buildable, nearest_buildable, pareto, rank};
pub use stripes::{Placement, place_declustered};

use crate::btrfs::Profile;
use crate::durability::Assumptions;
use crate::error::PlannerError;
use crate::size::MAX_DISKS;
use crate::zfs::{Pool, Version, parse_spec, partition_bytes};
use assay_model::size::Convention::Decimal;
use serde::Serialize;

/// A disk that is available for the layout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Disk {
    /// Size of the disk in bytes.
    pub size: u64,
    /// Price of the disk. All prices must have the same currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
}

/// Settings that all layouts of a question share.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Context {
    /// Block sizes for which the efficiency of ZFS is computed.
    pub blocks: Vec<u64>,
    /// Size in bytes of a ZFS volume whose reservation is computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<u64>,
    /// Base-2 logarithm of the sector size that ZFS uses.
    pub ashift: u32,
    /// OpenZFS version for which sizes are computed.
    pub zfs: Version,
    /// Logical sector size in bytes if ZFS gets whole disks and partitions them; `None` if ZFS gets files or
    /// partitions.
    pub whole_disk: Option<u64>,
    /// Speed of a disk during a rebuild in bytes per second.
    pub disk_speed: u64,
    /// Fill level that is assumed when a disk fails, as a fraction of the usable space.
    pub fill: f64,
    /// Assumptions about failures. Each layout replaces the rebuild hours by its own estimate.
    pub failures: Assumptions,
    /// Parameters of the cost calculation; `None` if no costs are computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ownership: Option<Ownership>,
}

impl Default for Context {
    /// Returns the default settings: ashift 12, OpenZFS 2.1.11, no partitions, 150 MB/s, 80 % full.
    fn default() -> Self {
        Self {
            blocks: vec![4 << 10, 8 << 10, 16 << 10, 64 << 10, 128 << 10, 1 << 20],
            volume: None,
            ashift: 12,
            zfs: Version::CHECKED,
            whole_disk: None,
            disk_speed: 150_000_000,
            fill: 0.8,
            failures: Assumptions::default(),
            ownership: None,
        }
    }
}

/// A level of Linux software RAID.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Md {
    /// Striped, without redundancy.
    Raid0,
    /// Every disk contains all data.
    Raid1,
    /// Striped with one parity.
    Raid5,
    /// Striped with two parities.
    Raid6,
    /// Two copies, striped (near=2).
    Raid10,
}

/// A layout for a given set of disks.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// A ZFS pool. Its vdevs contain the sizes of the disks, in the order of the question.
    Zfs(Pool),
    /// A btrfs file system.
    Btrfs {
        /// Profile of the data chunks.
        data: Profile,
        /// Profile of the metadata chunks.
        metadata: Profile,
    },
    /// Linux software RAID below a file system.
    Md(Md),
    /// Declustered stripes of `data` + `parity` chunks over any disks.
    Declustered {
        /// Number of data chunks per stripe.
        data: u64,
        /// Number of parity chunks per stripe.
        parity: u64,
    },
}

impl Layout {
    /// Returns the description of the layout, in the syntax of `--only`.
    #[must_use]
    pub fn spec(&self) -> String {
        match self {
            Self::Zfs(pool) => {
                let mut parts: Vec<(usize, String)> = Vec::new();
                for vdev in &pool.vdevs {
                    let class = match vdev.class {
                        crate::zfs::Class::Normal => String::new(),
                        class => format!("{}/", format!("{class:?}").to_lowercase()),
                    };
                    let text = format!("{class}{}", vdev.kind);
                    match parts.last_mut() {
                        Some((times, last)) if *last == text => *times += 1,
                        _ => parts.push((1, text)),
                    }
                }
                let parts: Vec<String> = parts
                    .into_iter()
                    .map(|(times, text)| match times {
                        1 => text,
                        _ => format!("{times}*{text}"),
                    })
                    .collect();
                parts.join("+")
            }
            Self::Btrfs { data, .. } => format!("btrfs-{data}"),
            Self::Md(level) => format!("md-{}", format!("{level:?}").to_lowercase()),
            Self::Declustered { data, parity } => format!("stripes:{data}+{parity}"),
        }
    }

    /// Parses a layout, and assigns the disks in the given order. Examples are `raidz2:6`,
    /// `2*mirror:2+special/mirror:2`, `draid2:4d:8c:1s`, `btrfs-raid1`, `md-raid6` and `stripes:4+2`.
    ///
    /// # Errors
    /// [`PlannerError::Layout`] if the layout is invalid or does not fit.
    pub fn parse(
        spec: &str,
        disks: &[Disk],
        metadata: Option<Profile>,
        context: &Context,
    ) -> Result<Self, PlannerError> {
        let wrong =
            |reason: &str| PlannerError::layout(spec.escape_debug().to_string(), reason.to_owned());
        if let Some(profile) = spec.strip_prefix("btrfs-") {
            let data: Profile = profile.parse()?;
            return Ok(Self::Btrfs {
                data,
                metadata: metadata.unwrap_or_else(|| data.metadata(disks.len())),
            });
        }
        if let Some(level) = spec.strip_prefix("md-") {
            let level = match level {
                "raid0" => Md::Raid0,
                "raid1" => Md::Raid1,
                "raid5" => Md::Raid5,
                "raid6" => Md::Raid6,
                "raid10" => Md::Raid10,
                _ => return Err(wrong("md levels are raid0, raid1, raid5, raid6, raid10")),
            };
            return Ok(Self::Md(level));
        }
        if let Some(stripe) = spec.strip_prefix("stripes:") {
            let (data, parity) = stripe
                .split_once('+')
                .and_then(|(n, p)| Some((n.parse().ok()?, p.parse().ok()?)))
                .ok_or_else(|| wrong("write stripes:N+P, such as stripes:4+1"))?;
            if data == 0 || data > 1000 || parity > 1000 {
                return Err(wrong("needs 1 to 1000 data and 0 to 1000 parity chunks"));
            }
            return Ok(Self::Declustered { data, parity });
        }
        let sizes: Vec<u64> = disks
            .iter()
            .map(|disk| on_zfs(disk.size, context))
            .collect::<Result<_, _>>()?;
        Ok(Self::Zfs(Pool {
            vdevs: parse_spec(spec, &sizes)?,
            ashift: context.ashift,
            version: context.zfs,
        }))
    }
}

/// Returns the number of bytes on a disk that ZFS can use.
pub(crate) fn on_zfs(size: u64, context: &Context) -> Result<u64, PlannerError> {
    match context.whole_disk {
        Some(lba) => partition_bytes(size, lba),
        None => Ok(size),
    }
}

/// Checks the disks of a question, and returns their total size in bytes.
///
/// # Errors
/// There are no disks or too many, a price is invalid, or the total exceeds 8 EiB.
pub fn check_disks(disks: &[Disk]) -> Result<u64, PlannerError> {
    if disks.is_empty() {
        return Err(PlannerError::value(
            "no disks",
            "name their sizes, such as 4T 2T 2T, or ask for this machine's with --here",
        ));
    }
    if disks.len() > MAX_DISKS {
        return Err(PlannerError::value(
            format!("{} disks", disks.len()),
            format!("at most {MAX_DISKS} can be planned at once"),
        ));
    }
    for disk in disks {
        if let Some(price) = disk.price
            && !(price.is_finite() && (0.0..1e12).contains(&price))
        {
            return Err(PlannerError::value(
                format!("price {price} of the {} disk", Decimal.show(disk.size)),
                "must be an amount from 0 to 10¹²",
            ));
        }
    }
    disks
        .iter()
        .try_fold(0u64, |sum, disk| sum.checked_add(disk.size))
        .filter(|&sum| sum < 1 << 63)
        .ok_or_else(|| PlannerError::Overflow {
            what: "the sum of the disks".into(),
            reason: "more than 8 EiB".into(),
        })
}
