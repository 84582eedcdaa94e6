//! Runs a client: joins a server, polls it for orders and carries them out.
//!
//! A client never uses its wall clock, so a device with a wrong date starts together with the others. During a
//! run the client samples its Wi-Fi connection, if it has one.

mod bulk;
mod carry;
mod fetches;
mod link;
mod packets;
mod radio;
mod sleep;
mod stream;
mod task;
mod timer;

pub use link::{LinkError, ServerLink};

use crate::air::Air;
use crate::congestion;
use crate::wire::{ClientOrder, Done, Join, Joined, Poll, Polled, VERSION, Verdict};
use assay_host::LiveHost;
use assay_model::clock::{self, ClockExchange, Offset};
use radio::Radio;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two polls while no run is in progress.
const IDLE: Duration = Duration::from_millis(250);
/// Interval between two polls during a run.
const BUSY: Duration = Duration::from_millis(500);
/// Time limit for the answer to a poll.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Number of exchanges after joining, which estimate the offset to the server's clock.
const EXCHANGES: usize = 24;
/// Maximum number of exchanges that are kept for the estimate of the clock offset.
const REMEMBERED: usize = 64;
/// Time for which a client waits for the verdict on its last run.
const VERDICT_WITHIN: Duration = Duration::from_secs(12);
/// Time for which the client retries if the server is unreachable.
const SERVER_AWAY_AT_MOST: Duration = Duration::from_secs(60);

