//! Answers to requests: a page, a document, an asset, a redirection, or a refusal.

use assay_store::StoreError;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;

/// Minimum length of an answer that is compressed, in bytes.
const LEAST_COMPRESSED: usize = 1024;

/// Answer to a request, with a text as its body.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) cache: &'static str,
    pub(crate) body: String,
    /// Location to which the answer redirects; `None` without a redirection.
    pub(crate) location: Option<String>,
    /// Whether the answer shows a running measurement, which many visitors may watch.
    pub(crate) is_live: bool,
}

/// Value of `Cache-Control` for pages. Browsers do not store pages, because the measurements change.
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

    /// Creates the answer for a JSON document, in the format of `--json`.
    pub(crate) fn json(document: &serde_json::Value) -> Self {
        Self {
            kind: "application/json",
            ..Self::page(format!("{document:#}\n"))
        }
    }

    /// Creates the answer for a text. `kind` is the MIME type.
    pub(crate) fn text(kind: &'static str, body: String) -> Self {
        Self {
            kind,
            ..Self::page(body)
        }
    }

    /// Creates the answer for an asset. Browsers may cache an asset forever, because its name contains its hash.
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

    /// Builds the HTTP response. Compresses the body if the client accepts this.
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

/// Reason why a request is refused, as a page for the visitor.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// What failed, as the heading of the page.
    pub(crate) title: String,
    /// Why it failed, and what the visitor can do.
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
