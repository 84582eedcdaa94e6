//! Computes the allocatable space of one top-level vdev, and the bytes that a block uses on the vdev.
//!
//! The functions mentioned below are those of OpenZFS 2.1.11. They were compared with the versions 0.7.13, 0.8.6,
//! 2.0.7, 2.1.0, 2.2.0, 2.2.11, 2.3.0, 2.3.9, 2.4.0 and 2.4.4. They are the same in all of these versions, except for
//! the differences that [`Version`] describes.

use super::version::Version;
use crate::error::PlannerError;
use serde::Serialize;
use std::fmt;

/// Size of a label in bytes, `sizeof (vdev_label_t)`. Device sizes are rounded down to a multiple of it (`vdev_open`,
/// vdev.c).
const LABEL: u64 = 256 << 10;
/// Bytes reserved at the start of a device (`VDEV_LABEL_START_SIZE`): two labels and the boot block of 3.5 MiB
/// (vdev_impl.h).
const LABELS_FRONT: u64 = 4 << 20;
/// Bytes reserved at the end of a device (`VDEV_LABEL_END_SIZE`): two labels.
const LABELS_BACK: u64 = 512 << 10;
/// Minimum size of a device in bytes (`SPA_MINDEVSIZE`, spa.h).
pub const MIN_DEVICE: u64 = 64 << 20;
/// Base-2 logarithm of the largest block, 16 MiB (`SPA_MAXBLOCKSHIFT`). A metaslab is at least as large.
const MAX_BLOCK_SHIFT: u32 = 24;
/// Height of a row in dRAID, in bytes (`VDEV_DRAID_ROWHEIGHT`, vdev_draid.h).
const DRAID_ROW: u64 = 16 << 20;
/// Maximum number of disks in a dRAID vdev (`VDEV_DRAID_MAX_CHILDREN`, fs/zfs.h).
pub const DRAID_MAX_CHILDREN: u64 = 255;
/// Block size that `zfs list` assumes when it converts raw space to usable space (`vdev_set_deflate_ratio`, vdev.c).
pub const DEFLATE_BLOCK: u64 = 128 << 10;

/// How a top-level vdev stores data redundantly.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase", tag = "type")]
#[schemars(rename = "Kind")]
pub enum VdevKind {
    /// One disk, without redundancy.
    Single,
    /// Every disk contains all data.
    Mirror {
        /// Number of disks, at least 2.
        children: u64,
    },
    /// Stripes of variable width with 1 to 3 parity sectors.
    Raidz {
        /// Number of parity sectors per stripe.
        parity: u64,
        /// Number of disks, more than `parity`.
        children: u64,
    },
    /// Fixed stripes over permuted disks, with distributed spares.
    Draid {
        /// Number of parity sectors per stripe.
        parity: u64,
        /// Number of data sectors per stripe.
        data: u64,
        /// Number of disks.
        children: u64,
        /// Number of distributed spares in the vdev.
        spares: u64,
    },
}

impl VdevKind {
    /// Returns the number of disks in the vdev.
    #[must_use]
    pub fn children(self) -> u64 {
        match self {
            Self::Single => 1,
            Self::Mirror { children }
            | Self::Raidz { children, .. }
            | Self::Draid { children, .. } => children,
        }
    }

    /// Returns the number of disks that may fail at the same time, whichever disks they are. Distributed spares of
    /// dRAID do not count, because they help only after a rebuild.
    #[must_use]
    pub fn survives(self) -> u64 {
        match self {
            Self::Single => 0,
            Self::Mirror { children } => children - 1,
            Self::Raidz { parity, .. } | Self::Draid { parity, .. } => parity,
        }
    }

    /// Returns the number of bytes allocated for a block of `psize` bytes after compression, as `zfs` counts them: one
    /// copy for a mirror; data, parity and padding for raidz and dRAID.
    ///
    /// Source: `vdev_default_asize` (vdev.c), `vdev_raidz_asize` (vdev_raidz.c; called `vdev_raidz_psize_to_asize`
    /// since 2.4), `vdev_draid_asize` (vdev_draid.c).
    #[must_use]
    pub fn allocated(self, psize: u64, ashift: u32) -> u64 {
        let sectors = psize.max(1).div_ceil(1 << ashift);
        match self {
            Self::Single | Self::Mirror { .. } => sectors << ashift,
            Self::Raidz { parity, children } => {
                let with_parity = sectors + parity * sectors.div_ceil(children - parity);
                with_parity.next_multiple_of(parity + 1) << ashift
            }
            Self::Draid { parity, data, .. } => {
                (sectors.div_ceil(data) * (data + parity)) << ashift
            }
        }
    }

