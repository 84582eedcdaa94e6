//! Finds nginx settings that protect or speed up nothing: limits that a client evades, port 443 without TLS,
//! connections that are never reused, early data that an application cannot recognise, and databases that are
//! forwarded to everybody.

use super::super::nginx_blocks::{is_local, own_value, own_values, words};
use super::super::nginx_pitfalls::is_guarded;
use super::Misuses;
use crate::collectors::daemons::lines::is_loopback;
use crate::collectors::services::packages::{find_any_version, numbers};
use crate::gather::Gather;
use assay_config::effective::{Effective, ScopeId, Setting};
use std::collections::BTreeMap;

/// Variables that a client sets with a header of its request.
const CHOSEN: [&str; 8] = [
    "$http_x_forwarded_for",
    "$proxy_add_x_forwarded_for",
    "$http_x_real_ip",
    "$http_cf_connecting_ip",
    "$http_true_client_ip",
    "$http_forwarded",
    "$http_client_ip",
    "$http_user_agent",
];
/// Ports of databases, caches and control sockets.
const DATABASES: [u16; 13] = [
    1433, 1521, 2375, 2379, 3306, 5432, 5984, 6379, 8086, 9042, 9200, 11211, 27017,
];
/// Passes to a group of servers, each with the line that keeps connections open and its value.
const KEPT: [(&str, &str); 2] = [
    ("fastcgi_pass", "fastcgi_keep_conn"),
    ("proxy_pass", "proxy_http_version"),
];

pub(super) fn note_traps(g: &Gather<'_>, all: &Effective, found: &mut Misuses) {
    // Since 1.29.7, proxies use HTTP/1.1 and keep connections without further lines.
    let keeps = find_any_version(g, "nginx").is_some_and(|text| numbers(&text) >= (1, 29, 7));
    note_defaults(all, found);
    for (id, scope) in all.scopes() {
        match scope.head.first().map_or("", String::as_str) {
            "server" if is_inside(all, id, "stream") => note_stream(all, id, found),
            "server" if is_inside(all, id, "http") => {
                note_plain_port(all, id, found);
                note_early_data(all, id, found);
            }
            "upstream" if !keeps => note_kept(all, id, found),
            _ => {}
        }
        for key in ["limit_req_zone", "limit_conn_zone"] {
            for said in own_values(all, id, key) {
                let word = said.word().unwrap_or_default().to_ascii_lowercase();
                let chosen = CHOSEN.iter().any(|name| word.contains(name));
                let own = ["$binary_remote_addr", "$remote_addr"];
                let other = own.iter().any(|name| word.contains(name));
                found.add("limit_evaded", chosen && !other, &said.place);
            }
        }
    }
}

fn is_inside(all: &Effective, id: ScopeId, kind: &str) -> bool {
    let mut around = std::iter::successors(Some(id), |id| all.scope(*id).parent);
    around.any(|id| all.scope(id).head.first().is_some_and(|head| head == kind))
}

fn is_on(said: Option<&Setting>) -> bool {
    said.and_then(Setting::word).as_deref() == Some("on")
}

/// Returns the address and the port of a `listen` line.
fn listen_port(word: &str) -> Option<u16> {
    word.rsplit(':').next()?.parse().ok()
}

/// Notes a second default server of one address: nginx does not start.
fn note_defaults(all: &Effective, found: &mut Misuses) {
    let mut seen: BTreeMap<String, ScopeId> = BTreeMap::new();
    for said in all.settings().iter().filter(|said| said.key == "listen") {
        let words = words(said);
        let marked = words
            .iter()
            .any(|word| word == "default_server" || word == "default");
        if !marked || !is_inside(all, said.scope, "http") {
            continue;
        }
        let address = said.word().unwrap_or_default();
        let address = match address.parse::<u16>() {
            Ok(port) => format!("*:{port}"),
            Err(_) => address.replace("0.0.0.0:", "*:"),
        };
        let first = *seen.entry(address).or_insert(said.scope);
        found.add("default_twice", first != said.scope, &said.place);
    }
}

