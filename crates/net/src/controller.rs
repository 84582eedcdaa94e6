//! Starts a run, follows its progress and collects the records.

use crate::client::{LinkError, ServerLink};
use crate::plan::NetPlan;
use crate::record::PersonRecord;
use crate::result::{Run, Taken};
use crate::wire::{Clients, Started, Status};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for each answer of the server.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Interval at which the controller requests the status of the run.
const LOOK: Duration = Duration::from_millis(500);
/// Time for which the server may be unreachable during a run.
const SERVER_AWAY_AT_MOST: Duration = Duration::from_secs(60);

/// Events of a run, for display.
#[derive(Clone, Debug)]
pub enum ControllerEvent<'a> {
    /// The run waits for clients: number of clients that have joined, and number that the plan needs.
    Waiting(usize, usize),
    /// All clients have joined; time until the start.
    Begins(Duration),
    /// Status of the run, reported at regular intervals.
    Goes(&'a Status),
}

/// What the controller needs to start a run and to follow it.
pub struct Begin<'a> {
    /// Plan that is run on the server's clients.
    pub plan: &'a NetPlan,
    /// Maximum time to wait for clients to join.
    pub wait: Duration,
    /// Function that returns the wall clock time, which is only displayed.
    pub now: &'a dyn Fn() -> jiff::Timestamp,
    /// Function that returns true if the run must end early. The data measured until then is kept.
    pub stop: &'a dyn Fn() -> bool,
}

/// Lists the connected clients.
///
/// # Errors
/// See [`LinkError`].
pub fn clients(link: &ServerLink) -> Result<Clients, LinkError> {
    link.get(&mut link.exchange(), "/clients", ANSWER_WITHIN, &|| false)
}

/// Waits for the clients, starts the run, follows its progress and collects the records. Returns `None` if the user
/// stopped before the start.
pub fn carry_out(
    link: &ServerLink,
    begin: &Begin<'_>,
    tell: &mut dyn FnMut(ControllerEvent<'_>),
) -> Result<Option<Run>, LinkError> {
    let mut exchange = link.exchange();
    let since = Instant::now();
    let needed = begin.plan.people.len();
    // Only clients that polled recently take part.
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
