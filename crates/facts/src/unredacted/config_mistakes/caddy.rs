//! Finds settings of Caddy that admit everybody: its administration interface, certificates for any name, client
//! certificates that are not checked, and passwords on sites without TLS.

use super::super::lines_of_files::{files, is_loopback, read};
use super::Misuses;
use crate::collectors::daemons::lines::is_abroad;
use crate::gather::Gather;
use assay_model::FactPlace;

const MAIN: &str = "/etc/caddy/Caddyfile";
/// Directories of the system that are not meant to be published.
const SYSTEM: [&str; 9] = [
    "/",
    "/etc",
    "/root",
    "/home",
    "/var",
    "/var/log",
    "/usr",
    "/proc",
    "/var/backups",
];
/// Maximum number of lines and of imported files.
const MOST: usize = 20_000;
const MOST_FILES: usize = 200;

/// A line of a Caddyfile with the lines of its block.
struct Node {
    words: Vec<String>,
    place: FactPlace,
    inside: Vec<Node>,
}

impl Node {
    fn first(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    fn child(&self, name: &str) -> Option<&Self> {
        self.inside.iter().find(|one| one.first() == name)
    }

    /// Returns the lines with this name at any depth.
    fn all<'a>(&'a self, name: &str, found: &mut Vec<&'a Self>) {
        for one in &self.inside {
            if one.first() == name {
                found.push(one);
            }
            one.all(name, found);
        }
    }
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut lines = Vec::new();
    let mut paths = 0;
    read_imported(g, MAIN, &mut paths, &mut lines);
    lines.truncate(MOST);
    let mut rest = lines.into_iter();
    let sites = block(&mut rest);
    let mut found = Misuses::default();
    // The block of global options has no address and comes first.
    let global = sites.first().filter(|one| one.words.is_empty());
    if let Some(global) = global {
        note_administration(global, &mut found);
    }
    for site in sites.iter().filter(|one| !one.words.is_empty()) {
        note_on_demand(site, global, &mut found);
        note_client_certificates(site, &mut found);
        note_passwords(site, &mut found);
        note_upstreams_and_roots(site, &mut found);
    }
    found.note(g, "caddy");
}

/// Reads the words of each line. An `import` of files is replaced by their lines.
fn read_imported(
    g: &mut Gather<'_>,
    path: &str,
    count: &mut usize,
    out: &mut Vec<(Vec<String>, FactPlace)>,
) {
    *count += 1;
    if *count > MOST_FILES {
        return;
    }
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir).to_owned();
    for line in read(g, "caddy", path) {
        let words = words(&line.text);
        let target = match &words[..] {
            [import, target, ..] if import == "import" && target.contains(['/', '*', '.']) => {
                target
            }
            [] => continue,
            _ => {
                out.push((words, line.place));
                continue;
            }
        };
        let target = match target.starts_with('/') {
            true => target.clone(),
            false => format!("{dir}/{target}"),
        };
        let (dir, name) = target.rsplit_once('/').unwrap_or(("", &target));
        let paths = match name.split_once('*') {
            Some((begin, end)) => files(g, "caddy", dir, end)
                .into_iter()
                .filter(|path| {
                    path.rsplit('/')
                        .next()
                        .is_some_and(|name| name.starts_with(begin))
                })
                .collect(),
            None => vec![target.clone()],
        };
        for path in paths {
            read_imported(g, &path, count, out);
        }
    }
}

/// Splits a line into words; a comment begins with `#` after a blank.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        if word.starts_with('#') {
            break;
        }
        all.push(word.trim_matches(['"', '`', ',']).to_owned());
    }
    all
}

/// Reads lines until the brace that closes the block.
fn block(lines: &mut impl Iterator<Item = (Vec<String>, FactPlace)>) -> Vec<Node> {
    let mut nodes = Vec::new();
    while let Some((mut words, place)) = lines.next() {
        if words.first().is_some_and(|word| word == "}") {
            break;
        }
        let opens = words.last().is_some_and(|word| word == "{");
        if opens {
            words.pop();
        }
        let inside = if opens { block(lines) } else { Vec::new() };
        nodes.push(Node {
            words,
            place,
            inside,
        });
    }
    nodes
}

/// Returns whether an address is reachable from other machines: a host other than this machine, or no host at all.
fn is_open(address: &str) -> bool {
    let bare = address.strip_prefix("tcp/").unwrap_or(address);
    !(bare == "off" || bare.starts_with("unix/") || is_loopback(bare))
}

fn note_administration(global: &Node, found: &mut Misuses) {
    if let Some(admin) = global.child("admin") {
        let open = admin.words.get(1).is_some_and(|address| is_open(address));
        found.add("administration_open", open, admin.place.clone());
    }
}

/// Notes certificates that Caddy obtains for any name that a client asks for (Caddy, On-Demand TLS).
fn note_on_demand(site: &Node, global: Option<&Node>, found: &mut Misuses) {
    let mut lines = Vec::new();
    site.all("on_demand", &mut lines);
    let asks = global.and_then(|global| global.child("on_demand_tls"));
    let asks =
        asks.is_some_and(|node| node.child("ask").is_some() || node.child("permission").is_some());
    for line in lines {
        found.add("certificates_for_anything", !asks, line.place.clone());
    }
}

