//! Collects the TLS versions, the statistics page, the control socket and missing timeouts of HAProxy.

use super::haproxy_traps;
use super::lines_of_files::{Line, files, is_loopback, note, read};
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::{BTreeMap, BTreeSet};

const MAIN: &str = "/etc/haproxy/haproxy.cfg";
const DIR: &str = "/etc/haproxy/conf.d";
const SECTIONS: [&str; 6] = [
    "global", "defaults", "frontend", "backend", "listen", "userlist",
];

/// Sections that a line without indentation begins.
pub(super) const PARTS: [&str; 12] = [
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "userlist",
    "peers",
    "resolvers",
    "program",
    "cache",
    "mailers",
    "ring",
];

/// A section of HAProxy's configuration, with its settings of the statistics page and its addresses.
#[derive(Default)]
struct Section {
    page: Option<FactPlace>,
    guarded: bool,
    addresses: Vec<String>,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut all = vec![MAIN.to_owned()];
    all.extend(files(g, "haproxy", DIR, ".cfg"));
    note_timeouts(g, &all);
    haproxy_traps::note_traps(g, &all);
    let mut number = 0;
    // `ssl-server-verify none` of the global section is the default of all servers.
    let mut unverified = false;
    let replaced = is_replaced(g, &all);
    for path in all {
        let mut section = Section::default();
        for line in read(g, "haproxy", &path) {
            let text = line.text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            let Some(first) = words.first() else { continue };
            number += 1;
            if SECTIONS.contains(first) {
                std::mem::take(&mut section).note(g, number);
            }
            section.take(&words, &line);
            if words[0] != "ssl-default-bind-options" || !replaced {
                note_tls(g, &words, &line, number);
            }
            note_socket(g, &words, &line, number);
            match words[..] {
                ["ssl-server-verify", value, ..] => unverified = value == "none",
                _ => note_unverified(g, &words, (&line, number), unverified),
            }
        }
        section.note(g, number + 1);
    }
}

/// Returns whether each `bind` line with TLS sets its own versions, so that the default applies nowhere.
fn is_replaced(g: &mut Gather<'_>, all: &[String]) -> bool {
    let mut binds = 0;
    for path in all {
        for line in read(g, "haproxy", path) {
            let text = line.text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            if words.first() != Some(&"bind") || !words.contains(&"ssl") {
                continue;
            }
            binds += 1;
            let own = |word: &&str| *word == "ssl-min-ver" || word.starts_with("force-");
            if !words.iter().any(own) {
                return false;
            }
        }
    }
    binds > 0
}

/// Notes the minimum TLS version of a line if it is below 1.2.
fn note_tls(g: &mut Gather<'_>, words: &[&str], line: &Line, number: usize) {
    let speaks =
        words[0] == "ssl-default-bind-options" || (words[0] == "bind" && words.contains(&"ssl"));
    if !speaks {
        return;
    }
    let least = words
        .windows(2)
        .find(|pair| pair[0] == "ssl-min-ver")
        .map(|pair| pair[1]);
    let old = matches!(least, Some("SSLv3" | "TLSv1.0" | "TLSv1.1"))
        || words
            .iter()
            .any(|word| ["force-tlsv10", "force-tlsv11", "force-sslv3"].contains(word));
    note(
        g,
        "haproxy.tls",
        &number.to_string(),
        &line.place,
        &[("old", old.into())],
    );
}

/// Notes whether HAProxy accepts any certificate of a backend server on another machine.
fn note_unverified(
    g: &mut Gather<'_>,
    words: &[&str],
    (line, number): (&Line, usize),
    by_default: bool,
) {
    let ["server", _, address, options @ ..] = words else {
        return;
    };
    if !options.contains(&"ssl") {
        return;
    }
    let verify = options.windows(2).find(|pair| pair[0] == "verify");
    let none = verify.map_or(by_default, |pair| pair[1] == "none");
    let properties = [("unverified", (none && !is_loopback(address)).into())];
    note(
        g,
        "haproxy.server",
        &number.to_string(),
        &line.place,
        &properties,
    );
}

/// Notes whether the control socket gives administrator rights to every local user, or to the network.
fn note_socket(g: &mut Gather<'_>, words: &[&str], line: &Line, number: usize) {
    let ["stats", "socket", address, options @ ..] = words else {
        return;
    };
    let after = |name: &str| {
        options
            .windows(2)
            .find(|pair| pair[0] == name)
            .map(|pair| pair[1])
    };
    // A socket file has a path; other prefixes are an open descriptor and an abstract name.
    let bare = ["ipv4@", "ipv6@", "udp@"]
        .into_iter()
        .find_map(|start| address.strip_prefix(start))
        .unwrap_or(address);
    let network = !["/", "unix@", "abns@", "fd@", "sockpair@"]
        .iter()
        .any(|start| bare.starts_with(start))
        && bare.contains(':');
    let local = is_loopback(bare);
    let all = after("mode").is_some_and(|mode| mode.ends_with(['6', '7', '2', '3']));
    let open = after("level") == Some("admin") && (all || (network && !local));
    note(
        g,
        "haproxy.socket",
        &number.to_string(),
        &line.place,
        &[("open", open.into())],
    );
}

/// A proxy of HAProxy, or a section with defaults: the timeouts that apply to it.
struct Proxy {
    kind: String,
    timeouts: BTreeSet<String>,
    place: FactPlace,
}

