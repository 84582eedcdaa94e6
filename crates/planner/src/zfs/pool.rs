//! Computes the capacity of a whole pool from its vdevs, allocation classes and slop space.

use super::vdev::{Geometry, VdevKind, vdev_geometry};
use super::version::Version;
use crate::error::PlannerError;
use serde::Serialize;

/// Valid base-2 logarithms of the sector size, 512 bytes to 64 KiB (`ASHIFT_MIN`, `ASHIFT_MAX`, vdev_impl.h).
const ASHIFT: std::ops::RangeInclusive<u32> = 9..=16;

/// Allocation class: what a vdev stores.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// File data and volume data.
    Normal,
    /// Metadata and small blocks.
    Special,
    /// Deduplication tables.
    Dedup,
    /// Separate intent log. `zpool list` and `zfs list` do not include it.
    Log,
    /// L2ARC. It contains only copies, so no capacity includes it.
    Cache,
    /// Hot spare. No capacity includes it until a disk fails.
    Spare,
}

/// A top-level vdev with the sizes of its disks in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PoolVdev {
    /// Allocation class of the vdev.
    pub class: Class,
    /// How the vdev stores data redundantly.
    pub kind: VdevKind,
    /// Size of each disk or partition in bytes.
    pub disks: Vec<u64>,
}

/// A pool that is planned, not yet created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Pool {
    /// Top-level vdevs of the pool.
    pub vdevs: Vec<PoolVdev>,
    /// Base-2 logarithm of the sector size, 9 to 16.
    pub ashift: u32,
    /// OpenZFS version with which the pool is created.
    pub version: Version,
}

/// Capacity of one vdev.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct VdevCapacity {
    /// Layout of the vdev in the syntax of `zpool create`.
    pub layout: String,
    /// Allocation class of the vdev.
    pub class: Class,
    /// Metaslabs of the vdev and their space.
    #[serde(flatten)]
    pub geometry: Geometry,
    /// Usable bytes of the vdev if all blocks have a size of 128 KiB.
    pub deflated: u64,
    /// Bytes of the vdev that are reserved for the embedded log.
    pub embedded_log: u64,
}

/// Sizes that the tools report for a new pool. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Capacity {
    /// SIZE of `zpool list -p`: raw bytes for raidz and dRAID (including parity), one copy for mirrors.
    pub zpool_size: u64,
    /// USED + AVAIL of the pool's root dataset in `zfs list -p`; the sum does not depend on the fill level. In a new
    /// pool, the pool's own metadata uses a few hundred KiB of it.
    pub zfs_usable: u64,
    /// Usable bytes before the slop space is subtracted.
    pub deflated: u64,
    /// Slop space, which is reserved so that files can still be deleted in a full pool.
    pub slop: u64,
    /// Raw bytes reserved for the embedded log.
    pub embedded_log: u64,
    /// Raw bytes after the last whole metaslab of each vdev, which cannot be used.
    pub tail: u64,
    /// Capacity of each vdev.
    pub vdevs: Vec<VdevCapacity>,
}

impl Pool {
    /// Computes what `zpool list` and `zfs list` print.
    ///
    /// SIZE is the sum of the metaslabs of the normal, special, dedup and embedded-log classes (`spa_prop_get_config`,
    /// spa.c). Usable space counts only the normal class, deflated (`spa_update_dspace`, spa_misc.c), minus the slop
    /// (`spa_get_slop_space`, spa_misc.c; `dsl_pool_adjustedsize`, dsl_pool.c). OpenZFS 2.1.11.
    ///
    /// # Errors
    /// `zpool create` would refuse the layout, or a sum exceeds 64 bits.
    pub fn capacity(&self) -> Result<Capacity, PlannerError> {
        self.check()?;
        let mut vdevs = Vec::new();
        for vdev in &self.vdevs {
            if matches!(vdev.class, Class::Cache | Class::Spare) {
                continue;
            }
            let geometry = vdev_geometry(vdev.kind, &vdev.disks, self.ashift, self.version)?;
            let takes_log = match vdev.class {
                Class::Normal => self.version.embedded_log(),
                Class::Special => self.version.embedded_log_on_special(),
                _ => false,
            };
            // zfs_embedded_slog_min_ms: vdevs with 64 metaslabs or fewer have no embedded log.
            let embedded_log = match takes_log && geometry.metaslabs > 64 {
                true => geometry.first_metaslab,
                false => 0,
            };
            let ratio = vdev.kind.deflate_ratio(self.ashift);
            vdevs.push(VdevCapacity {
                layout: vdev.kind.to_string(),
                class: vdev.class,
                geometry,
                deflated: ((geometry.space - embedded_log) >> 9) * ratio,
                embedded_log,
            });
        }
        let total = |value: &dyn Fn(usize, &VdevCapacity) -> u64| -> Result<u64, PlannerError> {
            vdevs
                .iter()
                .enumerate()
                .try_fold(0u64, |sum, (i, v)| sum.checked_add(value(i, v)))
                .filter(|&sum| sum < 1 << 63)
                .ok_or_else(|| PlannerError::Overflow {
                    what: "the pool".into(),
                    reason: "more than 8 EiB".into(),
                })
        };
        let in_class = |v: &VdevCapacity, value: u64| match v.class {
            Class::Normal => value,
            _ => 0,
        };
        let zpool_size = total(&|_, v| match v.class {
            Class::Log => 0,
            _ => v.geometry.space,
        })?;
        let deflated = total(&|_, v| in_class(v, v.deflated))?;
        let kinds: Vec<VdevKind> = self
            .vdevs
            .iter()
            .filter(|v| !matches!(v.class, Class::Cache | Class::Spare))
            .map(|v| v.kind)
            .collect();
        let log_deflated =
            total(&|i, v| (v.embedded_log >> 9) * kinds[i].deflate_ratio(self.ashift))?;
        let slop = slop_space(deflated, log_deflated, self.version);
        Ok(Capacity {
            zpool_size,
            zfs_usable: deflated.saturating_sub(slop),
            deflated,
            slop,
            embedded_log: total(&|_, v| v.embedded_log)?,
            tail: total(&|_, v| v.geometry.tail)?,
            vdevs,
        })
    }

