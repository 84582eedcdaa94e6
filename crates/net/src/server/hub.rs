//! State of the server: its clients, its current run and their records. Performs no I/O. All times are parameters, in
//! microseconds since the server started.

mod assign;
mod verdicts;

pub use verdicts::VerdictWriter;

use crate::air::Air;
use crate::congestion;
use crate::plan::NetPlan;
use crate::record::{MOST_EVENTS, PersonRecord, RoleRecord, SLOT_US, Segments};
use crate::role::{Direction, Role, Workload};
use crate::wire::{
    ClientOrder, ClientSeen, Clients, Done, Join, Joined, KEY, Live, PersonSeen, Poll, Polled,
    Started, Status, VERSION, Verdict,
};
use data_encoding::HEXLOWER;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Maximum number of clients.
pub const MOST_CLIENTS: usize = 1000;
/// Time without a poll, in microseconds, after which a client is not assigned to a new run.
const SILENT: i64 = 5_000_000;
/// Time without a poll, in microseconds, after which a client counts as gone during a run. On a full link a poll may
/// take seconds.
const GONE: i64 = 30_000_000;
/// Time without a poll, in microseconds, after which a client counts as gone after the end of a run, when the link is
/// free again.
const GONE_AFTER: i64 = 10_000_000;
/// Time without a poll, in microseconds, after which a client is removed.
const FORGOTTEN: i64 = 120_000_000;
/// Time between the order and the start of a run, in microseconds. Every client polls several times in this time.
const LEAD: i64 = 3_000_000;
/// Time after the end of a run in which records may still arrive, in microseconds.
const COLLECT: i64 = 60_000_000;