/// Notes proxies without a timeout for clients or servers. A proxy inherits from the `defaults` section before it, or
/// from the one that it names; such a section starts from zero (HAProxy, section 4).
fn note_timeouts(g: &mut Gather<'_>, paths: &[String]) {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut inherited, mut proxies): (BTreeSet<String>, Vec<Proxy>) = Default::default();
    let (mut section, mut name) = (String::new(), String::new());
    for path in paths {
        for line in read(g, "haproxy", path) {
            let text = line.text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            let Some(first) = words.first() else { continue };
            let parent = words.windows(2).find(|pair| pair[0] == "from");
            let parent = parent.map(|pair| named.get(pair[1]).cloned().unwrap_or_default());
            match (*first, section.as_str()) {
                ("defaults", _) => {
                    inherited = parent.unwrap_or_default();
                    name = words.get(1).copied().unwrap_or_default().to_owned();
                    named.insert(name.clone(), inherited.clone());
                }
                ("frontend" | "backend" | "listen", _) => proxies.push(Proxy {
                    kind: (*first).to_owned(),
                    timeouts: parent.unwrap_or_else(|| inherited.clone()),
                    place: line.place.clone(),
                }),
                ("timeout", "defaults") => {
                    let which = words.get(1).copied().unwrap_or_default().to_owned();
                    inherited.insert(which);
                    named.insert(name.clone(), inherited.clone());
                }
                ("timeout", "frontend" | "backend" | "listen") => {
                    let which = words.get(1).copied().unwrap_or_default().to_owned();
                    if let Some(proxy) = proxies.last_mut() {
                        proxy.timeouts.insert(which);
                    }
                }
                _ => {}
            }
            if PARTS.contains(first) && !line.text.starts_with([' ', '\t']) {
                (*first).clone_into(&mut section);
            }
        }
    }
    for (number, proxy) in proxies.iter().enumerate() {
        let wanted: &[&str] = match proxy.kind.as_str() {
            "frontend" => &["client"],
            "backend" => &["connect", "server"],
            _ => &["client", "connect", "server"],
        };
        let missing = wanted.iter().any(|one| !proxy.timeouts.contains(*one));
        let which = (number + 1).to_string();
        let properties = [("without_timeouts", missing.into())];
        note(g, "haproxy.proxy", &which, &proxy.place, &properties);
    }
}

impl Section {
    fn take(&mut self, words: &[&str], line: &Line) {
        match words {
            ["stats", "enable" | "uri", ..] => {
                self.page.get_or_insert_with(|| line.place.clone());
            }
            ["stats", "auth", ..]
            | [
                "http-request" | "stats",
                "auth" | "deny" | "http-request",
                ..,
            ] => self.guarded = true,
            ["bind", address, ..] => self.addresses.push((*address).to_owned()),
            _ => {}
        }
    }

    fn note(self, g: &mut Gather<'_>, number: usize) {
        let Some(place) = self.page else { return };
        let local =
            !self.addresses.is_empty() && self.addresses.iter().all(|address| is_loopback(address));
        let open = !self.guarded && !local;
        note(
            g,
            "haproxy.statistics",
            &number.to_string(),
            &place,
            &[("open", open.into())],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn lines_and_their_near_misses() {
        for (text, end, expected) in [
            (
                "frontend a\n bind :443 ssl crt /x ssl-min-ver TLSv1.0\n",
                ".old",
                true,
            ),
            (
                "frontend a\n bind :443 ssl crt /x ssl-min-ver TLSv1.2\n",
                ".old",
                false,
            ),
            (
                "global\n ssl-default-bind-options ssl-min-ver TLSv1.1\n",
                ".old",
                true,
            ),
            (
                "global\n ssl-default-bind-options ssl-min-ver TLSv1.0\nfrontend a\n bind :443 ssl crt /x\n",
                ".old",
                true,
            ),
            (
                "global\n ssl-default-bind-options ssl-min-ver TLSv1.0\nfrontend a\n \
                 bind :443 ssl crt /x ssl-min-ver TLSv1.2\n",
                ".old",
                false,
            ),
            (
                "backend b\n server a 192.0.2.1:443 ssl verify none\n",
                ".unverified",
                true,
            ),
            (
                "backend b\n server a 127.0.0.1:443 ssl verify none\n",
                ".unverified",
                false,
            ),
            ("listen s\n bind :9000\n stats enable\n", ".open", true),
            (
                "listen s\n bind :9000\n stats enable\n stats auth a:b\n",
                ".open",
                false,
            ),
            (
                "listen s\n bind 127.0.0.1:9000\n stats uri /\n",
                ".open",
                false,
            ),
            (
                "global\n stats socket /run/a.sock mode 660 level admin\n",
                ".open",
                false,
            ),
            (
                "global\n stats socket /run/a.sock mode 666 level admin\n",
                ".open",
                true,
            ),
            (
                "global\n stats socket ipv4@0.0.0.0:9999 level admin\n",
                ".open",
                true,
            ),
            (
                "global\n stats socket ipv4@127.0.0.1:9999 level admin\n",
                ".open",
                false,
            ),
            (
                "global\n stats socket ipv4@:9999 level admin\n",
                ".open",
                true,
            ),
            ("global\n stats socket :9999 level admin\n", ".open", true),
            (
                "defaults\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
                 defaults\n mode tcp\nlisten a\n bind :1\n",
                ".without_timeouts",
                true,
            ),
            (
                "defaults x\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
                 defaults from x\n mode tcp\nlisten a\n bind :1\n",
                ".without_timeouts",
                false,
            ),
            (
                "defaults\n timeout connect 5s\nfrontend a\n timeout client 1m\n",
                ".without_timeouts",
                false,
            ),
        ] {
            let host = Recorded::new().file(MAIN, text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            let key = g.facts.map.keys().find(|key| key.ends_with(end)).cloned();
            let key = key.unwrap_or_else(|| panic!("{text}: {:?}", g.facts.map.keys()));
            assert_eq!(g.facts.get(&key), Some(&expected.into()), "{text}");
        }
    }
}
