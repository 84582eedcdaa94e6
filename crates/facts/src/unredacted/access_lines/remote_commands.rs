//! Servers that do what any message says, or that admit everybody by a published account: Cassandra, CouchDB, etcd,
//! RabbitMQ, the API server of Kubernetes, snmptrapd, parameters of Zabbix agents, and modules of the rsync daemon.

use super::super::lines_of_files::{Line, files, is_loopback, read};
use super::data_stores::read_sections;
use super::{Lines, bare, words};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::daemons::nested::read_yaml;
use crate::gather::Gather;
use assay_model::FactPlace;

const CASSANDRA: [&str; 2] = [
    "/etc/cassandra/cassandra.yaml",
    "/etc/cassandra/conf/cassandra.yaml",
];
const COUCHDB: [&str; 2] = ["/opt/couchdb/etc", "/etc/couchdb"];
const ETCD: [&str; 2] = ["/etc/default/etcd", "/etc/etcd/etcd.conf"];
const RABBITMQ: &str = "/etc/rabbitmq/rabbitmq.conf";
const RABBITMQ_MORE: &str = "/etc/rabbitmq/conf.d";
/// Passwords that everybody tries first.
const PUBLISHED: [&str; 8] = [
    "guest", "admin", "password", "rabbitmq", "secret", "changeme", "123456", "12345678",
];
const MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";
const TRAPS: &str = "/etc/snmp/snmptrapd.conf";
/// Agents of Zabbix with the directories that their packages include.
const ZABBIX: [(&str, &str); 2] = [
    (
        "/etc/zabbix/zabbix_agentd.conf",
        "/etc/zabbix/zabbix_agentd.conf.d",
    ),
    (
        "/etc/zabbix/zabbix_agent2.conf",
        "/etc/zabbix/zabbix_agent2.d",
    ),
];
const RSYNCD: &str = "/etc/rsyncd.conf";
/// Directories with passwords and keys of the machine.
const SYSTEM: [&str; 5] = ["/", "/etc", "/root", "/var", "/home"];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_cassandra(g);
    note_couchdb(g);
    note_etcd(g);
    note_rabbitmq(g);
    note_apiserver(g);
    note_traps(g);
    note_parameters(g);
    note_rsyncd(g);
}

/// Notes whether Cassandra serves other machines without a sign-in.
fn note_cassandra(g: &mut Gather<'_>) {
    let mut found = Lines::of("cassandra", "open");
    for path in CASSANDRA {
        let text = g.read("cassandra", path).unwrap_or_default();
        let all = read_yaml(&text);
        let last = |key: &str| all.iter().rfind(|one| one.path == key);
        // Newer files have the name of the class below `authenticator`.
        let class = last("authenticator.class_name").or(last("authenticator"));
        if let Some(one) = class {
            // Without a line, the address is that of the name of the machine.
            let beyond = last("rpc_address").is_some_and(|one| !is_loopback(&one.value));
            let admits = one.value.ends_with("allowallauthenticator");
            found.add(g, admits && beyond, &at_line(path, one.line));
        }
    }
}

/// Notes whether CouchDB serves other machines without an administrator. CouchDB 3 does not start without one.
fn note_couchdb(g: &mut Gather<'_>) {
    let mut found = Lines::of("couchdb", "open");
    for dir in COUCHDB {
        let mut all = vec![format!("{dir}/local.ini")];
        all.extend(files(g, "couchdb", &format!("{dir}/local.d"), ".ini"));
        let mut said = Vec::new();
        for path in all {
            said.extend(read_sections(g, "couchdb", &path));
        }
        let admin = said.iter().any(|one| one.section == "admins");
        let address = said.iter().rfind(|one| {
            ["chttpd", "httpd"].contains(&one.section.as_str()) && one.name == "bind_address"
        });
        if let Some(one) = address {
            let open = !admin && !is_loopback(&one.value);
            found.add(g, open, &one.place);
        }
    }
}

