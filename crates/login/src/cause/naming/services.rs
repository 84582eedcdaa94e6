//! Names the service that the server's process waits for: a name server, a Unix socket or another machine.

use super::pam_line;
use crate::cause::{LoginKind, Named, ServerKnowledge, name_cause};

pub(super) fn name_server_lookup(
    kind: LoginKind,
    process: &str,
    address: &str,
    known: &ServerKnowledge,
) -> Named {
    let seen = format!("{process} waited for the name server {address}");
    if kind == LoginKind::Ssh && known.setting("usedns") == Some("yes") {
        return name_cause(
            "usedns",
            "sshd looks the client's name up (UseDNS yes)",
            &format!("sshd -T; {seen}"),
            "try it: assay trial ssh-usedns",
        );
    }
    name_cause(
        "server-dns",
        "the server asks a name server, which does not answer at once",
        &seen,
        "time `getent hosts ADDRESS` there, with the client's address",
    )
}

/// Describes the service behind a Unix socket as the cause of a wait.
pub(super) fn name_service(process: &str, path: &str, known: &ServerKnowledge) -> Named {
    let seen = format!("{process} waited for {path}");
    let of = |module: &str| pam_line(known, module).map(|line| line.place.clone());
    if path.contains("io.systemd.Resolve") {
        return name_cause(
            "server-dns",
            "the server asks systemd-resolved for a name",
            &seen,
            "resolvectl statistics",
        );
    }
    if (path.contains("dbus") || path.contains("/systemd/"))
        && let Some(place) = of("pam_systemd")
    {
        return name_cause(
            "pam-systemd",
            "pam_systemd asks systemd-logind for a session",
            &format!("{place}; {seen}"),
            "`systemctl status systemd-logind dbus`: it waits 25 s when one of them hangs; see assay advice \
             pam-systemd-off before taking it out",
        );
    }
    for (word, module, whom) in [
        ("/sss/", "pam_sss", "sssd"),
        ("nslcd", "pam_ldap", "nslcd, which asks an LDAP server"),
        (
            "winbind",
            "pam_winbind",
            "winbind, which asks a domain controller",
        ),
        ("nscd", "nscd", "nscd"),
    ] {
        if path.contains(word) {
            let place = of(module).map_or_else(String::new, |place| format!("{place}; "));
            let what = format!("the user is looked up or checked by {whom}");
            return name_cause(
                "user-lookup",
                &what,
                &format!("{place}{seen}"),
                "time `getent passwd USER` there",
            );
        }
    }
    name_cause(
        "server-socket",
        "the server waits for a service of its machine",
        &seen,
        "see what that service does",
    )
}

/// Ports of services, the PAM modules that use them, and descriptions.
const PEERS: [(&[u16], &str, &str); 5] = [
    (&[389, 636, 3268, 3269], "pam_ldap", "an LDAP server"),
    (&[88, 464], "pam_krb5", "a Kerberos server"),
    (&[1812, 1645], "pam_radius", "a RADIUS server"),
    (&[3306], "pam_mysql", "a MySQL or MariaDB server"),
    (&[5432], "pam_pgsql", "a PostgreSQL server"),
];

pub(super) fn name_peer(process: &str, address: &str, known: &ServerKnowledge) -> Named {
    let seen = format!("{process} waited for {address}");
    let port: u16 = address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .unwrap_or(0);
    for (ports, module, whom) in PEERS {
        if ports.contains(&port) {
            let line = pam_line(known, module);
            let place = line.map_or_else(String::new, |line| format!("{}; ", line.place));
            let what = format!("the server asks {whom}");
            return name_cause(
                "server-network",
                &what,
                &format!("{place}{seen}"),
                "see whether it answers at once",
            );
        }
    }
    let what = format!("the server waits for another machine: {address}");
    name_cause(
        "server-network",
        &what,
        &seen,
        "see whether it answers at once",
    )
}
