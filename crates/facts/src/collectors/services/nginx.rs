//! Collects the TLS and header settings of each nginx block.

use super::scopes::{Take, names, note_own_settings};
use crate::collectors::nginx::FILE;
use crate::gather::Gather;
use crate::harmless::{PATH_WITHHELD, is_path};
use assay_config::effective::{Effective, Program, ScopeId};
use assay_model::{FactKind, FactPlace};

/// Settings of nginx blocks that are noted.
const KEYS: [(&str, Take); 6] = [
    ("ssl_protocols", Take::List),
    ("ssl_ciphers", Take::List),
    ("add_header", Take::Names),
    ("ssl", Take::Word),
    ("autoindex", Take::Word),
    ("spdy_headers_comp", Take::Word),
];

/// Versions of TLS in nginx's spelling.
const PROTOCOLS: [&str; 6] = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

/// Headers that a check uses. The names of other headers may be private.
const HEADERS: [&str; 4] = [
    "Public-Key-Pins",
    "Public-Key-Pins-Report-Only",
    "Strict-Transport-Security",
    "Expect-CT",
];

/// Words of OpenSSL's cipher strings that contain lower-case letters.
pub(crate) const ALIASES: [&str; 10] = [
    "aNULL", "eNULL", "kRSA", "kEDH", "kECDH", "kECDHE", "kDHE", "aRSA", "aECDSA", "SSLv3",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(all) = g.configuration("nginx", Program::Nginx, FILE) else {
        return;
    };
    for (id, name) in names(&all) {
        note_own_settings(g, &all, id, &["nginx.scope", &name], &KEYS);
        note_pins(g, &all, id, &name);
        note_unused_listing(g, &all, id, &name);
        weak_ciphers(g, &all, id, &name);
        g.about(["nginx.scope", &name]);
    }
}

/// Notes that every server overrides `autoindex`, so that the line outside of the servers has no effect.
fn note_unused_listing(g: &mut Gather<'_>, all: &Effective, id: ScopeId, name: &str) {
    let is_server = |id: ScopeId| {
        all.scope(id)
            .head
            .first()
            .is_some_and(|head| head == "server")
    };
    let said = all
        .get(id, "autoindex")
        .into_iter()
        .rfind(|said| said.scope == id);
    let Some(said) = said else { return };
    let inside = |scope: ScopeId| {
        std::iter::successors(Some(scope), |id| all.scope(*id).parent).any(|outer| outer == id)
    };
    let mut servers = all
        .scopes()
        .map(|(scope, _)| scope)
        .filter(|scope| is_server(*scope) && *scope != id && inside(*scope))
        .peekable();
    let own =
        |server: ScopeId| all.value(server, "autoindex").map(|said| said.scope) == Some(server);
    if servers.peek().is_some() && servers.all(own) {
        let fact = format!("nginx.scope.{name}.autoindex_unused");
        g.facts.known(
            fact,
            true,
            FactKind::Configured,
            FactPlace::from(&said.place),
        );
    }
}

/// Notes whether a scope sends public-key pins to browsers. An age of zero removes the pins (RFC 7469, section 2.3.3).
fn note_pins(g: &mut Gather<'_>, all: &Effective, id: ScopeId, name: &str) {
    let said = all.get(id, "add_header").into_iter();
    let mut pins = said.filter(|said| {
        let header = said.word().unwrap_or_default().to_ascii_lowercase();
        said.scope == id && header.starts_with("public-key-pins")
    });
    let Some(first) = pins.next() else { return };
    let keeps = std::iter::once(first)
        .chain(pins)
        .find(|said| !takes_back(&said.text()));
    let fact = format!("nginx.scope.{name}.pins");
    let place = FactPlace::from(&keeps.unwrap_or(first).place);
    g.facts
        .known(fact, keeps.is_some(), FactKind::Configured, place);
}

fn weak_ciphers(g: &mut Gather<'_>, all: &Effective, id: ScopeId, name: &str) {
    let mut said = all.get(id, "ssl_ciphers").into_iter();
    if let Some(said) = said.rfind(|said| said.scope == id) {
        let fact = format!("nginx.scope.{name}.weak_ciphers");
        let weak = super::ciphers::weak(&said.word().unwrap_or_default());
        g.facts.known(
            fact,
            weak,
            FactKind::Configured,
            FactPlace::from(&said.place),
        );
    }
}

/// Returns whether a header value sets an age of zero, which tells browsers to delete the stored header.
fn takes_back(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let mut parts = value
        .split([';', ' ', '"', '\''])
        .filter(|part| !part.is_empty());
    let zero = |age: &str| !age.is_empty() && age.bytes().all(|byte| byte == b'0');
    parts.any(|part| part.strip_prefix("max-age=").is_some_and(zero))
}

/// Redacts the value of a directive. Returns `None` for a directive that no check uses.
pub(crate) fn kept(name: &str, value: &str) -> Option<String> {
    let words = || {
        value
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']))
    };
    match name {
        "ssl_protocols" => {
            let known: Vec<&str> = words().filter(|word| PROTOCOLS.contains(word)).collect();
            (!known.is_empty()).then(|| known.join(" "))
        }
        "ssl_ciphers" => {
            let list = words().next().unwrap_or_default();
            let known: Vec<&str> = list
                .split(':')
                .filter(|word| is_cipher_word(word))
                .collect();
            (!known.is_empty()).then(|| known.join(":"))
        }
        "add_header" => {
            let name = words().next()?;
            let known = HEADERS
                .iter()
                .find(|known| known.eq_ignore_ascii_case(name))?;
            let age = if takes_back(value) {
                "max-age=0"
            } else {
                "withheld"
            };
            Some(format!("{known} {age}"))
        }
        "ssl_certificate" | "ssl_certificate_key" => {
            let path = words().next().unwrap_or_default();
            let whole = format!("/{}", path.trim_start_matches('/'));
            let one = value.split_whitespace().count() == 1;
            Some(
                if one && is_path(&whole) {
                    path
                } else {
                    PATH_WITHHELD
                }
                .to_owned(),
            )
        }
        "ssl" | "autoindex" => matches!(value, "on" | "off").then(|| value.to_owned()),
        _ => None,
    }
}

fn is_cipher_word(word: &str) -> bool {
    let name = word.trim_start_matches(['!', '-', '+']);
    let capital =
        |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_+@=".contains(&byte);
    let known = ALIASES.contains(&name);
    !name.is_empty() && name.len() <= 64 && (known || name.bytes().all(capital))
}
