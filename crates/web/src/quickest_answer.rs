//! Finds the fastest answer that a server gives to a harmless request. The time of this answer is a lower bound for all
//! other answers of the server. The caller measures a load of this request.

use crate::load::Ready;
use assay_http::{Method, Probed, probe};
use assay_model::load::Http;
use std::time::Duration;

/// Number of requests of each kind, of which the fastest counts.
const PROBES: usize = 5;
/// Time limit for one answer. A slower answer cannot be the fastest.
const LIMIT: Duration = Duration::from_secs(2);

/// Minimum ratio between the time of the load's answers and the time of the fastest answer.
const LEAST_GAIN: u32 = 2;

/// Requests without a body and without effect on the server (RFC 9110, section 9.2.1), each with method, path and
/// header. An empty path stands for the path of the load. Many servers answer `TRACE` themselves, before they look for
/// a file or call a program.
const REQUESTS: [(&str, &str, &str); 5] = [
    ("TRACE", "", ""),
    ("OPTIONS", "", ""),
    ("GET", "", "Range: bytes=0-0"),
    ("GET", "/robots.txt", ""),
    ("GET", "/favicon.ico", ""),
];

/// A load that requests the fastest answer, with the connections and the rate of another load.
#[derive(Clone, Debug, PartialEq)]
pub struct QuickestAnswer {
    /// Load that sends the request with the fastest answer.
    pub load: Http,
    /// Length of the fastest answer's body in bytes.
    pub body: u64,
}

impl QuickestAnswer {
    /// Describes the request and its answer, as in `TRACE /shop: 405, 157 bytes`.
    #[must_use]
    pub fn describe(&self) -> String {
        let method = self.load.method.as_deref().unwrap_or("GET");
        let path = self.load.paths.first().map_or("/", String::as_str);
        let path = path.split('?').next().unwrap_or_default();
        let header = self.load.headers.last().map_or("", |_| " one byte");
        let status = self.load.status.unwrap_or(200);
        format!("{method}{header} {path}: {status}, {} bytes", self.body)
    }
}

impl Ready {
    /// Sends each harmless request several times, and returns a load of the request with the fastest answer. Returns
    /// `None` if the server refuses all requests. Also returns `None` if no answer is much faster than the load itself,
    /// because then the program behind the server may have answered.
    pub fn find_smallest_answer(
        &self,
        load: &Http,
        stop: &dyn Fn() -> bool,
    ) -> Option<QuickestAnswer> {
        let mut quickest: Option<(Duration, QuickestAnswer)> = None;
        for request in REQUESTS {
            let Some((took, answer)) = self.probe_answer(request, load, stop) else {
                continue;
            };
            if quickest.as_ref().is_none_or(|(least, _)| took < *least) {
                quickest = Some((took, answer));
            }
        }
        let (took, answer) = quickest?;
        let usual = self.probe_load(load, stop)?;
        (took * LEAST_GAIN <= usual).then_some(answer)
    }

    /// Returns the shortest time in which the server answers the first request of the load.
    fn probe_load(&self, load: &Http, stop: &dyn Fn() -> bool) -> Option<Duration> {
        let target = self.target();
        let (request, address) = (target.requests.first()?, *target.addresses.first()?);
        let mut least: Option<Duration> = None;
        for _ in 0..PROBES {
            let took = match probe(request, address, target.tls.as_ref(), LIMIT, stop) {
                Ok(probed) => time_of(&probed, load),
                Err(_) if stop() => return None,
                Err(_) => LIMIT,
            };
            least = Some(least.map_or(took, |least| least.min(took)));
        }
        least
    }

    fn probe_answer(
        &self,
        (method, path, header): (&str, &str, &str),
        load: &Http,
        stop: &dyn Fn() -> bool,
    ) -> Option<(Duration, QuickestAnswer)> {
        let target = self.target();
        let url = match path {
            "" => target.url.clone(),
            path => target.url.with_path(path)?,
        };
        let header = header.split_once(": ");
        let headers: Vec<(String, String)> = header
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let parsed = Method::parse(method).ok()?;
        let request = self
            .consent_request()
            .request(&parsed, &url, &headers, &[], load.keep_alive)
            .ok()?;
        let address = *target.addresses.first()?;
        let mut least: Option<Probed> = None;
        for _ in 0..PROBES {
            let probed = probe(&request, address, target.tls.as_ref(), LIMIT, stop).ok()?;
            if !is_usable(&probed, load.keep_alive) {
                return None;
            }
            if least
                .as_ref()
                .is_none_or(|least| time_of(&probed, load) < time_of(least, load))
            {
                least = Some(probed);
            }
        }
        let least = least?;
        let load = Http {
            method: Some(method.to_owned()),
            paths: vec![url.path().to_owned()],
            headers: header
                .iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect(),
            status: Some(least.answer.status),
            list: None,
            log: None,
            speed: None,
            shuffle: false,
            body: None,
            same_body: false,
            ..load.clone()
        };
        let body = least.answer.body;
        let took = time_of(&least, &load);
        Some((took, QuickestAnswer { load, body }))
    }
}

/// Returns the time that the load would measure for this answer. If the load keeps its connections open, this time does
/// not include the handshakes: a TLS handshake takes longer than a small answer.
fn time_of(probed: &Probed, load: &Http) -> Duration {
    match load.keep_alive {
        true => probed.answered,
        false => probed.took,
    }
}

/// Returns whether the answer is usable. The server must give it without an entry in its error log, and must keep the
/// connection open if the load needs this.
fn is_usable(probed: &Probed, keep_alive: bool) -> bool {
    let status = probed.answer.status;
    (matches!(status, 200..=399) || status == 405) && (probed.answer.reusable || !keep_alive)
}
