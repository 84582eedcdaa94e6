//! Parses X.509 certificates and checks whether a certificate is valid for a host name.

use crate::pins::{Pin, spki_pin};
use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::error::Error;
use std::net::IpAddr;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate, X509Extension};
use x509_parser::public_key::PublicKey;

/// Fields of an X.509 certificate that the checks use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Certificate {
    /// Distinguished name of the owner.
    pub subject: String,
    /// Distinguished name of the certificate authority that issued the certificate.
    pub issuer: String,
    /// DNS names and IP addresses for which the certificate is valid.
    pub names: Vec<String>,
    /// Start of the validity period.
    pub not_before: Timestamp,
    /// End of the validity period.
    pub not_after: Timestamp,
    /// Algorithm and size of the public key, such as `RSA 2048`, `EC secp256r1` or `Ed25519`.
    pub key: String,
    /// Size of an RSA or DSA key in bits; `None` for other keys.
    pub key_bits: Option<usize>,
    /// Name of the algorithm with which the issuer signed the certificate.
    pub signature: String,
    /// Whether the subject and the issuer have the same name.
    pub self_signed: bool,
    /// Whether the certificate belongs to a certificate authority (basicConstraints, CA:TRUE).
    pub is_ca: bool,
    /// Whether a server may use the certificate: its extended key usage permits server authentication or is absent.
    pub for_servers: bool,
    /// Whether the certificate requires an OCSP response in every handshake (RFC 7633, "must-staple").
    pub must_staple: bool,
    /// SHA-256 of the certificate, in hexadecimal.
    pub fingerprint: String,
    /// Pin of the certificate's public key, for clients that accept only this key.
    pub pin: Pin,
    /// Whether the certificate contains timestamps of transparency logs (RFC 6962), as certificates of public
    /// authorities do.
    #[serde(skip)]
    pub(crate) is_logged: bool,
    /// DNS names of the certificate, without IP addresses.
    #[serde(skip)]
    dns: Vec<String>,
    /// IP addresses of the certificate. An address that is written as a DNS name is not included.
    #[serde(skip)]
    addresses: Vec<IpAddr>,
}

/// Error: a DER certificate cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("a certificate that cannot be read ({source})")]
pub struct Unreadable {
    /// Error of the X.509 parser.
    pub source: Box<dyn Error + Send + Sync>,
}

impl Unreadable {
    fn new(source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            source: source.into(),
        }
    }
}

impl Certificate {
    /// Parses a DER certificate.
    ///
    /// # Errors
    /// The bytes are not a valid certificate.
    pub fn read(der: &[u8]) -> Result<Self, Unreadable> {
        let (_, read) = X509Certificate::from_der(der).map_err(Unreadable::new)?;
        let time = |time: x509_parser::time::ASN1Time| {
            Timestamp::from_second(time.timestamp()).map_err(Unreadable::new)
        };
        let key = read.public_key();
        let (name, bits) = key_name(key);
        let alternatives = read.subject_alternative_name().ok().flatten();
        let alternatives = alternatives.map(|extension| &extension.value.general_names);
        let alternatives: Vec<&GeneralName<'_>> = alternatives.into_iter().flatten().collect();
        let constraints = read.basic_constraints().ok().flatten();
        let usage = read.extended_key_usage().ok().flatten();
        Ok(Self {
            subject: read.subject().to_string(),
            issuer: read.issuer().to_string(),
            names: alternatives
                .iter()
                .filter_map(|name| general_name(name))
                .collect(),
            dns: alternatives
                .iter()
                .filter_map(|name| dns_name(name))
                .collect(),
            addresses: alternatives
                .iter()
                .filter_map(|name| address(name))
                .collect(),
            is_ca: constraints.is_some_and(|extension| extension.value.ca),
            for_servers: usage.is_none_or(|usage| usage.value.any || usage.value.server_auth),
            must_staple: must_staple(&read),
            is_logged: find_extension(&read, "1.3.6.1.4.1.11129.2.4.2").is_some(),
            not_before: time(read.validity().not_before)?,
            not_after: time(read.validity().not_after)?,
            key: name,
            key_bits: bits,
            signature: signature_name(&read.signature_algorithm.algorithm),
            self_signed: read.subject().as_raw() == read.issuer().as_raw(),
            fingerprint: hex(&Sha256::digest(der)),
            pin: spki_pin(key.raw),
        })
    }

    /// Returns whether the certificate is valid for this host name or IP address (RFC 9525 section 6). Ignores the
    /// common name.
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        match host.trim_end_matches('.').parse::<IpAddr>() {
            Ok(address) => self.addresses.contains(&address),
            Err(_) => self.dns.iter().any(|name| matches(name, host)),
        }
    }

    /// Returns whether the certificate contains this IP address as a DNS name. This is a fault, because no client
    /// accepts such an entry for an address (RFC 9525 section 6.3).
    #[must_use]
    pub fn has_address_as_name(&self, host: &str) -> bool {
        host.parse::<IpAddr>().is_ok() && self.dns.iter().any(|name| name == host)
    }
}

