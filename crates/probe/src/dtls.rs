//! Tests for Heartbleed over UDP. Sends a DTLS ClientHello with the server's cookie (RFC 6347 section 4.2.1), then the
//! two heartbeats of [`crate::heartbleed`].

use crate::error::ProbeError;
use crate::heartbleed::{Heartbeats, LONGEST, Pair};
use crate::remark::Remark;
use crate::tls::{Hello, KeyShare, Version, alert_name, groups, suite_name};
use crate::visit::{Visit, Where, now};
use serde::Serialize;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use tls_parser::TlsExtension;

/// Results of the DTLS probe of one UDP port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// Host and address that were probed.
    #[serde(flatten)]
    pub place: Where,
    /// Version that the server chose, `DTLS 1.0` or `DTLS 1.2`; `None` if the server refused the handshake.
    pub version: Option<&'static str>,
    /// Cipher suite that the server chose.
    pub suite: Option<String>,
    /// Result of the Heartbleed test.
    pub heartbeats: Heartbeats,
    /// Faults that were found, with their sources and remedies.
    pub remarks: Vec<Remark>,
    /// Checks without a result, each with its reason.
    pub unknown: Vec<String>,
}

/// Interval after which an unanswered datagram is sent again, because datagrams can be lost (RFC 6347 section 4.2.4.1).
const AGAIN: Duration = Duration::from_millis(1000);

/// Maximum number of datagrams that are read from one server.
const DATAGRAMS: usize = 200;

/// Tests a UDP port for Heartbleed.
///
/// # Errors
/// No DTLS answer arrives in time.
pub fn scan(visit: &Visit) -> Result<Report, ProbeError> {
    let mut talk = DtlsExchange::begin(visit)?;
    let mut report = Report {
        place: visit.place().clone(),
        version: None,
        suite: None,
        heartbeats: Heartbeats::NotOffered,
        remarks: Vec::new(),
        unknown: Vec::new(),
    };
    let hello = match talk.hello(visit)? {
        DtlsMessage::Hello(hello) => hello,
        DtlsMessage::Alert(alert) => {
            let why = format!("the server refuses our hello with {}", alert_name(alert));
            report.unknown.push(format!("Heartbleed: {why}"));
            report.heartbeats = Heartbeats::Unknown { why };
            return Ok(report);
        }
        DtlsMessage::Cookie(_) | DtlsMessage::Heartbeat(_) => {
            return Err(ProbeError::foreign("DTLS", "a cookie again and again"));
        }
    };
    report.version = Some(match hello.version {
        0xfeff => "DTLS 1.0",
        _ => "DTLS 1.2",
    });
    report.suite = Some(suite_name(hello.suite));
    if hello.heartbeat {
        report.heartbeats = talk.heartbeats(visit, hello.version)?;
    }
    match &report.heartbeats {
        Heartbeats::Vulnerable => report.remarks.push(crate::tls::heartbleed_remark()),
        Heartbeats::Unknown { why } => report.unknown.push(format!("Heartbleed: {why}")),
        _ => {}
    }
    Ok(report)
}

/// A message of the server that the probe evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DtlsMessage {
    /// The cookie of a HelloVerifyRequest.
    Cookie(Vec<u8>),
    /// The version and cipher suite that the server chose in its ServerHello.
    Hello(ServerHello),
    /// The body of a heartbeat.
    Heartbeat(Vec<u8>),
    /// The number of a fatal alert. A fatal alert ends the handshake.
    Alert(u8),
}

/// Version and cipher suite that a server chose in its ServerHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHello {
    version: u16,
    suite: u16,
    heartbeat: bool,
}

/// Parses the records of a datagram. Skips encrypted records, damaged records and records of other types.
/// Returns `None` if the datagram is not DTLS.
#[must_use]
pub fn datagram(mut bytes: &[u8]) -> Option<Vec<DtlsMessage>> {
    let mut heard = Vec::new();
    let mut is_dtls = false;
    while let Ok((rest, header)) = tls_parser::parse_dtls_record_header(bytes) {
        let length = usize::from(header.length);
        if !matches!(header.version.0, 0xfeff | 0xfefd) || length > rest.len() {
            break;
        }
        is_dtls = true;
        let (body, rest) = rest.split_at(length);
        bytes = rest;
        if header.epoch != 0 {
            continue;
        }
        match (header.content_type.0, body) {
            (21, [level, description, ..]) if *level == 2 => {
                heard.push(DtlsMessage::Alert(*description))
            }
            (22, _) => heard.extend(handshake(body)),
            (24, _) => heard.push(DtlsMessage::Heartbeat(body.to_vec())),
            _ => {}
        }
    }
    is_dtls.then_some(heard)
}

