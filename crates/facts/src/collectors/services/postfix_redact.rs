//! Redacts Postfix's files for a capture: keeps the noted parameters, and user-defined parameters that contain
//! restrictions or networks. Line numbers do not change, also within a value that continues over several lines.

use super::dnsbl;
use super::postfix::is_asked;
use crate::harmless::kept_path;
use assay_model::secrets;
use std::collections::BTreeSet;

/// Prefix length of an IPv4 network. A network with this length or a shorter one contains more addresses than any
/// organisation owns.
pub(crate) const WIDE_V4: u8 = 7;
pub(crate) const WIDE_V6: u8 = 3;

/// Parameter with the names of restriction classes.
pub(super) const CLASSES: &str = "smtpd_restriction_classes";

/// Replaces a user-defined word that may be private.
const LEFT_OUT: &str = "left-out";

/// Values of user-defined parameters that conditions test, such as `${flag?{permit}:{reject}}`.
const CONDITIONS: [&str; 6] = ["yes", "no", "true", "false", "1", "0"];

/// Values that Postfix reads in any case.
const ANY_CASE: [&str; 5] = ["yes", "no", "none", "may", "encrypt"];

/// Prefixes by which redaction recognises a restriction of Postfix.
const STARTS: [&str; 6] = [
    "permit",
    "reject",
    "defer",
    "check_",
    "warn_if_reject",
    "sleep",
];

/// Kind of a parameter, which decides which words of its value are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A parameter that Postfix defines: any lower-case word is kept.
    Words,
    /// A user-defined parameter: only restrictions and class names are kept.
    Restrictions,
    /// The list of restriction classes: only its names are kept.
    Names,
    Networks,
    Path,
    Paths,
}

/// Redacts main.cf. Line numbers do not change.
pub(crate) fn redact_main(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.split('\n').collect();
    let classes = list_classes(&lines);
    let mut kind = None;
    let kept = lines.iter().enumerate().map(|(at, line)| {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with('#') {
            return String::new();
        }
        if line.starts_with([' ', '\t']) {
            let kept = kind.map_or_else(String::new, |kind| clean_words(bare, kind, " ", &classes));
            return match kept.is_empty() {
                true => kept,
                false => format!(" {kept}"),
            };
        }
        let Some((name, value)) = line.split_once('=') else {
            kind = None;
            return String::new();
        };
        let (name, value) = (name.trim(), value.trim());
        let first = if value.is_empty() {
            next_part(&lines[at + 1..])
        } else {
            value
        };
        // Without a name, the kept line would begin with a blank, and continue the line before it.
        kind = kind_of(name, first, &classes).filter(|_| !name.is_empty());
        match kind {
            Some(kind) => format!("{name} = {}", clean_words(value, kind, " ", &classes))
                .trim_end()
                .to_owned(),
            None => String::new(),
        }
    });
    kept.collect::<Vec<_>>().join("\n").into_bytes()
}

/// Returns the names of all restriction classes that the lines define.
fn list_classes(lines: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut inside = false;
    for line in lines {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        let mut value = bare;
        if !line.starts_with([' ', '\t']) {
            let (name, rest) = line.split_once('=').unwrap_or((line, ""));
            inside = name.trim() == CLASSES;
            value = rest;
        }
        if inside {
            let words = value.split([' ', ',', '\t', '\r']);
            found.extend(words.filter(|word| is_class(word)).map(str::to_owned));
        }
    }
    found
}

fn is_class(word: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=40).contains(&word.len()) && word.bytes().all(known)
}

/// Returns the first part of a value that begins on the line after its name.
fn next_part<'a>(lines: &[&'a str]) -> &'a str {
    let meant = |line: &&&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    let next = lines.iter().find(meant).copied().unwrap_or_default();
    if next.starts_with([' ', '\t']) {
        next.trim()
    } else {
        ""
    }
}

