//! Finds DNS block lists that were shut down and that Postfix still queries, one instance per list and line. Searches
//! the restriction parameters, the macros in them, and restriction classes.

use super::postfix_redact::CLASSES;
use super::sshd_lines::number_name;
use super::{dnsbl, postfix};
use crate::gather::Gather;
use assay_config::effective::{Effective, ScopeId, Setting, macro_names};
use assay_model::{FactKind, FactPlace, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) fn collect(g: &mut Gather<'_>, all: &Effective) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for said in list_reached_settings(all) {
        let scope = match said.scope {
            ScopeId::ROOT => "main.cf".to_owned(),
            id => all.scope(id).head.join("/"),
        };
        let text = g
            .host
            .read_text(Path::new(&said.place.path))
            .unwrap_or_default();
        for (zone, place) in list_closed_lists(said, &text) {
            let which = number_name(&mut seen, zone.to_owned());
            let mut note = |what: &str, value: serde_json::Value| {
                let fact = format!("postfix.closed_list.{which}.{what}");
                g.facts
                    .known(fact, value, FactKind::Configured, place.clone());
            };
            note("closed_lists", vec![zone].into());
            note("since", dnsbl::since(zone).into());
            note("asked_by", format!("{scope} ({})", said.key).into());
            g.about(["postfix.closed_list", &which]);
        }
    }
}

/// Returns the lines that decide whether Postfix accepts a client: the restriction lists, and the macros and classes to
/// which they refer.
fn list_reached_settings(all: &Effective) -> Vec<&Setting> {
    let mut names: BTreeSet<String> = postfix::restrictions().map(str::to_owned).collect();
    names.insert(CLASSES.to_owned());
    let mut seen: BTreeSet<String> = BTreeSet::new();
    while let Some(name) = names.pop_first() {
        let lines = all.settings().iter().filter(|said| said.key == name);
        seen.insert(name.clone());
        for said in lines {
            let text = said.text();
            let mut more = macro_names(&text);
            // A table may refer to a class too (RESTRICTION_CLASS_README of Postfix).
            if name == CLASSES {
                let words = text.split([' ', ',', '\t']);
                more.extend(words.map(str::to_owned));
            }
            names.extend(more.into_iter().filter(|name| !seen.contains(name)));
        }
    }
    let counts = |said: &&Setting| {
        let last = all.get(said.scope, &said.key);
        last.iter().any(|last| std::ptr::eq(*last, *said))
    };
    let ours = all
        .settings()
        .iter()
        .filter(|said| seen.contains(&said.key));
    ours.filter(counts).collect()
}

/// Returns the block lists that were shut down and to which a setting refers, each with its line.
fn list_closed_lists(said: &Setting, text: &str) -> Vec<(&'static str, FactPlace)> {
    let mut found = Vec::new();
    let end = said.place.span.end;
    let mut at = 0;
    for (number, line) in text.split('\n').enumerate() {
        let (from, to) = (at, at + line.len());
        at = to + 1;
        let inside = from < end && to >= said.place.span.start;
        if !inside || line.trim_start().starts_with('#') {
            continue;
        }
        let mut zones = dnsbl::closed_in(line);
        let mut once = BTreeSet::new();
        zones.retain(|zone| once.insert(*zone));
        let column = line.len() - line.trim_start().len() + 1;
        let place = FactPlace::File {
            path: said.place.path.to_string_lossy().into_owned(),
            line: Some(number + 1),
            span: Some(Span {
                column,
                length: line.trim().len(),
            }),
        };
        found.extend(zones.into_iter().map(|zone| (zone, place.clone())));
    }
    found
}
