//! Freezes the guest's file systems while the pool below them is full.

use super::build::LIMIT;
use crate::StudyError;
use crate::guest::run_command;
use assay_lab::Guest;

/// Runs `act` while all file systems of the configurations are frozen. Without the freeze, their pending writes would
/// fail on the full pool. Pending writes are journal commits, and inode tables that mkfs initialises later. A failed
/// journal commit stops a file system.
///
/// # Errors
/// A file system cannot be frozen or thawed, or `act` fails.
pub(super) fn while_frozen<T>(
    guest: &Guest,
    act: impl FnOnce() -> Result<T, StudyError>,
) -> Result<T, StudyError> {
    let mounts = run_command(guest, &["cat", "/proc/mounts"], LIMIT)?;
    let all = study_mounts(&mounts);
    let each = |how: &str| {
        all.iter()
            .try_for_each(|dir| run_command(guest, &["fsfreeze", how, dir], LIMIT).map(drop))
    };
    let done = each("--freeze").and_then(|()| act());
    let thawed = each("--unfreeze");
    // The first error is more informative.
    let done = done?;
    thawed.map(|()| done)
}

/// Returns the mount points of the file systems on zvols, images and disks, from the guest's /proc/mounts.
fn study_mounts(mounts: &str) -> Vec<&str> {
    let found = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let found = found.filter(|(dir, fs)| dir.starts_with("/run/study-") && *fs != "zfs");
    found.map(|(dir, _)| dir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_datasets() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /run tmpfs rw 0 0\n\
            tank/c2 /run/study-c2 zfs rw 0 0\n/dev/zd0 /run/study-c0-fs ext4 rw,relatime 0 0\n\
            /dev/mapper/c3 /run/study-c3-fs xfs rw 0 0\n";
        assert_eq!(
            study_mounts(mounts),
            ["/run/study-c0-fs", "/run/study-c3-fs"]
        );
    }
}
