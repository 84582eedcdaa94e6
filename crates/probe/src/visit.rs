//! A visit to one host: at most two connections at once, a deadline for each and for all, a limit for
//! what a server may send.

use crate::address::Target;
use crate::error::ProbeError;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections to one host at the same time.
const AT_ONCE: u32 = 2;

/// How patient a visit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a connection to come about, and for an answer on it as a whole.
    pub answer: Duration,
    /// For everything about this host.
    pub total: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(5),
            total: Duration::from_secs(60),
        }
    }
}

/// Where a visit went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Where {
    /// What the user named.
    pub target: Target,
    /// The address that was asked.
    pub address: SocketAddr,
    /// Other addresses of that name, which were not asked.
    pub others: Vec<SocketAddr>,
}

/// A visit to one address of a host.
#[derive(Debug)]
pub struct Visit {
    place: Where,
    patience: Patience,
    deadline: Instant,
    seed: [u8; 32],
    opened: AtomicU32,
    randoms: AtomicU32,
    open_now: Mutex<u32>,
    closed: Condvar,
    /// The connection by which the address was found to answer, until it is used.
    first: Mutex<Option<TcpStream>>,
}

impl Visit {
    /// Looks the host up and takes the first of its addresses that accepts a connection, which is the
    /// first to be used. `seed` makes what is random in hellos.
    ///
    /// # Errors
    /// The name has no address, or none accepts a connection.
    pub fn begin(target: &Target, patience: Patience, seed: [u8; 32]) -> Result<Self, ProbeError> {
        let deadline = now() + patience.total;
        let addresses = target.resolve(patience.answer)?;
        let mut failed = None;
        for address in &addresses {
            let left = deadline.saturating_duration_since(now());
            match TcpStream::connect_timeout(address, patience.answer.min(left).max(MOMENT)) {
                Ok(stream) => {
                    let visit = Self::at(target, *address, patience, seed);
                    let others = addresses.iter().filter(|other| *other != address);
                    visit.opened.store(1, Ordering::Relaxed);
                    return Ok(Self {
                        place: Where {
                            others: others.copied().collect(),
                            ..visit.place
                        },
                        deadline,
                        first: Mutex::new(Some(stream)),
                        ..visit
                    });
                }
                Err(source) => {
                    failed.get_or_insert(ProbeError::Connect {
                        address: *address,
                        source,
                    });
                }
            }
        }
        Err(failed.unwrap_or(ProbeError::Deadline {
            after: patience.total,
        }))
    }

    /// A visit to an address that is known; nothing is connected yet. For UDP, too.
    #[must_use]
    pub fn at(target: &Target, address: SocketAddr, patience: Patience, seed: [u8; 32]) -> Self {
        Self {
            place: Where {
                target: target.clone(),
                address,
                others: Vec::new(),
            },
            patience,
            deadline: now() + patience.total,
            seed,
            opened: AtomicU32::new(0),
            randoms: AtomicU32::new(0),
            open_now: Mutex::new(0),
            closed: Condvar::new(),
            first: Mutex::new(None),
        }
    }

    /// Where it goes.
    #[must_use]
    pub fn place(&self) -> &Where {
        &self.place
    }

    /// Connections so far.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.opened.load(Ordering::Relaxed)
    }

    /// When an answer that is begun now has to be there, and how long that is.
    pub(crate) fn until(&self) -> Result<(Instant, Duration), ProbeError> {
        let now = now();
        let left = self.deadline.saturating_duration_since(now);
        if left.is_zero() {
            return Err(ProbeError::Deadline {
                after: self.patience.total,
            });
        }
        let time = left.min(self.patience.answer);
        Ok((now + time, time))
    }

    /// 32 bytes that no server has seen. They protect nothing: no key is ever agreed on with them.
    pub(crate) fn random(&self) -> [u8; 32] {
        let count = self.randoms.fetch_add(1, Ordering::Relaxed);
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(count.to_be_bytes());
        hash.finalize().into()
    }

    /// A new connection, as soon as fewer than two are open.
    pub(crate) fn open(&self) -> Result<Connection<'_>, ProbeError> {
        let place = Place::take(self)?;
        let (until, time) = self.until()?;
        let address = self.place.address;
        let first = self
            .first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let stream = match first {
            Some(stream) => stream,
            None => {
                self.opened.fetch_add(1, Ordering::Relaxed);
                TcpStream::connect_timeout(&address, time)
                    .map_err(|source| ProbeError::Connect { address, source })?
            }
        };
        let connection = Connection {
            stream,
            until,
            time,
            received: 0,
            limit: LIMIT,
            waiting_for: "an answer",
            buffer: Vec::new(),
            passed: None,
            _place: place,
        };
        // Small packets are sent as they are: a scan waits for each answer.
        let _ = connection.stream.set_nodelay(true);
        Ok(connection)
    }
}

/// One of the places of a visit, given back when it is dropped.
#[derive(Debug)]
struct Place<'v>(&'v Visit);

impl<'v> Place<'v> {
    fn take(visit: &'v Visit) -> Result<Self, ProbeError> {
        let mut open = visit
            .open_now
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while *open >= AT_ONCE {
            let (_, time) = visit.until()?;
            (open, _) = visit
                .closed
                .wait_timeout(open, time)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *open += 1;
        Ok(Self(visit))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut open = self
            .0
            .open_now
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *open -= 1;
        self.0.closed.notify_one();
    }
}

/// What a server may send on one connection, in bytes.
const LIMIT: usize = 256 << 10;

/// A time-out of zero would mean none.
const MOMENT: Duration = Duration::from_millis(1);

/// A connection with a deadline for all that comes on it.
#[derive(Debug)]
pub(crate) struct Connection<'v> {
    stream: TcpStream,
    until: Instant,
    time: Duration,
    received: usize,
    limit: usize,
    waiting_for: &'static str,
    buffer: Vec<u8>,
    /// Copies of what was sent and received, while they are wanted.
    passed: Option<(Vec<u8>, Vec<u8>)>,
    _place: Place<'v>,
}

