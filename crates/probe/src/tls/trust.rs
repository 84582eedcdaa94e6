//! What needs a whole library of TLS: the certificates of TLS 1.3, which are encrypted, and whether a
//! chain leads to a root that this machine trusts.

use super::ask::Door;
use crate::error::ProbeError;
use crate::visit::Connection;
use assay_http::AnyCertificate;
use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion,
};
use std::sync::Arc;
use std::time::Duration;

/// The roots that this machine trusts, where OpenSSL would look for them.
#[derive(Clone, Debug)]
pub struct Roots(Arc<RootCertStore>);

impl Roots {
    /// Reads them: `SSL_CERT_FILE` and `SSL_CERT_DIR`, else the distribution's.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self(Arc::new(store))
    }

    /// These certificates in DER.
    #[must_use]
    pub fn these(certificates: &[Vec<u8>]) -> Self {
        let mut store = RootCertStore::empty();
        let all = certificates
            .iter()
            .map(|der| CertificateDer::from(der.clone()));
        store.add_parsable_certificates(all);
        Self(Arc::new(store))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Why a chain does not lead to one of them at this time, none when it does. Whether it is for the
    /// host is not asked.
    #[must_use]
    pub fn objection(&self, chain: &[Vec<u8>], now: Timestamp) -> Option<String> {
        let Some((leaf, rest)) = chain.split_first() else {
            return Some("there is no certificate".to_owned());
        };
        if self.0.is_empty() {
            return Some(
                "this machine has no root certificates (package ca-certificates)".to_owned(),
            );
        }
        let builder =
            WebPkiServerVerifier::builder_with_provider(self.0.clone(), Arc::new(provider()));
        let verifier = match builder.build() {
            Ok(verifier) => verifier,
            Err(error) => return Some(error.to_string()),
        };
        let rest: Vec<CertificateDer<'_>> = rest
            .iter()
            .map(|der| CertificateDer::from(der.as_slice()))
            .collect();
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        // The name is looked at elsewhere, by our own rule: here any will do.
        let any = ServerName::try_from("assay.invalid").ok()?;
        let leaf = CertificateDer::from(leaf.as_slice());
        match verifier.verify_server_cert(&leaf, &rest, &any, &[], now) {
            Ok(_) => None,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => None,
            Err(rustls::Error::InvalidCertificate(error)) => Some(plain(&error)),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// What is wrong with a chain, in words: the library has names of its own for it.
fn plain(error: &CertificateError) -> String {
    use CertificateError as E;
    let says = match error {
        E::UnknownIssuer => "no root of this machine stands behind it",
        E::BadSignature => {
            "a signature in it is wrong: a certificate was changed, or another key signed it"
        }
        E::BadEncoding => "a certificate in it cannot be read",
        E::Expired | E::ExpiredContext { .. } => "a certificate in it has expired",
        E::NotValidYet | E::NotValidYetContext { .. } => "a certificate in it is not valid yet",
        E::Revoked => "a certificate in it was revoked",
        E::UnhandledCriticalExtension => {
            "a certificate in it has a critical extension that is not known here"
        }
        E::UnsupportedSignatureAlgorithmContext { .. }
        | E::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "a certificate in it is signed in a way that is not taken here"
        }
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => {
            "a certificate in it is not meant for servers"
        }
        other => return format!("the library that checks it says: {other}"),
    };
    says.to_owned()
}

fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// A client that takes every certificate.
fn client(
    versions: &[&'static SupportedProtocolVersion],
    name: &str,
) -> Result<ClientConnection, ProbeError> {
    let failed = |error: &dyn std::fmt::Display| ProbeError::foreign("TLS", error.to_string());
    let provider = Arc::new(provider());
    let verifier = Arc::new(AnyCertificate::new(provider.clone()));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| failed(&error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).map_err(|error| failed(&error))?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| failed(&error))
}

/// A whole handshake on an open connection.
pub(crate) fn handshake(
    connection: &mut Connection<'_>,
    name: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ClientConnection, ProbeError> {
    let mut tls = client(versions, name)?;
    connection.expect("a handshake of TLS");
    while tls.is_handshaking() {
        let step = tls.complete_io(connection);
        step.map_err(|error| match error.downcast::<ProbeError>() {
            Ok(own) => own,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => ProbeError::Closed {
                waiting_for: "a handshake of TLS",
            },
            Err(error) => ProbeError::foreign("TLS", error.to_string()),
        })?;
    }
    Ok(tls)
}

/// The certificates that the server sends in TLS 1.3.
pub(crate) fn chain_of_tls13(door: &Door<'_>) -> Result<Vec<Vec<u8>>, ProbeError> {
    let mut connection = door.open()?;
    let name = match &door.name {
        Some(name) => name.clone(),
        None => door.visit.place().address.ip().to_string(),
    };
    let tls = handshake(&mut connection, &name, &[&rustls::version::TLS13])?;
    let chain = tls.peer_certificates().unwrap_or_default();
    Ok(chain.iter().map(|der| der.to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of the library, as it writes them, are no sentence: two capitals in one word.
    fn is_plain(says: &str) -> bool {
        let camel = |word: &str| {
            let capitals = word.chars().filter(|letter| letter.is_uppercase()).count();
            capitals > 1 && word.chars().any(char::is_lowercase)
        };
        !says.split_whitespace().any(camel)
    }

    #[test]
    fn a_chain_with_a_wrong_signature_is_told_in_words() {
        let good = include_bytes!("../../fixtures/cert.der").to_vec();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        let roots = Roots::these(std::slice::from_ref(&good));
        let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(roots.objection(&[good], now), None);
        let says = roots.objection(&[bad], now).unwrap();
        assert_eq!(says, plain(&CertificateError::BadSignature));
        assert!(is_plain(&says), "{says}");
        assert!(!is_plain("it is BadSignature"));
    }

    #[test]
    fn every_objection_that_a_check_can_raise_has_words() {
        use CertificateError as E;
        let all = [
            E::UnknownIssuer,
            E::BadSignature,
            E::BadEncoding,
            E::Expired,
            E::NotValidYet,
            E::Revoked,
            E::UnhandledCriticalExtension,
            E::InvalidPurpose,
        ];
        for error in all {
            let says = plain(&error);
            assert!(is_plain(&says), "{says}");
        }
    }
}
