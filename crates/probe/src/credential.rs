//! Parses certificates, certificate signing requests and keys in files, for X.509 and SSH. Does not verify signatures.

mod openssh;

use crate::certificate::{Certificate, key_name};
use crate::pins::{Pin, spki_pin};
use jiff::Timestamp;
use rustls::pki_types::pem::{SectionKind, from_buf};
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};
use serde::Serialize;
use std::error::Error;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

/// A certificate, certificate signing request or key. For a private key, contains only a description of the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Credential {
    /// An X.509 certificate, for TLS.
    Certificate(Box<Certificate>),
    /// A certificate signing request (PKCS #10).
    Request(CertificateRequest),
    /// A public key or a private key in PEM or DER form.
    Key(PemKey),
    /// An OpenSSH certificate of a user or a host.
    SshCertificate(Box<SshCertificate>),
    /// An OpenSSH public or private key.
    SshKey(SshKey),
}

/// Fields of a certificate signing request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CertificateRequest {
    /// Distinguished name of the owner.
    pub subject: String,
    /// DNS names and addresses for which the certificate shall be valid.
    pub names: Vec<String>,
    /// Algorithm and size of the public key.
    pub key: String,
    /// Pin of the public key.
    pub pin: Pin,
}

/// Description of a key in PEM or DER form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PemKey {
    /// Whether the file contains a private key; else a public key.
    pub private: bool,
    /// Whether the key is protected by a passphrase.
    pub encrypted: bool,
    /// Algorithm and size; `None` if the key is encrypted or of an unknown kind.
    pub key: Option<String>,
    /// Pin of the public key; `None` if it cannot be computed.
    pub pin: Option<Pin>,
}

/// Fields of an OpenSSH certificate (PROTOCOL.certkeys of OpenSSH).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SshCertificate {
    /// Kind of the certificate: `user` or `host`.
    pub of: &'static str,
    /// Key ID: the text that sshd writes into its log at a login with this certificate.
    pub key_id: String,
    /// Serial number that the certificate authority assigned.
    pub serial: u64,
    /// Login names of a user, or host names of a server. Empty if the certificate is valid for all names.
    pub principals: Vec<String>,
    /// Start of the validity period; `None` if there is no limit.
    pub not_before: Option<Timestamp>,
    /// End of the validity period; `None` if there is no limit.
    pub not_after: Option<Timestamp>,
    /// Critical options in the form `name=value`, such as `force-command=…`.
    pub critical_options: Vec<String>,
    /// Names of the extensions, such as `permit-pty`.
    pub extensions: Vec<String>,
    /// Algorithm and size of the certified key.
    pub key: String,
    /// Fingerprint of the certified key, in the format of `ssh-keygen -l`.
    pub fingerprint: String,
    /// Fingerprint of the key with which the certificate authority signed.
    pub authority: String,
}

/// Description of an OpenSSH key, without secret parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SshKey {
    /// Whether the file contains a private key; else a public key.
    pub private: bool,
    /// Whether the key is protected by a passphrase.
    pub encrypted: bool,
    /// Algorithm and size of the key.
    pub key: String,
    /// Fingerprint in the format of `ssh-keygen -l`.
    pub fingerprint: String,
    /// Comment of the key, often in the form `user@machine`.
    pub comment: Option<String>,
    /// Options of a line of `authorized_keys`, or names of a line of `known_hosts`.
    pub options: Option<String>,
}

/// Reason why a file cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The file contains no certificate, request or key that can be parsed.
    #[error(
        "no certificate, request or key in it. Supported: PEM, DER and the files of OpenSSH (a PKCS #12 file first \
         goes through `openssl pkcs12 -in FILE -nokeys`)"
    )]
    Nothing,
    /// A certificate, request or key in the file is damaged.
    #[error("line {line}: this {kind} cannot be read: {source}")]
    Damaged {
        /// Number of the line in which the damaged part begins, from 1; always 1 in a DER file.
        line: usize,
        /// Kind of the damaged part, by its label.
        kind: &'static str,
        /// Error of the parser.
        source: Box<dyn Error + Send + Sync>,
    },
}

type Read = Result<Credential, Box<dyn Error + Send + Sync>>;

/// Parses all certificates, requests and keys of a file, in order.
///
/// # Errors
/// The file contains nothing that can be parsed, or a part of it is damaged.
pub fn read_credentials(bytes: &[u8]) -> Result<Vec<Credential>, CredentialError> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return read_der(bytes).map(|one| vec![one]);
    };
    let mut all = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let (kind, read) = match pem_label(line) {
            Some(label) => {
                let end = format!("-----END {label}-----");
                let mut block = format!("{line}\n");
                for (_, line) in lines.by_ref() {
                    block.push_str(line);
                    block.push('\n');
                    if line.trim() == end {
                        break;
                    }
                }
                match read_pem(label, &block) {
                    Some(found) => found,
                    None => continue,
                }
            }
            None => match openssh::read_line(line) {
                Some(found) => found,
                None => continue,
            },
        };
        all.push(read.map_err(|source| CredentialError::Damaged {
            line: at + 1,
            kind,
            source,
        })?);
    }
    match all.is_empty() {
        true => read_der(bytes).map(|one| vec![one]),
        false => Ok(all),
    }
}

