//! Sends requests from a client or controller to the server.

use crate::invite::Invitation;
use crate::wire::{CLIENT_HEADER, Done, Refusal, TOKEN_HEADER};
use assay_http::{
    ConnectionSlot, Exchanged, Manner, Method, ProbeError, Request, Tls, TlsError, Trust, Url,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Maximum size of a JSON answer, in bytes.
const LARGEST: usize = 32 << 20;

/// Reasons why the server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The host name cannot be resolved.
    #[error("{host}: {source}")]
    Resolve {
        /// Host name from the invitation.
        host: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// TLS cannot be configured.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server's certificate is not the certificate whose fingerprint is in the invitation.
    #[error(
        "the server at {0} has another certificate than the address says: it was started again and has a new address, or somebody is in between"
    )]
    Fingerprint(SocketAddr),
    /// The server does not answer.
    #[error(transparent)]
    Net(#[from] ProbeError),
    /// The server refuses the request.
    #[error("the server says: {why}")]
    Refused {
        /// HTTP status with which the server refused.
        status: u16,
        /// Reason for the refusal, as the server sent it.
        why: String,
    },
    /// The server's answer is not the expected JSON.
    #[error("the server's answer is not understood: {0}")]
    Form(#[source] Box<dyn Error + Send + Sync>),
}

impl LinkError {
    /// Returns whether a retry may succeed, because the network may be down or the server may have restarted.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Net(ProbeError::Interrupted) => false,
            Self::Net(_) | Self::Resolve { .. } => true,
            // The server has forgotten this client, or is full.
            Self::Refused { status, .. } => matches!(status, 404 | 503),
            Self::Tls(_) | Self::Fingerprint(_) | Self::Form(_) => false,
        }
    }
}

/// A server to which requests are sent: its address, token and certificate.
#[derive(Clone)]
pub struct ServerLink {
    url: Url,
    address: SocketAddr,
    tls: Tls,
    token: String,
}

impl ServerLink {
    /// Resolves the server's name. Sends nothing to the server.
    ///
    /// # Errors
    /// The host name cannot be resolved.
    pub fn new(invitation: &Invitation) -> Result<Self, LinkError> {
        let resolve = |source| LinkError::Resolve {
            host: invitation.url.host().to_owned(),
            source,
        };
        let addresses = invitation.url.resolve().map_err(resolve)?;
        let none = || resolve(io::Error::from(io::ErrorKind::NotFound));
        let address = *addresses.first().ok_or_else(none)?;
        Ok(Self {
            tls: Tls::new(
                &invitation.url,
                &Trust::Fingerprint(invitation.fingerprint),
                true,
            )?,
            url: invitation.url.clone(),
            address,
            token: invitation.token.to_string(),
        })
    }

    /// Returns the server's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a slot for a connection to the server. The slot opens its connection at the first request.
    #[must_use]
    pub fn exchange(&self) -> ConnectionSlot {
        ConnectionSlot::new(self.address, Some(self.tls.clone()))
    }

    /// Builds a request with the token.
    ///
    /// # Errors
    /// The path or a header contains invalid characters.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Request, LinkError> {
        let form = |why: &str| LinkError::Form(why.into());
        let method = Method::parse(method).map_err(form)?;
        let url = self
            .url
            .with_path(path)
            .ok_or_else(|| form("a path begins with /"))?;
        let mut all = vec![(TOKEN_HEADER.to_owned(), self.token.clone())];
        all.extend_from_slice(headers);
        Request::new(&method, &url, &all, body, true).map_err(|why| LinkError::Form(why.into()))
    }

    /// Posts a value as JSON and parses the JSON answer.
    pub fn post<R: DeserializeOwned>(
        &self,
        exchange: &mut ConnectionSlot,
        path: &str,
        body: &impl Serialize,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<R, LinkError> {
        Ok(self.post_timed(exchange, path, body, limit, stop)?.0)
    }

    /// Like [`Self::post`], but also returns the times at which the request was sent and the answer received.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub fn post_timed<R: DeserializeOwned>(
        &self,
        exchange: &mut ConnectionSlot,
        path: &str,
        body: &impl Serialize,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<(R, Exchanged), LinkError> {
        let body = serde_json::to_vec(body).map_err(|error| LinkError::Form(error.into()))?;
        let request = self.request("POST", path, &[], &body)?;
        self.speak(exchange, &request, limit, stop)
    }

    /// Sends a client's record. A header with the client's key precedes the body.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub fn deliver(
        &self,
        exchange: &mut ConnectionSlot,
        done: &Done,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), LinkError> {
        let body = serde_json::to_vec(done).map_err(|error| LinkError::Form(error.into()))?;
        let client = format!("{} {} -", done.client, done.key);
        let headers = [(CLIENT_HEADER.to_owned(), client)];
        let request = self.request("POST", "/done", &headers, &body)?;
        let answer = self.speak::<serde_json::Value>(exchange, &request, limit, stop);
        answer.map(drop)
    }

    /// Fetches and parses JSON.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub fn get<R: DeserializeOwned>(
        &self,
        exchange: &mut ConnectionSlot,
        path: &str,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<R, LinkError> {
        let request = self.request("GET", path, &[], b"")?;
        Ok(self.speak(exchange, &request, limit, stop)?.0)
    }

    fn speak<R: DeserializeOwned>(
        &self,
        exchange: &mut ConnectionSlot,
        request: &Request,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<(R, Exchanged), LinkError> {
        let mut manner = Manner {
            limit,
            keep: LARGEST,
            stop,
            came: &mut |_: Instant, _| {},
        };
        let came = exchange
            .ask(request, &mut manner)
            .map_err(|error| match error {
                ProbeError::Tls {
                    address,
                    source: assay_http::RustlsError::InvalidCertificate(_),
                } => LinkError::Fingerprint(address),
                error => error.into(),
            })?;
        match came.answer.status {
            200 => serde_json::from_slice(&came.body)
                .map(|value| (value, came))
                .map_err(|error| LinkError::Form(error.into())),
            status => {
                let refusal: Option<Refusal> = serde_json::from_slice(&came.body).ok();
                Err(LinkError::Refused {
                    status,
                    why: refusal.map_or_else(|| format!("status {status}"), |it| it.error),
                })
            }
        }
    }
}
