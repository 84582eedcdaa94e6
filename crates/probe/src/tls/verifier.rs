//! Verifier that accepts every certificate and records whether an OCSP response was stapled. It does not check
//! signatures, because the probe sends nothing secret afterwards. So the verifier also accepts servers whose keys a
//! library would refuse.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub(super) struct TakesAny {
    provider: Arc<CryptoProvider>,
    stapled: AtomicBool,
}

impl TakesAny {
    pub fn new(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            stapled: AtomicBool::new(false),
        }
    }

    /// Returns whether the server stapled an OCSP response.
    pub fn stapled(&self) -> bool {
        self.stapled.load(Ordering::Relaxed)
    }
}

impl ServerCertVerifier for TakesAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        ocsp_response: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.stapled
            .store(!ocsp_response.is_empty(), Ordering::Relaxed);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
