//! Collects which clients BIND and Unbound answer, and which clients may transfer or update the zones of BIND.

use super::cleaned_words::{BIND, UNBOUND};
use super::lines::{Line, at_line, files, is_loopback, is_world, note, read};
use super::nested::{Statement, read_braces};
use crate::collectors::services::packages;
use crate::gather::Gather;
use std::collections::BTreeMap;

/// Address lists of BIND that checks use.
const LISTS: [&str; 4] = [
    "allow-recursion",
    "allow-query-cache",
    "allow-transfer",
    "allow-update",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_bind(g);
    note_unbound(g);
}

fn note_bind(g: &mut Gather<'_>) {
    let mut all: Vec<String> = g
        .list("bind", BIND)
        .iter()
        .map(|name| format!("{BIND}/{}", name.to_string_lossy()))
        .collect();
    all.retain(|path| path.starts_with("/etc/bind/named.conf") && !path.ends_with('~'));
    all.push("/etc/named.conf".to_owned());
    all.sort();
    let mut statements: Vec<(String, Statement)> = Vec::new();
    for path in all {
        let text = g.read("bind", &path).unwrap_or_default();
        statements.extend(
            read_braces(&text)
                .into_iter()
                .map(|one| (path.clone(), one)),
        );
    }
    let in_block = |name: &str| -> Vec<&Statement> {
        let of = |one: &&(String, Statement)| first_word_of_block(&one.1) == name;
        statements.iter().filter(of).map(|(_, one)| one).collect()
    };
    // Named listens on all addresses by default.
    let listens = in_block("listen-on");
    let local = !listens.is_empty()
        && listens.iter().all(|one| {
            one.words
                .iter()
                .all(|word| is_loopback(word) || word == "none" || word == "localhost")
        });
    let queries = in_block("allow-query");
    let of_bind: Vec<&Statement> = statements.iter().map(|(_, one)| one).collect();
    let mut number = 0;
    for (path, one) in &statements {
        let own: Vec<&&Statement> = queries
            .iter()
            .filter(|query| view(query) == view(one))
            .collect();
        let outer: Vec<&&Statement> = queries
            .iter()
            .filter(|query| view(query).is_none())
            .collect();
        let queries = if own.is_empty() { outer } else { own };
        let asked = queries.is_empty()
            || queries
                .iter()
                .any(|one| one.words.iter().any(|word| is_world(word)));
        let recursion = recurses(&of_bind, view(one));
        let list = first_word_of_block(one);
        let place = at_line(path, one.line);
        if LISTS.contains(&list) {
            number += 1;
            let which = number.to_string();
            let any = one.words.iter().any(|word| is_world(word)) && !local;
            let any =
                any && !(list == "allow-transfer" && each_zone_differs(&statements, path, one));
            note(g, ("bind.list", &which), "list", list, &place);
            let open = match list {
                "allow-recursion" | "allow-query-cache" => any && recursion && asked,
                _ => any,
            };
            note(g, ("bind.list", &which), "open", open, &place);
        }
        if let [name, value] = &one.words[..]
            && name == "dnssec-validation"
        {
            let off = value == "no" && recursion;
            note(g, ("bind", "validation"), "off", off, &place);
        }
    }
    if !local && transfers_by_default(g) {
        for (path, line) in zones_without_transfer_list(&statements) {
            number += 1;
            let (which, place) = (number.to_string(), at_line(path, line));
            note(g, ("bind.list", &which), "list", "allow-transfer", &place);
            note(g, ("bind.list", &which), "open", true, &place);
        }
    }
}

/// Returns whether the installed BIND lets everybody transfer a zone without an `allow-transfer` line. `named -C` of
/// 9.18 prints `allow-transfer {any;}`; 9.20 changed the default to none.
fn transfers_by_default(g: &Gather<'_>) -> bool {
    packages::find_version(g, "bind9").is_some_and(|(version, _)| {
        let (major, minor, _) = packages::numbers(&version);
        major == 9 && minor <= 18
    })
}

/// Returns the places of the primary zones, except Debian's own, without `allow-transfer` in the zone, its view and the
/// options.
fn zones_without_transfer_list(all: &[(String, Statement)]) -> Vec<(&str, usize)> {
    let lists: Vec<(&str, &(usize, Vec<String>))> = all
        .iter()
        .filter(|(_, one)| first_word_of_block(one) == "allow-transfer")
        .filter_map(|(path, one)| Some((path.as_str(), one.within.iter().rev().nth(1)?)))
        .collect();
    let is_primary = |(_, one): &&(String, Statement)| {
        first_word_of_block(one) == "zone"
            && matches!(&one.words[..], [key, kind] if key == "type"
                && matches!(kind.as_str(), "master" | "primary"))
    };
    let is_listed = |path: &str, zone: &Statement| {
        lists.iter().any(|(file, block)| {
            let around = zone.within.iter().any(|(number, _)| *number == block.0);
            (around && *file == path) || block.1.first().is_some_and(|word| word == "options")
        })
    };
    all.iter()
        .filter(is_primary)
        .filter(|(path, one)| !path.ends_with(".default-zones") && !is_listed(path, one))
        .map(|(path, one)| (path.as_str(), one.line))
        .collect()
}

