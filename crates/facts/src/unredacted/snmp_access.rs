//! Communities of snmpd whose access is defined by several lines: `com2sec` with its groups and views, `authcommunity`,
//! and communities in included files (snmpd.conf(5), ACCESS CONTROL). Communities of one line in the usual file are in
//! `collectors::daemons`. Facts contain no community and no address.

use super::lines_of_files::{Line, files, note, read};
use crate::collectors::daemons::lines::{is_loopback, is_world};
use crate::gather::Gather;
use assay_model::FactPlace;

const MAIN: &str = "/etc/snmp/snmpd.conf";
const LOCAL: &str = "/etc/snmp/snmpd.local.conf";
const KIND: &str = "snmp_access";
/// Maximum number of files that are read.
const MOST: usize = 100;
/// Communities that every scanner tries.
const DEFAULTS: [&str; 2] = ["public", "private"];
/// The tree of standard objects, with processes, users, routes and packages. A view of this object or of one above it
/// shows the machine; the views of distributions are smaller.
const STANDARD: &str = "1.3.6.1.2.1";

/// A line with its words, the first in lower case.
struct Words {
    words: Vec<String>,
    place: FactPlace,
    /// Whether the line is in the usual file.
    main: bool,
}

impl Words {
    fn first(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Returns the arguments without `-Cn CONTEXT`, which `com2sec` takes first.
    fn arguments(&self) -> Vec<&str> {
        let all = self.words.iter().skip(1).map(String::as_str);
        let mut rest: Vec<&str> = all.collect();
        if rest.first().is_some_and(|word| word.starts_with("-C")) {
            let whole = if rest[0] == "-Cn" { 2 } else { 1 };
            rest.drain(..whole.min(rest.len()));
        }
        rest
    }
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let lines = read_all(g);
    let mut addresses = lines
        .iter()
        .filter(|line| line.first() == "agentaddress")
        .flat_map(|line| line.words.iter().skip(1))
        .flat_map(|word| word.split(','))
        .filter(|word| !word.is_empty())
        .peekable();
    let beyond = addresses.peek().is_none() || addresses.any(|one| !is_local(one));
    let mut number = 0;
    for line in &lines {
        let Some(community) = read_community(line, &lines) else {
            continue;
        };
        number += 1;
        let known = DEFAULTS.contains(&community.name);
        let open = beyond && community.world;
        let properties = [
            ("writable", (open && community.writes).into()),
            (
                "readable",
                (open && community.shows && known && !community.writes).into(),
            ),
        ];
        note(g, KIND, &number.to_string(), &line.place, &properties);
    }
    note_users(g, &lines, beyond);
}

/// Notes users of version 3 whose line demands no key: `rouser [-s MODEL] USER noauth`.
fn note_users(g: &mut Gather<'_>, lines: &[Words], beyond: bool) {
    let users = lines
        .iter()
        .filter(|line| ["rouser", "rwuser"].contains(&line.first()));
    for (number, line) in users.enumerate() {
        let mut rest = line.words.get(1..).unwrap_or_default();
        if rest.first().is_some_and(|word| word == "-s") {
            rest = rest.get(2..).unwrap_or_default();
        }
        // Without a level, a user has to sign in.
        let bare = rest
            .get(1)
            .is_some_and(|level| level.eq_ignore_ascii_case("noauth"));
        let properties = [("without_key", (bare && beyond).into())];
        note(
            g,
            "snmp_user",
            &(number + 1).to_string(),
            &line.place,
            &properties,
        );
    }
}

/// Reads the usual files and the files that they include, in the order in which snmpd reads them.
fn read_all(g: &mut Gather<'_>) -> Vec<Words> {
    let mut paths = vec![MAIN.to_owned(), LOCAL.to_owned()];
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(path) = paths.get(at).cloned() {
        at += 1;
        for line in read(g, KIND, &path) {
            let words = split_words(&line);
            let Some(first) = words.first() else { continue };
            let target = words.get(1).cloned().unwrap_or_default();
            let more = match first.as_str() {
                "includefile" if target.starts_with('/') => vec![target],
                "includefile" => vec![format!("/etc/snmp/{target}")],
                "includedir" => files(g, KIND, target.trim_end_matches('/'), ".conf"),
                _ => Vec::new(),
            };
            for one in more {
                if paths.len() < MOST && !paths.contains(&one) {
                    paths.push(one);
                }
            }
            found.push(Words {
                words,
                place: line.place,
                main: path == MAIN,
            });
        }
    }
    found
}

/// Returns the words of a line without quotation marks; a comment has none.
fn split_words(line: &Line) -> Vec<String> {
    let text = line.text.trim();
    if text.starts_with('#') {
        return Vec::new();
    }
    let words = text
        .split_whitespace()
        .take_while(|word| !word.starts_with('#'));
    let bare = words.map(|word| word.trim_matches(['"', '\'']).to_owned());
    let mut all: Vec<String> = bare.collect();
    if let Some(first) = all.first_mut() {
        *first = first.to_ascii_lowercase();
    }
    all
}

/// A community, and what a client that knows it may do.
struct Community<'a> {
    name: &'a str,
    world: bool,
    shows: bool,
    writes: bool,
}

