//! Prepares a server for measurement: resolves its addresses, checks its consent, and determines the expected
//! answers.

mod questions;

use crate::consent::{self, Consent};
use crate::link;
use assay_http::{Listed, Method, ProbeError, Probed, Request, Tls, TlsError, Trust, Url, probe};
use assay_model::web::Protocol;
use jiff::civil::Date;
use questions::{Asking, Questions};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Requirements for a target and its requests.
#[derive(Clone, Debug)]
pub struct ConsentRequest {
    /// HTTP method.
    pub method: Method,
    /// Headers in addition to assay's own.
    pub headers: Vec<(String, String)>,
    /// Request body.
    pub body: Vec<u8>,
    /// HTTP version.
    pub protocol: Protocol,
    /// Simultaneous requests per connection; more than one requires HTTP/2.
    pub streams: u32,
    /// Send many requests over one connection.
    pub keep_alive: bool,
    /// Status of a good answer.
    pub status: u16,
    /// The body must equal the body of the first answer.
    pub same_body: bool,
    /// Trusted certificate authorities.
    pub trust: Trust,
    /// Later connections resume TLS sessions.
    pub resume: bool,
    /// Time limit of a request; a slower request is a failure.
    pub limit: Duration,
    /// Use only addresses of this family.
    pub family: Option<Family>,
    /// Load all addresses of a name instead of only the first that answers.
    pub all_addresses: bool,
    /// Requested paths.
    pub what: What,
}

/// Paths that a load requests.
#[derive(Clone, Debug, Default)]
pub enum What {
    /// The path of the URL.
    #[default]
    Own,
    /// These paths, in order or at random. Each must answer before the load.
    Paths(Vec<String>),
    /// Content of a file with one URL or path per line. Paths that do not answer are omitted.
    List(Arc<[u8]>),
    /// Content of an access log, whose requests are sent at their logged times.
    Log {
        /// Content of the log.
        text: Arc<[u8]>,
        /// Speed factor of the replay.
        speed: f64,
        /// Seed for the random time of a request within its second.
        seed: u64,
    },
}

/// Address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A server that may be loaded and answers.
#[derive(Clone, Debug)]
pub struct Target {
    /// URL as the user gave it.
    pub url: Url,
    /// Addresses that are loaded.
    pub addresses: Vec<SocketAddr>,
    /// TLS configuration, if TLS is used.
    pub tls: Option<Tls>,
    /// Simultaneous requests per connection.
    pub streams: u32,
    /// Number of requests per connection: 1 for HTTP/2 without `keep_alive`, otherwise `None`. An HTTP/1.1 request
    /// without `keep_alive` contains a header that closes the connection.
    pub requests_per_connection: Option<u32>,
    /// The distinct requests.
    pub requests: Vec<Request>,
    /// Send times of the requests, if an access log determines them.
    pub listed: Arc<[Listed]>,
    /// The first answer.
    pub first: Probed,
    /// The server is on this machine.
    pub here: bool,
    /// Consent of the server; `None` if none is required.
    pub consent: Option<Consent>,
    /// Warnings for the reader, such as a cache or compression.
    pub remarks: Vec<String>,
}

