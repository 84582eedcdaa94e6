//! Finds settings of OpenDKIM, rspamd and SpamAssassin that trust everybody, or that switch the filter or the signature
//! off. Each fact is a boolean property with the place of its line, and contains neither names nor addresses.

use super::lines_of_files::{Line, is_loopback, note, read};
use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};
use std::path::{Path, PathBuf};

const OPENDKIM: &str = "/etc/opendkim.conf";
/// Settings of rspamd in the order in which they take effect: a later file replaces an earlier one.
const RSPAMD_DIRS: [&str; 2] = ["/etc/rspamd/local.d", "/etc/rspamd/override.d"];
const SPAMASSASSIN: [&str; 2] = [
    "/etc/spamassassin/local.cf",
    "/etc/mail/spamassassin/local.cf",
];
/// Options of spamd on Debian 12, on older Debian, and on Red Hat.
const SPAMD: [&str; 3] = [
    "/etc/default/spamd",
    "/etc/default/spamassassin",
    "/etc/sysconfig/spamassassin",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_opendkim(g);
    note_rspamd(g);
    note_spamassassin(g);
    note_spamd(g);
}

/// Returns whether a network contains half of all addresses or more.
fn is_everybody(network: &str) -> bool {
    let bare = network.trim_matches(['"', '\'', ';', '[', ']', ',']);
    let (address, bits) = bare.split_once('/').unwrap_or((bare, ""));
    match bits.parse::<u8>() {
        Ok(bits) => {
            bits <= 1
                && (address.contains(':')
                    || address.starts_with(|letter: char| letter.is_ascii_digit()))
        }
        Err(_) => bare == "*",
    }
}

/// The properties of one program, each a subject of its own.
struct Found<'a> {
    kind: &'a str,
    count: usize,
}

impl Found<'_> {
    fn add(&mut self, g: &mut Gather<'_>, property: &str, wrong: bool, place: &FactPlace) {
        self.count += 1;
        note(
            g,
            self.kind,
            &self.count.to_string(),
            place,
            &[(property, wrong.into())],
        );
    }
}

impl Found<'_> {
    fn add_unknown(&mut self, g: &mut Gather<'_>, property: &str, why: &str, place: &FactPlace) {
        self.count += 1;
        let number = self.count.to_string();
        let fact = format!("{}.{number}.{property}", self.kind);
        g.facts
            .unknown(fact, why, FactKind::Configured, place.clone());
        g.about([self.kind, number.as_str()]);
    }
}

/// Notes the settings of OpenDKIM (opendkim.conf(5), 2.11). Names are case-insensitive, and the last line counts.
fn note_opendkim(g: &mut Gather<'_>) {
    let lines = read(g, "opendkim", OPENDKIM);
    let setting = |name: &str| -> Option<(String, FactPlace)> {
        lines.iter().rev().find_map(|line| {
            let text = line.text.split('#').next().unwrap_or_default().trim();
            let (key, value) = text.split_once(char::is_whitespace)?;
            key.eq_ignore_ascii_case(name)
                .then(|| (value.trim().to_owned(), line.place.clone()))
        })
    };
    let mut found = Found {
        kind: "opendkim",
        count: 0,
    };
    if let Some((value, place)) = setting("InternalHosts") {
        let all = dataset(g, &value).iter().any(|one| is_everybody(one));
        // A milter that only signs may stand behind a server that takes mail of its own clients alone.
        let signer = setting("Mode").is_some_and(|(mode, _)| mode.eq_ignore_ascii_case("s"));
        if all && signer {
            let why = "whether the server asks this signer about mail of strangers is not known";
            found.add_unknown(g, "signs_for_all", why, &place);
        } else {
            found.add(g, "signs_for_all", all, &place);
        }
    }
    let signs = ["KeyFile", "KeyTable", "SigningTable"]
        .iter()
        .any(|name| setting(name).is_some());
    if let Some((value, place)) = setting("Mode").filter(|_| signs) {
        found.add(
            g,
            "signs_nothing",
            !value.to_ascii_lowercase().contains('s'),
            &place,
        );
    }
    if let Some((value, place)) = setting("SignatureAlgorithm") {
        found.add(
            g,
            "signs_with_sha1",
            value.eq_ignore_ascii_case("rsa-sha1"),
            &place,
        );
    }
    let length = setting("BodyLengthDB");
    if let Some((_, place)) = length.as_ref().or(setting("KeyFile").as_ref()) {
        found.add(g, "signs_only_begin", length.is_some(), place);
    }
    if let Some((value, place)) = setting("Socket") {
        // inet:PORT without a host means all addresses.
        let low = value.to_ascii_lowercase();
        let address = low.strip_prefix("inet:").or(low.strip_prefix("inet6:"));
        let host = |text: &str| {
            text.split_once('@')
                .map(|(_, host)| host.trim_matches(['[', ']']).to_owned())
        };
        let open = address.is_some_and(|text| {
            host(text).is_none_or(|host| matches!(host.as_str(), "0.0.0.0" | "::"))
        });
        found.add(g, "socket_open", open, &place);
    }
    if let Some((value, place)) = setting("RequireSafeKeys") {
        let off = ["no", "false", "0"]
            .iter()
            .any(|word| value.eq_ignore_ascii_case(word));
        found.add(g, "keys_unchecked", off, &place);
    }
}

