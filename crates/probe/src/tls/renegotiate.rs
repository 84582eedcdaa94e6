//! Tests whether clients can start a renegotiation of TLS 1.2 (RFC 5246 section 7.4.1.1). A renegotiation costs the
//! server a key exchange and costs the client almost nothing. So a few clients can use up the server's CPUs
//! (CVE-2011-1473).
//!
//! No TLS library supports renegotiation any more. Therefore a library makes only the first handshake. The keys, and
//! the data that RFC 5746 requires, are derived from the messages and the master secret of this handshake. The test
//! then sends one encrypted ClientHello, and closes the connection when the server answers.

use super::TlsTarget;
use super::answer::{alert_name, header};
use super::hello::{Hello, KeyShare};
use super::trust::{complete, provider};
use super::verifier::TakesAny;
use super::version::{Version, groups};
use crate::error::ProbeError;
use crate::visit::Connection;
use ring::{aead, digest, hmac};
use rustls::crypto::ring::cipher_suite as suite;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, KeyLog, SupportedCipherSuite};
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};

/// Result of testing whether clients can renegotiate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Renegotiation {
    /// The server supports no version that has renegotiation.
    NotPossible,
    /// The server started a second handshake.
    Accepted,
    /// The server refused the second handshake.
    Refused {
        /// How the server refused: name of an alert, closed connection, or no answer.
        how: String,
    },
    /// The test has no result.
    Unknown {
        /// Reason why there is no result.
        why: String,
    },
}

/// Suites with AES-GCM, whose records are simple to encrypt (RFC 5288).
const SUITES: [SupportedCipherSuite; 4] = [
    suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
];
/// Length in bytes of the implicit and of the explicit part of a nonce.
const IMPLICIT: usize = 4;
const EXPLICIT: usize = 8;
/// Types of TLS records.
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
/// Maximum number of records to read. A server may send other records before its refusal.
const MOST_RECORDS: usize = 8;

/// Runs the test with one connection.
pub(super) fn by_client(door: &TlsTarget<'_>) -> Renegotiation {
    match attempt(door) {
        Ok(outcome) => outcome,
        Err(error) => Renegotiation::Unknown {
            why: error.to_string(),
        },
    }
}

fn attempt(door: &TlsTarget<'_>) -> Result<Renegotiation, ProbeError> {
    let mut connection = door.open()?;
    connection.record_what_passes();
    let secret = Arc::new(MasterSecret::default());
    let mut tls = client(&door.any_name(), secret.clone())?;
    complete(&mut tls, &mut connection)?;
    let (sent, received) = connection.passed();
    let missing = || ProbeError::foreign("TLS", "a handshake that cannot be followed");
    let keys = Keys::derive(&sent, &received, &secret.take()).ok_or_else(missing)?;
    drop(tls);
    let hello = Hello {
        version: Version::Tls12,
        suites: &Version::Tls12.suites(),
        groups: &groups(Version::Tls12),
        server_name: door.name.as_deref(),
        share: KeyShare::Empty,
        heartbeat: false,
        compression: false,
        random: door.visit.random(),
        renegotiates: &keys.finished,
    };
    let message = hello.message();
    connection.expect("the answer to a renegotiation");
    let record = keys.seal(&message).ok_or_else(missing)?;
    match connection
        .send(&record)
        .and_then(|()| answer(&mut connection, &keys))
    {
        Ok(outcome) => Ok(outcome),
        Err(ProbeError::Closed { .. }) => Ok(refused("the server hung up")),
        Err(ProbeError::Time { .. }) => Ok(refused("no answer")),
        Err(error) => Err(error),
    }
}

fn refused(how: &str) -> Renegotiation {
    Renegotiation::Refused {
        how: how.to_owned(),
    }
}

/// Reads and classifies the server's answer to the second ClientHello.
fn answer(connection: &mut Connection<'_>, keys: &Keys) -> Result<Renegotiation, ProbeError> {
    // The server's first encrypted record was its Finished.
    for number in 1..=MOST_RECORDS as u64 {
        let head = connection.take(5)?;
        let head = [head[0], head[1], head[2], head[3], head[4]];
        let (kind, length) = header(head)?;
        let body = connection.take(length)?;
        let text = keys.open(number, kind, body);
        let text =
            text.ok_or_else(|| ProbeError::foreign("TLS", "a record that cannot be decrypted"))?;
        match (kind, &*text) {
            // A ServerHello.
            (HANDSHAKE, [2, ..]) => return Ok(Renegotiation::Accepted),
            (ALERT, [_, alert, ..]) => return Ok(refused(&alert_name(*alert))),
            // A HelloRequest, or unsolicited data.
            _ => {}
        }
    }
    Ok(refused("no answer"))
}

