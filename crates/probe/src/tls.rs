//! Checks TLS: versions, cipher suites, groups and certificates.

mod answer;
mod ask;
mod chain;
mod distrust;
mod enumerate;
mod hello;
mod judge;
mod renegotiate;
mod trust;
mod verifier;
mod version;

pub(crate) use answer::bits;
pub use answer::{
    Assembler, Flight, KeyExchange, TlsAnswer, Until, alert_name, header, is_refusal,
};
pub(crate) use ask::{Offer, TlsTarget};
pub use distrust::Distrust;
pub use enumerate::{SuiteOrder, VersionState};
pub use hello::{Hello, KeyShare, record as record_of};
pub(crate) use judge::heartbleed as heartbleed_remark;
pub use renegotiate::Renegotiation;
pub use trust::Roots;
pub(crate) use trust::handshake;
pub use version::{Version, group_name, groups, suite_name};

use crate::certificate::Certificate;
use crate::heartbleed::{self, Heartbeats};
use crate::remark::Remark;
use crate::starttls::Starttls;
use crate::visit::{Visit, Where};
use enumerate::VersionResult;
use jiff::Timestamp;
use serde::Serialize;
use std::sync::Mutex;
use std::sync::PoisonError;

/// Results of the TLS probe of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// Host and address that were probed.
    #[serde(flatten)]
    pub place: Where,
    /// Protocol of STARTTLS; `None` if TLS starts at once.
    pub starttls: Option<&'static str>,
    /// Results for every TLS version, the newest first.
    pub versions: Vec<VersionReport>,
    /// All certificate chains that the server sent.
    pub chains: Vec<Chain>,
    /// Result of the Heartbleed test.
    pub heartbeats: Heartbeats,
    /// Whether the server accepts a renegotiation that a client starts.
    pub renegotiation: Renegotiation,
    /// Faults that were found, the worst first.
    pub remarks: Vec<Remark>,
    /// Checks without a result, each with its reason. They do not count as passed.
    pub unknown: Vec<String>,
    /// Number of connections that the probe opened.
    pub connections: u32,
}

/// Results for one TLS version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct VersionReport {
    /// TLS version to which the results belong.
    pub version: Version,
    /// Whether the server supports the version.
    pub state: VersionState,
    /// Why the server refused the version, or which part of the result is unknown; `None` for a complete result.
    pub why: Option<String>,
    /// Cipher suites by their IANA names, in the order in which the server chose them.
    pub suites: Vec<String>,
    /// Whether the server or the client chooses the suite; `None` if unknown.
    pub order: Option<SuiteOrder>,
    /// Groups for key exchange; `None` if they could not be determined.
    pub groups: Option<Vec<String>>,
    /// Size of the smallest Diffie-Hellman prime, in bits.
    pub prime_bits: Option<usize>,
    /// Whether the server supports compression (RFC 3749).
    pub compression: bool,
    /// Whether the server supports secure renegotiation (RFC 5746); `None` in TLS 1.3, which has no renegotiation.
    pub secure_renegotiation: Option<bool>,
    /// Whether the server supports the extended master secret (RFC 7627); `None` in TLS 1.3, which always uses it.
    pub extended_master_secret: Option<bool>,
}

/// A certificate chain, as the server sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Chain {
    /// Certificates of the chain, the server's own first. Unreadable certificates are omitted here and listed in
    /// `unknown`.
    pub certificates: Vec<Certificate>,
    /// Reason why the chain does not lead to a root of this machine; `None` if it does.
    pub untrusted: Option<String>,
    /// Whether the server stapled an OCSP response; `None` if the probe did not request one.
    pub stapled: Option<bool>,
    /// Reason of `untrusted` as a type, from which a report selects the fix.
    #[serde(skip)]
    pub distrust: Option<Distrust>,
    /// All certificates of the chain in DER.
    #[serde(skip)]
    pub der: Vec<Vec<u8>>,
}

/// What the TLS probe shall check, and how.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Protocol with which the connection starts; `None` if TLS starts at once.
    pub starttls: Option<Starttls>,
    /// Name for SNI and for the certificate check, if it differs from the host.
    pub name: Option<&'a str>,
    /// Root certificates that the check trusts.
    pub roots: &'a Roots,
    /// Time at which the certificates must be valid.
    pub now: Timestamp,
}

