//! Collects the facts of a machine before a measurement, and selects the facts that are stored with the result: a
//! description of the machine, and of the layers below the targets.
//!
//! Other permanent disks are kept, because they share the bus. Other mounts and removable disks are dropped, because
//! they explain nothing and do not belong in a shared report.

use crate::{CollectOptions, TargetError, collect, target};
use assay_host::Host;
use assay_model::{Facts, TargetInfo};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Facts of a machine, collected before a measurement.
#[derive(Clone, Debug)]
pub struct Survey {
    /// All facts, except those that identify the machine.
    pub facts: Facts,
}

/// Collects the facts of a machine. The layers under these paths are described in more detail.
#[must_use]
pub fn survey(host: &dyn Host, paths: &[PathBuf]) -> Survey {
    let options = CollectOptions {
        targets: paths,
        ..CollectOptions::default()
    };
    Survey {
        facts: collect(host, &options),
    }
}

/// Collects the facts of a machine, and describes the layers under one path.
///
/// # Errors
/// The layers under the path cannot be determined.
pub fn survey_at(host: &dyn Host, path: &Path) -> Result<(Survey, TargetInfo), TargetError> {
    let info = target(host, path)?;
    Ok((survey(host, &[path.to_owned()]), info))
}

impl Survey {
    /// Keeps only the facts that can explain a measurement on these targets.
    #[must_use]
    pub fn about(self, targets: &[TargetInfo]) -> Facts {
        keep_relevant(self.facts, targets)
    }
}

fn keep_relevant(mut facts: Facts, targets: &[TargetInfo]) -> Facts {
    let devices: BTreeSet<&str> = targets
        .iter()
        .flat_map(|target| target.devices.iter().chain(&target.disks))
        .map(String::as_str)
        .collect();
    let points: BTreeSet<&str> = targets
        .iter()
        .filter_map(|target| target.mount_point.as_deref())
        .collect();
    let kinds: BTreeSet<&str> = targets
        .iter()
        .filter_map(|target| target.fs_type.as_deref())
        .collect();
    let at_points = |kind: &str| -> BTreeSet<String> {
        let points_of_kind = facts
            .under(kind)
            .filter(|(key, _)| key.ends_with(".point"))
            .filter(|(key, _)| facts.str(key).is_some_and(|point| points.contains(point)));
        points_of_kind
            .map(|(key, _)| key.trim_end_matches(".point").to_owned())
            .collect()
    };
    let (mounts, lines) = (at_points("mount."), at_points("fstab."));
    facts.map.retain(|key, _| {
        let mut parts = key.split('.');
        match (parts.next(), parts.next()) {
            (Some("mount"), Some(number)) => mounts.contains(&format!("mount.{number}")),
            (Some("fstab"), Some(number)) => lines.contains(&format!("fstab.{number}")),
            (Some("disk"), Some(name)) => devices.contains(name) || !is_temporary(name),
            (Some(kind @ ("btrfs" | "xfs")), _) => kinds.contains(kind),
            (Some("ext4"), Some(name)) => devices.contains(name),
            _ => true,
        }
    });
    facts
}

/// Returns whether a device is temporary: a loop device, RAM disk or network block device.
fn is_temporary(name: &str) -> bool {
    ["loop", "ram", "zram", "nbd"].iter().any(|prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::target::TargetKind;
    use assay_model::{Bytes, FactKind};

    #[test]
    fn what_lies_under_the_target_is_kept_and_what_passes_by_is_not() {
        let mut facts = Facts::default();
        for (key, value) in [
            ("cpu.model", "x"),
            ("mount.0.point", "/"),
            ("mount.0.fstype", "ext4"),
            ("mount.1.point", "/secret"),
            ("fstab.0.point", "/secret"),
            ("fstab.0.fstype", "xfs"),
            ("fstab.1.point", "/srv"),
            ("mount.10.point", "/srv"),
            ("mount.10.fstype", "xfs"),
            ("disk.sda.model", "a"),
            ("disk.sdb.model", "b"),
            ("disk.loop3.backing_file", "/home/me/x"),
            ("ext4.sda1", "features"),
            ("xfs.sdb1", "features"),
            ("btrfs.f00.label", "backup"),
        ] {
            facts.known(key, value, FactKind::Runtime, "test");
        }
        let target = TargetInfo {
            name: "/srv/x".to_owned(),
            kind: TargetKind::Directory,
            fs_type: Some("xfs".to_owned()),
            mount_point: Some("/srv".to_owned()),
            mount_options: None,
            mount_source: None,
            devices: vec!["sdb1".to_owned()],
            disks: vec!["sdb".to_owned()],
            size: Bytes(1),
            free: None,
        };
        let kept = keep_relevant(facts, &[target]);
        let keys: Vec<&str> = kept.map.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "cpu.model",
                "disk.sda.model",
                "disk.sdb.model",
                "fstab.1.point",
                "mount.10.fstype",
                "mount.10.point",
                "xfs.sdb1"
            ]
        );
    }
}
