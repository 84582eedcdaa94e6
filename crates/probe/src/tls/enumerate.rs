//! Which suites and groups a server takes, by iterative removal: everything is offered, the server
//! chooses, what it chose is taken out, until it refuses. That takes a connection for each suite and
//! one more.

use super::answer::{Flight, KeyExchange, TlsAnswer, Until, alert_name, is_refusal};
use super::ask::{Door, Offer};
use super::hello::KeyShare;
use super::version::{Version, groups, suite_name};
use crate::error::ProbeError;
use serde::Serialize;

/// What is known of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "State")]
pub enum VersionState {
    /// The server speaks it.
    Offered,
    /// The server says that it does not.
    Refused,
    /// It did not come out.
    Unknown,
}

/// Who chooses among the suites of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Order")]
pub enum SuiteOrder {
    /// The server, by its own order.
    Server,
    /// The server takes the first of the client's.
    Client,
}

/// A version of TLS on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub version: Version,
    pub state: VersionState,
    /// Why it is refused or not known, or what of it is not.
    pub why: Option<String>,
    /// In the order in which the server chose.
    pub suites: Vec<u16>,
    pub order: Option<SuiteOrder>,
    pub groups: Vec<u16>,
    /// The groups could be found out.
    pub groups_known: bool,
    /// The answer to the first hello.
    pub first: Option<Flight>,
    /// Size of the prime of the first suite with Diffie-Hellman over a finite field.
    pub prime: Option<usize>,
    /// The certificates of the first suite of each kind of authentication.
    pub chains: Vec<Vec<Vec<u8>>>,
    /// The server hung up instead of saying no. That means no only when it still answers others.
    pub hung_up: bool,
}

/// The end of a removal.
enum End {
    /// An alert that means no.
    Refused(String),
    /// The server hung up.
    HungUp,
    /// It is not known what else there is.
    Unknown(String),
}

fn end(answer: Result<TlsAnswer, ProbeError>) -> Result<Box<Flight>, End> {
    match answer {
        Ok(TlsAnswer::Flight(flight)) => Ok(flight),
        Ok(TlsAnswer::Alert(alert)) if is_refusal(alert) => Err(End::Refused(alert_name(alert))),
        Ok(TlsAnswer::Alert(alert)) => Err(End::Unknown(format!(
            "the server broke off with {}",
            alert_name(alert)
        ))),
        Err(ProbeError::Closed { .. }) => Err(End::HungUp),
        Err(error) => Err(End::Unknown(error.to_string())),
    }
}

/// Finds out all of a version.
pub(crate) fn version(door: &Door<'_>, version: Version) -> Found {
    let mut found = Found {
        version,
        state: VersionState::Unknown,
        why: None,
        suites: Vec::new(),
        order: None,
        groups: Vec::new(),
        groups_known: false,
        first: None,
        prime: None,
        chains: Vec::new(),
        hung_up: false,
    };
    suites(door, &mut found);
    if found.suites.is_empty() {
        return found;
    }
    found.state = VersionState::Offered;
    found.order = order(door, &found);
    // SSLv3 has no extensions, so no groups.
    if version != Version::Ssl3 {
        find_groups(door, &mut found);
    }
    found
}