/// Returns the community of a line; `None` if the line defines none, or none that is judged here.
fn read_community<'a>(line: &'a Words, all: &[Words]) -> Option<Community<'a>> {
    let words = line.arguments();
    let name = |at: usize| words.get(at).copied().unwrap_or_default();
    Some(match line.first() {
        "com2sec" | "com2sec6" => {
            let (shows, writes) = read_groups(all, name(0));
            Community {
                name: line.arguments().get(2).copied()?,
                world: is_open(name(1)),
                shows,
                writes,
            }
        }
        "authcommunity" => {
            let kinds: Vec<&str> = name(0).split(',').collect();
            Community {
                name: line.arguments().get(1).copied()?,
                world: words.get(2).is_none_or(|source| is_open(source)),
                shows: kinds.contains(&"read") && shows_tree(all, words.get(3..)),
                writes: kinds.contains(&"write"),
            }
        }
        "rocommunity" | "rocommunity6" | "rwcommunity" | "rwcommunity6" => {
            let writes = line.first().starts_with("rw");
            // The line of the usual file is judged elsewhere, except for a view that shows the whole tree.
            if line.main && (writes || words.len() <= 2) {
                return None;
            }
            Community {
                name: line.arguments().first().copied()?,
                world: words.get(1).is_none_or(|source| is_open(source)),
                shows: shows_tree(all, words.get(2..)),
                writes,
            }
        }
        _ => return None,
    })
}

/// Whether an address of the agent is reachable only from this machine (snmpd(8), LISTENING ADDRESSES).
fn is_local(address: &str) -> bool {
    let low = address.to_lowercase();
    let bare = ["udp6:", "udpv6:", "tcp6:", "tcpv6:"]
        .into_iter()
        .find_map(|start| low.strip_prefix(start))
        .unwrap_or(&low);
    bare.starts_with("unix:") || is_loopback(bare)
}

/// Whether a source is everybody.
fn is_open(source: &str) -> bool {
    is_world(source) || source.ends_with("/0.0.0.0") || source.ends_with("/0")
}

/// Returns whether the groups of a security name may read the standard tree, and whether they may write.
fn read_groups(all: &[Words], security: &str) -> (bool, bool) {
    let (mut shows, mut writes) = (false, false);
    let of = |key: &'static str| all.iter().filter(move |line| line.first() == key);
    for group in of("group") {
        let [group, model, member] = group.arguments()[..] else {
            continue;
        };
        if member != security || !["v1", "v2c", "any"].contains(&model.to_lowercase().as_str()) {
            continue;
        }
        for access in of("access") {
            let words = access.arguments();
            let (Some(&name), Some(&wanted), Some(&level)) =
                (words.first(), words.get(2), words.get(3))
            else {
                continue;
            };
            let wanted = wanted.to_lowercase();
            // A community has neither authentication nor encryption.
            let fits = name == group
                && (wanted == "any" || wanted.eq_ignore_ascii_case(model))
                && level.eq_ignore_ascii_case("noauth");
            if fits {
                shows |= words.get(5).is_some_and(|view| is_view_of_tree(all, view));
                writes |= words.get(6).is_some_and(|view| has_view(all, view));
            }
        }
    }
    (shows, writes)
}