/// Reasons why the server refuses a request, with the HTTP status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The request is invalid (400).
    Bad(String),
    /// The object does not exist (404).
    Unknown(&'static str),
    /// The request is not possible now (409).
    Busy(String),
    /// The server is full (503).
    Full(&'static str),
}

struct Client {
    name: String,
    /// Name that the device requested. If another client already had this name, `name` is this name with a number at
    /// its end.
    asked: String,
    agent: String,
    address: IpAddr,
    key: [u8; KEY],
    heard: i64,
    /// Uploaded bytes in each time slot of the run, per role.
    uploads: BTreeMap<String, Vec<u64>>,
    /// TCP segments that the server sent to the client in the run, per role.
    segments: BTreeMap<String, Segments>,
    /// Congestion control of the connections from the server to the client.
    congestion: Option<String>,
}

struct Part {
    person: String,
    client: u64,
    client_name: String,
    roles: Vec<Role>,
    told: bool,
    live: Option<Live>,
    record: Option<PersonRecord>,
}

struct Run {
    number: u64,
    start: i64,
    seconds: u32,
    aborted: Option<i64>,
    parts: Vec<Part>,
    /// Congestion control algorithm that the plan requests.
    congestion: Option<String>,
    /// Verdicts of all people, after the run.
    verdicts: Option<Vec<Verdict>>,
}

impl Run {
    /// Returns the time at which the measurement ends.
    fn end(&self) -> i64 {
        let planned = self.start + i64::from(self.seconds) * 1_000_000;
        self.aborted.map_or(planned, |aborted| aborted.min(planned))
    }
}

/// The complete state of the server.
#[derive(Default)]
pub struct Hub {
    clients: BTreeMap<u64, Client>,
    next: u64,
    runs: u64,
    /// The current or last run. A new run replaces it.
    run: Option<Run>,
    /// Name of the client that each person had in the last run, by the name of the person.
    before: BTreeMap<String, String>,
    /// Formats the verdicts for the devices.
    writer: VerdictWriter,
}

impl Hub {
    /// Sets the function that formats the verdicts for the devices.
    pub fn write_with(&mut self, writer: VerdictWriter) {
        self.writer = writer;
    }

    /// Adds a client. `key` is a random secret with which the client authenticates later requests.
    pub fn join(
        &mut self,
        join: &Join,
        address: IpAddr,
        key: [u8; KEY],
        now: i64,
    ) -> Result<Joined, Refused> {
        if join.version != VERSION {
            return Err(Refused::Bad(format!(
                "this server speaks version {VERSION} and the client version {}: use the same assay on both",
                join.version
            )));
        }
        let plain = |text: &str| {
            !text.is_empty() && text.len() <= 60 && !text.chars().any(char::is_control)
        };
        if !plain(&join.name) || !plain(&join.agent) {
            return Err(Refused::Bad(
                "a client has a name of 1 to 60 bytes without control characters".to_owned(),
            ));
        }
        // A device keeps its place during a run. A device that returns after a run gets its former name.
        let busy: Vec<u64> = match self.is_over(now) {
            true => Vec::new(),
            false => self.parts().map(|part| part.client).collect(),
        };
        self.clients
            .retain(|number, client| now - client.heard < FORGOTTEN || busy.contains(number));
        if self.clients.len() >= MOST_CLIENTS {
            return Err(Refused::Full("there are too many clients"));
        }
        // A device that returns after a crash or sleep is the same client.
        let stale = self.clients.iter().find(|(number, client)| {
            client.name == join.name && now - client.heard > SILENT && !busy.contains(number)
        });
        if let Some(number) = stale.map(|(number, _)| *number) {
            self.clients.remove(&number);
        }
        let taken = |name: &str| self.clients.values().any(|client| client.name == name);
        let mut name = join.name.clone();
        let mut count = 1;
        while taken(&name) {
            count += 1;
            name = format!("{}-{count}", join.name);
        }
        self.next += 1;
        self.clients.insert(
            self.next,
            Client {
                name: name.clone(),
                asked: join.name.clone(),
                agent: join.agent.clone(),
                address,
                key,
                heard: now,
                uploads: BTreeMap::new(),
                segments: BTreeMap::new(),
                congestion: None,
            },
        );
        Ok(Joined {
            client: self.next,
            key: HEXLOWER.encode(&key),
            name,
            ports: Vec::new(),
        })
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.run.iter().flat_map(|run| &run.parts)
    }

    fn known(&mut self, number: u64, key: &str, now: i64) -> Result<&mut Client, Refused> {
        let found = self.clients.get_mut(&number);
        let client = found
            .filter(|client| HEXLOWER.encode(&client.key) == key)
            .ok_or(Refused::Unknown(
                "this client is not known (any more): it has to join again",
            ))?;
        client.heard = client.heard.max(now);
        Ok(client)
    }

    /// Answers a client's poll.
    pub fn poll(&mut self, poll: Poll, now: i64) -> Result<Polled, Refused> {
        self.known(poll.client, &poll.key, now)?;
        let mut polled = Polled {
            now_us: now,
            order: None,
            abort: false,
            verdict: self.verdict(&poll, now),
        };
        let Some(run) = &mut self.run else {
            return Ok(polled);
        };
        let end = run.end();
        let part = run.parts.iter_mut().find(|part| part.client == poll.client);
        if let Some(part) = part.filter(|part| part.record.is_none()) {
            part.live = poll.live.map(Live::bounded).or(part.live.take());
            polled.abort = run.aborted.is_some();
            // A client that joins after the start does not take part.
            if !polled.abort && now < end && (part.told || now < run.start) {
                part.told = true;
                polled.order = Some(ClientOrder {
                    run: run.number,
                    start_us: run.start,
                    seconds: run.seconds,
                    person: part.person.clone(),
                    roles: part.roles.clone(),
                    congestion: run.congestion.clone(),
                });
            }
        }
        Ok(polled)
    }

    /// Returns the verdict that the client requested, if the run is over.
    fn verdict(&mut self, poll: &Poll, now: i64) -> Option<Verdict> {
        let number = poll.verdict_of?;
        if !self.is_over(now) {
            return None;
        }
        let run = self.run.as_mut().filter(|run| run.number == number)?;
        let at = run
            .parts
            .iter()
            .position(|part| part.client == poll.client && part.record.is_some())?;
        if run.verdicts.is_none() {
            run.verdicts = Some(verdicts::judge(run, &self.writer, now));
        }
        run.verdicts.as_ref()?.get(at).cloned()
    }

    /// Stores a client's record of the current run.
    pub fn done(&mut self, done: Done, now: i64) -> Result<(), Refused> {
        let client = self.known(done.client, &done.key, now)?;
        let (mut uploads, name) = (std::mem::take(&mut client.uploads), client.name.clone());
        let (mut segments, congestion) = (
            std::mem::take(&mut client.segments),
            client.congestion.clone(),
        );
        let run = self.run.as_mut().filter(|run| run.number == done.run);
        let run = run.ok_or(Refused::Unknown("this run is over and forgotten"))?;
        let part = run.parts.iter_mut().find(|part| part.client == done.client);
        let part = part.ok_or(Refused::Unknown("this client has no part in the run"))?;
        if part.record.is_some() {
            return Err(Refused::Busy("the record is there already".to_owned()));
        }
        let mut record = done.record;
        check(&record).map_err(|why| Refused::Bad(why.to_owned()))?;
        if let Some(air) = &mut record.air {
            air.mask();
        }
        // The server's own names and counts replace those of the client.
        record.person.clone_from(&part.person);
        record.client = name;
        record.congestion.server = congestion;
        for role in &part.roles {
            let up = matches!(
                role.workload,
                Workload::Bulk {
                    direction: Direction::Up,
                    ..
                }
            );
            if !up {
                if let Some(seen) = record.roles.iter_mut().find(|seen| seen.role == role.name) {
                    seen.segments = segments.remove(&role.name);
                }
                continue;
            }
            let counted = uploads.remove(&role.name).unwrap_or_default();
            let last = (record.ran_us / SLOT_US) as usize;
            let slots: Vec<u64> = counted.into_iter().take(last + 1).collect();
            match record.roles.iter_mut().find(|seen| seen.role == role.name) {
                Some(seen) => seen.slots = slots,
                None => record.roles.push(RoleRecord {
                    role: role.name.clone(),
                    slots,
                    ..RoleRecord::default()
                }),
            }
        }
        part.record = Some(record);
        Ok(())
    }

    /// Counts uploaded bytes for a client's role, in the time slot of `now`.
    pub fn uploaded(&mut self, client: u64, role: &str, bytes: u64, now: i64) {
        let Some(run) = &self.run else { return };
        let Ok(since) = u64::try_from(now - run.start) else {
            return;
        };
        let slot = (since / SLOT_US) as usize;
        let part = run.parts.iter().find(|part| part.client == client);
        let known = part.is_some_and(|part| part.roles.iter().any(|own| own.name == role));
        let within = slot < (run.seconds as usize + 60) * 10;
        if let Some(client) = self.clients.get_mut(&client).filter(|_| known && within) {
            let slots = client.uploads.entry(role.to_owned()).or_default();
            if slots.len() <= slot {
                slots.resize(slot + 1, 0);
            }
            slots[slot] = slots[slot].saturating_add(bytes);
        }
    }

    /// Counts TCP segments sent to a client for a role.
    pub fn sent(&mut self, client: u64, role: &str, sent: Segments, now: i64) {
        let Some(run) = self.run.as_ref().filter(|run| now >= run.start) else {
            return;
        };
        let part = run.parts.iter().find(|part| part.client == client);
        let known = part.is_some_and(|part| part.roles.iter().any(|own| own.name == role));
        if let Some(client) = self.clients.get_mut(&client).filter(|_| known) {
            let all = client.segments.entry(role.to_owned()).or_default();
            all.sent = all.sent.saturating_add(sent.sent);
            all.again = all.again.saturating_add(sent.again);
        }
    }

    /// Records the congestion control algorithm of a connection to a client.
    pub fn sends_with(&mut self, client: u64, algorithm: Option<String>) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.congestion = algorithm.or(client.congestion.take());
        }
    }

    /// Returns the congestion control algorithm that the current run requests, if the client takes part in the run.
    #[must_use]
    pub fn wanted_congestion(&self, client: u64, now: i64) -> Option<String> {
        let run = self.run.as_ref().filter(|run| now < run.end() + COLLECT)?;
        let has_part = run.parts.iter().any(|part| part.client == client);
        run.congestion.clone().filter(|_| has_part)
    }

    /// Returns the address of the client whose packets start with `key`.
    #[must_use]
    pub fn by_key(&self, key: &[u8]) -> Option<IpAddr> {
        let mut all = self.clients.values();
        all.find(|client| client.key == key)
            .map(|client| client.address)
    }

    /// Returns whether `number` and `key` belong to a known client.
    pub fn is_client(&self, number: u64, key: &str) -> bool {
        let client = self.clients.get(&number);
        client.is_some_and(|client| HEXLOWER.encode(&client.key) == key)
    }

    /// Lists the clients that have joined, for a controller.
    #[must_use]
    pub fn clients(&self, now: i64) -> Clients {
        let seen = self.clients.values().map(|client| ClientSeen {
            name: client.name.clone(),
            agent: client.agent.clone(),
            address: client.address.to_string(),
            silent_ms: u64::try_from((now - client.heard) / 1000).unwrap_or(0),
        });
        Clients {
            clients: seen.filter(|seen| seen.silent_ms < 60_000).collect(),
        }
    }

    /// Starts a run that a controller requested.
    pub fn begin(&mut self, plan: &NetPlan, now: i64) -> Result<Started, Refused> {
        plan.check().map_err(Refused::Bad)?;
        if self.run.is_some() && !self.is_over(now) {
            return Err(Refused::Busy(
                "a run is under way: wait for its end, or abort it where it was begun".to_owned(),
            ));
        }
        if plan.congestion.len() > 1 {
            return Err(Refused::Bad(
                "a run has one algorithm of congestion control".to_owned(),
            ));
        }
        assign::replace_returned(&mut self.clients, now);
        let free: Vec<(u64, &Client)> = self
            .clients
            .iter()
            .filter(|(_, client)| now - client.heard <= SILENT)
            .map(|(number, client)| (*number, client))
            .collect();
        let given = assign::assign(plan, free, &self.before)?;
        let mut parts = Vec::new();
        for (person, given) in plan.people.iter().zip(given) {
            let client_name = self.clients.get(&given).map(|client| client.name.clone());
            parts.push(Part {
                person: person.name.clone(),
                client: given,
                client_name: client_name.unwrap_or_default(),
                roles: plan.roles_of(person).map_err(Refused::Bad)?,
                told: false,
                live: None,
                record: None,
            });
        }
        for client in self.clients.values_mut() {
            client.uploads.clear();
            client.segments.clear();
        }
        let names = parts
            .iter()
            .map(|part: &Part| (part.person.clone(), part.client_name.clone()));
        self.before.extend(names);
        while self.before.len() > MOST_CLIENTS {
            self.before.pop_first();
        }
        self.runs += 1;
        self.run = Some(Run {
            number: self.runs,
            start: now + LEAD,
            seconds: plan.seconds,
            aborted: None,
            parts,
            congestion: plan.congestion.first().cloned(),
            verdicts: None,
        });
        Ok(Started {
            run: self.runs,
            begins_in_ms: (LEAD / 1000) as u64,
            congestion: Vec::new(),
        })
    }

    fn of(&self, number: u64) -> Result<&Run, Refused> {
        let run = self.run.as_ref().filter(|run| run.number == number);
        run.ok_or(Refused::Unknown("there is no such run (any more)"))
    }

    fn vanished(&self, run: &Run, part: &Part, now: i64) -> bool {
        let heard = self.clients.get(&part.client).map(|client| client.heard);
        let most = match now > run.end() + GONE_AFTER / 2 {
            true => GONE_AFTER,
            false => GONE,
        };
        part.record.is_none() && heard.is_none_or(|heard| now - heard > most)
    }

    fn is_over(&self, now: i64) -> bool {
        let Some(run) = &self.run else { return true };
        let end = run.end();
        let missed = |part: &Part| !part.told && now > run.start;
        let settled =
            |part: &Part| part.record.is_some() || missed(part) || self.vanished(run, part, now);
        let aborted = |part: &Part| run.aborted.is_some() && !part.told;
        now > end + COLLECT || run.parts.iter().all(|part| settled(part) || aborted(part))
    }

    /// Returns the status of a run.
    pub fn status(&self, number: u64, now: i64) -> Result<Status, Refused> {
        let run = self.of(number)?;
        Ok(Status {
            since_us: now - run.start,
            aborted: run.aborted.is_some(),
            over: self.is_over(now),
            people: (run.parts.iter())
                .map(|part| PersonSeen {
                    person: part.person.clone(),
                    client: part.client_name.clone(),
                    told: part.told,
                    delivered: part.record.is_some(),
                    vanished: self.vanished(run, part, now),
                    live: part.live.clone(),
                })
                .collect(),
        })
    }

    /// Aborts a run. Clients receive the abort with their next poll.
    pub fn abort(&mut self, number: u64, now: i64) -> Result<(), Refused> {
        self.of(number)?;
        if let Some(run) = &mut self.run {
            run.aborted.get_or_insert(now);
        }
        Ok(())
    }

    /// Returns the record of one person from a run.
    pub fn record(&self, number: u64, person: usize) -> Result<&PersonRecord, Refused> {
        let part = self.of(number)?.parts.get(person);
        let record = part.and_then(|part| part.record.as_ref());
        record.ok_or(Refused::Unknown("there is no record of this person"))
    }
}

