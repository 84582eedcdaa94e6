//! Computes all properties of a layout: capacity, redundancy, durability, speed and cost.

use super::families::{btrfs_facts, declustered_facts, md_facts};
use super::growth::list_growth;
use super::pools::zfs_facts;
use super::{Context, Disk, Layout, check_disks};
use crate::btrfs;
use crate::durability::{DiskGroup, HOURS_A_YEAR, loss_of_groups};
use crate::error::PlannerError;
use crate::zfs;
use serde::Serialize;

/// Speed as a multiple of the speed of one disk. The values are calculated, not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Scaling {
    /// Speed of long sequential reads, 1 for one disk.
    pub stream_read: f64,
    /// Speed of long sequential writes, 1 for one disk.
    pub stream_write: f64,
    /// Speed of small random reads, 1 for one disk.
    pub random_read: f64,
    /// Speed of small random writes, 1 for one disk.
    pub random_write: f64,
}

/// What a part of a disk is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// The first copy of data.
    Data,
    /// The second copy of data, and any additional copies.
    Copy,
    /// Parity of the data.
    Parity,
    /// Metadata and system chunks of btrfs.
    Metadata,
    /// A distributed or hot spare.
    Spare,
    /// A special, dedup, log or cache vdev.
    Special,
    /// Space that cannot be used, because no other disk has room for the other copies or stripes.
    Idle,
}

/// A part of a disk with one kind of content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Segment {
    /// What the part is used for.
    pub content: Content,
    /// Size of the part in bytes.
    pub bytes: u64,
}

impl LayoutPlan {
    /// Returns whether the manual of the file system advises against the layout's profile: btrfs(5), "RAID56 status and
    /// recommended practices".
    #[must_use]
    pub fn advised_against(&self) -> bool {
        ["btrfs-raid5", "btrfs-raid6"]
            .iter()
            .any(|layout| self.layout.starts_with(layout))
    }
}

/// A way to extend a layout, with its effect.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Growth {
    /// Steps to extend the layout, as text.
    pub action: String,
    /// Number of disks to buy.
    pub disks: u64,
    /// Additional usable bytes, as the tools report them.
    pub gives: u64,
    /// For a raidz vdev that gets wider: additional bytes in blocks of 128 KiB, while existing blocks keep their old
    /// parity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<u64>,
    /// For a raidz vdev that gets wider: additional bytes after all existing data was rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds_rewritten: Option<u64>,
}

/// Space efficiency for data of one block size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BlockShare {
    /// Block size (recordsize or volblocksize) in bytes, after compression.
    pub block: u64,
    /// ZFS: allocated bytes per block on the first data vdev, as reported by `zdb` and `zpool list`. The number is one
    /// copy for a mirror; for raidz and dRAID it includes parity and padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated: Option<u64>,
    /// ZFS: `refreservation` of a volume of the requested size with this block size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refreservation: Option<u64>,
    /// Bytes of data per byte on the disks, 0 to 1. The rest is parity, padding and copies.
    pub share: f64,
    /// Bytes of data that fit if all blocks have this size.
    pub fits: u64,
    /// ZFS: maximum bytes of block pointers when the pool is full of blocks of this size; see [`crate::zfs::pointers`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointers: Option<u64>,
}

/// Parameters for the costs over several years.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Ownership {
    /// Period in years, above 0 and at most 30.
    pub years: f64,
    /// Power of a disk in watts, 0 to 100.
    pub watts: f64,
    /// Price of a kilowatt hour, in the currency of the disks.
    pub kwh: f64,
}

impl Ownership {
    /// Checks that all values are in their ranges.
    ///
    /// # Errors
    /// [`PlannerError::Value`] with the value that is out of range.
    pub fn check(&self) -> Result<(), PlannerError> {
        for (what, value, low, high) in [
            ("years", self.years, 0.01, 30.0),
            ("watts", self.watts, 0.0, 100.0),
            ("price of a kWh", self.kwh, 0.0, 1e6),
        ] {
            if !(low..=high).contains(&value) {
                return Err(PlannerError::value(
                    format!("{what} {value}"),
                    format!("must lie between {low} and {high}"),
                ));
            }
        }
        Ok(())
    }
}

