//! A server to be measured: its addresses, whether it may be loaded, what a good answer is.

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

/// What is asked of every target.
#[derive(Clone, Debug)]
pub struct ConsentRequest {
    /// Method.
    pub method: Method,
    /// Headers beside assay's own.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// What is spoken.
    pub protocol: Protocol,
    /// Requests at once on each connection; more than one is for HTTP/2 alone.
    pub streams: u32,
    /// Many requests over one connection.
    pub keep_alive: bool,
    /// Status of a good answer.
    pub status: u16,
    /// The body must be the first one's, byte for byte.
    pub same_body: bool,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// TLS sessions are continued by later connections.
    pub resume: bool,
    /// A request that takes longer has failed.
    pub limit: Duration,
    /// Only addresses of this family.
    pub family: Option<Family>,
    /// Load all addresses of a name, instead of the first that answers.
    pub all_addresses: bool,
    /// Which paths.
    pub what: What,
}

/// Which paths of a server are asked.
#[derive(Clone, Debug, Default)]
pub enum What {
    /// The URL's own.
    #[default]
    Own,
    /// These, in turn or at random; each must answer before the load.
    Paths(Vec<String>),
    /// The bytes of a file with a URL or path on each line. Those that do not answer are left out.
    List(Arc<[u8]>),
    /// The bytes of an access log, whose requests are sent at its own times.
    Log {
        /// Its bytes.
        text: Arc<[u8]>,
        /// Times as fast.
        speed: f64,
        /// Draws where in its second a request came.
        seed: u64,
    },
}

/// Kind of addresses.
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
    /// As the user named it.
    pub url: Url,
    /// Where it is loaded.
    pub addresses: Vec<SocketAddr>,
    /// TLS, if it is spoken.
    pub tls: Option<Tls>,
    /// Requests at once on each connection.
    pub streams: u32,
    /// Requests that a connection carries, where that follows from what is asked.
    pub requests_per_connection: Option<u32>,
    /// What is sent.
    pub requests: Vec<Request>,
    /// What is sent when, where a log says it.
    pub listed: Arc<[Listed]>,
    /// The first answer.
    pub first: Probed,
    /// On this machine.
    pub here: bool,
    /// What it agreed to; none where nothing has to be asked.
    pub consent: Option<Consent>,
    /// What a reader must know: a cache, compression.
    pub remarks: Vec<String>,
}

/// Why a target cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No URL.
    #[error("{text}: {why}")]
    Url {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No such host.
    #[error("{url}: no address for this host: {source}")]
    Resolve {
        /// URL.
        url: String,
        /// The resolver's answer.
        source: io::Error,
    },
    /// It has addresses, but none of the family that was asked for.
    #[error("{url}: none of its addresses is of the family asked for")]
    Family {
        /// URL.
        url: String,
    },
    /// TLS cannot be spoken.
    #[error("{url}: {source}")]
    Tls {
        /// URL.
        url: String,
        /// Why.
        source: TlsError,
    },
    /// A request that cannot be.
    #[error("{url}: {why}")]
    Request {
        /// URL.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// It does not answer.
    #[error("{url}: {source}")]
    Silent {
        /// URL.
        url: String,
        /// How it does not.
        source: ProbeError,
    },
    /// It answers with something else.
    #[error("{url}: it answers with status {status}, not {expected}{}", led(.location))]
    Status {
        /// URL.
        url: String,
        /// What came.
        status: u16,
        /// What was to come.
        expected: u16,
        /// Where it leads.
        location: Option<String>,
    },
    /// It takes fewer requests at once on a connection than are asked for.
    #[error(
        "{url}: the server takes {most} requests at once on a connection (SETTINGS_MAX_CONCURRENT_STREAMS), not \
         {asked}: ask for fewer with --streams, and more connections"
    )]
    Streams {
        /// URL.
        url: String,
        /// How many it takes.
        most: u32,
        /// How many were asked for.
        asked: u32,
    },
    /// A file of which nothing can be asked.
    #[error("{url}: {why}")]
    Nothing {
        /// URL.
        url: String,
        /// Why.
        why: String,
    },
    /// It did not agree.
    #[error(
        "{url} ({address}) is another machine, and nothing there agrees to a load: {consent} {why}. \
         Who runs it can put two lines there: `assay-consent 1` and `until YYYY-MM-DD`"
    )]
    NoConsent {
        /// URL.
        url: String,
        /// Which of its addresses.
        address: SocketAddr,
        /// URL of the file.
        consent: String,
        /// Why that is no consent.
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
    /// One request, as the protocol has it.
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

/// Finds a server: its addresses, its consent on that day, its first answer.
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
    // Nothing but the question for consent is sent to a server that has not agreed.
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
        // HTTP/1.1 says so in each request.
        requests_per_connection: (first.protocol == Protocol::Http2 && !asked.keep_alive)
            .then_some(1),
        requests,
        first,
        consent,
    })
}

impl Target {
    /// What is spoken with it.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.first.protocol
    }

    /// The same server as it answers now: after a change of its configuration a good answer may be
    /// another. Nothing is asked but what the load asks.
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

/// Most requests that are due within one second.
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

/// What an answer says of itself that changes what is measured.
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
