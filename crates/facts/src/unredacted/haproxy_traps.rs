//! Finds proxies of HAProxy that keep sending requests to dead servers, or that believe addresses which a client
//! chooses.

use super::haproxy::PARTS;
use super::lines_of_files::{is_loopback, note, read};
use crate::gather::Gather;
use assay_model::FactPlace;

/// Fetches of headers in which a client writes any address.
const HEADERS: [&str; 4] = [
    "x-forwarded-for",
    "x-real-ip",
    "x-client-ip",
    "forwarded-for",
];

/// A section with what decides about its servers and its clients.
#[derive(Default)]
struct Section {
    kind: String,
    servers: Vec<(bool, FactPlace)>,
    checked: bool,
    by_header: Vec<String>,
    by_address: Vec<String>,
    rule: Option<(bool, FactPlace)>,
    replaced: bool,
    addresses: Vec<String>,
    accepts: Option<FactPlace>,
    limited: bool,
}

pub(super) fn note_traps(g: &mut Gather<'_>, paths: &[String]) {
    let mut default_check = false;
    let mut sections = Vec::new();
    let mut section = Section::default();
    for path in paths {
        for line in read(g, "haproxy", path) {
            let text = line
                .text
                .split(" #")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned();
            let low = text.to_ascii_lowercase();
            let words: Vec<&str> = low.split_whitespace().collect();
            let Some(first) = words.first().filter(|word| !word.starts_with('#')) else {
                continue;
            };
            if PARTS.contains(first) && !line.text.starts_with([' ', '\t']) {
                if *first == "defaults" {
                    default_check = false;
                }
                sections.push(std::mem::take(&mut section));
                section.kind = (*first).to_owned();
                section.checked = default_check && *first != "defaults";
            }
            section.take(&words, &line.place);
            default_check |= section.kind == "defaults" && section.checked;
        }
    }
    sections.push(section);
    note_global(g, paths);
    for (number, section) in sections.iter().enumerate() {
        section.note(g, &number.to_string());
    }
}

/// Notes limits of the process below its connections, and passwords in clear text.
fn note_global(g: &mut Gather<'_>, paths: &[String]) {
    let (mut most, mut limit, mut part, mut users) = (None, None, String::new(), 0);
    for path in paths {
        for line in read(g, "haproxy", path) {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            let first = words.first().copied().unwrap_or_default();
            if PARTS.contains(&first) && !line.text.starts_with([' ', '\t']) {
                first.clone_into(&mut part);
            }
            let number = || words.get(1).and_then(|word| word.parse::<u64>().ok());
            match (part.as_str(), &words[..]) {
                ("global", ["maxconn", ..]) => most = number(),
                ("global", ["ulimit-n", ..]) => limit = number().map(|limit| (limit, line.place)),
                ("userlist", ["user", _, kind, ..]) => {
                    users += 1;
                    let clear = *kind == "insecure-password";
                    let properties = [("in_clear", clear.into())];
                    note(
                        g,
                        "haproxy.user",
                        &users.to_string(),
                        &line.place,
                        &properties,
                    );
                }
                _ => {}
            }
        }
    }
    if let Some((limit, place)) = limit {
        // Each connection needs a descriptor for the client and one for the server.
        let few = most.is_some_and(|most| limit < 2 * most);
        note(
            g,
            "haproxy.limit",
            "files",
            &place,
            &[("few_files", few.into())],
        );
    }
}

fn has_header(text: &str) -> bool {
    text.contains("hdr")
        && HEADERS
            .iter()
            .any(|name| text.contains(&format!("({name}")))
}

impl Section {
    fn take(&mut self, words: &[&str], place: &FactPlace) {
        let checks =
            words.contains(&"check") || words.contains(&"track") || words.contains(&"agent-check");
        match words {
            ["default-server", ..] => self.checked |= checks,
            ["server", ..] => {
                let spare = words.contains(&"backup") || words.contains(&"disabled");
                if !spare {
                    self.servers.push((checks, place.clone()));
                }
            }
            ["acl", name, rest @ ..] => {
                let text = rest.join(" ");
                if has_header(&text) {
                    self.by_header.push((*name).to_owned());
                } else if rest.first().is_some_and(|fetch| *fetch == "src") {
                    self.by_address.push((*name).to_owned());
                }
            }
            [
                "http-request",
                "set-header" | "del-header" | "replace-header",
                name,
                ..,
            ] if HEADERS.contains(name) => {
                self.replaced |= self.rule.is_none();
            }
            [
                "http-request",
                "deny" | "allow" | "tarpit" | "reject" | "auth",
                rest @ ..,
            ]
            | ["block" | "use_backend", rest @ ..] => self.take_rule(rest, place),
            ["bind", address, options @ ..] => {
                self.addresses.push((*address).to_owned());
                if options.contains(&"accept-proxy") && !is_local(address) {
                    self.accepts.get_or_insert_with(|| place.clone());
                }
            }
            ["tcp-request", "connection" | "session", ..] => {
                self.limited |= words.contains(&"src")
                    || words.iter().any(|word| {
                        self.by_address
                            .iter()
                            .any(|name| word.trim_start_matches('!') == name)
                    });
            }
            _ => {}
        }
    }

