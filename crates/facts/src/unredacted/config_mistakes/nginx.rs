//! Finds mistakes in nginx's configuration: access rules without effect, reflected CORS origins, misunderstood logs and
//! limits, and `if` together with `try_files`.

use super::super::nginx_blocks::{own_value, own_values, words};
use super::Misuses;
use super::nginx_traps::note_traps;
use super::nginx_trust::{note_trust, note_upstreams};
use crate::collectors::nginx::FILE;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Effective, Program, ScopeId, read_effective};
use std::path::Path;

/// Statements that are safe in an `if` (the wiki's "If is Evil"). `set` and `break` are not: seen with nginx 1.22.1.
const SAFE_IN_IF: [&str; 2] = ["return", "rewrite"];

pub(super) fn collect(g: &mut Gather<'_>) {
    let Ok(all) = read_effective(Program::Nginx, Path::new(FILE), &OfHost(g.host)) else {
        return;
    };
    let mut found = Misuses::default();
    for (id, scope) in all.scopes() {
        let kind = scope.head.first().map_or("", String::as_str);
        if kind == "location" {
            note_access(&all, id, &mut found);
            note_if(&all, id, &mut found);
        }
        note_origin(&all, id, &mut found);
        note_trust(&all, id, &mut found);
        for said in own_values(&all, id, "error_log") {
            let off = said.word().as_deref() == Some("off");
            found.add("error_log_off", off, &said.place);
        }
        for said in own_values(&all, id, "rewrite") {
            if let Some(lost) = lacks_scheme(&words(said)) {
                found.add("rewrite_without_scheme", lost, &said.place);
            }
        }
    }
    if let Some(said) = own_value(&all, ScopeId::ROOT, "user") {
        let root = said.word().as_deref() == Some("root");
        found.add("workers_are_root", root, &said.place);
    }
    note_open_files(&all, &mut found);
    note_upstreams(g, &all, &mut found);
    note_traps(g, &all, &mut found);
    found.note(g, "nginx.misuse");
}

/// Notes `allow` rules without a `deny` for all other clients, and `deny` rules that a `return` in the same location
/// bypasses.
fn note_access(all: &Effective, id: ScopeId, found: &mut Misuses) {
    if let (Some(deny), Some(answer)) = (own_value(all, id, "deny"), own_value(all, id, "return")) {
        let said = words(answer);
        let code = said.first().map_or("", String::as_str);
        // One word is a URL or a code; 2xx hands out the text.
        let answers = code.len() == 3 && code.starts_with('2');
        found.add("return_before_deny", answers, &deny.place);
    }
    let Some(allow) = own_value(all, id, "allow") else {
        return;
    };
    let Ok(deny) = all.certain(id, "deny") else {
        return;
    };
    let denied = deny.is_some_and(|said| said.scope == id);
    let everybody = own_values(all, id, "allow").any(|said| said.word().as_deref() == Some("all"));
    // With `satisfy any` who is not on the list needs a password.
    let asked = all
        .value(id, "satisfy")
        .and_then(|said| said.word())
        .as_deref()
        == Some("any");
    if !everybody && !asked {
        found.add("allow_without_deny", !denied, &allow.place);
    }
}

/// Notes an `if` with unsafe statements in a location that has `try_files`.
fn note_if(all: &Effective, id: ScopeId, found: &mut Misuses) {
    if own_value(all, id, "try_files").is_none() {
        return;
    }
    for (inner, scope) in all.scopes() {
        let is_if = scope.head.first().is_some_and(|head| head == "if");
        if scope.parent != Some(id) || !is_if {
            continue;
        }
        let inside: Vec<_> = all
            .settings()
            .iter()
            .filter(|said| said.scope == inner)
            .collect();
        // A request that leaves the location in the block does not come to try_files.
        let leaves = inside.iter().any(|said| {
            let last = words(said).pop().unwrap_or_default();
            said.key == "return" || (said.key == "rewrite" && last != "break")
        });
        let other = inside
            .iter()
            .any(|said| !SAFE_IN_IF.contains(&said.key.as_str()));
        found.add("if_beside_try_files", other && !leaves, &scope.place);
    }
}

/// Whether a condition compares the origin with a pattern that is open at an end (gixy, origins).
fn has_loose_pattern(head: &[String]) -> bool {
    let text = head.join(" ");
    let Some((before, pattern)) = text.split_once('~') else {
        return false;
    };
    let pattern = pattern.trim_start_matches('*').trim();
    let pattern = pattern.strip_suffix(')').unwrap_or(pattern);
    let pattern = pattern.trim_matches([' ', '"', '\'']);
    before.contains("$http_origin")
        && !before.trim_end().ends_with('!')
        && !(pattern.starts_with('^') && pattern.ends_with('$'))
}