/// Parses the unfragmented messages of a handshake record. Each message has a header of 12 bytes: type,
/// length, sequence number, fragment offset and fragment length (RFC 6347 section 4.2.2).
fn handshake(mut body: &[u8]) -> Vec<DtlsMessage> {
    let mut heard = Vec::new();
    while let Some((head, rest)) = body.split_at_checked(12) {
        let number =
            |at: usize| u32::from_be_bytes([0, head[at], head[at + 1], head[at + 2]]) as usize;
        let (length, offset, fragment) = (number(1), number(6), number(9));
        let Some((message, rest)) = rest.split_at_checked(fragment) else {
            break;
        };
        body = rest;
        if offset != 0 || length != fragment {
            continue;
        }
        match (head[0], message) {
            (3, [_, _, size, cookie @ ..]) if cookie.len() == usize::from(*size) => {
                heard.push(DtlsMessage::Cookie(cookie.to_vec()));
            }
            (2, _) => heard.extend(server_hello(message).map(DtlsMessage::Hello)),
            _ => {}
        }
    }
    heard
}

fn server_hello(message: &[u8]) -> Option<ServerHello> {
    // A DTLS ServerHello differs from a TLS ServerHello only in the two version bytes. The parser would refuse
    // them.
    let (version, rest) = message.split_first_chunk::<2>()?;
    let like_tls = [&[3, 3], rest].concat();
    let (_, hello) = tls_parser::parse_tls_handshake_server_hello(&like_tls).ok()?;
    let extensions = hello.ext.unwrap_or_default();
    let (_, extensions) = tls_parser::parse_tls_server_hello_extensions(extensions).ok()?;
    Some(ServerHello {
        version: u16::from_be_bytes(*version),
        suite: hello.cipher.0,
        heartbeat: extensions
            .iter()
            .any(|extension| matches!(extension, TlsExtension::Heartbeat(1))),
    })
}

/// Messages to and from one DTLS server.
struct DtlsExchange {
    socket: UdpSocket,
    address: SocketAddr,
    until: Instant,
    time: Duration,
    sequence: u64,
    received: usize,
}

impl DtlsExchange {
    fn begin(visit: &Visit) -> Result<Self, ProbeError> {
        let address = visit.place().address;
        let (until, time) = visit.until()?;
        let own: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(own)
            .and_then(|socket| socket.connect(address).map(|()| socket))
            .map_err(|source| ProbeError::Connect { address, source })?;
        Ok(Self {
            socket,
            address,
            until,
            time,
            sequence: 0,
            received: 0,
        })
    }

    /// Sends `body` in a record of epoch 0.
    fn send(&mut self, kind: u8, version: u16, body: &[u8]) -> Result<(), ProbeError> {
        let mut out = vec![kind];
        out.extend_from_slice(&version.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(body);
        self.sequence += 1;
        let address = self.address;
        let sent = self.socket.send(&out);
        sent.map(drop)
            .map_err(|source| ProbeError::Connect { address, source })
    }

    /// Receives the next datagram and returns the messages in it; `None` if no datagram arrives in time.
    fn hear(
        &mut self,
        waiting_for: &'static str,
        within: Duration,
    ) -> Result<Option<Vec<DtlsMessage>>, ProbeError> {
        let left = self.until.saturating_duration_since(now());
        if left.is_zero() || self.received >= DATAGRAMS {
            return Err(ProbeError::Time {
                waiting_for,
                after: self.time,
            });
        }
        let io = |source| ProbeError::Io {
            waiting_for,
            source,
        };
        let wait = left.min(within).max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(wait)).map_err(io)?;
        let mut buffer = vec![0; 16 << 10];
        match self.socket.recv(&mut buffer) {
            Ok(length) => {
                self.received += 1;
                let bytes = &buffer[..length];
                datagram(bytes)
                    .map(Some)
                    .ok_or_else(|| ProbeError::foreign("DTLS", crate::error::shown(bytes)))
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(None),
                io::ErrorKind::ConnectionRefused => Err(ProbeError::Connect {
                    address: self.address,
                    source: error,
                }),
                _ => Err(io(error)),
            },
        }
    }

    /// Sends ClientHello messages until the server answers with a ServerHello or an alert.
    fn hello(&mut self, visit: &Visit) -> Result<DtlsMessage, ProbeError> {
        let suites = Version::Tls12.suites();
        let hello = Hello {
            version: Version::Tls12,
            suites: &suites,
            groups: &groups(Version::Tls12),
            server_name: visit.place().target.server_name(),
            share: KeyShare::Empty,
            heartbeat: true,
            compression: false,
            random: visit.random(),
            renegotiates: &[],
        };
        let mut cookie = Vec::new();
        let mut number = 0;
        loop {
            // The record of the first hello has version DTLS 1.0, so that every server can read it (RFC 5246
            // appendix E.1 has the same rule for TLS).
            self.send(22, 0xfeff, &message(number, &hello.body(Some(&cookie))))?;
            while let Some(heard) = self.hear("a ServerHello of DTLS", AGAIN)? {
                let mut fresh = false;
                for one in heard {
                    match one {
                        DtlsMessage::Cookie(given) if given != cookie && number < 4 => {
                            cookie = given;
                            number += 1;
                            fresh = true;
                        }
                        DtlsMessage::Cookie(_) | DtlsMessage::Heartbeat(_) => {}
                        DtlsMessage::Hello(_) | DtlsMessage::Alert(_) => return Ok(one),
                    }
                }
                if fresh {
                    break;
                }
            }
        }
    }