/// Runs all TLS checks of a port. Opens about one connection for each suite of each version, and about twenty more. At
/// most two connections are open at a time.
#[must_use]
pub fn scan(visit: &Visit, question: &Question<'_>) -> Report {
    let door = door(visit, question);
    let versions = all_versions(&door);
    let mut unknown = Vec::new();
    for found in &versions {
        if let Some(why) = unclear(found) {
            unknown.push(format!("{}: {why}", found.version.name()));
        }
    }
    let chains = chains(&door, question, &versions, &mut unknown);
    let heartbeats = heartbeats(&door, &versions);
    if let Heartbeats::Unknown { why } = &heartbeats {
        unknown.push(format!("Heartbleed: {why}"));
    }
    let renegotiation = renegotiation(&door, &versions);
    if let Renegotiation::Unknown { why } = &renegotiation {
        unknown.push(format!("renegotiation by clients: {why}"));
    }
    let mut report = Report {
        place: visit.place().clone(),
        starttls: question.starttls.map(Starttls::name),
        versions: versions.iter().map(reported).collect(),
        chains,
        heartbeats,
        renegotiation,
        remarks: Vec::new(),
        unknown,
        connections: 0,
    };
    let host = door.name.as_deref().unwrap_or(&visit.place().target.host);
    report.remarks = judge::judge(&report, &versions, host, question.now);
    report.connections = visit.connections();
    report
}

/// Reads only the certificates, with two connections.
///
/// # Errors
/// The port does not support TLS, or the handshake fails.
pub fn certificates(
    visit: &Visit,
    question: &Question<'_>,
) -> Result<Vec<Vec<u8>>, crate::error::ProbeError> {
    let door = door(visit, question);
    let first = match trust::chain_of(&door, &[&rustls::version::TLS13]) {
        Ok((chain, _)) if !chain.is_empty() => return Ok(chain),
        other => other.err(),
    };
    let mut last = first;
    for version in &Version::ALL[1..] {
        let offer = Offer {
            version: *version,
            suites: &version.suites(),
            groups: &groups(*version),
            share: None,
            extras: false,
        };
        match door.ask(offer, Until::Done) {
            Ok(TlsAnswer::Flight(flight)) if !flight.chain.is_empty() => return Ok(flight.chain),
            Ok(_) => {}
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or(crate::error::ProbeError::foreign(
        "TLS",
        "the server shows no certificate in any version",
    )))
}

fn door<'v>(visit: &'v Visit, question: &Question<'_>) -> TlsTarget<'v> {
    let named = question.name.or(visit.place().target.server_name());
    TlsTarget {
        visit,
        starttls: question.starttls,
        name: named.map(str::to_owned),
    }
}

/// Probes all versions, two at a time. Afterwards decides whether closed connections count as refusals.
fn all_versions(door: &TlsTarget<'_>) -> Vec<VersionResult> {
    let queue = Mutex::new(Version::ALL.iter().rev().copied().collect::<Vec<_>>());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = || {
        let mut found = Vec::new();
        while let Some(version) = next() {
            found.push(enumerate::version(door, version));
        }
        found
    };
    let mut versions = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut own = work();
        own.extend(other.join().unwrap_or_default());
        own
    });
    versions.sort_by_key(|found| std::cmp::Reverse(found.version));
    if versions.iter().any(|found| found.hung_up) {
        let spoken = versions.iter().find(|found| !found.suites.is_empty());
        let any_spoken = spoken.is_some();
        let answers = spoken.is_some_and(|found| enumerate::still_answers(door, found));
        for found in versions.iter_mut().filter(|found| found.hung_up) {
            match (answers, found.suites.is_empty()) {
                (true, true) => {
                    found.state = VersionState::Refused;
                    found.why = Some("the server hung up".to_owned());
                }
                (true, false) => {}
                // The server answered nothing at all, so the closed connection proves nothing.
                (false, _) if !any_spoken => found.why = Some("the server hung up".to_owned()),
                (false, _) => {
                    found.why = Some("the server hung up, and answers no more".to_owned());
                }
            }
        }
    }
    versions
}

/// Describes which part of a version's result is unknown, for [`Report::unknown`].
fn unclear(found: &VersionResult) -> Option<String> {
    match (found.state, &found.why) {
        (VersionState::Refused, _) => None,
        (VersionState::Unknown, why) => Some(why.clone().unwrap_or("no answer".to_owned())),
        (VersionState::Offered, Some(why)) => Some(format!("not all suites are known: {why}")),
        (VersionState::Offered, None) if !found.groups_known && found.version != Version::Ssl3 => {
            Some("which groups there are did not come out".to_owned())
        }
        (VersionState::Offered, None) => None,
    }
}

fn reported(found: &VersionResult) -> VersionReport {
    let is_old = found.version < Version::Tls13;
    let first = found.first.as_ref();
    let names = |ids: &[u16], name: fn(u16) -> String| ids.iter().map(|id| name(*id)).collect();
    VersionReport {
        version: found.version,
        state: found.state,
        why: found.why.clone(),
        suites: names(&found.suites, suite_name),
        order: found.order,
        groups: found.groups_known.then(|| names(&found.groups, group_name)),
        prime_bits: found.prime,
        compression: first.is_some_and(|flight| flight.compression != 0),
        secure_renegotiation: first
            .filter(|_| is_old)
            // SSL 3.0 is tested without extensions.
            .filter(|_| found.version != Version::Ssl3)
            .map(|flight| flight.secure_renegotiation),
        extended_master_secret: first
            .filter(|_| is_old && found.version != Version::Ssl3)
            .map(|flight| flight.extended_master_secret),
    }
}

