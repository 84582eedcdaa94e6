//! Parses a server's answer to a ClientHello: reassembles messages from records and parses their fields.

use crate::error::{ProbeError, shown};
use serde::Serialize;
use tls_parser::{TlsExtension, TlsMessageHandshake};

/// Message after which the probe stops reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Stop reading after the ServerHello.
    Hello,
    /// Stop reading after the certificate and the key exchange, in versions before 1.3.
    Done,
}

/// Parameters of the key exchange before TLS 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Exchange")]
pub enum KeyExchange {
    /// Id of a named group.
    Group(u16),
    /// Size of a Diffie-Hellman prime, in bits.
    Prime(usize),
}

/// First messages of a server, up to the encrypted part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Version number that the server chose, as on the wire.
    pub version: u16,
    /// Id of the cipher suite that the server chose.
    pub suite: u16,
    /// Id of the compression method that the server chose; 0 means no compression.
    pub compression: u8,
    /// Whether the server requests a ClientHello with another key share (HelloRetryRequest, TLS 1.3).
    pub retry: bool,
    /// Id of the group of the server's key share (TLS 1.3).
    pub group: Option<u16>,
    /// Whether the server supports heartbeats.
    pub heartbeat: bool,
    /// Whether the server supports secure renegotiation (RFC 5746).
    pub secure_renegotiation: bool,
    /// Whether the server supports the extended master secret (RFC 7627).
    pub extended_master_secret: bool,
    /// Certificates in DER, the server's own first.
    pub chain: Vec<Vec<u8>>,
    /// Parameters of the key exchange; `None` unless the suite is ephemeral and older than TLS 1.3.
    pub exchange: Option<KeyExchange>,
}

/// Answer of a server to a ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsAnswer {
    /// The server continues the handshake.
    Flight(Box<Flight>),
    /// The server refuses the handshake with the alert of this number.
    Alert(u8),
}

/// Parses the header of a record and returns its type and length.
///
/// # Errors
/// The bytes are not a TLS record.
pub fn header(bytes: [u8; 5]) -> Result<(u8, usize), ProbeError> {
    let [kind, major, _, high, low] = bytes;
    let length = usize::from(u16::from_be_bytes([high, low]));
    // RFC 5246 section 6.2.3: encrypted records may be 2,048 bytes longer.
    if !(20..=24).contains(&kind) || major != 3 || length > (1 << 14) + 2048 {
        return Err(ProbeError::foreign("TLS", shown(&bytes)));
    }
    Ok((kind, length))
}

/// Random value that marks a ServerHello as a HelloRetryRequest (RFC 8446 section 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Maximum message length in bytes; no valid chain is longer.
const LONGEST_MESSAGE: usize = 128 << 10;

/// Reassembles handshake messages from records. Stores at most the bytes of its input.
#[derive(Debug)]
pub struct Assembler {
    until: Until,
    pending: Vec<u8>,
    flight: Flight,
    seen_hello: bool,
}

impl Assembler {
    /// Creates an assembler that stops at `until`.
    #[must_use]
    pub fn new(until: Until) -> Self {
        Self {
            until,
            pending: Vec::new(),
            flight: Flight::default(),
            seen_hello: false,
        }
    }

    /// Adds the body of a record. Returns the answer of the server once it is complete.
    ///
    /// # Errors
    /// The bytes are not TLS.
    pub fn record(&mut self, kind: u8, body: &[u8]) -> Result<Option<TlsAnswer>, ProbeError> {
        match kind {
            21 => match body {
                // A warning such as unrecognized_name does not end the handshake.
                [1, description, ..] if *description != 0 => Ok(None),
                [_, description, ..] => Ok(Some(TlsAnswer::Alert(*description))),
                _ => Err(ProbeError::foreign("TLS", "an alert without a number")),
            },
            22 => self.handshake(body),
            // TLS 1.3 sends ChangeCipherSpec for compatibility.
            20 => Ok(None),
            // An encrypted record: everything after it is encrypted, too.
            23 if self.seen_hello => Ok(Some(self.flight())),
            _ => Err(ProbeError::foreign(
                "TLS",
                format!("a record of kind {kind} before the handshake"),
            )),
        }
    }

    fn flight(&mut self) -> TlsAnswer {
        TlsAnswer::Flight(Box::new(std::mem::take(&mut self.flight)))
    }

    fn handshake(&mut self, body: &[u8]) -> Result<Option<TlsAnswer>, ProbeError> {
        self.pending.extend_from_slice(body);
        while let [kind, a, b, c, ..] = *self.pending.as_slice() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > LONGEST_MESSAGE {
                let what = format!("a handshake message of {length} bytes");
                return Err(ProbeError::foreign("TLS", what));
            }
            if self.pending.len() < 4 + length {
                return Ok(None);
            }
            let rest = self.pending.split_off(4 + length);
            let message = std::mem::replace(&mut self.pending, rest);
            if self.message(kind, &message[4..])? {
                return Ok(Some(self.flight()));
            }
        }
        Ok(None)
    }

    /// Parses a message. Returns true if the probe stops after this message.
    fn message(&mut self, kind: u8, body: &[u8]) -> Result<bool, ProbeError> {
        match kind {
            2 => {
                self.hello(body)?;
                self.seen_hello = true;
                Ok(self.until == Until::Hello || self.flight.version == 0x0304)
            }
            _ if !self.seen_hello => Err(ProbeError::foreign(
                "TLS",
                format!("a handshake message of kind {kind} before the hello"),
            )),
            11 => {
                self.flight.chain = chain(body)?;
                Ok(false)
            }
            12 => {
                self.flight.exchange = exchange(self.flight.suite, body);
                Ok(false)
            }
            14 => Ok(true),
            _ => Ok(false),
        }
    }

    fn hello(&mut self, body: &[u8]) -> Result<(), ProbeError> {
        let broken = || ProbeError::foreign("TLS", "a ServerHello that cannot be read");
        let (_, hello) =
            tls_parser::parse_tls_handshake_server_hello(body).map_err(|_| broken())?;
        let flight = &mut self.flight;
        flight.version = hello.version.0;
        flight.suite = hello.cipher.0;
        flight.compression = hello.compression.0;
        flight.retry = hello.random == RETRY;
        let Some(extensions) = hello.ext else {
            return Ok(());
        };
        let (_, extensions) =
            tls_parser::parse_tls_server_hello_extensions(extensions).map_err(|_| broken())?;
        for extension in extensions {
            match extension {
                TlsExtension::SupportedVersions(versions) => {
                    flight.version = versions.first().map_or(flight.version, |first| first.0);
                }
                TlsExtension::KeyShare([high, low, ..]) => {
                    flight.group = Some(u16::from_be_bytes([*high, *low]));
                }
                TlsExtension::Heartbeat(mode) => flight.heartbeat = mode == 1,
                TlsExtension::RenegotiationInfo(_) => flight.secure_renegotiation = true,
                TlsExtension::ExtendedMasterSecret => flight.extended_master_secret = true,
                _ => {}
            }
        }
        Ok(())
    }
}

