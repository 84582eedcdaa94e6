//! HTTP/1.1 GET as a load: several connections in a closed loop.
//!
//! One thread waits for all connections (epoll), so that the generator takes little of the CPU
//! time the server could use. `Measured::cpu` near `Measured::wall` means that the generator was
//! the limit.

mod engine;

use crate::Cancel;
use crate::measured::{LoadError, Measured, Timing};

/// What to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// `http://HOST[:PORT]/PATH`.
    pub url: String,
    /// Connections at once, at least 1.
    pub connections: u32,
    /// Many requests over one connection, until the server closes it; otherwise a new connection
    /// for each request.
    pub keep_alive: bool,
    /// How long.
    pub timing: Timing,
}

/// Fetches the URL again and again. The latency of a request is from its first byte out, or from
/// the beginning of its connection when it needs a new one, to the last byte of the answer.
///
/// A request succeeds with status 200 and a body as long as that of the first answer. A connection
/// that was kept open and that the server closes before it answers is opened again for the same
/// request (RFC 9112, section 9.3.1); the time counts.
///
/// # Errors
/// A URL that cannot be, or not one request that succeeded. Requests that failed among others are
/// in `Measured::errors`.
pub fn run(request: &Request, cancel: &Cancel) -> Result<Measured, LoadError> {
    let bad = |why: String| LoadError::Request {
        what: request.url.clone(),
        why,
    };
    let url = assay_http::Url::parse(&request.url).map_err(|why| bad(why.to_owned()))?;
    if url.is_tls() {
        return Err(bad(
            "TLS is not spoken here; name an http:// port".to_owned()
        ));
    }
    if request.connections == 0 {
        return Err(bad("no connection to make".to_owned()));
    }
    let addresses = url.resolve().map_err(|error| bad(error.to_string()))?;
    engine::run(request, &url, &addresses, cancel)
}