    /// Returns the number of bytes of file data that fit if every block has `block` bytes after compression. Metadata
    /// (about 0.3 to 1 %) is not subtracted.
    #[must_use]
    pub fn data_at(&self, block: u64, capacity: &Capacity) -> u64 {
        let mut bytes = 0u128;
        for (vdev, cut) in self
            .vdevs
            .iter()
            .filter(|v| v.class == Class::Normal)
            .zip(capacity.vdevs.iter().filter(|v| v.class == Class::Normal))
        {
            let charged = (vdev.kind.allocated(block, self.ashift) >> 9)
                * vdev.kind.deflate_ratio(self.ashift);
            let share = u128::from(capacity.zfs_usable) * u128::from(cut.deflated)
                / u128::from(capacity.deflated.max(1));
            bytes += share / u128::from(charged) * u128::from(block);
        }
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Checks rules that concern the pool as a whole.
    fn check(&self) -> Result<(), PlannerError> {
        if !ASHIFT.contains(&self.ashift) {
            return Err(PlannerError::value(
                format!("ashift {}", self.ashift),
                "must be 9 (512-byte sectors) to 16 (64 KiB)",
            ));
        }
        if !self.vdevs.iter().any(|v| v.class == Class::Normal) {
            return Err(PlannerError::layout(
                "pool",
                "has no vdev for data; name at least one beside special, log, cache and spare",
            ));
        }
        for vdev in &self.vdevs {
            let spec = vdev.kind.to_string();
            if vdev.disks.len() as u64 != vdev.kind.children() {
                return Err(PlannerError::layout(
                    spec,
                    format!(
                        "takes {} disks, {} are given",
                        vdev.kind.children(),
                        vdev.disks.len()
                    ),
                ));
            }
            if matches!(vdev.kind, VdevKind::Draid { .. }) && !self.version.draid() {
                return Err(PlannerError::layout(spec, "draid exists since OpenZFS 2.1"));
            }
            if matches!(vdev.class, Class::Special | Class::Dedup) && !self.version.special() {
                return Err(PlannerError::layout(
                    spec,
                    "special and dedup vdevs exist since OpenZFS 0.8",
                ));
            }
            let redundant = matches!(vdev.kind, VdevKind::Raidz { .. } | VdevKind::Draid { .. });
            match vdev.class {
                Class::Log if redundant => {
                    return Err(PlannerError::layout(
                        spec,
                        "log vdevs are single or mirrored",
                    ));
                }
                Class::Cache | Class::Spare if vdev.kind != VdevKind::Single => {
                    return Err(PlannerError::layout(
                        spec,
                        "cache and spare vdevs are single disks",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Computes the slop space (`spa_get_slop_space`, spa_misc.c). It is 1/32 of the usable space, at most 128 GiB since
/// version 2.0.6. From this the embedded log is subtracted, but at most half. The result is at least the smaller of 128
/// MiB and half of the pool.
fn slop_space(space: u64, embedded_log: u64, version: Version) -> u64 {
    let mut slop = space >> 5;
    if version.slop_is_capped() {
        slop = slop.min(128 << 30);
    }
    slop -= embedded_log.min(slop >> 1);
    slop.max((space >> 1).min(128 << 20))
}
