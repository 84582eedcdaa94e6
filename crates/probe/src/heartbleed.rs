//! Tests for Heartbleed (CVE-2014-0160) without receiving a byte of the server's memory.
//!
//! A heartbeat (RFC 6520) contains the length of its payload and ends with at least 16 bytes of padding. Vulnerable
//! servers did not compare this length with the number of received bytes. The test sends a heartbeat whose length is
//! *correct* and whose padding is missing. RFC 6520 section 4 requires servers to drop such a heartbeat. Fixed versions
//! drop it; vulnerable versions return the bytes that the test sent. Then the test sends a correct heartbeat. A server
//! that answers only the correct heartbeat supports heartbeats and dropped the short one. So the test does not depend
//! on silence.
//!
//! A record that is longer than a valid answer is not read.

use crate::error::ProbeError;
use crate::tls::{
    Offer, TlsAnswer, TlsTarget, Until, Version, groups, header, is_refusal, record_of,
};
use serde::Serialize;

/// Length of each payload in bytes. The payload and 16 bytes of padding together pass OpenSSL's first length check, so
/// that the test reaches the second length check.
pub(crate) const PAYLOAD: usize = 32;

/// Minimum length of the padding in bytes (RFC 6520 section 4).
const PADDING: usize = 16;

/// Result of the Heartbleed test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Heartbeats {
    /// The server does not support heartbeats and is not vulnerable.
    NotOffered,
    /// The server answered the heartbeat without padding, as vulnerable OpenSSL does.
    Vulnerable,
    /// The server answered the correct heartbeat and dropped the heartbeat without padding.
    Fixed,
    /// The server ended the handshake with an alert. A vulnerable OpenSSL would send a heartbeat instead.
    Refused {
        /// Name of the alert.
        alert: String,
    },
    /// The server supports heartbeats but answered no heartbeat, or the test could not run.
    Unknown {
        /// Reason why there is no result.
        why: String,
    },
}

/// Encodes a heartbeat request with a correct length and `padding` bytes after the payload.
pub(crate) fn request(payload: &[u8; PAYLOAD], padding: usize) -> Vec<u8> {
    let mut out = vec![1, 0, PAYLOAD as u8];
    out.extend_from_slice(payload);
    out.resize(out.len() + padding, 0);
    out
}

/// Payloads of the short and of the correct heartbeat. They differ, and both are derived from one random value.
pub(crate) struct Pair {
    short: [u8; PAYLOAD],
    whole: [u8; PAYLOAD],
}

impl Pair {
    pub fn new(random: [u8; 32]) -> Self {
        Self {
            short: random,
            whole: random.map(|byte| !byte),
        }
    }

    /// Encodes the heartbeat request without padding.
    pub fn short(&self) -> Vec<u8> {
        request(&self.short, 0)
    }

    /// Encodes the correct heartbeat request.
    pub fn whole(&self) -> Vec<u8> {
        request(&self.whole, PADDING)
    }

    /// Classifies an answer of the server; returns `None` if the answer proves nothing.
    pub fn read(&self, answer: &[u8]) -> Option<Heartbeats> {
        let [2, high, low, rest @ ..] = answer else {
            return None;
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let payload = rest.get(..length)?;
        if payload == self.short {
            Some(Heartbeats::Vulnerable)
        } else if payload == self.whole {
            Some(Heartbeats::Fixed)
        } else {
            None
        }
    }
}

/// Maximum number of bytes of an answer that are read: type, length, payload and padding. RFC 6520 does not limit the
/// padding, but more than 256 bytes are unusual.
pub(crate) const LONGEST: usize = 3 + PAYLOAD + 256;

/// Runs the test on a TLS version before 1.3, with a suite that the server accepts.
pub(crate) fn on_tls(door: &TlsTarget<'_>, version: Version, suite: u16) -> Heartbeats {
    match attempt(door, version, suite) {
        Ok(outcome) => outcome,
        Err(error) => Heartbeats::Unknown {
            why: error.to_string(),
        },
    }
}

fn attempt(door: &TlsTarget<'_>, version: Version, suite: u16) -> Result<Heartbeats, ProbeError> {
    let offer = Offer {
        version,
        suites: &[suite],
        groups: &groups(version),
        share: None,
        extras: true,
    };
    let (mut connection, answer) = door.say(offer, Until::Done)?;
    match answer {
        TlsAnswer::Flight(flight) if flight.heartbeat => {}
        TlsAnswer::Flight(_) => return Ok(Heartbeats::NotOffered),
        TlsAnswer::Alert(alert) if is_refusal(alert) => return Ok(Heartbeats::NotOffered),
        TlsAnswer::Alert(alert) => {
            return Err(ProbeError::foreign("TLS", crate::tls::alert_name(alert)));
        }
    }
    let pair = Pair::new(door.visit.random());
    connection.expect("the answer to a heartbeat");
    let mut requests = record_of(24, version.number(), &pair.short());
    requests.extend(record_of(24, version.number(), &pair.whole()));
    connection.send(&requests)?;
    loop {
        let head = match connection.take(5) {
            Ok(head) => [head[0], head[1], head[2], head[3], head[4]],
            Err(error) => return Ok(silent(&error)),
        };
        let (kind, length) = header(head)?;
        match kind {
            24 if length > LONGEST => {
                return Ok(Heartbeats::Unknown {
                    why: format!(
                        "the server answers a heartbeat of {PAYLOAD} bytes with {length}, which were not read"
                    ),
                });
            }
            24 => {
                let body = connection.take(length)?;
                if let Some(outcome) = pair.read(&body) {
                    return Ok(outcome);
                }
            }
            21 => {
                let body = connection.take(length)?;
                return Ok(Heartbeats::Refused {
                    alert: crate::tls::alert_name(body.get(1).copied().unwrap_or(0)),
                });
            }
            _ => drop(connection.take(length)?),
        }
    }
}

/// Returns `Unknown`. Neither silence nor a closed connection shows whether the server is vulnerable.
fn silent(error: &ProbeError) -> Heartbeats {
    let why = match error {
        ProbeError::Closed { .. } => {
            "the server offers heartbeats, and hung up at one without padding".to_owned()
        }
        _ => "the server offers heartbeats, and answered neither a correct one nor one without padding \
              before keys are agreed on"
            .to_owned(),
    };
    Heartbeats::Unknown { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that the length field equals the number of payload bytes.
    #[test]
    fn a_request_names_the_length_it_has() {
        let pair = Pair::new([5; 32]);
        for (request, padding) in [(pair.short(), 0), (pair.whole(), PADDING)] {
            let named = usize::from(u16::from_be_bytes([request[1], request[2]]));
            assert_eq!(named + 3 + padding, request.len());
        }
    }

    #[test]
    fn only_our_own_bytes_mean_something() {
        let pair = Pair::new([5; 32]);
        let answer = |payload: &[u8]| {
            let mut answer = vec![2, 0, payload.len() as u8];
            answer.extend_from_slice(payload);
            answer.extend([0xaa; PADDING]);
            answer
        };
        assert_eq!(pair.read(&answer(&[5; 32])), Some(Heartbeats::Vulnerable));
        assert_eq!(pair.read(&answer(&[!5; 32])), Some(Heartbeats::Fixed));
        assert_eq!(pair.read(&answer(&[9; 32])), None);
        assert_eq!(pair.read(&answer(&[5; 31])), None);
        assert_eq!(pair.read(&[2, 0xff, 0xff, 5]), None);
        assert_eq!(pair.read(&[1, 0, 0]), None);
        assert_eq!(pair.read(&[]), None);
    }
}
