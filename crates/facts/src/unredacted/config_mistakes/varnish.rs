//! Finds a management port of Varnish without a secret, and requests that empty the cache for everybody.

use super::super::lines_of_files::{exists, files, is_loopback, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;

const UNIT: &str = "/etc/systemd/system/varnish.service";
const PACKAGED: [&str; 2] = [
    "/usr/lib/systemd/system/varnish.service",
    "/lib/systemd/system/varnish.service",
];
/// Files with options on older releases.
const OPTIONS: [&str; 2] = ["/etc/default/varnish", "/etc/sysconfig/varnish"];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_management(g, &mut found);
    for path in files(g, "varnish", "/etc/varnish", ".vcl") {
        note_purge(g, &path, &mut found);
        note_hash(g, &path, &mut found);
    }
    found.note(g, "varnish");
}

/// Notes a management port for other machines whose secret is switched off (varnishd(1), -S).
fn note_management(g: &mut Gather<'_>, found: &mut Misuses) {
    let mut main = PACKAGED.into_iter().chain([UNIT]);
    let mut paths: Vec<String> = main
        .rfind(|path| exists(g, path))
        .map(str::to_owned)
        .into_iter()
        .collect();
    paths.extend(files(g, "varnish", &format!("{UNIT}.d"), ".conf"));
    let mut command: Option<(String, FactPlace)> = None;
    for path in paths {
        for line in read(g, "varnish", &path) {
            if let Some(value) = line.text.trim().strip_prefix("ExecStart=") {
                command = (!value.is_empty()).then(|| (value.to_owned(), line.place));
            }
        }
    }
    for path in OPTIONS {
        for line in read(g, "varnish", path) {
            if let Some(value) = line.text.trim().strip_prefix("DAEMON_OPTS=") {
                command = Some((value.trim_matches(['"', '\'']).to_owned(), line.place));
            }
        }
    }
    let Some((command, place)) = command else {
        return;
    };
    let words: Vec<&str> = command.split_whitespace().collect();
    let value = |option: &str| {
        let mut all = words.iter().enumerate().filter_map(|(at, word)| {
            let rest = word.strip_prefix(option)?;
            Some(if rest.is_empty() {
                words.get(at + 1).copied().unwrap_or_default()
            } else {
                rest
            })
        });
        all.next_back()
    };
    if let Some(address) = value("-T") {
        let open = !is_loopback(address) && address != "none" && value("-S") == Some("none");
        found.add("management_open", open, place);
    }
}

/// Notes a request that removes objects from the cache, in a file that never looks at the address of the client.
fn note_purge(g: &mut Gather<'_>, path: &str, found: &mut Misuses) {
    let mut comment = false;
    let (mut purge, mut looks, mut wide, mut list) = (None, false, false, false);
    for line in read(g, "varnish", path) {
        let text = bare(&line.text, &mut comment);
        let low = text.to_ascii_lowercase();
        let dense: String = low
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .collect();
        list |= dense.starts_with("acl");
        wide |= list && (dense.contains("\"0.0.0.0\"/0") || dense.contains("\"::\"/0"));
        list &= !dense.contains('}');
        looks |=
            dense.contains("client.ip") || dense.contains("remote.ip") || dense.contains("std.ip(");
        // A shared secret in a header of the request.
        looks |= dense.contains("req.http.")
            && (dense.contains("purge") || dense.contains("token") || dense.contains("auth"));
        if purge.is_none()
            && (dense.contains("return(purge)")
                || dense.contains("ban(\"")
                || dense.contains("std.ban("))
        {
            purge = Some(line.place.clone());
        }
    }
    if let Some(place) = purge {
        found.add("purge_open", !looks || wide, place);
    }
}