/// Whether the rest of a line, `OID` or `-V VIEW`, includes the standard tree. Without a rest, all is shown.
fn shows_tree(all: &[Words], rest: Option<&[&str]>) -> bool {
    match rest.unwrap_or_default() {
        [] => true,
        ["-V", view, ..] => is_view_of_tree(all, view),
        [oid, ..] => holds_standard(oid),
    }
}

/// Returns the lines of a view, as (whether included, object).
fn view_lines<'a>(all: &'a [Words], view: &'a str) -> impl Iterator<Item = (bool, &'a str)> {
    all.iter()
        .filter(|line| line.first() == "view")
        .filter_map(move |line| match line.arguments()[..] {
            [name, kind, oid, ..] if name == view => {
                Some((kind.eq_ignore_ascii_case("included"), oid))
            }
            _ => None,
        })
}

fn is_view_of_tree(all: &[Words], view: &str) -> bool {
    let included = view_lines(all, view).any(|(included, oid)| included && holds_standard(oid));
    included && !view_lines(all, view).any(|(included, oid)| !included && holds_standard(oid))
}

fn has_view(all: &[Words], view: &str) -> bool {
    view_lines(all, view).any(|(included, _)| included)
}

/// Whether an object contains the standard tree.
fn holds_standard(oid: &str) -> bool {
    let bare = oid.trim_matches('.').to_ascii_lowercase();
    let named = bare
        .replace("iso", "1")
        .replace("org", "3")
        .replace("dod", "6");
    let numbers = named.replace("internet", "1").replace("mgmt", "2");
    let numbers = numbers.replace("mib-2", "1");
    ["all", "internet", "mgmt", "mib-2"].contains(&bare.as_str())
        || numbers.is_empty()
        || STANDARD == numbers
        || STANDARD
            .strip_prefix(&numbers)
            .is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    /// Returns the numbers of the properties that hold, with their lines.
    fn holds(text: &str) -> Vec<String> {
        let host = Recorded::new()
            .file(MAIN, text)
            .file("/etc/snmp/snmpd.conf.d/a.conf", "rwcommunity x\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        let all = g.facts.map.iter();
        all.filter(|(key, _)| g.facts.get(key) == Some(&true.into()))
            .map(|(key, fact)| {
                let line = fact.place.line().unwrap_or(0);
                format!("{} {line}", key.rsplit('.').next().unwrap())
            })
            .collect()
    }

    const GROUPS: &str = "group G v1 S\ngroup G v2c S\nview all included .1 80\n\
                          view some included .1.3.6.1.2.1.1\n";

    #[test]
    fn communities_of_several_lines() {
        for (access, lines, expected) in [
            (
                "all none none",
                "com2sec S default public",
                vec!["readable 6"],
            ),
            (
                "all none none",
                "com2sec -Cn x S 0.0.0.0/0 public",
                vec!["readable 6"],
            ),
            (
                "all none none",
                "com2sec6 S ::/0 public",
                vec!["readable 6"],
            ),
            ("all none none", "com2sec S default other", vec![]),
            ("all none none", "com2sec S 192.0.2.0/24 public", vec![]),
            ("all none none", "com2secunix S /run/x public", vec![]),
            ("all none none", "com2sec T default public", vec![]),
            ("some none none", "com2sec S default public", vec![]),
            (
                "all all none",
                "com2sec S default other",
                vec!["writable 6"],
            ),
            (
                "all all none",
                "com2sec S default other\nagentaddress udp:127.0.0.1:161",
                vec![],
            ),
            (
                "all none none",
                "rocommunity public default .1",
                vec!["readable 6"],
            ),
            (
                "all none none",
                "rocommunity public default -V some",
                vec![],
            ),
            (
                "all none none",
                "authcommunity read,write other",
                vec!["writable 6"],
            ),
            ("all none none", "authcommunity log,net public", vec![]),
            (
                "all none none",
                "rwuser -s usm admin noauth",
                vec!["without_key 6"],
            ),
            ("all none none", "rouser admin priv", vec![]),
            (
                "all none none",
                "includeDir /etc/snmp/snmpd.conf.d",
                vec!["writable 1"],
            ),
        ] {
            let text = format!("{GROUPS}access G \"\" any noauth exact {access}\n{lines}\n");
            assert_eq!(holds(&text), expected, "{lines} {access}");
        }
    }
}