fn kind_of(name: &str, value: &str, classes: &BTreeSet<String>) -> Option<Kind> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    match name {
        "smtpd_tls_cert_file" | "smtpd_tls_key_file" => Some(Kind::Path),
        "smtpd_tls_chain_files" => Some(Kind::Paths),
        "mynetworks" => Some(Kind::Networks),
        CLASSES => Some(Kind::Names),
        _ if is_asked(name) => Some(Kind::Words),
        _ if name.len() > 40 || !name.bytes().all(plain) => None,
        _ => {
            let mut words = value.split([' ', ',', '\t']);
            let Some(first) = words.find(|word| !word.is_empty()) else {
                // The value of a condition that does not hold.
                return Some(Kind::Words);
            };
            match () {
                () if is_restriction(first)
                    || classes.contains(first)
                    || dnsbl::closed(first).is_some() =>
                {
                    Some(Kind::Restrictions)
                }
                // The value of a condition.
                () if CONDITIONS.contains(&value.trim()) => Some(Kind::Words),
                () if is_network(first) || first == LEFT_OUT => Some(Kind::Networks),
                () => None,
            }
        }
    }
}

fn is_restriction(word: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    word.len() <= 40
        && word.bytes().all(known)
        && STARTS.iter().any(|start| word.starts_with(start))
}