fn client(name: &str, secret: Arc<MasterSecret>) -> Result<ClientConnection, ProbeError> {
    let failed = |error: &dyn std::fmt::Display| ProbeError::foreign("TLS", error.to_string());
    let mut provider = provider();
    provider.cipher_suites = SUITES.to_vec();
    let provider = Arc::new(provider);
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .map_err(|error| failed(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TakesAny::new(provider)))
        .with_no_client_auth();
    config.key_log = secret;
    config.resumption = rustls::client::Resumption::disabled();
    let name = ServerName::try_from(name.to_owned()).map_err(|error| failed(&error))?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| failed(&error))
}

/// Receives the master secret of one connection from the library.
#[derive(Default)]
struct MasterSecret(Mutex<Vec<u8>>);

impl MasterSecret {
    fn take(&self) -> Vec<u8> {
        let mut secret = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut secret)
    }
}

/// Hides the secret in debug output.
impl std::fmt::Debug for MasterSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterSecret")
    }
}

impl KeyLog for MasterSecret {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if label == "CLIENT_RANDOM" {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = secret.to_vec();
        }
    }
}

/// Keys of a TLS 1.2 connection with AES-GCM, and the client's `verify_data`.
struct Keys {
    ours: aead::LessSafeKey,
    theirs: aead::LessSafeKey,
    our_nonce: [u8; IMPLICIT],
    their_nonce: [u8; IMPLICIT],
    finished: [u8; 12],
}

impl Keys {
    /// Derives the keys from the bytes of a handshake in both directions (RFC 5246 sections 6.3 and 7.4.9).
    fn derive(sent: &[u8], received: &[u8], secret: &[u8]) -> Option<Self> {
        let ours = messages(sent)?;
        let theirs = messages(received)?;
        let (client_hello, rest) = ours.split_first()?;
        let server_hello = theirs
            .first()
            .filter(|message| message.first() == Some(&2))?;
        // Skip header, version and random; then read the length of the session id, the session id and the
        // suite.
        let session = usize::from(*server_hello.get(38)?);
        let number = server_hello.get(39 + session..41 + session)?;
        let number = u16::from_be_bytes([number[0], number[1]]);
        let suite = SUITES.iter().find(|one| u16::from(one.suite()) == number)?;
        let long = [SUITES[2], SUITES[3]].contains(suite);
        let (hash, mac, cipher) = match long {
            true => (&digest::SHA384, hmac::HMAC_SHA384, &aead::AES_256_GCM),
            false => (&digest::SHA256, hmac::HMAC_SHA256, &aead::AES_128_GCM),
        };
        let client_random = client_hello.get(6..38)?;
        let server_random = server_hello.get(6..38)?;
        let mut transcript = digest::Context::new(hash);
        transcript.update(client_hello);
        // Messages after ServerHelloDone (14), such as a ticket, follow our Finished.
        for message in &theirs {
            transcript.update(message);
            if message.first() == Some(&14) {
                break;
            }
        }
        rest.iter().for_each(|message| transcript.update(message));
        let said = prf(
            mac,
            secret,
            b"client finished",
            transcript.finish().as_ref(),
            12,
        );
        let key = cipher.key_len();
        let randoms = [server_random, client_random].concat();
        let block = prf(
            mac,
            secret,
            b"key expansion",
            &randoms,
            2 * key + 2 * IMPLICIT,
        );
        let part = |from: usize, length: usize| block.get(from..from + length);
        let cipher = |bytes: &[u8]| {
            let key = aead::UnboundKey::new(cipher, bytes).ok()?;
            Some(aead::LessSafeKey::new(key))
        };
        Some(Self {
            ours: cipher(part(0, key)?)?,
            theirs: cipher(part(key, key)?)?,
            our_nonce: part(2 * key, IMPLICIT)?.try_into().ok()?,
            their_nonce: part(2 * key + IMPLICIT, IMPLICIT)?.try_into().ok()?,
            finished: said.try_into().ok()?,
        })
    }

    /// Encrypts a handshake message as the client's second encrypted record. The first encrypted record was the
    /// client's Finished message.
    fn seal(&self, message: &[u8]) -> Option<Vec<u8>> {
        let number = 1u64.to_be_bytes();
        let nonce = nonce(self.our_nonce, &number)?;
        let mut text = message.to_vec();
        let head = associated(&number, HANDSHAKE, text.len());
        self.ours
            .seal_in_place_append_tag(nonce, aead::Aad::from(head), &mut text)
            .ok()?;
        let body = [number.as_slice(), &text].concat();
        Some(super::hello::record(HANDSHAKE, 0x0303, &body))
    }

