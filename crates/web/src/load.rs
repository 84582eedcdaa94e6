//! Prepares and runs an HTTP load that a plan describes.

use crate::server::ServerProcesses;
use crate::step::{Bench, Manner, Shape, measure};
use crate::target::{ConsentRequest, Target, TargetError, What, find};
use assay_http::{LoadError, Method, Trust};
use assay_model::load::Http;
use assay_model::web::{Pace, Protocol, Step};
use jiff::civil::Date;
use std::sync::Arc;
use std::time::Duration;

/// Reason why a load cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AskedError {
    /// The description of the load is invalid.
    #[error("{what}: {why}")]
    Load {
        /// URL or file name that is invalid.
        what: String,
        /// Description of the error and of its remedy.
        why: String,
    },
    /// Loading the server is not permitted, or the server does not answer.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl ConsentRequest {
    /// Builds the requirements for the requests of a load. `file` reads a file that the user named.
    ///
    /// # Errors
    /// The description of the load is invalid, or a file cannot be read.
    pub fn of(
        load: &Http,
        limit: Duration,
        seed: u64,
        file: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Self, AskedError> {
        let url = || match load.url.as_str() {
            "" => "http".to_owned(),
            url => url.to_owned(),
        };
        let wrong = |why: String| AskedError::Load { what: url(), why };
        let read = |path: &str| {
            let bytes = file(path).map_err(|why| AskedError::Load {
                what: path.to_owned(),
                why,
            })?;
            match bytes.starts_with(&[0x1f, 0x8b]) {
                true => Err(AskedError::Load {
                    what: path.to_owned(),
                    why: "it is compressed: unpack it first, with zcat".to_owned(),
                }),
                false => Ok(bytes),
            }
        };
        load.check().map_err(wrong)?;
        if let Some(gone) = load.missing() {
            return Err(wrong(format!(
                "{gone} was not stored, because it may be secret: begin a new run with it"
            )));
        }
        let method = load.method.as_deref().unwrap_or("GET");
        let mut headers = Vec::new();
        for header in &load.headers {
            let (name, value) = header
                .split_once(':')
                .ok_or_else(|| wrong(format!("header `{header}`: write it as `Name: value`")))?;
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(Self {
            method: Method::parse(method)
                .map_err(|why| wrong(format!("method `{method}`: {why}")))?,
            headers,
            body: load.body.clone().unwrap_or_default().into_bytes(),
            protocol: match load.http2 {
                true => Protocol::Http2,
                false => Protocol::Http1,
            },
            streams: load.streams,
            keep_alive: load.keep_alive,
            status: load.status.unwrap_or(200),
            same_body: load.same_body,
            trust: match &load.ca {
                _ if load.insecure => Trust::Anything,
                Some(path) => Trust::Authorities(read(path)?),
                None => Trust::System,
            },
            resume: load.tls_resume,
            limit,
            family: None,
            all_addresses: false,
            what: match (&load.list, &load.log) {
                (Some(path), _) => What::List(Arc::from(read(path)?)),
                (_, Some(path)) => What::Log {
                    text: Arc::from(read(path)?),
                    speed: load.speed.unwrap_or(1.0),
                    seed,
                },
                _ if load.paths.is_empty() => What::Own,
                _ => What::Paths(load.paths.clone()),
            },
        })
    }
}

/// A load that is ready to run: loading its server is permitted, and the server answers.
#[derive(Clone, Debug)]
pub struct Ready {
    asked: ConsentRequest,
    target: Target,
}

impl Ready {
    /// Resolves the server and sends it one request.
    ///
    /// # Errors
    /// See [`AskedError`].
    pub fn find(
        load: &Http,
        asked: ConsentRequest,
        today: Date,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, AskedError> {
        if load.url.is_empty() {
            return Err(AskedError::Load {
                what: "http".to_owned(),
                why: "it names no server: give it a url, or a URL as target".to_owned(),
            });
        }
        let target = find(&load.url, &asked, today, stop)?;
        Ok(Self { asked, target })
    }

    /// Returns the server of the load.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the requirements for the requests of the load, such as method, status and HTTP version.
    pub(crate) fn consent_request(&self) -> &ConsentRequest {
        &self.asked
    }

    /// Probes the server again after its configuration has changed, and updates the expected answer.
    ///
    /// # Errors
    /// The server no longer answers.
    pub fn again(&self, stop: &dyn Fn() -> bool) -> Result<Self, AskedError> {
        Ok(Self {
            asked: self.asked.clone(),
            target: self.target.again(&self.asked, stop)?,
        })
    }

    /// Runs the load once.
    ///
    /// # Errors
    /// The load cannot run at all.
    pub fn carry_out(
        &self,
        load: &Http,
        manner: &Manner,
        round: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Step, LoadError> {
        let server = match self.target.here {
            true => ServerProcesses::listening(&self.target.addresses[0]),
            false => ServerProcesses::Unknown("it is on another machine".to_owned()),
        };
        let bench = Bench::new(&self.target, &server, None);
        let shape = Shape {
            target: 0,
            round,
            connections: load.connections,
            pace: self.target.pace().unwrap_or(load.pace()),
            share: load.share,
        };
        measure(
            &bench,
            manner,
            self.target.allowed(shape),
            stop,
            &mut |_, _| {},
        )
    }
}

impl Target {
    /// Returns the pace of the requests if they come from an access log; else `None`.
    #[must_use]
    pub fn pace(&self) -> Option<Pace> {
        let last = self.listed.last()?;
        let seconds = (last.due as f64 / 1e9).max(1e-3);
        Some(Pace::Replay {
            per_s: self.listed.len() as f64 / seconds,
        })
    }

    /// Reduces a step to the limits of the server's consent.
    #[must_use]
    pub fn allowed(&self, shape: Shape) -> Shape {
        match &self.consent {
            Some(consent) => consent.allowed(shape),
            None => shape,
        }
    }
}