pub(crate) fn general_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(_) => dns_name(name),
        _ => address(name).map(|address| address.to_string()),
    }
}

fn dns_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    }
}

fn address(name: &GeneralName<'_>) -> Option<IpAddr> {
    let GeneralName::IPAddress(bytes) = name else {
        return None;
    };
    let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
    let six = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
    four.or_else(|_| six()).ok()
}

/// Returns the extension with this object identifier.
fn find_extension<'a, 'b>(
    certificate: &'b X509Certificate<'a>,
    id: &str,
) -> Option<&'b X509Extension<'a>> {
    let mut extensions = certificate.extensions().iter();
    extensions.find(|extension| extension.oid.to_id_string() == id)
}

/// Returns whether the TLS feature extension (RFC 7633) contains `status_request` (5) or `status_request_v2`
/// (17).
fn must_staple(certificate: &X509Certificate<'_>) -> bool {
    const TLS_FEATURE: &str = "1.3.6.1.5.5.7.1.24";
    let extension = find_extension(certificate, TLS_FEATURE);
    // The extension is a sequence of small integers: 30 LENGTH (02 01 FEATURE)*.
    extension.is_some_and(|extension| match extension.value {
        [0x30, _, rest @ ..] => rest
            .chunks(3)
            .any(|number| matches!(number, [0x02, 0x01, 5 | 17])),
        _ => false,
    })
}

/// Matches a host name against a DNS name of the certificate. A wildcard must be the whole leftmost label and
/// matches exactly one label (RFC 9525 section 6.3).
fn matches(pattern: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.');
    match pattern.strip_prefix("*.") {
        Some(parent) => host.split_once('.').is_some_and(|(label, rest)| {
            !label.is_empty() && rest.contains('.') && rest.eq_ignore_ascii_case(parent)
        }),
        None => pattern.eq_ignore_ascii_case(host),
    }
}

pub(crate) fn key_name(
    key: &x509_parser::x509::SubjectPublicKeyInfo<'_>,
) -> (String, Option<usize>) {
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => {
            let bits = crate::tls::bits(rsa.modulus);
            (format!("RSA {bits}"), Some(bits))
        }
        Ok(PublicKey::DSA(_)) => ("DSA".to_owned(), None),
        Ok(PublicKey::EC(_)) => {
            let curve = key.algorithm.parameters.as_ref();
            let oid = curve
                .and_then(|any| any.as_oid().ok())
                .map(|oid| oid.to_id_string());
            let name = match oid.as_deref() {
                Some("1.2.840.10045.3.1.1") => "secp192r1",
                Some("1.3.132.0.33") => "secp224r1",
                Some("1.2.840.10045.3.1.7") => "secp256r1",
                Some("1.3.132.0.34") => "secp384r1",
                Some("1.3.132.0.35") => "secp521r1",
                Some("1.3.132.0.10") => "secp256k1",
                Some(other) => other,
                None => "curve of its own",
            };
            (format!("EC {name}"), None)
        }
        _ => {
            let oid = key.algorithm.algorithm.to_id_string();
            let name = match oid.as_str() {
                "1.3.101.112" => "Ed25519",
                "1.3.101.113" => "Ed448",
                "2.16.840.1.101.3.4.3.17" => "ML-DSA-44",
                "2.16.840.1.101.3.4.3.18" => "ML-DSA-65",
                "2.16.840.1.101.3.4.3.19" => "ML-DSA-87",
                other => other,
            };
            (name.to_owned(), None)
        }
    }
}

fn signature_name(oid: &x509_parser::der_parser::Oid<'_>) -> String {
    let id = oid.to_id_string();
    let name = match id.as_str() {
        "1.2.840.113549.1.1.2" => "md2WithRSA",
        "1.2.840.113549.1.1.4" => "md5WithRSA",
        "1.2.840.113549.1.1.5" => "sha1WithRSA",
        "1.2.840.113549.1.1.10" => "rsaPSS",
        "1.2.840.113549.1.1.11" => "sha256WithRSA",
        "1.2.840.113549.1.1.12" => "sha384WithRSA",
        "1.2.840.113549.1.1.13" => "sha512WithRSA",
        "1.2.840.10040.4.3" => "sha1WithDSA",
        "1.2.840.10045.4.1" => "sha1WithECDSA",
        "1.2.840.10045.4.3.2" => "sha256WithECDSA",
        "1.2.840.10045.4.3.3" => "sha384WithECDSA",
        "1.2.840.10045.4.3.4" => "sha512WithECDSA",
        "1.3.101.112" => "Ed25519",
        "1.3.101.113" => "Ed448",
        _ => return id,
    };
    name.to_owned()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_one_label() {
        assert!(matches("example.org", "EXAMPLE.org."));
        assert!(matches("*.example.org", "www.example.org"));
        assert!(!matches("*.example.org", "example.org"));
        assert!(!matches("*.example.org", "a.b.example.org"));
        assert!(!matches("*.org", "example.org"));
        assert!(!matches("w*.example.org", "www.example.org"));
    }
}