/// Returns the entries of a data set: those of a file, or of a list in the line itself (opendkim(8), DATA SETS).
fn dataset(g: &mut Gather<'_>, value: &str) -> Vec<String> {
    let bare = value
        .strip_prefix("refile:")
        .or(value.strip_prefix("file:"))
        .unwrap_or(value);
    if !bare.starts_with('/') {
        let list = value.strip_prefix("csl:").unwrap_or(value);
        return list.split(',').map(|one| one.trim().to_owned()).collect();
    }
    let lines = read(g, "opendkim", bare);
    let text = lines.iter().map(|line| {
        line.text
            .split('#')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    });
    text.filter(|one| !one.is_empty()).collect()
}

/// Returns the last value of a setting of rspamd with its place; the files in override.d have precedence.
fn rspamd(g: &mut Gather<'_>, file: &str, name: &str) -> Option<(String, FactPlace)> {
    let mut last = None;
    for dir in RSPAMD_DIRS {
        let mut inside: Option<(String, FactPlace)> = None;
        for line in read(g, "rspamd_filter", &format!("{dir}/{file}")) {
            let text = line
                .text
                .split('#')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned();
            if let Some((value, place)) = &mut inside {
                value.push(' ');
                value.push_str(&text);
                if text.contains(']') {
                    last = Some((value.clone(), place.clone()));
                    inside = None;
                }
                continue;
            }
            let Some((key, value)) = text.split_once(|letter: char| "= \t".contains(letter)) else {
                continue;
            };
            let value = value.trim_start_matches(|letter: char| "= \t".contains(letter));
            if key.trim_matches('"') != name {
                continue;
            }
            let value = value.trim_end_matches(';').to_owned();
            match value.contains('[') && !value.contains(']') {
                true => inside = Some((value, line.place)),
                false => last = Some((value, line.place)),
            }
        }
    }
    last
}

/// Notes networks whose mail rspamd does not check, and thresholds that reject mail which would only be marked.
fn note_rspamd(g: &mut Gather<'_>) {
    let mut found = Found {
        kind: "rspamd_filter",
        count: 0,
    };
    if let Some((value, place)) = rspamd(g, "options.inc", "local_addrs") {
        let mut networks = value
            .split([',', ' ', '"', '[', ']'])
            .filter(|one| !one.is_empty());
        found.add(g, "all_are_local", networks.any(is_everybody), &place);
    }
    if let Some((value, place)) = rspamd(g, "worker-proxy.inc", "bind_socket") {
        let address = value.trim_matches(['"', ' ']);
        let open = !is_loopback(address);
        found.add(g, "proxy_open", open, &place);
    }
    if let Some((value, place)) = rspamd(g, "actions.conf", "reject") {
        let marked = rspamd(g, "actions.conf", "add_header").map(|(value, _)| value);
        // actions.conf of the package: 15, 6 and 4.
        let number = |text: &str| text.trim_matches(['"', ' ']).parse::<f64>().ok();
        let least = marked.as_deref().map_or(Some(6.0), number);
        let contradicts = number(&value)
            .zip(least)
            .is_some_and(|(reject, least)| reject < least);
        found.add(g, "rejects_before_marking", contradicts, &place);
    }
}

