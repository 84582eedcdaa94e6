//! Collects who can access databases, from pg_hba.conf of each PostgreSQL cluster and from access options of MariaDB
//! and MySQL. `collectors::services::databases` collects the durability settings.

use super::lines_of_files::{Line, is_loopback, note, read};
use super::postgresql_files::{last_value, read_records, read_settings, split_record};
use crate::collectors::services::databases::{POSTGRESQL, Server, option_files};
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};

pub(super) fn collect(g: &mut Gather<'_>) {
    note_postgresql(g);
    note_mariadb(g);
}

fn note_postgresql(g: &mut Gather<'_>) {
    let mut number = 0;
    let mut tls = 1;
    for version in g.list("postgresql.access", POSTGRESQL) {
        let dir = format!("{POSTGRESQL}/{}", lossy(&version));
        for cluster in g.list("postgresql.access", &dir) {
            tls_of_postgresql(
                g,
                &format!("{dir}/{}/postgresql.conf", lossy(&cluster)),
                tls,
            );
            tls += 1;
            let path = format!("{dir}/{}/pg_hba.conf", lossy(&cluster));
            let listens = listens_beyond(g, &format!("{dir}/{}", lossy(&cluster)));
            let lines = read_records(g, "postgresql.access", &path);
            let records: Vec<Vec<String>> =
                lines.iter().map(|line| split_record(&line.text)).collect();
            let mut before: Vec<Vec<&str>> = Vec::new();
            for (line, record) in lines.iter().zip(&records) {
                let words: Vec<&str> = record.iter().map(String::as_str).collect();
                if let Some(rule) = parse_access(&words) {
                    number += 1;
                    let used = !before.iter().any(|earlier| decides_all(earlier, &words));
                    before.push(words.clone());
                    let properties = [
                        ("trust", (rule.method == "trust" && used).into()),
                        ("remote", (rule.remote && listens).into()),
                        ("world", (rule.world && used).into()),
                        (
                            "cleartext",
                            (rule.method == "password"
                                && rule.remote
                                && listens
                                && used
                                && !rule.tls)
                                .into(),
                        ),
                        ("tls", rule.tls.into()),
                        ("refused", (rule.method == "reject").into()),
                    ];
                    note(
                        g,
                        "postgresql.access",
                        &number.to_string(),
                        &line.place,
                        &properties,
                    );
                }
            }
        }
    }
}

/// Returns whether an earlier record of pg_hba.conf matches every connection that `record` matches. PostgreSQL uses the
/// first record that matches, so `record` has no effect in this case.
fn decides_all(earlier: &[&str], record: &[&str]) -> bool {
    let [kind, "all", "all", address, ..] = earlier[..] else {
        return matches!(
            (earlier, record),
            (["local", "all", "all", ..], ["local", ..])
        );
    };
    let own = record.get(3).copied().unwrap_or_default();
    let of_kind = record
        .first()
        .is_some_and(|own| *own == kind || (kind == "host" && own.starts_with("host")));
    let own_mask = record.get(4).copied().unwrap_or_default();
    let of_address = match address {
        "all" => true,
        "0.0.0.0" if earlier.get(4) == Some(&"0.0.0.0") => own.contains('.') && !own.contains(':'),
        same if same == own && !same.contains('/') => earlier.get(4) == Some(&own_mask),
        "0.0.0.0/0" => own.contains('.') && !own.contains(':'),
        "::/0" => own.contains(':'),
        same => same == own && same.contains('/'),
    };
    of_kind && of_address
}

/// Returns whether a cluster listens on addresses beyond this machine. Also returns true if a file that this collector
/// does not read may set the addresses.
fn listens_beyond(g: &mut Gather<'_>, dir: &str) -> bool {
    let lines = read_settings(g, "postgresql.access", &format!("{dir}/postgresql.conf"));
    last_value(&lines, "listen_addresses").is_none_or(|(value, _)| {
        value
            .split(',')
            .map(str::trim)
            .any(|address| !address.is_empty() && !is_loopback(address))
    })
}

/// Notes the lowest TLS version of a cluster from the last line that sets it.
fn tls_of_postgresql(g: &mut Gather<'_>, path: &str, number: usize) {
    let lines = read_settings(g, "postgresql.tls", path);
    let off = last_value(&lines, "ssl").is_some_and(|(value, _)| {
        let value = value.to_ascii_lowercase();
        value == "0"
            || ["off", "false", "no"]
                .iter()
                .any(|word| value.len() > 1 && word.starts_with(&value))
            || matches!(value.as_str(), "f" | "n")
    });
    if let Some((value, line)) = last_value(&lines, "ssl_min_protocol_version") {
        // The names are independent of case (guc.c, config_enum_lookup_by_name).
        let value = value.to_ascii_lowercase();
        let old = matches!(value.as_str(), "tlsv1" | "tlsv1.1" | "") && !off;
        note(
            g,
            "postgresql.tls",
            &number.to_string(),
            &line.place,
            &[("old", old.into())],
        );
    }
}

