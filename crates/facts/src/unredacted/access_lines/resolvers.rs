//! Name servers and clocks: resolvers that answer everybody or do not validate, updates of zones by address alone,
//! and time sources of two kinds. `collectors::daemons` has the address lists of BIND and Unbound.

use super::super::lines_of_files::{Line, files, read};
use super::{Lines, bare, words};
use crate::collectors::daemons::lines::{at_line, is_loopback};
use crate::collectors::daemons::nested::{Statement, read_braces};
use crate::gather::{Gather, lossy};

const RESOLVED: [&str; 3] = [
    "/usr/lib/systemd/resolved.conf.d",
    "/run/systemd/resolved.conf.d",
    "/etc/systemd/resolved.conf.d",
];
const DNSMASQ: &str = "/etc/dnsmasq.conf";
const DNSMASQ_MORE: &str = "/etc/dnsmasq.d";
const UNBOUND: &str = "/etc/unbound/unbound.conf";
const UNBOUND_MORE: &str = "/etc/unbound/unbound.conf.d";
const BIND: &str = "/etc/bind";
/// Maximum number of BIND files that are read.
const MOST: usize = 200;
const CHRONY: [&str; 2] = ["/etc/chrony/chrony.conf", "/etc/chrony.conf"];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_resolved(g);
    note_dnsmasq(g);
    note_unbound(g);
    note_bind(g);
    note_clock(g);
}

/// Notes whether systemd-resolved answers everybody: it has no list of clients (resolved.conf(5),
/// DNSStubListenerExtra). An empty value clears the addresses before it.
fn note_resolved(g: &mut Gather<'_>) {
    let mut all = vec!["/etc/systemd/resolved.conf".to_owned()];
    let mut names: Vec<String> = RESOLVED
        .iter()
        .flat_map(|dir| files(g, "resolved", dir, ".conf"))
        .collect();
    names.sort_by_key(|path| path.rsplit('/').next().map(str::to_owned));
    all.extend(names);
    let mut extra = Vec::new();
    for path in all {
        for line in read(g, "resolved", &path) {
            let Some((name, value)) = bare(&line).and_then(|text| text.split_once('=')) else {
                continue;
            };
            if name.trim() != "DNSStubListenerExtra" {
                continue;
            }
            match value.trim() {
                "" => extra.clear(),
                value => extra.push((value.to_owned(), line.place)),
            }
        }
    }
    let mut found = Lines::of("resolved", "open");
    for (address, place) in extra {
        let bare = address
            .trim_start_matches("udp:")
            .trim_start_matches("tcp:");
        let every = ["0.0.0.0", "[::]"]
            .iter()
            .any(|all| bare.starts_with(all) && !bare.starts_with("[::]/"))
            || bare == "::";
        found.add(g, every, &place);
    }
}

/// Notes whether dnsmasq, which validates, takes answers without a signature for every zone (dnsmasq(8),
/// dnssec-check-unsigned).
fn note_dnsmasq(g: &mut Gather<'_>) {
    let mut all = vec![DNSMASQ.to_owned()];
    let more = files(g, "dnsmasq", DNSMASQ_MORE, "");
    all.extend(more.into_iter().filter(|path| {
        ![".dpkg-dist", ".dpkg-old", ".dpkg-new", "~", "#"]
            .iter()
            .any(|end| path.ends_with(end))
    }));
    let mut lines: Vec<Line> = Vec::new();
    for path in all {
        lines.extend(read(g, "dnsmasq", &path));
    }
    let first = |line: &Line| words(line).first().cloned().unwrap_or_default();
    let validates = lines.iter().any(|line| first(line) == "dnssec");
    let check = lines
        .iter()
        .rfind(|line| first(line) == "dnssec-check-unsigned");
    if let Some(line) = check {
        let off = words(line).get(1).is_some_and(|word| word == "no");
        let place = &line.place;
        Lines::of("dnsmasq", "unsigned_accepted").add(g, validates && off, place);
    }
}

/// Notes whether Unbound runs without its validator (unbound.conf(5), module-config).
fn note_unbound(g: &mut Gather<'_>) {
    let mut all = vec![UNBOUND.to_owned()];
    all.extend(files(g, "unbound_modules", UNBOUND_MORE, ".conf"));
    let mut last = None;
    for path in all {
        for line in read(g, "unbound_modules", &path) {
            let text = bare(&line).unwrap_or_default();
            if let Some((_, value)) = text.split_once("module-config:") {
                let value = value.split('#').next().unwrap_or_default();
                last = Some((value.contains("validator"), line.place));
            }
        }
    }
    if let Some((validates, place)) = last {
        Lines::of("unbound_modules", "without_validator").add(g, !validates, &place);
    }
}

