//! Removes secrets from text that was read on a machine. This module contains all rules for secrets. In addition, each
//! collector has lists of harmless text, and returns only text in these lists.

mod command_words;

pub use command_words::withhold_in_words;

use serde_json::Value;

/// Text that replaces a removed value.
pub const WITHHELD: &str = "(value withheld)";

/// Parts that mark a name as that of a secret, anywhere in the name.
const PARTS: [&str; 10] = [
    "passw",
    "passphrase",
    "secret",
    "token",
    "credential",
    "cookie",
    "apikey",
    "privatekey",
    "accesskey",
    "authoriz",
];

/// Words that mark a name as that of a secret. A word is delimited by characters that are not letters.
const WORDS: [&str; 17] = [
    "pass",
    "pw",
    "pwd",
    "psk",
    "key",
    "keys",
    "keyid",
    "auth",
    "userpwd",
    "chap",
    "otp",
    "sig",
    "signature",
    "sas",
    "salt",
    "bearer",
    "login",
];

/// Names of HTTP headers whose value is always a secret, also if the name is followed by a colon.
const HEADERS: [&str; 10] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "x-api-key",
];

/// Returns whether a name is probably that of a secret: `db.api_key`, `luks.pw`, `cipassword`.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let joined: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    PARTS.iter().any(|part| joined.contains(part))
        || name
            .split(|c: char| !c.is_ascii_alphabetic())
            .any(|word| WORDS.contains(&word))
}

/// Returns whether a value is harmless: a number, a word, or a list of numbers and words. Such a value has at most 128
/// letters, digits and `_.,:+/%-`, and is not a URL.
#[must_use]
pub fn is_plain(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.,:+/%-".contains(c);
    !value.is_empty() && value.len() <= 128 && value.chars().all(plain) && !value.contains("//")
}

/// Returns whether a value consists of absolute paths, without characters of URLs and queries.
#[must_use]
pub fn is_path(value: &str) -> bool {
    value.starts_with('/')
        && !value.contains("//")
        && !value.contains(['?', '=', '&', ' ', '"', '\'', '\n'])
        && value.len() <= 8192
}

/// Returns the value if it is harmless or empty, else [`WITHHELD`].
#[must_use]
pub fn withhold_value(value: &str) -> &str {
    match value.is_empty() || is_plain(value) {
        true => value,
        false => WITHHELD,
    }
}

/// Removes probable secrets from free text, such as an error message of a tool. Removed are user names and queries in
/// URLs, values of `NAME=VALUE` and `"NAME": "VALUE"` whose name marks a secret, headers, and private keys. Applying
/// this twice changes nothing.
///
/// This function is the last line of defence: it cannot detect a secret without a name before it.
#[must_use]
pub fn withhold_in_text(text: &str) -> String {
    let mut clean = withhold_once(text);
    for _ in 0..ROUNDS {
        let again = withhold_once(&clean);
        if again == clean {
            return clean;
        }
        clean = again;
    }
    WITHHELD.to_owned()
}

/// Maximum number of passes. After a removal, the remaining text around the gap may look like another secret, so
/// another pass is needed. Normal text needs fewer passes.
const ROUNDS: usize = 8;

fn withhold_once(text: &str) -> String {
    let keys = private_keys(text);
    let lines: Vec<String> = keys
        .split('\n')
        .map(|line| withhold_values(&withhold_in_urls(&withhold_quoted(line))))
        .collect();
    lines.join("\n")
}

