//! Collects the TLS versions and ciphers that Postfix and Dovecot are configured to offer. Each configuration line is
//! one instance. `tls_lines` and `nginx` do the same for web servers.

use super::ciphers::weak;
use super::dovecot::Scope;
use super::postfix::KEYS;
use crate::gather::Gather;
use assay_config::effective::{Effective, ScopeId, Setting, expand_macros};
use assay_model::{FactKind, FactPlace};

/// SSL versions, and TLS versions that RFC 8996 deprecates.
const SSL: [&str; 2] = ["SSLv2", "SSLv3"];
const OLD: [&str; 2] = ["TLSv1", "TLSv1.1"];
const ORDER: [&str; 6] = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

/// A configuration line that sets TLS versions or ciphers.
struct Line<'a> {
    which: String,
    program: &'static str,
    setting: &'a str,
    place: FactPlace,
    ssl: Vec<&'static str>,
    old: Vec<&'static str>,
    weak: Vec<String>,
}

fn note(g: &mut Gather<'_>, line: Line<'_>) {
    let which = line.which;
    let place = line.place;
    let mut note = |what: &str, value: serde_json::Value| {
        let fact = format!("mail_tls.{which}.{what}");
        g.facts
            .known(fact, value, FactKind::Configured, place.clone());
    };
    note("ssl", line.ssl.into());
    note("old_tls", line.old.into());
    note("weak_ciphers", line.weak.into());
    note("setting", line.setting.into());
    note("program", line.program.into());
    g.about(["mail_tls", &which]);
}

/// Notes the TLS lines of Postfix if at least one of its services offers TLS.
pub(super) fn postfix(g: &mut Gather<'_>, all: &Effective) {
    if !all.scopes().any(|(id, _)| speaks_tls(all, id)) {
        return;
    }
    for (id, scope) in all.scopes() {
        let name = match id {
            ScopeId::ROOT => "main.cf".to_owned(),
            _ => scope.head.join("/"),
        };
        for (key, _) in KEYS.iter().filter(|(key, _)| key.starts_with("smtpd_tls_")) {
            let said = all.value(id, key).filter(|said| said.scope == id);
            let Some(said) = said else { continue };
            let text = expand_macros(all, id, &said.text());
            let (ssl, old, weak) = match *key {
                "smtpd_tls_protocols" => (list_named_versions(&text, &SSL), Vec::new(), Vec::new()),
                // For mandatory encryption a weak version is worse than none.
                "smtpd_tls_mandatory_protocols" => (
                    list_named_versions(&text, &SSL),
                    list_named_versions(&text, &OLD),
                    Vec::new(),
                ),
                "smtpd_tls_ciphers" | "smtpd_tls_mandatory_ciphers" => {
                    (Vec::new(), Vec::new(), list_weak_ciphers(&text))
                }
                _ => continue,
            };
            let (which, place) = (format!("postfix-{name}-{key}"), place_of_setting(said));
            let (program, setting) = ("Postfix", *key);
            note(
                g,
                Line {
                    which,
                    program,
                    setting,
                    place,
                    ssl,
                    old,
                    weak,
                },
            );
        }
    }
}

fn place_of_setting(said: &Setting) -> FactPlace {
    FactPlace::from(&said.place)
}

/// Returns whether a service offers TLS (postconf(5), smtpd_tls_security_level).
fn speaks_tls(all: &Effective, id: ScopeId) -> bool {
    let word = |key: &str| {
        all.value(id, key)
            .map(|said| said.text().trim().to_ascii_lowercase())
    };
    let yes = |key: &str| word(key).as_deref() == Some("yes");
    match word("smtpd_tls_security_level").as_deref() {
        None | Some("") => {
            yes("smtpd_use_tls") || yes("smtpd_enforce_tls") || yes("smtpd_tls_wrappermode")
        }
        Some(level) => level != "none" || yes("smtpd_tls_wrappermode"),
    }
}

/// Returns the TLS versions that a Postfix list includes by name. A word adds a version, `!` removes it permanently;
/// since 3.6, `>=` and `<=` are bounds. The result is empty for a list that contains only `!` words, which permits all
/// other versions of the library.
fn list_named_versions(list: &str, versions: &[&'static str]) -> Vec<&'static str> {
    let words: Vec<&str> = list
        .split([' ', ',', '\t', ':', '\n', '\r'])
        .filter(|word| !word.is_empty())
        .collect();
    let at = |name: &str| {
        ORDER
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name))
    };
    let is = |version: &str, name: &str| version.eq_ignore_ascii_case(name);
    let bound = |sign: &str| words.iter().find_map(|word| at(word.strip_prefix(sign)?));
    let (least, most) = (bound(">="), bound("<="));
    let offered = |version: &&&'static str| {
        let excluded = words
            .iter()
            .any(|word| word.strip_prefix('!').is_some_and(|name| is(version, name)));
        let included = words.iter().any(|word| is(version, word));
        let inside = least.is_some_and(|least| {
            at(version).is_some_and(|at| at >= least && most.is_none_or(|most| at <= most))
        });
        !excluded && (included || inside)
    };
    versions.iter().filter(offered).copied().collect()
}

/// Returns the broken ciphers of a cipher grade (postconf(5), smtpd_tls_mandatory_ciphers).
fn list_weak_ciphers(text: &str) -> Vec<String> {
    let grades = ["export", "low", "null"];
    let text = text.trim().to_ascii_lowercase();
    grades
        .iter()
        .filter(|grade| **grade == text)
        .map(|grade| (*grade).to_owned())
        .collect()
}

/// Notes the TLS lines of Dovecot unless TLS is off.
pub(super) fn dovecot(g: &mut Gather<'_>, scopes: &[Scope]) {
    for scope in scopes
        .iter()
        .filter(|scope| scope.value(scopes, "ssl") != Some("no"))
    {
        for (setting, value, place) in &scope.own {
            let (ssl, old, weak) = match setting.as_str() {
                "ssl_min_protocol" => {
                    let lowest = |versions: &[&'static str]| {
                        let is = |version: &&&'static str| version.eq_ignore_ascii_case(value);
                        versions.iter().filter(is).copied().collect::<Vec<_>>()
                    };
                    // ANY permits all versions of the library, whose own configuration may limit
                    // them.
                    (lowest(&SSL), lowest(&OLD), Vec::new())
                }
                "ssl_protocols" => (
                    list_named_versions(value, &SSL),
                    list_named_versions(value, &OLD),
                    Vec::new(),
                ),
                "ssl_cipher_list" => (Vec::new(), Vec::new(), weak(value)),
                _ => continue,
            };
            let which = format!("dovecot-{}-{setting}", scope.name);
            let (program, place) = ("Dovecot", place.clone());
            note(
                g,
                Line {
                    which,
                    program,
                    setting,
                    place,
                    ssl,
                    old,
                    weak,
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_a_list() {
        for (list, expected) in [
            ("SSLv3, TLSv1", vec!["SSLv3"]),
            ("!SSLv2, !SSLv3", vec![]),
            ("!SSLv2", vec![]),
            ("SSLv3 !SSLv3", vec![]),
            (">=TLSv1.2", vec![]),
            (">=SSLv3", vec!["SSLv3"]),
            (">=SSLv2, <=SSLv2", vec!["SSLv2"]),
            ("sslv3:TLSv1.2", vec!["SSLv3"]),
            ("", vec![]),
        ] {
            assert_eq!(list_named_versions(list, &SSL), expected, "{list}");
        }
    }
}