    /// Returns the number of bytes on all disks for a block of `psize` bytes. Unlike [`VdevKind::allocated`], the
    /// result includes every copy of a mirror.
    #[must_use]
    pub fn raw(self, psize: u64, ashift: u32) -> u64 {
        let copies = match self {
            Self::Mirror { children } => children,
            _ => 1,
        };
        self.allocated(psize, ashift) * copies
    }

    /// Returns `vdev_deflate_ratio`: usable bytes per 512 bytes allocated, for a 128 KiB block
    /// (`vdev_set_deflate_ratio`, vdev.c).
    #[must_use]
    pub fn deflate_ratio(self, ashift: u32) -> u64 {
        DEFLATE_BLOCK / (self.allocated(DEFLATE_BLOCK, ashift) >> 9)
    }

    /// Checks the numbers of disks, parity and spares by the rules of `zpool create`.
    ///
    /// # Errors
    /// [`PlannerError::Layout`] with the violated rule.
    pub fn check(self) -> Result<(), PlannerError> {
        let wrong = |reason: String| Err(PlannerError::layout(self.to_string(), reason));
        match self {
            Self::Single => Ok(()),
            Self::Mirror { children } if children < 2 => {
                wrong("a mirror needs at least 2 disks".into())
            }
            Self::Raidz { parity, children } => {
                if !(1..=3).contains(&parity) {
                    wrong("raidz has 1, 2 or 3 parity disks".into())
                } else if children <= parity {
                    wrong(format!("raidz{parity} needs at least {} disks", parity + 1))
                } else if children > 255 {
                    wrong("raidz takes at most 255 disks".into())
                } else {
                    Ok(())
                }
            }
            Self::Draid {
                parity,
                data,
                children,
                spares,
            } => {
                if !(1..=3).contains(&parity) {
                    wrong("draid has 1, 2 or 3 parity disks".into())
                } else if data == 0 {
                    wrong("draid needs at least 1 data disk a group".into())
                } else if spares > 100 {
                    wrong("draid has at most 100 distributed spares".into())
                } else if children > DRAID_MAX_CHILDREN {
                    wrong(format!("draid takes at most {DRAID_MAX_CHILDREN} disks"))
                } else if children < 2 || data.saturating_add(parity + spares) > children {
                    wrong(format!(
                        "{data} data + {parity} parity + {spares} spares need {} disks, {children} are given",
                        data.saturating_add(parity + spares)
                    ))
                } else {
                    Ok(())
                }
            }
            Self::Mirror { .. } => Ok(()),
        }
    }
}

impl fmt::Display for VdevKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::Mirror { children } => write!(f, "mirror:{children}"),
            Self::Raidz { parity, children } => write!(f, "raidz{parity}:{children}"),
            Self::Draid {
                parity,
                data,
                children,
                spares,
            } => write!(f, "draid{parity}:{data}d:{children}c:{spares}s"),
        }
    }
}

/// Allocatable space of a top-level vdev, and its metaslabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Geometry {
    /// Allocatable bytes before the division into metaslabs (`asize` of `zdb -C`).
    pub asize: u64,
    /// Base-2 logarithm of the metaslab size, as in `zdb -C`.
    pub metaslab_shift: u32,
    /// Number of whole metaslabs. Space after them cannot be used.
    pub metaslabs: u64,
    /// Bytes in all metaslabs, which `zpool list` prints as SIZE.
    pub space: u64,
    /// Bytes of the first metaslab, which the embedded log uses in a new pool.
    pub first_metaslab: u64,
    /// Bytes of `asize` after the last whole metaslab, or between metaslabs of dRAID.
    pub tail: u64,
}

