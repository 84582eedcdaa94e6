//! Loads of our own: requests, logins, files, commands. Each is a request to its instrument.

use crate::{EngineError, Meter, Place, Taken};
use assay_instruments::{LoadError, Measured, Timing, attributes, command, http, imap};
use assay_model::sample::Outcome;
use assay_model::{Load, Nanos};
use std::ffi::OsString;

/// Longest that one request, login or command may take.
const OPERATION_LIMIT: Nanos = Nanos(60_000_000_000);

impl Meter<'_> {
    pub(crate) fn operations(
        &self,
        load: &Load,
        place: &Place,
        washout: Nanos,
        runtime: Nanos,
    ) -> Result<Taken, EngineError> {
        let timing = Timing {
            washout,
            runtime,
            limit: OPERATION_LIMIT,
        };
        let (name, measured) = match load {
            Load::Fio { .. } => return Err(EngineError::Unfit("fio")),
            Load::Command { argv } => {
                let argv = argv.iter().map(|word| filled(word, place)).collect();
                let request = command::Request { argv, timing };
                ("command", command::run(&request, self.cancel))
            }
            Load::Attributes { files, size } => {
                let Place::File { dir: Some(dir), .. } = place else {
                    return Err(EngineError::Unfit("a file system of assay's own"));
                };
                let request = attributes::Request {
                    dir: dir.clone(),
                    files: *files,
                    size: *size,
                    timing,
                };
                ("attributes", attributes::run(&request, self.cancel))
            }
            Load::Http {
                url,
                connections,
                keep_alive,
            } => {
                let request = http::Request {
                    url: url.clone(),
                    connections: *connections,
                    keep_alive: *keep_alive,
                    timing,
                };
                ("http", http::run(&request, self.cancel))
            }
            Load::Imap {
                address,
                user,
                sessions,
                ..
            } => {
                let password = self.password.cloned();
                let request = imap::Request {
                    address: address.clone(),
                    user: user.clone(),
                    password: password.ok_or(EngineError::Unfit("a password"))?,
                    sessions: *sessions,
                    timing,
                };
                ("imap", imap::run(&request, self.cancel))
            }
        };
        Ok(taken(name, measured))
    }
}

fn taken(name: &str, measured: Result<Measured, LoadError>) -> Taken {
    let (outcome, measured) = match measured {
        Ok(measured) => (outcome(&measured), Some(measured)),
        Err(error) => {
            let error = error.to_string();
            (Outcome::Failed { error }, None)
        }
    };
    Taken {
        workload: name.to_owned(),
        outcome,
        wall: Some(measured.as_ref().map_or(Nanos(0), |measured| measured.wall)),
        cpu: measured.as_ref().map(|measured| measured.cpu),
        workers: measured
            .into_iter()
            .map(|measured| measured.worker)
            .collect(),
        tool: format!("assay-{name}"),
        series: Vec::new(),
    }
}

/// Operations that failed make the figure of those that did not one of other work.
fn outcome(measured: &Measured) -> Outcome {
    match (measured.cancelled, measured.errors.first()) {
        (true, _) => Outcome::Interrupted,
        (false, None) => Outcome::Completed,
        (false, Some(failures)) => Outcome::Failed {
            error: format!(
                "{} of {} failed: {}",
                failures.count,
                failures.count + measured.succeeded(),
                failures.first
            ),
        },
    }
}

/// `{host}`, `{port}` and `{path}` filled in.
fn filled(word: &str, place: &Place) -> OsString {
    match place {
        Place::Address { host, port } => word
            .replace("{host}", host)
            .replace("{port}", &port.to_string())
            .into(),
        Place::Named { path } if word == "{path}" => path.clone().into(),
        Place::Named { path } => word.replace("{path}", &path.to_string_lossy()).into(),
        Place::File { .. } | Place::Nbd { .. } | Place::Guest { .. } => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_place_and_nothing_is_a_shell() {
        let address = Place::Address {
            host: "::1".to_owned(),
            port: 22,
        };
        assert_eq!(filled("[{host}]:{port}", &address), "[::1]:22");
        let named = Place::Named {
            path: "/srv/$(reboot) {host}".into(),
        };
        assert_eq!(filled("--on={path}", &named), "--on=/srv/$(reboot) {host}");
        assert_eq!(filled("{host}", &named), "{host}");
    }

    #[test]
    fn a_path_that_is_no_text_reaches_the_command_as_it_is() {
        use std::os::unix::ffi::OsStringExt as _;
        let path = OsString::from_vec(b"/srv/\xff".to_vec());
        let named = Place::Named {
            path: path.clone().into(),
        };
        assert_eq!(filled("{path}", &named), path);
    }
}
