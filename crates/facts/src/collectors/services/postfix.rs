//! Postfix: main.cf with its defaults, and what services in master.cf say otherwise.

use super::dnsbl;
use super::scopes::{Take, own};
use crate::gather::Gather;
use crate::harmless::is_path;
use assay_conf::effective::{Effective, Program, ScopeId, Setting};
use assay_model::change::ConfigLanguage;
use assay_model::{FactKind, Place, secrets};
use std::collections::BTreeMap;
#[cfg(test)]
use std::path::Path;

pub(crate) const MAIN: &str = "/etc/postfix/main.cf";
pub(crate) const MASTER: &str = "/etc/postfix/master.cf";

/// Times, in seconds, and their defaults in Postfix 3.7 (postconf(5)).
const TIMES: [(&str, u64); 6] = [
    ("maximal_queue_lifetime", 5 * 86400),
    ("bounce_queue_lifetime", 5 * 86400),
    ("delay_warning_time", 0),
    ("minimal_backoff_time", 300),
    ("maximal_backoff_time", 4000),
    ("queue_run_delay", 300),
];

/// What else is asked, of main.cf and of every service.
const KEYS: [(&str, Take); 20] = [
    ("smtpd_tls_security_level", Take::Word),
    ("smtp_tls_security_level", Take::Word),
    ("smtpd_tls_protocols", Take::List),
    ("smtpd_tls_mandatory_protocols", Take::List),
    ("smtp_tls_protocols", Take::List),
    ("smtp_tls_mandatory_protocols", Take::List),
    ("smtpd_tls_ciphers", Take::Word),
    ("smtpd_tls_auth_only", Take::Word),
    ("smtpd_sasl_auth_enable", Take::Word),
    ("smtpd_relay_restrictions", Take::List),
    ("smtpd_recipient_restrictions", Take::List),
    ("mynetworks_style", Take::Word),
    ("disable_vrfy_command", Take::Word),
    ("soft_bounce", Take::Word),
    ("smtpd_client_restrictions", Take::List),
    ("smtpd_helo_restrictions", Take::List),
    ("smtpd_sender_restrictions", Take::List),
    ("smtpd_data_restrictions", Take::List),
    ("smtpd_end_of_data_restrictions", Take::List),
    ("postscreen_dnsbl_sites", Take::List),
];

/// Programs that read a time: those of Postfix 3.7.11 in which its name stands (a test looks there).
/// bounce(8) only writes some of them into its texts. Options of other services change nothing.
const READERS: [(&str, &[&str]); 6] = [
    ("maximal_queue_lifetime", MANAGERS),
    ("bounce_queue_lifetime", MANAGERS),
    ("delay_warning_time", &["cleanup"]),
    (
        "minimal_backoff_time",
        &["qmgr", "nqmgr", "oqmgr", "smtp", "lmtp"],
    ),
    ("maximal_backoff_time", MANAGERS),
    (
        "queue_run_delay",
        &["qmgr", "nqmgr", "oqmgr", "smtp", "lmtp"],
    ),
];

/// Programs that manage the queue.
const MANAGERS: &[&str] = &["qmgr", "nqmgr", "oqmgr"];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(all) = g.configuration("postfix", Program::Postfix, MAIN) else {
        return;
    };
    let commands = commands(g);
    for (id, scope) in all.scopes() {
        let name = match id {
            ScopeId::ROOT => "main.cf".to_owned(),
            _ => scope.head.join("/"),
        };
        let subject = ["postfix.service", &name];
        own(g, &all, id, &subject, &KEYS);
        if id != ScopeId::ROOT {
            unread(g, &all, id, &name, commands.get(&name));
        }
        closed_lists(g, &all, id, &name);
        let manages = id == ScopeId::ROOT
            || commands
                .get(&name)
                .is_some_and(|command| MANAGERS.contains(&command.as_str()));
        let fact = format!("postfix.service.{name}.manages_the_queue");
        let place = Place::from(&scope.place);
        g.facts.known(fact, manages, FactKind::Configured, place);
        for (key, default) in TIMES {
            let fact = format!("postfix.service.{name}.{key}");
            let said = all.get(id, key);
            match said.iter().find(|said| said.scope == id) {
                Some(said) => {
                    let place = Place::from(&said.place);
                    match seconds(&said.text(), key) {
                        Some(value) => {
                            g.facts.known(fact, value, FactKind::Configured, place);
                        }
                        None => g.facts.unknown(
                            fact,
                            "no time that is understood here",
                            FactKind::Configured,
                            place,
                        ),
                    }
                }
                None if id == ScopeId::ROOT => {
                    let place = Place::Words("postconf(5), Postfix 3.7".to_owned());
                    g.facts.known(fact, default, FactKind::Default, place);
                }
                None => {}
            }
        }
        g.about(subject);
    }
}

