//! Remedies for power supplies and timers.

use super::Act::{Do, PasteIn};
use super::Case;

pub const CASES: &[&[Case]] = &[&[
    Case {
        page: "ups-without-shutdown",
        trees: &[],
        needs: "",
        furnish: "",
        acts: &[Do(
            "Set MODE in /etc/nut/nut.conf, MONITOR and SHUTDOWNCMD in /etc/nut/upsmon.conf",
            r#"sed -i 's/^MODE=.*/MODE=standalone/' /etc/nut/nut.conf
sed -i -E '/^(MONITOR|SHUTDOWNCMD) /d' /etc/nut/upsmon.conf
printf 'MONITOR ups@localhost 1 upsmon secret primary\nSHUTDOWNCMD "/sbin/shutdown -h +0"\n' >> /etc/nut/upsmon.conf"#,
        )],
        accepted: "",
    },
    Case {
        page: "no-trim",
        trees: &[],
        needs: "systemctl",
        furnish: "rm -rf /etc/systemd/system/timers.target.wants; mkdir /etc/systemd/system/timers.target.wants",
        // systemd does not run in this root: the timer is enabled and not started.
        acts: &[PasteIn(
            "systemctl enable --now fstrim.timer",
            &[],
            "$COMMAND || systemctl is-enabled fstrim.timer",
        )],
        accepted: "systemctl is-enabled fstrim.timer",
    },
]];
