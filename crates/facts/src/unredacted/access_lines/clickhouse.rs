//! Users of ClickHouse who sign in without a password from everywhere. The server merges config.xml with config.d, and
//! users.xml with users.d, in XML and YAML (ClickHouse, Configuration Files).

use super::super::lines_of_files::{files, is_loopback};
use super::Lines;
use crate::collectors::daemons::lines::at_line;
use crate::collectors::daemons::nested::read_yaml;
use crate::gather::Gather;
use assay_model::FactPlace;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

const DIR: &str = "/etc/clickhouse-server";
const KEY: &str = "clickhouse_user";
/// Elements that contain a secret, or refer to another service that checks the user.
const SECRETS: [&str; 4] = [
    "password",
    "password_sha256_hex",
    "password_double_sha1_hex",
    "password_scram_sha256_hex",
];
const CHECKS: [&str; 6] = [
    "ldap",
    "kerberos",
    "ssl_certificates",
    "ssh_keys",
    "http_authentication",
    "jwt",
];

/// An element of a file, with the names around it.
struct Entry {
    path: String,
    value: String,
    replaces: bool,
    removed: bool,
    place: FactPlace,
}

/// What the merged files say about a user.
#[derive(Default)]
struct User {
    secrets: BTreeMap<String, bool>,
    checked: bool,
    networks: Vec<String>,
    place: Option<FactPlace>,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut hosts: Vec<String> = Vec::new();
    for file in read_merged(g, "config") {
        for (at, entry) in file
            .iter()
            .filter(|entry| entry.path == "listen_host")
            .enumerate()
        {
            if entry.replaces && at == 0 {
                hosts.clear();
            }
            hosts.push(entry.value.clone());
        }
    }
    // Without the element, the server listens on the loopback addresses.
    let beyond = hosts.iter().any(|host| !is_loopback(host));
    let mut users: BTreeMap<String, User> = BTreeMap::new();
    for file in read_merged(g, "users") {
        let mut number: BTreeMap<String, usize> = BTreeMap::new();
        for entry in &file {
            if let Some(rest) = entry.path.strip_prefix("users.") {
                take(&mut users, rest, entry, &mut number);
            }
        }
    }
    let mut found = Lines::of(KEY, "open");
    for user in users.values() {
        let Some(place) = &user.place else { continue };
        let asked = user.checked || user.secrets.values().any(|set| *set);
        let world = |network: &String| ["::/0", "0.0.0.0/0"].contains(&network.as_str());
        let everywhere = user.networks.is_empty() || user.networks.iter().any(world);
        found.add(g, beyond && everywhere && !asked, place);
    }
}

/// Adds an element to its user. An element of a later file takes the place of the element with the same name.
fn take(
    users: &mut BTreeMap<String, User>,
    rest: &str,
    entry: &Entry,
    number: &mut BTreeMap<String, usize>,
) {
    let (name, rest) = rest.split_once('.').unwrap_or((rest, ""));
    if rest.is_empty() && entry.removed {
        users.remove(name);
        return;
    }
    let user = users.entry(name.to_owned()).or_default();
    if rest.is_empty() && entry.replaces {
        *user = User::default();
    }
    user.place.get_or_insert_with(|| entry.place.clone());
    if SECRETS.contains(&rest) {
        let set = !entry.removed && !entry.value.is_empty();
        user.secrets.insert(rest.to_owned(), set);
        user.place = Some(entry.place.clone());
    } else if rest == "no_password" {
        user.place = Some(entry.place.clone());
    } else if CHECKS
        .iter()
        .any(|check| rest == *check || rest.starts_with(&format!("{check}.")))
    {
        user.checked = true;
    } else if rest == "networks" && (entry.replaces || entry.removed) {
        user.networks.clear();
    } else if rest.starts_with("networks.") {
        let at = number.entry(name.to_owned()).or_default();
        match user.networks.get_mut(*at) {
            Some(network) => network.clone_from(&entry.value),
            None => user.networks.push(entry.value.clone()),
        }
        *at += 1;
    }
}

