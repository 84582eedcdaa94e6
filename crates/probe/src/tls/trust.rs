//! Reads the encrypted certificates of TLS 1.3 with a full TLS library, and checks whether a chain leads to a root of
//! this machine.

use super::ask::TlsTarget;
use super::distrust::Distrust;
use super::verifier::TakesAny;
use crate::certificate::Certificate;
use crate::error::ProbeError;
use crate::visit::Connection;
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

/// Root certificates that this machine trusts, from the paths that OpenSSL uses.
#[derive(Clone, Debug)]
pub struct Roots(Arc<RootCertStore>);

impl Roots {
    /// Loads the roots from `SSL_CERT_FILE` and `SSL_CERT_DIR`. If these are not set, loads the roots from the
    /// distribution's paths.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self(Arc::new(store))
    }

    /// Creates a set of roots from certificates in DER.
    #[must_use]
    pub fn these(certificates: &[Vec<u8>]) -> Self {
        let mut store = RootCertStore::empty();
        let all = certificates
            .iter()
            .map(|der| CertificateDer::from(der.clone()));
        store.add_parsable_certificates(all);
        Self(Arc::new(store))
    }

    /// Returns the number of root certificates.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns why a chain leads to none of the roots at this time; `None` if the chain leads to a root. Does not check
    /// the host name. `read` contains the certificates of the chain that can be parsed.
    #[must_use]
    pub fn objection(
        &self,
        chain: &[Vec<u8>],
        read: &[Certificate],
        now: Timestamp,
    ) -> Option<Distrust> {
        let Some((leaf, rest)) = chain.split_first() else {
            return Some(Distrust::Other("there is no certificate".to_owned()));
        };
        if self.0.is_empty() {
            return Some(Distrust::NoRoots);
        }
        let builder =
            WebPkiServerVerifier::builder_with_provider(self.0.clone(), Arc::new(provider()));
        let verifier = match builder.build() {
            Ok(verifier) => verifier,
            Err(error) => return Some(Distrust::Other(error.to_string())),
        };
        let rest: Vec<CertificateDer<'_>> = rest
            .iter()
            .map(|der| CertificateDer::from(der.as_slice()))
            .collect();
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        // The host name is checked elsewhere, so any name will do here.
        let any = ServerName::try_from("assay.invalid").ok()?;
        let leaf = CertificateDer::from(leaf.as_slice());
        match verifier.verify_server_cert(&leaf, &rest, &any, &[], time) {
            Ok(_) => None,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => None,
            Err(rustls::Error::InvalidCertificate(error)) => {
                Some(Distrust::explain(&error, read, now))
            }
            Err(error) => Some(Distrust::Other(error.to_string())),
        }
    }
}

pub(super) fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// Creates a TLS client that accepts every certificate, and returns it with its verifier.
fn client(
    versions: &[&'static SupportedProtocolVersion],
    name: &str,
) -> Result<(ClientConnection, Arc<TakesAny>), ProbeError> {
    let failed = |error: &dyn std::fmt::Display| ProbeError::foreign("TLS", error.to_string());
    let provider = Arc::new(provider());
    let verifier = Arc::new(TakesAny::new(provider.clone()));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| failed(&error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).map_err(|error| failed(&error))?;
    let client = ClientConnection::new(Arc::new(config), name).map_err(|error| failed(&error))?;
    Ok((client, verifier))
}

/// Runs a complete handshake on an open connection.
pub(crate) fn handshake(
    connection: &mut Connection<'_>,
    name: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ClientConnection, ProbeError> {
    let (mut tls, _) = client(versions, name)?;
    complete(&mut tls, connection)?;
    Ok(tls)
}

/// Completes a handshake that was already started on a connection.
pub(super) fn complete(
    tls: &mut ClientConnection,
    connection: &mut Connection<'_>,
) -> Result<(), ProbeError> {
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
    Ok(())
}

/// Returns the certificates that the server sends in one of these TLS versions, and whether it stapled an OCSP
/// response.
pub(crate) fn chain_of(
    door: &TlsTarget<'_>,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<(Vec<Vec<u8>>, bool), ProbeError> {
    let mut connection = door.open()?;
    let (mut tls, verifier) = client(versions, &door.any_name())?;
    complete(&mut tls, &mut connection)?;
    let chain = tls.peer_certificates().unwrap_or_default();
    let chain = chain.iter().map(|der| der.to_vec()).collect();
    Ok((chain, verifier.stapled()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_with_a_wrong_signature_is_told_from_a_good_one() {
        let good = include_bytes!("../../fixtures/cert.der").to_vec();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        let roots = Roots::these(std::slice::from_ref(&good));
        let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let read = Certificate::read(&good).unwrap();
        let read = std::slice::from_ref(&read);
        assert_eq!(roots.objection(&[good], read, now), None);
        assert!(roots.objection(&[bad], read, now).is_some());
    }
}
