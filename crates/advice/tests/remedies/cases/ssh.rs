//! Remedies for OpenSSH: its server, authorized keys, and the resolver.

use super::Act::{Do, Paste, PasteIn};
use super::{Case, REMOVE};

const SSHD: &str = "mkdir -p /run/sshd; ssh-keygen -A > /dev/null; /usr/sbin/sshd -t";

/// Script that parses the line of a key like sshd.
const KEYS: &str = r#"ssh-keygen -lf "$(ls /root/.ssh/authorized_keys /srv/git/.ssh/authorized_keys 2>/dev/null)" > /dev/null"#;

/// Script that creates an archive with the next build of openssh-server as the only source of apt. The package has no
/// files: apt and dpkg only replace the installed package.
const ARCHIVE: &str = r#"
rm -rf /var/lib/apt/lists/* /etc/apt/sources.list.d /etc/apt/sources.list /var/lib/dpkg/info/openssh-server.*
: > /var/lib/dpkg/info/openssh-server.list
mkdir -p /srv/archive /tmp/tree/DEBIAN
cat > /tmp/tree/DEBIAN/control <<'CONTROL'
Package: openssh-server
Version: 1:9.2p1-2+deb12u3
Architecture: amd64
Maintainer: Nobody <nobody@example.org>
Description: secure shell server
CONTROL
cd /srv/archive
dpkg-deb --build --root-owner-group /tmp/tree own.deb > /dev/null
{
    dpkg-deb --field own.deb
    printf 'Filename: ./own.deb\nSize: %s\n' "$(stat -c %s own.deb)"
    printf 'SHA256: %s\n' "$(sha256sum own.deb | cut -d' ' -f1)"
} > Packages
echo 'deb [trusted=yes] file:/srv/archive ./' > /etc/apt/sources.list
"#;

pub const CASES: &[&[Case]] = &[&[
    Case {
        page: "openssh-regresshion",
        trees: &[],
        needs: "apt-get",
        furnish: ARCHIVE,
        acts: &[PasteIn(
            "apt-get update && apt-get install --only-upgrade openssh-server",
            &[],
            "sh -c \"$COMMAND --yes\"",
        )],
        accepted: "dpkg --audit && dpkg-query --show openssh-server | grep -F 1:9.2p1-2+deb12u3",
    },
    Case {
        page: "ssh-authority-without-principals",
        trees: &[],
        needs: "ssh-keygen",
        furnish: "",
        acts: &[PasteIn(
            "cert-authority,principals=",
            &[("NAME", "root")],
            r#"sed -i "${LINE}s/cert-authority/$COMMAND/" "$FILE""#,
        )],
        accepted: KEYS,
    },
    Case {
        page: "ssh-key-weak",
        trees: &[],
        needs: "ssh-keygen",
        furnish: "",
        acts: &[
            PasteIn(
                "ssh-keygen -t ed25519",
                &[],
                r#"
$COMMAND -q -N '' -f /tmp/new
cat /tmp/new.pub >> "$FILE""#,
            ),
            Do("and remove the old line", REMOVE),
        ],
        accepted: KEYS,
    },
    Case {
        page: "ssh-mdns-before-dns",
        trees: &[],
        needs: "",
        furnish: "",
        acts: &[Do(
            "Else put `dns` before `mdns4_minimal` in the line `hosts` of /etc/nsswitch.conf",
            "sed -i -E '/^hosts:/{s/ dns//;s/ mdns4_minimal/ dns mdns4_minimal/}' /etc/nsswitch.conf",
        )],
        accepted: "getent hosts localhost",
    },
    Case {
        page: "ssh-mdns-before-dns",
        trees: &[],
        needs: "",
        furnish: "",
        acts: &[Do(
            "Best, give the network a domain that is its own (RFC 8375: home.arpa)",
            "sed -i 's/^search local$/search home.arpa/' /etc/resolv.conf",
        )],
        accepted: "getent hosts localhost",
    },
    Case {
        page: "ssh-second-factor-off",
        trees: &[],
        needs: "sshd",
        furnish: "",
        acts: &[
            PasteIn(
                "KbdInteractiveAuthentication yes",
                &[],
                r#"sed -i "${LINE}c $COMMAND" "$FILE""#,
            ),
            PasteIn(
                "AuthenticationMethods publickey,keyboard-interactive",
                &[],
                r#"sed -i "${LINE}a $COMMAND" "$FILE""#,
            ),
        ],
        accepted: SSHD,
    },
    Case {
        page: "ssh-static-key-beside-authority",
        trees: &[],
        needs: "ssh-keygen",
        furnish: "",
        acts: &[PasteIn(
            "expiry-time=",
            &[],
            r#"sed -i -E "/^(ssh-|ecdsa-)/s/^/$COMMAND /" /root/.ssh/authorized_keys /srv/git/.ssh/authorized_keys 2>/dev/null || true"#,
        )],
        accepted: KEYS,
    },
    Case {
        page: "ssh-static-key-beside-authority",
        trees: &[],
        needs: "",
        furnish: "",
        acts: &[Do(
            "Remove it",
            r#"sed -i -E "/^(ssh-|ecdsa-)/d" /root/.ssh/authorized_keys /srv/git/.ssh/authorized_keys 2>/dev/null || true"#,
        )],
        accepted: "",
    },
    Case {
        page: "sshd-host-authority",
        trees: &["marked"],
        needs: "sshd",
        furnish: "",
        acts: &[
            Do(
                "delete from each line everything before the type of the key",
                "sed -i -E 's/^cert-authority\\S* //' /etc/ssh/user_ca.pub",
            ),
            PasteIn(
                "ssh-keygen -lf FILE",
                &[("FILE", "/etc/ssh/user_ca.pub")],
                "$COMMAND",
            ),
        ],
        accepted: SSHD,
    },
    Case {
        page: "sshd-host-authority",
        trees: &["known-hosts", "signs-hosts"],
        needs: "sshd",
        furnish: "",
        acts: &[
            Do(
                "and write the result into the file",
                "ssh-keygen -q -t ed25519 -N '' -f /tmp/users; cp /tmp/users.pub /etc/ssh/user_ca.pub",
            ),
            PasteIn(
                "ssh-keygen -lf FILE",
                &[("FILE", "/etc/ssh/user_ca.pub")],
                "$COMMAND",
            ),
        ],
        accepted: SSHD,
    },
    Case {
        page: "sshd-no-revocation",
        trees: &[],
        needs: "sshd",
        furnish: "",
        acts: &[
            Paste("ssh-keygen -k -f", &[]),
            PasteIn(
                "RevokedKeys /etc/ssh/revoked-keys",
                &[],
                r#"sed -i '/^ *RevokedKeys/d' /etc/ssh/sshd_config
sed -i -E "s|^( *)TrustedUserCAKeys .*|&\n\1$COMMAND|" /etc/ssh/sshd_config"#,
            ),
        ],
        accepted: SSHD,
    },
    Case {
        page: "sshd-principals-as-root",
        trees: &[],
        needs: "adduser",
        furnish: "",
        acts: &[
            Paste("adduser --system", &[]),
            PasteIn(
                "AuthorizedPrincipalsCommandUser ssh-principals",
                &[],
                r#"sed -i "${LINE}c $COMMAND" "$FILE""#,
            ),
        ],
        accepted: SSHD,
    },
    Case {
        page: "sshd-ca-for-all",
        trees: &[],
        needs: "sshd",
        furnish: "",
        acts: &[Do(
            "Move the line TrustedUserCAKeys into the Match block of the account that it is for, such as `Match User git`",
            r#"line=$(grep '^TrustedUserCAKeys' /etc/ssh/sshd_config)
sed -i '/^TrustedUserCAKeys/d' /etc/ssh/sshd_config
printf 'Match User git\n    %s\n' "$line" >> /etc/ssh/sshd_config"#,
        )],
        accepted: SSHD,
    },
    Case {
        page: "sshd-ca-for-all",
        trees: &[],
        needs: "sshd",
        furnish: "",
        acts: &[PasteIn(
            "AuthorizedPrincipalsFile /etc/ssh/principals/%u",
            &[],
            r#"sed -i "1i $COMMAND" /etc/ssh/sshd_config"#,
        )],
        accepted: SSHD,
    },
]];