fn chains(
    door: &TlsTarget<'_>,
    question: &Question<'_>,
    versions: &[VersionResult],
    unknown: &mut Vec<String>,
) -> Vec<Chain> {
    let mut all: Vec<(Vec<Vec<u8>>, Option<bool>)> = Vec::new();
    let mut add = |chain: Vec<Vec<u8>>, stapled: Option<bool>| {
        let is_new = all.iter().all(|(known, _)| *known != chain);
        if !chain.is_empty() && is_new {
            all.push((chain, stapled));
        }
    };
    if speaks(versions, Version::Tls13) {
        match trust::chain_of(door, &[&rustls::version::TLS13]) {
            Ok((chain, stapled)) => add(chain, Some(stapled)),
            Err(error) => unknown.push(format!("the certificates of TLS 1.3: {error}")),
        }
    }
    for chain in versions.iter().flat_map(|found| &found.chains) {
        add(chain.clone(), None);
    }
    all.into_iter()
        .map(|(der, stapled)| {
            let mut certificates = Vec::new();
            for one in &der {
                match Certificate::read(one) {
                    Ok(read) => certificates.push(read),
                    Err(error) => unknown.push(error.to_string()),
                }
            }
            let must = certificates.first().is_some_and(|leaf| leaf.must_staple);
            let stapled = match must && stapled != Some(true) {
                true => staple(door, versions, &der).or(stapled),
                false => stapled,
            };
            if must && stapled.is_none() {
                unknown.push("whether an OCSP response comes with the certificate".to_owned());
            }
            let distrust = question.roots.objection(&der, &certificates, question.now);
            Chain {
                certificates,
                untrusted: distrust.as_ref().map(Distrust::says),
                stapled,
                distrust,
                der,
            }
        })
        .collect()
}

fn speaks(versions: &[VersionResult], version: Version) -> bool {
    let mut spoken = versions.iter().filter(|found| !found.suites.is_empty());
    spoken.any(|found| found.version == version)
}

/// Delay before the second handshake. A server fetches the OCSP response at the first request, so that the second
/// handshake can contain it.
const FETCHES: std::time::Duration = std::time::Duration::from_secs(1);

/// Returns whether an OCSP response is stapled to this chain; `None` if the server does not send this chain again.
fn staple(door: &TlsTarget<'_>, versions: &[VersionResult], der: &[Vec<u8>]) -> Option<bool> {
    let mut known = None;
    for attempt in 0..2 {
        if attempt > 0 {
            std::thread::sleep(FETCHES);
        }
        for (version, library) in [
            (Version::Tls13, &rustls::version::TLS13),
            (Version::Tls12, &rustls::version::TLS12),
        ] {
            if !speaks(versions, version) {
                continue;
            }
            match trust::chain_of(door, &[library]) {
                Ok((chain, true)) if chain == der => return Some(true),
                Ok((chain, false)) if chain == der => known = Some(false),
                _ => {}
            }
        }
    }
    known
}

/// Tests whether clients can start a renegotiation. Tests only TLS 1.2, because the TLS library does not support older
/// versions.
fn renegotiation(door: &TlsTarget<'_>, versions: &[VersionResult]) -> Renegotiation {
    let older = [Version::Tls11, Version::Tls10, Version::Ssl3];
    match speaks(versions, Version::Tls12) {
        true => renegotiate::by_client(door),
        false if older.iter().any(|version| speaks(versions, *version)) => Renegotiation::Unknown {
            why: "it is tried in TLS 1.2, which is not spoken".to_owned(),
        },
        false => Renegotiation::NotPossible,
    }
}

fn heartbeats(door: &TlsTarget<'_>, versions: &[VersionResult]) -> Heartbeats {
    // All versions use the same code for heartbeats, so the first version that answers is enough.
    let offers = |found: &&VersionResult| found.first.as_ref().is_some_and(|first| first.heartbeat);
    match versions.iter().find(offers) {
        Some(found) => match found.suites.first() {
            Some(suite) => heartbleed::on_tls(door, found.version, *suite),
            None => Heartbeats::NotOffered,
        },
        // If a version answered, its extensions are known. If no version answered, one with an unknown result
        // could support heartbeats.
        None if versions.iter().all(|found| found.first.is_none())
            && versions
                .iter()
                .any(|found| found.state == VersionState::Unknown) =>
        {
            Heartbeats::Unknown {
                why: "no version of TLS came about".to_owned(),
            }
        }
        None => Heartbeats::NotOffered,
    }
}

impl Report {
    /// Returns whether the port uses TLS, that is whether the server supports at least one version or refused a version
    /// with a TLS message.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.versions
            .iter()
            .any(|version| version.state != VersionState::Unknown)
    }
}