/// Costs of a layout over several years, in the currency of the disks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Costs {
    /// Cost of purchasing all disks.
    pub purchase: f64,
    /// Cost of replacing failed disks.
    pub replaced: f64,
    /// Cost of electricity. The disks are assumed to run all the time.
    pub power: f64,
    /// Sum of all costs over the period.
    pub total: f64,
    /// Cost per usable TiB and year.
    pub per_tib_year: f64,
}

/// Computes the costs of `disks` disks whose total price is `purchase`.
fn compute_costs(own: Ownership, disks: usize, purchase: f64, afr: f64, usable: u64) -> Costs {
    let power = disks as f64 * own.watts / 1000.0 * HOURS_A_YEAR * own.years * own.kwh;
    let replaced = purchase * -(-afr).ln_1p() * own.years;
    let total = purchase + replaced + power;
    Costs {
        purchase,
        replaced,
        power,
        total,
        per_tib_year: total / own.years / to_tib(usable),
    }
}

/// Converts bytes to TiB. The result is never zero, so that it can be a divisor.
fn to_tib(bytes: u64) -> f64 {
    bytes.max(1) as f64 / (1u64 << 40) as f64
}

/// A layout with its properties. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Plan")]
pub struct LayoutPlan {
    /// Description of the layout, in the syntax of `--only`.
    pub layout: String,
    /// Family of the layout: `zfs`, `btrfs`, `mdraid` or `declustered`.
    pub family: &'static str,
    /// Total size of all disks in bytes.
    pub raw: u64,
    /// Usable bytes: used + available of `zfs list`, or for btrfs the maximum amount of data.
    pub usable: u64,
    /// Usable bytes ÷ raw bytes.
    pub efficiency: f64,
    /// Whether the figures are exact. If false, they are a bound or an approximation.
    pub exact: bool,
    /// ZFS: the sizes that the tools report.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub zfs: Option<zfs::Capacity>,
    /// btrfs: the sizes that the tools report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub btrfs: Option<btrfs::Filesystem>,
    /// btrfs: the maximum amount of file data. Equals `usable`; repeated for scripts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
    /// Number of failed disks that the layout always survives.
    pub survives: u64,
    /// Number of failed disks that the layout survives if the right disks fail.
    pub survives_at_best: u64,
    /// Description of the failures that would lose data, such as two disks of one mirror.
    pub unlucky: String,
    /// Fraction of all sets of `survives + 1` failed disks in which data is lost, 0 to 1.
    pub unlucky_share: f64,
    /// Space efficiency for each block size.
    pub blocks: Vec<BlockShare>,
    /// Seconds until redundancy is restored, at the assumed speed and fill level; `None` without redundancy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuild_seconds: Option<f64>,
    /// Speed of the layout as multiples of the speed of one disk.
    pub scaling: Scaling,
    /// Probability that any data is lost within a year, 0 to 1, under the given assumptions.
    pub loss_per_year: f64,
    /// Probability that the whole pool is lost within a year, because more disks fail than the redundancy tolerates.
    pub pool_loss_per_year: f64,
    /// Probability that only some blocks are lost within a year, because a sector is unreadable while there is no
    /// redundancy.
    pub block_loss_per_year: f64,
    /// Ways to extend the layout later.
    pub growth: Vec<Growth>,
    /// Price of all disks; `None` unless all prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Price per usable TiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_tib: Option<f64>,
    /// Costs over the requested years.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    /// Warnings about the layout.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether the layout is on the Pareto front, that is, no other layout of the answer is better in every respect.
    pub pareto: bool,
    /// Content of each disk, from its beginning to its end.
    pub disks: Vec<Vec<Segment>>,
}

