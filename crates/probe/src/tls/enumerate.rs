//! Determines which suites and groups a server accepts, by iterative removal. Offers all of them, removes the one that
//! the server chooses, and repeats until the server refuses. The number of connections is one more than the number of
//! accepted suites.

use super::answer::{Flight, KeyExchange, TlsAnswer, Until, alert_name, is_refusal};
use super::ask::{Offer, TlsTarget};
use super::hello::KeyShare;
use super::version::{Version, groups, suite_name};
use crate::error::ProbeError;
use serde::Serialize;

/// Whether a server supports one version of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "State")]
pub enum VersionState {
    /// The server supports the version.
    Offered,
    /// The server refuses the version.
    Refused,
    /// The probe has no result for the version.
    Unknown,
}

/// Side whose preference decides if both sides support several suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Order")]
pub enum SuiteOrder {
    /// The server's order of preference decides.
    Server,
    /// The client's order of preference decides: the server chooses the client's first suite that the server supports.
    Client,
}

/// Results for one TLS version of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionResult {
    pub version: Version,
    pub state: VersionState,
    /// Reason of a refusal or of an unknown result.
    pub why: Option<String>,
    /// Ids of the accepted suites, in the order in which the server chose them.
    pub suites: Vec<u16>,
    pub order: Option<SuiteOrder>,
    pub groups: Vec<u16>,
    /// Whether the list of groups is complete.
    pub groups_known: bool,
    /// Answer of the server to the first ClientHello.
    pub first: Option<Flight>,
    /// Size of the Diffie-Hellman prime in bits, for the first suite that uses such a prime.
    pub prime: Option<usize>,
    /// Certificate chains, one from the first suite of each authentication method.
    pub chains: Vec<Vec<Vec<u8>>>,
    /// Whether the server closed the connection without an alert. This counts as a refusal only if the server still
    /// answers other ClientHello messages.
    pub hung_up: bool,
}

/// Reason why a removal loop ended.
enum End {
    /// The server refused with an alert. Contains the name of the alert.
    Refused(String),
    /// The server closed the connection.
    HungUp,
    /// The remaining suites or groups are unknown. Contains the reason.
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

/// Determines all results for one TLS version.
pub(crate) fn version(door: &TlsTarget<'_>, version: Version) -> VersionResult {
    let mut found = VersionResult {
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
    // SSL 3.0 has no extensions and therefore no groups.
    if version != Version::Ssl3 {
        find_groups(door, &mut found);
    }
    found
}

fn suites(door: &TlsTarget<'_>, found: &mut VersionResult) {
    let version = found.version;
    let all_groups = groups(version);
    let mut left = version.suites();
    let mut share = KeyShare::Empty;
    while !left.is_empty() {
        let is_first = found.first.is_none();
        // The certificates come with the first suite of each authentication method, the prime with the first
        // suite that has one. Other answers are read only up to the ServerHello.
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
            // Some servers do not support the empty share.
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
            // A server without Diffie-Hellman parameters (Dovecot without ssl_dh) chooses such a suite and
            // closes the connection. Clients cannot use these suites there. Continue with the others.
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

/// Offers the accepted suites in reverse order, to find out whose preference decides. A server with its own preference
/// chooses the same suite again.
fn order(door: &TlsTarget<'_>, found: &VersionResult) -> Option<SuiteOrder> {
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

/// Determines the groups, in the order in which the server chooses them.
fn find_groups(door: &TlsTarget<'_>, found: &mut VersionResult) {
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
            // Servers that do not support the empty share refuse the first hello. Then the groups are unknown.
            Err(End::Refused(_)) => {
                found.groups_known = !found.groups.is_empty();
                return;
            }
            // Repeat without these groups: if the server does not answer now, it closed the connection for
            // another reason.
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

/// Returns whether the server still answers a ClientHello that it answered before. If it does, a closed connection was
/// a refusal.
pub(crate) fn still_answers(door: &TlsTarget<'_>, found: &VersionResult) -> bool {
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
