//! Connects to one host with limits: at most two connections at a time, a deadline for each answer and for the
//! whole host, and a size limit per connection.

use crate::address::Target;
use crate::error::ProbeError;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of simultaneous connections to one host.
const AT_ONCE: u32 = 2;

/// Time limits for the connections to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Time limit for a connection, and for each complete answer on it.
    pub answer: Duration,
    /// Time limit for all checks of the host.
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

/// Host from the user, and the address that is probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Where {
    /// Host and port that the user named.
    pub target: Target,
    /// IP address that was probed.
    pub address: SocketAddr,
    /// Other addresses of the name, which were not probed.
    pub others: Vec<SocketAddr>,
}

/// Connections to one address of a host.
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
    /// Connection that [`Self::begin`] opened; `None` after a check has used it.
    first: Mutex<Option<TcpStream>>,
}

impl Visit {
    /// Resolves the host and connects to its first address that accepts a connection. The first check uses this
    /// connection. `seed` generates the random values of ClientHello messages.
    ///
    /// # Errors
    /// The name has no address, or no address accepts a connection.
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

    /// Creates a visit to a known address without connecting. Also used for UDP.
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

    /// Returns the host and the address that is probed.
    #[must_use]
    pub fn place(&self) -> &Where {
        &self.place
    }

    /// Returns the number of connections that were opened until now.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Returns the deadline for an answer that starts now, and the time until this deadline.
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

    /// Returns 32 new random bytes. They need not be secret, because no key exchange is completed with them.
    pub(crate) fn random(&self) -> [u8; 32] {
        let count = self.randoms.fetch_add(1, Ordering::Relaxed);
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(count.to_be_bytes());
        hash.finalize().into()
    }

    /// Opens a new connection. First waits until fewer than two connections are open.
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
        // Send small packets at once: a probe waits for each answer.
        let _ = connection.stream.set_nodelay(true);
        Ok(connection)
    }
}

/// One of the two permits for a connection. Dropping the value releases the permit.
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

/// Default maximum number of bytes that are received on one connection.
const LIMIT: usize = 256 << 10;

/// Minimum time-out of a read or write, because zero would disable the time-out.
const MOMENT: Duration = Duration::from_millis(1);

/// A connection with a deadline for each answer.
#[derive(Debug)]
pub(crate) struct Connection<'v> {
    stream: TcpStream,
    until: Instant,
    time: Duration,
    received: usize,
    limit: usize,
    waiting_for: &'static str,
    buffer: Vec<u8>,
    /// Copies of the bytes sent and received; `None` while nothing is recorded.
    passed: Option<(Vec<u8>, Vec<u8>)>,
    _place: Place<'v>,
}

impl Connection<'_> {
    /// Sets the name of the next expected answer, a noun phrase for error messages.
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

    /// Sends all bytes before the deadline of the answer.
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

    /// Receives more bytes into the buffer. Returns `false` at the end of the stream.
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

    /// Reads and removes the next `count` bytes.
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

    /// Returns the next `count` bytes without removing them.
    pub(crate) fn peek(&mut self, count: usize) -> Result<Vec<u8>, ProbeError> {
        let bytes = self.take(count)?;
        self.buffer.splice(..0, bytes.iter().copied());
        Ok(bytes)
    }

    /// Reads the next line and removes its line ending. The line has at most `most` bytes.
    pub(crate) fn line(&mut self, most: usize) -> Result<Vec<u8>, ProbeError> {
        let mut line = self.up_to(b"\n", most)?;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(line)
    }

    /// Reads up to and including the byte string `end`, at most `most` bytes.
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

    /// Returns the buffered bytes. If there are none, returns the next bytes received; empty at the end of the stream.
    pub(crate) fn some(&mut self) -> Result<Vec<u8>, ProbeError> {
        if self.buffer.is_empty() {
            self.fill()?;
        }
        Ok(std::mem::take(&mut self.buffer))
    }

    /// Records all bytes that are sent and received from now on, for [`Self::passed`].
    pub(crate) fn record_what_passes(&mut self) {
        self.passed = Some((Vec::new(), Vec::new()));
    }

    /// Returns the bytes sent and received since [`Self::record_what_passes`], and stops recording.
    pub(crate) fn passed(&mut self) -> (Vec<u8>, Vec<u8>) {
        self.passed.take().unwrap_or_default()
    }

    /// Sets the maximum number of bytes that may be received on this connection.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }
}

/// Reads for rustls: returns the buffered bytes first, then receives from the connection.
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

/// Returns the current time for deadlines. The date for certificates is passed separately.
pub(crate) fn now() -> Instant {
    #[allow(
        clippy::disallowed_methods,
        reason = "a deadline needs a clock, and this is the only place"
    )]
    Instant::now()
}
