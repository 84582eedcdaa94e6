//! Collects the cipher and compression settings of OpenVPN tunnels, and the ciphers that the settings permit. Which
//! option takes effect depends on the version and on TLS or static keys (openvpn(8) of 2.4 to 2.6, Changes.rst,
//! options_postprocess_cipher).

use super::packages;
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};

pub(crate) const DIR: &str = "/etc/openvpn/";
const DIRS: [&str; 3] = ["/etc/openvpn", "/etc/openvpn/server", "/etc/openvpn/client"];

/// Options whose value is one cipher, or a list of ciphers separated by colons.
pub(crate) const CIPHERS: [&str; 4] = [
    "cipher",
    "data-ciphers",
    "ncp-ciphers",
    "data-ciphers-fallback",
];
/// Options whose value is noted.
pub(crate) const KEYS: [&str; 8] = [
    "cipher",
    "data-ciphers",
    "ncp-ciphers",
    "data-ciphers-fallback",
    "auth",
    "comp-lzo",
    "compress",
    "tls-version-min",
];
/// Options whose presence is noted.
pub(crate) const FLAGS: [&str; 13] = [
    "dev",
    "tls-server",
    "tls-client",
    "client",
    "server",
    "server-bridge",
    "secret",
    "<secret>",
    "ncp-disable",
    "config",
    "compat-mode",
    "</secret>",
    "mode",
];
/// Prefixes of cipher names, by which redaction recognises the name of a cipher.
pub(crate) const FAMILIES: [&str; 15] = [
    "AES", "ARIA", "BF", "CAMELLIA", "CAST", "CHACHA", "DEFAULT", "DES", "DESX", "ID", "IDEA",
    "NONE", "RC", "SEED", "SM",
];
/// Prefixes of ciphers with a block size of 64 bits.
const SMALL: [&str; 6] = ["BF-", "CAST5-", "DES-", "DESX-", "IDEA-", "RC2-"];
/// First version in which `--cipher` has no effect in TLS mode (Changes.rst of 2.6).
const WITHOUT_CIPHER: (u32, u32, u32) = (2, 6, 0);
const WITHHELD: &str = "(withheld)";

/// Key exchange between client and server, which decides which cipher options take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Tls,
    /// A static key (option `secret`). Client and server then negotiate no cipher.
    Static,
    /// Unknown, because no option sets the mode.
    Unsaid,
}

