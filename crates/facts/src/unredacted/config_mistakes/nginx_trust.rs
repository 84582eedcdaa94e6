//! Finds clients, servers and networks that nginx trusts without a check: addresses that clients forge, certificates
//! that nobody checks, logins in cleartext, cached cookies, and uploads by everybody.

use super::super::nginx_blocks::{is_local, own_value, own_values, words};
use super::super::nginx_pitfalls::is_guarded;
use super::Misuses;
use super::own_names::OwnNames;
use crate::collectors::daemons::lines::{is_abroad, is_world};
use crate::gather::Gather;
use assay_config::effective::{Effective, ScopeId, Setting};

/// Directives that forward requests, each with the scheme of TLS and the directive that checks the certificate.
const PASSES: [(&str, &str, &str); 3] = [
    ("proxy_pass", "https", "proxy_ssl_verify"),
    ("grpc_pass", "grpcs", "grpc_ssl_verify"),
    ("uwsgi_pass", "suwsgi", "uwsgi_ssl_verify"),
];
/// Prefixes of the directives that cache responses.
const CACHES: [&str; 4] = ["proxy", "fastcgi", "uwsgi", "scgi"];
/// File name endings of locations that serve no pages of a user.
const STATIC: [&str; 4] = ["css", "png", "jpg", "js"];

pub(super) fn note_trust(all: &Effective, id: ScopeId, found: &mut Misuses) {
    note_satisfy(all, id, found);
    note_real_ip(all, id, found);
    note_uploads(all, id, found);
    note_cookies(all, id, found);
    note_mail(all, id, found);
    note_client_certificates(all, id, found);
}

fn is_on(said: Option<&Setting>, word: &str) -> bool {
    said.and_then(Setting::word).as_deref() == Some(word)
}

/// Returns the block with this id and the blocks around it, from the inside.
fn around(all: &Effective, id: ScopeId) -> impl Iterator<Item = ScopeId> {
    std::iter::successors(Some(id), |id| all.scope(*id).parent)
}

fn is_kind(all: &Effective, id: ScopeId, kind: &str) -> bool {
    all.scope(id).head.first().is_some_and(|head| head == kind)
}

/// Notes lists that admit every address, although a password is required from all others (`satisfy any`).
fn note_satisfy(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let password = ["auth_basic", "auth_request", "auth_jwt"]
        .iter()
        .any(|key| {
            all.value(id, key)
                .is_some_and(|said| !is_on(Some(said), "off"))
        });
    if !password || !is_on(all.value(id, "satisfy"), "any") {
        return;
    }
    let rules = all.settings().iter().filter(|said| said.scope == id);
    let mut rules = rules.filter(|said| said.key == "allow" || said.key == "deny");
    let Some(first) = rules.clone().next() else {
        return;
    };
    let decides = rules.find(|said| said.word().is_some_and(|word| is_world(&word)));
    let open = decides.is_some_and(|said| said.key == "allow");
    found.add(
        "any_without_password",
        open,
        &decides.unwrap_or(first).place,
    );
}

/// Notes networks of proxies that contain every client, so that each client chooses its own address.
fn note_real_ip(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let mut networks = own_values(all, id, "set_real_ip_from");
    let Some(first) = own_value(all, id, "set_real_ip_from") else {
        return;
    };
    let wide = networks.find(|said| said.word().is_some_and(|word| is_world(&word)));
    let servers: Vec<ScopeId> = all
        .scopes()
        .map(|(inner, _)| inner)
        .filter(|inner| {
            is_kind(all, *inner, "server") && (around(all, *inner).any(|one| one == id))
        })
        .collect();
    let server = around(all, id).find(|one| is_kind(all, *one, "server"));
    let local = match servers.is_empty() {
        true => server.is_some_and(|server| is_local(all, server)),
        false => servers.iter().all(|server| is_local(all, *server)),
    };
    let place = &wide.unwrap_or(first).place;
    found.add("real_ip_of_anybody", wide.is_some() && !local, place);
}