fn chain(body: &[u8]) -> Result<Vec<Vec<u8>>, ProbeError> {
    match tls_parser::parse_tls_handshake_msg_certificate(body) {
        Ok((_, TlsMessageHandshake::Certificate(read))) => Ok(read
            .cert_chain
            .iter()
            .map(|one| one.data.to_vec())
            .collect()),
        _ => Err(ProbeError::foreign(
            "TLS",
            "certificates that cannot be read",
        )),
    }
}

/// Parses the parameters of a ServerKeyExchange. The format of the parameters depends on the suite.
fn exchange(suite: u16, body: &[u8]) -> Option<KeyExchange> {
    use tls_parser::{ECParametersContent, parse_dh_params, parse_ec_parameters};
    let name = super::version::suite_name(suite);
    // With a pre-shared key, the identity hint precedes the parameters (RFC 4279 section 3).
    if name.contains("PSK") {
        return None;
    }
    if name.contains("_ECDH") {
        let (_, parameters) = parse_ec_parameters(body).ok()?;
        return match parameters.params_content {
            ECParametersContent::NamedGroup(group) => Some(KeyExchange::Group(group.0)),
            _ => None,
        };
    }
    if name.starts_with("TLS_DH") {
        let (_, parameters) = parse_dh_params(body).ok()?;
        return Some(KeyExchange::Prime(bits(parameters.dh_p)));
    }
    None
}

/// Returns the bit length of a big-endian number.
pub(crate) fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    match number.get(zeros) {
        Some(first) => (number.len() - zeros) * 8 - first.leading_zeros() as usize,
        None => 0,
    }
}

/// Returns whether an alert means that the server refuses the offer. All other alerts mean that the server could not
/// parse the ClientHello.
#[must_use]
pub fn is_refusal(alert: u8) -> bool {
    // handshake_failure, illegal_parameter, protocol_version, insufficient_security, internal_error (sent by
    // OpenSSL 3 when its security level permits no suite), missing_extension.
    matches!(alert, 40 | 47 | 70 | 71 | 80 | 109)
}

/// Returns the name of an alert (RFC 8446 section 6, RFC 5246 section 7.2).
#[must_use]
pub fn alert_name(alert: u8) -> String {
    let name = match alert {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        22 => "record_overflow",
        40 => "handshake_failure",
        42 => "bad_certificate",
        47 => "illegal_parameter",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        109 => "missing_extension",
        110 => "unsupported_extension",
        112 => "unrecognized_name",
        116 => "certificate_required",
        120 => "no_application_protocol",
        _ => return format!("alert {alert}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_a_number() {
        assert_eq!(bits(&[]), 0);
        assert_eq!(bits(&[0, 0]), 0);
        assert_eq!(bits(&[0, 1]), 1);
        assert_eq!(bits(&[0x80, 0]), 16);
    }

    /// Parses a minimal ServerHello of TLS 1.2 that is split into two parts at every position.
    #[test]
    fn messages_may_be_cut_anywhere() {
        let mut body = vec![3, 3];
        body.extend([1; 32]);
        body.extend([0, 0xc0, 0x2f, 0]);
        let mut message = vec![2, 0, 0, u8::try_from(body.len()).unwrap()];
        message.extend(body);
        for cut in 0..message.len() {
            let mut assembler = Assembler::new(Until::Hello);
            assert_eq!(assembler.record(22, &message[..cut]).unwrap(), None);
            match assembler.record(22, &message[cut..]).unwrap() {
                Some(TlsAnswer::Flight(flight)) => {
                    assert_eq!((flight.version, flight.suite), (0x0303, 0xc02f));
                }
                other => panic!("{cut}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_not_tls_is_told() {
        assert!(header(*b"SSH-2").is_err());
        assert!(header(*b"HTTP/").is_err());
        assert!(header([22, 3, 3, 0xff, 0xff]).is_err());
        assert_eq!(header([22, 3, 1, 0, 4]).unwrap(), (22, 4));
        let mut assembler = Assembler::new(Until::Done);
        assert!(assembler.record(22, &[2, 0xff, 0xff, 0xff]).is_err());
        assert!(
            Assembler::new(Until::Done)
                .record(22, &[11, 0, 0, 0])
                .is_err()
        );
        assert!(Assembler::new(Until::Done).record(21, &[]).is_err());
        let warned = Assembler::new(Until::Done).record(21, &[1, 112]).unwrap();
        assert_eq!(warned, None);
    }
}