/// An option, its value in upper case, and its place.
pub(crate) type PlacedSetting = (&'static str, String, FactPlace);

pub(crate) fn collect(g: &mut Gather<'_>) {
    let version = packages::find_version(g, "openvpn");
    let version = version.map(|(version, _)| packages::numbers(&version));
    for dir in DIRS {
        let mut files: Vec<String> = g
            .list("openvpn", dir)
            .iter()
            .map(|name| lossy(name))
            .collect();
        files.retain(|name| name.ends_with(".conf") || name.ends_with(".ovpn"));
        for (number, name) in files.into_iter().enumerate() {
            let which = format!("{}-{number}", dir.rsplit('/').next().unwrap_or_default());
            note_file(g, &which, &format!("{dir}/{name}"), version);
            g.about(["openvpn", &which]);
        }
    }
}

fn note_file(g: &mut Gather<'_>, which: &str, path: &str, version: Option<(u32, u32, u32)>) {
    let subject = format!("openvpn.{which}");
    let Some(text) = g.read(&subject, path) else {
        return;
    };
    let mut said: Vec<PlacedSetting> = Vec::new();
    let mut mode = Mode::Unsaid;
    let (mut tunnel, mut whole) = (None, true);
    for (number, line) in text.lines().enumerate() {
        let Some((option, value)) = parse_line(line) else {
            continue;
        };
        let place = super::setting_lines::place(path, number, line);
        match option {
            "secret" | "<secret>" => mode = Mode::Static,
            "tls-server" | "tls-client" | "client" | "server" | "server-bridge"
                if mode == Mode::Unsaid =>
            {
                mode = Mode::Tls;
            }
            "dev" => tunnel = Some(place.clone()),
            "config" => {
                whole = false;
                let why = "what `config` brings is not read here";
                g.facts
                    .unknown(&*subject, why, FactKind::Configured, &place);
            }
            _ => {}
        }
        let Some(option) = KEYS.into_iter().find(|key| *key == option) else {
            continue;
        };
        let key = format!("{subject}.{option}");
        // A `?` marks ciphers that are skipped if they are not available.
        let value = value.unwrap_or("on").to_ascii_uppercase().replace('?', "");
        said.retain(|(known, ..)| *known != option);
        if value == WITHHELD.to_ascii_uppercase() {
            let why = "no value that is understood here";
            g.facts.unknown(key, why, FactKind::Configured, place);
            continue;
        }
        g.facts
            .known(key, &*value, FactKind::Configured, place.clone());
        said.push((option, value, place));
    }
    note_ciphers(g, &subject, &said, mode, version);
    // OpenVPN then logs "All encryption and authentication features disabled", independent of its
    // ciphers.
    if let Some(place) = tunnel.filter(|_| whole && mode == Mode::Unsaid) {
        let key = format!("{subject}.keyless");
        g.facts.known(key, true, FactKind::Configured, place);
    }
}

/// Returns whether an option has an effect in this mode and version; `None` if this is unknown.
fn has_effect(
    option: &str,
    said: &[PlacedSetting],
    mode: Mode,
    version: Option<(u32, u32, u32)>,
) -> Option<bool> {
    let there = |name: &str| said.iter().any(|(option, ..)| *option == name);
    match (option, mode) {
        // With a static key no cipher is negotiated.
        ("cipher", Mode::Static) => Some(true),
        (_, Mode::Static) => Some(false),
        ("cipher", _) if there("data-ciphers-fallback") => Some(false),
        ("cipher", Mode::Unsaid) => Some(true),
        ("cipher", Mode::Tls) => version.map(|version| version < WITHOUT_CIPHER),
        ("ncp-ciphers", _) => Some(!there("data-ciphers")),
        _ => Some(true),
    }
}

/// Predicate on a cipher name, such as `has_small_blocks`.
type IsOfKind = fn(&str) -> bool;

fn has_small_blocks(name: &str) -> bool {
    SMALL.iter().any(|begin| name.starts_with(begin))
}

fn is_none(name: &str) -> bool {
    name == "NONE"
}

/// Notes the weak ciphers that the options permit, as `small_blocks` (block size of 64 bits) and `unencrypted`.
pub(crate) fn note_ciphers(
    g: &mut Gather<'_>,
    subject: &str,
    said: &[PlacedSetting],
    mode: Mode,
    version: Option<(u32, u32, u32)>,
) {
    let ciphers = said.iter().filter(|(option, ..)| CIPHERS.contains(option));
    let ciphers: Vec<&PlacedSetting> = ciphers.collect();
    let Some((.., first)) = ciphers.first() else {
        return;
    };
    let kinds: [(&str, IsOfKind); 2] =
        [("small_blocks", has_small_blocks), ("unencrypted", is_none)];
    for (fact, is) in kinds {
        let key = format!("{subject}.{fact}");
        let (mut found, mut place): (Vec<String>, Option<&FactPlace>) = (Vec::new(), None);
        let mut open: Option<&FactPlace> = None;
        for (option, value, at) in &ciphers {
            let names: Vec<&str> = value.split(':').filter(|name| is(name)).collect();
            if names.is_empty() {
                continue;
            }
            match has_effect(option, said, mode, version) {
                Some(true) => {
                    place = place.or(Some(at));
                    for name in names {
                        if !found.iter().any(|known| known == name) {
                            found.push(name.to_owned());
                        }
                    }
                }
                Some(false) => {}
                None => open = open.or(Some(at)),
            }
        }
        match (place, open) {
            (None, Some(open)) => {
                let why =
                    "whether `cipher` counts depends on the version of OpenVPN, which is not known";
                g.facts.unknown(key, why, FactKind::Configured, open);
            }
            _ => {
                let place = place.unwrap_or(first).clone();
                g.facts.known(key, found, FactKind::Configured, place);
            }
        }
    }
}

/// Splits a line into an option and its value.
fn parse_line(line: &str) -> Option<(&str, Option<&str>)> {
    let mut words = line.split_whitespace();
    let option = words.next()?;
    let option = option.strip_prefix("--").unwrap_or(option);
    let value = words.next().filter(|word| !word.starts_with(['#', ';']));
    Some((option, value.map(|word| word.trim_matches(['"', '\'']))))
}

/// Redacts a line: keeps the options that are noted, and values that OpenVPN defines.
pub(crate) fn redact(line: &str) -> String {
    let Some((option, value)) = parse_line(line) else {
        return String::new();
    };
    match value {
        _ if FLAGS.contains(&option) => option.to_owned(),
        _ if !KEYS.contains(&option) => String::new(),
        None => option.to_owned(),
        Some(value) if is_value(option, value) => format!("{option} {value}"),
        Some(_) => format!("{option} {WITHHELD}"),
    }
}

fn is_value(option: &str, value: &str) -> bool {
    if CIPHERS.contains(&option) {
        return value.len() <= 200 && value.split(':').all(is_cipher);
    }
    let byte =
        |byte: u8| byte.is_ascii_digit() || b"-.:".contains(&byte) || byte.is_ascii_uppercase();
    let words = [
        "no", "yes", "none", "adaptive", "lzo", "lz4", "lz4-v2", "stub", "stub-v2", "migrate",
    ];
    (!value.is_empty() && value.len() <= 80 && value.bytes().all(byte)) || words.contains(&value)
}

fn is_cipher(name: &str) -> bool {
    let name = name.strip_prefix('?').unwrap_or(name).to_ascii_uppercase();
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let family = name
        .find(|c: char| !c.is_ascii_uppercase())
        .unwrap_or(name.len());
    name.len() <= 32 && name.bytes().all(known) && FAMILIES.contains(&&name[..family])
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;
    use assay_model::{Fact, FactValue};
    use serde_json::{Value, json};

    const FILE: &str = "/etc/openvpn/server/a.conf";

    fn fact(text: &str, version: &str, name: &str) -> Option<Fact> {
        let status =
            format!("Package: openvpn\nStatus: install ok installed\nVersion: {version}\n");
        let mut host = Recorded::new().file(FILE, text);
        if !version.is_empty() {
            host = host.file(packages::STATUS, &*status);
        }
        let host = crate::Redacted::new(&host, false);
        let mut g = Gather::new(&host);
        collect(&mut g);
        g.facts
            .map
            .get(&format!("openvpn.server-0.{name}"))
            .cloned()
    }

    fn value(text: &str, version: &str, name: &str) -> Option<Value> {
        match fact(text, version, name)?.value {
            FactValue::Known(value) => Some(value),
            FactValue::Unknown(_) => Some(json!("unknown")),
        }
    }

    const TLS: &str = "server 10.8.0.0 255.255.255.0\n";

    #[test]
    fn which_ciphers_a_tunnel_may_use() {
        let old = "2.5.1-3";
        let new = "2.6.3-1+deb12u3";
        for (text, version, expected) in [
            ("dev tun\ncipher BF-CBC\n", "", json!(["BF-CBC"])),
            (
                "dev tun\nsecret k\ncipher bf-cbc # old\n",
                new,
                json!(["BF-CBC"]),
            ),
            (
                "<secret>\nabc\n</secret>\n--cipher \"DES-EDE3-CBC\"\n",
                new,
                json!(["DES-EDE3-CBC"]),
            ),
            ("client\ncipher BF-CBC\n", old, json!(["BF-CBC"])),
            ("client\ncipher BF-CBC\n", new, json!([])),
            ("client\ncipher BF-CBC\n", "", json!("unknown")),
            ("client\ncipher AES-256-CBC\n", "", json!([])),
            (
                "client\ndata-ciphers AES-256-GCM:BF-CBC\ndata-ciphers-fallback BF-CBC\n",
                "",
                json!(["BF-CBC"]),
            ),
            (
                "client\ndata-ciphers AES-256-GCM:?CAST5-CBC\n",
                new,
                json!(["CAST5-CBC"]),
            ),
            (
                "client\ndata-ciphers AES-256-GCM\ndata-ciphers-fallback DES-CBC\n",
                new,
                json!(["DES-CBC"]),
            ),
            (
                "client\ncipher BF-CBC\ndata-ciphers-fallback AES-128-CBC\n",
                old,
                json!([]),
            ),
            (
                "client\nncp-ciphers RC2-CBC\ndata-ciphers AES-128-GCM\n",
                old,
                json!([]),
            ),
            (
                "client\nncp-ciphers RC2-CBC:IDEA-CBC\n",
                "2.4.7-1",
                json!(["RC2-CBC", "IDEA-CBC"]),
            ),
            (
                "secret k\ndata-ciphers BF-CBC\ncipher AES-256-CBC\n",
                new,
                json!([]),
            ),
            (
                "client\ncipher BF-CBC\ncipher AES-256-GCM\n",
                old,
                json!([]),
            ),
        ] {
            assert_eq!(
                value(text, version, "small_blocks"),
                Some(expected),
                "{text} {version}"
            );
        }
        let marked = fact(
            &format!("{TLS}cipher BF-CBC\ndata-ciphers AES-256-GCM:BF-CBC\n"),
            new,
            "small_blocks",
        );
        assert_eq!(marked.and_then(|fact| fact.place.line()), Some(3));
        assert_eq!(value(TLS, new, "small_blocks"), None);
    }

    #[test]
    fn which_tunnels_are_not_encrypted() {
        for (text, version, expected) in [
            ("dev tun\ncipher none\n", "", json!(["NONE"])),
            ("secret k\ncipher NONE\n", "2.6.3-1", json!(["NONE"])),
            ("client\ncipher none\n", "2.4.7-1", json!(["NONE"])),
            ("client\ncipher none\n", "2.6.3-1", json!([])),
            ("client\ncipher none\n", "", json!("unknown")),
            (
                "client\ndata-ciphers AES-256-GCM:none\n",
                "2.6.3-1",
                json!(["NONE"]),
            ),
            (
                "client\ndata-ciphers-fallback none\n",
                "2.6.3-1",
                json!(["NONE"]),
            ),
        ] {
            assert_eq!(
                value(text, version, "unencrypted"),
                Some(expected),
                "{text} {version}"
            );
        }
    }

    #[test]
    fn what_is_not_understood_is_unknown() {
        assert_eq!(
            value("cipher hunter2\n", "", "cipher"),
            Some(json!("unknown"))
        );
        assert_eq!(
            value("cipher AES-256-GCM\nconfig more.conf\n", "", "cipher"),
            Some(json!("AES-256-GCM"))
        );
        let host = Recorded::new().file(FILE, "config more.conf\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        let whole = &g.facts.map["openvpn.server-0"];
        assert!(matches!(whole.value, FactValue::Unknown(_)));
        assert_eq!(whole.place.line(), Some(1));
    }

    #[test]
    fn what_is_kept_stays_the_same() {
        for (line, kept) in [
            ("cipher none", "cipher none"),
            (
                "--data-ciphers ?AES-256-GCM:chacha20-poly1305 # x",
                "data-ciphers ?AES-256-GCM:chacha20-poly1305",
            ),
            ("cipher secret", "cipher (withheld)"),
            ("cipher 'BF-CBC'", "cipher BF-CBC"),
            ("secret /home/alice/key", "secret"),
            ("remote vpn.corp.example", ""),
            ("comp-lzo", "comp-lzo"),
            ("compress lz4-v2", "compress lz4-v2"),
            ("auth hunter2", "auth (withheld)"),
            ("; cipher BF-CBC", ""),
        ] {
            assert_eq!(redact(line), kept);
            assert_eq!(redact(kept), kept);
        }
    }
}
