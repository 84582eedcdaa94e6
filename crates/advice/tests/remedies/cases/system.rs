//! Remedies for accounts, file names that programs skip, and settings of the next boot.

use super::Act::{Do, PasteIn};
use super::{Case, REMOVE};

/// Script that renames the marked file to a name without a dot.
const RENAME: &str = r#"mv "$FILE" "$(dirname "$FILE")/$(basename "$FILE" | tr . -)""#;

/// Script that gives the files in the root directory the permissions that the fixture's stat printed.
const SET_MODES: &str = r#"
printf '%b' "$(sed -n 's/.*"stdout": "\(.*\)"/\1/p' /assay-capture.json)" | while read -r mode path; do
    chmod "$mode" "$path"
done
"#;

/// Runs a command, and then records what stat prints about the fixture's files.
macro_rules! with_modes {
    ($command:literal) => {
        concat!(
            $command,
            r#"
paths=$(sed -n 's|^    "\(/[^"]*\)",*$|\1|p' /assay-capture.json)
answer=$(stat --dereference --format='%a %n' -- $paths | sed 's/$/\\\\n/' | tr -d '\n')
sed -i "s|\"stdout\": .*|\"stdout\": \"$answer\"|" /assay-capture.json
"#
        )
    };
}

/// Checks that other accounts cannot access a file. `$way` is the kind of access, an option of test(1).
macro_rules! nobody_may {
    ($way:literal, $file:literal) => {
        concat!(
            "! setpriv --reuid 65534 --regid 65534 --clear-groups test ",
            $way,
            " ",
            $file
        )
    };
}

macro_rules! mode {
    ($page:literal, $trees:expr, $command:literal, $accepted:expr) => {
        Case {
            page: $page,
            trees: $trees,
            needs: "",
            furnish: SET_MODES,
            acts: &[PasteIn($command, &[], with_modes!("sh -c \"$COMMAND\"\n"))],
            accepted: $accepted,
        }
    };
}

pub const CASES: &[&[Case]] = &[&[
    mode!(
        "system-file-writable",
        &[],
        "chmod o-w",
        nobody_may!("-w", "/etc/cron.d/backup")
    ),
    mode!(
        "secret-file-readable",
        &["shadow"],
        "chmod o-rwx",
        nobody_may!("-r", "/etc/shadow")
    ),
    mode!(
        "secret-file-readable",
        &["host-key"],
        "chmod o-rwx",
        nobody_may!("-r", "/etc/ssh/ssh_host_ed25519_key")
    ),
    mode!(
        "secret-file-readable",
        &["share"],
        "chmod o-rwx",
        nobody_may!("-r", "/etc/nas.cred")
    ),
    mode!(
        "secret-file-readable",
        &["netplan"],
        "chmod o-rwx",
        nobody_may!("-r", "/etc/netplan/50-wifi.yaml")
    ),
    mode!(
        "secret-file-readable",
        &["key-of-cluster"],
        "chmod o-rwx",
        nobody_may!("-r", "/srv/mongo.key")
    ),
    mode!(
        "shell-gives-root",
        &[],
        "chmod u-s",
        "! test -u /usr/bin/bash"
    ),
    mode!(
        "root-program-writable",
        &["cron"],
        "chmod o-w",
        nobody_may!("-w", "/opt/own/backup.sh")
    ),
    mode!(
        "root-program-writable",
        &["unit"],
        "chmod o-w",
        nobody_may!("-w", "/opt/own/serve")
    ),
    mode!(
        "root-program-writable",
        &["drop-in"],
        "chmod o-w",
        nobody_may!("-w", "/opt/a/d")
    ),
    mode!(
        "cron-job-not-executable",
        &[],
        "chmod a+x",
        "run-parts --test /etc/cron.daily | grep backup"
    ),
    Case {
        page: "account-old-hash",
        trees: &[],
        needs: "passwd",
        furnish: "",
        acts: &[PasteIn(
            "passwd",
            &[(" NAME", "")],
            r#"
name=$(sed -n "${LINE}p" "$FILE" | cut -d: -f1)
printf '%s\n%s\n' Nine-Lives-42 Nine-Lives-42 | $COMMAND "$name""#,
        )],
        accepted: "grep -q '^[^:]*:[$]y[$]' /etc/shadow",
    },
    Case {
        page: "backup-not-scheduled",
        trees: &["rsnapshot"],
        needs: "",
        furnish: "",
        acts: &[Do(
            "or write a job of cron",
            "sed -i 's/^# *0 4/0 4/' /etc/cron.d/rsnapshot",
        )],
        accepted: "",
    },
    Case {
        page: "backup-not-scheduled",
        trees: &["sanoid"],
        needs: "systemctl",
        furnish: r#"
printf '[Service]\nExecStart=/bin/true\n' > /etc/systemd/system/sanoid.service
printf '[Timer]\nOnCalendar=hourly\n[Install]\nWantedBy=timers.target\n' > /etc/systemd/system/sanoid.timer
"#,
        // systemd does not run in the root, so that it only enables.
        acts: &[PasteIn(
            "systemctl enable --now",
            &[],
            "$COMMAND || systemctl is-enabled sanoid.timer",
        )],
        accepted: "systemctl is-enabled sanoid.timer && systemd-analyze verify /etc/systemd/system/sanoid.timer",
    },
    Case {
        page: "backup-not-scheduled",
        trees: &["own-timer"],
        needs: "systemctl",
        furnish: "",
        acts: &[PasteIn(
            "systemctl enable --now",
            &[("sanoid.timer", "copy.timer")],
            "$COMMAND || systemctl is-enabled copy.timer",
        )],
        accepted: "systemctl is-enabled copy.timer",
    },
    Case {
        page: "backup-not-scheduled",
        trees: &["proxmox-jobs-off"],
        needs: "",
        furnish: "",
        acts: &[Do(
            "enable its job in Proxmox VE",
            "sed -i 's/enabled 0/enabled 1/' /etc/pve/jobs.cfg",
        )],
        accepted: "",
    },
    Case {
        page: "mitigations-off",
        trees: &["boot-loader"],
        needs: "",
        furnish: "",
        acts: &[Do(
            "Delete `mitigations=off` from /etc/default/grub",
            r#"sed -i 's/ *mitigations=off//' "$FILE""#,
        )],
        // update-grub reads the file as a shell does.
        accepted: r#". /etc/default/grub; test "$GRUB_CMDLINE_LINUX_DEFAULT" = quiet"#,
    },
    Case {
        page: "mitigations-off",
        trees: &["single"],
        needs: "",
        furnish: "",
        acts: &[Do(
            "options such as `nopti` that switch one mitigation off",
            r#"sed -i 's/nopti//; s/nospectre_v2//' "$FILE""#,
        )],
        accepted: ". /etc/default/grub",
    },
    Case {
        page: "dpkg-unmet-dependency",
        trees: &[],
        needs: "apt-get",
        // Without lists of an archive apt can only remove.
        furnish: "rm -rf /var/lib/apt/lists/*; : > /var/lib/dpkg/info/equivs.list",
        acts: &[
            PasteIn("apt-get check", &[], "! $COMMAND"),
            PasteIn("apt-get -f install", &[], "$COMMAND --yes"),
        ],
        accepted: "apt-get check && dpkg --audit",
    },
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
