//! An HTTP load, in the form that files and the store use.

use crate::secrets::{self, WITHHELD};
use crate::web::Pace;
use serde::{Deserialize, Serialize};

/// A load of HTTP requests. It is a closed loop over several connections, or an open loop with a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// URL, such as `http://HOST:PORT/PATH` or `https://…`. If absent, the target of the measurement is used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Number of concurrent connections. In an open loop this is the maximum number.
    #[serde(default = "default_one")]
    pub connections: u32,
    /// Whether to use HTTP/2: negotiated in the TLS handshake, or by prior knowledge without TLS.
    #[serde(default, skip_serializing_if = "is_no")]
    pub http2: bool,
    /// Number of concurrent requests (streams) on each HTTP/2 connection. The total concurrency is connections ×
    /// streams.
    #[serde(default = "default_one", skip_serializing_if = "is_one")]
    pub streams: u32,
    /// Whether connections are reused. If not, each request opens a new connection.
    #[serde(default = "default_true")]
    pub keep_alive: bool,
    /// Requests per second of an open loop. If absent, the load is a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Whether the intervals between requests are random (exponentially distributed) instead of constant.
    #[serde(default, skip_serializing_if = "is_no")]
    pub poisson: bool,
    /// Rate as a fraction of the measured capacity. Permitted only for `assay web`, which measures the capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Path of a file with one URL or path per line, which are requested in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// Path of an access log. Its requests are replayed at the times in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Factor by which the replay is faster than the log; 2 means twice as fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Paths that are requested in turn, instead of the path of the URL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Whether the paths are selected at random instead of in turn.
    #[serde(default, skip_serializing_if = "is_no")]
    pub shuffle: bool,
    /// HTTP method; GET if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Headers as `Name: value`. The value of a header is stored only if this header never contains a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// Body of each request. The body is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Expected status code; 200 if absent. A response with another status counts as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the body of every response must equal that of the first response.
    #[serde(default, skip_serializing_if = "is_no")]
    pub same_body: bool,
    /// Number of requests after which a connection is closed. Without a value, connections stay open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_connection: Option<u32>,
    /// Whether to accept any certificate.
    #[serde(default, skip_serializing_if = "is_no")]
    pub insecure: bool,
    /// PEM file of certificate authorities, which replace the authorities of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// Whether new connections resume earlier TLS sessions.
    #[serde(default, skip_serializing_if = "is_no")]
    pub tls_resume: bool,
    /// Number of threads of the load generator. By default, half of the CPUs if the server is on this machine, else all
    /// CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
}

fn default_one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_one(value: &u32) -> bool {
    *value == 1
}

fn default_true() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_no(value: &bool) -> bool {
    !*value
}

impl Default for Http {
    fn default() -> Self {
        Self {
            url: String::new(),
            connections: 1,
            http2: false,
            streams: 1,
            keep_alive: true,
            rate: None,
            poisson: false,
            share: None,
            list: None,
            log: None,
            speed: None,
            paths: Vec::new(),
            shuffle: false,
            method: None,
            headers: Vec::new(),
            body: None,
            status: None,
            same_body: false,
            requests_per_connection: None,
            insecure: false,
            ca: None,
            tls_resume: false,
            threads: None,
        }
    }
}

/// Headers whose values are never secret.
const HARMLESS: [&str; 9] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-type",
    "host",
    "if-modified-since",
    "range",
    "user-agent",
];

impl Http {
    /// Returns the schedule of the load. This function does not read access logs, so the times of a replay are not part
    /// of the result.
    #[must_use]
    pub fn pace(&self) -> Pace {
        match (self.rate, self.poisson) {
            (None, _) => Pace::Closed,
            (Some(per_s), false) => Pace::Constant { per_s },
            (Some(per_s), true) => Pace::Poisson { per_s },
        }
    }

    /// Returns the load for storing and printing: without the body, without the query of the URL, and without header
    /// values that may be secret. Applying this twice changes nothing.
    #[must_use]
    pub fn kept(&self) -> Self {
        let header = |header: &String| {
            let name = header.split(':').next().unwrap_or_default().trim();
            match HARMLESS
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
            {
                true => header.clone(),
                false => format!("{name}: {WITHHELD}"),
            }
        };
        Self {
            url: secrets::withhold_in_text(&self.url),
            headers: self.headers.iter().map(header).collect(),
            paths: self
                .paths
                .iter()
                .map(|path| secrets::withhold_in_text(path))
                .collect(),
            body: self.body.as_ref().map(|_| WITHHELD.to_owned()),
            ..self.clone()
        }
    }

