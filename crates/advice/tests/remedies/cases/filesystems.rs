//! Remedies for lines of /etc/fstab, and for settings of the next boot. `remedies_on_disks` executes remedies that need
//! a disk.

use super::Act::{Do, PasteIn};
use super::Case;

/// Removes the options in `$1` from the marked line. If no option remains, inserts `defaults`.
macro_rules! without {
    ($options:literal) => {
        concat!(
            r#"sed -i -E "${LINE}s/\b("#,
            $options,
            r#")\b//; ${LINE}s/,,/,/; ${LINE}s/(\s),/\1/; ${LINE}s/,(\s)/\1/; "#,
            r#"${LINE}s/^(\S+\s+\S+\s+\S+)\s\s+([0-9])/\1 defaults \2/" "$FILE""#
        )
    };
}

const FINDMNT: &str = "findmnt --fstab > /dev/null";

pub const CASES: &[&[Case]] = &[&[
    Case {
        page: "fstab-barriers-off",
        trees: &[],
        needs: "findmnt",
        furnish: "",
        acts: &[Do(
            "Take `nobarrier` or `barrier=0` out of the line of",
            without!("nobarrier|barrier=0"),
        )],
        accepted: FINDMNT,
    },
    Case {
        page: "fstab-option-refused",
        trees: &[],
        needs: "findmnt",
        furnish: "",
        // The first word is the option.
        acts: &[PasteIn(
            "",
            &[],
            without!("nobarrier|barrier(=1)?|delaylog|inode_cache"),
        )],
        accepted: FINDMNT,
    },
    Case {
        page: "btrfs-degraded-allowed",
        trees: &["fstab"],
        needs: "findmnt",
        furnish: "",
        acts: &[Do(
            "Take `degraded` out of the line of",
            without!("degraded"),
        )],
        accepted: FINDMNT,
    },
    Case {
        page: "swap-resume-gone",
        trees: &[],
        needs: "",
        furnish: "",
        acts: &[PasteIn(
            "RESUME=none",
            &[],
            r#"echo "$COMMAND" > /etc/initramfs-tools/conf.d/resume"#,
        )],
        accepted: "",
    },
    Case {
        page: "swap-resume-gone",
        trees: &[],
        needs: "",
        furnish: "",
        acts: &[PasteIn(
            "RESUME=UUID=",
            &[("…", "7b2d4e1f-1111-4222-8333-444455556666")],
            r#"echo "$COMMAND" > /etc/initramfs-tools/conf.d/resume"#,
        )],
        accepted: "",
    },
]];