/// Notes servers on other networks whose certificate nginx does not check; that is the default. All such lines have one
/// cause and one remedy, so they are one subject with the place of the first.
pub(super) fn note_upstreams(g: &Gather<'_>, all: &Effective, found: &mut Misuses) {
    let own = OwnNames::read(g, all);
    let mut lines = Vec::new();
    for (id, _) in all.scopes() {
        let stream = around(all, id).any(|one| is_kind(all, one, "stream"));
        for (key, scheme, check) in PASSES {
            let Some(said) = own_value(all, id, key) else {
                continue;
            };
            let target = said.word().unwrap_or_default();
            let (tls, host) = match target.split_once("://") {
                Some((of, rest)) => (of == scheme, rest.to_owned()),
                None => (stream && is_on(all.value(id, "proxy_ssl"), "on"), target),
            };
            if !tls {
                continue;
            }
            let host = host.split('/').next().unwrap_or_default();
            let unchecked = !is_on(all.value(id, check), "on");
            let abroad = members(all, host)
                .iter()
                .any(|one| is_abroad(one) && !own.contains(one));
            lines.push((unchecked && abroad, &said.place));
        }
    }
    let wrong = lines.iter().find(|(wrong, _)| *wrong);
    if let Some((wrong, place)) = wrong.or(lines.first()) {
        found.add("upstream_unverified", *wrong, *place);
    }
}

/// Returns the servers of an upstream group with this name, or the name itself.
fn members(all: &Effective, host: &str) -> Vec<String> {
    let mut groups = all.scopes().filter(|(_, scope)| {
        matches!(&scope.head[..], [kind, name, ..] if kind == "upstream" && name == host)
    });
    match groups.next() {
        Some((group, _)) => own_values(all, group, "server")
            .filter_map(Setting::word)
            .collect(),
        None => vec![host.to_owned()],
    }
}

/// Notes locations to which everybody may upload files.
fn note_uploads(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let Some(said) = own_value(all, id, "dav_methods") else {
        return;
    };
    if is_on(Some(said), "off") {
        return;
    }
    let limits = |inner: ScopeId| {
        let scope = all.scope(inner);
        let writes = ["PUT", "DELETE", "MKCOL", "COPY", "MOVE"];
        let spared = scope
            .head
            .iter()
            .any(|word| writes.contains(&word.to_ascii_uppercase().as_str()));
        scope.parent == Some(id)
            && is_kind(all, inner, "limit_except")
            && !spared
            && is_guarded(all, inner)
    };
    let limited = all.scopes().any(|(inner, _)| limits(inner));
    let certificate = is_on(all.value(id, "ssl_verify_client"), "on");
    let open = !limited && !certificate && !is_guarded(all, id);
    found.add("webdav_open", open, &said.place);
}

/// Notes caches that keep the cookie of one client for all others.
fn note_cookies(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let head = all.scope(id).head.join(" ");
    if head.starts_with("location ~") && STATIC.iter().any(|end| head.contains(end)) {
        return;
    }
    for kind in CACHES {
        let value = |name: &str| all.value(id, &format!("{kind}_{name}"));
        let pass = own_value(all, id, &format!("{kind}_pass")).is_some();
        let cached = value("cache").is_some_and(|said| !is_on(Some(said), "off"));
        let (true, Some(ignored)) = (pass && cached, value("ignore_headers")) else {
            continue;
        };
        let is_cookie = |word: &String| word.eq_ignore_ascii_case("set-cookie");
        let ignores = words(ignored).iter().any(is_cookie);
        let hidden = all.get(id, &format!("{kind}_hide_header"));
        let hides = hidden.iter().any(|said| words(said).iter().any(is_cookie));
        let apart = value("cache_key").is_some_and(|said| said.text().contains("cookie"));
        let spared = value("no_cache").is_some() || value("cache_bypass").is_some();
        let shared = ignores && !hides && !apart && !spared;
        found.add("cookies_cached", shared, &ignored.place);
    }
}

/// Notes mail servers that accept passwords without TLS.
fn note_mail(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let mail = around(all, id).any(|one| is_kind(all, one, "mail"));
    let Some(listen) = own_value(all, id, "listen").filter(|_| mail && is_kind(all, id, "server"))
    else {
        return;
    };
    let tls = own_values(all, id, "listen")
        .all(|said| words(said).iter().any(|word| word == "ssl"))
        || is_on(all.value(id, "ssl"), "on");
    let none = is_on(all.value(id, "smtp_auth"), "none");
    let starttls = all.value(id, "starttls");
    let open = !tls && !none && !is_on(starttls, "only") && !is_local(all, id);
    found.add("mail_cleartext", open, &starttls.unwrap_or(listen).place);
}

/// Notes certificates of clients that are optional and that no other line uses, so that they restrict nothing.
fn note_client_certificates(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let Some(said) = own_value(all, id, "ssl_verify_client") else {
        return;
    };
    let optional = is_on(Some(said), "optional") || is_on(Some(said), "optional_no_ca");
    let of_files = ["ssl_client_certificate", "ssl_trusted_certificate"];
    let mut lines = all.settings().iter();
    let used = lines
        .any(|one| !of_files.contains(&one.key.as_str()) && one.text().contains("ssl_client_"))
        || all
            .scopes()
            .any(|(_, scope)| scope.head.iter().any(|word| word.contains("ssl_client_")));
    found.add("client_certificates_unused", optional && !used, &said.place);
}