/// Properties that each family of layouts computes differently.
pub(super) struct Facts {
    pub usable: u64,
    pub exact: bool,
    pub survives: u64,
    pub at_best: u64,
    pub unlucky: String,
    pub unlucky_share: f64,
    pub rebuild: Option<f64>,
    pub scaling: Scaling,
    pub groups: Vec<DiskGroup>,
    pub warnings: Vec<String>,
    pub blocks: Vec<BlockShare>,
    pub disks: Vec<Vec<Segment>>,
    pub raw: u64,
    pub zfs: Option<zfs::Capacity>,
    pub btrfs: Option<btrfs::Filesystem>,
}

/// Computes all properties of a layout over disks in the given order.
///
/// # Errors
/// The layout does not fit the disks.
pub fn describe(
    layout: &Layout,
    disks: &[Disk],
    context: &Context,
) -> Result<LayoutPlan, PlannerError> {
    check_disks(disks)?;
    context.failures.check()?;
    if let Some(own) = &context.ownership {
        own.check()?;
    }
    let sizes: Vec<u64> = disks.iter().map(|disk| disk.size).collect();
    let facts = layout_facts(layout, &sizes, context)?;
    let mut failures = context.failures;
    if let Some(seconds) = facts.rebuild {
        failures.rebuild_hours = (seconds / 3600.0).clamp(1e-3, 1e6);
    }
    let cost = disks
        .iter()
        .try_fold(0.0, |sum, disk| disk.price.map(|price| sum + price));
    let loss = loss_of_groups(&facts.groups, &failures);
    let own = context.ownership.zip(cost);
    Ok(LayoutPlan {
        layout: layout.spec(),
        family: match layout {
            Layout::Zfs(_) => "zfs",
            Layout::Btrfs { .. } => "btrfs",
            Layout::Md(_) => "mdraid",
            Layout::Declustered { .. } => "declustered",
        },
        raw: facts.raw,
        usable: facts.usable,
        efficiency: facts.usable as f64 / facts.raw.max(1) as f64,
        exact: facts.exact,
        stored: facts.btrfs.as_ref().map(|fs| fs.stored),
        zfs: facts.zfs,
        btrfs: facts.btrfs,
        survives: facts.survives,
        survives_at_best: facts.at_best,
        unlucky: facts.unlucky,
        unlucky_share: facts.unlucky_share,
        blocks: facts.blocks,
        rebuild_seconds: facts.rebuild,
        scaling: facts.scaling,
        loss_per_year: loss.any,
        pool_loss_per_year: loss.pool,
        block_loss_per_year: loss.blocks,
        growth: list_growth(layout, &sizes, facts.usable, context),
        cost,
        cost_per_tib: cost.map(|cost| cost / to_tib(facts.usable)),
        costs: own
            .map(|(own, cost)| compute_costs(own, disks.len(), cost, failures.afr, facts.usable)),
        warnings: facts.warnings,
        pareto: false,
        disks: facts.disks,
    })
}

fn layout_facts(layout: &Layout, sizes: &[u64], context: &Context) -> Result<Facts, PlannerError> {
    match layout {
        Layout::Zfs(pool) => zfs_facts(pool, context),
        Layout::Btrfs { data, metadata } => btrfs_facts(sizes, *data, *metadata, context),
        Layout::Md(level) => md_facts(*level, sizes, context),
        Layout::Declustered { data, parity } => declustered_facts(*data, *parity, sizes, context),
    }
}

pub(super) fn space_bar(parts: &[(Content, u64)]) -> Vec<Segment> {
    parts
        .iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|&(content, bytes)| Segment { content, bytes })
        .collect()
}

/// Returns `whole · share / of`, rounded down.
pub(super) fn proportional_part(whole: u64, share: u64, of: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(share) / u128::from(of.max(1))).unwrap_or(0)
}