/// Returns the label of a line `-----BEGIN LABEL-----`.
fn pem_label(line: &str) -> Option<&str> {
    line.trim()
        .strip_prefix("-----BEGIN ")?
        .strip_suffix("-----")
}

/// Parses one PEM block. Returns `None` for a block that contains something else, such as DH parameters.
fn read_pem(label: &str, block: &str) -> Option<(&'static str, Read)> {
    let encrypted = Credential::Key(PemKey {
        private: true,
        encrypted: true,
        key: None,
        pin: None,
    });
    match label {
        "OPENSSH PRIVATE KEY" => return Some(("private key", openssh::read_private_key(block))),
        "ENCRYPTED PRIVATE KEY" => return Some(("private key", Ok(encrypted))),
        _ if block.contains("Proc-Type: 4,ENCRYPTED") => {
            return Some(("private key", Ok(encrypted)));
        }
        _ => {}
    }
    let label = match label {
        // As old versions of OpenSSL write them.
        "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => "CERTIFICATE",
        "NEW CERTIFICATE REQUEST" => "CERTIFICATE REQUEST",
        other => other,
    };
    let kind = match label {
        "CERTIFICATE" => "certificate",
        "CERTIFICATE REQUEST" => "request",
        "PUBLIC KEY" => "public key",
        "PRIVATE KEY" | "RSA PRIVATE KEY" | "EC PRIVATE KEY" => "private key",
        _ => return None,
    };
    let body: String = block
        .lines()
        .skip(1)
        .filter(|line| !line.starts_with("-----END "))
        .map(|line| format!("{line}\n"))
        .collect();
    let block = format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n");
    let read = match from_buf(&mut block.as_bytes()) {
        Ok(Some((kind, der))) => read_section(kind, der),
        Ok(None) => Err("the block has no end".into()),
        Err(error) => Err(format!("{error:?}").into()),
    };
    Some((kind, read))
}

fn read_section(kind: SectionKind, der: Vec<u8>) -> Read {
    match kind {
        SectionKind::Certificate => read_certificate(&der),
        SectionKind::Csr => read_request(&der),
        SectionKind::PublicKey => read_public_key(&der),
        SectionKind::PrivateKey => Ok(read_private_key(&PrivateKeyDer::Pkcs8(der.into()))),
        SectionKind::RsaPrivateKey => Ok(read_private_key(&PrivateKeyDer::Pkcs1(der.into()))),
        SectionKind::EcPrivateKey => Ok(read_private_key(&PrivateKeyDer::Sec1(der.into()))),
        _ => Err("a block of an unknown kind".into()),
    }
}

fn read_der(bytes: &[u8]) -> Result<Credential, CredentialError> {
    let key = || PrivateKeyDer::try_from(bytes.to_vec()).ok();
    read_certificate(bytes)
        .or_else(|_| read_request(bytes))
        .or_else(|_| read_public_key(bytes))
        .or_else(|_| match key() {
            Some(key) => Ok(read_private_key(&key)),
            None => Err(CredentialError::Nothing),
        })
}

fn read_certificate(der: &[u8]) -> Read {
    let certificate = Certificate::read(der).map_err(|error| error.source)?;
    Ok(Credential::Certificate(Box::new(certificate)))
}

fn read_request(der: &[u8]) -> Read {
    let (_, read) = X509CertificationRequest::from_der(der)?;
    let info = &read.certification_request_info;
    let mut names = Vec::new();
    for extension in read.requested_extensions().into_iter().flatten() {
        if let ParsedExtension::SubjectAlternativeName(alternatives) = extension {
            let all = alternatives.general_names.iter();
            names.extend(all.filter_map(crate::certificate::general_name));
        }
    }
    Ok(Credential::Request(CertificateRequest {
        subject: info.subject.to_string(),
        names,
        key: key_name(&info.subject_pki).0,
        pin: spki_pin(info.subject_pki.raw),
    }))
}

fn read_public_key(der: &[u8]) -> Read {
    let (rest, key) = SubjectPublicKeyInfo::from_der(der)?;
    if !rest.is_empty() {
        return Err("bytes follow the key".into());
    }
    Ok(Credential::Key(PemKey {
        private: false,
        encrypted: false,
        key: Some(key_name(&key).0),
        pin: Some(spki_pin(key.raw)),
    }))
}

/// Describes a private key by its public key, if the public key can be computed.
fn read_private_key(key: &PrivateKeyDer<'_>) -> Credential {
    let public: Option<SubjectPublicKeyInfoDer<'static>> =
        rustls::crypto::ring::sign::any_supported_type(key)
            .ok()
            .and_then(|signing| signing.public_key().map(|key| key.into_owned()));
    let public = public.and_then(|der| match read_public_key(&der) {
        Ok(Credential::Key(key)) => Some(key),
        _ => None,
    });
    Credential::Key(PemKey {
        private: true,
        encrypted: false,
        key: public.as_ref().and_then(|key| key.key.clone()),
        pin: public.and_then(|key| key.pin),
    })
}
