//! Answers to requests: a page, a document, an asset, a redirection, or a refusal.

use assay_store::StoreError;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;

/// Minimum length in bytes of an answer that is compressed.
const LEAST_COMPRESSED: usize = 1024;

/// An answer with a body of text.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) cache: &'static str,
    pub(crate) body: String,
    /// Target of a redirection.
    pub(crate) location: Option<String>,
    /// It shows a measurement that runs, and many may look at it.
    pub(crate) is_live: bool,
}

/// `Cache-Control` of pages: browsers do not store pages, because the measurements change.
const FRESH: &str = "no-store";

impl Answer {
    /// Creates the answer for an HTML page.
    pub(crate) fn page(body: String) -> Self {
        Self {
            status: StatusCode::OK,
            kind: "text/html; charset=utf-8",
            cache: FRESH,
            body,
            location: None,
            is_live: false,
        }
    }

    /// Creates the answer for a JSON document, formatted as `--json` prints it.
    pub(crate) fn json(document: &serde_json::Value) -> Self {
        Self {
            kind: "application/json",
            ..Self::page(format!("{document:#}\n"))
        }
    }

    /// Creates the answer for text of the MIME type `kind`.
    pub(crate) fn text(kind: &'static str, body: String) -> Self {
        Self {
            kind,
            ..Self::page(body)
        }
    }

    /// Creates the answer for an asset. Its name contains its hash, so browsers may cache it forever.
    pub(crate) fn asset(kind: &'static str, body: String) -> Self {
        Self {
            kind,
            cache: "public, max-age=31536000, immutable",
            ..Self::page(body)
        }
    }

    /// Creates a redirection to another page of this site.
    pub(crate) fn redirect(location: String) -> Self {
        Self {
            status: StatusCode::SEE_OTHER,
            location: Some(location),
            ..Self::page(String::new())
        }
    }

    /// Builds the response, compressed if the client accepts that.
    pub(crate) fn into_response(self, accepts_gzip: bool) -> Response<Body> {
        let compress = accepts_gzip && self.body.len() >= LEAST_COMPRESSED;
        let packed = compress
            .then(|| compress_body(self.body.as_bytes()))
            .flatten();
        let is_packed = packed.is_some();
        let body = packed.unwrap_or_else(|| self.body.into_bytes());
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(self.cache));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        if is_packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let location = self.location.and_then(|to| HeaderValue::try_from(to).ok());
        if let Some(location) = location {
            headers.insert(header::LOCATION, location);
        }
        response
    }
}

fn compress_body(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// Why a request is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// What failed, as a heading.
    pub(crate) title: String,
    /// Why, and the way out.
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, title: &str, text: impl Into<String>) -> Self {
        Self {
            status,
            title: title.to_owned(),
            text: text.into(),
        }
    }

    /// Refuses a request for a page or record that does not exist.
    pub(crate) fn missing(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not found", text)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let (status, title) = match &error {
            StoreError::Missing { .. } | StoreError::Ambiguous { .. } => {
                (StatusCode::NOT_FOUND, "Not found")
            }
            StoreError::Busy { .. } => (StatusCode::SERVICE_UNAVAILABLE, "The store is locked"),
            StoreError::Newer { .. } => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The store is of a newer assay",
            ),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "The store cannot be read"),
        };
        Self::new(status, title, error.to_string())
    }
}
