//! Determines whether Postfix is an open relay. Each service that external clients can reach is evaluated as smtpd(8)
//! does it. The client is outside of `mynetworks`, is not logged in, and sends mail to another domain.

use super::postfix_redact::{WIDE_V4, WIDE_V6};
use crate::gather::Gather;
use assay_config::effective::{Effective, ScopeId, expand_macros};
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeMap;
use std::path::Path;

/// Defaults of Postfix for parameters that no line sets (postconf(5), 3.7, and `compatibility_level` 1 or more).
const DEFAULTS: [(&str, &str); 6] = [
    ("smtpd_client_restrictions", ""),
    ("smtpd_helo_restrictions", ""),
    ("smtpd_sender_restrictions", ""),
    (
        "smtpd_relay_restrictions",
        "permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination",
    ),
    ("smtpd_recipient_restrictions", ""),
    ("mynetworks", "(the machine's own)"),
];

/// Programs that accept connections from any client on the internet ("strangers" in this module).
const PROGRAMS_OF_STRANGERS: [&str; 1] = ["smtpd"];

/// Maximum depth of nested restriction classes; Postfix itself has no limit.
const DEEPEST: usize = 16;

/// Result of a restriction list for a stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passes,
    Blocked,
    Unknown,
}

/// Notes `open_relay` for each service that strangers can reach. Without a master.cf, as in a copy of some files,
/// main.cf is evaluated as for a service without options.
pub(super) fn collect(g: &mut Gather<'_>, all: &Effective, commands: &BTreeMap<String, String>) {
    if commands.is_empty() && listens_beyond(all, ScopeId::ROOT) {
        note_open_relay(g, all, ScopeId::ROOT, "main.cf");
    }
    for (id, scope) in all.scopes() {
        let name = scope.head.join("/");
        let command = commands.get(&name).map(String::as_str);
        let strangers = command.is_some_and(|command| PROGRAMS_OF_STRANGERS.contains(&command));
        if id != ScopeId::ROOT && strangers && is_reached(all, id) {
            note_open_relay(g, all, id, &name);
        }
    }
}

/// Evaluates again the services about which files decide that `mynetworks` names. These files contain addresses, so
/// this needs a machine without redaction; its facts replace those of [`collect`].
pub(crate) fn judge_with_files(g: &mut Gather<'_>, all: &Effective) {
    let commands = super::postfix::read_commands(g);
    let host = g.host;
    let read = |path: &str| host.read_text(Path::new(path)).ok();
    for (id, scope) in all.scopes() {
        let name = match id {
            ScopeId::ROOT => "main.cf".to_owned(),
            _ => scope.head.join("/"),
        };
        let judged = match id {
            ScopeId::ROOT => commands.is_empty() && listens_beyond(all, id),
            _ => {
                let command = commands.get(&name).map(String::as_str);
                command.is_some_and(|command| PROGRAMS_OF_STRANGERS.contains(&command))
                    && is_reached(all, id)
            }
        };
        let service = Service {
            all,
            id,
            read: &read,
        };
        if !judged || !service.names_files() {
            continue;
        }
        let (outcome, place) = service.judge();
        if outcome != Outcome::Unknown {
            let place = place.unwrap_or_else(|| FactPlace::from(&scope.place));
            let fact = format!("postfix.service.{name}.open_relay");
            let open = outcome == Outcome::Passes;
            g.facts.known(fact, open, FactKind::Configured, place);
            g.about(["postfix.service", &name]);
        }
    }
}

fn note_open_relay(g: &mut Gather<'_>, all: &Effective, id: ScopeId, name: &str) {
    let service = Service {
        all,
        id,
        read: &|_| None,
    };
    let (outcome, place) = service.judge();
    let place = place.unwrap_or_else(|| FactPlace::from(&all.scope(id).place));
    let fact = format!("postfix.service.{name}.open_relay");
    match outcome {
        Outcome::Unknown => g.facts.unknown(
            fact,
            "a table, a policy service or a value that is not known decides",
            FactKind::Configured,
            place,
        ),
        outcome => {
            let open = outcome == Outcome::Passes;
            g.facts.known(fact, open, FactKind::Configured, place);
        }
    }
    g.about(["postfix.service", name]);
}

/// Returns whether a service listens on addresses that strangers can reach.
fn is_reached(all: &Effective, id: ScopeId) -> bool {
    let [name, kind] = &all.scope(id).head[..] else {
        return false;
    };
    let host = name.rsplit_once(':').map_or("", |(host, _)| host);
    let listens = !host.is_empty() || listens_beyond(all, id);
    matches!(kind.as_str(), "inet" | "pass") && !is_own_address(host) && listens
}

