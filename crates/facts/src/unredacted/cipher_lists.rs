//! Finds broken ciphers in the cipher lists of HAProxy, Postfix, PostgreSQL, MariaDB and the control channel of
//! OpenVPN. `collectors::services` checks web servers, Dovecot and Postfix's cipher grades. Also finds lists of all
//! programs that lower OpenSSL's security level to 0.

use super::lines_of_files::{Line, files, note, read};
use crate::collectors::nginx::FILE as NGINX;
use crate::collectors::services::apache_reading;
use crate::collectors::services::ciphers::weak;
use crate::collectors::services::databases::{POSTGRESQL, option_files};
use crate::collectors::services::dovecot::MAIN as DOVECOT;
use crate::collectors::services::postfix::MAIN;
use crate::collectors::services::tls_lines::{LIGHTTPD, LIGHTTPD_DIR};
use crate::gather::{Gather, lossy};
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program, Setting, expand_macros, read_effective};
use assay_model::FactPlace;
use std::collections::BTreeSet;
use std::path::Path;

const HAPROXY: &str = "/etc/haproxy/haproxy.cfg";
const HAPROXY_DIR: &str = "/etc/haproxy/conf.d";
const OPENVPN_DIRS: [&str; 3] = ["/etc/openvpn", "/etc/openvpn/server", "/etc/openvpn/client"];
/// Cipher lists that define Postfix's cipher grades (postconf(5)).
const POSTFIX_LISTS: [&str; 3] = [
    "tls_high_cipherlist",
    "tls_medium_cipherlist",
    "tls_null_cipherlist",
];
/// Settings that exclude ciphers from every grade.
const POSTFIX_EXCLUDES: [&str; 2] = [
    "smtpd_tls_exclude_ciphers",
    "smtpd_tls_mandatory_exclude_ciphers",
];

/// A setting with a cipher list, in the syntax of its program.
struct List<'a> {
    program: &'static str,
    setting: &'a str,
    ciphers: String,
    place: FactPlace,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut lists = haproxy(g);
    lists.extend(postfix(g));
    lists.extend(postgresql(g));
    lists.extend(mariadb(g));
    lists.extend(openvpn(g));
    for (number, list) in lists.into_iter().enumerate() {
        let properties = [
            ("broken", weak(&list.ciphers).into()),
            ("program", list.program.into()),
            ("setting", list.setting.into()),
        ];
        note(
            g,
            "cipher_list",
            &(number + 1).to_string(),
            &list.place,
            &properties,
        );
    }
    note_levels(g);
}