/// Computes the metaslabs of a vdev over disks of `sizes` bytes.
///
/// Source: `vdev_open`, `vdev_metaslab_set_size`, `vdev_metaslab_init` (vdev.c), `vdev_mirror_open`
/// (vdev_mirror.c), `vdev_raidz_open` (vdev_raidz.c), `vdev_draid_open` and `vdev_draid_metaslab_init`
/// (vdev_draid.c).
///
/// # Errors
/// A disk is smaller than 64 MiB, or a sum exceeds 2⁶³.
pub fn vdev_geometry(
    kind: VdevKind,
    sizes: &[u64],
    ashift: u32,
    version: Version,
) -> Result<Geometry, PlannerError> {
    kind.check()?;
    let smallest = sizes.iter().copied().min().unwrap_or(0);
    if smallest < MIN_DEVICE {
        return Err(PlannerError::Size {
            input: smallest.to_string(),
            reason: "ZFS refuses devices below 64 MiB (SPA_MINDEVSIZE)".into(),
        });
    }
    let child = smallest / LABEL * LABEL - LABELS_FRONT - LABELS_BACK;
    let asize = match kind {
        VdevKind::Single | VdevKind::Mirror { .. } => u128::from(child),
        VdevKind::Raidz { children, .. } => u128::from(child) * u128::from(children),
        VdevKind::Draid {
            parity,
            data,
            children,
            spares,
        } => {
            let rows = (child - 2 * DRAID_ROW) / DRAID_ROW * DRAID_ROW;
            let group = u128::from((data + parity) * DRAID_ROW);
            u128::from(rows) * u128::from(children - spares) / group * group
        }
    };
    let asize = u64::try_from(asize)
        .ok()
        .filter(|&asize| asize < 1 << 63)
        .ok_or_else(|| PlannerError::Overflow {
            what: format!("vdev {kind}"),
            reason: "more than 8 EiB".into(),
        })?;
    let shift = metaslab_shift(asize, version);
    let metaslabs = asize >> shift;
    let (space, first) = match kind {
        VdevKind::Draid { parity, data, .. } => {
            draid_space((data + parity) << ashift, shift, metaslabs)
        }
        _ => (metaslabs << shift, 1 << shift),
    };
    if metaslabs == 0 || space == 0 {
        return Err(PlannerError::layout(
            kind.to_string(),
            "no metaslab fits; the disks are too small",
        ));
    }
    Ok(Geometry {
        asize,
        metaslab_shift: shift,
        metaslabs,
        space,
        first_metaslab: first,
        tail: asize - space,
    })
}

/// Returns the index of the highest set bit, counted from 1, like `highbit64`.
fn highest_bit(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Computes the metaslab shift (`vdev_metaslab_set_size`, vdev.c).
fn metaslab_shift(asize: u64, version: Version) -> u32 {
    if !version.sized_metaslabs() {
        return highest_bit(asize / 200).max(MAX_BLOCK_SHIFT);
    }
    let count = asize >> 29;
    let shift = if count < 16 {
        highest_bit(asize / 16)
    } else if count > 200 {
        highest_bit(asize / 200)
    } else {
        29
    };
    if shift < MAX_BLOCK_SHIFT {
        MAX_BLOCK_SHIFT
    } else if shift > 34 {
        if asize >> 34 > 1 << 17 {
            highest_bit(asize / (1 << 17))
        } else {
            34
        }
    } else {
        shift
    }
}

/// Returns the total space of the metaslabs of a dRAID vdev, and the space of the first metaslab. Each metaslab must
/// start and end on a group boundary, so it loses a little space.
fn draid_space(group: u64, shift: u32, metaslabs: u64) -> (u64, u64) {
    let size = |id: u64| {
        let start = id << shift;
        let skipped = start.next_multiple_of(group) - start;
        ((1u64 << shift).saturating_sub(skipped)) / group * group
    };
    ((0..metaslabs).map(size).sum(), size(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_share_of_raidz_and_draid_matches_the_table() {
        let rows: Vec<serde_json::Value> = serde_json::from_str(include_str!(
            "../../fixtures/zfs/raidz_efficiency_formula.json"
        ))
        .unwrap();
        assert!(!rows.is_empty());
        for row in rows {
            let children = row["width"].as_u64().unwrap();
            let spec = row["layout"].as_str().unwrap();
            let disks = vec![1 << 40; children as usize];
            let kind = crate::zfs::parse_spec(spec, &disks).unwrap()[0].kind;
            for (size, share) in row["eff"].as_object().unwrap() {
                let bytes = size.trim_end_matches('K').parse::<u64>().unwrap() << 10;
                let ours = bytes as f64
                    / kind.allocated(bytes, row["ashift"].as_u64().unwrap() as u32) as f64;
                assert!(
                    (ours - share.as_f64().unwrap()).abs() < 6e-4,
                    "{kind} {size}"
                );
            }
        }
    }

    #[test]
    fn more_than_131072_metaslabs_grow_them() {
        let huge = VdevKind::Raidz {
            parity: 3,
            children: 255,
        };
        let cut = vdev_geometry(huge, &[100_000_000_000_000], 12, Version::CHECKED).unwrap();
        assert!(cut.metaslab_shift > 34 && cut.metaslabs <= 1 << 17);
    }

    #[test]
    fn before_0_8_a_vdev_had_about_200_metaslabs() {
        let old = vdev_geometry(
            VdevKind::Single,
            &[4_000_787_030_016],
            12,
            Version::new(0, 7, 13),
        )
        .unwrap();
        assert_eq!((old.metaslab_shift, old.metaslabs), (35, 116));
    }
}