/// Removes probable secrets from all strings of a JSON document, like [`withhold_in_text`].
pub fn json(value: &mut Value) {
    match value {
        Value::String(string) => {
            let clean = withhold_in_text(string);
            if clean != *string {
                *string = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(json),
        Value::Object(members) => members.values_mut().for_each(json),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn private_keys(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, block) = rest.split_at(at);
        let label = block[BEGIN.len()..].split("-----").next().unwrap_or("");
        if !label.contains("PRIVATE KEY") {
            let (head, tail) = block.split_at(BEGIN.len());
            out.push_str(before);
            out.push_str(head);
            rest = tail;
            continue;
        }
        out.push_str(before);
        out.push_str(WITHHELD);
        let end = block.find(END).map_or(block.len(), |end| {
            let after = &block[end + END.len()..];
            let dashes = after.find("-----").map_or(after.len(), |dash| dash + 5);
            end + END.len() + dashes
        });
        rest = &block[end..];
    }
    out.push_str(rest);
    out
}

/// Removes the quoted value from a message of serde about a wrong type.
fn withhold_quoted(line: &str) -> String {
    const MARK: &str = ": string \"";
    const END: &str = "\", expected";
    match (line.find(MARK), line.rfind(END)) {
        (Some(at), Some(end)) if at + MARK.len() <= end => {
            let (head, tail) = (&line[..at + MARK.len()], &line[end..]);
            format!("{head}{WITHHELD}{tail}")
        }
        _ => line.to_owned(),
    }
}

/// Returns whether a character ends a URL in a text.
fn ends_address(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '\0')
}

/// Removes user names, passwords and queries from the URLs in a text.
#[must_use]
pub fn withhold_in_urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        // Text that was cleaned before contains a blank and stays unchanged.
        let user = format!("{WITHHELD}@");
        let (known, after) = match after.strip_prefix(&user) {
            Some(after) => (true, after),
            None => (false, after),
        };
        let end = after.find(ends_address).unwrap_or(after.len());
        let (address, tail) = after.split_at(end);
        // A password may contain any separator, so the last `@` counts.
        let (login, place) = match address.rfind('@') {
            Some(at) => (true, &address[at + 1..]),
            None => (known, address),
        };
        let (place, query) = place.split_at(place.find(['?', '#']).unwrap_or(place.len()));
        if login {
            out.push_str(&user);
        }
        out.push_str(place);
        rest = tail;
        // The path of a local socket is not a secret.
        let socket = query.strip_prefix("?socket=");
        if socket.is_some_and(|path| !path.contains(['&', '=', '#'])) {
            out.push_str(query);
        } else if !query.is_empty() {
            out.push_str(&query[..1]);
            out.push_str(WITHHELD);
            let again = WITHHELD.split_once(' ').map_or("", |(_, word)| word);
            if query[1..] == WITHHELD[..WITHHELD.len() - again.len() - 1] {
                rest = tail.strip_prefix(&format!(" {again}")).unwrap_or(tail);
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// Returns the name before a separator, whether a quotation mark follows the name, and whether the name is the end of a
/// path. There may be blanks between name and separator.
fn name_before(text: &str) -> (&str, bool, bool) {
    let bare = text.trim_end();
    let (bare, quoted) = match bare.strip_suffix(['"', '\'']) {
        Some(inner) => (inner, true),
        None => (bare, false),
    };
    let start = bare.rfind(|c| !is_name(c)).map_or(0, |at| {
        at + bare[at..].chars().next().map_or(1, char::len_utf8)
    });
    (&bare[start..], quoted, bare[..start].ends_with('/'))
}

fn withhold_values(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['=', ':']) {
        let separator = &rest[at..=at];
        let (name, quoted, path) = name_before(&rest[..at]);
        let lower = name.to_ascii_lowercase();
        // The text after `/etc/passwd:` is a line number or an error message.
        let header = !path && HEADERS.contains(&lower.as_str());
        let secret = match separator {
            "=" => names_a_secret(name),
            // Prose contains colons too.
            _ => header || (quoted && names_a_secret(name)),
        };
        out.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let address = separator == ":" && rest.starts_with("//");
        if !secret || address {
            continue;
        }
        let value = rest.trim_start();
        let blanks = &rest[..rest.len() - value.len()];
        out.push_str(blanks);
        rest = value;
        if let Some(after) = value.strip_prefix(WITHHELD) {
            out.push_str(WITHHELD);
            rest = after;
            continue;
        }
        let (taken, quote) = value_extent(value, separator == ":" && !quoted);
        if taken == 0 {
            continue;
        }
        out.push_str(quote);
        out.push_str(WITHHELD);
        if taken > quote.len() && value[..taken].ends_with(quote) {
            out.push_str(quote);
        }
        rest = &value[taken..];
    }
    out.push_str(rest);
    out
}

/// Returns the length of a value in bytes, and the quotation mark around it.
fn value_extent(value: &str, to_the_end: bool) -> (usize, &str) {
    let quote = match value.as_bytes().first() {
        Some(b'"' | b'\'') => &value[..1],
        _ => "",
    };
    if !quote.is_empty() {
        if value[1..].starts_with(WITHHELD) {
            return (0, "");
        }
        let mut escaped = false;
        for (at, c) in value[1..].char_indices() {
            match c {
                '\\' if !escaped => escaped = true,
                c if !escaped && quote.starts_with(c) => return (at + 2, quote),
                _ => escaped = false,
            }
        }
        return (value.len(), quote);
    }
    if to_the_end {
        return (value.len(), "");
    }
    let end = value.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '\0'));
    (end.unwrap_or(value.len()), "")
}

#[cfg(test)]
mod tests;
