//! HTTP/2, with several simultaneous requests per connection. Such a connection is called `link` in this module. Slots
//! for requests form groups, each of which has one connection. When a server closes a connection normally, the group
//! opens another connection, while requests on the old connection finish.

use super::failure::{
    REST, classify, has_crossed_end, has_ended_at_rest, has_received_all, is_reset, late,
};
use super::{SPOKEN, Worker};
use crate::connection::ConnectionPhase;
use crate::h2::{H2Session, StreamEvent};
use crate::stream::{Broken, ReadOutcome, Stream};
use assay_model::web::FailureKind;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::collections::VecDeque;
use std::io;

/// Maximum number of reads from one connection before the thread handles other connections.
const TURN: u32 = 64;

/// Events of a connection that epoll shall report.
const WATCHED: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

/// An HTTP/2 connection, which carries several requests.
struct Http2Connection {
    stream: Option<Stream>,
    session: H2Session,
    /// Phase of the connection: connecting, TLS handshake, or open.
    phase: ConnectionPhase,
    group: usize,
    /// Number of the stream. An event that carries another number belongs to an earlier, closed stream and is ignored.
    generation: u32,
    /// Time at which opening the connection began.
    dialled: u64,
    /// Time at which bytes last arrived.
    heard: u64,
    asked: u32,
    answers: u32,
    /// Time at which the last answer ended.
    answered: u64,
    hung_up: bool,
    /// Whether the connection accepts no more requests.
    retired: bool,
    /// Slots whose requests have not been sent yet.
    waiting: VecDeque<usize>,
}

/// All HTTP/2 connections of a generator thread.
pub struct Http2Connections {
    all: Vec<Http2Connection>,
    /// Indices of closed connections, which can be reused.
    closed: Vec<usize>,
    /// Index of the current connection of each group.
    of_group: Vec<Option<usize>>,
    /// Connection whose output is sent after all of its events are handled.
    driven: Option<usize>,
    events: Vec<StreamEvent>,
}

/// Reason why a connection is given up.
enum Break {
    Broken(Broken),
    Ended,
    Fault(FailureKind, String),
}

impl From<Broken> for Break {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<io::Error> for Break {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.into())
    }
}

impl Http2Connections {
    pub fn new(groups: usize) -> Self {
        Self {
            all: Vec::new(),
            closed: Vec::new(),
            of_group: vec![None; groups],
            driven: None,
            events: Vec::new(),
        }
    }

    /// Closes all connections with a reset, as [`Stream::cut`] does.
    pub fn cut(&mut self) {
        for stream in self.all.iter_mut().filter_map(|link| link.stream.take()) {
            stream.cut();
        }
    }

    fn close(&mut self, at: usize) {
        let link = &mut self.all[at];
        link.generation = link.generation.wrapping_add(1);
        if let Some(stream) = link.stream.take() {
            if !link.hung_up {
                stream.cut();
            }
            self.closed.push(at);
        }
        if self.of_group[link.group] == Some(at) {
            self.of_group[link.group] = None;
        }
    }
}

