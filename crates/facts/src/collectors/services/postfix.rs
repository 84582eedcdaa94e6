//! Collects the parameters of Postfix from main.cf with its defaults, and the overrides of services in master.cf.
//! `postfix_redact` redacts both files for a capture.

use super::scopes::{Take, note_own_settings};
use super::{mail_tls, postfix_lists, postfix_login, postfix_relay};
use crate::gather::Gather;
use assay_config::effective::{Effective, Program, ScopeId, Setting};
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeMap;
#[cfg(test)]
use std::path::Path;

pub(crate) const MAIN: &str = "/etc/postfix/main.cf";
pub(crate) const MASTER: &str = "/etc/postfix/master.cf";

/// Time parameters in seconds, with their defaults in Postfix 3.7 (postconf(5)).
const TIMES: [(&str, u64); 6] = [
    ("maximal_queue_lifetime", 5 * 86400),
    ("bounce_queue_lifetime", 5 * 86400),
    ("delay_warning_time", 0),
    ("minimal_backoff_time", 300),
    ("maximal_backoff_time", 4000),
    ("queue_run_delay", 300),
];

/// All noted parameters except times, for main.cf and for every service in master.cf.
pub(super) const KEYS: [(&str, Take); 33] = [
    ("smtpd_tls_security_level", Take::Word),
    ("smtp_tls_security_level", Take::Word),
    ("smtpd_tls_protocols", Take::List),
    ("smtpd_tls_mandatory_protocols", Take::List),
    ("smtp_tls_protocols", Take::List),
    ("smtp_tls_mandatory_protocols", Take::List),
    ("smtpd_tls_ciphers", Take::Word),
    ("smtpd_tls_auth_only", Take::Word),
    ("smtpd_sasl_auth_enable", Take::Word),
    ("smtpd_sasl_security_options", Take::List),
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
    ("smtpd_etrn_restrictions", Take::List),
    ("mua_client_restrictions", Take::List),
    ("mua_helo_restrictions", Take::List),
    ("mua_sender_restrictions", Take::List),
    ("mua_relay_restrictions", Take::List),
    ("smtpd_restriction_classes", Take::List),
    ("mynetworks", Take::List),
    ("inet_interfaces", Take::List),
    ("smtpd_use_tls", Take::Word),
    ("smtpd_enforce_tls", Take::Word),
    ("smtpd_tls_wrappermode", Take::Word),
    ("smtpd_tls_mandatory_ciphers", Take::Word),
];

/// For each time parameter, the programs that read it. These are the binaries of Postfix 3.7.11 that contain its name
/// (a test verifies this), except bounce(8), which only prints some names. In services of other programs the parameter
/// has no effect.
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
    let commands = read_commands(g);
    for (id, scope) in all.scopes() {
        let name = match id {
            ScopeId::ROOT => "main.cf".to_owned(),
            _ => scope.head.join("/"),
        };
        let subject = ["postfix.service", &name];
        note_own_settings(g, &all, id, &subject, &KEYS);
        if id != ScopeId::ROOT {
            note_unread_options(g, &all, id, &name, commands.get(&name));
        }
        let manages = id == ScopeId::ROOT
            || commands
                .get(&name)
                .is_some_and(|command| MANAGERS.contains(&command.as_str()));
        let fact = format!("postfix.service.{name}.manages_the_queue");
        let place = FactPlace::from(&scope.place);
        g.facts.known(fact, manages, FactKind::Configured, place);
        for (key, default) in TIMES {
            let fact = format!("postfix.service.{name}.{key}");
            let said = all.get(id, key);
            match said.iter().find(|said| said.scope == id) {
                Some(said) => {
                    let place = FactPlace::from(&said.place);
                    match parse_seconds(&said.text(), key) {
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
                    let place = FactPlace::Words("postconf(5), Postfix 3.7".to_owned());
                    g.facts.known(fact, default, FactKind::Default, place);
                }
                None => {}
            }
        }
        g.about(subject);
    }
    postfix_relay::collect(g, &all, &commands);
    postfix_lists::collect(g, &all);
    mail_tls::postfix(g, &all);
    postfix_login::collect(g, &all, &commands);
}

/// Returns the noted parameters that may contain block lists: the restriction lists, and the sites of postscreen(8).
pub(super) fn restrictions() -> impl Iterator<Item = &'static str> {
    let named = |name: &&str| name.ends_with("_restrictions") || *name == "postscreen_dnsbl_sites";
    KEYS.iter().map(|(key, _)| *key).filter(named)
}

/// Returns the program of each service, by name and type of the service. The program is the eighth field of the
/// service's last line (master(5)).
pub(super) fn read_commands(g: &mut Gather<'_>) -> BTreeMap<String, String> {
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

/// Notes options in master.cf that the program of the service does not read.
fn note_unread_options(
    g: &mut Gather<'_>,
    all: &Effective,
    id: ScopeId,
    name: &str,
    command: Option<&String>,
) {
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
    let place = FactPlace::from(&first.place);
    let keys: Vec<&str> = dead.iter().map(|said| said.key.as_str()).collect();
    let mut note = |what: &str, value: serde_json::Value| {
        let fact = format!("postfix.service.{name}.{what}");
        g.facts
            .known(fact, value, FactKind::Configured, place.clone());
    };
    note("unread_options", keys.into());
    note("program", command.as_str().into());
}

/// Parses a time of Postfix in seconds. A time without a unit has the default unit of its parameter (postconf(5)).
fn parse_seconds(text: &str, key: &str) -> Option<u64> {
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

/// Returns the names of all noted parameters.
pub(crate) fn names() -> Vec<&'static str> {
    let keys = KEYS.iter().map(|(key, _)| *key);
    keys.chain(TIMES.iter().map(|(key, _)| *key)).collect()
}

pub(super) fn is_asked(name: &str) -> bool {
    names().contains(&name)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "reads Postfix's own programs")]
mod tests {
    use super::*;

    /// The binary of a program that reads a parameter contains its name.
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