/// A record of pg_hba.conf: the connections that it matches, and how they authenticate.
struct Access<'a> {
    method: &'a str,
    remote: bool,
    world: bool,
    tls: bool,
}

fn parse_access<'a>(words: &[&'a str]) -> Option<Access<'a>> {
    let kind = *words.first()?;
    if kind == "local" {
        let method = words.get(3)?;
        return Some(Access {
            method,
            remote: false,
            world: false,
            tls: false,
        });
    }
    if !kind.starts_with("host") {
        return None;
    }
    let address = *words.get(3)?;
    // A separate mask may stand between the address and the method.
    let next = *words.get(4)?;
    let is_mask = next.starts_with(|c: char| c.is_ascii_digit()) && next.contains('.');
    let method = if is_mask { *words.get(5)? } else { next };
    let world = matches!(address, "all" | "0.0.0.0/0" | "::/0" | "::0/0")
        || (address == "0.0.0.0" && next == "0.0.0.0");
    Some(Access {
        method,
        remote: !is_loopback(address) && address != "samehost",
        world,
        // GSSAPI encrypts the connection itself.
        tls: matches!(kind, "hostssl" | "hostgssenc"),
    })
}

/// Access options in the option files of MariaDB and MySQL. Of each option, only the last line is kept.
#[derive(Default)]
struct Options {
    skip_grant_tables: Option<FactPlace>,
    bind: Option<(String, FactPlace)>,
    certificate: bool,
    required: bool,
    no_network: bool,
    tls: Option<(String, FactPlace)>,
}

fn note_mariadb(g: &mut Gather<'_>) {
    let all = option_files(g, "mariadb.access");
    let server = Server::find(g);
    let mut said = Options::default();
    for path in all {
        said.take(&read(g, "mariadb.access", &path), &server);
    }
    if let Some(place) = said.skip_grant_tables {
        g.facts.known(
            "mariadb.open_to_all",
            !said.no_network,
            FactKind::Configured,
            place.clone(),
        );
        g.facts.known(
            "mariadb.skip_grant_tables",
            true,
            FactKind::Configured,
            place,
        );
    }
    if let Some((versions, place)) = said.tls {
        let old = versions
            .split(',')
            .any(|one| matches!(one.trim(), "TLSv1" | "TLSv1.0" | "TLSv1.1"));
        g.facts
            .known("mariadb.old_tls", old, FactKind::Configured, place);
    }
    if let Some((address, place)) = said.bind {
        let remote = !is_loopback(&address) && !said.no_network;
        // Only MySQL reads this directory. Since 5.7 it makes a certificate at its first start.
        let is_mysql = place.to_string().starts_with("/etc/mysql/mysql.conf.d/");
        let certificate = said.certificate || is_mysql || server.makes_certificate();
        let bare = remote && !certificate && !said.required;
        g.facts.known(
            "mariadb.remote_without_tls",
            bare,
            FactKind::Configured,
            place,
        );
    }
}

