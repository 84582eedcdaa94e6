//! Logical volumes that assay created: checks their existence and their tags (lvs(8), lvremove(8), LVM 2.03).

use super::Made;
use crate::error::ChangeError;
use assay_host::{HostMut, Limits};
use std::ffi::OsStr;
use std::time::Duration;

/// Time limit of LVM commands, which wait for udev.
const LVM_LIMITS: Limits = Limits {
    timeout: Duration::from_secs(120),
};

/// Data of a volume that decides whether the volume may be removed.
pub(super) struct Found {
    tags: Vec<String>,
    /// Snapshots that would be removed together with the volume.
    snapshots: Vec<String>,
}

/// Whether LVM allows the name for groups and volumes (lvm(8), "Valid names").
#[must_use]
pub fn is_lvm_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '_' | '.' | '-');
    !name.is_empty()
        && !name.starts_with('-')
        && !matches!(name, "." | "..")
        && name.chars().all(allowed)
}

/// Finds the volume. A volume group that is not visible is an error, because its volumes may still exist.
pub(super) fn find(
    host: &dyn HostMut,
    group: &str,
    name: &str,
) -> Result<Option<Found>, ChangeError> {
    let argv = [
        "lvs",
        "--noheadings",
        "--separator=|",
        "--options=lv_name,lv_tags,origin,segtype",
        "--",
        group,
    ];
    let words = argv.map(OsStr::new);
    let output = host.run(&words, LVM_LIMITS)?;
    if !output.success() {
        return Err(ChangeError::Command {
            what: describe_volume(group, name),
            command: argv.join(" "),
            reason: output.complaint(),
        });
    }
    Ok(of_listing(&output.text(), name))
}

fn of_listing(text: &str, name: &str) -> Option<Found> {
    let rows = text.lines().filter_map(|line| {
        let mut fields = line.trim().split('|');
        Some((
            fields.next()?,
            fields.next()?,
            fields.next()?,
            fields.next()?,
        ))
    });
    let rows: Vec<_> = rows.collect();
    let (_, tags, ..) = rows.iter().find(|(lv, ..)| *lv == name)?;
    // A thin snapshot survives its origin; any other snapshot is removed with the origin.
    let depends =
        |(_, _, origin, kind): &&(&str, &str, &str, &str)| *origin == name && *kind != "thin";
    Some(Found {
        tags: tags.split(',').map(str::to_owned).collect(),
        snapshots: rows
            .iter()
            .filter(depends)
            .map(|(lv, ..)| (*lv).to_owned())
            .collect(),
    })
}

/// Fails for a volume without the session's tag, and for a volume that another program's object depends on.
pub(super) fn check_removable(
    found: &Found,
    group: &str,
    name: &str,
    tag: &str,
) -> Result<(), ChangeError> {
    if !found.tags.iter().any(|one| one == tag) {
        return Err(ChangeError::refused(
            describe_volume(group, name),
            format!("not removed: it does not carry the tag {tag}, so it is not assay's"),
        ));
    }
    match &found.snapshots[..] {
        [] => Ok(()),
        others => Err(ChangeError::refused(
            describe_volume(group, name),
            format!(
                "not removed: somebody took a snapshot of it, which would go with it; remove {} first",
                others.join(", ")
            ),
        )),
    }
}

fn describe_volume(group: &str, name: &str) -> String {
    Made::LogicalVolume {
        group: group.to_owned(),
        name: name.to_owned(),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_or_has_dependants_stays() {
        // Output of `lvs` of LVM 2.03.16 with these options.
        let text = "  assay-1-lv|assay-1,backup||linear\n  data|||linear\n  root||data|linear\n  \
                    snap||assay-1-lv|linear\n  thin||assay-1-t|thin\n  assay-1-t|assay-1||thin\n";
        let check = |name: &str, tag: &str| {
            let found = of_listing(text, name).unwrap();
            check_removable(&found, "vg", name, tag)
        };
        assert!(of_listing(text, "assay-2-lv").is_none());
        assert!(check("assay-1-t", "assay-1").is_ok());
        let told = |name, tag| check(name, tag).unwrap_err().to_string();
        assert!(
            told("assay-1-lv", "assay-1").contains("snap"),
            "{}",
            told("assay-1-lv", "assay-1")
        );
        insta::assert_snapshot!(told("data", "assay-1"), @"logical volume vg/data: not removed: it does not carry the tag assay-1, so it is not assay's");
        insta::assert_snapshot!(told("assay-1-t", "assay-11"), @"logical volume vg/assay-1-t: not removed: it does not carry the tag assay-11, so it is not assay's");
    }

    #[test]
    fn names_of_lvm() {
        for name in ["vg-a", "pve", "a.b+c_d"] {
            assert!(is_lvm_name(name), "{name}");
        }
        for name in ["", "-rf", "a/b", "a b", "..", "a|b", "a\n"] {
            assert!(!is_lvm_name(name), "{name}");
        }
    }
}