    fn heartbeats(&mut self, visit: &Visit, version: u16) -> Result<Heartbeats, ProbeError> {
        let pair = Pair::new(visit.random());
        let mut settled: Option<Instant> = None;
        // OpenSSL writes its heartbeat answer into the buffer of its current flight. The answer is sent when
        // the flight is sent again. So wait until the flight is over before the next heartbeats are sent.
        while let Ok(Some(_)) = self.hear("the end of a flight", AGAIN / 4) {}
        let mut within = AGAIN;
        loop {
            within *= 2;
            self.send(24, version, &pair.short())?;
            self.send(24, version, &pair.whole())?;
            loop {
                // The server may repeat its flight in between.
                if settled.is_some_and(|at| at <= now()) {
                    return Ok(Heartbeats::Fixed);
                }
                let heard = match self.hear("the answer to a heartbeat", within) {
                    Ok(Some(heard)) => heard,
                    Ok(None) => break,
                    Err(ProbeError::Time { .. }) if settled.is_some() => {
                        return Ok(Heartbeats::Fixed);
                    }
                    Err(ProbeError::Time { .. }) => {
                        return Ok(Heartbeats::Unknown {
                            why: "the server offers heartbeats, and answered neither a correct one nor \
                                  one without padding before keys are agreed on"
                                .to_owned(),
                        });
                    }
                    Err(error) => return Err(error),
                };
                for one in heard {
                    match one {
                        DtlsMessage::Heartbeat(body) if body.len() > LONGEST => {}
                        DtlsMessage::Heartbeat(body) => match pair.read(&body) {
                            Some(Heartbeats::Vulnerable) => return Ok(Heartbeats::Vulnerable),
                            // Datagrams can arrive out of order. Wait a while before the other answer counts
                            // as missing.
                            Some(_) => {
                                settled.get_or_insert_with(|| now() + AGAIN / 2);
                            }
                            None => {}
                        },
                        DtlsMessage::Alert(alert) => {
                            return Ok(Heartbeats::Refused {
                                alert: alert_name(alert),
                            });
                        }
                        DtlsMessage::Cookie(_) | DtlsMessage::Hello(_) => {}
                    }
                }
            }
            if settled.is_some() {
                return Ok(Heartbeats::Fixed);
            }
        }
    }
}

/// Encodes a handshake message in one fragment.
fn message(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = vec![1];
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(&[0, number, 0, 0, 0]);
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(body);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, epoch: u8, body: &[u8]) -> Vec<u8> {
        let mut out = vec![kind, 0xfe, 0xff, 0, epoch, 0, 0, 0, 0, 0, 7, 0];
        out.push(u8::try_from(body.len()).unwrap());
        out.extend_from_slice(body);
        out
    }

    #[test]
    fn a_datagram_holds_records() {
        let verify = [3, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 5, 0xfe, 0xff, 2, 8, 9];
        let mut bytes = record(22, 0, &verify);
        bytes.extend(record(24, 0, &[2, 0, 0]));
        bytes.extend(record(24, 1, &[9, 9, 9]));
        bytes.extend(record(21, 0, &[2, 40]));
        let expected = vec![
            DtlsMessage::Cookie(vec![8, 9]),
            DtlsMessage::Heartbeat(vec![2, 0, 0]),
            DtlsMessage::Alert(40),
        ];
        assert_eq!(datagram(&bytes), Some(expected));
        assert_eq!(datagram(b"HTTP/1.1 400 Bad Request\r\n"), None);
        assert_eq!(datagram(&[]), None);
    }

    /// Parses bytes that were recorded from gnutls-serv (GnuTLS 3.7.9).
    #[test]
    fn the_hello_of_a_real_server_is_read() {
        let cookie = datagram(include_bytes!("../fixtures/gnutls-3.7.9-dtls-cookie.bin"));
        assert!(matches!(cookie.unwrap()[..], [DtlsMessage::Cookie(_)]));
        let hello = datagram(include_bytes!("../fixtures/gnutls-3.7.9-dtls-hello.bin"));
        let expected = ServerHello {
            version: 0xfefd,
            suite: 0xc02f,
            heartbeat: true,
        };
        assert_eq!(hello.unwrap(), [DtlsMessage::Hello(expected)]);
    }

    #[test]
    fn a_fragment_is_passed_over() {
        let part = [2, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1];
        assert_eq!(datagram(&record(22, 0, &part)), Some(vec![]));
    }
}