/// Reasons why a target cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The text is not a valid URL.
    #[error("{text}: {why}")]
    Url {
        /// The given text.
        text: String,
        /// Error in the text.
        why: &'static str,
    },
    /// The host name cannot be resolved.
    #[error("{url}: no address for this host: {source}")]
    Resolve {
        /// URL.
        url: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// The host has no address of the requested family.
    #[error("{url}: none of its addresses is of the family asked for")]
    Family {
        /// URL.
        url: String,
    },
    /// TLS cannot be used.
    #[error("{url}: {source}")]
    Tls {
        /// URL.
        url: String,
        /// Reason.
        source: TlsError,
    },
    /// The request is invalid.
    #[error("{url}: {why}")]
    Request {
        /// URL.
        url: String,
        /// Error in the request.
        why: String,
    },
    /// The server does not answer.
    #[error("{url}: {source}")]
    Silent {
        /// URL.
        url: String,
        /// Error of the first request.
        source: ProbeError,
    },
    /// The server answers with another status.
    #[error("{url}: it answers with status {status}, not {expected}{}", led(.location))]
    Status {
        /// URL.
        url: String,
        /// Received status.
        status: u16,
        /// Expected status.
        expected: u16,
        /// Target of the redirect.
        location: Option<String>,
    },
    /// The server permits fewer simultaneous requests per connection than requested.
    #[error(
        "{url}: the server takes {most} requests at once on a connection (SETTINGS_MAX_CONCURRENT_STREAMS), not \
         {asked}: ask for fewer with --streams, and more connections"
    )]
    Streams {
        /// URL.
        url: String,
        /// Permitted number.
        most: u32,
        /// Requested number.
        asked: u32,
    },
    /// The file contains no request that can be sent.
    #[error("{url}: {why}")]
    Nothing {
        /// URL.
        url: String,
        /// Reason.
        why: String,
    },
    /// The server did not consent.
    #[error(
        "{url} ({address}) is another machine, and nothing there agrees to a load: {consent} {why}. \
         Who runs it can put two lines there: `assay-consent 1` and `until YYYY-MM-DD`"
    )]
    NoConsent {
        /// URL.
        url: String,
        /// Address of the server.
        address: SocketAddr,
        /// URL of the consent file.
        consent: String,
        /// Reason why the file is not a consent.
        why: String,
    },
}

fn led(location: &Option<String>) -> String {
    match location {
        Some(location) => format!("; it leads to {location}: name that URL"),
        None => "; name the status of a good answer with --status".to_owned(),
    }
}

impl ConsentRequest {
    /// Encodes one request for the protocol.
    pub(crate) fn request(
        &self,
        method: &Method,
        url: &Url,
        headers: &[(String, String)],
        body: &[u8],
        keep_alive: bool,
    ) -> Result<Request, String> {
        match self.protocol {
            Protocol::Http1 => Request::new(method, url, headers, body, keep_alive),
            Protocol::Http2 => Request::http2(method, url, headers, body),
        }
    }
}

/// Prepares a server: resolves its addresses, checks its consent for `today`, and requests its first answer.
///
/// # Errors
/// See [`TargetError`].
pub fn find(
    text: &str,
    asked: &ConsentRequest,
    today: Date,
    stop: &dyn Fn() -> bool,
) -> Result<Target, TargetError> {
    let url = Url::parse(text).map_err(|why| TargetError::Url {
        text: text.to_owned(),
        why,
    })?;
    let shown = url.to_string();
    let addresses = addresses(&url, asked)?;
    let tls = match url.is_tls() {
        true => Some(
            Tls::new(&url, &asked.trust, asked.resume)
                .map_err(|source| TargetError::Tls {
                    url: shown.clone(),
                    source,
                })?
                .speaking(asked.protocol),
        ),
        false => None,
    };
    // A server that has not consented receives only the request for the consent file.
    let mut consent: Option<Consent> = None;
    for address in &addresses {
        if !link::is_here(address) {
            let one = ask_consent(&url, *address, tls.as_ref(), asked, today, stop)?;
            consent = Some(match consent {
                Some(other) => other.stricter(&one),
                None => one,
            });
        }
    }
    let asking = Asking {
        url: &url,
        asked,
        tls: tls.as_ref(),
        addresses: &addresses,
        stop,
    };
    let Questions {
        requests,
        listed,
        first,
        remarks: said,
    } = asking.questions()?;
    let used = first.address;
    if let Some(most) = consent.and_then(|consent| consent.most_requests_per_second) {
        let busiest = busiest_second(&listed);
        if busiest as f64 > most {
            return Err(TargetError::Nothing {
                url: shown,
                why: format!(
                    "the log has {busiest} requests in its busiest second, and the server agrees to {most} \
                     per second: replay it slower (--speed)"
                ),
            });
        }
    }
    if let Some(most) = first.most_streams
        && most < asked.streams
    {
        return Err(TargetError::Streams {
            url: shown,
            most,
            asked: asked.streams,
        });
    }
    let addresses = match asked.all_addresses {
        true => addresses,
        false => vec![used],
    };
    let mut remarks = remarks(&first, asked.keep_alive);
    if first.protocol == Protocol::Http2 {
        remarks.push(match asked.streams {
            1 => "HTTP/2, one request at a time on each connection".to_owned(),
            n => format!("HTTP/2, up to {n} requests at once on each connection"),
        });
    }
    remarks.extend(said);
    Ok(Target {
        here: addresses.iter().all(link::is_here),
        remarks,
        listed,
        url,
        addresses,
        tls,
        streams: asked.streams,
        // HTTP/1.1 requests contain a header that closes the connection.
        requests_per_connection: (first.protocol == Protocol::Http2 && !asked.keep_alive)
            .then_some(1),
        requests,
        first,
        consent,
    })
}