/// Events of a client, for display.
#[derive(Clone, Debug)]
pub enum ClientEvent<'a> {
    /// The client has joined under this name, which the server assigned.
    Joined(&'a str),
    /// A run is about to start.
    Begins(&'a ClientOrder),
    /// The run is over and the record is delivered.
    Delivered(&'a ClientOrder),
    /// The verdict on this person's run.
    Verdict(&'a Verdict),
    /// The server does not answer; the client retries.
    Lost(&'a LinkError),
}

/// A client that has joined a server.
struct Client<'a> {
    link: &'a ServerLink,
    control: assay_http::ConnectionSlot,
    joined: Joined,
    origin: Instant,
    exchanges: VecDeque<ClockExchange>,
    sleeps: sleep::Sleeps,
    /// Start and end of each poll during a run. These round trips show queues.
    trips: Vec<(Instant, Instant)>,
    stop: &'a (dyn Fn() -> bool + Sync),
}

/// Takes part in runs until `stop` returns true. With `runs`, ends after this number of runs.
///
/// # Errors
/// The server refuses, or does not answer for a minute.
pub fn run(
    link: &ServerLink,
    name: &str,
    agent: &str,
    runs: Option<u32>,
    stop: &(dyn Fn() -> bool + Sync),
    tell: &mut dyn FnMut(ClientEvent<'_>),
) -> Result<(), LinkError> {
    let mut lost: Option<Instant> = None;
    let mut left = runs;
    loop {
        let ended = Client::join(link, name, agent, stop).and_then(|mut client| {
            lost = None;
            tell(ClientEvent::Joined(&client.joined.name));
            client.serve(&mut left, tell)
        });
        match ended {
            Ok(()) => return Ok(()),
            Err(_) if stop() => return Ok(()),
            Err(error) => patiently(error, &mut lost, stop, tell)?,
        }
    }
}

/// Waits one second after a temporary error. Fails if errors continue for a minute.
fn patiently(
    error: LinkError,
    lost: &mut Option<Instant>,
    stop: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(ClientEvent<'_>),
) -> Result<(), LinkError> {
    let since = *lost.get_or_insert_with(Instant::now);
    if !error.may_pass() || since.elapsed() > SERVER_AWAY_AT_MOST {
        return Err(error);
    }
    tell(ClientEvent::Lost(&error));
    timer::sleep_until(Instant::now() + Duration::from_secs(1), stop);
    Ok(())
}

impl<'a> Client<'a> {
    fn join(
        link: &'a ServerLink,
        name: &str,
        agent: &str,
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Self, LinkError> {
        let mut control = link.exchange();
        let join = Join {
            version: VERSION,
            name: name.to_owned(),
            agent: agent.to_owned(),
        };
        let joined = link.post(&mut control, "/join", &join, ANSWER_WITHIN, stop)?;
        let mut client = Self {
            link,
            control,
            joined,
            origin: Instant::now(),
            exchanges: VecDeque::new(),
            sleeps: sleep::Sleeps::default(),
            trips: Vec::new(),
            stop,
        };
        for _ in 0..EXCHANGES {
            client.ask(None, None)?;
        }
        Ok(client)
    }

    fn micros(&self, at: Instant) -> i64 {
        i64::try_from(at.saturating_duration_since(self.origin).as_micros()).unwrap_or(i64::MAX)
    }

    /// Polls for an order, or for the verdict of a run. If no run is in progress, the exchange also compares the
    /// clocks.
    fn ask(
        &mut self,
        live: Option<crate::wire::Live>,
        verdict_of: Option<u64>,
    ) -> Result<Polled, LinkError> {
        let busy = live.is_some();
        // The monotonic clock stops while the machine sleeps, so earlier clock comparisons are wrong.
        if !busy && self.slept().is_some() {
            self.exchanges.clear();
        }
        let poll = Poll {
            client: self.joined.client,
            key: self.joined.key.clone(),
            live,
            verdict_of,
        };
        let (polled, times): (Polled, _) =
            self.link
                .post_timed(&mut self.control, "/poll", &poll, ANSWER_WITHIN, self.stop)?;
        // A new connection takes three round trips.
        if busy && times.connected.is_none() {
            self.trips.push((times.began, times.ended));
        }
        if !busy && times.connected.is_none() {
            self.exchanges.push_back(ClockExchange {
                sent: self.micros(times.began),
                there: polled.now_us,
                received: self.micros(times.ended),
            });
            if self.exchanges.len() > REMEMBERED {
                self.exchanges.pop_front();
            }
        }
        Ok(polled)
    }

    /// If the machine slept between the last two checks, returns the times of both checks.
    fn slept(&mut self) -> Option<(i64, i64)> {
        let now = self.micros(Instant::now());
        self.sleeps.look(sleep::slept(), now)
    }

    fn offset(&mut self) -> Option<Offset> {
        clock::best_offset(self.exchanges.make_contiguous())
    }

    fn serve(
        &mut self,
        left: &mut Option<u32>,
        tell: &mut dyn FnMut(ClientEvent<'_>),
    ) -> Result<(), LinkError> {
        let mut last = 0;
        let mut lost = None;
        let mut verdict: Option<(u64, Instant)> = None;
        loop {
            let waits = verdict.is_some_and(|(_, since)| since.elapsed() < VERDICT_WITHIN);
            if (self.stop)() || (*left == Some(0) && !waits) {
                return Ok(());
            }
            // A device keeps its identity when it roams. It joins again only if the server has forgotten it.
            let polled = match self.ask(None, verdict.map(|(run, _)| run)) {
                Ok(polled) => polled,
                Err(error @ LinkError::Net(_)) => {
                    patiently(error, &mut lost, self.stop, tell)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            lost = None;
            if let Some(came) = polled.verdict {
                verdict = None;
                tell(ClientEvent::Verdict(&came));
            }
            let next = polled.order.filter(|_| *left != Some(0));
            if let Some(order) = next.filter(|order| order.run != last) {
                last = order.run;
                tell(ClientEvent::Begins(&order));
                self.part(&order)?;
                tell(ClientEvent::Delivered(&order));
                verdict = Some((order.run, Instant::now()));
                *left = left.map(|left| left.saturating_sub(1));
            }
            timer::sleep_until(Instant::now() + IDLE, self.stop);
        }
    }

    /// Takes part in the run of an order, and delivers the record.
    fn part(&mut self, order: &ClientOrder) -> Result<(), LinkError> {
        let offset = self.offset().unwrap_or(Offset {
            offset_us: 0,
            error_us: i64::MAX,
        });
        let local = order.start_us.saturating_sub(offset.offset_us);
        let local = u64::try_from(local).unwrap_or(0);
        let begin = self.origin + Duration::from_micros(local.min(1 << 50));
        let idle = self.idle();
        self.trips.clear();
        let (joined, link) = (self.joined.clone(), self.link);
        let carrying = carry::Carrying::new(order, begin, &joined, link);
        let stop = self.stop;
        let mut asleep: Vec<(i64, i64)> = Vec::new();
        let over = AtomicBool::new(false);
        let (mut record, air) = thread::scope(|scope| {
            let handle = scope.spawn(|| carrying.carry_out(stop));
            // In its own thread, because a driver may block `iw`.
            let radio = scope.spawn(|| {
                let radio = Radio::find(&LiveHost, link.address().ip())?;
                Some(radio.watch(begin, &|| over.load(Ordering::SeqCst)))
            });
            while !handle.is_finished() {
                timer::sleep_until(Instant::now() + BUSY, &|| handle.is_finished());
                asleep.extend(self.slept());
                // If the server does not answer now, poll again later; the run continues.
                if let Ok(polled) = self.ask(Some(carrying.live()), None)
                    && polled.abort
                {
                    carrying.abort();
                }
            }
            over.store(true, Ordering::SeqCst);
            match (handle.join(), radio.join()) {
                (Ok(record), Ok(air)) => (record, air),
                (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
            }
        });
        record.air = air.map(|mut air: Air| {
            air.samples.retain(|sample| sample.at <= record.ran_us);
            air
        });
        record.trips = (self.trips.iter())
            .filter(|(began, _)| *began >= begin)
            .map(|(began, ended)| (timer::micros(begin, *began), timer::micros(*began, *ended)))
            .filter(|(at, _)| *at < record.ran_us)
            .collect();
        record.congestion.client = self.sends_with(order);
        let since = |at: i64| u64::try_from(at - self.micros(begin)).unwrap_or(0);
        record.void = asleep
            .iter()
            .map(|(from, to)| (since(*from), since(*to)))
            .collect();
        record.start.error_us = offset.error_us;
        record.start.idle_us = idle.first().copied().unwrap_or(0);
        record.start.idle_median_us = idle.get(idle.len() / 2).copied().unwrap_or(0);
        record.start.exchanges = idle.len() as u32;
        record.start.drift_us = self.drift(offset);
        let done = Done {
            client: self.joined.client,
            key: self.joined.key.clone(),
            run: order.run,
            record,
        };
        self.deliver(&done)
    }

    /// Sets the congestion control algorithm of the plan for sending to the server. Returns the algorithm that the
    /// kernel then uses, if it is known.
    fn sends_with(&self, order: &ClientOrder) -> Option<String> {
        let control = self.control.connection()?;
        match &order.congestion {
            Some(wanted) => congestion::set(control, wanted),
            None => congestion::of_connection(control),
        }
    }

    /// Returns the round trips of the stored exchanges in microseconds, sorted ascending.
    fn idle(&self) -> Vec<u64> {
        let times = self.exchanges.iter().filter_map(ClockExchange::round_trip);
        let mut times: Vec<u64> = times.filter_map(|us| u64::try_from(us).ok()).collect();
        times.sort_unstable();
        times
    }

    /// Returns by how much the offset to the server's clock has changed since `before`, in microseconds.
    fn drift(&mut self, before: Offset) -> Option<i64> {
        self.exchanges.clear();
        for _ in 0..8 {
            self.ask(None, None).ok()?;
        }
        Some(self.offset()?.offset_us - before.offset_us)
    }

    /// Delivers the record. Retries for a minute, because no other copy of the record exists.
    fn deliver(&mut self, done: &Done) -> Result<(), LinkError> {
        let since = Instant::now();
        loop {
            let (link, limit) = (&self.link, SERVER_AWAY_AT_MOST);
            match link.deliver(&mut self.control, done, limit, self.stop) {
                Ok(()) => return Ok(()),
                Err(error) if !error.may_pass() || since.elapsed() > SERVER_AWAY_AT_MOST => {
                    return Err(error);
                }
                Err(_) if (self.stop)() => return Ok(()),
                Err(_) => timer::sleep_until(Instant::now() + Duration::from_secs(1), self.stop),
            }
        }
    }
}