fn is_own_address(text: &str) -> bool {
    ["127.", "[::1]", "::1", "localhost"]
        .iter()
        .any(|own| text.starts_with(own))
}

/// Returns whether `inet_interfaces` contains addresses that strangers can reach.
fn listens_beyond(all: &Effective, id: ScopeId) -> bool {
    let interfaces = all.value(id, "inet_interfaces").map(|said| said.text());
    interfaces
        .as_deref()
        .unwrap_or("all")
        .split([' ', ',', '\t'])
        .filter(|word| !word.is_empty())
        .any(|word| word != "loopback-only" && !is_own_address(word))
}

struct Service<'a> {
    all: &'a Effective,
    id: ScopeId,
    /// Reads a file that `mynetworks` names; `None` if it is not known.
    read: &'a dyn Fn(&str) -> Option<String>,
}

impl Service<'_> {
    /// Returns whether the service relays mail for a stranger, and the line that decides this.
    fn judge(&self) -> (Outcome, Option<FactPlace>) {
        let mut unknown = false;
        for (key, _) in &DEFAULTS[..5] {
            match self.list(&self.text(key)) {
                Outcome::Blocked => return (Outcome::Blocked, self.place(key)),
                Outcome::Unknown => unknown = true,
                Outcome::Passes => {}
            }
        }
        let wide = self.networks() == Outcome::Passes;
        let place = match wide
            && self
                .text("smtpd_relay_restrictions")
                .contains("permit_mynetworks")
        {
            true => self.place("mynetworks"),
            false => self.place("smtpd_relay_restrictions"),
        };
        match unknown {
            true => (Outcome::Unknown, place),
            false => (Outcome::Passes, place.or_else(|| self.place("mynetworks"))),
        }
    }

    fn place(&self, key: &str) -> Option<FactPlace> {
        let said = self.all.value(self.id, key)?;
        Some(FactPlace::from(&said.place))
    }

    /// Returns the value of a parameter with expanded macros. Unknown macros are left as they are.
    fn text(&self, key: &str) -> String {
        let default = DEFAULTS.iter().find(|(known, _)| *known == key);
        match self.all.value(self.id, key) {
            Some(said) => {
                let text = expand_macros(self.all, self.id, &said.text());
                // The directory that contains main.cf is built in.
                [
                    "$config_directory",
                    "${config_directory}",
                    "$(config_directory)",
                ]
                .iter()
                .fold(text, |text, name| text.replace(name, "/etc/postfix"))
            }
            None => default.map_or("", |(_, value)| value).to_owned(),
        }
    }

    /// Evaluates a list of restrictions for a stranger. A list that ends without a decision permits.
    fn list(&self, text: &str) -> Outcome {
        self.walk(text, 0).unwrap_or(Outcome::Passes)
    }

    /// Evaluates a list of restrictions; `None` if it ends without a decision.
    fn walk(&self, text: &str, depth: usize) -> Option<Outcome> {
        let words: Vec<&str> = text
            .split([' ', ',', '\t', '\n', '\r'])
            .filter(|word| !word.is_empty())
            .collect();
        let mut at = 0;
        let mut unknown = false;
        let mut only_warns = false;
        while let Some(word) = words.get(at) {
            at += 1;
            let warns = std::mem::take(&mut only_warns);
            let mut takes_argument = false;
            let outcome = match *word {
                "permit" => Some(Outcome::Passes),
                "reject"
                | "defer"
                | "reject_unauth_destination"
                | "defer_unauth_destination"
                | "defer_if_permit"
                | "check_relay_domains" => Some(Outcome::Blocked),
                "defer_if_reject"
                | "permit_auth_destination"
                | "permit_mx_backup"
                | "permit_sasl_authenticated"
                | "permit_tls_clientcerts"
                | "permit_tls_all_clientcerts"
                | "permit_inet_interfaces" => None,
                "permit_mynetworks" => match self.networks() {
                    Outcome::Blocked => None,
                    other => Some(other),
                },
                "warn_if_reject" => {
                    only_warns = true;
                    None
                }
                "sleep" => {
                    takes_argument = true;
                    None
                }
                "check_policy_service" | "permit_naked_ip_address" => {
                    takes_argument = word.starts_with("check_");
                    Some(Outcome::Unknown)
                }
                _ if word.starts_with("check_")
                    || word.starts_with("permit_dnswl")
                    || word.starts_with("permit_rhswl") =>
                {
                    takes_argument = true;
                    Some(Outcome::Unknown)
                }
                _ if word.starts_with("reject_") => {
                    takes_argument = ["reject_rbl", "reject_rhsbl"]
                        .iter()
                        .any(|start| word.starts_with(start));
                    None
                }
                // A word that is not a restriction is a class or a table.
                _ => self.class(word, depth),
            };
            if takes_argument {
                at += 1;
            }
            match outcome {
                Some(Outcome::Blocked) if warns => {}
                Some(Outcome::Unknown) => unknown = true,
                // An earlier unknown restriction may have decided already.
                Some(_) if unknown => return Some(Outcome::Unknown),
                Some(other) => return Some(other),
                None => {}
            }
        }
        unknown.then_some(Outcome::Unknown)
    }

    /// Evaluates a restriction class. A name without a parameter gives an unknown result.
    fn class(&self, name: &str, depth: usize) -> Option<Outcome> {
        match self.all.value(self.id, name) {
            Some(_) if depth < DEEPEST => self.walk(&self.text(name), depth + 1),
            _ => Some(Outcome::Unknown),
        }
    }

    /// Returns whether `mynetworks` names a file.
    fn names_files(&self) -> bool {
        let text = self.text("mynetworks");
        let mut words = text.split([' ', ',', '\t', '\n']);
        words.any(|word| word.trim_start_matches('!').starts_with('/') || word.contains(":/"))
    }

    /// Evaluates a file that `mynetworks` names; `None` if the word is no file.
    fn file(&self, word: &str) -> Option<Outcome> {
        let (kind, path) = match word.split_once(":/") {
            Some((kind, path)) => (kind, format!("/{path}")),
            None if word.starts_with('/') => ("", word.to_owned()),
            None => return None,
        };
        let text = (self.read)(&path);
        let networks = text.as_deref().and_then(|text| networks_of(kind, text));
        let Some(networks) = networks else {
            return Some(Outcome::Unknown);
        };
        let wide = networks.into_iter().find(|(_, network)| is_wide(network));
        Some(match wide {
            Some((true, _)) => Outcome::Passes,
            _ => Outcome::Blocked,
        })
    }

    /// Evaluates whether `mynetworks` contains the addresses of strangers.
    fn networks(&self) -> Outcome {
        let text = self.text("mynetworks");
        let words = text.split([' ', ',', '\t', '\n', '\r']);
        let mut unknown = false;
        for word in words.filter(|word| !word.is_empty()) {
            let network = word.trim_start_matches('!');
            let wide = is_wide(network);
            match word.starts_with('!') {
                true if wide => return Outcome::Blocked,
                false if wide => return Outcome::Passes,
                _ => {}
            }
            if let Some(file) = self.file(network) {
                match file {
                    Outcome::Unknown => unknown = true,
                    Outcome::Passes if word.starts_with('!') => return Outcome::Blocked,
                    Outcome::Passes => return Outcome::Passes,
                    Outcome::Blocked => {}
                }
                continue;
            }
            unknown |= network.contains('$') || network.contains("withheld");
        }
        match unknown {
            true => Outcome::Unknown,
            false => Outcome::Blocked,
        }
    }
}