/// Returns the last value of `KEY=VALUE`, in lower case and without quotation marks.
fn last(lines: &[Line], key: &str) -> Option<(String, FactPlace)> {
    lines.iter().rev().find_map(|line| {
        let (name, value) = bare(line)?.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']).to_lowercase();
        name.trim()
            .eq_ignore_ascii_case(key)
            .then(|| (value, line.place.clone()))
    })
}

/// Notes whether etcd serves other machines by TLS, but without certificates of the clients.
fn note_etcd(g: &mut Gather<'_>) {
    let mut found = Lines::of("etcd_client", "without_certificate");
    for path in ETCD {
        let lines = read(g, "etcd_client", path);
        let Some((urls, place)) = last(&lines, "ETCD_LISTEN_CLIENT_URLS") else {
            continue;
        };
        let mut over_tls = urls
            .split(',')
            .filter_map(|url| url.trim().strip_prefix("https://"));
        let beyond = over_tls.any(|address| !is_loopback(address));
        let asks = last(&lines, "ETCD_CLIENT_CERT_AUTH").is_some_and(|(value, _)| value == "true");
        found.add(g, beyond && !asks, &place);
    }
}

/// Notes a first account of RabbitMQ with a password that everybody tries.
fn note_rabbitmq(g: &mut Gather<'_>) {
    let mut lines = read(g, "rabbitmq_account", RABBITMQ);
    for path in files(g, "rabbitmq_account", RABBITMQ_MORE, ".conf") {
        lines.extend(read(g, "rabbitmq_account", &path));
    }
    let Some((password, place)) = last(&lines, "default_pass") else {
        return;
    };
    let user = last(&lines, "default_user").map_or("guest".to_owned(), |(user, _)| user);
    // The account guest is limited to this machine.
    let known = PUBLISHED.contains(&password.as_str()) || password == user;
    let open = known && user != "guest";
    Lines::of("rabbitmq_account", "published_password").add(g, open, &place);
}

/// Notes whether the API server of Kubernetes allows everything.
fn note_apiserver(g: &mut Gather<'_>) {
    let mut found = Lines::of("kube_apiserver", "allows_all");
    for line in read(g, "kube_apiserver", MANIFEST) {
        let text = bare(&line).unwrap_or_default();
        if let Some((_, modes)) = text.split_once("--authorization-mode=") {
            let all = modes
                .trim_matches(['"', '\''])
                .split(',')
                .any(|mode| mode == "AlwaysAllow");
            found.add(g, all, &line.place);
        }
    }
}

/// Notes whether snmptrapd starts programs for traps of everybody (snmptrapd.conf(5), disableAuthorization).
fn note_traps(g: &mut Gather<'_>) {
    let lines = read(g, "snmptrapd", TRAPS);
    let handles = lines
        .iter()
        .any(|line| words(line).first().is_some_and(|word| word == "traphandle"));
    let switch = lines.iter().rfind(|line| {
        words(line)
            .first()
            .is_some_and(|word| word == "disableauthorization")
    });
    if let Some(line) = switch {
        let off = words(line).get(1).is_some_and(|value| value == "yes");
        Lines::of("snmptrapd", "handles_all").add(g, off && handles, &line.place);
    }
}

/// Notes agents of Zabbix whose own parameters take all characters, which a shell reads.
fn note_parameters(g: &mut Gather<'_>) {
    let mut found = Lines::of("zabbix_parameter", "unsafe");
    for (main, dir) in ZABBIX {
        let mut lines = read(g, "zabbix_parameter", main);
        for path in files(g, "zabbix_parameter", dir, ".conf") {
            lines.extend(read(g, "zabbix_parameter", &path));
        }
        let takes = lines.iter().any(|line| {
            let text = bare(line).unwrap_or_default();
            text.starts_with("UserParameter=") && text.contains("[*]") && text.contains('$')
        });
        if let Some((value, place)) = last(&lines, "UnsafeUserParameters") {
            found.add(g, value == "1" && takes, &place);
        }
    }
}

