//! LDAP: who may write to slapd, old TLS versions of slapd, and clients that do not check the server's certificate.

use super::super::lines_of_files::{files, read};
use super::{Lines, bare, words};
use crate::gather::{Gather, lossy};
use std::path::Path;

const SERVERS: [&str; 2] = ["/etc/ldap/slapd.conf", "/etc/openldap/slapd.conf"];
/// Directories of the configuration as LDIF (slapd-config(5)).
const LDIF: [&str; 2] = ["/etc/ldap/slapd.d", "/etc/openldap/slapd.d"];
const CLIENTS: [&str; 5] = [
    "/etc/ldap/ldap.conf",
    "/etc/openldap/ldap.conf",
    "/etc/nslcd.conf",
    "/etc/sssd/sssd.conf",
    "/etc/ldap.conf",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut all: Vec<String> = SERVERS.map(str::to_owned).to_vec();
    for dir in LDIF {
        all.extend(files(g, "ldap_access", dir, ".ldif"));
        all.extend(files(
            g,
            "ldap_access",
            &format!("{dir}/cn=config"),
            ".ldif",
        ));
    }
    let mut access = Lines::of("ldap_access", "writable");
    let mut tls = Lines::of("ldap_tls", "old");
    for path in all {
        note_server(g, &path, &mut access, &mut tls);
    }
    note_clients(g);
}

fn note_server(g: &mut Gather<'_>, path: &str, access: &mut Lines, tls: &mut Lines) {
    let mut inside = false;
    for line in read(g, "ldap_access", path) {
        let Some(text) = bare(&line) else { continue };
        let words = words(&line);
        let first = words.first().map_or("", |word| word.trim_end_matches(':'));
        // A line that begins with a blank continues the statement.
        if !line.text.starts_with([' ', '\t']) {
            inside = ["access", "olcaccess"].contains(&first);
        }
        if inside {
            let open = words.windows(3).any(|three| {
                let [by, who, right] = three else {
                    return false;
                };
                by == "by" && ["*", "anonymous"].contains(&who.as_str()) && gives_write(right)
            });
            if open || text.contains(" by ") || text.starts_with("by ") {
                access.add(g, open, &line.place);
            }
        }
        if ["tlsprotocolmin", "olctlsprotocolmin"].contains(&first) {
            // 3.3 is TLS 1.2 (slapd.conf(5)).
            let version = words.get(1).map_or("", String::as_str);
            let old = ["3.0", "3.1", "3.2", "3"].contains(&version);
            tls.add(g, old, &line.place);
        }
    }
}

/// Whether an access level permits changes (slapd.access(5)).
fn gives_write(right: &str) -> bool {
    ["write", "manage"].contains(&right) || (right.starts_with("=") && right.contains('w'))
}

fn note_clients(g: &mut Gather<'_>) {
    let mut found = Lines::of("ldap_client", "unverified");
    for path in CLIENTS {
        for line in read(g, "ldap_client", path) {
            let words = words(&line);
            let [key, value, ..] = &words[..] else {
                continue;
            };
            let unverified = match key.as_str() {
                "tls_reqcert" | "ldap_tls_reqcert" => ["never", "allow"].contains(&value.as_str()),
                "tls_checkpeer" => value == "no",
                _ => continue,
            };
            found.add(g, unverified, &line.place);
        }
    }
    // Settings of one account.
    for home in ["/root".to_owned()].into_iter().chain(homes(g)) {
        for line in read(g, "ldap_client", &format!("{home}/.ldaprc")) {
            if let [key, value, ..] = &words(&line)[..]
                && key == "tls_reqcert"
            {
                let unverified = ["never", "allow"].contains(&value.as_str());
                found.add(g, unverified, &line.place);
            }
        }
    }
}

/// Returns the directories below /home.
pub(super) fn homes(g: &Gather<'_>) -> Vec<String> {
    let names = g.host.list(Path::new("/home")).unwrap_or_default();
    let names = names.iter().take(super::MOST);
    names.map(|name| format!("/home/{}", lossy(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::holds;

    #[test]
    fn servers_and_clients() {
        let conf = "/etc/ldap/slapd.conf";
        let ldif = "/etc/ldap/slapd.d/cn=config/olcDatabase={1}mdb.ldif";
        let client = "/etc/ldap/ldap.conf";
        for (path, text, expected) in [
            (
                conf,
                "access to *\n  by self write\n  by * write\n",
                "ldap_access.2.writable 3 ldap_hashes.1.readable 1",
            ),
            (conf, "access to * by * read\n", "ldap_hashes.1.readable 1"),
            (conf, "# access to * by * write\n", ""),
            (
                conf,
                "access to attrs=userPassword by anonymous auth by * none\n",
                "",
            ),
            (
                ldif,
                "dn: olcDatabase={1}mdb\nolcAccess: {0}to * by * write\n",
                "ldap_access.1.writable 2 ldap_hashes.1.readable 2",
            ),
            (
                ldif,
                "olcAccess: {0}to * by dn.exact=gidNumber=0,cn=peercred manage by * break\n",
                "",
            ),
            (conf, "TLSProtocolMin 3.1\n", "ldap_tls.1.old 1"),
            (conf, "TLSProtocolMin 3.3\n", ""),
            (ldif, "olcTLSProtocolMin: 3.2\n", "ldap_tls.1.old 1"),
            (client, "TLS_REQCERT never\n", "ldap_client.1.unverified 1"),
            (client, "TLS_REQCERT\tdemand\n", ""),
            (
                "/etc/sssd/sssd.conf",
                "[domain/x]\nldap_tls_reqcert = allow\n",
                "ldap_client.1.unverified 2",
            ),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