/// Notes a key of the cache without the host: a page of one site is then served for another.
fn note_hash(g: &mut Gather<'_>, path: &str, found: &mut Misuses) {
    let mut comment = false;
    let (mut inside, mut depth, mut host, mut leaves): (Option<FactPlace>, usize, bool, bool) =
        (None, 0, false, false);
    for line in read(g, "varnish", path) {
        let text = bare(&line.text, &mut comment);
        let dense: String = text
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .collect();
        if dense.starts_with("subvcl_hash{") {
            inside = Some(line.place);
            (depth, host, leaves) = (0, false, false);
        }
        if inside.is_none() {
            continue;
        }
        host |= dense.contains("req.http.host")
            || dense.contains("req.http.Host")
            || dense.contains("server.ip");
        leaves |= dense.contains("return(lookup)");
        depth += dense.matches('{').count();
        depth = depth.saturating_sub(dense.matches('}').count());
        if depth == 0
            && let Some(place) = inside.take()
        {
            found.add("hash_without_host", leaves && !host, place);
        }
    }
}

/// Returns a line of VCL without comments.
fn bare(text: &str, comment: &mut bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    loop {
        if *comment {
            match rest.split_once("*/") {
                Some((_, after)) => {
                    *comment = false;
                    rest = after;
                }
                None => return out,
            }
        }
        let line = rest.find("//").into_iter().chain(rest.find('#')).min();
        match rest.find("/*") {
            Some(at) if line.is_none_or(|line| at < line) => {
                out.push_str(&rest[..at]);
                rest = &rest[at + 2..];
                *comment = true;
            }
            _ => {
                out.push_str(&rest[..line.unwrap_or(rest.len())]);
                return out;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn options_and_their_near_misses() {
        let drop_in = format!("{UNIT}.d/o.conf");
        for (options, expected) in [
            ("-a :80 -T 0.0.0.0:6082 -S none", "management_open=true"),
            ("-a :80 -T :6082 -S none", "management_open=true"),
            ("-a :80 -T localhost:6082 -S none", "management_open=false"),
            (
                "-a :80 -T 0.0.0.0:6082 -S /etc/varnish/secret",
                "management_open=false",
            ),
            ("-a :80", ""),
        ] {
            let text = format!("[Service]\nExecStart=\nExecStart=/usr/sbin/varnishd {options}\n");
            let packaged = (
                PACKAGED[0],
                "[Service]\nExecStart=/usr/sbin/varnishd -T localhost:1\n",
            );
            let all = found(&[packaged, (&drop_in, &text)], collect);
            assert_eq!(all.join(" "), expected, "{options}");
        }
    }

    #[test]
    fn purges_and_their_near_misses() {
        let purge = "sub vcl_recv {\n if (req.method == \"PURGE\") {\n  return (purge);\n }\n}\n";
        let checked = "acl a { \"127.0.0.1\"; }\nsub vcl_recv {\n if (client.ip !~ a) { return (synth(405)); }\n return (purge);\n}\n";
        let wide = checked.replace("\"127.0.0.1\"", "\"0.0.0.0\"/0");
        let comment = "/* return (purge); */\n# return (purge);\nsub vcl_recv { }\n";
        for (text, expected) in [
            (purge, "purge_open=true"),
            (checked, "purge_open=false"),
            (&wide, "purge_open=true"),
            (comment, ""),
        ] {
            assert_eq!(
                found(&[("/etc/varnish/default.vcl", text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn keys_of_the_cache() {
        for (body, expected) in [
            (
                " hash_data(req.url);\n return (lookup);\n",
                "hash_without_host=true",
            ),
            (
                " hash_data(req.url);\n hash_data(req.http.host);\n return (lookup);\n",
                "hash_without_host=false",
            ),
            (
                " hash_data(req.http.X-Device);\n",
                "hash_without_host=false",
            ),
        ] {
            let text = format!("sub vcl_hash {{\n{body}}}\n");
            let all = found(&[("/etc/varnish/default.vcl", &text)], collect);
            assert_eq!(all.join(" "), expected, "{body}");
        }
    }
}