/// Notes modes that accept any certificate of a client, or none at all.
fn note_client_certificates(site: &Node, found: &mut Misuses) {
    let mut blocks = Vec::new();
    site.all("client_auth", &mut blocks);
    for mode in blocks.iter().filter_map(|one| one.child("mode")) {
        let value = mode.words.get(1).map_or("", String::as_str);
        let unchecked = ["request", "require"].contains(&value);
        found.add("client_unverified", unchecked, mode.place.clone());
    }
}

/// Notes servers whose certificate Caddy does not check, and directories of the system that it lists.
fn note_upstreams_and_roots(site: &Node, found: &mut Misuses) {
    let mut proxies = Vec::new();
    site.all("reverse_proxy", &mut proxies);
    for proxy in proxies {
        let abroad = proxy.words.iter().skip(1).any(|word| {
            let host = word
                .split_once("://")
                .map_or(word.as_str(), |(_, rest)| rest);
            is_abroad(host.split('/').next().unwrap_or_default())
        });
        let mut lines = Vec::new();
        proxy.all("tls_insecure_skip_verify", &mut lines);
        for line in lines {
            found.add("upstream_unverified", abroad, line.place.clone());
        }
    }
    let mut servers = Vec::new();
    site.all("file_server", &mut servers);
    let mut roots = Vec::new();
    site.all("root", &mut roots);
    for root in roots.iter().filter(|_| !servers.is_empty()) {
        let path = root.words.last().map_or("", String::as_str);
        let bare = match path.trim_end_matches('/') {
            "" => "/",
            bare => bare,
        };
        let system = path.starts_with('/') && SYSTEM.contains(&bare);
        found.add("system_published", system, root.place.clone());
    }
}

/// Notes passwords on a site that is served without TLS only.
fn note_passwords(site: &Node, found: &mut Misuses) {
    let mut lines = Vec::new();
    for name in ["basicauth", "basic_auth"] {
        site.all(name, &mut lines);
    }
    let plain = |address: &String| {
        let bare = address.strip_prefix("http://");
        let host = bare.unwrap_or(address);
        (bare.is_some() || address.ends_with(":80")) && !is_loopback(host)
    };
    let bound = site.child("bind").and_then(|bind| bind.words.get(1));
    let local = bound.is_some_and(|address| is_loopback(address));
    for line in lines {
        let open = site.words.iter().any(plain) && !local;
        found.add("password_in_cleartext", open, line.place.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn blocks_and_their_near_misses() {
        for (text, expected) in [
            (
                "a.example {\n root * /\n file_server browse\n}\n",
                "system_published=true",
            ),
            (
                "a.example {\n root * /srv/a\n file_server\n}\n",
                "system_published=false",
            ),
            (
                "a.example {\n reverse_proxy https://b.example.org {\n  transport http {\n   tls_insecure_skip_verify\n  }\n }\n}\n",
                "upstream_unverified=true",
            ),
            (
                "a.example {\n reverse_proxy https://10.0.0.7 {\n  transport http {\n   tls_insecure_skip_verify\n  }\n }\n}\n",
                "upstream_unverified=false",
            ),
            ("{\n admin :2019\n}\n", "administration_open=true"),
            ("{\n admin off\n}\n", "administration_open=false"),
            ("{\n admin localhost:2019\n}\n", "administration_open=false"),
            (
                "{\n admin unix//run/caddy.sock\n}\n",
                "administration_open=false",
            ),
            (
                "https:// {\n tls {\n  on_demand\n }\n}\n",
                "certificates_for_anything=true",
            ),
            (
                "{\n on_demand_tls {\n  ask http://localhost:1/\n }\n}\nhttps:// {\n tls {\n  on_demand\n }\n}\n",
                "certificates_for_anything=false",
            ),
            (
                "a.example {\n tls {\n  client_auth {\n   mode request\n  }\n }\n}\n",
                "client_unverified=true",
            ),
            (
                "a.example {\n tls {\n  client_auth {\n   mode require_and_verify\n  }\n }\n}\n",
                "client_unverified=false",
            ),
            (
                "http://a.example {\n basic_auth {\n  a b\n }\n}\n",
                "password_in_cleartext=true",
            ),
            (
                "a.example {\n basicauth /* {\n  a b\n }\n}\n",
                "password_in_cleartext=false",
            ),
            (
                "http://localhost {\n basicauth {\n  a b\n }\n}\n",
                "password_in_cleartext=false",
            ),
        ] {
            assert_eq!(
                found(&[(MAIN, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let site = (
            "/etc/caddy/sites/a.caddy",
            "http://a.example {\n basic_auth {\n  a b\n }\n}\n",
        );
        let all = found(&[(MAIN, "import sites/*.caddy\n"), site], collect);
        assert_eq!(all, ["password_in_cleartext=true"]);
    }
}
