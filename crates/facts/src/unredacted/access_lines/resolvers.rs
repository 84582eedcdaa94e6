//! Name servers and clocks: resolvers that answer everybody or do not validate, updates of zones by address alone,
//! and time sources of two kinds. `collectors::daemons` has the address lists of BIND and Unbound.

use super::super::lines_of_files::{Line, exists, files, read};
use super::{Lines, bare, words};
use crate::collectors::daemons::lines::{at_line, is_loopback, is_world};
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
    let serves = lines.iter().any(|line| first(line) == "enable-tftp");
    if let Some(line) = lines.iter().rfind(|line| first(line) == "tftp-root") {
        let words = words(line);
        let root = words
            .get(1)
            .map_or("", |path| path.split(',').next().unwrap_or_default());
        let system =
            root == "/" || ["/etc", "/root", "/home", "/var"].contains(&root.trim_end_matches('/'));
        Lines::of("dnsmasq_tftp", "serves_system").add(g, serves && system, &line.place);
    }
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

/// Notes whether Unbound runs without its validator (unbound.conf(5), module-config). Where it only forwards, the other
/// server may validate.
fn note_unbound(g: &mut Gather<'_>) {
    let mut all = vec![UNBOUND.to_owned()];
    all.extend(files(g, "unbound_modules", UNBOUND_MORE, ".conf"));
    let mut last = None;
    let mut forwarded = Forwarding::default();
    for path in all {
        forwarded.end_clause();
        for line in read(g, "unbound_modules", &path) {
            let text = bare(&line).unwrap_or_default();
            if let Some((_, value)) = text.split_once("module-config:") {
                let value = value.split('#').next().unwrap_or_default();
                last = Some((value.contains("validator"), line.place.clone()));
            }
            forwarded.take(text);
        }
    }
    forwarded.end_clause();
    let mut found = Lines::of("unbound_modules", "without_validator");
    if let Some((validates, place)) = last {
        match forwarded.all_to {
            _ if validates => found.add(g, false, &place),
            Some(Target::Validator) => found.add(g, false, &place),
            Some(Target::Local) if validates_locally(g) => found.add(g, false, &place),
            Some(Target::Local) => {
                let why = "whether the resolver on this machine validates is not known";
                found.add_unknown(g, why, &place);
            }
            _ => found.add(g, true, &place),
        }
    }
}

/// To which servers Unbound forwards every question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A public resolver that validates, over TLS.
    Validator,
    /// Another resolver on this machine.
    Local,
    Other,
}

/// The forward zone that is being read, and the target of the zone `.`.
#[derive(Default)]
struct Forwarding {
    inside: bool,
    root: bool,
    tls: bool,
    addresses: Vec<String>,
    all_to: Option<Target>,
}

/// Names of public resolvers that validate, as certificates contain them.
const VALIDATORS: [&str; 6] = [
    "dns.quad9.net",
    "cloudflare-dns.com",
    "one.one.one.one",
    "dns.google",
    "dns.adguard-dns.com",
    "dns.sb",
];

impl Forwarding {
    fn take(&mut self, text: &str) {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.split(" #").next().unwrap_or_default();
        let value = value.trim().trim_matches(['"', '\'']);
        match name.trim() {
            "forward-zone" => {
                self.end_clause();
                self.inside = true;
            }
            "server" | "stub-zone" | "remote-control" | "auth-zone" | "view" => self.end_clause(),
            "name" => self.root = self.inside && value == ".",
            "forward-tls-upstream" | "forward-ssl-upstream" => self.tls = value == "yes",
            "forward-addr" => self.addresses.push(value.to_owned()),
            _ => {}
        }
    }

    fn end_clause(&mut self) {
        if self.root && !self.addresses.is_empty() {
            let validates = |address: &String| {
                let name = address.split('#').nth(1).unwrap_or_default();
                VALIDATORS.iter().any(|known| name.ends_with(known))
            };
            self.all_to = Some(if self.addresses.iter().all(|one| is_loopback(one)) {
                Target::Local
            } else if self.tls && self.addresses.iter().all(validates) {
                Target::Validator
            } else {
                Target::Other
            });
        }
        (self.inside, self.root, self.tls) = (false, false, false);
        self.addresses.clear();
    }
}

/// Returns whether another resolver on this machine is set up to validate: Stubby, dnscrypt-proxy or systemd-resolved.
fn validates_locally(g: &mut Gather<'_>) -> bool {
    let mut says = |path: &str, line: fn(&str) -> bool| {
        let lines = read(g, "unbound_modules", path);
        lines.iter().filter_map(bare).any(line)
    };
    says("/etc/stubby/stubby.yml", |text| {
        text.starts_with("dnssec: GETDNS_EXTENSION_TRUE")
    }) || says("/etc/dnscrypt-proxy/dnscrypt-proxy.toml", |text| {
        text.replace(' ', "") == "require_dnssec=true"
    }) || says("/etc/systemd/resolved.conf", |text| text == "DNSSEC=yes")
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
    let (mut at, mut missing) = (0, false);
    while let Some(path) = all.get(at).cloned() {
        let text = g.read("bind_update", &path).unwrap_or_default();
        for one in read_braces(&text) {
            if let [include, file] = &one.words[..]
                && include == "include"
                && file.starts_with('/')
                && !all.contains(file)
                && all.len() < MOST
            {
                missing |= !exists(g, file);
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
            let place = at_line(path, one.line);
            match !anchored && !off {
                true if missing => {
                    let why = "a file that is included is missing, and may contain the anchors";
                    validation.add_unknown(g, why, &place);
                }
                without => validation.add(g, without, &place),
            }
        }
    }
    note_control(g, &statements);
}

/// Notes channels for rndc that listen beyond this machine for everybody (BIND ARM, controls).
fn note_control(g: &mut Gather<'_>, statements: &[(String, Statement)]) {
    let mut found = Lines::of("bind_control", "open");
    for (path, one) in statements {
        let Some((_, head)) = one.within.last() else {
            continue;
        };
        let [inet, address, rest @ ..] = &head[..] else {
            continue;
        };
        let controls = one.within.iter().any(|(_, head)| head == &["controls"]);
        if controls && inet == "inet" && rest.last().is_some_and(|word| word == "allow") {
            let open = one.words.iter().any(|word| is_world(word)) && !is_loopback(address);
            found.add(g, open, &at_line(path, one.line));
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
            (
                dnsmasq,
                "enable-tftp\ntftp-root=/etc\n",
                "dnsmasq_tftp.1.serves_system 2",
            ),
            (dnsmasq, "enable-tftp\ntftp-root=/srv/tftp\n", ""),
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
            (
                unbound,
                "server:\n module-config: iterator\nforward-zone:\n name: \".\"\n forward-addr: 127.0.0.1@5353\n",
                "",
            ),
            (
                unbound,
                "server:\n module-config: iterator\nforward-zone:\n name: .\n forward-tls-upstream: yes\n \
                 forward-addr: 9.9.9.9@853#dns.quad9.net\n",
                "",
            ),
            (
                unbound,
                "server:\n module-config: iterator\nforward-zone:\n name: .\n forward-addr: 9.9.9.9\n",
                "unbound_modules.1.without_validator 2",
            ),
            (
                bind,
                "controls { inet * port 953 allow { any; } keys { rndc-key; }; };\n",
                "bind_control.1.open 1",
            ),
            (
                bind,
                "controls { inet 127.0.0.1 allow { any; } keys { rndc-key; }; };\n",
                "",
            ),
            (
                bind,
                "options { dnssec-validation yes; };\ninclude \"/etc/named.root.key\";\n",
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