/// Notes the effective settings of SpamAssassin that trust all senders or all accounts of the machine.
fn note_spamassassin(g: &mut Gather<'_>) {
    let mut found = Found {
        kind: "spamassassin_trust",
        count: 0,
    };
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in SPAMASSASSIN {
        // On Debian, one directory is a link to the other.
        let real = g.host.realpath(Path::new(path));
        let real = real.unwrap_or_else(|_| PathBuf::from(path));
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        let lines = effective_lines(read(g, "spamassassin_trust", path));
        let mut last: Vec<(&str, bool, FactPlace)> = Vec::new();
        for line in &lines {
            let text = line.text.split('#').next().unwrap_or_default();
            let mut words = text.split_whitespace();
            let (Some(key), rest) = (words.next(), words) else {
                continue;
            };
            let key = key.to_ascii_lowercase();
            let mut rest = rest;
            match key.as_str() {
                "trusted_networks" | "internal_networks" => {
                    let all = rest.any(is_everybody);
                    last.push(("trusts_all", all, line.place.clone()));
                }
                "welcomelist_from" | "whitelist_from" => {
                    let whole = rest.any(|one| one.starts_with("*@"));
                    last.push(("welcomes_forged", whole, line.place.clone()));
                }
                "required_score" | "required_hits" => {
                    last.retain(|(property, ..)| *property != "marks_nothing");
                    let score = rest.next().and_then(|text| text.parse::<f64>().ok());
                    let never = score.is_some_and(|score| score >= 50.0);
                    last.push(("marks_nothing", never, line.place.clone()));
                }
                "allow_user_rules" => {
                    last.retain(|(property, ..)| *property != "user_rules");
                    last.push(("user_rules", rest.next() == Some("1"), line.place.clone()));
                }
                _ => {}
            }
        }
        for (property, wrong, place) in last {
            found.add(g, property, wrong, &place);
        }
    }
}

/// Returns the lines outside of blocks whose condition is false for SpamAssassin 3.4 to 4.0 (`if (version < 3.2)`).
fn effective_lines(lines: Vec<Line>) -> Vec<Line> {
    let mut conditions: Vec<bool> = Vec::new();
    let mut kept = Vec::new();
    for line in lines {
        let text = line.text.trim();
        let first = text.split([' ', '\t', '(']).next().unwrap_or_default();
        match first {
            "if" => conditions.push(holds(text)),
            "ifplugin" => conditions.push(true),
            "else" => {
                if let Some(last) = conditions.last_mut() {
                    *last = !*last;
                }
            }
            "endif" => {
                conditions.pop();
            }
            _ if conditions.iter().all(|holds| *holds) => kept.push(line),
            _ => {}
        }
    }
    kept
}

/// Evaluates a comparison with the version; any other condition holds.
fn holds(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|letter: char| letter.is_whitespace() || "()".contains(letter))
        .filter(|word| !word.is_empty())
        .collect();
    let (least, most) = (3.004, 4.001);
    match words[..] {
        ["if", "version", sign, number] => match (sign, number.parse::<f64>()) {
            (">" | ">=", Ok(number)) => most >= number,
            ("<" | "<=", Ok(number)) => least < number,
            _ => true,
        },
        _ => true,
    }
}

