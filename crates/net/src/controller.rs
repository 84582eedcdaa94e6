//! Who begins a run, watches it and collects what was seen.

use crate::client::{LinkError, ServerLink};
use crate::plan::NetPlan;
use crate::record::PersonRecord;
use crate::result::{Run, Taken};
use crate::wire::{Clients, Started, Status};
use std::thread;
use std::time::{Duration, Instant};

/// An answer that takes longer is given up.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// The server may be out of reach during a run for this long.
const SERVER_AWAY_AT_MOST: Duration = Duration::from_secs(60);

/// What happens.
#[derive(Clone, Debug)]
pub enum ControllerEvent<'a> {
    /// So many clients are there, and so many are needed.
    Waiting(usize, usize),
    /// It will begin in so long.
    Begins(Duration),
    /// How it goes.
    Goes(&'a Status),
}

/// How a run is begun.
pub struct Begin<'a> {
    /// What.
    pub plan: &'a NetPlan,
    /// Clients may still join for so long.
    pub wait: Duration,
    /// Reads the wall clock: for what people are told.
    pub now: &'a dyn Fn() -> jiff::Timestamp,
    /// Whether to end early; what was measured is kept.
    pub stop: &'a dyn Fn() -> bool,
}

/// Who is there.
///
/// # Errors
/// See [`LinkError`].
pub fn clients(link: &ServerLink) -> Result<Clients, LinkError> {
    link.get(&mut link.exchange(), "/clients", ANSWER_WITHIN, &|| false)
}

/// Waits for the clients, begins, watches and collects. None: it was stopped before it began.
///
/// # Errors
/// The server refuses, or is out of reach for a minute.
pub fn carry_out(
    link: &ServerLink,
    begin: &Begin<'_>,
    tell: &mut dyn FnMut(ControllerEvent<'_>),
) -> Result<Option<Run>, LinkError> {
    let mut exchange = link.exchange();
    let since = Instant::now();
    let needed = begin.plan.people.len();
    // Only clients that were just heard of are given a part.
    loop {
        let there: Clients = link.get(&mut exchange, "/clients", ANSWER_WITHIN, &|| false)?;
        let fresh = there
            .clients
            .iter()
            .filter(|client| client.silent_ms < 3000);
        let count = fresh.count();
        tell(ControllerEvent::Waiting(count, needed));
        if (begin.stop)() {
            return Ok(None);
        }
        let people = begin.plan.people.iter();
        let named = people
            .filter_map(|person| person.client.as_ref())
            .all(|wanted| there.clients.iter().any(|client| client.name == *wanted));
        if (count >= needed && named) || since.elapsed() >= begin.wait {
            break;
        }
        thread::sleep(LOOK);
    }
    let started: Started =
        link.post(&mut exchange, "/run", begin.plan, ANSWER_WITHIN, &|| false)?;
    let lead = Duration::from_millis(started.begins_in_ms);
    let began = (begin.now)() + lead;
    tell(ControllerEvent::Begins(lead));
    let status = watch(link, &mut exchange, &started, begin, tell)?;
    collect(link, &mut exchange, &started, &status, begin.plan, began).map(Some)
}

fn watch(
    link: &ServerLink,
    exchange: &mut assay_http::ConnectionSlot,
    started: &Started,
    begin: &Begin<'_>,
    tell: &mut dyn FnMut(ControllerEvent<'_>),
) -> Result<Status, LinkError> {
    let path = format!("/run/{}", started.run);
    let mut asked_to_end = false;
    let mut heard = Instant::now();
    loop {
        thread::sleep(LOOK);
        if (begin.stop)() && !asked_to_end {
            let empty = serde_json::json!({});
            let ended: Result<serde_json::Value, LinkError> = link.post(
                exchange,
                &format!("{path}/abort"),
                &empty,
                ANSWER_WITHIN,
                &|| false,
            );
            asked_to_end = ended.is_ok();
        }
        let status: Result<Status, LinkError> = link.get(exchange, &path, ANSWER_WITHIN, &|| false);
        match status {
            Ok(status) => {
                heard = Instant::now();
                tell(ControllerEvent::Goes(&status));
                if status.over {
                    return Ok(status);
                }
            }
            Err(LinkError::Net(_)) if heard.elapsed() < SERVER_AWAY_AT_MOST => {}
            Err(error) => return Err(error),
        }
    }
}

fn collect(
    link: &ServerLink,
    exchange: &mut assay_http::ConnectionSlot,
    started: &Started,
    status: &Status,
    plan: &NetPlan,
    began: jiff::Timestamp,
) -> Result<Run, LinkError> {
    let mut people = Vec::new();
    for (at, seen) in status.people.iter().enumerate() {
        let path = format!("/run/{}/person/{at}", started.run);
        let record: Option<PersonRecord> = match seen.delivered {
            true => Some(link.get(exchange, &path, ANSWER_WITHIN, &|| false)?),
            false => None,
        };
        let missing = match () {
            () if record.is_some() => None,
            () if !seen.told => Some("its client did not ask for its part before the start"),
            () if seen.vanished => Some("its client is gone"),
            () => Some("its client did not deliver in time"),
        };
        people.push(Taken {
            person: seen.person.clone(),
            client: seen.client.clone(),
            record,
            missing: missing.map(str::to_owned),
        });
    }
    Ok(Run {
        plan: plan.clone(),
        began,
        aborted: status.aborted,
        congestion: started.congestion.clone(),
        people,
    })
}