/// Notes a CORS header that permits requests with credentials from any origin.
fn note_origin(all: &Effective, id: ScopeId, found: &mut Misuses) {
    // Inside of an `if` the origin was compared, perhaps with a pattern that other origins contain, too.
    let head = &all.scope(id).head;
    if head.first().is_some_and(|head| head == "if") && !has_loose_pattern(head) {
        return;
    }
    let header = |name: &str| {
        own_values(all, id, "add_header").find(|said| {
            let words = words(said);
            words
                .first()
                .is_some_and(|word| word.eq_ignore_ascii_case(name))
        })
    };
    let Some(origin) = header("access-control-allow-origin") else {
        return;
    };
    let reflected = words(origin)
        .get(1)
        .is_some_and(|value| value == "$http_origin");
    let credentials = header("access-control-allow-credentials").is_some_and(|said| {
        words(said)
            .get(1)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    });
    found.add("origin_reflected", reflected && credentials, &origin.place);
}

/// Returns whether a redirect target starts with a host name without `http://`, so that nginx treats it as a path.
/// `None` if there is no redirect.
fn lacks_scheme(words: &[String]) -> Option<bool> {
    let [_, target, flag] = words else {
        return None;
    };
    if flag != "permanent" && flag != "redirect" {
        return None;
    }
    let host = target.split(['/', '?', '$']).next().unwrap_or_default();
    let (name, ending) = host.rsplit_once('.')?;
    let is_name = host
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    let file = [
        "php", "html", "htm", "asp", "aspx", "jsp", "txt", "xml", "js", "css", "png", "jpg", "gif",
        "ico",
    ];
    let is_file = file.contains(&ending) && !name.starts_with("www.");
    Some(
        is_name && ending.len() >= 2 && !is_file && target.contains(['/', '?', '$'])
            || host.starts_with("www."),
    )
}

/// Notes whether a worker may have more connections than open files.
fn note_open_files(all: &Effective, found: &mut Misuses) {
    let number = |id: ScopeId, key: &'static str| {
        let said = own_value(all, id, key)?;
        Some((said.word()?.parse::<u64>().ok()?, said))
    };
    let (Some((files, said)), Some(events)) = (
        number(ScopeId::ROOT, "worker_rlimit_nofile"),
        all.find(&["events"]).first().copied(),
    ) else {
        return;
    };
    if let Some((connections, _)) = number(events, "worker_connections") {
        found.add("files_below_connections", files < connections, &said.place);
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn blocks_and_their_near_misses() {
        for (server, expected) in [
            (
                "location /a { allow 10.0.0.0/8; deny all; return 200 x; }",
                "return_before_deny=true",
            ),
            (
                "location /a { deny all; return 404; }",
                "return_before_deny=false",
            ),
            (
                "location /a { allow 10.0.0.0/8; }",
                "allow_without_deny=true",
            ),
            (
                "deny all; location /a { allow 10.0.0.0/8; }",
                "allow_without_deny=true",
            ),
            (
                "location /a { allow 10.0.0.0/8; deny all; }",
                "allow_without_deny=false",
            ),
            ("location /a { allow all; }", ""),
            (
                "location /a { satisfy any; allow 10.0.0.0/8; auth_basic x; }",
                "any_without_password=false",
            ),
            (
                "location /a { try_files $uri /i; if ($a) { add_header A b; } }",
                "if_beside_try_files=true",
            ),
            (
                "location /a { try_files $uri /i; if ($a) { return 405; } }",
                "if_beside_try_files=false",
            ),
            (
                "location /a { try_files $uri /i; if ($a) { set $b c; } }",
                "if_beside_try_files=true",
            ),
            ("error_log off;", "error_log_off=true"),
            ("error_log /dev/null crit;", "error_log_off=false"),
            (
                "rewrite ^ www.example.com/a permanent;",
                "rewrite_without_scheme=true",
            ),
            (
                "rewrite ^ example.com$request_uri? redirect;",
                "rewrite_without_scheme=true",
            ),
            (
                "rewrite ^ example.com/$1 redirect;",
                "rewrite_without_scheme=true",
            ),
            ("rewrite ^ /a.html permanent;", ""),
            ("rewrite ^ https://example.com/ permanent;", ""),
            (
                "rewrite ^ index.php?a=$1 permanent;",
                "rewrite_without_scheme=false",
            ),
            ("rewrite ^ index.php?a=$1 last;", ""),
        ] {
            let text = format!("events {{}}\nhttp {{ server {{\n{server}\n}} }}\n");
            let got = found(&[(FILE, &text)], collect).join(" ");
            assert!(
                got == expected || (got.contains(expected) && !expected.is_empty()),
                "{server}: {got}"
            );
        }
    }
}
