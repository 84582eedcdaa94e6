//! What loads need besides their place: fio, passwords, and web servers that may be loaded and answer. It
//! is found before anything begins.

use crate::engine::loads::OPERATION_LIMIT;
use crate::engine::{EngineError, Environment};
use assay_host::{Host, HostError};
use assay_loads::fio::Fio;
use assay_loads::imap::Secret;
use assay_model::Load;
use assay_model::load::Http;
use assay_web::{ConsentRequest, Ready};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What the loads of a plan need.
#[derive(Default)]
pub struct Tools {
    /// For loads of fio.
    pub fio: Option<Fio>,
    /// By the file that holds them; they reach no sample and no report.
    passwords: BTreeMap<String, Secret>,
    /// By what is kept of the load.
    servers: Vec<(Http, Ready)>,
    /// What is a good answer is looked up before each slot: a server whose configuration changes in
    /// between may give another.
    changing: bool,
}

impl Tools {
    /// fio alone.
    #[must_use]
    pub fn fio(fio: Fio) -> Self {
        Self {
            fio: Some(fio),
            ..Self::default()
        }
    }

    /// Finds what these loads need.
    ///
    /// # Errors
    /// fio is missing, a password cannot be read, or a web server does not answer or may not be loaded.
    pub fn find<'a>(
        env: &Environment<'_>,
        seed: u64,
        loads: impl IntoIterator<Item = &'a Load>,
    ) -> Result<Self, EngineError> {
        let mut found = Self::default();
        for load in loads {
            match load {
                Load::Fio { .. } if found.fio.is_none() => {
                    found.fio = Some(Fio::find(env.host, env.fio)?);
                }
                Load::Imap { password_file, .. } => {
                    let secret = read_password(env.host, password_file)?;
                    found.passwords.insert(password_file.clone(), secret);
                }
                Load::Http(http) if found.server(&http.kept()).is_none() => {
                    found
                        .servers
                        .push((http.kept(), prepare_server(env, seed, http)?));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// The same for a server whose configuration changes between slots.
    #[must_use]
    pub fn changing(mut self) -> Self {
        self.changing = true;
        self
    }

    /// The server of a load.
    pub(crate) fn server(&self, kept: &Http) -> Option<&Ready> {
        let found = self
            .servers
            .iter()
            .find(|(known, _)| is_same_load(known, kept));
        found.map(|(_, ready)| ready)
    }

    /// Whether a good answer may be another in each slot.
    pub(crate) fn is_changing(&self) -> bool {
        self.changing
    }

    /// What a reader must know of the servers.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let each = self.servers.iter().flat_map(|(load, ready)| {
            let remarks = ready.target().remarks.iter();
            remarks.map(|remark| format!("{}: {remark}", load.url))
        });
        each.collect()
    }

    /// The password of a file that was read.
    pub(crate) fn password(&self, file: &str) -> Option<&Secret> {
        self.passwords.get(file)
    }
}

/// Whether two loads ask the same of the same server, however fast and over however many connections.
fn is_same_load(a: &Http, b: &Http) -> bool {
    let asked = |load: &Http| Http {
        connections: 1,
        rate: None,
        poisson: false,
        share: None,
        threads: None,
        shuffle: false,
        requests_per_connection: None,
        ..load.clone()
    };
    asked(a) == asked(b)
}

fn prepare_server(env: &Environment<'_>, seed: u64, load: &Http) -> Result<Ready, EngineError> {
    let file = |path: &str| {
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        env.host.read(&path).map_err(|error| error.reason())
    };
    let asked = ConsentRequest::of(load, Duration::from(OPERATION_LIMIT), seed, &file)?;
    let today = (env.now)().to_zoned(jiff::tz::TimeZone::UTC).date();
    let stop = || env.cancel.is_cancelled();
    Ok(Ready::find(load, asked, today, &stop)?)
}

/// The first line of the user's file.
fn read_password(host: &dyn Host, file: &str) -> Result<Secret, EngineError> {
    let named = Path::new(file);
    let bytes = std::path::absolute(named)
        .map_err(|error| HostError::io(named, &error))
        .and_then(|path| host.read(&path))
        .map_err(|error| EngineError::Password(error.named(named)))?;
    let line = bytes.split(|byte| *byte == b'\n').next();
    match line.unwrap_or_default() {
        [] => Err(EngineError::NoPassword(file.to_owned())),
        line => Ok(Secret::new(line)),
    }
}