/// The program of each service, by name and type: the eighth field of its last line (master(5)).
fn commands(g: &mut Gather<'_>) -> BTreeMap<String, String> {
    let Some(text) = g.read("postfix", MASTER) else {
        return BTreeMap::new();
    };
    let service = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().take(8).collect();
        let ours = !line.starts_with([' ', '\t', '#']) && fields.len() == 8;
        ours.then(|| (fields[..2].join("/"), fields[7].to_owned()))
    };
    text.lines().filter_map(service).collect()
}

/// Options that the program of a service does not read.
fn unread(g: &mut Gather<'_>, all: &Effective, id: ScopeId, name: &str, command: Option<&String>) {
    let Some(command) = command else { return };
    let dead: Vec<&Setting> = all
        .settings()
        .iter()
        .filter(|said| said.scope == id)
        .filter(|said| {
            let mut known = READERS.iter().filter(|(key, _)| *key == said.key);
            known.any(|(_, readers)| !readers.contains(&command.as_str()))
        })
        .collect();
    let Some(first) = dead.first() else { return };
    let place = Place::from(&first.place);
    let keys: Vec<&str> = dead.iter().map(|said| said.key.as_str()).collect();
    let mut note = |what: &str, value: serde_json::Value| {
        let fact = format!("postfix.service.{name}.{what}");
        g.facts
            .known(fact, value, FactKind::Configured, place.clone());
    };
    note("unread_options", keys.into());
    note("program", command.as_str().into());
}

/// DNS lists that were closed, where a client is judged by them.
fn closed_lists(g: &mut Gather<'_>, all: &Effective, id: ScopeId, name: &str) {
    let said = all.settings().iter().filter(|said| said.scope == id);
    let found: Vec<(&Setting, &'static str)> = said
        .filter(|said| is_asked(&said.key))
        .flat_map(|said| {
            let zones = dnsbl::closed_in(&said.text()).into_iter();
            zones.map(move |zone| (said, zone))
        })
        .collect();
    let Some((first, _)) = found.first() else {
        return;
    };
    let mut zones: Vec<&str> = found.iter().map(|(_, zone)| *zone).collect();
    zones.dedup();
    let fact = format!("postfix.service.{name}.closed_lists");
    let place = Place::from(&first.place);
    g.facts.known(fact, zones, FactKind::Configured, place);
}

/// A time of Postfix; without a unit it has that of the parameter's default (postconf(5)).
fn seconds(text: &str, key: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let usual = match key {
        "maximal_queue_lifetime" | "bounce_queue_lifetime" => "d",
        "delay_warning_time" => "h",
        _ => "s",
    };
    let unit = match &text[digits..] {
        "" => usual,
        unit => unit,
    };
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        "w" => 7 * 86400,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// The parameters that are asked for.
pub(crate) fn names() -> Vec<&'static str> {
    let keys = KEYS.iter().map(|(key, _)| *key);
    keys.chain(TIMES.iter().map(|(key, _)| *key)).collect()
}

fn is_asked(name: &str) -> bool {
    names().contains(&name)
}

/// Names of restrictions and levels are in lower case; what follows some of them is a table or a host.
fn words(value: &str) -> String {
    let plain = |word: &&str| {
        let name = word.trim_start_matches('!');
        let word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let version =
            name.starts_with("TLSv1") || name.starts_with("SSLv") || name.starts_with(">=");
        let time = name.len() <= 8 && name.starts_with(|c: char| c.is_ascii_digit());
        let time = time && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        name.len() <= 40
            && secrets::is_plain(name.trim_start_matches(">="))
            && (name.bytes().all(word) || version || time)
    };
    let split = value.split([' ', ',', '\t']);
    let kept = |word: &'_ str| match dnsbl::closed(word) {
        Some(zone) => Some(zone.to_owned()),
        None => plain(&word).then(|| word.to_owned()),
    };
    split
        .filter(|word| !word.is_empty())
        .filter_map(kept)
        .collect::<Vec<_>>()
        .join(" ")
}

