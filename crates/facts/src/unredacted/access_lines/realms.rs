//! Kerberos and RADIUS: principals that administer a realm, old types of encryption, clients with a published secret,
//! and users who are accepted without a password.

use super::super::lines_of_files::{exists, files, is_loopback, read};
use super::{Lines, bare, words};
use crate::gather::Gather;
use assay_model::FactPlace;

const ACLS: [&str; 2] = ["/etc/krb5kdc/kadm5.acl", "/var/kerberos/krb5kdc/kadm5.acl"];
const KDC: [&str; 2] = ["/etc/krb5kdc/kdc.conf", "/var/kerberos/krb5kdc/kdc.conf"];
const KRB5: &str = "/etc/krb5.conf";
const KRB5_MORE: &str = "/etc/krb5.conf.d";
/// Settings with a list of encryption types (krb5.conf(5)).
const TYPES: [&str; 3] = [
    "permitted_enctypes",
    "default_tkt_enctypes",
    "default_tgs_enctypes",
];
const RADIUS: [&str; 3] = ["/etc/freeradius/3.0", "/etc/raddb", "/etc/freeradius"];
/// Secrets of examples, which every attacker tries first.
const PUBLISHED: [&str; 6] = [
    "testing123",
    "secret",
    "radius",
    "password",
    "changeme",
    "sharedsecret",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_acls(g);
    note_types(g);
    note_users(g);
    note_clients(g);
    note_preauthentication(g);
    note_tls(g);
}

/// Notes whether new principals need no preauthentication, so that everybody gets a ticket to guess their password from
/// (kdc.conf(5), default_principal_flags).
fn note_preauthentication(g: &mut Gather<'_>) {
    let mut found = Lines::of("kerberos_kdc", "without_preauth");
    for path in KDC {
        for line in read(g, "kerberos_kdc", path) {
            let words = words(&line);
            if words
                .first()
                .is_some_and(|word| word == "default_principal_flags")
            {
                let mut flags = words[1..].iter().flat_map(|list| list.split(','));
                let off = flags.any(|flag| flag == "-preauth");
                found.add(g, off, &line.place);
            }
        }
    }
}

/// Notes the lowest version of TLS that FreeRADIUS accepts from devices.
fn note_tls(g: &mut Gather<'_>) {
    let mut found = Lines::of("radius_tls", "old");
    for dir in RADIUS {
        for line in read(g, "radius_tls", &format!("{dir}/mods-enabled/eap")) {
            if let [key, value, ..] = &words(&line)[..]
                && key == "tls_min_version"
            {
                found.add(g, ["1.0", "1.1"].contains(&value.as_str()), &line.place);
            }
        }
    }
}

/// Notes lines that let every principal change other principals (kadm5.acl(5)).
fn note_acls(g: &mut Gather<'_>) {
    let mut found = Lines::of("kerberos_acl", "admits_all");
    for path in ACLS {
        for line in read(g, "kerberos_acl", path) {
            let text = bare(&line).unwrap_or_default();
            let mut words = text.split_whitespace();
            let (Some(who), Some(may)) = (words.next(), words.next()) else {
                continue;
            };
            let everybody = |name: &str| {
                let name = name.split('@').next().unwrap_or_default();
                name.split('/').all(|part| part == "*")
            };
            // A capital letter refuses, and i and l only show.
            let changes = may.contains(|letter: char| "*xadcmse".contains(letter));
            let anything = words.next().is_none_or(everybody);
            found.add(g, everybody(who) && changes && anything, &line.place);
        }
    }
}

/// Notes lists of encryption types that contain DES or RC4, and the switch that admits weak types.
fn note_types(g: &mut Gather<'_>) {
    let mut all = vec![KRB5.to_owned()];
    all.extend(files(g, "kerberos_types", KRB5_MORE, ""));
    let mut found = Lines::of("kerberos_types", "weak");
    for path in all {
        for line in read(g, "kerberos_types", &path) {
            let words = words(&line);
            let Some((key, values)) = words.split_first() else {
                continue;
            };
            let weak = |name: &String| {
                let name = name.trim_start_matches('+');
                let old = ["des-", "des3", "arcfour", "rc4"];
                old.iter().any(|start| name.starts_with(start))
            };
            if TYPES.contains(&key.as_str()) {
                let mut names = values.iter().flat_map(|list| list.split(','));
                let any = names.any(|name| weak(&name.to_owned()));
                found.add(g, any, &line.place);
            } else if key == "allow_weak_crypto" {
                let on = values.first().is_some_and(|word| {
                    ["true", "yes", "t", "y", "on", "1"].contains(&word.as_str())
                });
                found.add(g, on, &line.place);
            }
        }
    }
}

