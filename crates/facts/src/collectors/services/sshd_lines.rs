//! Finds lines in sshd's files that have no effect or that sshd rejects: keywords that sshd ignores, repeated lines for
//! a keyword, and global keywords in a Match block. The module `ssh` collects the effective values.

use super::scopes::{names, yes_or_no};
use super::ssh::{SERVER, SERVER_DEAD, is_compared};
use crate::gather::Gather;
use assay_config::effective::{Effective, Program, ScopeId, Setting, Trouble, first_counts};
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeMap;

/// Lines of the packaged sshd_config of Debian 12 and 13 and of Red Hat 9. Drop-ins are read before them, and are meant
/// to replace them.
const STOCK: [(&str, &str); 6] = [
    ("kbdinteractiveauthentication", "no"),
    ("usepam", "yes"),
    ("x11forwarding", "yes"),
    ("printmotd", "no"),
    ("authorizedkeysfile", ".ssh/authorized_keys"),
    ("gssapiauthentication", "yes"),
];

pub(super) fn collect(g: &mut Gather<'_>, all: &Effective) {
    note_refused_line(g, all);
    note_dead_keywords(g, all);
    note_void_lines(g, all);
}

/// Notes the first line that makes sshd refuse to start.
fn note_refused_line(g: &mut Gather<'_>, all: &Effective) {
    let mut lines = all
        .problems
        .iter()
        .filter_map(|problem| match &problem.trouble {
            Trouble::Refused { keyword } => Some((keyword, &problem.place)),
            _ => None,
        });
    if let Some((keyword, place)) = lines.next() {
        let why = format!("`{keyword}` is not allowed within a Match block");
        g.facts.known(
            "sshd.refused",
            true,
            FactKind::Configured,
            FactPlace::from(place),
        );
        g.facts.known(
            "sshd.refused_because",
            why,
            FactKind::Configured,
            FactPlace::from(place),
        );
    }
}

/// Notes keywords that sshd ignores, each with the first release that ignores it.
fn note_dead_keywords(g: &mut Gather<'_>, all: &Effective) {
    let lines = all.settings().iter().filter_map(|said| {
        let found = SERVER_DEAD.iter().find(|(keyword, _)| *keyword == said.key);
        found.map(|(_, since)| (said, *since))
    });
    for (at, (said, since)) in lines.enumerate() {
        let number = at.to_string();
        let mut note = |what: &str, value: &str| {
            let fact = format!("sshd.dead.{number}.{what}");
            g.facts.known(
                fact,
                value,
                FactKind::Configured,
                FactPlace::from(&said.place),
            );
        };
        note("keyword", &said.key);
        note("since", since);
        g.about(["sshd.dead", &number]);
    }
}

/// Notes lines that contradict an earlier line of the same block. The earlier line applies (sshd_config(5)).
fn note_void_lines(g: &mut Gather<'_>, all: &Effective) {
    let names: BTreeMap<ScopeId, String> = names(all).into_iter().collect();
    let mut first: BTreeMap<(ScopeId, &str), &Setting> = BTreeMap::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for said in all.settings() {
        if !is_compared(&said.key) || !first_counts(Program::Sshd, &said.key) {
            continue;
        }
        let counts = *first.entry((said.scope, said.key.as_str())).or_insert(said);
        let value = |said: &Setting| yes_or_no(said.text().trim_matches('"').to_ascii_lowercase());
        let (says, wins) = (value(said), value(counts));
        if says == wins
            || [&says, &wins]
                .iter()
                .any(|value| value.contains("withheld"))
        {
            continue;
        }
        let of_package = said.place.path.as_os_str() == SERVER
            && counts.place.path.starts_with(format!("{SERVER}.d"))
            && STOCK.contains(&(said.key.as_str(), says.as_str()));
        if of_package {
            continue;
        }
        let scope = names.get(&said.scope).map_or("", String::as_str);
        let which = number_name(&mut seen, format!("{scope}-{}", said.key));
        let mut note =
            |what: &str, value: String, place: &assay_config::effective::SettingPlace| {
                let fact = format!("sshd.void.{which}.{what}");
                g.facts
                    .known(fact, value, FactKind::Configured, FactPlace::from(place));
            };
        note("says", says, &said.place);
        note("keyword", said.key.clone(), &said.place);
        note("counts", wins, &counts.place);
        g.about(["sshd.void", &which]);
    }
}

/// Returns the name unchanged at its first occurrence, and with a number appended from the second occurrence on.
pub(super) fn number_name(seen: &mut BTreeMap<String, usize>, name: String) -> String {
    let times = seen.entry(name.clone()).or_default();
    *times += 1;
    match *times {
        1 => name,
        times => format!("{name}-{times}"),
    }
}
