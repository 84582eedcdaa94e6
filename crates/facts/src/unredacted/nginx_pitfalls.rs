//! Finds nginx blocks with unintended effects: files outside of an alias, public status pages, and redirects or proxies
//! that a client controls. `nginx_headers` checks headers, `collectors::services::nginx` checks TLS settings.

use super::lines_of_files::note;
use super::nginx_blocks::{is_local, own_value, own_values, words};
use super::nginx_captures::can_capture;
use super::nginx_headers;
use crate::collectors::nginx::FILE;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Effective, Program, ScopeId, Setting, read_effective};
use assay_model::FactPlace;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Directories of the system or of accounts, which a web server should not serve.
pub(super) const SYSTEM: [&str; 14] = [
    "/",
    "/etc",
    "/root",
    "/home",
    "/var",
    "/var/log",
    "/usr",
    "/proc",
    "/var/backups",
    "/var/lib",
    "/var/mail",
    "/var/spool",
    "/var/lib/mysql",
    "/var/lib/postgresql",
];

/// Settings that restrict access to a location.
const GUARDS: [&str; 4] = ["auth_basic", "auth_request", "internal", "auth_jwt"];

pub(super) fn collect(g: &mut Gather<'_>) {
    let Ok(all) = read_effective(Program::Nginx, Path::new(FILE), &OfHost(g.host)) else {
        return;
    };
    for (number, (id, scope)) in all.scopes().enumerate() {
        let which = number.to_string();
        let kind = scope.head.first().map_or("", String::as_str);
        if kind == "location" {
            note_location(g, &all, id, &which);
        }
        note_root(g, &all, id, &which);
        note_redirects(g, &all, id, &which);
        note_proxy(g, &all, id, &which);
        nginx_headers::note_headers(g, &all, id, &which);
    }
    old_tls(g, &all);
}

fn note_location(g: &mut Gather<'_>, all: &Effective, id: ScopeId, which: &str) {
    let head = &all.scope(id).head;
    let (sign, path) = match &head[1..] {
        [path] => ("", path.as_str()),
        [sign, path, ..] => (sign.as_str(), path.as_str()),
        [] => return,
    };
    if let Some(alias) = own_value(all, id, "alias") {
        let target = alias.word().unwrap_or_default();
        let open = matches!(sign, "" | "^~") && !path.ends_with('/') && target.ends_with('/');
        note(
            g,
            "nginx.alias",
            which,
            &FactPlace::from(&alias.place),
            &[("open", open.into())],
        );
    }
    if let Some(status) = own_value(all, id, "stub_status") {
        let guarded = is_guarded(all, id);
        note(
            g,
            "nginx.status",
            which,
            &FactPlace::from(&status.place),
            &[("open", (!guarded).into())],
        );
    }
    if let Some(pass) = own_value(all, id, "fastcgi_pass") {
        let of_php = sign.starts_with('~') && path.contains("\\.php") && !names_scripts(path);
        let is_inside =
            |(_, scope): (ScopeId, &assay_config::effective::Scope)| scope.parent == Some(id);
        let tested = own_value(all, id, "try_files").is_some() || all.scopes().any(is_inside);
        if of_php {
            let guarded = tested || !all.get(id, "internal").is_empty();
            note(
                g,
                "nginx.php",
                which,
                &FactPlace::from(&pass.place),
                &[("unguarded", (!guarded).into())],
            );
        }
    }
}

/// Returns whether a block requires a login or refuses unknown clients ("strangers").
pub(super) fn is_guarded(all: &Effective, id: ScopeId) -> bool {
    GUARDS.iter().any(|key| !all.get(id, key).is_empty())
        || is_local(all, id)
        || refuses_strangers(all, id)
}

/// Returns whether `deny` refuses strangers. The innermost block with rules applies, and in it the first rule that
/// matches all addresses.
fn refuses_strangers(all: &Effective, id: ScopeId) -> bool {
    let is_rule = |said: &&Setting| said.key == "allow" || said.key == "deny";
    let mut around = std::iter::successors(Some(id), |id| all.scope(*id).parent);
    let rules = around.find_map(|id| {
        let own: Vec<&Setting> = all
            .settings()
            .iter()
            .filter(|said| said.scope == id)
            .filter(is_rule)
            .collect();
        (!own.is_empty()).then_some(own)
    });
    let mut rules = rules.unwrap_or_default().into_iter();
    let decides = |said: &&Setting| {
        matches!(
            said.word().unwrap_or_default().as_str(),
            "all" | "0.0.0.0/0" | "::/0"
        )
    };
    rules.find(decides).is_some_and(|said| said.key == "deny")
}

