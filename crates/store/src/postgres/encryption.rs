//! TLS to a PostgreSQL server: the mode that the user requires, the request to the server, and the encrypted
//! connection.
//!
//! Modes and files are the same as for libpq (PostgreSQL, "SSL Support"), with one difference. If no mode is set, a
//! server on another machine must have a certificate for its name.

use assay_http::AnyCertificate;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether a connection must use TLS, and what the certificate must contain (`sslmode` of libpq).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TlsMode {
    /// Never encrypt the connection.
    Disable,
    /// Encrypt if the server supports TLS. Do not check its certificate.
    Prefer,
    /// Always encrypt. Check the certificate if a file of certificate authorities exists.
    Require,
    /// Always encrypt. Require a certificate of a trusted authority, but accept any host name in it.
    VerifyCa,
    /// Always encrypt. Require a certificate of a trusted authority for the server's host name.
    VerifyFull,
}

/// Paths of certificate files from the URL and the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsFiles {
    /// Certificate authorities in PEM; `system` means the authorities of this machine.
    pub(super) authorities: Option<PathBuf>,
    /// Certificate of the client in PEM form.
    pub(super) certificate: Option<PathBuf>,
    /// Private key of the client in PEM form.
    pub(super) key: Option<PathBuf>,
}

/// TLS configuration for the connections to one server address.
#[derive(Clone, Debug)]
pub(super) struct Encryption {
    config: Arc<ClientConfig>,
    mode: TlsMode,
    /// Whether the connection starts with the TLS handshake, without an SSLRequest before it (`sslnegotiation=direct`).
    direct: bool,
}

/// The message `SSLRequest` (PostgreSQL, "Message Formats").
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

impl TlsMode {
    /// Parses a value of `sslmode`. `allow` is treated as `prefer`, because both encrypt if the server supports TLS.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "disable" => Self::Disable,
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return None,
        })
    }
}

impl Encryption {
    /// Reads the files that `mode` needs.
    ///
    /// # Errors
    /// A file cannot be read or contains no certificate. The text contains the path and a way to proceed.
    pub(super) fn new(mode: TlsMode, direct: bool, files: &TlsFiles) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let file = match &files.authorities {
            Some(path) if path == Path::new("system") => None,
            Some(path) => Some(path.clone()),
            None => home_file("root.crt"),
        };
        let mut verify = mode;
        if mode == TlsMode::Require && file.is_some() {
            verify = TlsMode::VerifyCa;
        }
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let verifier: Arc<dyn ServerCertVerifier> = match verify {
            TlsMode::VerifyCa | TlsMode::VerifyFull => {
                let authorities = Arc::new(read_authorities(file.as_deref())?);
                let inner =
                    WebPkiServerVerifier::builder_with_provider(authorities, provider).build();
                let inner = inner.map_err(|error| error.to_string())?;
                match verify {
                    TlsMode::VerifyFull => inner,
                    _ => Arc::new(AnyName(inner)),
                }
            }
            _ => Arc::new(AnyCertificate::new(provider)),
        };
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match read_client_certificate(files)? {
            Some((chain, key)) => builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| format!("the client's certificate and key: {error}"))?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self {
            config: Arc::new(config),
            mode,
            direct,
        })
    }

    /// Requests TLS from the server and performs the handshake. Returns `None` if the server does not support TLS and
    /// the mode permits this.
    ///
    /// # Errors
    /// The mode requires TLS but the server does not support it, the certificate is refused, or the server does not
    /// answer within `limit`.
    pub(super) fn begin(
        &self,
        tcp: &mut TcpStream,
        name: &str,
        limit: Duration,
    ) -> io::Result<Option<ClientConnection>> {
        let end = Instant::now() + limit;
        tcp.set_read_timeout(Some(limit))?;
        tcp.set_write_timeout(Some(limit))?;
        if !self.direct {
            tcp.write_all(&SSL_REQUEST)?;
            // One byte and no more: what follows it unencrypted may come from somebody on the way.
            let mut answer = [0];
            tcp.read_exact(&mut answer).map_err(late)?;
            match (answer[0], self.mode) {
                (b'S', _) => {}
                (b'N', TlsMode::Prefer) => return Ok(None),
                (b'N', _) => {
                    return Err(io::Error::other(
                        "the server has no TLS: set ssl=on there, or use a tunnel (ssh -L \
                         5432:/var/run/postgresql/.s.PGSQL.5432 db)",
                    ));
                }
                _ => {
                    return Err(io::Error::other(
                        "the server does not answer as PostgreSQL does",
                    ));
                }
            }
        }
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            io::Error::other(format!("{name}: not a name that a certificate can be for"))
        })?;
        let config = Arc::clone(&self.config);
        let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late(ErrorKind::TimedOut.into()));
            }
            tcp.set_read_timeout(Some(left))?;
            while connection.wants_write() {
                connection.write_tls(tcp)?;
            }
            if connection.is_handshaking() && connection.read_tls(tcp).map_err(late)? == 0 {
                return Err(io::Error::other("the server ended the TLS handshake"));
            }
            connection.process_new_packets().map_err(explain)?;
        }
        Ok(Some(connection))
    }
}