impl Target {
    /// Returns the protocol of the server.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.first.protocol
    }

    /// Probes the same server again: after a configuration change, the expected answer may differ. Sends only
    /// requests of the load.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn again(
        &self,
        asked: &ConsentRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, TargetError> {
        let asking = Asking {
            url: &self.url,
            asked,
            tls: self.tls.as_ref(),
            addresses: &self.addresses,
            stop,
        };
        let questions = asking.questions()?;
        Ok(Self {
            requests: questions.requests,
            listed: questions.listed,
            first: questions.first,
            ..self.clone()
        })
    }
}

/// Returns the largest number of requests that are due within one second.
fn busiest_second(listed: &[Listed]) -> usize {
    let mut from = 0;
    let within = listed.iter().enumerate().map(|(at, one)| {
        while one.due - listed[from].due >= 1_000_000_000 {
            from += 1;
        }
        at - from + 1
    });
    within.max().unwrap_or(0)
}

fn addresses(url: &Url, asked: &ConsentRequest) -> Result<Vec<SocketAddr>, TargetError> {
    let all = url.resolve().map_err(|source| TargetError::Resolve {
        url: url.to_string(),
        source,
    })?;
    let wanted: Vec<SocketAddr> = all
        .into_iter()
        .filter(|address| match asked.family {
            None => true,
            Some(Family::V4) => address.is_ipv4(),
            Some(Family::V6) => address.is_ipv6(),
        })
        .collect();
    match wanted.is_empty() {
        true => Err(TargetError::Family {
            url: url.to_string(),
        }),
        false => Ok(wanted),
    }
}

fn ask_consent(
    url: &Url,
    address: SocketAddr,
    tls: Option<&Tls>,
    asked: &ConsentRequest,
    today: Date,
    stop: &dyn Fn() -> bool,
) -> Result<Consent, TargetError> {
    let Some(file) = url.with_path(consent::PATH) else {
        unreachable!("the path is part of the program");
    };
    let refused = |why: String| TargetError::NoConsent {
        url: url.to_string(),
        address,
        consent: file.to_string(),
        why,
    };
    let request = asked.request(&Method::Get, &file, &[], &[], false);
    let request = request.map_err(refused)?;
    let limit = asked.limit.min(Duration::from_secs(10));
    let probed = probe(&request, address, tls, limit, stop)
        .map_err(|error| refused(format!("cannot be read: {error}")))?;
    match probed.answer.status {
        200 => Consent::read(&String::from_utf8_lossy(&probed.start), today)
            .map_err(|why| refused(format!("is there, but {why}"))),
        status => Err(refused(format!("is not there (status {status})"))),
    }
}

/// Returns warnings about properties of an answer that affect the measurement.
fn remarks(first: &Probed, keep_alive: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(version) = first.header("server") {
        let shown: String = version.chars().take(80).collect();
        remarks.push(format!("it calls itself {shown}"));
    }
    let cached = ["age", "x-cache", "cf-cache-status"];
    for name in cached {
        if let Some(value) = first.header(name) {
            remarks.push(format!(
                "the answer comes from a cache or passed one ({name}: {value})"
            ));
            break;
        }
    }
    if let Some(coding) = first.header("content-encoding") {
        remarks.push(format!(
            "the body is compressed ({coding}): bytes are counted as they come"
        ));
    }
    if keep_alive && !first.answer.reusable {
        remarks.push("the server closes the connection after each answer".to_owned());
    }
    remarks
}
