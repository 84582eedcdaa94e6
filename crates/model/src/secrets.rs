//! What must not leave the machine: the rules by which text of a machine is cleaned. One home for all
//! of them; what a source may say at all is decided where it is read, by lists of what is harmless.

mod words;

pub use words::withhold_in_words;

use serde_json::Value;

/// Stands where a value was left out.
pub const WITHHELD: &str = "(value withheld)";

/// Parts of names under which secrets are kept, wherever in the name they stand.
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

/// Words of names, between characters that are no letters.
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

/// Names that are always followed by a secret, also behind a colon.
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

/// Whether secrets are kept under such a name: `db.api_key`, `luks.pw`, `cipassword`.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let joined: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    PARTS.iter().any(|part| joined.contains(part))
        || name
            .split(|c: char| !c.is_ascii_alphabetic())
            .any(|word| WORDS.contains(&word))
}

/// Letters, digits and `_.,:+/%-`, at most 128 of them, and no address of the web: a number, a word, a
/// list of them.
#[must_use]
pub fn is_plain(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.,:+/%-".contains(c);
    !value.is_empty() && value.len() <= 128 && value.chars().all(plain) && !value.contains("//")
}

/// An absolute path, or several behind one another, without what only addresses and queries have.
#[must_use]
pub fn is_path(value: &str) -> bool {
    value.starts_with('/')
        && !value.contains("//")
        && !value.contains(['?', '=', '&', ' ', '"', '\'', '\n'])
        && value.len() <= 8192
}

/// The value where it is plain or empty, else [`WITHHELD`].
#[must_use]
pub fn withhold_value(value: &str) -> &str {
    match value.is_empty() || is_plain(value) {
        true => value,
        false => WITHHELD,
    }
}

/// Free text, such as what a tool complains about, without what looks like a secret: who logs in, and
/// what is asked, in addresses of the web; values of `NAME=VALUE` and `"NAME": "VALUE"` under names of
/// secrets; headers; private keys. Cleaning twice changes nothing.
///
/// This is the last net and not the first: it cannot know a secret that stands alone.
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

/// What is left of one key may join with what stood around it to another one. Nobody's text does so more
/// often than this.
const ROUNDS: usize = 8;

fn withhold_once(text: &str) -> String {
    let keys = private_keys(text);
    let lines: Vec<String> = keys
        .split('\n')
        .map(|line| withhold_values(&withhold_in_urls(&withhold_quoted(line))))
        .collect();
    lines.join("\n")
}

/// The strings of a document, each cleaned as [`text`].
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

/// What serde says of a value of the wrong type, without the value.
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

/// What ends an address of the web in a text.
fn ends_address(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '\0')
}

/// Addresses of the web without users, passwords and queries.
#[must_use]
pub fn withhold_in_urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        // What was cleaned before stays: it holds a blank.
        let user = format!("{WITHHELD}@");
        let (known, after) = match after.strip_prefix(&user) {
            Some(after) => (true, after),
            None => (false, after),
        };
        let end = after.find(ends_address).unwrap_or(after.len());
        let (address, tail) = after.split_at(end);
        // A password may hold anything that parts an address, so the last `@` counts.
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
        // A socket of this machine is no secret.
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

/// The name that ends before a separator, with blanks and a closing quotation mark between; whether there is
/// such a mark, and whether the name is the end of a path.
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
        // What follows `/etc/passwd:` is a line of that file's number, or why it cannot be read.
        let header = !path && HEADERS.contains(&lower.as_str());
        let secret = match separator {
            "=" => names_a_secret(name),
            // Prose has colons too.
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

/// How many bytes a value takes, and its quotation mark.
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