fn late(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::other("the server did not complete the TLS handshake in time")
        }
        _ => error,
    }
}

/// Converts a TLS error. If the certificate was refused, the result contains a way to proceed.
fn explain(error: rustls::Error) -> io::Error {
    let way_out = match &error {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "; use the name that the certificate is for, or sslmode=verify-ca",
        rustls::Error::InvalidCertificate(_) => {
            "; name the file of its authority with sslrootcert=FILE"
        }
        _ => "",
    };
    io::Error::other(format!("TLS: {error}{way_out}"))
}

/// Returns the path of a libpq file in the home directory, if the file exists.
fn home_file(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("HOME")?)
        .join(".postgresql")
        .join(name);
    path.is_file().then_some(path)
}

/// Reads the certificate authorities from a file; without a file, reads the authorities of this system.
fn read_authorities(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let Some(path) = file else {
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = store.add_parsable_certificates(found.certs);
        return match added {
            0 => Err(
                "this system trusts no authority; install ca-certificates, or name a file \
                 with sslrootcert=FILE"
                    .to_owned(),
            ),
            _ => Ok(store),
        };
    };
    let wrong = |error: &dyn std::fmt::Display| format!("sslrootcert {}: {error}", path.display());
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        store.add(certificate).map_err(|error| wrong(&error))?;
    }
    match store.is_empty() {
        true => Err(wrong(&"no certificate in PEM form")),
        false => Ok(store),
    }
}

type ClientCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads the client's certificate and key, if both files exist.
fn read_client_certificate(files: &TlsFiles) -> Result<Option<ClientCertificate>, String> {
    let certificate = files.certificate.clone();
    let Some(path) = certificate.or_else(|| home_file("postgresql.crt")) else {
        return Ok(None);
    };
    let key = files.key.clone().or_else(|| home_file("postgresql.key"));
    let Some(key) = key else {
        return Err(format!(
            "sslcert {} has no key: name it with sslkey=FILE",
            path.display()
        ));
    };
    let wrong = |what: &str, path: &Path, error: &dyn std::fmt::Display| {
        format!("{what} {}: {error}", path.display())
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(&path)
        .map_err(|error| wrong("sslcert", &path, &error))?
        .collect();
    let chain = chain.map_err(|error| wrong("sslcert", &path, &error))?;
    let key = PrivateKeyDer::from_pem_file(&key).map_err(|error| wrong("sslkey", &key, &error))?;
    Ok(Some((chain, key)))
}

/// Certificate verifier for `verify-ca`. It checks the chain and the dates, but not the host name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self
            .0
            .verify_server_cert(certificate, intermediates, name, ocsp, now);
        match verified {
            // The name is looked at last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