/// Returns whether each zone below a list of a view, or of the options, has a list of its own, which takes precedence.
fn each_zone_differs(all: &[(String, Statement)], path: &str, list: &Statement) -> bool {
    let around = list.within.iter().rev().nth(1);
    let Some((scope, head)) = around.filter(|(_, head)| {
        head.first()
            .is_some_and(|word| word == "view" || word == "options")
    }) else {
        return false;
    };
    let of_view = head.first().is_some_and(|word| word == "view");
    let mut zones: BTreeMap<(&str, usize), bool> = BTreeMap::new();
    for (file, one) in all {
        let in_scope = !of_view || (file == path && one.within.iter().any(|(at, _)| at == scope));
        let zone = one
            .within
            .iter()
            .find(|(_, head)| head.first().is_some_and(|word| word == "zone"));
        if let (Some((zone, _)), true, false) = (zone, in_scope, file.ends_with(".default-zones")) {
            let view_lists = !of_view && view(one).is_some();
            let own = first_word_of_block(one) == "allow-transfer";
            *zones.entry((file, *zone)).or_default() |= own && !view_lists;
        }
    }
    !zones.is_empty() && zones.values().all(|own| *own)
}

/// Returns the number of the `view` block around a statement; `None` outside of views.
fn view(one: &Statement) -> Option<usize> {
    let mut blocks = one.within.iter();
    blocks
        .find(|(_, head)| head.first().is_some_and(|word| word == "view"))
        .map(|(number, _)| *number)
}

/// Returns whether `recursion` of BIND is on in a view, or outside of all views. A line in the view overrides the
/// global line; the default is on.
fn recurses(all: &[&Statement], of_view: Option<usize>) -> bool {
    let last = |wanted: Option<usize>| {
        let mut said = all.iter().filter(|one| {
            view(one) == wanted && one.words.len() == 2 && one.words[0] == "recursion"
        });
        said.next_back().map(|one| one.words[1] != "no")
    };
    last(of_view).or_else(|| last(None)).unwrap_or(true)
}

/// Returns the first word of the innermost block around a statement.
fn first_word_of_block(one: &Statement) -> &str {
    let block = one.within.last().and_then(|(_, words)| words.first());
    block.map_or("", String::as_str)
}

fn note_unbound(g: &mut Gather<'_>) {
    let mut all = vec!["/etc/unbound/unbound.conf".to_owned()];
    all.extend(files(g, "unbound", UNBOUND, &[".conf"]));
    let mut lines = Vec::new();
    for path in all {
        lines.extend(read(g, "unbound", &path, &['#']));
    }
    let of = |name: &str| -> Vec<&Line> {
        let is = |line: &&Line| line.first().trim_end_matches(':') == name;
        lines.iter().filter(is).collect()
    };
    let says = |name: &str, value: &str| {
        let last = of(name)
            .last()
            .map(|line| line.rest().any(|word| word == value));
        last.unwrap_or(false)
    };
    let beyond = |name: &str| {
        let of = of(name);
        of.iter().any(|line| {
            line.rest()
                .any(|address| !is_loopback(address) && !address.starts_with('/'))
        })
    };
    let serves = beyond("interface") || says("interface-automatic", "yes");
    for (number, line) in of("access-control").into_iter().enumerate() {
        let world = line
            .rest()
            .any(|word| matches!(word, "0.0.0.0/0" | "::/0" | "::0/0"));
        let allows = line
            .rest()
            .any(|word| matches!(word, "allow" | "allow_snoop" | "allow_setrd"));
        let open = world && allows && serves;
        note(
            g,
            ("unbound.access", &(number + 1).to_string()),
            "open",
            open,
            &line.place,
        );
    }
    if let Some(line) = of("control-interface").last() {
        let open = says("control-enable", "yes")
            && says("control-use-cert", "no")
            && beyond("control-interface");
        note(g, ("unbound", "control"), "open", open, &line.place);
    }
    if let Some(line) = of("val-permissive-mode").last() {
        let on = says("val-permissive-mode", "yes");
        note(g, ("unbound", "validation"), "permissive", on, &line.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn lists_of_addresses() {
        for (text, open) in [
            ("options { allow-recursion { any; }; };", true),
            (
                "options { allow-recursion { any; }; recursion no; };",
                false,
            ),
            (
                "options { recursion no; }; view \"a\" { recursion yes; allow-recursion { any; }; };",
                true,
            ),
            (
                "view \"a\" { recursion no; allow-recursion { any; }; }; view \"b\" { recursion yes; };",
                false,
            ),
            ("options { allow-recursion { localnets; }; };", false),
            (
                "view \"a\" { allow-transfer { any; }; zone b { type primary; allow-transfer { 192.0.2.1; }; }; };",
                false,
            ),
            (
                "view \"a\" { allow-transfer { any; }; zone b { type primary; }; };",
                true,
            ),
            (
                "options { listen-on { 127.0.0.1; }; allow-recursion { any; }; };",
                false,
            ),
            (
                "options { allow-query { localnets; }; allow-recursion { any; }; };",
                false,
            ),
            ("zone \"a\" { type master; allow-update { any; }; };", true),
            (
                "zone \"a\" { type master; allow-transfer { none; }; };",
                false,
            ),
        ] {
            let host = Recorded::new().file("/etc/named.conf", text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            let found = g.facts.map.iter().any(|(key, fact)| {
                key.ends_with(".open") && fact.value == assay_model::FactValue::Known(true.into())
            });
            assert_eq!(found, open, "{text}");
        }
    }

    #[test]
    fn whom_unbound_answers() {
        let open = |text: &str| {
            let host = Recorded::new().file("/etc/unbound/unbound.conf", text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            g.facts.get("unbound.access.1.open") == Some(&true.into())
        };
        assert!(open(
            "server:\n  interface: 0.0.0.0\n  access-control: 0.0.0.0/0 allow\n"
        ));
        assert!(!open("server:\n  access-control: 0.0.0.0/0 allow\n"));
        assert!(!open(
            "server:\n  interface: ::\n  access-control: 0.0.0.0/0 refuse\n"
        ));
    }
}