fn suites(door: &Door<'_>, found: &mut Found) {
    let version = found.version;
    let all_groups = groups(version);
    let mut left = version.suites();
    let mut share = KeyShare::Empty;
    while !left.is_empty() {
        let is_first = found.first.is_none();
        // The certificates come with the first suite of each kind of authentication; the prime with
        // the first that has one. Nothing else needs to be read.
        let until = match version {
            Version::Tls13 => Until::Hello,
            _ => Until::Done,
        };
        let offer = Offer {
            version,
            suites: &left,
            groups: &all_groups,
            share: Some(share),
            extras: is_first,
        };
        let flight = match end(door.ask(offer, until)) {
            Ok(flight) => flight,
            // Some servers do not know the empty share.
            Err(_) if is_first && version == Version::Tls13 && share == KeyShare::Empty => {
                share = KeyShare::X25519(door.visit.random());
                continue;
            }
            Err(End::Refused(alert)) if is_first => {
                found.state = VersionState::Refused;
                found.why = Some(alert);
                return;
            }
            Err(End::Refused(_)) => return,
            // A server without parameters for Diffie-Hellman (Dovecot without ssl_dh) chooses such a suite
            // and hangs up: nobody can use those there, but the others.
            Err(End::HungUp) if left.iter().any(|suite| is_dhe(*suite)) => {
                left.retain(|suite| !is_dhe(*suite));
                continue;
            }
            Err(End::HungUp) => {
                found.hung_up = true;
                return;
            }
            Err(End::Unknown(why)) => {
                found.why = Some(why);
                return;
            }
        };
        if flight.version != version.number() {
            if is_first {
                found.state = VersionState::Refused;
                found.why = Some("the server answers with another version".to_owned());
            } else {
                found.why = Some("the server changed its version in between".to_owned());
            }
            return;
        }
        let Some(at) = left.iter().position(|suite| *suite == flight.suite) else {
            let name = suite_name(flight.suite);
            found.why = Some(format!("the server chose {name}, which was not offered"));
            return;
        };
        found.suites.push(left.remove(at));
        if let Some(KeyExchange::Prime(bits)) = flight.exchange {
            found.prime = Some(found.prime.map_or(bits, |known| known.min(bits)));
        }
        if !flight.chain.is_empty() && !found.chains.contains(&flight.chain) {
            found.chains.push(flight.chain.clone());
        }
        found.first.get_or_insert(*flight);
    }
}

fn is_dhe(suite: u16) -> bool {
    suite_name(suite).starts_with("TLS_DHE_")
}

/// Whether the server keeps to its own order: offered the other way round it chooses the same.
fn order(door: &Door<'_>, found: &Found) -> Option<SuiteOrder> {
    if found.suites.len() < 2 {
        return None;
    }
    let reversed: Vec<u16> = found.suites.iter().rev().copied().collect();
    let offer = Offer {
        version: found.version,
        suites: &reversed,
        groups: &groups(found.version),
        share: None,
        extras: false,
    };
    let flight = end(door.ask(offer, Until::Hello)).ok()?;
    if flight.suite == found.suites[0] {
        Some(SuiteOrder::Server)
    } else if flight.suite == reversed[0] {
        Some(SuiteOrder::Client)
    } else {
        None
    }
}

/// The groups, in the order in which the server chooses.
fn find_groups(door: &Door<'_>, found: &mut Found) {
    let version = found.version;
    let with_groups: Vec<u16> = match version {
        Version::Tls13 => found.suites.clone(),
        _ => {
            let named = |suite: &&u16| suite_name(**suite).starts_with("TLS_ECDHE");
            found.suites.iter().filter(named).copied().collect()
        }
    };
    if with_groups.is_empty() {
        found.groups_known = true;
        return;
    }
    let until = match version {
        Version::Tls13 => Until::Hello,
        _ => Until::Done,
    };
    let mut left = groups(version);
    while !left.is_empty() {
        let offer = Offer {
            version,
            suites: &with_groups,
            groups: &left,
            share: None,
            extras: false,
        };
        let chosen = match end(door.ask(offer, until)) {
            Ok(flight) => match (flight.group, flight.exchange) {
                (Some(group), _) | (None, Some(KeyExchange::Group(group))) => group,
                _ => return,
            },
            // Servers that do not know the empty share refuse the first already; then nothing is known.
            Err(End::Refused(_)) => {
                found.groups_known = !found.groups.is_empty();
                return;
            }
            // Asked again without them, the server has to answer still: else it hung up for another reason.
            Err(End::HungUp) => {
                found.groups_known = !found.groups.is_empty() && still_answers(door, found);
                return;
            }
            Err(End::Unknown(_)) => return,
        };
        let Some(at) = left.iter().position(|group| *group == chosen) else {
            return;
        };
        found.groups.push(left.remove(at));
    }
    found.groups_known = true;
}

/// Whether the server still answers what it answered before: then a connection that it closed was a no.
pub(crate) fn still_answers(door: &Door<'_>, found: &Found) -> bool {
    let Some(suite) = found.suites.first() else {
        return false;
    };
    let offer = Offer {
        version: found.version,
        suites: &[*suite],
        groups: &groups(found.version),
        share: None,
        extras: false,
    };
    end(door.ask(offer, Until::Hello)).is_ok()
}
