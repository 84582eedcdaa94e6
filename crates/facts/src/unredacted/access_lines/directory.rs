//! LDAP: who may write to slapd, old TLS versions of slapd, and clients that do not check the server's certificate.

use super::super::lines_of_files::{files, is_loopback, read};
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
    SSSD,
    "/etc/ldap.conf",
];
const SSSD: &str = "/etc/sssd/sssd.conf";
const SSSD_MORE: &str = "/etc/sssd/conf.d";
/// Files of modules that sign people in.
const SIGN_INS: [&str; 2] = ["/etc/nslcd.conf", "/etc/pam_ldap.conf"];

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
    let mut anonymous = Lines::of("ldap_update", "anonymous");
    for path in all {
        note_server(g, &path, &mut access, &mut tls, &mut anonymous);
    }
    note_clients(g);
    note_sign_ins(g);
}

fn note_server(
    g: &mut Gather<'_>,
    path: &str,
    access: &mut Lines,
    tls: &mut Lines,
    anonymous: &mut Lines,
) {
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
        if ["allow", "olcallows"].contains(&first) {
            let updates = words[1..].iter().any(|word| word == "update_anon");
            anonymous.add(g, updates, &line.place);
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
    let mut all = CLIENTS.map(str::to_owned).to_vec();
    all.extend(files(g, "ldap_client", SSSD_MORE, ".conf"));
    for path in all {
        for line in read(g, "ldap_client", &path) {
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

/// Notes clients that send the passwords of sign-ins to an LDAP server without TLS (nslcd.conf(5), ssl; sssd-ldap(5),
/// ldap_auth_disable_tls_never_use_in_production).
fn note_sign_ins(g: &mut Gather<'_>) {
    let mut found = Lines::of("ldap_sign_in", "in_the_clear");
    for path in SIGN_INS {
        let lines = read(g, "ldap_sign_in", path);
        let last = |key: &str| {
            let mut all = lines.iter().rev();
            all.find(|line| words(line).first().is_some_and(|first| first == key))
        };
        let protected = last("ssl").is_some_and(|line| {
            let value = words(line).get(1).cloned().unwrap_or_default();
            ["start_tls", "on", "yes", "true"].contains(&value.as_str())
        });
        if let Some(line) = last("uri").or(last("host")) {
            let words = words(line);
            let plain = words[1..].iter().any(|server| {
                let address = server.strip_prefix("ldap://");
                let address = address.or((words[0] == "host").then_some(server.as_str()));
                address.is_some_and(|address| !is_loopback(address))
            });
            found.add(g, plain && !protected, &line.place);
        }
    }
    let mut all = vec![SSSD.to_owned()];
    all.extend(files(g, "ldap_sign_in", SSSD_MORE, ".conf"));
    for path in all {
        for line in read(g, "ldap_sign_in", &path) {
            if let [key, value, ..] = &words(&line)[..]
                && key == "ldap_auth_disable_tls_never_use_in_production"
            {
                found.add(g, value == "true", &line.place);
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
            (
                conf,
                "allow bind_v2 update_anon\n",
                "ldap_update.1.anonymous 1",
            ),
            (conf, "allow bind_v2\n", ""),
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
            (
                "/etc/sssd/conf.d/a.conf",
                "[domain/x]\nldap_tls_reqcert = never\n",
                "ldap_client.1.unverified 2",
            ),
            (
                "/etc/nslcd.conf",
                "uri ldap://ldap.example/\nssl off\n",
                "ldap_sign_in.1.in_the_clear 1",
            ),
            (
                "/etc/nslcd.conf",
                "uri ldap://ldap.example/\nssl start_tls\n",
                "",
            ),
            ("/etc/nslcd.conf", "uri ldap://127.0.0.1/\n", ""),
            ("/etc/nslcd.conf", "uri ldaps://ldap.example/\n", ""),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