impl Worker<'_> {
    /// Sends the request of slot `at` on the HTTP/2 connection of its group. Opens a connection if the group has none.
    pub(super) fn ask(&mut self, at: usize) {
        let group = at / self.load.streams as usize;
        self.close_ended(group, self.connections[at].begun);
        let which = match self.links.of_group[group] {
            Some(which) => which,
            None => match self.dial(group) {
                Ok(which) => which,
                Err(error) => {
                    let (kind, why) = classify(&error, ConnectionPhase::Connecting, false);
                    return self.failed(at, kind, || why);
                }
            },
        };
        self.connections[at].link = which;
        let link = &mut self.links.all[which];
        // A waiting request is not overtaken.
        if link.phase == ConnectionPhase::Reading
            && link.session.has_room()
            && link.waiting.is_empty()
        {
            return self.give(which, at);
        }
        self.connections[at].phase = match link.phase {
            ConnectionPhase::Reading => ConnectionPhase::Sending,
            _ => ConnectionPhase::Connecting,
        };
        link.waiting.push_back(at);
        if link.phase == ConnectionPhase::Reading {
            // The server's stream limit is reached.
            self.tally.waited(self.connections[at].intended);
        }
    }

    /// Closes the link of a group if the server has closed it while it was idle, and the event of this close was not
    /// handled yet.
    fn close_ended(&mut self, group: usize, now: u64) {
        let Some(which) = self.links.of_group[group] else {
            return;
        };
        let link = &self.links.all[which];
        let rests = link.phase == ConnectionPhase::Reading
            && link.answers > 0
            && link.session.is_idle()
            && self.links.driven != Some(which);
        let ended = |stream| has_ended_at_rest(stream, link.answered, now);
        if rests && link.stream.as_ref().is_some_and(ended) {
            self.links.close(which);
        }
    }

    fn give(&mut self, which: usize, at: usize) {
        let connection = &mut self.connections[at];
        let link = &mut self.links.all[which];
        let request = &self.load.requests[connection.which];
        connection.phase = ConnectionPhase::Reading;
        link.session.ask(at as u32, request);
        link.asked += 1;
        let enough = self.load.requests_per_connection;
        if enough.is_some_and(|most| link.asked >= most) || !link.session.takes_more() {
            self.retire(which);
        }
        if self.links.driven != Some(which) {
            self.turn_ended(which);
        }
    }

    /// Sends the requests that wait for connection `which`, as far as the server permits more streams.
    fn give_waiting(&mut self, which: usize) {
        loop {
            let link = &mut self.links.all[which];
            if link.retired || link.phase != ConnectionPhase::Reading || !link.session.has_room() {
                return;
            }
            let Some(at) = link.waiting.pop_front() else {
                return;
            };
            self.give(which, at);
        }
    }

    /// Stops using a connection for new requests. Requests that wait for it are sent on another connection.
    fn retire(&mut self, which: usize) {
        let link = &mut self.links.all[which];
        link.retired = true;
        if self.links.of_group[link.group] == Some(which) {
            self.links.of_group[link.group] = None;
        }
        for at in std::mem::take(&mut link.waiting) {
            self.ask(at);
        }
    }

    fn dial(&mut self, group: usize) -> Result<usize, Broken> {
        let address = self.load.addresses[self.address % self.load.addresses.len()];
        self.address += 1;
        let which = self.links.closed.pop().unwrap_or(self.links.all.len());
        let generation = self.links.all.get(which).map_or(0, |link| link.generation);
        let data = EventData::new_u64((which as u64) << 32 | u64::from(generation));
        let opened = Stream::begin(&address, self.load.tls.as_ref()).and_then(|stream| {
            epoll::add(&self.epoll, &stream.tcp, data, WATCHED).map_err(io::Error::from)?;
            Ok(stream)
        });
        let stream = match opened {
            Ok(stream) => stream,
            Err(error) => {
                if which < self.links.all.len() {
                    self.links.closed.push(which);
                }
                return Err(error);
            }
        };
        let link = Http2Connection {
            stream: Some(stream),
            session: H2Session::new(false),
            phase: ConnectionPhase::Connecting,
            group,
            generation,
            dialled: self.now,
            heard: self.now,
            asked: 0,
            answers: 0,
            answered: 0,
            hung_up: false,
            retired: false,
            waiting: VecDeque::new(),
        };
        match self.links.all.get_mut(which) {
            Some(old) => *old = link,
            None => self.links.all.push(link),
        }
        self.links.of_group[group] = Some(which);
        Ok(which)
    }

    /// Handles an event of a connection: reads and writes until the connection would block.
    pub(super) fn drive_link(&mut self, which: usize, generation: u32, flags: EventFlags) {
        let Some(link) = self.links.all.get_mut(which) else {
            return;
        };
        if link.generation != generation || link.stream.is_none() {
            return;
        }
        link.hung_up |= flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        self.links.driven = Some(which);
        let gone = self.go_on(which, flags);
        self.links.driven = None;
        match gone {
            Ok(()) => self.turn_ended(which),
            Err(why) => self.break_link(which, why),
        }
    }

    fn go_on(&mut self, which: usize, flags: EventFlags) -> Result<(), Break> {
        let link = &mut self.links.all[which];
        let Some(stream) = &mut link.stream else {
            return Ok(());
        };
        if link.phase == ConnectionPhase::Connecting {
            if let Some(error) = stream.tcp.take_error()? {
                return Err(error.into());
            }
            link.phase = ConnectionPhase::Shaking;
        }
        if link.phase == ConnectionPhase::Shaking {
            if !stream.shake_hands().map_err(Broken::offering_http2)? {
                return Ok(());
            }
            stream.agreed_on_http2()?;
            let took = self.now.saturating_sub(link.dialled);
            self.tally.connected(self.now, took, stream.resumed());
            link.phase = ConnectionPhase::Reading;
            self.give_waiting(which);
            // Data that arrived with the end of the handshake causes no event of its own.
            return self.hear(which);
        }
        match flags.intersects(SPOKEN) {
            true => self.hear(which),
            false => Ok(()),
        }
    }

    fn hear(&mut self, which: usize) -> Result<(), Break> {
        for _ in 0..TURN {
            let link = &mut self.links.all[which];
            let Some(stream) = &mut link.stream else {
                return Ok(());
            };
            let (n, drained) = match stream.read(&mut self.buffer, 0)? {
                ReadOutcome::Bytes(n, drained) => (n, drained),
                ReadOutcome::Skipped(..) | ReadOutcome::Nothing => return Ok(()),
                ReadOutcome::End => return Err(Break::Ended),
            };
            self.tally.received += n as u64;
            link.heard = self.now;
            let mut events = std::mem::take(&mut self.links.events);
            let fed = link.session.feed(&self.buffer[..n], &mut events);
            if link.session.gone().is_some() && !link.retired {
                self.retire(which);
            }
            for event in events.drain(..) {
                self.settle(which, event);
            }
            self.links.events = events;
            fed.map_err(|fault| Break::Fault(fault.kind, fault.why))?;
            self.give_waiting(which);
            if drained && !self.links.all[which].hung_up {
                return Ok(());
            }
        }
        // If a server sends faster than the thread reads, this requests another event.
        let link = &self.links.all[which];
        if let Some(stream) = &link.stream {
            let data = EventData::new_u64((which as u64) << 32 | u64::from(link.generation));
            epoll::modify(&self.epoll, &stream.tcp, data, WATCHED).map_err(io::Error::from)?;
        }
        Ok(())
    }

    fn settle(&mut self, which: usize, event: StreamEvent) {
        match event {
            StreamEvent::Answer { place, answer } => {
                self.links.all[which].answers += 1;
                self.links.all[which].answered = self.now;
                self.judge(place as usize, &answer);
                self.ended(place as usize, self.now);
            }
            StreamEvent::Failed { place, kind, why } => self.failed(place as usize, kind, || why),
            StreamEvent::Left { place } => {
                self.again(place as usize, FailureKind::GoneAway, || {
                    "GOAWAY: left out twice".to_owned()
                })
            }
        }
    }

    /// Sends a request again that the server has not processed, but only once. The latency still counts from the first
    /// due time.
    fn again(&mut self, at: usize, kind: FailureKind, why: impl FnOnce() -> String) {
        if std::mem::replace(&mut self.connections[at].again, true) {
            return self.failed(at, kind, why);
        }
        self.tally.reopened += 1;
        self.ask(at);
    }

    fn failed(&mut self, at: usize, kind: FailureKind, why: impl FnOnce() -> String) {
        let intended = self.connections[at].intended;
        self.tally.fail(kind, intended, self.now, why);
        self.ended(at, self.now + REST);
    }

    /// Sends the output of the connection, and closes the connection if it is finished.
    fn turn_ended(&mut self, which: usize) {
        if let Err(error) = self.say(which) {
            return self.break_link(which, error.into());
        }
        let link = &self.links.all[which];
        if link.retired && link.session.is_idle() && link.waiting.is_empty() {
            self.links.close(which);
        }
    }

    fn say(&mut self, which: usize) -> Result<(), Broken> {
        let link = &mut self.links.all[which];
        let Some(stream) = link
            .stream
            .as_mut()
            .filter(|_| link.phase == ConnectionPhase::Reading)
        else {
            return Ok(());
        };
        while stream.flush()? && !link.session.output().is_empty() {
            match stream.write(link.session.output())? {
                0 => break,
                n => link.session.sent(n),
            }
        }
        Ok(())
    }

    /// Handles a broken connection. Its requests fail; requests that may safely be repeated are sent again.
    fn break_link(&mut self, which: usize, why: Break) {
        let received = has_received_all(self.links.all[which].stream.as_ref());
        // Try to inform the server.
        let _ = self.say(which);
        self.links.close(which);
        let link = &mut self.links.all[which];
        let waiting = std::mem::take(&mut link.waiting);
        let (phase, answers, answered) = (link.phase, link.answers, link.answered);
        let gone = link.session.gone().map(str::to_owned);
        let under_way: Vec<(u32, bool)> = link.session.places().collect();
        let say = |started: bool| match &why {
            Break::Fault(kind, why) => (*kind, why.clone()),
            Break::Broken(error) => classify(error, phase, started),
            Break::Ended => match (started, &gone) {
                (true, _) => (
                    FailureKind::ShortBody,
                    "the connection was closed in the middle of the answer".to_owned(),
                ),
                (false, Some(gone)) => (FailureKind::GoneAway, gone.clone()),
                (false, None) => (
                    FailureKind::EarlyClose,
                    "the connection was closed without an answer".to_owned(),
                ),
            },
        };
        let by_rest = !matches!(why, Break::Fault(..));
        let is_reset = matches!(&why, Break::Broken(error) if is_reset(error));
        for (place, started) in under_way {
            let at = place as usize;
            let (kind, why) = say(started);
            let repeatable = self.load.requests[self.connections[at].which].repeatable;
            // As in HTTP/1.1: a request that crosses the close of an idle connection is sent again.
            let begun = self.connections[at].begun;
            let crossed = answers > 0 && has_crossed_end(received, is_reset, answered, begun);
            match by_rest && crossed && !started && repeatable && gone.is_none() {
                true => self.again(at, kind, || why),
                false => self.failed(at, kind, || why),
            }
        }
        for at in waiting {
            let (kind, why) = say(false);
            match phase {
                ConnectionPhase::Reading => self.again(at, kind, || why),
                _ => self.failed(at, kind, || why),
            }
        }
    }

    /// Ends a request that exceeds its time limit. The connection stays open, unless the server has sent nothing for
    /// too long.
    pub(super) fn expire_stream(&mut self, at: usize) {
        let which = self.connections[at].link;
        let limit = self.load.limit;
        let link = &mut self.links.all[which];
        let (status, shut) = link.session.state(at as u32);
        let waits = link.waiting.iter().position(|one| *one == at);
        let (kind, why) = match (link.phase, waits) {
            (ConnectionPhase::Connecting | ConnectionPhase::Shaking, _) => {
                (FailureKind::ConnectTimeout, late(None, limit))
            }
            (_, Some(_)) => (
                FailureKind::TimedOut,
                format!(
                    "the server takes no more streams at once, and none was free within {limit:?}"
                ),
            ),
            _ if shut => (
                FailureKind::FlowControl,
                format!("the server opened no window for the body within {limit:?}"),
            ),
            _ => (FailureKind::TimedOut, late(status, limit)),
        };
        match waits {
            Some(waits) => {
                link.waiting.remove(waits);
            }
            None => link.session.cancel(at as u32),
        }
        let silent = link.heard < self.connections[at].begun;
        if link.phase != ConnectionPhase::Reading {
            if link.waiting.is_empty() {
                self.links.close(which);
            }
        } else {
            if silent && !link.retired {
                self.retire(which);
            }
            self.turn_ended(which);
        }
        self.failed(at, kind, || why);
    }
}
