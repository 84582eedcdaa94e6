//! Sends each request of a load once before the load, to determine the expected answers.

use super::{ConsentRequest, TargetError, What};
use crate::list::{self, LeftOut, log};
use assay_http::{Expect, Listed, Method, ProbeError, Probed, Request, Tls, Url, probe};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of distinct requests from a file that are probed; [`LOOKING`] is the time limit.
const LOOKED_AT: usize = 2_000;
const LOOKING: Duration = Duration::from_secs(10);

/// A server that may receive requests.
pub(super) struct Asking<'a> {
    pub url: &'a Url,
    pub asked: &'a ConsentRequest,
    pub tls: Option<&'a Tls>,
    pub addresses: &'a [SocketAddr],
    pub stop: &'a dyn Fn() -> bool,
}

/// Requests of a load and their expected answers.
pub(super) struct Questions {
    pub requests: Vec<Request>,
    pub listed: Arc<[Listed]>,
    pub first: Probed,
    pub remarks: Vec<String>,
}

/// Result of sending the requests of a file once.
#[derive(Default)]
struct Looked {
    /// Requests that the load uses.
    requests: Vec<Request>,
    /// The first answer to one of the requests.
    first: Option<Probed>,
    /// Requests whose answer differed from the expected one.
    other: LeftOut,
    /// Number of requests that were sent.
    looked: usize,
}