    /// Returns the name of a part that was removed before the load was stored; `None` if the load is complete. An
    /// incomplete load cannot be executed again.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        let gone = |text: &str| text.contains(WITHHELD);
        match () {
            () if gone(&self.url) || self.paths.iter().any(|path| gone(path)) => Some("the URL"),
            () if self.headers.iter().any(|header| gone(header)) => Some("a header's value"),
            () if self.body.as_deref().is_some_and(gone) => Some("the body"),
            () => None,
        }
    }

    /// Checks that the values are in range and consistent.
    ///
    /// # Errors
    /// One sentence that contains the name of the key.
    pub fn check(&self) -> Result<(), String> {
        let per_s = |rate: f64| rate > 0.0 && rate <= 1e8;
        let wrong = |why: &str| Err(why.to_owned());
        match () {
            () if !(1..=100_000).contains(&self.connections) => {
                wrong("connections is from 1 to 100000")
            }
            () if self.streams == 0 => wrong("streams is at least 1"),
            () if u64::from(self.connections) * u64::from(self.streams) > 100_000 => {
                wrong("connections times streams is at most 100000")
            }
            () if self.streams > 1 && !self.http2 => {
                wrong("streams are those of HTTP/2: add http2, or leave streams out")
            }
            () if self.streams > 1 && !self.keep_alive => {
                wrong("without keep_alive each connection has one request: leave out streams")
            }
            () if self.rate.is_some_and(|rate| !per_s(rate)) => {
                wrong("rate is more than 0 and at most 100000000 requests per second")
            }
            () if self.poisson && self.rate.is_none() => {
                wrong("poisson says when the requests of a rate are sent, and there is no rate")
            }
            () if self.log.is_some() && (self.rate.is_some() || self.poisson) => {
                wrong("a log has its own times: leave out rate and poisson, or name it as list")
            }
            () if self.speed.is_some() && self.log.is_none() => {
                wrong("speed is that of a log, and there is none")
            }
            () if self
                .speed
                .is_some_and(|speed| !(speed > 0.0 && speed <= 1e6)) =>
            {
                wrong("speed is more than 0 and at most 1000000")
            }
            () if [
                !self.paths.is_empty(),
                self.list.is_some(),
                self.log.is_some(),
            ]
            .iter()
            .filter(|said| **said)
            .count()
                > 1 =>
            {
                wrong("paths, list and log each say what is asked: name one of them")
            }
            () if self.log.is_some() && self.shuffle => {
                wrong("a log has its own order: leave out shuffle")
            }
            () if self.insecure && self.ca.is_some() => {
                wrong("insecure believes any certificate: leave out ca")
            }
            () if !self.keep_alive && self.requests_per_connection.is_some() => {
                wrong("without keep_alive each connection has one request")
            }
            () if self.requests_per_connection == Some(0) || self.threads == Some(0) => {
                wrong("requests_per_connection and threads are at least 1")
            }
            () => Ok(()),
        }
    }

    /// Returns a description on one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let method = self.method.as_deref().unwrap_or("GET");
        let url = match self.url.as_str() {
            "" => String::new(),
            url => format!(" {}", secrets::withhold_in_text(url)),
        };
        let mut text = format!("HTTP {method}{url}");
        if let Some(log) = &self.log {
            text.push_str(&format!(", as in {log}"));
            if let Some(speed) = self.speed {
                text.push_str(&format!(" at {speed} times its speed"));
            }
            return text;
        }
        if let Some(list) = &self.list {
            text.push_str(&format!(", each of {list}"));
        }
        if self.paths.len() > 1 {
            text.push_str(&format!(", {} paths", self.paths.len()));
        }
        let connections = match self.connections {
            1 => "1 connection".to_owned(),
            n => format!("{n} connections"),
        };
        let connections = match (self.http2, self.streams) {
            (false, _) => connections,
            (true, 1) => format!("{connections} of HTTP/2"),
            (true, n) => format!("{connections} of HTTP/2 with {n} streams each"),
        };
        text.push_str(&match (self.share, self.rate) {
            (Some(share), _) => format!(", at {:.0} % of the capacity", share * 100.0),
            (None, Some(rate)) => format!(", {rate} per second over up to {connections}"),
            (None, None) => format!(", {connections}"),
        });
        text.push_str(match self.keep_alive {
            true => ", kept alive",
            false => ", a new one for each request",
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Load;

    #[test]
    fn files_of_0_1_are_read() {
        let old = r#"{"kind":"http","url":"http://h/","connections":4,"keep_alive":false}"#;
        let Load::Http(load) = serde_json::from_str(old).unwrap() else {
            panic!("not HTTP");
        };
        assert_eq!((load.connections, load.keep_alive), (4, false));
        assert_eq!(serde_json::to_string(&Load::Http(load)).unwrap(), old);
        let unknown = r#"{"kind":"http","url":"http://h/","conections":4}"#;
        let error = serde_json::from_str::<Load>(unknown).unwrap_err();
        insta::assert_snapshot!(error, @"unknown field `conections`, expected one of `url`, `connections`, `http2`, `streams`, `keep_alive`, `rate`, `poisson`, `share`, `list`, `log`, `speed`, `paths`, `shuffle`, `method`, `headers`, `body`, `status`, `same_body`, `requests_per_connection`, `insecure`, `ca`, `tls_resume`, `threads`");
    }

    #[test]
    fn http2_is_said_and_left_out_where_it_is_not() {
        let load: Http =
            serde_json::from_str(r#"{"url":"http://h/","http2":true,"streams":10}"#).unwrap();
        assert!(load.http2 && load.streams == 10 && load.check().is_ok());
        insta::assert_snapshot!(load.describe(), @"HTTP GET http://h/, 1 connection of HTTP/2 with 10 streams each, kept alive");
        let plain = serde_json::to_string(&Http::default()).unwrap();
        assert!(!plain.contains("http2") && !plain.contains("streams"));
        let wrong = |load: Http| load.check().is_err();
        assert!(wrong(Http {
            http2: false,
            ..load.clone()
        }));
        assert!(wrong(Http {
            keep_alive: false,
            ..load.clone()
        }));
        assert!(wrong(Http {
            connections: 10_001,
            ..load
        }));
    }

    #[test]
    fn secrets_are_not_kept_and_what_is_missing_is_said() {
        let load = Http {
            url: "http://h/a".to_owned(),
            headers: vec![
                "Cookie: session=1".to_owned(),
                "X-Anything: 2".to_owned(),
                "Accept: text/html".to_owned(),
            ],
            body: Some("password=3".to_owned()),
            ..Http::default()
        };
        assert_eq!(load.missing(), None);
        let kept = load.kept();
        let text = serde_json::to_string(&kept).unwrap();
        for secret in ["session=1", ": 2", "password=3"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("text/html"));
        assert_eq!(kept.kept(), kept);
        assert_eq!(kept.missing(), Some("a header's value"));
        let url = Http {
            url: "http://me:pw@h/a?token=abc".to_owned(),
            ..Http::default()
        };
        assert!(!url.kept().url.contains("abc") && !url.describe().contains("abc"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let fine = |load: Http| load.check().is_ok();
        assert!(fine(Http::default()));
        let base = Http::default;
        assert!(!fine(Http {
            poisson: true,
            ..base()
        }));
        assert!(!fine(Http {
            rate: Some(f64::NAN),
            ..base()
        }));
        assert!(!fine(Http {
            rate: Some(-1.0),
            ..base()
        }));
        assert!(!fine(Http {
            connections: 0,
            ..base()
        }));
        assert!(!fine(Http {
            speed: Some(2.0),
            ..base()
        }));
        let log = || Some("access.log".to_owned());
        assert!(fine(Http {
            log: log(),
            speed: Some(2.0),
            ..base()
        }));
        assert!(!fine(Http {
            log: log(),
            rate: Some(2.0),
            ..base()
        }));
        assert!(!fine(Http {
            log: log(),
            list: log(),
            ..base()
        }));
    }
}
