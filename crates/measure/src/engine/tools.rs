//! Finds the tools of the loads before the first slot: fio and passwords. Checks that web servers respond and permit
//! the load.

use crate::engine::loads::OPERATION_LIMIT;
use crate::engine::{EngineError, Environment};
use assay_host::{Host, HostError};
use assay_loads::command_helper::CommandHelper;
use assay_loads::fio::Fio;
use assay_loads::imap::Secret;
use assay_model::Load;
use assay_model::load::Http;
use assay_web::{ConsentRequest, Ready};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Tools that the loads of a plan need.
#[derive(Default)]
pub struct Tools {
    /// fio; `None` if no load needs fio.
    pub fio: Option<Fio>,
    /// Passwords, by the path of the password file. Samples and reports never contain a password.
    passwords: BTreeMap<String, Secret>,
    /// Web servers that were checked, each with its load without secrets.
    servers: Vec<(Http, Ready)>,
    /// Whether the expected response is read again before each slot. This is necessary if the configuration of the
    /// server changes between slots.
    changing: bool,
    /// Process that runs the commands of loads; `None` if this process runs them.
    command_helper: Option<CommandHelper>,
}

impl Tools {
    /// Creates tools that consist only of fio.
    #[must_use]
    pub fn fio(fio: Fio) -> Self {
        Self {
            fio: Some(fio),
            ..Self::default()
        }
    }

    /// Finds the tools of these loads.
    ///
    /// # Errors
    /// fio is missing, a password cannot be read, or a web server does not respond or must not be
    /// loaded.
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
                Load::Command { .. } => {
                    found.command_helper = env.command_helper.map(CommandHelper::new);
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

    /// Marks the servers as changing. Their configuration, and therefore their response, may differ from slot to slot.
    #[must_use]
    pub fn changing(mut self) -> Self {
        self.changing = true;
        self
    }

    /// Returns the checked server of a load.
    pub(crate) fn server(&self, kept: &Http) -> Option<&Ready> {
        let found = self
            .servers
            .iter()
            .find(|(known, _)| is_same_load(known, kept));
        found.map(|(_, ready)| ready)
    }

    /// Returns whether the expected response may differ between slots.
    pub(crate) fn is_changing(&self) -> bool {
        self.changing
    }

    /// Returns remarks on the web servers, for the report.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let each = self.servers.iter().flat_map(|(load, ready)| {
            let remarks = ready.target().remarks.iter();
            remarks.map(|remark| format!("{}: {remark}", load.url))
        });
        each.collect()
    }

    /// Returns the process that runs the commands of loads; `None` if this process runs them.
    pub(crate) fn command_helper(&self) -> Option<&CommandHelper> {
        self.command_helper.as_ref()
    }

    /// Returns the password that was read from `file`.
    pub(crate) fn password(&self, file: &str) -> Option<&Secret> {
        self.passwords.get(file)
    }
}

/// Returns whether two loads send the same requests to the same server. Their rates and numbers of connections may
/// differ.
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

/// Reads the password from the first line of the user's file.
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