/// Returns the networks in the lines of a file, each with whether the line admits it. A file without a type contains a
/// list (postconf(5), mynetworks). In a table of type cidr, any result admits a network. The keys of a table of type
/// hash are addresses or their beginnings, so none contains everybody (access(5)).
fn networks_of<'t>(kind: &str, text: &'t str) -> Option<Vec<(bool, &'t str)>> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    match kind {
        "" => {
            let words = lines.flat_map(|line| line.split([' ', ',', '\t']));
            let words = words.filter(|word| !word.is_empty());
            let split = |word: &'t str| match word.strip_prefix('!') {
                Some(word) => (false, word),
                None => (true, word),
            };
            Some(words.map(split).collect())
        }
        "cidr" => Some(
            lines
                .filter_map(|line| Some((true, line.split_whitespace().next()?)))
                .collect(),
        ),
        "hash" | "btree" | "lmdb" | "cdb" | "dbm" => Some(Vec::new()),
        _ => None,
    }
}

/// Returns whether a network contains more addresses than any organisation owns.
fn is_wide(network: &str) -> bool {
    let bare = network.replace(['[', ']'], "");
    let Some((address, bits)) = bare.split_once('/') else {
        return false;
    };
    let Ok(bits) = bits.parse::<u8>() else {
        return false;
    };
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => bits <= WIDE_V4,
        Ok(std::net::IpAddr::V6(_)) => bits <= WIDE_V6,
        Err(_) => false,
    }
}