/// Notes the lists of BIND that admit updates by address, and validation without a trust anchor.
fn note_bind(g: &mut Gather<'_>) {
    let mut all: Vec<String> = Vec::new();
    for name in g.list("bind_update", BIND) {
        let path = format!("{BIND}/{}", lossy(&name));
        if path.starts_with("/etc/bind/named.conf") && !path.ends_with('~') {
            all.push(path);
        }
    }
    all.push("/etc/named.conf".to_owned());
    let mut statements: Vec<(String, Statement)> = Vec::new();
    let mut at = 0;
    while let Some(path) = all.get(at).cloned() {
        let text = g.read("bind_update", &path).unwrap_or_default();
        for one in read_braces(&text) {
            if let [include, file] = &one.words[..]
                && include == "include"
                && file.starts_with('/')
                && !all.contains(file)
                && all.len() < MOST
            {
                all.push(file.clone());
            }
            statements.push((path.clone(), one));
        }
        at += 1;
    }
    let head = |one: &Statement| {
        let block = one.within.last().and_then(|(_, words)| words.first());
        block.cloned().unwrap_or_default()
    };
    let mut by_address = Lines::of("bind_update", "by_address");
    for (path, one) in statements
        .iter()
        .filter(|(_, one)| head(one) == "allow-update")
    {
        let address = match &one.words[..] {
            [word] => {
                word == "localnets"
                    || (word.starts_with(|letter: char| letter.is_ascii_hexdigit())
                        && word.contains(['.', ':', '/'])
                        && !is_loopback(word)
                        && word != "0.0.0.0/0"
                        && word != "::/0")
            }
            _ => false,
        };
        by_address.add(g, address, &at_line(path, one.line));
    }
    let anchors = ["trust-anchors", "managed-keys", "trusted-keys"];
    let anchored = statements
        .iter()
        .any(|(_, one)| anchors.contains(&head(one).as_str()));
    let off = statements
        .iter()
        .any(|(_, one)| one.words == ["recursion", "no"]);
    let mut validation = Lines::of("bind_anchor", "off");
    for (path, one) in &statements {
        if one.words == ["dnssec-validation", "yes"] {
            validation.add(g, !anchored && !off, &at_line(path, one.line));
        }
    }
}

/// Notes a time server that spreads leap seconds beside one that inserts them (Google Public NTP, Leap smear).
fn note_clock(g: &mut Gather<'_>) {
    let mut all = CHRONY.map(str::to_owned).to_vec();
    all.extend(files(g, "time_source", "/etc/chrony/conf.d", ".conf"));
    all.extend(files(g, "time_source", "/etc/chrony/sources.d", ".sources"));
    let (mut smears, mut steps) = (Vec::new(), false);
    for path in all {
        for line in read(g, "time_source", &path) {
            let words = words(&line);
            let (Some(kind), Some(name)) = (words.first(), words.get(1)) else {
                continue;
            };
            if !["server", "pool", "peer"].contains(&kind.as_str()) {
                continue;
            }
            let google = name.starts_with("time") && name.ends_with(".google.com");
            let smearing = ["time.aws.com", "time.facebook.com", "time.android.com"];
            if google || smearing.contains(&name.as_str()) {
                smears.push(line.place);
            } else {
                let known = [".pool.ntp.org", ".ptb.de", ".nist.gov", ".metas.ch"];
                steps |= name == "pool.ntp.org" || known.iter().any(|end| name.ends_with(end));
            }
        }
    }
    let mut found = Lines::of("time_source", "smear_mixed");
    if let Some(place) = smears.first() {
        found.add(g, steps, place);
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn resolvers_and_clocks() {
        let resolved = "/etc/systemd/resolved.conf.d/a.conf";
        let dnsmasq = "/etc/dnsmasq.d/a";
        let unbound = "/etc/unbound/unbound.conf.d/a.conf";
        let bind = "/etc/bind/named.conf.local";
        let update = |list: &str| format!("zone a {{ allow-update {{ {list} }}; }};\n");
        let (address, key, both) = (
            update("10/8; key k;"),
            update("key k;"),
            update("!{ !10/8; any; }; key k;"),
        );
        for (path, text, expected) in [
            (
                resolved,
                "DNSStubListenerExtra=udp:0.0.0.0:53\n",
                "resolved.1.open 1",
            ),
            (
                resolved,
                "DNSStubListenerExtra=0.0.0.0\nDNSStubListenerExtra=\n",
                "",
            ),
            (resolved, "DNSStubListenerExtra=192.168.1.1\n", ""),
            (
                dnsmasq,
                "dnssec\ndnssec-check-unsigned=no\n",
                "dnsmasq.1.unsigned_accepted 2",
            ),
            (dnsmasq, "dnssec\ndnssec-check-unsigned\n", ""),
            (dnsmasq, "dnssec-check-unsigned=no\n", ""),
            (
                unbound,
                "server: module-config: \"respip iterator\"\n",
                "unbound_modules.1.without_validator 1",
            ),
            (
                unbound,
                "server:\n module-config: \"validator iterator\"\n",
                "",
            ),
            (bind, &address, "bind_update.1.by_address 1"),
            (bind, &key, ""),
            (bind, &both, ""),
            (
                bind,
                "options { dnssec-validation yes; };\n",
                "bind_anchor.1.off 1",
            ),
            (
                bind,
                "trust-anchors { . initial-key 257 3 8 \"x\"; };\noptions { dnssec-validation yes; };\n",
                "",
            ),
            (bind, "options { dnssec-validation auto; };\n", ""),
            (
                CHRONY[0],
                "pool 2.debian.pool.ntp.org iburst\nserver time1.google.com\n",
                "time_source.1.smear_mixed 2",
            ),
            (
                CHRONY[0],
                "server time1.google.com\nserver time2.google.com\n",
                "",
            ),
            (CHRONY[0], "pool 2.debian.pool.ntp.org iburst\n", ""),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