impl Options {
    fn take(&mut self, lines: &[Line], server: &Server) {
        let mut counts = false;
        for line in lines {
            let text = line.text.trim();
            if let Some(group) = text.strip_prefix('[') {
                let name = group.split(']').next().unwrap_or_default();
                counts = server.reads_surely(name);
                continue;
            }
            if !counts || text.starts_with(['#', ';']) {
                continue;
            }
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            // A comment may follow an option without a value.
            let name = name.split('#').next().unwrap_or_default();
            let name = name.trim().to_ascii_lowercase().replace('_', "-");
            let value = value
                .split('#')
                .next()
                .unwrap_or_default()
                .trim()
                .trim_matches(['"', '\'']);
            let off = matches!(value.to_ascii_lowercase().as_str(), "0" | "off" | "false");
            let name = name.strip_prefix("loose-").unwrap_or(&name);
            // An option may be cut to a prefix that no other option has (my_getopt).
            let name = match name.starts_with("skip-gr") && "skip-grant-tables".starts_with(name) {
                true => "skip-grant-tables",
                false => name,
            };
            match name {
                "skip-grant-tables" => self.skip_grant_tables = (!off).then(|| line.place.clone()),
                "skip-networking" => self.no_network = !off,
                "bind-address" => self.bind = Some((value.to_owned(), line.place.clone())),
                "tls-version" => self.tls = Some((value.to_owned(), line.place.clone())),
                "ssl-cert" => self.certificate = !value.is_empty(),
                "require-secure-transport" => self.required = !off,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn records_of_pg_hba() {
        for (text, method, remote, world) in [
            ("local all all trust", "trust", false, false),
            ("host all all 127.0.0.1/32 trust", "trust", false, false),
            (
                "host all all ::1/128 scram-sha-256",
                "scram-sha-256",
                false,
                false,
            ),
            ("host all all 0.0.0.0/0 md5", "md5", true, true),
            ("host all all 0.0.0.0 0.0.0.0 trust", "trust", true, true),
            (
                "hostssl app app 192.0.2.0 255.255.255.0 password",
                "password",
                true,
                false,
            ),
        ] {
            let words: Vec<&str> = text.split_whitespace().collect();
            let rule = parse_access(&words).unwrap();
            assert_eq!(
                (rule.method, rule.remote, rule.world),
                (method, remote, world),
                "{text}"
            );
        }
        assert!(parse_access(&["include", "x"]).is_none());
    }

    #[test]
    fn mysql_has_a_certificate_of_its_own() {
        for (dir, bare) in [("mariadb.conf.d", true), ("mysql.conf.d", false)] {
            let text = "[mysqld]\nbind-address = 0.0.0.0\n";
            let host = Recorded::new().file(&format!("/etc/mysql/{dir}/50-own.cnf"), text);
            let mut g = Gather::new(&host);
            note_mariadb(&mut g);
            let found = g.facts.get("mariadb.remote_without_tls");
            assert_eq!(found, Some(&bare.into()), "{dir}");
        }
    }

    #[test]
    fn the_first_record_that_matches_decides() {
        let open = |conf: &str, access: &str| {
            let host = Recorded::new()
                .file("/etc/postgresql/15/main/postgresql.conf", conf)
                .file("/etc/postgresql/15/main/pg_hba.conf", access);
            let mut g = Gather::new(&host);
            note_postgresql(&mut g);
            let is = |name: &str| {
                let all = g.facts.map.keys().filter(|key| key.ends_with(name));
                all.filter(|key| g.facts.get(key) == Some(&true.into()))
                    .filter_map(|key| key.split('.').nth(2).map(str::to_owned))
                    .collect::<std::collections::BTreeSet<String>>()
            };
            is(".trust").intersection(&is(".remote")).count()
        };
        let all = "host all all 0.0.0.0/0 trust\n";
        assert_eq!(open("listen_addresses = '*'\n", all), 1);
        assert_eq!(open("", all), 1);
        assert_eq!(open("listen_addresses = 'localhost'\n", all), 0);
        assert_eq!(open("listen_addresses ''\n", all), 0);
        let refused = format!("host all all 0.0.0.0/0 reject\n{all}");
        assert_eq!(open("", &refused), 0);
        let other = format!("host all all ::/0 reject\nhost app all 0.0.0.0/0 reject\n{all}");
        assert_eq!(open("", &other), 1);
        let less = format!("hostssl all all 0.0.0.0/0 reject\n{all}");
        assert_eq!(open("", &less), 1);
    }

    #[test]
    fn the_lowest_version_counts_where_tls_is_on() {
        for (text, expected) in [
            ("ssl = on\nssl_min_protocol_version = 'TLSv1'\n", true),
            ("ssl_min_protocol_version 'TLSv1'\n", true),
            ("ssl = off\nssl_min_protocol_version = 'TLSv1'\n", false),
        ] {
            let host = Recorded::new().file("/p", text);
            let mut g = Gather::new(&host);
            tls_of_postgresql(&mut g, "/p", 1);
            assert_eq!(
                g.facts.get("postgresql.tls.1.old"),
                Some(&expected.into()),
                "{text}"
            );
        }
    }

    #[test]
    fn options_of_the_server_alone() {
        let text = "[mysql]\nskip-grant-tables\n[mysqld]\nbind_address = 0.0.0.0 # all\ntls_version=TLSv1.1,TLSv1.2\n";
        let host = Recorded::new().file("/etc/mysql/my.cnf", text);
        let mut g = Gather::new(&host);
        note_mariadb(&mut g);
        assert_eq!(g.facts.get("mariadb.skip_grant_tables"), None);
        assert_eq!(
            g.facts.get("mariadb.remote_without_tls"),
            Some(&true.into())
        );
        assert_eq!(g.facts.get("mariadb.old_tls"), Some(&true.into()));
        let host = Recorded::new().file("/etc/my.cnf", "[mariadbd]\n skip-grant-tables   # lost\n");
        let mut g = Gather::new(&host);
        note_mariadb(&mut g);
        assert_eq!(g.facts.get("mariadb.skip_grant_tables"), Some(&true.into()));
    }
}
