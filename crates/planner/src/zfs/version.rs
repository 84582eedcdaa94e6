//! OpenZFS versions, and how they differ in space accounting.

use crate::error::PlannerError;
use std::fmt;
use std::str::FromStr;

/// An OpenZFS version. `2.1` means the newest patch release of this series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u16,
    minor: u16,
    patch: u16,
}

/// Series of OpenZFS that are supported; other versions are refused.
const SERIES: [(u16, u16); 7] = [(0, 7), (0, 8), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4)];

impl Version {
    /// Version whose results were compared with measured pools.
    pub const CHECKED: Self = Self::new(2, 1, 11);

    /// Creates a version from its three numbers, such as 2, 1 and 11.
    #[must_use]
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// Returns whether a metaslab has a size of 512 MiB to 16 GiB (`vdev_metaslab_set_size`, vdev.c, 0.8.0). Older
    /// versions always create about 200 metaslabs per vdev.
    #[must_use]
    pub fn sized_metaslabs(self) -> bool {
        self >= Self::new(0, 8, 0)
    }

    /// Returns whether a volume's reservation includes the overhead of raidz (`volsize_from_vdevs`,
    /// libzfs_dataset.c, 0.8.2).
    #[must_use]
    pub fn reservation_counts_raidz(self) -> bool {
        self >= Self::new(0, 8, 2)
    }

    /// Returns whether the slop space is limited to 128 GiB (`spa_max_slop`, spa_misc.c, 2.0.6).
    #[must_use]
    pub fn slop_is_capped(self) -> bool {
        self >= Self::new(2, 0, 6)
    }

    /// Returns whether one metaslab of each normal vdev belongs to the embedded log (`vdev_metaslab_init`,
    /// vdev.c, 2.1.0).
    #[must_use]
    pub fn embedded_log(self) -> bool {
        self >= Self::new(2, 1, 0)
    }

    /// Returns whether one metaslab of each special vdev belongs to the embedded log, too (`vdev_metaslab_init`,
    /// 2.4.0).
    #[must_use]
    pub fn embedded_log_on_special(self) -> bool {
        self >= Self::new(2, 4, 0)
    }

    /// Returns whether the version supports dRAID (2.1.0).
    #[must_use]
    pub fn draid(self) -> bool {
        self >= Self::new(2, 1, 0)
    }

    /// Returns whether the version supports allocation classes, and so special and dedup vdevs (0.8.0).
    #[must_use]
    pub fn special(self) -> bool {
        self >= Self::new(0, 8, 0)
    }

    /// Returns whether special and dedup vdevs are counted as available space, and not only as used space
    /// (`spa_update_dspace`, spa_misc.c, 2.2.10, 2.3.7 and 2.4.1).
    #[must_use]
    pub fn special_is_available(self) -> bool {
        match (self.major, self.minor) {
            (2, 2) => self.patch >= 10,
            (2, 3) => self.patch >= 7,
            _ => self >= Self::new(2, 4, 1),
        }
    }

    /// Returns whether a raidz vdev can be widened by one disk (`zpool attach`, 2.3.0).
    #[must_use]
    pub fn raidz_expansion(self) -> bool {
        self >= Self::new(2, 3, 0)
    }

    /// Returns whether the ARC may use all memory except 1 GiB, but at least five eighths (2.3.0). In older versions
    /// the ARC uses at most half of the memory.
    #[must_use]
    pub fn arc_takes_most(self) -> bool {
        self >= Self::new(2, 3, 0)
    }

    /// Returns the default limit of the ARC in bytes on Linux without `zfs_arc_max` (`arc_default_max`,
    /// module/os/linux/zfs/arc_os.c).
    #[must_use]
    pub fn arc_default_max(self, memory: u64) -> u64 {
        match self.arc_takes_most() {
            true => memory.saturating_sub(1 << 30).max(memory / 8 * 5),
            false => memory / 2,
        }
    }
}

impl FromStr for Version {
    type Err = PlannerError;
    fn from_str(text: &str) -> Result<Self, PlannerError> {
        let wrong = || {
            PlannerError::value(
                format!("OpenZFS version `{}`", text.escape_debug()),
                "give one of 0.7, 0.8, 2.0, 2.1, 2.2, 2.3, 2.4 with or without a patch number, \
                 such as 2.1.11",
            )
        };
        let text = text.trim().trim_start_matches("zfs-");
        let mut parts = text.split('.');
        let mut next = || -> Option<Result<u16, PlannerError>> {
            parts.next().map(|part| part.parse().map_err(|_| wrong()))
        };
        let major = next().ok_or_else(wrong)??;
        let minor = next().ok_or_else(wrong)??;
        let patch = next().transpose()?.unwrap_or(u16::MAX);
        if next().is_some() || !SERIES.contains(&(major, minor)) {
            return Err(wrong());
        }
        Ok(Self::new(major, minor, patch))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.patch != u16::MAX {
            write!(f, ".{}", self.patch)?;
        }
        Ok(())
    }
}

schemars::declare_schema!(Version, "Version", { "type": "string", "description": "A release of OpenZFS." });

impl serde::Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_means_its_newest_release() {
        assert!("2.0".parse::<Version>().unwrap().slop_is_capped());
        assert!(!"2.0.5".parse::<Version>().unwrap().slop_is_capped());
        assert!("zfs-2.1.11".parse::<Version>().unwrap().embedded_log());
        let counts = |text: &str| text.parse::<Version>().unwrap().special_is_available();
        assert!(counts("2.2.10") && !counts("2.3.0") && counts("2.4") && !counts("2.1"));
        assert_eq!("2.3.1".parse::<Version>().unwrap().to_string(), "2.3.1");
        for bad in ["", "2", "1.9", "2.1.1.1", "two", "3.0"] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
    }
}