/// What a capture keeps of main.cf.
pub(crate) fn redact_main(text: &[u8]) -> Vec<u8> {
    let kept = |name: &str, value: &str| match name {
        "smtpd_tls_cert_file" | "smtpd_tls_key_file" => {
            is_path(value.trim()).then(|| value.trim().to_owned())
        }
        "smtpd_tls_chain_files" => {
            let paths = value.split([' ', ',', '\t', '\n', '\r']);
            let kept: Vec<&str> = paths.filter(|path| is_path(path)).collect();
            (!kept.is_empty()).then(|| kept.join(" "))
        }
        name => is_asked(name).then(|| words(value)),
    };
    assay_conf::outline(ConfigLanguage::Postfix, text, &kept)
}

/// What a capture keeps of a line of master.cf: the service, and the options that are asked for.
pub(crate) fn redact_master(line: &str) -> String {
    if line.trim_start().starts_with('#') {
        return String::new();
    }
    let goes_on = line.starts_with([' ', '\t']);
    let indent: String = line
        .chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect();
    let mut fields = line.split_whitespace();
    let mut kept: Vec<String> = Vec::new();
    if !goes_on {
        // Name, type, five switches and the command.
        let head: Vec<&str> = fields.by_ref().take(8).collect();
        let plain = |word: &str| {
            let byte = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.:/?".contains(&byte)
            };
            word.len() <= 64 && word.bytes().all(byte)
        };
        if head.len() < 8 {
            return String::new();
        }
        // A service that cannot be named is still one: what follows belongs to no other.
        let named = |word: &str| if plain(word) { word } else { "left-out" }.to_owned();
        kept.extend(head.into_iter().map(named));
    }
    while let Some(word) = fields.next() {
        let option = match word.strip_prefix("-o") {
            Some("") => fields.next().unwrap_or_default(),
            Some(option) => option,
            None => continue,
        };
        let asked = option.split_once('=').filter(|(name, _)| is_asked(name));
        if let Some((name, value)) = asked {
            let value = words(value).replace(' ', ",");
            kept.push(format!("-o {name}={value}"));
        }
    }
    match kept.is_empty() {
        true => String::new(),
        false => format!("{indent}{}", kept.join(" ")),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "reads Postfix's own programs")]
mod tests {
    use super::*;

    /// A program that reads a parameter has its name in it.
    #[test]
    fn programs_of_postfix_read_what_the_table_says() {
        const DIR: &str = "/usr/lib/postfix/sbin";
        if !Path::new(DIR).join("qmgr").exists() {
            return assay_testing::skipped("postfix", "not installed");
        }
        let programs = [
            "qmgr", "oqmgr", "nqmgr", "cleanup", "smtp", "lmtp", "smtpd", "local", "pipe",
            "virtual", "pickup", "showq",
        ];
        let mut looked = 0;
        for program in programs {
            let Ok(text) = std::fs::read(Path::new(DIR).join(program)) else {
                continue;
            };
            for (key, readers) in READERS {
                let named = text
                    .windows(key.len() + 1)
                    .any(|part| part[..key.len()] == *key.as_bytes() && part[key.len()] == 0);
                assert_eq!(named, readers.contains(&program), "{program} {key}");
                looked += 1;
            }
        }
        assert!(looked >= 40, "{looked}");
    }
}