/// Notes cipher lists with OpenSSL's security level (SSL_CTX_set_security_level(3)). Level 0 allows TLS before 1.2,
/// short keys and ciphers without authentication, which OpenSSL 3 refuses otherwise. Postfix sets its own level.
fn note_levels(g: &mut Gather<'_>) {
    let mut seen = BTreeSet::new();
    let mut lists: Vec<(&'static str, String, FactPlace)> = haproxy(g)
        .into_iter()
        .map(|list| (list.program, list.ciphers, list.place))
        .collect();
    if let Ok(all) = read_effective(Program::Nginx, Path::new(NGINX), &OfHost(g.host)) {
        for (id, _) in all.scopes() {
            for key in ["ssl_ciphers", "ssl_conf_command"] {
                let is_server = all
                    .scope(id)
                    .head
                    .first()
                    .is_some_and(|head| head == "server");
                let said = all.value(id, key).filter(|_| is_server);
                lists.extend(said.map(|said| ("nginx", said.text(), FactPlace::from(&said.place))));
            }
        }
    }
    let apache = apache_reading::read(g.host);
    for (at, server) in apache.servers.iter().enumerate() {
        let own = apache.servers[1..]
            .iter()
            .all(|host| host.last("sslciphersuite").is_some());
        let replaced = at == 0 && apache.servers.len() > 1 && own;
        let line = server.last("sslciphersuite").filter(|_| !replaced);
        lists.extend(line.map(|line| ("Apache", line.arguments.clone(), line.place.clone())));
    }
    let mut all = vec![LIGHTTPD.to_owned()];
    all.extend(files(g, "lighttpd", LIGHTTPD_DIR, ".conf"));
    for path in all {
        for line in read(g, "lighttpd", &path) {
            let text = line.text.trim();
            if !text.starts_with('#')
                && (text.contains("CipherString") || text.contains("ssl.cipher-list"))
            {
                lists.push(("lighttpd", text.to_owned(), line.place));
            }
        }
    }
    if let Ok(all) = read_effective(Program::Dovecot, Path::new(DOVECOT), &OfHost(g.host)) {
        let lines = all
            .settings()
            .iter()
            .filter(|said| said.key == "ssl_cipher_list");
        lists.extend(lines.map(|said| ("Dovecot", said.text(), FactPlace::from(&said.place))));
    }
    for (program, ciphers, place) in lists {
        if !ciphers.contains("@SECLEVEL=") || !seen.insert(place.to_string()) {
            continue;
        }
        let zero = ciphers.contains("@SECLEVEL=0");
        let properties = [("zero", zero.into()), ("program", program.into())];
        note(
            g,
            "cipher_level",
            &seen.len().to_string(),
            &place,
            &properties,
        );
    }
}

/// Returns the cipher lists of HAProxy that apply to clients: the defaults in section `global`, and those of single
/// `bind` lines.
fn haproxy(g: &mut Gather<'_>) -> Vec<List<'static>> {
    let mut all = vec![HAPROXY.to_owned()];
    all.extend(files(g, "cipher_list", HAPROXY_DIR, ".cfg"));
    let mut lists = Vec::new();
    for path in all {
        for line in read(g, "cipher_list", &path) {
            let text = line.text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            let ciphers = match words[..] {
                ["ssl-default-bind-ciphers", ciphers, ..] => Some(ciphers),
                ["bind", ..] if words.contains(&"ssl") => {
                    let mut pairs = words.windows(2);
                    pairs.find(|pair| pair[0] == "ciphers").map(|pair| pair[1])
                }
                _ => None,
            };
            lists.extend(ciphers.map(|ciphers| List {
                program: "HAProxy",
                setting: if words[0] == "bind" {
                    "ciphers"
                } else {
                    "ssl-default-bind-ciphers"
                },
                ciphers: ciphers.to_owned(),
                place: line.place.clone(),
            }));
        }
    }
    lists
}

fn postfix(g: &Gather<'_>) -> Vec<List<'static>> {
    let Ok(all) = read_effective(Program::Postfix, Path::new(MAIN), &OfHost(g.host)) else {
        return Vec::new();
    };
    let mut lists = Vec::new();
    for (id, _) in all.scopes() {
        let text = |said: &Setting| expand_macros(&all, id, &said.text());
        let taken: String = POSTFIX_EXCLUDES
            .iter()
            .filter_map(|key| all.value(id, key))
            .flat_map(|said| {
                text(said)
                    .split([' ', ',', '\t', '\n'])
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .filter(|word| !word.is_empty())
            .map(|word| format!(":!{word}"))
            .collect();
        for setting in POSTFIX_LISTS {
            let Some(said) = all.value(id, setting).filter(|said| said.scope == id) else {
                continue;
            };
            // The list without encryption has no other purpose, and no grade uses it unless configured.
            if setting == "tls_null_cipherlist" {
                continue;
            }
            lists.push(List {
                program: "Postfix",
                setting,
                ciphers: text(said) + &taken,
                place: FactPlace::from(&said.place),
            });
        }
    }
    lists
}

/// Returns the `ssl_ciphers` that applies, the last line, for each cluster that uses TLS.
fn postgresql(g: &mut Gather<'_>) -> Vec<List<'static>> {
    let mut lists = Vec::new();
    for version in g.list("cipher_list", POSTGRESQL) {
        let dir = format!("{POSTGRESQL}/{}", lossy(&version));
        for cluster in g.list("cipher_list", &dir) {
            let dir = format!("{dir}/{}", lossy(&cluster));
            let mut all = vec![format!("{dir}/postgresql.conf")];
            all.extend(files(g, "cipher_list", &format!("{dir}/conf.d"), ".conf"));
            let lines: Vec<Line> = all
                .iter()
                .flat_map(|path| read(g, "cipher_list", path))
                .collect();
            let last = |key: &str| {
                let value = |line: &Line| {
                    key_value(&line.text)
                        .filter(|(name, _)| name == key)
                        .map(|(_, value)| value)
                };
                lines
                    .iter()
                    .rev()
                    .find_map(|line| Some((value(line)?, line.place.clone())))
            };
            let on = last("ssl")
                .is_some_and(|(value, _)| matches!(value.as_str(), "on" | "true" | "yes" | "1"));
            lists.extend(
                last("ssl_ciphers")
                    .filter(|_| on)
                    .map(|(ciphers, place)| List {
                        program: "PostgreSQL",
                        setting: "ssl_ciphers",
                        ciphers,
                        place,
                    }),
            );
        }
    }
    lists
}

/// Returns the `ssl_cipher` that applies: the last one that the server reads.
fn mariadb(g: &mut Gather<'_>) -> Vec<List<'static>> {
    let mut last = None;
    for path in option_files(g, "cipher_list") {
        let mut counts = false;
        for line in read(g, "cipher_list", &path) {
            let text = line.text.trim();
            if let Some(group) = text.strip_prefix('[') {
                let name = group.split(']').next().unwrap_or_default();
                counts = ["mysqld", "server", "mariadb", "mariadbd"].contains(&name);
            } else if let Some((name, ciphers)) = key_value(text).filter(|_| counts)
                && name.replace('-', "_") == "ssl_cipher"
            {
                last = Some(List {
                    program: "MariaDB",
                    setting: "ssl_cipher",
                    ciphers,
                    place: line.place,
                });
            }
        }
    }
    last.into_iter().collect()
}

/// Returns the `tls-cipher` lists of each configuration. The ciphers have IANA or OpenSSL names.
fn openvpn(g: &mut Gather<'_>) -> Vec<List<'static>> {
    let mut lists = Vec::new();
    for dir in OPENVPN_DIRS {
        for path in files(g, "cipher_list", dir, ".conf") {
            for line in read(g, "cipher_list", &path) {
                let words: Vec<&str> = line.text.split_whitespace().collect();
                let ["tls-cipher", ciphers, ..] = words[..] else {
                    continue;
                };
                lists.push(List {
                    program: "OpenVPN",
                    setting: "tls-cipher",
                    ciphers: ciphers.trim_matches(['"', '\'']).to_owned(),
                    place: line.place,
                });
            }
        }
    }
    lists
}

/// Parses a line into a lower-case name and a value without quotation marks and comment. Returns `None` for a comment
/// line.
fn key_value(text: &str) -> Option<(String, String)> {
    let text = text.trim();
    if text.starts_with(['#', ';']) {
        return None;
    }
    let end = text.find(|letter: char| letter == '=' || letter.is_whitespace())?;
    let value = text[end..]
        .trim_start()
        .trim_start_matches('=')
        .trim_start();
    let value = match value.chars().next()? {
        quote @ ('\'' | '"') => value[1..].split(quote).next()?,
        _ => value.split(['#', ' ', '\t']).next()?,
    };
    Some((text[..end].to_ascii_lowercase(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn lists_and_their_near_misses() {
        let cluster = "/etc/postgresql/15/main/postgresql.conf";
        for (path, text, broken) in [
            (
                HAPROXY,
                "global\n ssl-default-bind-ciphers AES128-SHA:DES-CBC3-SHA\n",
                Some(true),
            ),
            (
                HAPROXY,
                "frontend a\n bind :443 ssl crt /x ciphers RC4-SHA:AES128-SHA\n",
                Some(true),
            ),
            (
                HAPROXY,
                "frontend a\n bind :443 ssl crt /x ciphers AES128-SHA:!RC4\n",
                Some(false),
            ),
            (HAPROXY, "frontend a\n bind :443 ssl crt /x\n", None),
            (
                MAIN,
                "tls_high_cipherlist = ECDHE+AESGCM:3DES\n",
                Some(true),
            ),
            (
                MAIN,
                "tls_high_cipherlist = AESGCM:3DES\nsmtpd_tls_exclude_ciphers = 3DES\n",
                Some(false),
            ),
            (cluster, "ssl = on\nssl_ciphers = 'HIGH:3DES'\n", Some(true)),
            (
                cluster,
                "ssl = on\nssl_ciphers = 'HIGH:MEDIUM:+3DES:!aNULL' # default\n",
                Some(false),
            ),
            (cluster, "ssl = off\nssl_ciphers = 'HIGH:3DES'\n", None),
            (
                "/etc/mysql/my.cnf",
                "[mysqld]\nssl-cipher=RC4-SHA\n",
                Some(true),
            ),
            ("/etc/mysql/my.cnf", "[client]\nssl-cipher=RC4-SHA\n", None),
            (
                "/etc/openvpn/a.conf",
                "tls-cipher TLS-RSA-WITH-3DES-EDE-CBC-SHA\n",
                Some(true),
            ),
            (
                "/etc/openvpn/a.conf",
                "tls-cipher TLS-ECDHE-RSA-WITH-AES-128-GCM-SHA256\n",
                Some(false),
            ),
        ] {
            let host = Recorded::new().file(path, text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            let found = g
                .facts
                .get("cipher_list.1.broken")
                .and_then(|value| value.as_array());
            assert_eq!(found.map(|found| !found.is_empty()), broken, "{text}");
        }
    }
}
