//! What Apache and lighttpd say of protocols and ciphers of TLS: each line by itself, whichever block it stands in. An
//! instance is a line, so that a line is one finding.
//!
//! Apache: `SSLProtocol` and `SSLCipherSuite` (mod_ssl of 2.4). lighttpd: `ssl.cipher-list`, `ssl.use-sslv3`, and the pairs of
//! `ssl.openssl.ssl-conf-cmd` (mod_openssl of 1.4).

use super::apache::APACHE;
use super::lines::place;
use crate::gather::{Gather, lossy};
use assay_model::FactKind;

pub(crate) const LIGHTTPD: &str = "/etc/lighttpd/lighttpd.conf";
pub(crate) const LIGHTTPD_DIR: &str = "/etc/lighttpd/conf-enabled";

/// Settings of lighttpd, and names inside of `ssl.openssl.ssl-conf-cmd` (SSL_CONF_cmd(3)).
const SETTINGS: [&str; 3] = ["ssl.cipher-list", "ssl.use-sslv2", "ssl.use-sslv3"];
const PAIRS: [&str; 3] = ["MinProtocol", "Protocol", "CipherString"];

/// What of TLS a line speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Protocols,
    Ciphers,
}

pub(crate) fn collect(g: &mut Gather<'_>) {
    for dir in APACHE {
        files(g, "apache", dir, of_apache);
    }
    if let Some(text) = g.read("lighttpd", LIGHTTPD) {
        lines(g, "lighttpd", LIGHTTPD, &text, of_lighttpd);
    }
    files(g, "lighttpd", LIGHTTPD_DIR, of_lighttpd);
}

type Read = fn(&str) -> Vec<(What, Vec<String>)>;

fn files(g: &mut Gather<'_>, who: &str, dir: &str, read: Read) {
    for name in g.list(who, dir) {
        let file = format!("{dir}/{}", lossy(&name));
        if !file.ends_with(".conf") {
            continue;
        }
        if let Some(text) = g.read(who, &file) {
            lines(g, who, &file, &text, read);
        }
    }
}

fn lines(g: &mut Gather<'_>, who: &str, file: &str, text: &str, read: Read) {
    let short = file.rsplit('/').next().unwrap_or_default();
    let short = short.strip_suffix(".conf").unwrap_or(short);
    for (number, line) in text.lines().enumerate() {
        let said = read(line);
        if said.is_empty() {
            continue;
        }
        // Names of sites are in names of files: the number tells as well which line it is.
        let which = match known_file(short) {
            true => format!("{short}-{}", number + 1),
            false => format!("site-{}", number + 1),
        };
        for (what, words) in said {
            let what = match what {
                What::Protocols => "protocols",
                What::Ciphers => "ciphers",
            };
            g.facts.known(
                format!("{who}.tls.{which}.{what}"),
                words,
                FactKind::Configured,
                place(file, number, line),
            );
        }
        g.about([&format!("{who}.tls"), &which]);
    }
}

/// Files that the packages bring.
fn known_file(name: &str) -> bool {
    ["ssl", "default-ssl", "lighttpd", "10-ssl"].contains(&name)
}

fn of_apache(line: &str) -> Vec<(What, Vec<String>)> {
    let Some((name, rest)) = apache_line(line) else {
        return Vec::new();
    };
    match name.eq_ignore_ascii_case("sslprotocol") {
        true => vec![(What::Protocols, words(rest))],
        false => {
            // A word before the ciphers tells for which protocols they are.
            let spec = rest.split_whitespace().last().unwrap_or_default();
            vec![(What::Ciphers, ciphers(spec))]
        }
    }
}

/// The directive and what is behind it, where it is one of these and holds nothing else.
fn apache_line(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.trim().split_once([' ', '\t'])?;
    let known = ["sslprotocol", "sslciphersuite"];
    let ours = known.iter().any(|one| name.eq_ignore_ascii_case(one));
    let rest = rest.trim().trim_matches('"');
    (ours && harmless(rest)).then_some((name, rest))
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

/// What a line says of TLS, by name.
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
    harmless(value).then_some(value)
}

/// Names of protocols and ciphers, and what stands between them.
fn harmless(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b":!+@=_., -".contains(&byte);
    (1..=512).contains(&text.len()) && text.bytes().all(known)
}

fn words(text: &str) -> Vec<String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn ciphers(text: &str) -> Vec<String> {
    let words = text.split([':', ',', ' ']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// What a capture keeps of a line of Apache's.
pub(crate) fn redact_apache(line: &str) -> Option<String> {
    apache_line(line).map(|(name, rest)| format!("{name} {rest}"))
}

/// What a capture keeps of a line of lighttpd's.
pub(crate) fn redact_lighttpd(line: &str) -> String {
    let pairs = lighttpd_pairs(line).into_iter();
    let kept = pairs.map(|(name, value)| match SETTINGS.contains(&name) {
        true => format!("{name} = \"{value}\""),
        false => format!("\"{name}\" => \"{value}\""),
    });
    kept.collect::<Vec<String>>().join(" ")
}

/// Whether a file is one of lighttpd's.
pub(crate) fn is_of_lighttpd(path: &str) -> bool {
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    path == LIGHTTPD || (dir == LIGHTTPD_DIR && path.ends_with(".conf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_programs() {
        let of = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        for (read, line, expected) in [
            (
                of_apache as Read,
                "\tSSLProtocol all -SSLv3",
                vec![(What::Protocols, of(&["all", "-SSLv3"]))],
            ),
            (
                of_apache,
                "sslciphersuite TLSv1.3 \"HIGH:!aNULL\"",
                Vec::new(),
            ),
            (
                of_apache,
                "SSLCipherSuite HIGH:!aNULL:RC4",
                vec![(What::Ciphers, of(&["HIGH", "!aNULL", "RC4"]))],
            ),
            (of_apache, "#SSLProtocol SSLv3", Vec::new()),
            (of_apache, "SSLProtocol ${protocols}", Vec::new()),
            (
                of_lighttpd,
                "ssl.cipher-list = \"RC4-SHA:HIGH\" # x",
                vec![(What::Ciphers, of(&["RC4-SHA", "HIGH"]))],
            ),
            (of_lighttpd, "ssl.use-sslv3 = \"disable\"", Vec::new()),
            (
                of_lighttpd,
                "ssl.openssl.ssl-conf-cmd = (\"MinProtocol\" => \"SSLv3\", \"CipherString\"=>\"HIGH\")",
                vec![
                    (What::Protocols, of(&["SSLv3"])),
                    (What::Ciphers, of(&["HIGH"])),
                ],
            ),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_kept_says_the_same() {
        for line in [
            "SSLProtocol all -SSLv3",
            "SSLCipherSuite \"HIGH\"",
            "SSLCertificateFile /x",
        ] {
            let kept = redact_apache(line).unwrap_or_default();
            assert_eq!(of_apache(&kept), of_apache(line));
            assert_eq!(redact_apache(&kept).unwrap_or_default(), kept);
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
}
