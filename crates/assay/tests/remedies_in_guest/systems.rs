//! Units with faults, and their remedies.

use crate::Remedy;

/// A unit that fails, and a server whose library is replaced while it runs.
pub(crate) const SETUP: &str = r#"
units=/etc/systemd/system
printf '[Service]\nType=oneshot\nExecStart=/bin/false\n' > $units/backup-own.service
printf '[Service]\nExecStart=/usr/bin/openssl s_server -accept 4433 -nocert -psk 00\nStandardInput=null\n' \
    > $units/serve-own.service
systemctl daemon-reload
systemctl start backup-own || true
systemctl start serve-own
sleep 3
library=$(grep -o '/[^ ]*libssl[^ ]*' "/proc/$(systemctl show -P MainPID serve-own)/maps" | head -1)
cp "$library" "$library.new"
mv "$library.new" "$library"
"#;

pub(crate) const REMEDIES: &[Remedy] = &[
    Remedy {
        page: "units-failed",
        about: "",
        steps: "@[systemctl list-units --failed] | grep backup-own
            @[journalctl -b -p err] | grep backup-own || journalctl -b -u backup-own
            sed -i s:bin/false:bin/true: /etc/systemd/system/backup-own.service
            systemctl daemon-reload
            systemctl start backup-own",
        undo: "",
    },
    Remedy {
        page: "library-gone",
        about: "serve-own",
        steps: "@[systemctl restart]",
        undo: "",
    },
    Remedy {
        page: "clock-alone",
        about: "",
        steps: "@[apt-get install] --yes
            systemctl is-active systemd-timesyncd",
        undo: "@[apt-get remove] --yes",
    },
];