/// Reads `NAME.xml` or `NAME.yaml` and the files in `NAME.d`, in the order in which the server merges them.
fn read_merged(g: &mut Gather<'_>, name: &str) -> Vec<Vec<Entry>> {
    let mut all: Vec<String> = ["xml", "yaml", "yml"]
        .map(|end| format!("{DIR}/{name}.{end}"))
        .to_vec();
    let dirs = match name {
        "config" => ["config.d", "conf.d"],
        _ => ["users.d", "conf.d"],
    };
    for dir in dirs {
        let mut inner: Vec<String> = [".xml", ".yaml", ".yml"]
            .iter()
            .flat_map(|end| files(g, KEY, &format!("{DIR}/{dir}"), end))
            .collect();
        inner.sort();
        all.extend(inner);
    }
    let mut read = Vec::new();
    for path in all {
        let Some(text) = g.read(KEY, &path) else {
            continue;
        };
        read.push(match path.ends_with(".xml") {
            true => read_xml(&path, &text),
            false => read_yaml_file(&path, &text),
        });
    }
    read
}

fn read_yaml_file(path: &str, text: &str) -> Vec<Entry> {
    let values = read_yaml(text).into_iter().map(|one| Entry {
        value: match one.value.as_str() {
            "null" | "~" => String::new(),
            value => value.to_owned(),
        },
        path: one.path,
        replaces: false,
        removed: false,
        place: at_line(path, one.line),
    });
    values.collect()
}

fn read_xml(path: &str, text: &str) -> Vec<Entry> {
    let Ok(document) = Document::parse(text) else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for node in document.root_element().descendants().skip(1) {
        if !node.is_element() {
            continue;
        }
        let mut names: Vec<&str> = node
            .ancestors()
            .filter(Node::is_element)
            .map(|one| one.tag_name().name())
            .collect();
        // The outermost element is `clickhouse` or `yandex`.
        names.pop();
        names.reverse();
        let row = document.text_pos_at(node.range().start).row;
        let has = |name: &str| {
            node.attribute(name)
                .is_some_and(|value| !["0", "false"].contains(&value))
        };
        entries.push(Entry {
            path: names.join("."),
            value: node.text().unwrap_or_default().trim().to_owned(),
            replaces: has("replace"),
            removed: has("remove"),
            place: at_line(path, usize::try_from(row).unwrap_or(1)),
        });
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::super::holds;

    const CONFIG: (&str, &str) = (
        "/etc/clickhouse-server/config.d/listen.xml",
        "<clickhouse>\n <listen_host>::</listen_host>\n</clickhouse>\n",
    );
    const USERS: (&str, &str) = (
        "/etc/clickhouse-server/users.xml",
        "<clickhouse>\n<users>\n<default>\n<password></password>\n\
         <networks><ip>::/0</ip></networks>\n</default>\n</users>\n</clickhouse>\n",
    );

    #[test]
    fn users_without_a_password() {
        let own = |text: &'static str| ("/etc/clickhouse-server/users.d/own.xml", text);
        let yaml = |text: &'static str| ("/etc/clickhouse-server/users.d/own.yaml", text);
        let open = "clickhouse_user.1.open 4";
        for (files, expected) in [
            (vec![CONFIG, USERS], open),
            (vec![USERS], ""),
            (
                vec![
                    CONFIG,
                    USERS,
                    own(
                        "<yandex><users><default><password remove='1'/><password_sha256_hex>ab\
                         </password_sha256_hex></default></users></yandex>",
                    ),
                ],
                "",
            ),
            (
                vec![
                    CONFIG,
                    USERS,
                    own(
                        "<yandex><users><default><networks replace=\"replace\"><ip>::1</ip>\
                         </networks></default></users></yandex>",
                    ),
                ],
                "",
            ),
            (
                vec![
                    CONFIG,
                    USERS,
                    own("<clickhouse><users><default remove=\"1\"/></users></clickhouse>"),
                ],
                "",
            ),
            (
                vec![
                    CONFIG,
                    yaml("users:\n  etl:\n    no_password: {}\n    networks:\n      ip: '::/0'\n"),
                ],
                "clickhouse_user.1.open 3",
            ),
            (
                vec![
                    CONFIG,
                    yaml(
                        "users:\n  etl:\n    password_sha256_hex: ab\n    networks:\n      ip: '::/0'\n",
                    ),
                ],
                "",
            ),
        ] {
            assert_eq!(holds(&files).join(" "), expected, "{files:?}");
        }
    }
}
