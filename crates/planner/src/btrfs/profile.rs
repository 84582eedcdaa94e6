//! Profiles of btrfs and their parameters.

use crate::error::PlannerError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Profile of btrfs: how a chunk distributes its data over devices. `single` and `dup` keep a chunk on one device.
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
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// One copy on one device.
    Single,
    /// Two copies on one device.
    Dup,
    /// Striped over all devices.
    Raid0,
    /// Two copies on different devices.
    Raid1,
    /// Three copies on different devices.
    Raid1c3,
    /// Four copies on different devices.
    Raid1c4,
    /// Two copies, striped.
    Raid10,
    /// Striped with one parity.
    Raid5,
    /// Striped with two parities.
    Raid6,
}

/// Parameters of a profile, from `btrfs_raid_array` (fs/btrfs/volumes.c; kernel-shared/volumes.c of
/// btrfs-progs 6.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    /// Number of devices that contain the same data in a striped profile.
    pub sub_stripes: u64,
    /// Number of stripes of a chunk on each device.
    pub dev_stripes: u64,
    /// Maximum number of devices per chunk.
    pub devs_max: usize,
    /// Minimum number of devices per chunk.
    pub devs_min: usize,
    /// The number of devices in a chunk must be a multiple of this number.
    pub devs_increment: usize,
    /// Number of copies of the data.
    pub copies: u64,
    /// Number of parity stripes.
    pub parity: u64,
}

/// Maximum number of stripes whose description fits into one item (`BTRFS_MAX_DEVS` for nodes of 16 KiB).
const MAX_DEVS: usize = 506;

impl Profile {
    /// All profiles of btrfs.
    pub const ALL: [Self; 9] = [
        Self::Single,
        Self::Dup,
        Self::Raid0,
        Self::Raid1,
        Self::Raid1c3,
        Self::Raid1c4,
        Self::Raid10,
        Self::Raid5,
        Self::Raid6,
    ];

    pub(crate) fn attributes(self) -> Attributes {
        let base = Attributes {
            sub_stripes: 1,
            dev_stripes: 1,
            devs_max: MAX_DEVS,
            devs_min: 1,
            devs_increment: 1,
            copies: 1,
            parity: 0,
        };
        let mirrored = |n: usize| Attributes {
            devs_max: n,
            devs_min: n,
            devs_increment: n,
            copies: n as u64,
            ..base
        };
        match self {
            Self::Single => Attributes {
                devs_max: 1,
                ..base
            },
            Self::Dup => Attributes {
                dev_stripes: 2,
                devs_max: 1,
                copies: 2,
                ..base
            },
            Self::Raid0 => base,
            Self::Raid1 => mirrored(2),
            Self::Raid1c3 => mirrored(3),
            Self::Raid1c4 => mirrored(4),
            Self::Raid10 => Attributes {
                sub_stripes: 2,
                devs_min: 2,
                devs_increment: 2,
                copies: 2,
                ..base
            },
            Self::Raid5 => Attributes {
                devs_min: 2,
                parity: 1,
                ..base
            },
            Self::Raid6 => Attributes {
                devs_min: 3,
                parity: 2,
                ..base
            },
        }
    }

    /// Returns the minimum number of devices of a file system with this profile.
    #[must_use]
    pub fn min_devices(self) -> usize {
        self.attributes().devs_min
    }

    /// Returns the number of devices that may fail at the same time without data loss.
    #[must_use]
    pub fn survives(self) -> u64 {
        match self {
            Self::Single | Self::Dup | Self::Raid0 => 0,
            Self::Raid1 | Self::Raid10 | Self::Raid5 => 1,
            Self::Raid1c3 | Self::Raid6 => 2,
            Self::Raid1c4 => 3,
        }
    }

    /// Returns the default metadata profile, which survives as many failures as the data. It is never a parity profile,
    /// because an interrupted write can destroy metadata there.
    #[must_use]
    pub fn metadata(self, devices: usize) -> Self {
        match self {
            _ if devices == 1 => Self::Dup,
            Self::Raid6 | Self::Raid1c3 if devices >= 3 => Self::Raid1c3,
            Self::Raid1c4 if devices >= 4 => Self::Raid1c4,
            _ => Self::Raid1,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "single",
            Self::Dup => "dup",
            Self::Raid0 => "raid0",
            Self::Raid1 => "raid1",
            Self::Raid1c3 => "raid1c3",
            Self::Raid1c4 => "raid1c4",
            Self::Raid10 => "raid10",
            Self::Raid5 => "raid5",
            Self::Raid6 => "raid6",
        })
    }
}

impl FromStr for Profile {
    type Err = PlannerError;
    fn from_str(text: &str) -> Result<Self, PlannerError> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| {
                PlannerError::value(
                    format!("btrfs profile `{}`", text.escape_debug()),
                    "give one of single, dup, raid0, raid1, raid1c3, raid1c4, raid10, raid5, raid6",
                )
            })
    }
}