    /// Looks at the condition of a rule about access.
    fn take_rule(&mut self, words: &[&str], place: &FactPlace) {
        let text = words.join(" ");
        let names = |all: &[String]| {
            words
                .iter()
                .any(|word| all.iter().any(|name| word.trim_start_matches('!') == name))
        };
        let by_header = has_header(&text) || names(&self.by_header);
        let by_address =
            text.contains("{ src ") || text.contains("{ src,") || names(&self.by_address);
        if !by_header {
            return;
        }
        let chosen = !by_address && !self.replaced;
        if self.rule.as_ref().is_none_or(|(known, _)| !known && chosen) {
            self.rule = Some((chosen, place.clone()));
        }
    }

    fn note(&self, g: &mut Gather<'_>, which: &str) {
        let local = !self.addresses.is_empty() && self.addresses.iter().all(|one| is_local(one));
        if self.servers.len() > 1 {
            let dead = !self.checked && self.servers.iter().all(|(checked, _)| !checked);
            let (_, place) = &self.servers[0];
            note(
                g,
                "haproxy.group",
                which,
                place,
                &[("unchecked", dead.into())],
            );
        }
        if let Some((chosen, place)) = &self.rule {
            let properties = [("by_header", (*chosen && !local).into())];
            note(g, "haproxy.rule", which, place, &properties);
        }
        if let Some(place) = &self.accepts {
            let properties = [("from_anybody", (!self.limited).into())];
            note(g, "haproxy.accept", which, place, &properties);
        }
    }
}

fn is_local(address: &str) -> bool {
    is_loopback(address)
        || ["unix@", "abns@", "fd@"]
            .iter()
            .any(|start| address.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn sections_and_their_near_misses() {
        let two = " server a 10.0.0.1:80\n server b 10.0.0.2:80\n";
        let acl = " acl in hdr_ip(X-Forwarded-For) 10.0.0.0/8\n http-request deny if !in\n";
        for (text, expected) in [
            ("global\n maxconn 50000\n ulimit-n 1024\n".to_owned(), "few_files=true"),
            ("global\n maxconn 500\n ulimit-n 4096\n".to_owned(), "few_files=false"),
            ("userlist u\n user a insecure-password b\n".to_owned(), "in_clear=true"),
            ("userlist u\n user a password $5$b\n".to_owned(), "in_clear=false"),
            (format!("backend b\n{two}"), "unchecked=true"),
            (format!("backend b\n default-server check\n{two}"), "unchecked=false"),
            (format!("defaults\n default-server check\nbackend b\n{two}"), "unchecked=false"),
            ("backend b\n server a 10.0.0.1:80\n".to_owned(), ""),
            (
                "backend b\n server a 10.0.0.1:80\n server b 10.0.0.2:80 backup\n".to_owned(),
                "",
            ),
            (format!("frontend f\n bind :80\n{acl}"), "by_header=true"),
            (format!("frontend f\n bind 127.0.0.1:80\n{acl}"), "by_header=false"),
            (
                format!("frontend f\n bind :80\n http-request set-header X-Forwarded-For %[src]\n{acl}"),
                "by_header=false",
            ),
            (
                "frontend f\n bind :80\n acl in src 10.0.0.0/8\n http-request deny if !in\n".to_owned(),
                "",
            ),
            ("frontend f\n bind :80 accept-proxy\n".to_owned(), "from_anybody=true"),
            (
                "frontend f\n bind :80 accept-proxy\n tcp-request connection reject if !{ src 10.0.0.5 }\n".to_owned(),
                "from_anybody=false",
            ),
            ("frontend f\n bind unix@/run/a accept-proxy\n".to_owned(), ""),
        ] {
            let path = "/etc/haproxy/haproxy.cfg";
            let host = Recorded::new().file(path, text.as_str());
            let mut g = Gather::new(&host);
            note_traps(&mut g, &[path.to_owned()]);
            let all: Vec<String> = g
                .facts
                .map
                .keys()
                .map(|key| {
                    let value = g.facts.get(key) == Some(&true.into());
                    format!("{}={value}", key.rsplit('.').next().unwrap_or_default())
                })
                .collect();
            assert_eq!(all.join(" "), expected, "{text}");
        }
    }
}
