//! Computes pins of public keys in the formats that are in use today. A pin is the SHA-256 of the SubjectPublicKeyInfo
//! in DER. Therefore a certificate, its signing request and its key have the same pin.

use crate::certificate::{Certificate, hex, key_name};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{
    CertificateDer, CertificateSigningRequestDer, PrivateKeyDer, SubjectPublicKeyInfoDer,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::error::Error;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

/// Pin of a public key: the SHA-256 of its SubjectPublicKeyInfo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Pin {
    /// Pin in Base64, for curl, Android and iOS.
    pub base64: String,
    /// Pin in hexadecimal, for DANE.
    pub hex: String,
}

/// Computes the pin of a SubjectPublicKeyInfo in DER.
#[must_use]
pub fn spki_pin(spki: &[u8]) -> Pin {
    let digest = Sha256::digest(spki);
    Pin {
        base64: BASE64_STANDARD.encode(digest),
        hex: hex(&digest),
    }
}

/// A certificate, request or key in a file, and the pin of its public key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Pinned {
    /// Kind of the object: `certificate`, `request`, `private key` or `public key`.
    pub kind: &'static str,
    /// Distinguished name of the owner; `None` if the object does not contain a name.
    pub subject: Option<String>,
    /// Algorithm and size of the key.
    pub key: String,
    /// Pin of the public key.
    pub pin: Pin,
}

/// Reasons why no pin can be computed.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The file contains no certificate, request or key that can be parsed.
    #[error(
        "no certificate, request or key in it; PEM or DER is read (a PKCS#12 file first goes through \
         `openssl pkcs12 -in FILE -nokeys`)"
    )]
    Nothing,
    /// The key needs a passphrase.
    #[error(
        "the key is encrypted, and assay asks for no passphrase: pin its certificate, or the output of \
         `openssl pkey -in FILE -pubout`"
    )]
    Encrypted,
    /// The library cannot compute the public key from this kind of private key.
    #[error(
        "the public part of this kind of key cannot be computed here ({source}): pin the output of \
         `openssl pkey -in FILE -pubout`"
    )]
    Key {
        /// Error of the cryptographic library.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A certificate, request or key in the file is damaged.
    #[error("the {kind} in it cannot be read: {source}")]
    Damaged {
        /// Kind of the object, by its PEM label.
        kind: &'static str,
        /// Error of the parser.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Computes the pins of all objects in a file: first of the certificates, then of the requests, then of the keys. The
/// file is PEM, or contains one object in DER.
///
/// # Errors
/// The file contains no readable object, or an object is damaged.
pub fn of_file(bytes: &[u8]) -> Result<Vec<Pinned>, PinError> {
    let holds = |label: &str| {
        let label = label.as_bytes();
        bytes.windows(label.len()).any(|part| part == label)
    };
    if !holds("-----BEGIN ") {
        return of_der(bytes).map(|pinned| vec![pinned]);
    }
    if holds("-----BEGIN ENCRYPTED PRIVATE KEY") || holds("Proc-Type: 4,ENCRYPTED") {
        return Err(PinError::Encrypted);
    }
    let mut all = Vec::new();
    let damaged = |kind| {
        move |error: rustls::pki_types::pem::Error| PinError::Damaged {
            kind,
            source: error.into(),
        }
    };
    for der in CertificateDer::pem_slice_iter(bytes) {
        all.push(certificate(&der.map_err(damaged("certificate"))?)?);
    }
    for der in CertificateSigningRequestDer::pem_slice_iter(bytes) {
        all.push(request(&der.map_err(damaged("request"))?)?);
    }
    for der in SubjectPublicKeyInfoDer::pem_slice_iter(bytes) {
        all.push(public_key(&der.map_err(damaged("public key"))?)?);
    }
    for der in PrivateKeyDer::pem_slice_iter(bytes) {
        all.push(private_key(&der.map_err(damaged("private key"))?)?);
    }
    match all.is_empty() {
        true => Err(PinError::Nothing),
        false => Ok(all),
    }
}

fn of_der(bytes: &[u8]) -> Result<Pinned, PinError> {
    let key = || PrivateKeyDer::try_from(bytes.to_vec()).ok();
    certificate(bytes)
        .or_else(|_| request(bytes))
        .or_else(|_| public_key(bytes))
        .or_else(|_| private_key(&key().ok_or(PinError::Nothing)?))
}

fn certificate(der: &[u8]) -> Result<Pinned, PinError> {
    let read = Certificate::read(der).map_err(|error| PinError::Damaged {
        kind: "certificate",
        source: error.source,
    })?;
    Ok(Pinned {
        kind: "certificate",
        subject: Some(read.subject),
        key: read.key,
        pin: read.pin,
    })
}

fn request(der: &[u8]) -> Result<Pinned, PinError> {
    let (_, read) = X509CertificationRequest::from_der(der).map_err(|error| PinError::Damaged {
        kind: "request",
        source: error.into(),
    })?;
    let info = &read.certification_request_info;
    Ok(Pinned {
        kind: "request",
        subject: Some(info.subject.to_string()),
        ..spki("request", &info.subject_pki)
    })
}

fn public_key(der: &[u8]) -> Result<Pinned, PinError> {
    match SubjectPublicKeyInfo::from_der(der) {
        Ok(([], key)) => Ok(spki("public key", &key)),
        Ok(_) => Err(PinError::Nothing),
        Err(error) => Err(PinError::Damaged {
            kind: "public key",
            source: error.into(),
        }),
    }
}

fn private_key(key: &PrivateKeyDer<'_>) -> Result<Pinned, PinError> {
    let signing = rustls::crypto::ring::sign::any_supported_type(key);
    let signing = signing.map_err(|error| PinError::Key {
        source: error.into(),
    })?;
    let public = signing.public_key().ok_or(PinError::Key {
        source: "it has no public part".into(),
    })?;
    public_key(&public).map(|pinned| Pinned {
        kind: "private key",
        ..pinned
    })
}

fn spki(kind: &'static str, key: &SubjectPublicKeyInfo<'_>) -> Pinned {
    Pinned {
        kind,
        subject: None,
        key: key_name(key).0,
        pin: spki_pin(key.raw),
    }
}

impl Pin {
    /// Formats a DANE record (TLSA) for the server's own certificate, its public key and SHA-256 (RFC 6698 section 2,
    /// RFC 7671 section 5.1).
    #[must_use]
    pub fn tlsa(&self, port: u16, host: &str) -> String {
        let host = host.trim_end_matches('.');
        format!("_{port}._tcp.{host}. IN TLSA 3 1 1 {}", self.hex)
    }

    /// Formats the pin for `curl --pinnedpubkey`.
    #[must_use]
    pub fn curl(&self) -> String {
        format!("sha256//{}", self.base64)
    }

    /// Formats a `pin` element of Android's network security configuration.
    #[must_use]
    pub fn android(&self) -> String {
        format!("<pin digest=\"SHA-256\">{}</pin>", self.base64)
    }

    /// Formats an entry of `NSPinnedLeafIdentities` in iOS's `NSPinnedDomains`.
    #[must_use]
    pub fn ios(&self) -> String {
        format!(
            "<dict><key>SPKI-SHA256-BASE64</key><string>{}</string></dict>",
            self.base64
        )
    }
}

/// Explanation for users who look for pins in HTTP headers.
pub const HPKP: &str = "HPKP (Public-Key-Pins, RFC 7469) is gone: Chrome removed it in 72, Firefox switched it off in 72, and \
    no browser obeys it. Do not send the header: pins belong into programs that you ship yourself, \
    and into DNS as TLSA records.";