/// Notes modules of the rsync daemon that serve directories of the system to everybody.
fn note_rsyncd(g: &mut Gather<'_>) {
    let mut found = Lines::of("rsyncd_path", "serves_system");
    let mut common: Vec<String> = Vec::new();
    let mut module: Option<(Option<(String, FactPlace)>, bool)> = None;
    let mut lines = read(g, "rsyncd_path", RSYNCD);
    lines.push(Line {
        text: "[end]".to_owned(),
        place: at_line(RSYNCD, 0),
    });
    for line in &lines {
        let Some(text) = bare(line) else { continue };
        if text.starts_with('[') {
            if let Some((Some((path, place)), guarded)) = module.take() {
                let guarded = guarded || common.iter().any(|name| guards(name));
                found.add(g, SYSTEM.contains(&path.as_str()) && !guarded, &place);
            }
            module = Some((None, false));
        } else if let Some((name, value)) = text.split_once('=') {
            let name: String = name.split_whitespace().collect::<String>().to_lowercase();
            match &mut module {
                None => common.push(name),
                Some((path, _)) if name == "path" => {
                    let value = value.trim();
                    let bare = if value == "/" {
                        value
                    } else {
                        value.trim_end_matches('/')
                    };
                    *path = Some((bare.to_owned(), line.place.clone()));
                }
                Some((_, guarded)) => *guarded |= guards(&name),
            }
        }
    }
}

/// Whether a setting of the rsync daemon limits the clients of a module.
fn guards(name: &str) -> bool {
    ["authusers", "hostsallow"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn servers_and_their_near_misses() {
        let couchdb = "/opt/couchdb/etc/local.ini";
        let cassandra = |class: &str| format!("authenticator: {class}\nrpc_address: 0.0.0.0\n");
        let (open, signed) = (
            cassandra("AllowAllAuthenticator"),
            cassandra("PasswordAuthenticator"),
        );
        let zabbix =
            |value: &str| format!("UnsafeUserParameters={value}\nUserParameter=disk[*],df $1\n");
        let (bad, good) = (zabbix("1"), zabbix("0"));
        for (path, text, expected) in [
            (CASSANDRA[0], open.as_str(), "cassandra.1.open 1"),
            (CASSANDRA[0], signed.as_str(), ""),
            (
                couchdb,
                "[chttpd]\nbind_address = 0.0.0.0\n[admins]\n;admin = x\n",
                "couchdb.1.open 2",
            ),
            (
                couchdb,
                "[chttpd]\nbind_address = 0.0.0.0\n[admins]\nadmin = x\n",
                "",
            ),
            (
                ETCD[0],
                "ETCD_LISTEN_CLIENT_URLS=\"https://0.0.0.0:2379\"\n",
                "etcd_client.1.without_certificate 1",
            ),
            (
                ETCD[0],
                "ETCD_LISTEN_CLIENT_URLS=\"https://0.0.0.0:2379\"\nETCD_CLIENT_CERT_AUTH=\"true\"\n",
                "",
            ),
            (
                RABBITMQ,
                "default_user = admin\ndefault_pass = admin\n",
                "rabbitmq_account.1.published_password 2",
            ),
            (
                RABBITMQ,
                "default_user = admin\ndefault_pass = kd83hfhs92\n",
                "",
            ),
            (
                MANIFEST,
                "    - --authorization-mode=AlwaysAllow\n",
                "kube_apiserver.1.allows_all 1",
            ),
            (MANIFEST, "    - --authorization-mode=Node,RBAC\n", ""),
            (
                TRAPS,
                "disableAuthorization yes\ntraphandle default /usr/local/bin/a\n",
                "snmptrapd.1.handles_all 1",
            ),
            (TRAPS, "disableAuthorization yes\n", ""),
            (ZABBIX[0].0, bad.as_str(), "zabbix_parameter.1.unsafe 1"),
            (ZABBIX[0].0, good.as_str(), ""),
            (
                RSYNCD,
                "[a]\n path = /etc/\n",
                "rsyncd_path.1.serves_system 2",
            ),
            (RSYNCD, "[a]\n path = /etc\n hosts allow = 192.0.2.1\n", ""),
            (RSYNCD, "[a]\n path = /srv/pub\n", ""),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