/// Notes whether spamd answers requests of every machine (spamd(1), --listen and --allowed-ips).
fn note_spamd(g: &mut Gather<'_>) {
    let mut found = Found {
        kind: "spamd",
        count: 0,
    };
    for path in SPAMD {
        let lines = read(g, "spamd", path);
        let options = lines.iter().rev().find_map(|line| {
            let (key, value) = line.text.trim().split_once('=')?;
            ["OPTIONS", "SPAMDOPTIONS"]
                .contains(&key)
                .then(|| (value.trim_matches(['"', '\'']).to_owned(), &line.place))
        });
        let Some((options, place)) = options else {
            continue;
        };
        let words: Vec<&str> = options.split_whitespace().collect();
        let value = |long: &str, short: &str| -> Option<Option<&str>> {
            words.iter().enumerate().find_map(|(at, word)| {
                if let Some(value) = word
                    .strip_prefix(long)
                    .and_then(|rest| rest.strip_prefix('='))
                {
                    return Some(Some(value));
                }
                let next = words
                    .get(at + 1)
                    .copied()
                    .filter(|next| !next.starts_with('-'));
                if *word == long || *word == short {
                    return Some(next);
                }
                let joined = word
                    .strip_prefix(short)
                    .filter(|rest| !rest.is_empty() && !word.starts_with("--"));
                joined.map(Some)
            })
        };
        let listens = value("--listen", "-i")
            .or_else(|| value("--listen-ip", "-i"))
            .or_else(|| value("--ip-address", "-i"));
        // Without an address, spamd listens on all of them.
        let beyond = listens.is_some_and(|address| address.is_none_or(|one| !is_loopback(one)));
        let allowed = value("--allowed-ips", "-A").flatten().unwrap_or_default();
        let all = allowed.split(',').any(is_everybody);
        found.add(g, "open", beyond && all, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::{Host as _, Recorded};

    fn holding(files: &[(&str, &str)]) -> Vec<String> {
        let host = files
            .iter()
            .fold(Recorded::new(), |host, (path, text)| host.file(path, *text));
        let mut g = Gather::new(&host);
        collect(&mut g);
        let all = g
            .facts
            .map
            .keys()
            .filter(|key| g.facts.get(key) == Some(&true.into()));
        all.filter_map(|key| key.rsplit('.').next().map(str::to_owned))
            .collect()
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a tree of files with a link")]
    fn two_names_of_one_directory_are_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let etc = dir.path().join("etc");
        std::fs::create_dir_all(etc.join("spamassassin")).unwrap();
        std::fs::create_dir_all(etc.join("mail")).unwrap();
        std::os::unix::fs::symlink("../spamassassin", etc.join("mail/spamassassin")).unwrap();
        let text = "whitelist_from *@example.org\n";
        std::fs::write(etc.join("spamassassin/local.cf"), text).unwrap();
        let host = assay_host::Root::open(dir.path()).unwrap();
        assert!(
            host.read_text(std::path::Path::new(SPAMASSASSIN[1]))
                .is_ok()
        );
        let mut g = Gather::new(&host);
        collect(&mut g);
        let forged = g.facts.map.keys();
        let forged = forged.filter(|key| key.ends_with(".welcomes_forged"));
        assert_eq!(forged.count(), 1);
    }

    #[test]
    fn lines_and_their_near_misses() {
        let sa = SPAMASSASSIN[0];
        let options = "/etc/rspamd/local.d/options.inc";
        for (path, text, expected) in [
            (
                OPENDKIM,
                "internalhosts 127.0.0.1, 0.0.0.0/0\n",
                "signs_for_all",
            ),
            (OPENDKIM, "InternalHosts 127.0.0.1, 10.0.0.0/8\n", ""),
            (OPENDKIM, "Mode v\nKeyFile /a\n", "signs_nothing"),
            (OPENDKIM, "Mode v\n", ""),
            (OPENDKIM, "Mode v\nKeyFile /a\nMode sv\n", ""),
            (OPENDKIM, "SignatureAlgorithm rsa-sha1\n", "signs_with_sha1"),
            (OPENDKIM, "SignatureAlgorithm ed25519-sha256\n", ""),
            (OPENDKIM, "BodyLengthDB refile:/a\n", "signs_only_begin"),
            (OPENDKIM, "Socket inet:8891\n", "socket_open"),
            (OPENDKIM, "Socket inet:8891@localhost\n", ""),
            (OPENDKIM, "Socket local:/run/a\n", ""),
            (OPENDKIM, "RequireSafeKeys False\n", "keys_unchecked"),
            (
                options,
                "local_addrs = [\n  10.0.0.0/8,\n  0.0.0.0/0\n];\n",
                "all_are_local",
            ),
            (options, "local_addrs = \"192.0.2.0/24\";\n", ""),
            (
                "/etc/rspamd/local.d/actions.conf",
                "reject = 2;\n",
                "rejects_before_marking",
            ),
            (
                "/etc/rspamd/local.d/actions.conf",
                "reject = 2;\nadd_header = 1;\n",
                "",
            ),
            ("/etc/rspamd/local.d/actions.conf", "reject = null;\n", ""),
            (sa, "trusted_networks 10/8 0/0\n", "trusts_all"),
            (sa, "trusted_networks 10/8 !0/0x\n", ""),
            (
                sa,
                "welcomelist_from a@example.net *@example.org\n",
                "welcomes_forged",
            ),
            (sa, "welcomelist_auth *@example.org\n", ""),
            (sa, "whitelist_from boss@example.org\n", ""),
            (
                sa,
                "if (version >= 3.004)\nallow_user_rules 1\nendif\n",
                "user_rules",
            ),
            (sa, "if (version < 3.004)\nallow_user_rules 1\nendif\n", ""),
            (sa, "allow_user_rules 1\nallow_user_rules 0\n", ""),
            (
                SPAMD[0],
                "OPTIONS=\"--listen --allow-tell -A 0.0.0.0/0 -m 5\"\n",
                "open",
            ),
            (
                SPAMD[0],
                "OPTIONS=\"-i 0.0.0.0 --allowed-ips=10.0.0.1,0.0.0.0/0\"\n",
                "open",
            ),
            (
                SPAMD[0],
                "OPTIONS=\"--listen=127.0.0.1 -A 0.0.0.0/0\"\n",
                "",
            ),
            (SPAMD[0], "OPTIONS=\"-i -A 10.0.0.0/8\"\n", ""),
        ] {
            assert_eq!(holding(&[(path, text)]).join(" "), expected, "{text}");
        }
        let both = [
            ("/etc/rspamd/local.d/actions.conf", "reject = 2;\n"),
            ("/etc/rspamd/override.d/actions.conf", "reject = 18;\n"),
        ];
        assert!(holding(&both).is_empty());
        let hosts = [
            (OPENDKIM, "InternalHosts refile:/etc/opendkim/hosts\n"),
            ("/etc/opendkim/hosts", "#0.0.0.0/0\n::/0\n"),
        ];
        assert_eq!(holding(&hosts), ["signs_for_all"]);
    }
}
