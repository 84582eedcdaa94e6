//! Collects TLS versions and ciphers of Apache and lighttpd. Each instance is one configuration line, so that one line
//! gives one finding. For Apache, the instance is the last line of each server; for lighttpd, every line in any block.
//!
//! Apache: `SSLProtocol` and `SSLCipherSuite` (mod_ssl of 2.4). lighttpd: `ssl.cipher-list`, `ssl.use-sslv3`, and the
//! pairs of `ssl.openssl.ssl-conf-cmd` (mod_openssl of 1.4).

use super::apache_reading;
use super::apache_redact::is_of_tls;
use super::ciphers::weak;
use super::setting_lines::place;
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;

pub(crate) const LIGHTTPD: &str = "/etc/lighttpd/lighttpd.conf";
pub(crate) const LIGHTTPD_DIR: &str = "/etc/lighttpd/conf-enabled";

/// Settings of lighttpd. The next constant has the names in `ssl.openssl.ssl-conf-cmd` (SSL_CONF_cmd(3)).
const SETTINGS: [&str; 3] = ["ssl.cipher-list", "ssl.use-sslv2", "ssl.use-sslv3"];
const PAIRS: [&str; 3] = ["MinProtocol", "Protocol", "CipherString"];

/// Kind of setting in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Protocols,
    Ciphers,
}

pub(crate) fn collect(g: &mut Gather<'_>) {
    note_apache(g);
    if let Some(text) = g.read("lighttpd", LIGHTTPD) {
        note_lines(g, LIGHTTPD, &text);
    }
    for name in g.list("lighttpd", LIGHTTPD_DIR) {
        let file = format!("{LIGHTTPD_DIR}/{}", lossy(&name));
        if !file.ends_with(".conf") {
            continue;
        }
        if let Some(text) = g.read("lighttpd", &file) {
            note_lines(g, &file, &text);
        }
    }
}

/// Notes the effective TLS line of each Apache server, unless TLS is off.
fn note_apache(g: &mut Gather<'_>) {
    let reading = apache_reading::read(g.host);
    if let Some((why, place)) = reading.problems.first() {
        g.facts
            .unknown("apache", why.clone(), FactKind::Configured, place.clone());
    }
    for (number, server) in reading.servers.iter().enumerate() {
        let engine = server.last("sslengine");
        if engine.is_some_and(|line| line.arguments.trim().eq_ignore_ascii_case("off")) {
            continue;
        }
        for (name, what) in [
            ("sslprotocol", What::Protocols),
            ("sslciphersuite", What::Ciphers),
        ] {
            if number == 0 && is_overridden(&reading, name) {
                continue;
            }
            if let Some(line) = server.last(name) {
                let rest = line.arguments.trim().trim_matches('"');
                let spec = rest.split_whitespace().last().unwrap_or_default();
                let found = match what {
                    _ if !is_of_tls(rest) => continue,
                    What::Protocols => words(rest).iter().map(|word| proper_name(word)).collect(),
                    // A word before the ciphers names their protocols.
                    What::Ciphers => ciphers(spec),
                };
                note(
                    g,
                    "apache",
                    &line.path,
                    line.number,
                    (what, found),
                    line.place.clone(),
                );
            }
        }
    }
}

/// Returns whether each site with TLS has a line of its own, so that the line of the main server has no effect.
fn is_overridden(reading: &apache_reading::Reading, name: &str) -> bool {
    let Some((main, sites)) = reading.servers.split_first() else {
        return false;
    };
    let alone = main.last("sslengine").is_none();
    let mut of_tls = sites
        .iter()
        .filter(|site| reading.speaks_tls(site))
        .peekable();
    alone && of_tls.peek().is_some() && of_tls.all(|site| site.last(name).is_some())
}

/// Returns a word of `SSLProtocol` in mod_ssl's spelling. mod_ssl itself ignores case.
fn proper_name(word: &str) -> String {
    const NAMES: [&str; 7] = [
        "all", "SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3",
    ];
    let bare = word.trim_start_matches(['+', '-']);
    let sign = &word[..word.len() - bare.len()];
    let known = NAMES
        .into_iter()
        .find(|name| name.eq_ignore_ascii_case(bare));
    format!("{sign}{}", known.unwrap_or(bare))
}

/// Notes a line of the configuration under a unique name.
fn note(
    g: &mut Gather<'_>,
    who: &str,
    file: &str,
    number: usize,
    (what, said): (What, Vec<String>),
    place: FactPlace,
) {
    let short = file.rsplit('/').next().unwrap_or_default();
    let short = short.strip_suffix(".conf").unwrap_or(short);
    // File names contain names of sites; the number identifies the line without them.
    let plain = match known_file(short) {
        true => format!("{short}-{number}"),
        false => format!("site-{number}"),
    };
    let property = match what {
        What::Protocols => "protocols",
        What::Ciphers => "ciphers",
    };
    let mut which = plain.clone();
    for more in 2.. {
        let known = g.facts.map.get(&format!("{who}.tls.{which}.{property}"));
        if known.is_none_or(|known| known.place == place) {
            break;
        }
        which = format!("{plain}-{more}");
    }
    let broken: (&str, Value) = match what {
        What::Protocols => ("ssl", old_protocols(&said).into()),
        What::Ciphers => ("weak_ciphers", weak(&said.join(":")).into()),
    };
    for (name, value) in [(property, said.into()), broken] {
        let fact = format!("{who}.tls.{which}.{name}");
        g.facts
            .known(fact, value, FactKind::Configured, place.clone());
    }
    g.about([&format!("{who}.tls"), &which]);
}