    /// Decrypts a record of the server. `number` is the sequence number of the record.
    fn open(&self, number: u64, kind: u8, mut body: Vec<u8>) -> Option<Vec<u8>> {
        let mut text = body.split_off_checked(EXPLICIT)?;
        let nonce = nonce(self.their_nonce, &body)?;
        let length = text.len().checked_sub(self.theirs.algorithm().tag_len())?;
        let head = associated(&number.to_be_bytes(), kind, length);
        let opened = self
            .theirs
            .open_in_place(nonce, aead::Aad::from(head), &mut text);
        opened.ok().map(|text| text.to_vec())
    }
}

trait SplitOffChecked: Sized {
    /// Splits off the bytes from position `at`; returns `None` if there are fewer bytes.
    fn split_off_checked(&mut self, at: usize) -> Option<Self>;
}

impl SplitOffChecked for Vec<u8> {
    fn split_off_checked(&mut self, at: usize) -> Option<Self> {
        (self.len() >= at).then(|| self.split_off(at))
    }
}

fn nonce(implicit: [u8; IMPLICIT], explicit: &[u8]) -> Option<aead::Nonce> {
    let bytes = [implicit.as_slice(), explicit].concat();
    aead::Nonce::try_assume_unique_for_key(&bytes).ok()
}

/// Builds the additional data of AES-GCM: sequence number, type, version, and length of the plaintext (RFC 5246 section
/// 6.2.3.3).
fn associated(number: &[u8; 8], kind: u8, length: usize) -> [u8; 13] {
    let mut head = [0; 13];
    head[..8].copy_from_slice(number);
    head[8..11].copy_from_slice(&[kind, 3, 3]);
    head[11..].copy_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    head
}

/// Computes the pseudorandom function of TLS 1.2 (RFC 5246 section 5).
fn prf(mac: hmac::Algorithm, secret: &[u8], label: &[u8], seed: &[u8], length: usize) -> Vec<u8> {
    let key = hmac::Key::new(mac, secret);
    let seed = [label, seed].concat();
    let mut a = hmac::sign(&key, &seed);
    let mut out = Vec::new();
    while out.len() < length {
        let block = hmac::sign(&key, &[a.as_ref(), &seed].concat());
        out.extend_from_slice(block.as_ref());
        a = hmac::sign(&key, a.as_ref());
    }
    out.truncate(length);
    out
}

/// Returns the handshake messages of one direction before ChangeCipherSpec, each with its header.
fn messages(mut records: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut text = Vec::new();
    while let [kind, _, _, high, low, rest @ ..] = records {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind != HANDSHAKE {
            break;
        }
        text.extend_from_slice(rest.get(..length)?);
        records = &rest[length..];
    }
    let mut messages = Vec::new();
    while let [_, a, b, c, ..] = *text.as_slice() {
        let length = 4 + u32::from_be_bytes([0, a, b, c]) as usize;
        let rest = text.split_off_checked(length)?;
        messages.push(std::mem::replace(&mut text, rest));
    }
    Some(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vector for SHA-256 from the IETF TLS mailing list ("TLS 1.2 PRF test vectors", 2009).
    #[test]
    fn the_pseudorandom_function_of_tls_1_2() {
        let bytes = |text: &str| -> Vec<u8> {
            let digits = text.as_bytes().chunks(2);
            let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16);
            digits.map(|two| byte(two).unwrap()).collect()
        };
        let secret = bytes("9bbe436ba940f017b17652849a71db35");
        let seed = bytes("a0ba9f936cda311827a6f796ffd5198c");
        let out = prf(hmac::HMAC_SHA256, &secret, b"test label", &seed, 100);
        assert_eq!(out[..8], bytes("e3f229ba727be17b")[..]);
        assert_eq!(out.len(), 100);
    }

    #[test]
    fn messages_are_cut_at_their_lengths() {
        let record = |kind: u8, body: &[u8]| super::super::hello::record(kind, 0x0303, body);
        let bytes = [
            record(22, &[1, 0, 0, 1, 9, 2, 0]),
            record(22, &[0, 0]),
            record(20, &[1]),
            record(22, &[0xff; 40]),
        ]
        .concat();
        assert_eq!(
            messages(&bytes).unwrap(),
            [vec![1, 0, 0, 1, 9], vec![2, 0, 0, 0]]
        );
        assert_eq!(messages(&record(22, &[1, 0, 0, 9, 1])), None);
        assert_eq!(messages(&[22, 3, 3, 0, 9, 1]), None);
    }
}
