//! Finds mistakes with headers in nginx blocks: security headers that an inner block drops, HSTS without effect, and
//! `Host` headers that are forwarded unchecked. `nginx_pitfalls` finds the other mistakes.

use super::lines_of_files::note;
use super::nginx_blocks::{own_value, own_values, words};
use crate::gather::Gather;
use assay_config::effective::{Effective, ScopeId, Setting};
use assay_model::FactPlace;
use std::collections::BTreeSet;

/// Security headers in lower case.
const PROTECTING: [&str; 4] = [
    "strict-transport-security",
    "content-security-policy",
    "x-frame-options",
    "x-content-type-options",
];

pub(super) fn note_headers(g: &mut Gather<'_>, all: &Effective, id: ScopeId, which: &str) {
    note_lost(g, all, id, which);
    note_strict_transport(g, all, id, which);
    note_host(g, all, id, which);
}

/// Notes the security headers of an outer block that this block drops. A block with an `add_header` of its own inherits
/// no headers.
fn note_lost(g: &mut Gather<'_>, all: &Effective, id: ScopeId, which: &str) {
    let Some(parent) = all.scope(id).parent else {
        return;
    };
    let Some(first) = own_value(all, id, "add_header") else {
        return;
    };
    if all
        .settings()
        .iter()
        .any(|said| said.key == "add_header_inherit")
    {
        return;
    }
    let names = |said: Vec<&Setting>| -> BTreeSet<String> {
        said.iter()
            .filter_map(|one| one.word())
            .map(|name| name.to_ascii_lowercase())
            .collect()
    };
    let (inner, outer) = (
        names(all.get(id, "add_header")),
        names(all.get(parent, "add_header")),
    );
    let lost: Vec<&str> = PROTECTING
        .into_iter()
        .filter(|name| outer.contains(*name) && !inner.contains(*name))
        .collect();
    note(
        g,
        "nginx.headers",
        which,
        &FactPlace::from(&first.place),
        &[("lost", lost.into())],
    );
}

/// Notes HSTS headers without `max-age`, which browsers ignore. A header that only violates the stricter rules of the
/// preload list is not noted, because browsers honour it.
fn note_strict_transport(g: &mut Gather<'_>, all: &Effective, id: ScopeId, which: &str) {
    for (number, said) in own_values(all, id, "add_header").enumerate() {
        let words = words(said);
        let [name, value, ..] = &words[..] else {
            continue;
        };
        if !name.eq_ignore_ascii_case("strict-transport-security") || value.contains('$') {
            continue;
        }
        let parts: Vec<String> = value
            .split(';')
            .map(|part| part.trim().to_ascii_lowercase())
            .collect();
        let seconds = parts.iter().find_map(|part| {
            let age = part
                .strip_prefix("max-age")?
                .trim_start()
                .strip_prefix('=')?;
            age.trim().trim_matches('"').parse::<u64>().ok()
        });
        let properties = [("void", seconds.is_none().into())];
        note(
            g,
            "nginx.hsts",
            &format!("{which}-{number}"),
            &FactPlace::from(&said.place),
            &properties,
        );
    }
}

/// Notes each `proxy_set_header Host` with a value that the client chooses and that nothing checks.
fn note_host(g: &mut Gather<'_>, all: &Effective, id: ScopeId, which: &str) {
    for (number, said) in own_values(all, id, "proxy_set_header").enumerate() {
        let words = words(said);
        if let [name, value, ..] = &words[..]
            && name.eq_ignore_ascii_case("host")
        {
            let unchecked = value == "$http_host"
                || value.starts_with("$arg_")
                || value.starts_with("$http_x_");
            let properties = [("unchecked", unchecked.into())];
            note(
                g,
                "nginx.host",
                &format!("{which}-{number}"),
                &FactPlace::from(&said.place),
                &properties,
            );
        }
    }
}