/// Notes an entry of FreeRADIUS that accepts every user without a password. The first entry that fits decides.
fn note_users(g: &mut Gather<'_>) {
    let mut found = Lines::of("radius_user", "accepts_all");
    for dir in RADIUS {
        let usual = format!("{dir}/mods-config/files/authorize");
        // In version 3, `users` is a link to this file.
        let path = match exists(g, &usual) {
            true => usual,
            false => format!("{dir}/users"),
        };
        for line in read(g, "radius_user", &path) {
            let Some(text) = bare(&line).filter(|_| !line.text.starts_with([' ', '\t'])) else {
                continue;
            };
            let (name, checks) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            let checks: String = checks.split_whitespace().collect::<String>().to_lowercase();
            if name != "DEFAULT" || !checks.starts_with("auth-type:=") || checks.contains(',') {
                continue;
            }
            let accepts = checks == "auth-type:=accept";
            found.add(g, accepts, &line.place);
            if checks == "auth-type:=reject" {
                break;
            }
        }
    }
}

/// Notes clients of the network whose secret is one of the examples.
fn note_clients(g: &mut Gather<'_>) {
    let mut found = Lines::of("radius_client", "published_secret");
    for dir in RADIUS {
        let mut client: Option<(String, Option<(String, FactPlace)>)> = None;
        let mut depth = 0_usize;
        for line in read(g, "radius_client", &format!("{dir}/clients.conf")) {
            let Some(text) = bare(&line) else { continue };
            let words = words(&line);
            let value = words.get(1).cloned().unwrap_or_default();
            match words.first().map_or("", String::as_str) {
                "client" if text.ends_with('{') && depth == 0 => client = Some((value, None)),
                "ipaddr" | "ipv4addr" | "ipv6addr" => {
                    if let Some((address, _)) = &mut client {
                        *address = value;
                    }
                }
                "secret" => {
                    if let Some((_, secret)) = &mut client {
                        *secret = Some((value, line.place.clone()));
                    }
                }
                _ => {}
            }
            depth += text.matches('{').count();
            depth = depth.saturating_sub(text.matches('}').count());
            if depth == 0
                && let Some((address, Some((secret, place)))) = client.take()
            {
                let published = PUBLISHED.contains(&secret.as_str()) && !is_loopback(&address);
                found.add(g, published, &place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn realms_and_their_near_misses() {
        let users = "/etc/freeradius/3.0/mods-config/files/authorize";
        let clients = "/etc/freeradius/3.0/clients.conf";
        let client = |address: &str, secret: &str| {
            format!(
                "client a {{\n\tipaddr = {address}\n\tsecret = {secret}\n\tlimit {{\n\t}}\n}}\n"
            )
        };
        for (path, text, expected) in [
            (ACLS[0], "*@EXAMPLE.ORG *\n", "kerberos_acl.1.admits_all 1"),
            (ACLS[0], "*/admin@EXAMPLE.ORG *\n", ""),
            (ACLS[0], "*@EXAMPLE.ORG il\n", ""),
            (ACLS[0], "*@EXAMPLE.ORG cm *1@EXAMPLE.ORG\n", ""),
            (
                KRB5,
                "[libdefaults]\n permitted_enctypes = aes256-cts rc4-hmac\n",
                "kerberos_types.1.weak 2",
            ),
            (
                KDC[0],
                "[realms]\n A = {\n default_principal_flags = +renewable, -preauth\n }\n",
                "kerberos_kdc.1.without_preauth 3",
            ),
            (KDC[0], " default_principal_flags = +preauth\n", ""),
            (
                "/etc/freeradius/3.0/mods-enabled/eap",
                "tls_min_version = \"1.0\"\n",
                "radius_tls.1.old 1",
            ),
            (
                "/etc/raddb/mods-enabled/eap",
                "tls_min_version = \"1.2\"\n",
                "",
            ),
            (KRB5, " permitted_enctypes = DEFAULT -rc4\n", ""),
            (
                KRB5,
                " allow_weak_crypto = true\n",
                "kerberos_types.1.weak 1",
            ),
            (KRB5, " allow_weak_crypto = false\n", ""),
            (
                users,
                "DEFAULT\tAuth-Type := Accept\n\tFall-Through = No\n",
                "radius_user.1.accepts_all 1",
            ),
            (users, "DEFAULT Auth-Type := Reject\n", ""),
            (
                users,
                "DEFAULT Calling-Station-Id == \"a\", Auth-Type := Accept\n",
                "",
            ),
            (
                clients,
                &client("10.0.0.0/8", "testing123"),
                "radius_client.1.published_secret 3",
            ),
            (clients, &client("127.0.0.1", "testing123"), ""),
            (clients, &client("10.0.0.0/8", "\"Kd8s2jdhf\""), ""),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