/// Returns whether the word is an address with a prefix length.
fn is_network(word: &str) -> bool {
    let Some((address, bits)) = word.trim_start_matches('!').split_once('/') else {
        return false;
    };
    let known = |byte: u8| byte.is_ascii_hexdigit() || b".:[]".contains(&byte);
    let numbers = address.contains(['.', ':']) && address.bytes().all(known);
    numbers && (1..=3).contains(&bits.len()) && bits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the words of a value that are kept.
fn clean_words(value: &str, kind: Kind, between: &str, classes: &BTreeSet<String>) -> String {
    if kind == Kind::Path {
        // By default the key is in the file of the certificate.
        let other = value.is_empty() || value.starts_with('$');
        return if other { "" } else { kept_path(value) }.to_owned();
    }
    let split = value.split([' ', ',', '\t', '\r']);
    let words = split.filter(|word| !word.is_empty());
    let kept = words.map(|word| match kind {
        Kind::Paths => kept_path(word).to_owned(),
        _ if word.contains(['$', '{', '}']) => clean_macros(word, kind, classes),
        _ => self::clean_word(word, kind, classes),
    });
    kept.collect::<Vec<_>>().join(between)
}

/// Redacts a word that contains macros. Each piece of text between `$`, braces and other special characters is kept or
/// replaced separately.
fn clean_macros(word: &str, kind: Kind, classes: &BTreeSet<String>) -> String {
    let mut out = String::new();
    let mut piece = String::new();
    let flush = |piece: &mut String, out: &mut String| {
        if !piece.is_empty() {
            let text = std::mem::take(piece);
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            // A name follows the sign of a macro; other text is part of the value.
            let named = ["$", "${", "$("].iter().any(|sign| out.ends_with(sign));
            let name = named && text.len() <= 40 && text.bytes().all(plain);
            out.push_str(&match name {
                true => text,
                false => self::clean_word(&text, kind, classes),
            });
        }
    };
    for c in word.chars() {
        if "${}()?:".contains(c) {
            flush(&mut piece, &mut out);
            out.push(c);
        } else {
            piece.push(c);
        }
    }
    flush(&mut piece, &mut out);
    out
}

fn clean_word(word: &str, kind: Kind, classes: &BTreeSet<String>) -> String {
    // An operator between the parts of a condition.
    if word.bytes().all(|byte| b"=!<>?:".contains(&byte)) {
        return word.to_owned();
    }
    // Postfix reads these words in any case (postconf(5)).
    let low = word.to_ascii_lowercase();
    if kind == Kind::Words && ANY_CASE.contains(&low.as_str()) {
        return low;
    }
    let kept = match kind {
        Kind::Networks => return clean_network(word),
        _ if dnsbl::closed(word).is_some() => {
            return dnsbl::closed(word).unwrap_or_default().to_owned();
        }
        Kind::Restrictions => is_restriction(word) || classes.contains(word),
        Kind::Names => is_class(word),
        _ => is_plain(word),
    };
    if kept { word } else { LEFT_OUT }.to_owned()
}

/// Returns whether the word is the lower-case name of a restriction or level. Tables and hosts, which may follow some
/// restrictions, are not.
fn is_plain(word: &str) -> bool {
    let name = word.trim_start_matches('!');
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let own = ["127.0.0.1", "loopback-only"];
    let version = name.starts_with("TLSv1") || name.starts_with("SSLv") || name.starts_with(">=");
    let time = name.len() <= 8 && name.starts_with(|c: char| c.is_ascii_digit());
    let time = time && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    name.len() <= 40
        && secrets::is_plain(name.trim_start_matches(">="))
        && (name.bytes().all(lower) || version || time || own.contains(&name))
}

/// Redacts a network: keeps only whether it covers all addresses, is the machine itself, or is a table.
fn clean_network(word: &str) -> String {
    let (sign, bare) = match word.strip_prefix('!') {
        Some(bare) => ("!", bare),
        None => ("", word),
    };
    let own = [
        "127.0.0.0/8",
        "127.0.0.1/32",
        "127.0.0.1",
        "[::1]/128",
        "[::ffff:127.0.0.0]/104",
    ];
    let bits = bare
        .rsplit_once('/')
        .and_then(|(_, bits)| bits.parse::<u8>().ok());
    let most = if bare.contains(':') { WIDE_V6 } else { WIDE_V4 };
    let wide = is_network(bare) && bits.is_some_and(|bits| bits <= most);
    let table = bare.contains(":/") || bare.starts_with('/');
    match () {
        () if wide || own.contains(&bare) => word.to_owned(),
        () if table => format!("{sign}/table"),
        () => format!("{sign}{LEFT_OUT}"),
    }
}

/// Redacts a line of master.cf: keeps the service and the noted options.
pub(crate) fn redact_master(line: &str) -> String {
    if line.trim_start().starts_with('#') {
        return String::new();
    }
    let goes_on = line.starts_with([' ', '\t']);
    let blank = |c: &char| matches!(c, ' ' | '\t');
    let indent: String = line.chars().take_while(blank).collect();
    let mut fields = line.split_whitespace();
    let mut kept: Vec<String> = Vec::new();
    let none = BTreeSet::new();
    if !goes_on {
        // Name, type, five switches and the command.
        let head: Vec<&str> = fields.by_ref().take(8).collect();
        let plain = |word: &str| {
            let byte = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.:/?[]".contains(&byte)
            };
            word.len() <= 64 && word.bytes().all(byte)
        };
        if head.len() < 8 {
            return String::new();
        }
        // A service with a private name is kept with a placeholder, so that the lines after it are
        // not attributed to another service.
        let named = |word: &str| if plain(word) { word } else { LEFT_OUT }.to_owned();
        kept.extend(head.into_iter().map(named));
    }
    while let Some(word) = fields.next() {
        let mut option = match word.strip_prefix("-o") {
            Some("") => fields.next().unwrap_or_default().to_owned(),
            Some(option) => option.to_owned(),
            None => continue,
        };
        // `-o { name = value }`
        while option.starts_with('{') && !option.ends_with('}') {
            let Some(word) = fields.next() else { break };
            option = format!("{option} {word}");
        }
        let bare = option
            .strip_prefix('{')
            .and_then(|option| option.strip_suffix('}'));
        let asked = bare.unwrap_or(&option).split_once('=');
        let asked = asked.map(|(name, value)| (name.trim(), value.trim()));
        if let Some((name, value)) = asked.filter(|(name, _)| is_asked(name)) {
            let kind = kind_of(name, value, &none).unwrap_or(Kind::Words);
            kept.push(format!(
                "-o {name}={}",
                clean_words(value, kind, ",", &none)
            ));
        }
    }
    match kept.is_empty() {
        true => String::new(),
        false => format!("{indent}{}", kept.join(" ")),
    }
}
