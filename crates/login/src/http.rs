//! Sends one HTTP request over its own connection, such as a request for a page behind a login.

use crate::watch::{PreparedWatch, WatchedServer};
use crate::{Login, LoginError, LoginPart, activity};
use assay_http::{ConnectionSlot, Manner, ProbeError, Request, Tls, Url};
use assay_model::Nanos;
use std::time::{Duration, Instant};

/// Sends a request and watches the server's processes. `status` is the expected status.
///
/// # Errors
/// The expected answer does not arrive in time.
pub fn login(
    url: &Url,
    tls: Option<&Tls>,
    request: &Request,
    status: u16,
    server: &WatchedServer,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Login, LoginError> {
    let watch = PreparedWatch::new(server).start(None, Instant::now());
    let mut ended = ask(url, tls, request, status, limit, stop);
    let seen = watch.finish();
    let login = match &mut ended {
        Ok(login) => Some(login),
        Err(LoginError::Refused { so_far, .. } | LoginError::TimedOut { so_far, .. }) => {
            Some(&mut **so_far)
        }
        Err(_) => None,
    };
    if let Some(login) = login {
        login.shares = activity::divide_among_parts(&seen, &login.phases);
    }
    ended
}

/// Sends the request.
fn ask(
    url: &Url,
    tls: Option<&Tls>,
    request: &Request,
    status: u16,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Login, LoginError> {
    let mut login = Login::default();
    let refused = |why: String, so_far: Login| LoginError::Refused {
        target: url.to_string(),
        said: vec![why.clone()],
        why,
        so_far: Box::new(so_far),
    };
    let begin = Instant::now();
    let addresses = url.resolve().map_err(|error| {
        refused(
            format!("no address for this host: {error}"),
            Login::default(),
        )
    })?;
    login.add(LoginPart::Name, begin.elapsed());
    let mut last = None;
    let mut before = Instant::now();
    for address in addresses {
        let tried = Instant::now();
        let mut exchange = ConnectionSlot::new(address, tls.cloned());
        let mut manner = Manner {
            // The time limit covers all addresses together.
            limit: limit.saturating_sub(begin.elapsed()),
            keep: 0,
            stop,
            came: &mut |_, _| {},
        };
        match exchange.ask(request, &mut manner) {
            Ok(exchanged) => {
                let mut add = |part, at: Option<Instant>| {
                    if let Some(at) = at {
                        login.add(part, at.saturating_duration_since(before));
                        before = at;
                    }
                };
                add(LoginPart::Tcp, exchanged.connected);
                add(LoginPart::Tls, exchanged.secured);
                add(LoginPart::Answer, Some(exchanged.ended));
                let came = exchanged.answer.status;
                return match came == status {
                    true => Ok(login),
                    false => Err(refused(
                        format!("status {came}, expected {status} (say --status)"),
                        login,
                    )),
                };
            }
            Err(ProbeError::Interrupted) => return Err(LoginError::Interrupted),
            Err(ProbeError::Slow { .. }) => {
                login.add(LoginPart::Answer, before.elapsed());
                return Err(LoginError::TimedOut {
                    target: url.to_string(),
                    limit: Nanos::from(limit),
                    waited: LoginPart::Answer,
                    so_far: Box::new(login),
                });
            }
            Err(error) => {
                // Trying the next address belongs to the same part.
                let tried = (address.to_string(), tried.elapsed().into());
                login.clues.unanswered.push(tried);
                login.remarks.push(error.to_string());
                last = Some(error.to_string());
            }
        }
    }
    Err(refused(
        last.unwrap_or_else(|| "the host has no address".to_owned()),
        login,
    ))
}
