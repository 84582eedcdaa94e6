//! Authoritative name servers: who reaches the web server of PowerDNS and transfers its zones, and access lists of Knot
//! DNS without an address and a key. `collectors::daemons` and `resolvers` have BIND.

use super::super::lines_of_files::{Line, files, is_loopback, read};
use super::{Lines, bare, holds_world};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::daemons::nested::read_yaml;
use crate::gather::Gather;
use assay_model::FactPlace;

const POWERDNS: [&str; 2] = ["/etc/powerdns/pdns.conf", "/etc/pdns/pdns.conf"];
const KNOT: &str = "/etc/knot/knot.conf";

pub(super) fn collect(g: &mut Gather<'_>) {
    note_powerdns(g);
    note_knot(g);
}

/// Returns the value of a setting of PowerDNS with the place of its last line. `+=` adds to the value, and a name alone
/// means yes.
fn value_of(lines: &[Line], key: &str) -> Option<(String, FactPlace)> {
    let mut said: Option<(String, FactPlace)> = None;
    for line in lines {
        let text = bare(line).unwrap_or_default();
        let (name, value) = text.split_once('=').unwrap_or((text, "yes"));
        let (name, adds) = match name.trim().strip_suffix('+') {
            Some(name) => (name, true),
            None => (name.trim(), false),
        };
        if name == key {
            let value = value.trim().to_lowercase();
            let before = said.take().filter(|_| adds);
            let whole = before.map_or(value.clone(), |(before, _)| format!("{before},{value}"));
            said = Some((whole, line.place.clone()));
        }
    }
    said
}

/// Notes whether everybody reaches the web server of PowerDNS, and whether everybody transfers its zones.
fn note_powerdns(g: &mut Gather<'_>) {
    let mut web = Lines::of("pdns_web", "open");
    let mut transfer = Lines::of("pdns_transfer", "open");
    for main in POWERDNS {
        let mut lines = read(g, "pdns_web", main);
        if let Some((dir, _)) = value_of(&lines, "include-dir") {
            for path in files(g, "pdns_web", dir.trim_end_matches('/'), ".conf") {
                lines.extend(read(g, "pdns_web", &path));
            }
        }
        let is_on = |key: &str| {
            let said = value_of(&lines, key);
            said.is_some_and(|(value, _)| ["yes", "on", "true", "1"].contains(&value.as_str()))
        };
        let lists = |list: &str| {
            list.split([',', ' ', ';'])
                .any(|one| holds_world(one.trim()))
        };
        if let Some((clients, place)) = value_of(&lines, "webserver-allow-from") {
            // Without a line, the address is 127.0.0.1.
            let beyond = value_of(&lines, "webserver-address")
                .is_some_and(|(address, _)| !is_loopback(&address));
            let serves = is_on("webserver") || is_on("api");
            web.add(g, serves && beyond && lists(&clients), &place);
        }
        if let Some((clients, place)) = value_of(&lines, "allow-axfr-ips") {
            transfer.add(g, lists(&clients) && !is_on("disable-axfr"), &place);
        }
    }
}

/// Notes access lists of Knot DNS that let everybody transfer or change a zone.
fn note_knot(g: &mut Gather<'_>) {
    let text = g.read("knot_acl", KNOT).unwrap_or_default();
    let all = read_yaml(&text);
    let mut found = Lines::of("knot_acl", "open");
    for (at, id) in all
        .iter()
        .enumerate()
        .filter(|(_, one)| one.path == "acl.id")
    {
        let own: Vec<(&str, &str)> = all[at + 1..]
            .iter()
            .take_while(|one| one.path.starts_with("acl.") && one.path != "acl.id")
            .map(|one| (one.path.trim_start_matches("acl."), one.value.as_str()))
            .collect();
        let has = |name: &str| own.iter().any(|(key, _)| *key == name);
        let world = own
            .iter()
            .any(|(key, value)| *key == "address" && holds_world(value));
        let guarded = (has("address") && !world) || has("key") || has("remote");
        let denies = own
            .iter()
            .any(|(key, value)| *key == "deny" && ["on", "true", "yes"].contains(value));
        let gives = own
            .iter()
            .any(|(key, value)| *key == "action" && ["transfer", "update"].contains(value));
        let used = all
            .iter()
            .any(|one| one.path.ends_with(".acl") && one.value == id.value);
        found.add(
            g,
            gives && used && !guarded && !denies,
            &at_line(KNOT, id.line),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn servers_and_their_near_misses() {
        let pdns = POWERDNS[0];
        let acl = |more: &str| {
            format!(
                "acl:\n  - id: x\n{more}    action: [transfer, update]\nzone:\n  - domain: a\n    acl: x\n"
            )
        };
        let (open, keyed) = (acl(""), acl("    key: k\n"));
        for (path, text, expected) in [
            (
                pdns,
                "api=yes\nwebserver-address=0.0.0.0\nwebserver-allow-from=10.0.0.0/8\nwebserver-allow-from+=::/0\n",
                "pdns_web.1.open 4",
            ),
            (pdns, "api\nwebserver-allow-from=0.0.0.0/0\n", ""),
            (
                pdns,
                "webserver=no\nwebserver-address=0.0.0.0\nwebserver-allow-from=0.0.0.0/0\n",
                "",
            ),
            (
                pdns,
                "allow-axfr-ips=0.0.0.0/0,::/0\n",
                "pdns_transfer.1.open 1",
            ),
            (pdns, "allow-axfr-ips=0.0.0.0/0\ndisable-axfr=yes\n", ""),
            (pdns, "allow-axfr-ips=192.0.2.1\n", ""),
            (KNOT, open.as_str(), "knot_acl.1.open 2"),
            (KNOT, keyed.as_str(), ""),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