impl Asking<'_> {
    pub fn questions(&self) -> Result<Questions, TargetError> {
        match &self.asked.what {
            What::Own => self.paths(&[]),
            What::Paths(paths) => self.paths(paths),
            What::List(text) => self.list(text),
            What::Log { text, speed, seed } => self.log(text, *speed, *seed),
        }
    }

    /// Probes the given paths, or the URL's own path if the list is empty. Every path must give the expected
    /// answer.
    fn paths(&self, paths: &[String]) -> Result<Questions, TargetError> {
        let urls: Vec<Url> = match paths {
            [] => vec![self.url.clone()],
            paths => paths
                .iter()
                .map(|path| self.at(path))
                .collect::<Result<_, _>>()?,
        };
        let mut requests = Vec::new();
        let mut first: Option<Probed> = None;
        for url in &urls {
            let request = self.request(&self.asked.method, url)?;
            let addresses = first.as_ref().map(|first| [first.address]);
            let addresses = addresses.as_ref().map_or(self.addresses, |one| &one[..]);
            let probed = self.answer(url, &request, addresses)?;
            if probed.answer.status != self.asked.status {
                return Err(TargetError::Status {
                    url: url.to_string(),
                    status: probed.answer.status,
                    expected: self.asked.status,
                    location: probed.header("location").map(str::to_owned),
                });
            }
            requests.push(request.expecting(Expect {
                status: self.asked.status,
                length: Some(probed.answer.body),
                hash: probed.answer.hash.filter(|_| self.asked.same_body),
            }));
            first.get_or_insert(probed);
        }
        Ok(Questions {
            requests,
            listed: Arc::from([]),
            first: first.ok_or_else(|| self.nothing("there is no path to ask".to_owned()))?,
            remarks: Vec::new(),
        })
    }

    fn list(&self, text: &[u8]) -> Result<Questions, TargetError> {
        let (paths, left_out) = list::paths(text, self.url);
        let all = paths.len();
        let asked = paths.iter().map(|path| {
            let request = self.request(&self.asked.method, &self.at(path)?)?;
            Ok((request, self.asked.status))
        });
        let seen = self.look(asked, false, |now, _| format!("answered with {now}"))?;
        let mut remarks = vec![format!("{} paths are asked in turn", seen.requests.len())];
        if left_out.count() > 0 {
            let lines = left_out.count() + all as u64;
            remarks.push(format!(
                "{} of {lines} lines of the list are left out: {}",
                left_out.count(),
                left_out.describe()
            ));
        }
        if seen.other.count() > 0 {
            remarks.push(format!(
                "{} of {} paths that were tried are left out: {}",
                seen.other.count(),
                seen.looked,
                seen.other.describe().replace("line", "path")
            ));
        }
        remarks.extend(untried(seen.looked, all));
        let first = seen.first.ok_or_else(|| {
            self.nothing(match all {
                0 if left_out.count() == 0 => "the list has no line".to_owned(),
                0 => format!("no line of the list can be asked: {}", left_out.describe()),
                _ => format!(
                    "no path of the list has the wanted answer: {}",
                    seen.other.describe()
                ),
            })
        })?;
        Ok(Questions {
            requests: seen.requests,
            listed: Arc::from([]),
            first,
            remarks,
        })
    }

    fn log(&self, text: &[u8], speed: f64, seed: u64) -> Result<Questions, TargetError> {
        let log = log::read(text, seed);
        let asked = log.requests.iter().map(|asked| {
            let request = self.request(&asked.method(), &self.at(&asked.path)?)?;
            Ok((request, asked.status))
        });
        let seen = self.look(asked, true, |now, then| {
            format!("with {now} instead of {then}")
        })?;
        let first = seen.first.ok_or_else(|| {
            self.nothing(match log.lines {
                0 => "the log is empty".to_owned(),
                _ => format!(
                    "no line of the log can be replayed: {}",
                    log.left_out.describe()
                ),
            })
        })?;
        let listed: Arc<[Listed]> = log
            .times
            .iter()
            .map(|(at, which)| Listed {
                due: (*at as f64 / speed) as u64,
                which: *which,
            })
            .collect();
        let span = listed.last().map_or(0, |last| last.due);
        let mut remarks = vec![format!(
            "{} requests of the log, {} of them different, are replayed over {}",
            listed.len(),
            seen.requests.len(),
            assay_model::Nanos(span)
        )];
        if log.left_out.count() > 0 {
            remarks.push(format!(
                "{} of {} lines of the log are left out: {}",
                log.left_out.count(),
                log.lines,
                log.left_out.describe()
            ));
        }
        if seen.other.count() > 0 {
            remarks.push(format!(
                "{} of {} requests that were tried are answered otherwise than the log says, and \
                 will fail: {}",
                seen.other.count(),
                seen.looked,
                seen.other.describe().replace("line", "request")
            ));
        }
        remarks.extend(untried(seen.looked, seen.requests.len()));
        Ok(Questions {
            requests: seen.requests,
            listed,
            first,
            remarks,
        })
    }

    /// Probes each request once, within the time limit, and compares the status with the expected one. `describe`
    /// formats a difference. A request with a different status is left out of the load, unless `others_stay` is set.
    fn look(
        &self,
        all: impl Iterator<Item = Result<(Request, u16), TargetError>>,
        others_stay: bool,
        describe: impl Fn(u16, u16) -> String,
    ) -> Result<Looked, TargetError> {
        let mut seen = Looked::default();
        let begin = Instant::now();
        for (number, asked) in (1u64..).zip(all) {
            let (request, status) = asked?;
            let expect = Expect {
                status,
                ..Expect::default()
            };
            if seen.looked == LOOKED_AT || begin.elapsed() > LOOKING {
                seen.requests.push(request.expecting(expect));
                continue;
            }
            seen.looked += 1;
            let probed = self.answer(self.url, &request, self.addresses)?;
            let came = probed.answer.status;
            if came != status {
                seen.other.add(describe(came, status), number);
                if !others_stay {
                    continue;
                }
            }
            let length = fixed(&probed).filter(|_| came == status);
            seen.requests
                .push(request.expecting(Expect { length, ..expect }));
            seen.first.get_or_insert(probed);
        }
        Ok(seen)
    }

    fn at(&self, path: &str) -> Result<Url, TargetError> {
        self.url
            .with_path(path)
            .ok_or_else(|| TargetError::Request {
                url: self.url.to_string(),
                why: format!("`{}` is no path", path.escape_debug()),
            })
    }

    fn request(&self, method: &Method, url: &Url) -> Result<Request, TargetError> {
        let asked = self.asked;
        let (headers, body) = (&asked.headers, &asked.body);
        let request = asked.request(method, url, headers, body, asked.keep_alive);
        request.map_err(|why| TargetError::Request {
            url: url.to_string(),
            why,
        })
    }

    /// Returns the answer of the first address that answers.
    fn answer(
        &self,
        url: &Url,
        request: &Request,
        addresses: &[SocketAddr],
    ) -> Result<Probed, TargetError> {
        let mut last = None;
        for address in addresses {
            match probe(request, *address, self.tls, self.asked.limit, self.stop) {
                Ok(probed) => return Ok(probed),
                Err(error) => last = Some(error),
            }
        }
        Err(TargetError::Silent {
            url: url.to_string(),
            source: last.unwrap_or(ProbeError::Interrupted),
        })
    }

    fn nothing(&self, why: String) -> TargetError {
        TargetError::Nothing {
            url: self.url.to_string(),
            why,
        }
    }
}

/// Returns the length of the body if the answer is a file, because only a file always has the same length.
fn fixed(probed: &Probed) -> Option<u64> {
    let file = probed.header("etag").is_some() || probed.header("last-modified").is_some();
    file.then_some(probed.answer.body)
}

fn untried(looked: usize, all: usize) -> Option<String> {
    (looked < all).then(|| {
        format!("{looked} of {all} different requests were tried before; of the others the status alone is checked")
    })
}