impl Connection<'_> {
    /// Says what comes next, for errors.
    pub(crate) fn expect(&mut self, waiting_for: &'static str) {
        self.waiting_for = waiting_for;
    }

    fn left(&self) -> Result<Duration, ProbeError> {
        let left = self.until.saturating_duration_since(now());
        match left < MOMENT {
            true => Err(ProbeError::Time {
                waiting_for: self.waiting_for,
                after: self.time,
            }),
            false => Ok(left),
        }
    }

    fn failed(&self, source: io::Error) -> ProbeError {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, WouldBlock};
        let waiting_for = self.waiting_for;
        match source.kind() {
            WouldBlock | TimedOut => ProbeError::Time {
                waiting_for,
                after: self.time,
            },
            BrokenPipe | ConnectionReset | ConnectionAborted => ProbeError::Closed { waiting_for },
            _ => ProbeError::Io {
                waiting_for,
                source,
            },
        }
    }

    /// Sends all of it.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<(), ProbeError> {
        while !bytes.is_empty() {
            let left = self.left()?;
            let sent = self
                .stream
                .set_write_timeout(Some(left))
                .and_then(|()| self.stream.write(bytes));
            match sent {
                Ok(sent) => {
                    if let Some((ours, _)) = &mut self.passed {
                        ours.extend_from_slice(&bytes[..sent]);
                    }
                    bytes = &bytes[sent..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    /// Takes what comes next into the buffer; `false` at the end.
    fn fill(&mut self) -> Result<bool, ProbeError> {
        let mut chunk = [0; 8192];
        let count = self.receive(&mut chunk)?;
        self.buffer.extend_from_slice(&chunk[..count]);
        Ok(count > 0)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, ProbeError> {
        if self.received >= self.limit {
            return Err(ProbeError::TooMuch {
                waiting_for: self.waiting_for,
                limit: self.limit,
            });
        }
        let most = into.len().min(self.limit - self.received);
        loop {
            let left = self.left()?;
            let read = self
                .stream
                .set_read_timeout(Some(left))
                .and_then(|()| self.stream.read(&mut into[..most]));
            match read {
                Ok(count) => {
                    self.received += count;
                    if let Some((_, theirs)) = &mut self.passed {
                        theirs.extend_from_slice(&into[..count]);
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// The next so many bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<Vec<u8>, ProbeError> {
        while self.buffer.len() < count {
            if !self.fill()? {
                return Err(ProbeError::Closed {
                    waiting_for: self.waiting_for,
                });
            }
        }
        let rest = self.buffer.split_off(count);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// The next so many bytes, which stay to be taken.
    pub(crate) fn peek(&mut self, count: usize) -> Result<Vec<u8>, ProbeError> {
        let bytes = self.take(count)?;
        self.buffer.splice(..0, bytes.iter().copied());
        Ok(bytes)
    }

    /// The next line without its end, of at most `most` bytes.
    pub(crate) fn line(&mut self, most: usize) -> Result<Vec<u8>, ProbeError> {
        let mut line = self.up_to(b"\n", most)?;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(line)
    }

    /// What comes up to and with `end`, at most `most` bytes.
    pub(crate) fn up_to(&mut self, end: &[u8], most: usize) -> Result<Vec<u8>, ProbeError> {
        let mut seen = 0;
        loop {
            let at = self.buffer[seen..]
                .windows(end.len())
                .position(|part| part == end);
            if let Some(at) = at {
                return self.take(seen + at + end.len());
            }
            if self.buffer.len() > most {
                return Err(ProbeError::TooMuch {
                    waiting_for: self.waiting_for,
                    limit: most,
                });
            }
            seen = self.buffer.len().saturating_sub(end.len() - 1);
            if !self.fill()? {
                return Err(ProbeError::Closed {
                    waiting_for: self.waiting_for,
                });
            }
        }
    }

    /// What is there or comes next; nothing at the end.
    pub(crate) fn some(&mut self) -> Result<Vec<u8>, ProbeError> {
        if self.buffer.is_empty() {
            self.fill()?;
        }
        Ok(std::mem::take(&mut self.buffer))
    }

    /// Keeps a copy of all bytes from now on, for [`Self::passed`].
    pub(crate) fn record_what_passes(&mut self) {
        self.passed = Some((Vec::new(), Vec::new()));
    }

    /// The bytes that were sent and received since [`Self::record_what_passes`]; no more are kept.
    pub(crate) fn passed(&mut self) -> (Vec<u8>, Vec<u8>) {
        self.passed.take().unwrap_or_default()
    }

    /// How much may come as a whole, in bytes.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }
}

/// For rustls: what is in the buffer first, then the connection.
impl Read for Connection<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.buffer.is_empty() {
            return self.receive(into).map_err(io::Error::other);
        }
        let count = into.len().min(self.buffer.len());
        let rest = self.buffer.split_off(count);
        into[..count].copy_from_slice(&self.buffer);
        self.buffer = rest;
        Ok(count)
    }
}

impl Write for Connection<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The clock of deadlines. The date, by which certificates are judged, is passed in.
pub(crate) fn now() -> Instant {
    #[allow(
        clippy::disallowed_methods,
        reason = "a deadline needs a clock, and this is the only place"
    )]
    Instant::now()
}