impl Live {
    /// Limits all values to the maximum that a client can report.
    fn bounded(mut self) -> Self {
        self.roles.truncate(8);
        self.roles.retain(|role| role.role.len() <= 40);
        self
    }
}

/// Checks that the sizes of a client's record are within the limits.
fn check(record: &PersonRecord) -> Result<(), &'static str> {
    let texts = record.remarks.iter().map(String::len).sum::<usize>() + record.agent.len();
    let roles = record.roles.iter().all(|seen| {
        seen.role.len() <= 40
            && seen.events.len() <= MOST_EVENTS
            && seen.slots.len() <= MOST_EVENTS
            && seen.probes.len() <= MOST_EVENTS
            && seen.failures.len() <= 21
            && seen.failures.keys().all(|why| why.len() <= 500)
    });
    let ends = [&record.congestion.server, &record.congestion.client];
    let algorithms = ends
        .into_iter()
        .flatten()
        .all(|name| congestion::is_name(name));
    let trips = record.trips.len() <= 10_000;
    let air = record.air.as_ref().is_none_or(Air::is_bounded);
    match roles
        && air
        && algorithms
        && trips
        && record.roles.len() <= 8
        && texts <= 4000
        && record.void.len() <= 10_000
    {
        true => Ok(()),
        false => Err("the record is larger than any client's can be"),
    }
}

#[cfg(test)]
mod tests;
