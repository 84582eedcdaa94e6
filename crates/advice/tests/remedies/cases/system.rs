//! Accounts, names of files that programs skip, and settings for the next start.

use super::Act::{Do, PasteIn};
use super::{Case, REMOVE};

/// Gives the marked file a name without its dot.
const RENAME: &str = r#"mv "$FILE" "$(dirname "$FILE")/$(basename "$FILE" | tr . -)""#;

pub const CASES: &[&[Case]] = &[&[
    Case {
        page: "account-without-password",
        trees: &[],
        needs: "passwd",
        furnish: "",
        acts: &[PasteIn(
            "passwd -l",
            &[("NAME", "")],
            r#"$COMMAND "$(sed -n "${LINE}p" "$FILE" | cut -d: -f1)""#,
        )],
        accepted: "! grep -q '^[^:]*::' /etc/shadow",
    },
    Case {
        page: "cron-file-ignored",
        trees: &[],
        needs: "run-parts",
        furnish: "",
        acts: &[Do("Give the file a name of letters, digits", RENAME)],
        accepted: "",
    },
    Case {
        page: "sudoers-file-ignored",
        trees: &[],
        needs: "",
        furnish: "",
        acts: &[Do("Give the file a name without a dot", RENAME)],
        accepted: "",
    },
    Case {
        page: "kernel-file-ignored",
        trees: &[],
        needs: "sysctl",
        furnish: "",
        acts: &[Do(
            "Give the file a name that ends with .conf",
            r#"mv "$FILE" "$FILE.conf""#,
        )],
        accepted: "sysctl --system --dry-run 2> /dev/null | grep -q '90-own.conf' || test -e /etc/sysctl.d/90-own.conf",
    },
    Case {
        page: "swap-on-zvol",
        trees: &["fstab"],
        needs: "findmnt",
        furnish: "",
        acts: &[Do("change /etc/fstab", REMOVE)],
        accepted: "findmnt --fstab > /dev/null",
    },
]];