/// Notes servers on port 443 that do not speak TLS. One line with `ssl` counts for all servers of an address.
fn note_plain_port(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let listens: Vec<&Setting> = own_values(all, id, "listen").collect();
    let address = |said: &Setting| said.word().unwrap_or_default();
    let speaks = |said: &Setting| {
        let words = words(said);
        words.iter().any(|word| word == "ssl" || word == "quic")
    };
    let elsewhere = |wanted: &str| {
        all.settings()
            .iter()
            .any(|said| said.key == "listen" && speaks(said) && address(said) == wanted)
    };
    let of_port = |said: &&&Setting| listen_port(&address(said)) == Some(443);
    let Some(said) = listens.iter().find(of_port) else {
        return;
    };
    let word = address(said);
    let tls = is_on(all.value(id, "ssl")) || speaks(said) || elsewhere(&word);
    found.add("plain_on_443", !tls && !is_loopback(&word), &said.place);
}

/// Notes early data for an application that nobody tells: a recorded request can be sent again.
fn note_early_data(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let Some(said) = all
        .value(id, "ssl_early_data")
        .filter(|said| is_on(Some(*said)))
    else {
        return;
    };
    let passes = all.settings().iter().any(|one| {
        let passing = ["proxy_pass", "fastcgi_pass", "uwsgi_pass", "grpc_pass"];
        passing.contains(&one.key.as_str()) && inside_of(all, one.scope, id)
    });
    let is_passed = all
        .settings()
        .iter()
        .any(|one| one.text().contains("ssl_early_data") && one.key != "ssl_early_data")
        || all.scopes().any(|(_, scope)| {
            scope
                .head
                .iter()
                .any(|word| word.contains("ssl_early_data"))
        });
    found.add("early_data_not_passed", passes && !is_passed, &said.place);
}

fn inside_of(all: &Effective, id: ScopeId, outer: ScopeId) -> bool {
    let mut around = std::iter::successors(Some(id), |id| all.scope(*id).parent);
    around.any(|one| one == outer)
}

/// Notes groups of servers with `keepalive` whose connections end after each request.
fn note_kept(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let Some(said) = own_value(all, id, "keepalive") else {
        return;
    };
    let name = all.scope(id).head.get(1).cloned().unwrap_or_default();
    let used = |one: &Setting| {
        let target = one.word().unwrap_or_default();
        let host = target
            .split_once("://")
            .map_or(target.as_str(), |(_, rest)| rest);
        host.split('/').next() == Some(name.as_str())
    };
    let mut uses = 0;
    let mut lost = 0;
    for one in all.settings() {
        let Some((pass, key)) = KEPT.iter().find(|(pass, _)| *pass == one.key) else {
            continue;
        };
        if !used(one) {
            continue;
        }
        uses += 1;
        let kept = match *pass {
            "fastcgi_pass" => is_on(all.value(one.scope, key)),
            _ => {
                let version = all.value(one.scope, key).and_then(Setting::word);
                let headers = all.get(one.scope, "proxy_set_header");
                let open = headers.iter().any(|header| {
                    let words = words(header);
                    words
                        .first()
                        .is_some_and(|name| name.eq_ignore_ascii_case("connection"))
                        && words
                            .get(1)
                            .is_none_or(|value| !value.eq_ignore_ascii_case("close"))
                });
                version.is_some_and(|version| version != "1.0") && open
            }
        };
        lost += usize::from(!kept);
    }
    if uses > 0 {
        found.add("connections_lost", lost == uses, &said.place);
    }
}