/// Returns which of SSL 2 and SSL 3 a list of protocols contains after all its words are applied. `+` adds, `-`
/// removes, and a name without a sign replaces the list (`ssl_cmd_protocol_parse` of mod_ssl). `all` includes SSL 3 if
/// the library supports it.
fn old_protocols(words: &[String]) -> Vec<&'static str> {
    const OLD: [&str; 2] = ["SSLv2", "SSLv3"];
    let mut offered: Vec<&'static str> = Vec::new();
    for word in words {
        let bare = word.trim_start_matches(['+', '-']);
        let named = OLD.into_iter().filter(|old| old.eq_ignore_ascii_case(bare));
        let all = bare.eq_ignore_ascii_case("all");
        match word.chars().next() {
            Some('+') => offered.extend(named),
            Some('-') if all => offered.clear(),
            Some('-') => offered.retain(|old| !old.eq_ignore_ascii_case(bare)),
            _ => offered = named.collect(),
        }
    }
    offered
}

/// Notes the TLS settings of each line of a lighttpd file.
fn note_lines(g: &mut Gather<'_>, file: &str, text: &str) {
    for (number, line) in text.lines().enumerate() {
        for (what, words) in of_lighttpd(line) {
            let place = place(file, number, line);
            note(g, "lighttpd", file, number + 1, (what, words), place);
        }
    }
}

/// Returns whether a file name is one that the packages of Apache or lighttpd use, and is therefore not private.
fn known_file(name: &str) -> bool {
    ["ssl", "default-ssl", "lighttpd", "10-ssl"].contains(&name)
}

fn of_lighttpd(line: &str) -> Vec<(What, Vec<String>)> {
    let pairs = lighttpd_pairs(line).into_iter();
    pairs
        .filter_map(|(name, value)| match name {
            "ssl.use-sslv2" | "ssl.use-sslv3" => (value == "enable").then(|| {
                let version = if name.ends_with('2') {
                    "SSLv2"
                } else {
                    "SSLv3"
                };
                (What::Protocols, vec![version.to_owned()])
            }),
            "MinProtocol" | "Protocol" => Some((What::Protocols, words(value))),
            _ => Some((What::Ciphers, ciphers(value))),
        })
        .collect()
}

/// Returns the TLS settings in a line as (name, value).
fn lighttpd_pairs(line: &str) -> Vec<(&'static str, &str)> {
    let line = line.trim();
    if line.starts_with('#') {
        return Vec::new();
    }
    let setting = SETTINGS.into_iter().filter_map(|name| {
        let rest = line.strip_prefix(name)?.trim_start().strip_prefix('=')?;
        Some((name, quoted(rest)?))
    });
    let pairs = PAIRS.into_iter().filter_map(|name| {
        let quotes = format!("\"{name}\"");
        let rest = &line[line.find(&quotes)? + quotes.len()..];
        Some((name, quoted(rest.trim_start().strip_prefix("=>")?)?))
    });
    setting.chain(pairs).collect()
}

fn quoted(text: &str) -> Option<&str> {
    let value = text.trim_start().strip_prefix('"')?.split('"').next()?;
    is_of_tls(value).then_some(value)
}

fn words(text: &str) -> Vec<String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn ciphers(text: &str) -> Vec<String> {
    let words = text.split([':', ',', ' ']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Redacts a line of lighttpd: keeps only the TLS settings.
pub(crate) fn redact_lighttpd(line: &str) -> String {
    let pairs = lighttpd_pairs(line).into_iter();
    let kept = pairs.map(|(name, value)| match SETTINGS.contains(&name) {
        true => format!("{name} = \"{value}\""),
        false => format!("\"{name}\" => \"{value}\""),
    });
    kept.collect::<Vec<String>>().join(" ")
}

/// Returns whether a file belongs to lighttpd.
pub(crate) fn is_of_lighttpd(path: &str) -> bool {
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    path == LIGHTTPD || (dir == LIGHTTPD_DIR && path.ends_with(".conf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_lighttpd() {
        let of = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        for (line, expected) in [
            (
                "ssl.cipher-list = \"RC4-SHA:HIGH\" # x",
                vec![(What::Ciphers, of(&["RC4-SHA", "HIGH"]))],
            ),
            ("ssl.use-sslv3 = \"disable\"", Vec::new()),
            (
                "ssl.openssl.ssl-conf-cmd = (\"MinProtocol\" => \"SSLv3\", \"CipherString\"=>\"HIGH\")",
                vec![
                    (What::Protocols, of(&["SSLv3"])),
                    (What::Ciphers, of(&["HIGH"])),
                ],
            ),
        ] {
            assert_eq!(of_lighttpd(line), expected, "{line}");
        }
        for line in [
            "  ssl.use-sslv3 = \"enable\"",
            "x = (\"MinProtocol\" => \"SSLv3\", \"Options\" => \"secret\")",
            "# ssl.use-sslv3 = \"enable\"",
        ] {
            let kept = redact_lighttpd(line);
            assert_eq!(of_lighttpd(&kept), of_lighttpd(line));
            assert_eq!(redact_lighttpd(&kept), kept);
            assert!(!kept.contains("secret"));
        }
    }

    #[test]
    fn words_of_a_list_of_protocols() {
        for (list, expected) in [
            ("all -SSLv3", vec![]),
            ("all", vec![]),
            ("all +SSLv3", vec!["SSLv3"]),
            ("+SSLv3 +TLSv1.2", vec!["SSLv3"]),
            ("SSLv3 TLSv1.2", vec![]),
            ("TLSv1.2 SSLv3", vec!["SSLv3"]),
            ("+SSLv3 -all +TLSv1.2", vec![]),
            ("+sslV3", vec!["SSLv3"]),
            ("+SSLv2 +SSLv3 -SSLv2", vec!["SSLv3"]),
        ] {
            assert_eq!(old_protocols(&words(list)), expected, "{list}");
        }
    }
}
