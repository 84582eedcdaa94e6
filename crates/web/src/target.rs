//! Prepares a server for measurement: resolves its addresses, checks its consent, and determines the expected answers.

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

/// Requirements that a target and its requests must meet.
#[derive(Clone, Debug)]
pub struct ConsentRequest {
    /// HTTP method of all requests.
    pub method: Method,
    /// Headers in addition to the default headers of assay.
    pub headers: Vec<(String, String)>,
    /// Body of each request.
    pub body: Vec<u8>,
    /// HTTP version that the requests use.
    pub protocol: Protocol,
    /// Number of simultaneous requests per connection. More than one requires HTTP/2.
    pub streams: u32,
    /// Whether many requests are sent over one connection.
    pub keep_alive: bool,
    /// Status of a good answer.
    pub status: u16,
    /// Whether the body of each answer must equal the body of the first answer.
    pub same_body: bool,
    /// Which certificates of the server are trusted.
    pub trust: Trust,
    /// Whether later connections resume the TLS session.
    pub resume: bool,
    /// Time limit of a request. A slower request counts as failed.
    pub limit: Duration,
    /// Address family to use; `None` means both families.
    pub family: Option<Family>,
    /// Whether all addresses of a name are loaded; else only the first address that answers.
    pub all_addresses: bool,
    /// Which paths are requested.
    pub what: What,
}

/// Paths that a load requests.
#[derive(Clone, Debug, Default)]
pub enum What {
    /// Only the path of the URL.
    #[default]
    Own,
    /// These paths, in order or at random. The server must answer each of them before the load.
    Paths(Vec<String>),
    /// Content of a file with one URL or path per line. Paths to which the server does not answer are omitted.
    List(Arc<[u8]>),
    /// Content of an access log, whose requests are sent at their logged times.
    Log {
        /// Content of the access log.
        text: Arc<[u8]>,
        /// Factor by which the replay is faster than the log.
        speed: f64,
        /// Seed for the random time of a request within its second.
        seed: u64,
    },
}

/// Family of IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Internet Protocol version 4.
    V4,
    /// Internet Protocol version 6.
    V6,
}

/// A server that answers, and that may be loaded.
#[derive(Clone, Debug)]
pub struct Target {
    /// URL as the user gave it.
    pub url: Url,
    /// Addresses to which the load connects.
    pub addresses: Vec<SocketAddr>,
    /// TLS configuration; `None` without TLS.
    pub tls: Option<Tls>,
    /// Number of simultaneous requests per connection.
    pub streams: u32,
    /// Number of requests per connection: 1 for HTTP/2 without `keep_alive`, otherwise `None`. An HTTP/1.1 request
    /// without `keep_alive` contains a header that closes the connection.
    pub requests_per_connection: Option<u32>,
    /// Requests of the load, without duplicates.
    pub requests: Vec<Request>,
    /// Send times of the requests; empty unless an access log determines them.
    pub listed: Arc<[Listed]>,
    /// First answer of the server.
    pub first: Probed,
    /// Whether the server is on this machine.
    pub here: bool,
    /// Consent of the server; `None` if none is required.
    pub consent: Option<Consent>,
    /// Warnings for the reader of the results, for example about a cache or compression.
    pub remarks: Vec<String>,
}

/// Reason why a target cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The text is not a valid URL.
    #[error("{text}: {why}")]
    Url {
        /// Text from the user.
        text: String,
        /// What is wrong with the text.
        why: &'static str,
    },
    /// The host name cannot be resolved.
    #[error("{url}: no address for this host: {source}")]
    Resolve {
        /// URL of the target.
        url: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// The host has no address of the requested family.
    #[error("{url}: none of its addresses is of the family asked for")]
    Family {
        /// URL of the target.
        url: String,
    },
    /// TLS cannot be used.
    #[error("{url}: {source}")]
    Tls {
        /// URL of the target.
        url: String,
        /// Reason why TLS cannot be used.
        source: TlsError,
    },
    /// The request is invalid.
    #[error("{url}: {why}")]
    Request {
        /// URL of the target.
        url: String,
        /// What is wrong with the request.
        why: String,
    },
    /// The server gives no valid answer.
    #[error("{url}: {source}")]
    Silent {
        /// URL of the target.
        url: String,
        /// Error of the first request.
        source: ProbeError,
    },
    /// The server answers with a status that is not the expected one.
    #[error("{url}: it answers with status {status}, not {expected}{}", led(.location))]
    Status {
        /// URL of the request.
        url: String,
        /// Status code of the answer.
        status: u16,
        /// Status code of a good answer.
        expected: u16,
        /// Location to which the answer redirects; `None` without a redirect.
        location: Option<String>,
    },
    /// The server permits fewer simultaneous requests per connection than requested.
    #[error(
        "{url}: the server takes {most} requests at once on a connection (SETTINGS_MAX_CONCURRENT_STREAMS), not \
         {asked}: ask for fewer with --streams, and more connections"
    )]
    Streams {
        /// URL of the target.
        url: String,
        /// Number that the server permits.
        most: u32,
        /// Number that the user requested.
        asked: u32,
    },
    /// The file contains no request that can be sent.
    #[error("{url}: {why}")]
    Nothing {
        /// URL of the target.
        url: String,
        /// Reason why no request can be sent.
        why: String,
    },
    /// The server has no valid consent file.
    #[error(
        "{url} ({address}) is another machine, and nothing there agrees to a load: {consent} {why}. \
         Who runs it can put two lines there: `assay-consent 1` and `until YYYY-MM-DD`"
    )]
    NoConsent {
        /// URL of the target.
        url: String,
        /// Address of the server.
        address: SocketAddr,
        /// URL of the consent file.
        consent: String,
        /// Reason why the file is not a valid consent.
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
    /// Encodes one request for the HTTP version of the load.
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
    /// Returns the HTTP version of the server's connections.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.first.protocol
    }

    /// Probes the same server again, because the expected answer may differ after a configuration change. Only sends
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