#[cfg(test)]
mod tests {
    use super::super::{found, nginx};
    use crate::collectors::nginx::FILE;

    #[test]
    fn blocks_and_their_near_misses() {
        let any = "satisfy any; auth_basic x; ";
        let cache = "location / { proxy_pass http://127.0.0.1:81; proxy_cache a; \
                     proxy_ignore_headers Cache-Control Set-Cookie; ";
        for (server, expected) in [
            (
                format!("{any} allow 0.0.0.0/0; deny all;"),
                "any_without_password=true",
            ),
            (
                format!("{any} allow 10.0.0.0/8; deny all;"),
                "any_without_password=false",
            ),
            (
                format!("{any} deny all; allow all;"),
                "any_without_password=false",
            ),
            ("set_real_ip_from ::/0;".into(), "real_ip_of_anybody=true"),
            (
                "set_real_ip_from 10.0.0.1;".into(),
                "real_ip_of_anybody=false",
            ),
            (
                "listen unix:/run/a; set_real_ip_from 0.0.0.0/0;".into(),
                "real_ip_of_anybody=false",
            ),
            (
                "location / { grpc_pass grpcs://api.example.net; }".into(),
                "upstream_unverified=true",
            ),
            (
                "location / { proxy_pass https://10.0.0.7; }".into(),
                "upstream_unverified=false",
            ),
            (
                "location / { proxy_pass https://app; }".into(),
                "upstream_unverified=false",
            ),
            (
                "proxy_ssl_verify on; location / { proxy_pass https://a.example.net; }".into(),
                "upstream_unverified=false",
            ),
            (
                "location /u { dav_methods PUT; }".into(),
                "webdav_open=true",
            ),
            ("location /u { dav_methods off; }".into(), ""),
            (
                "location /u { dav_methods PUT; limit_except GET { deny all; } }".into(),
                "webdav_open=false",
            ),
            (
                "location /u { dav_methods PUT; limit_except GET PUT { deny all; } }".into(),
                "webdav_open=true",
            ),
            (format!("{cache} }}"), "cookies_cached=true"),
            (
                format!("{cache} proxy_hide_header Set-Cookie; }}"),
                "cookies_cached=false",
            ),
            (
                format!("{cache} proxy_no_cache $cookie_a; }}"),
                "cookies_cached=false",
            ),
            (
                "ssl_verify_client optional;".into(),
                "client_certificates_unused=true",
            ),
            (
                "ssl_verify_client on;".into(),
                "client_certificates_unused=false",
            ),
            (
                "ssl_verify_client optional; if ($ssl_client_verify != SUCCESS) { return 403; }"
                    .into(),
                "client_certificates_unused=false",
            ),
        ] {
            let text = format!("events {{}}\nhttp {{\nserver {{\n{server}\n}}\n}}\n");
            let all = found(&[(FILE, &text)], nginx::collect);
            let name = expected.split('=').next().unwrap_or_default();
            let own = all
                .iter()
                .filter(|one| !name.is_empty() && one.starts_with(name));
            assert_eq!(
                own.cloned().collect::<Vec<_>>().join(" "),
                expected,
                "{server}: {all:?}"
            );
        }
    }

    #[test]
    fn mail_and_stream() {
        for (text, expected) in [
            (
                "mail { starttls on; server { listen 143; protocol imap; } }",
                "mail_cleartext=true",
            ),
            (
                "mail { starttls on; server { listen 143; starttls only; } }",
                "mail_cleartext=false",
            ),
            (
                "mail { server { listen 993 ssl; } }",
                "mail_cleartext=false",
            ),
            (
                "mail { server { listen 25; smtp_auth none; } }",
                "mail_cleartext=false",
            ),
            (
                "stream { upstream u { server 203.0.113.9:6514; } server { listen 1; proxy_pass u; proxy_ssl on; } }",
                "upstream_unverified=true",
            ),
            (
                "stream { proxy_ssl_verify on; server { listen 1; proxy_pass 203.0.113.9:1; proxy_ssl on; } }",
                "upstream_unverified=false",
            ),
            (
                "stream { server { listen 1; proxy_pass 203.0.113.9:1; } }",
                "",
            ),
        ] {
            let text = format!("events {{}}\n{text}\n");
            assert_eq!(
                found(&[(FILE, &text)], nginx::collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