/// Returns whether the pattern of a location lists scripts by name, as Nextcloud's configuration does. Such a pattern
/// is an anchored list in which most entries have no wildcard.
fn names_scripts(pattern: &str) -> bool {
    let Some(list) = pattern
        .strip_prefix("^/(")
        .map(|list| list.trim_start_matches("?:"))
    else {
        return false;
    };
    let Some((list, rest)) = list.rsplit_once(")\\.php") else {
        return false;
    };
    let entries: Vec<&str> = list.split('|').collect();
    let named = entries
        .iter()
        .filter(|entry| !entry.contains(['*', '+', '.']));
    2 * named.count() > entries.len() && !rest.contains(".php")
}

/// Returns a path without `.`, `..`, repeated slashes and a slash at its end.
fn normalise(path: &str) -> String {
    if !path.starts_with('/') || path.contains('$') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Notes the directories of served files.
fn note_root(g: &mut Gather<'_>, all: &Effective, id: ScopeId, which: &str) {
    for key in ["root", "alias"] {
        let Some(said) = own_value(all, id, key) else {
            continue;
        };
        let bare = normalise(&said.word().unwrap_or_default());
        let system = SYSTEM.contains(&bare.as_str());
        // The application controls access to files that are served through `internal` only.
        let inside = !all.get(id, "internal").is_empty();
        let properties = [("system", (system && !inside).into())];
        note(
            g,
            "nginx.root",
            &format!("{which}-{key}"),
            &FactPlace::from(&said.place),
            &properties,
        );
    }
}

/// Notes redirects that contain the decoded path. A line break in the path (`%0d%0a` in the request) ends the header,
/// so that the client can add headers.
fn note_redirects(g: &mut Gather<'_>, all: &Effective, id: ScopeId, which: &str) {
    for (number, said) in own_values(all, id, "return").enumerate() {
        let code = said.word().unwrap_or_default();
        if !matches!(code.as_str(), "301" | "302" | "303" | "307" | "308") {
            continue;
        }
        let text = said.text();
        let names = text.split('$').skip(1).map(|rest| {
            let rest = rest.trim_start_matches('{');
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .unwrap_or_default()
        });
        let splits = names
            .into_iter()
            .any(|name| matches!(name, "uri" | "document_uri"));
        let which = format!("{which}-{number}");
        note(
            g,
            "nginx.redirect",
            &which,
            &FactPlace::from(&said.place),
            &[("splits", splits.into())],
        );
    }
}

/// Notes each `proxy_pass` whose server the client's request determines.
fn note_proxy(g: &mut Gather<'_>, all: &Effective, id: ScopeId, which: &str) {
    if let Some(said) = own_value(all, id, "proxy_pass") {
        let target = said.word().unwrap_or_default();
        let host = target
            .split_once("://")
            .map_or(target.as_str(), |(_, rest)| rest);
        let host = host.split('/').next().unwrap_or_default();
        let scheme = target.split("://").next().unwrap_or_default();
        let of_scheme = if scheme.len() < target.len() {
            scheme
        } else {
            ""
        };
        let names_host = [before_path(host), of_scheme]
            .iter()
            .any(|text| text.split('$').skip(1).any(|part| is_chosen(all, id, part)));
        let guarded = is_guarded(all, id);
        let anywhere = names_host && !guarded;
        note(
            g,
            "nginx.proxy",
            which,
            &FactPlace::from(&said.place),
            &[("anywhere", anywhere.into())],
        );
    }
}

/// Returns the part of a host before a variable that begins with a slash, such as `$request_uri` in
/// `$backend$request_uri`.
fn before_path(host: &str) -> &str {
    let ends = [
        "$request_uri",
        "${request_uri}",
        "$uri",
        "${uri}",
        "$document_uri",
    ];
    let ends = ends.iter().filter_map(|name| host.find(name));
    match ends.min().filter(|at| *at > 0) {
        Some(at) => &host[..at],
        None => host,
    }
}

/// Variables that the client's request determines completely.
const OF_REQUEST: [&str; 7] = [
    "arg_",
    "args",
    "http_",
    "cookie_",
    "uri",
    "request_uri",
    "query_string",
];

/// Returns whether the client's request determines the host in a variable. `part` is the text after the `$` of the
/// variable.
///
/// A capture group of the location's expression counts if it can capture a dot. If a domain follows the group, it
/// counts if it can capture a slash.
fn is_chosen(all: &Effective, id: ScopeId, part: &str) -> bool {
    let part = part.trim_start_matches('{');
    let end = part
        .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .unwrap_or(part.len());
    let (name, rest) = part.split_at(end);
    let ends_domain = rest.trim_start_matches('}').starts_with('.');
    let captured = location_pattern(all, id)
        .and_then(|pattern| can_capture(pattern, name, if ends_domain { '/' } else { '.' }));
    captured.unwrap_or_else(|| {
        let is_number = name.starts_with(|letter: char| letter.is_ascii_digit());
        is_number || OF_REQUEST.iter().any(|begin| name.starts_with(begin))
    })
}

/// Returns the regular expression of the location that contains a block.
fn location_pattern(all: &Effective, id: ScopeId) -> Option<&str> {
    let mut around = std::iter::successors(Some(id), |id| all.scope(*id).parent);
    around.find_map(|id| match &all.scope(id).head[..] {
        [kind, sign, pattern, ..] if kind == "location" && sign.starts_with('~') => {
            Some(pattern.as_str())
        }
        _ => None,
    })
}

/// Notes the lines that set the TLS versions of servers.
fn old_tls(g: &mut Gather<'_>, all: &Effective) {
    let mut seen: BTreeSet<(PathBuf, usize)> = BTreeSet::new();
    for (id, _) in all
        .scopes()
        .filter(|(_, scope)| scope.head.first().is_some_and(|head| head == "server"))
    {
        let on = all.value(id, "ssl").and_then(Setting::word).as_deref() == Some("on");
        let mut listens = all
            .get(id, "listen")
            .into_iter()
            .flat_map(|said| said.words.iter().skip(1));
        let said = all.value(id, "ssl_protocols");
        let (true, Some(said)) = (on || listens.any(|word| word == b"ssl"), said) else {
            continue;
        };
        let place = FactPlace::from(&said.place);
        // One line may hold several settings.
        let at = (said.place.path.clone(), said.place.span.start);
        if !seen.insert(at) {
            continue;
        }
        let old: Vec<Value> = words(said)
            .into_iter()
            .filter(|word| matches!(word.as_str(), "TLSv1" | "TLSv1.1"))
            .map(Value::from)
            .collect();
        note(
            g,
            "nginx.tls_line",
            &seen.len().to_string(),
            &place,
            &[("old", old.into())],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn facts(server: &str) -> assay_model::Facts {
        let text = format!("events {{}}\nhttp {{\nserver {{\n{server}\n}}\n}}\n");
        let host = Recorded::new().file(FILE, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        g.facts
    }

    fn any(server: &str, end: &str) -> Vec<Value> {
        let facts = facts(server);
        let found = facts.map.iter().filter(|(key, _)| key.ends_with(end));
        found
            .filter_map(|(key, _)| facts.get(key).cloned())
            .collect()
    }

    #[test]
    fn servers_on_one_line() {
        let text = "events {} http { server { listen 443 ssl; ssl_protocols TLSv1.2; } \
                    ssl_protocols TLSv1.1; server { listen 8443 ssl; } }\n";
        let host = Recorded::new().file(FILE, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        let old = g.facts.map.iter().filter(|(key, _)| {
            key.ends_with(".old") && g.facts.get(key) == Some(&serde_json::json!(["TLSv1.1"]))
        });
        assert_eq!(old.count(), 1);
    }

    #[test]
    fn blocks_and_their_near_misses() {
        for (server, end, expected) in [
            (
                "location ~ ^/(?:index|remote|core/ajax/update|updater/.+)\\.php(?:$|/) { fastcgi_pass a:1; }",
                ".unguarded",
                vec![],
            ),
            (
                "location ~ ^/(.+|app)\\.php(?:$|/) { fastcgi_pass a:1; }",
                ".unguarded",
                vec![true],
            ),
            (
                "location ~ ^/(.+)\\.php(?:$|/) { fastcgi_pass a:1; }",
                ".unguarded",
                vec![true],
            ),
            ("location /i { alias /srv/i/; }", ".open", vec![true]),
            ("location /i/ { alias /srv/i/; }", ".open", vec![false]),
            ("location /i { alias /srv/i; }", ".open", vec![false]),
            ("location = /i { alias /srv/i/; }", ".open", vec![false]),
            ("location /s { stub_status; }", ".open", vec![true]),
            (
                "location /s { stub_status; allow 127.0.0.1; deny all; }",
                ".open",
                vec![false],
            ),
            (
                "listen 127.0.0.1:81; location /s { stub_status; }",
                ".open",
                vec![false],
            ),
            (
                "location /s { stub_status; allow all; deny all; }",
                ".open",
                vec![true],
            ),
            (
                "deny all; location /s { stub_status; allow 10.0.0.0/8; deny 0.0.0.0/0; }",
                ".open",
                vec![false],
            ),
            (
                "location /s { stub_status; deny 192.0.2.1; }",
                ".open",
                vec![true],
            ),
            ("return 301 https://$host$uri;", ".splits", vec![true]),
            (
                "return 301 https://$host$request_uri;",
                ".splits",
                vec![false],
            ),
            ("return 200 $uri;", ".splits", vec![]),
            (
                "location / { proxy_pass http://$arg_host/; }",
                ".anywhere",
                vec![true],
            ),
            (
                "location ~ /p/(.*)$ { proxy_pass http://$1; }",
                ".anywhere",
                vec![true],
            ),
            (
                "location ~ /p/(?<to>[^/]+)/ { proxy_pass http://$to; }",
                ".anywhere",
                vec![true],
            ),
            (
                "location ~ ^/p/([a-z0-9]+)/ { proxy_pass http://$1; }",
                ".anywhere",
                vec![false],
            ),
            (
                "location ~ ^/p/([^/]+)/ { proxy_pass http://${1}.shop.internal; }",
                ".anywhere",
                vec![false],
            ),
            (
                "location ~ ^/p/(?P<to>.+)$ { proxy_pass https://$to.shop.internal; }",
                ".anywhere",
                vec![true],
            ),
            (
                "location ~ /p/(.*)$ { internal; proxy_pass http://$1; }",
                ".anywhere",
                vec![false],
            ),
            (
                "location / { proxy_pass http://$inner$request_uri; }",
                ".anywhere",
                vec![false],
            ),
            (
                "location / { proxy_pass http://$http_host$request_uri; }",
                ".anywhere",
                vec![true],
            ),
            (
                "location / { proxy_pass http://app/$1; }",
                ".anywhere",
                vec![false],
            ),
            (
                "location / { proxy_set_header Host $http_host; }",
                ".unchecked",
                vec![true],
            ),
            (
                "location / { proxy_set_header Host $host; }",
                ".unchecked",
                vec![false],
            ),
            (
                "add_header Strict-Transport-Security includeSubDomains;",
                ".void",
                vec![true],
            ),
            (
                "add_header Strict-Transport-Security \"max-age=300; preload\";",
                ".void",
                vec![false],
            ),
            (
                "add_header Strict-Transport-Security max-age=63072000;",
                ".void",
                vec![false],
            ),
            ("root /etc/;", ".system", vec![true]),
            ("root /var/www;", ".system", vec![false]),
            ("root /etc/nginx/..;", ".system", vec![true]),
            ("root /etc/../srv/www;", ".system", vec![false]),
            ("root //var//log/;", ".system", vec![true]),
            (
                "location ~ \\.php$ { fastcgi_pass unix:/a; }",
                ".unguarded",
                vec![true],
            ),
            (
                "location ~ \\.php$ { try_files $uri =404; fastcgi_pass unix:/a; }",
                ".unguarded",
                vec![false],
            ),
        ] {
            let expected: Vec<Value> = expected.into_iter().map(Value::from).collect();
            assert_eq!(any(server, end), expected, "{server}");
        }
    }

    #[test]
    fn headers_and_versions() {
        let lost = any(
            "add_header X-Frame-Options DENY; location / { add_header A b; }",
            ".lost",
        );
        assert_eq!(lost[1], serde_json::json!(["x-frame-options"]));
        let same = "add_header X-Frame-Options DENY; location / { add_header x-frame-options SAMEORIGIN; }";
        assert_eq!(any(same, ".lost")[1], serde_json::json!([]));
        assert_eq!(
            any("listen 443 ssl; ssl_protocols TLSv1 TLSv1.2;", ".old"),
            [serde_json::json!(["TLSv1"])]
        );
        assert!(any("listen 80; ssl_protocols TLSv1 TLSv1.2;", ".old").is_empty());
    }
}
