//! TLS for a load: the trusted certificates, and one configuration for all connections.

use crate::url::Url;
use assay_model::web::Protocol;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientSessionMemoryCache, Resumption};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// Which server certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The certificate authorities of this system.
    System,
    /// Only the certificate authorities in this PEM text.
    Authorities(Vec<u8>),
    /// Any certificate, for test servers with self-signed certificates.
    Anything,
    /// Only the certificate with this SHA-256 fingerprint, even if the certificate is for another name.
    Fingerprint([u8; 32]),
}

/// TLS configuration of a load.
#[derive(Clone, Debug)]
pub struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// Reason why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The host name cannot be matched with a certificate.
    #[error("{name}: not a name that a certificate can be for")]
    Name {
        /// Host name from the URL.
        name: String,
        /// Reason why the host name is invalid.
        source: rustls::pki_types::InvalidDnsNameError,
    },
    /// This system has no trusted certificate authority.
    #[error(
        "no authority to trust was found on this system; install ca-certificates, name a PEM file, or take any certificate"
    )]
    NoAuthority,
    /// The PEM text contains no certificate.
    #[error("this is no list of certificates in PEM form: {0}")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// rustls refuses the configuration or a certificate.
    #[error("TLS: {0}")]
    Configuration(#[from] rustls::Error),
}

impl Tls {
    /// Creates a TLS client connection for a caller that uses a protocol other than HTTP.
    ///
    /// # Errors
    /// rustls refuses to create a connection.
    pub fn client(&self) -> Result<rustls::ClientConnection, rustls::Error> {
        rustls::ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }

    /// Returns the configuration with another protocol name. This name is the only one that the handshake offers
    /// (ALPN).
    #[must_use]
    pub fn speaking(mut self, protocol: Protocol) -> Self {
        let name = match protocol {
            Protocol::Http1 => b"http/1.1".to_vec(),
            Protocol::Http2 => b"h2".to_vec(),
        };
        Arc::make_mut(&mut self.config).alpn_protocols = vec![name];
        self
    }

    /// Creates a configuration for the host of a URL. With `resume`, later connections resume the session of the first
    /// connection; otherwise each connection makes a full handshake.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn new(url: &Url, trust: &Trust, resume: bool) -> Result<Self, TlsError> {
        let name =
            ServerName::try_from(url.host().to_owned()).map_err(|source| TlsError::Name {
                name: url.host().to_owned(),
                source,
            })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let mut config = match trust {
            Trust::Anything => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate::new(provider)))
                .with_no_client_auth(),
            Trust::Fingerprint(fingerprint) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate {
                    provider,
                    fingerprint: Some(*fingerprint),
                }))
                .with_no_client_auth(),
            Trust::System => builder
                .with_root_certificates(system()?)
                .with_no_client_auth(),
            Trust::Authorities(pem) => builder
                .with_root_certificates(authorities(pem)?)
                .with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = match resume {
            true => Resumption::store(Arc::new(ClientSessionMemoryCache::new(256))),
            false => Resumption::disabled(),
        };
        Ok(Self {
            config: Arc::new(config),
            name,
        })
    }
}

fn system() -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    let (good, _) = store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match good {
        0 => Err(TlsError::NoAuthority),
        _ => Ok(store),
    }
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        store.add(certificate.map_err(TlsError::Pem)?)?;
    }
    match store.is_empty() {
        true => Err(TlsError::NoAuthority),
        false => Ok(store),
    }
}

/// Verifier that accepts any certificate, or only the certificate with one fingerprint. In both cases the server must
/// prove that it has the private key.
#[derive(Debug)]
pub struct AnyCertificate {
    provider: Arc<CryptoProvider>,
    fingerprint: Option<[u8; 32]>,
}

impl AnyCertificate {
    /// Creates a verifier that accepts any certificate.
    #[must_use]
    pub fn new(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            fingerprint: None,
        }
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.fingerprint {
            Some(expected) if Sha256::digest(certificate)[..] != expected => {
                Err(rustls::CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