/// Notes databases that nginx forwards to every client of the network.
fn note_stream(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let Some(pass) = own_value(all, id, "proxy_pass") else {
        return;
    };
    let target = pass.word().unwrap_or_default();
    let members: Vec<String> = all
        .scopes()
        .filter(|(_, scope)| matches!(&scope.head[..], [kind, name, ..] if kind == "upstream" && *name == target))
        .flat_map(|(group, _)| own_values(all, group, "server").filter_map(Setting::word))
        .chain([target.clone()])
        .collect();
    let database = members
        .iter()
        .filter_map(|member| listen_port(member))
        .any(|port| DATABASES.contains(&port));
    let Some(listen) = own_value(all, id, "listen").filter(|_| database) else {
        return;
    };
    let checked = is_on(all.value(id, "ssl_verify_client"));
    let open = !is_local(all, id) && !is_guarded(all, id) && !checked;
    found.add("database_forwarded", open, &listen.place);
}

#[cfg(test)]
mod tests {
    use super::super::{found, nginx};
    use crate::collectors::nginx::FILE;

    fn of(text: &str, name: &str) -> String {
        let text = format!("events {{}}\n{text}\n");
        let all = found(&[(FILE, &text)], nginx::collect);
        let own: Vec<&str> = all
            .iter()
            .filter_map(|one| one.strip_prefix(name)?.strip_prefix('='))
            .collect();
        own.join(" ")
    }

    #[test]
    fn blocks_and_their_near_misses() {
        let group = "upstream a { server 10.0.0.1:80; keepalive 8; }";
        for (http, name, expected) in [
            (
                "server { listen 80 default_server; } server { listen *:80 default_server; }",
                "default_twice",
                "false true",
            ),
            (
                "server { listen 80 default_server; } server { listen 81 default_server; }",
                "default_twice",
                "false false",
            ),
            (
                "limit_req_zone $http_x_forwarded_for zone=a:1m rate=1r/s;",
                "limit_evaded",
                "true",
            ),
            (
                "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;",
                "limit_evaded",
                "false",
            ),
            (
                "limit_conn_zone \"$remote_addr$http_user_agent\" zone=a:1m;",
                "limit_evaded",
                "false",
            ),
            ("server { listen 443; }", "plain_on_443", "true"),
            ("server { listen [::]:443; }", "plain_on_443", "true"),
            ("server { listen 127.0.0.1:443; }", "plain_on_443", "false"),
            ("server { listen 443 ssl; }", "plain_on_443", "false"),
            (
                "server { listen 443; } server { listen 443 ssl; }",
                "plain_on_443",
                "false false",
            ),
            ("server { listen 443; ssl on; }", "plain_on_443", "false"),
            (
                "server { ssl_early_data on; location / { proxy_pass http://a; } }",
                "early_data_not_passed",
                "true",
            ),
            (
                "server { ssl_early_data on; location / { proxy_pass http://a; proxy_set_header Early-Data $ssl_early_data; } }",
                "early_data_not_passed",
                "false",
            ),
            (
                "server { ssl_early_data on; root /srv; }",
                "early_data_not_passed",
                "false",
            ),
        ] {
            assert_eq!(of(&format!("http {{ {http} }}"), name), expected, "{http}");
        }
        for (lines, expected) in [
            ("", "true"),
            ("proxy_http_version 1.1;", "true"),
            (
                "proxy_http_version 1.1; proxy_set_header Connection \"\";",
                "false",
            ),
        ] {
            let text = format!(
                "http {{ {group} server {{ {lines} location / {{ proxy_pass http://a; }} }} }}"
            );
            assert_eq!(of(&text, "connections_lost"), expected, "{lines}");
        }
    }

    #[test]
    fn forwarded_databases() {
        for (server, expected) in [
            ("listen 5432; proxy_pass 10.0.0.1:5432;", "true"),
            ("listen 127.0.0.1:5432; proxy_pass 10.0.0.1:5432;", "false"),
            (
                "listen 5432; allow 10.0.0.0/8; deny all; proxy_pass 10.0.0.1:5432;",
                "false",
            ),
            ("listen 53; proxy_pass 10.0.0.1:53;", ""),
        ] {
            let text = format!("stream {{ server {{ {server} }} }}");
            assert_eq!(of(&text, "database_forwarded"), expected, "{server}");
        }
    }
}
