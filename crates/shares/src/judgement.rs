//! Judges the transfers: whether the share fills a network of 1 Gbit/s, and what limited the transfers. Performs no
//! I/O.

use crate::link::ShareLink;
use crate::{Protection, ShareTransfers};
use serde::Serialize;

/// Size in bytes of the transfer for which the criterion computes the time.
const BYTES: f64 = 10e9;
/// Maximum payload of 1 Gbit/s in bytes per second. An Ethernet frame of 1538 bytes on the wire carries 1448 bytes of
/// TCP payload.
const GIGABIT: f64 = 1e9 / 8.0 * 1448.0 / 1538.0;
/// Fraction of the maximum rate from which the maximum counts as reached. The rest are headers of the protocol, and
/// rounding.
const REACHED: f64 = 0.95;
/// CPU usage from which the client counts as the limit; 1 is one full CPU.
const FULL: f64 = 0.9;

/// Whether 10 GB are written and read as fast as 1 Gbit/s permits, and how long this takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ShareCriterion")]
pub struct Criterion {
    /// Whether writes and reads both reach the rate, with the weakest protection that the server allows.
    pub met: bool,
    /// Time to write 10 GB, in seconds.
    pub write_seconds: f64,
    /// Time to read 10 GB, in seconds.
    pub read_seconds: f64,
    /// Time to transfer 10 GB at the maximum payload of 1 Gbit/s, in seconds.
    pub link_seconds: f64,
}

/// Component that limited the transfers, with the evidence.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ShareLimit {
    /// Component that limited the transfers.
    pub by: LimitedBy,
    /// Evidence for the limit, as a sentence.
    pub evidence: String,
}

/// Component that can limit a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// The network between client and server.
    Link,
    /// The CPU of the client.
    Client,
    /// Signing or encryption, because the transfers without it are faster.
    Protection,
    /// The server, its disk or its CPU, because nothing on the client's side was the limit.
    ServerSide,
}

/// Returns the median of the values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count.is_multiple_of(2) => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
        count => sorted[count / 2],
    }
}

fn measured(transfers: &[ShareTransfers]) -> impl Iterator<Item = &ShareTransfers> {
    transfers.iter().filter(|one| one.refused.is_none())
}

/// Computes the criterion from the transfers with the weakest protection that the server allows.
pub(crate) fn judge_criterion(transfers: &[ShareTransfers]) -> Criterion {
    let first = measured(transfers).next();
    let rate = |values: fn(&ShareTransfers) -> &[f64]| first.map_or(0.0, |one| median(values(one)));
    let (write, read) = (rate(|one| &one.writes), rate(|one| &one.reads));
    Criterion {
        met: write.min(read) >= REACHED * GIGABIT,
        write_seconds: BYTES / write.max(1.0),
        read_seconds: BYTES / read.max(1.0),
        link_seconds: BYTES / GIGABIT,
    }
}

/// Finds what limited the transfers.
pub(crate) fn find_limit(transfers: &[ShareTransfers], link: &ShareLink) -> ShareLimit {
    let all: Vec<&ShareTransfers> = measured(transfers).collect();
    let both = |one: &ShareTransfers| median(&one.writes).min(median(&one.reads));
    let fastest = |one: &ShareTransfers| median(&one.writes).max(median(&one.reads));
    let best = all.iter().map(|one| fastest(one)).fold(0.0, f64::max);
    if let Some(mbit) = link.mbit_per_s {
        let payload = mbit as f64 / 1000.0 * GIGABIT;
        if best >= REACHED * payload {
            return ShareLimit {
                by: LimitedBy::Link,
                evidence: format!("the transfers fill the link of {mbit} Mbit/s"),
            };
        }
    }
    let busy = all.iter().map(|one| one.client_cpu).fold(0.0, f64::max);
    if busy >= FULL {
        return ShareLimit {
            by: LimitedBy::Client,
            evidence: format!("the client used {:.0} % of a CPU", busy * 100.0),
        };
    }
    let plain = all.iter().find(|one| one.protection == Protection::Plain);
    let encrypted = all
        .iter()
        .find(|one| one.protection == Protection::Encrypted);
    if let (Some(plain), Some(encrypted)) = (plain, encrypted) {
        // Rounds of one kind must not overlap with those of the other.
        let slowest = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let apart = |plain: &[f64], encrypted: &[f64]| {
            plain.len() > 2 && slowest(plain) > highest(encrypted)
        };
        if apart(&plain.reads, &encrypted.reads) || apart(&plain.writes, &encrypted.writes) {
            return ShareLimit {
                by: LimitedBy::Protection,
                evidence: format!(
                    "encryption takes {:.0} % of the rate",
                    (1.0 - both(encrypted) / both(plain)) * 100.0
                ),
            };
        }
    }
    ShareLimit {
        by: LimitedBy::ServerSide,
        evidence: format!(
            "neither the link nor the client's CPU ({:.0} %) was full: the server's disk or CPU, or the round trips, \
             are the limit",
            busy * 100.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(protection: Protection, rate: f64, client_cpu: f64) -> ShareTransfers {
        ShareTransfers {
            protection,
            writes: vec![rate, rate * 1.02, rate * 0.98],
            reads: vec![rate, rate * 1.01, rate * 0.99],
            client_cpu,
            refused: None,
        }
    }

    #[test]
    fn the_criterion_is_that_of_a_full_link() {
        let full = judge_criterion(&[transfers(Protection::Plain, 117e6, 0.1)]);
        assert!(
            full.met && (84.0..86.0).contains(&full.link_seconds),
            "{full:?}"
        );
        let slow = judge_criterion(&[transfers(Protection::Plain, 40e6, 0.1)]);
        assert!(!slow.met && (240.0..260.0).contains(&slow.read_seconds));
        // A server that refuses plain transfers is judged by the signed ones.
        let mut refused = transfers(Protection::Plain, 0.0, 0.0);
        refused.refused = Some("no".to_owned());
        assert!(judge_criterion(&[refused, transfers(Protection::Signed, 117e6, 0.1)]).met);
    }

    #[test]
    fn each_limit_has_its_evidence() {
        let link = |mbit| ShareLink {
            mbit_per_s: mbit,
            ..ShareLink::default()
        };
        let by = |all: &[ShareTransfers], mbit| find_limit(all, &link(mbit)).by;
        let plain = transfers(Protection::Plain, 116e6, 0.2);
        assert_eq!(
            by(std::slice::from_ref(&plain), Some(1000)),
            LimitedBy::Link
        );
        assert_eq!(
            by(std::slice::from_ref(&plain), Some(10_000)),
            LimitedBy::ServerSide
        );
        assert_eq!(
            by(&[transfers(Protection::Plain, 50e6, 0.97)], None),
            LimitedBy::Client
        );
        let slower = transfers(Protection::Encrypted, 60e6, 0.5);
        assert_eq!(by(&[plain.clone(), slower], None), LimitedBy::Protection);
        let same = transfers(Protection::Encrypted, 115e6, 0.5);
        assert_eq!(by(&[plain, same], None), LimitedBy::ServerSide);
    }
}
