//! Sends requests one after another over one connection, and waits for each answer. Intended for callers that need the
//! answers and their times, and not for loads.

use crate::answer::{HttpResponse, Memory, Reader};
use crate::probe::ProbeError;
use crate::request::Request;
use crate::stream::{BUFFER, Broken, ReadOutcome, Stream};
use crate::tls::Tls;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// Interval at which `stop` is checked.
const SLICE: Duration = Duration::from_millis(50);
/// Maximum bytes of heads before the body. They are kept so that they can be parsed.
const HEADS: usize = 80 << 10;
/// Maximum number of bytes per read.
const AT_ONCE: usize = 256 << 10;

/// A connection that is opened when it is needed, and opened again after the server has closed it.
pub struct ConnectionSlot {
    address: SocketAddr,
    tls: Option<Tls>,
    stream: Option<Stream>,
    memory: Memory,
    buffer: Vec<u8>,
    congestion: Option<String>,
}

/// An answer, with the times of the exchange.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// Status, length and hash of the answer.
    pub answer: HttpResponse,
    /// Start of the body, at most [`Manner::keep`] bytes.
    pub body: Vec<u8>,
    /// Time at which the exchange began, before a new connection is opened.
    pub began: Instant,
    /// Time at which TCP was connected; `None` if the connection already existed.
    pub connected: Option<Instant>,
    /// Time at which the TLS handshake ended; `None` if the connection already existed or has no TLS.
    pub secured: Option<Instant>,
    /// Time at which the last byte of the answer arrived.
    pub ended: Instant,
}

/// Limits and callbacks of an exchange.
pub struct Manner<'a> {
    /// Time limit of the exchange.
    pub limit: Duration,
    /// Maximum number of bytes to keep from the start of the body.
    pub keep: usize,
    /// Returns whether to stop. Called about twenty times a second.
    pub stop: &'a dyn Fn() -> bool,
    /// Callback that receives the time and number of newly arrived bytes.
    pub came: &'a mut dyn FnMut(Instant, u64),
}

impl ConnectionSlot {
    /// Creates a slot without a connection. The first exchange opens the connection.
    #[must_use]
    pub fn new(address: SocketAddr, tls: Option<Tls>) -> Self {
        Self {
            address,
            tls,
            stream: None,
            memory: Memory::default(),
            buffer: vec![0; AT_ONCE.min(BUFFER)],
            congestion: None,
        }
    }

    /// Sets the TCP congestion control algorithm of new connections, if the kernel permits it.
    #[must_use]
    pub fn with_congestion(mut self, algorithm: Option<String>) -> Self {
        self.congestion = algorithm;
        self
    }

    /// Returns the open connection, from which the caller can read kernel counters; `None` if it is closed.
    #[must_use]
    pub fn connection(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_ref()?.tcp.as_fd())
    }

    /// Closes the connection. The next exchange opens a new one.
    pub fn close(&mut self) {
        self.stream = None;
    }

    /// Returns the local address of the open connection; `None` if it is closed.
    #[must_use]
    pub fn local(&self) -> Option<SocketAddr> {
        self.stream.as_ref()?.tcp.local_addr().ok()
    }

    /// Sends a request and waits for the answer. If the server has closed an idle connection, reconnects once.
    ///
    /// # Errors
    /// No complete answer arrives within the limit, or `stop` returned true. In both cases the connection is closed.
    pub fn ask(
        &mut self,
        request: &Request,
        manner: &mut Manner<'_>,
    ) -> Result<Exchanged, ProbeError> {
        let began = Instant::now();
        let kept = self.stream.is_some();
        let first = self.once(request, began, manner);
        let again = match &first {
            Err(ProbeError::Broken { .. }) => true,
            Err(ProbeError::Wrong { why, .. }) => *why == crate::answer::Wrong::Nothing,
            _ => false,
        };
        match kept && again && request.repeatable {
            true => self.once(request, began, manner),
            false => first,
        }
    }

    fn once(
        &mut self,
        request: &Request,
        began: Instant,
        manner: &mut Manner<'_>,
    ) -> Result<Exchanged, ProbeError> {
        let waiting = Waiting {
            address: self.address,
            end: began + manner.limit,
            limit: manner.limit,
            stop: manner.stop,
        };
        let (mut connected, mut secured) = (None, None);
        // Taken out of the slot, so that any error closes it.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = waiting.connect(self.tls.as_ref(), &mut connected)?;
                if let Some(algorithm) = &self.congestion {
                    // If the kernel refuses, it uses its own algorithm, which the caller can read.
                    let _ = rustix::net::sockopt::set_tcp_congestion(&stream.tcp, algorithm);
                }
                secured = self.tls.is_some().then(Instant::now);
                stream
            }
        };
        waiting.send(&mut stream, &request.bytes)?;
        let (answer, body) = self.answer(&mut stream, request, &waiting, manner)?;
        if answer.reusable {
            self.stream = Some(stream);
        }
        Ok(Exchanged {
            answer,
            body,
            began,
            connected,
            secured,
            ended: Instant::now(),
        })
    }

    fn answer(
        &mut self,
        stream: &mut Stream,
        request: &Request,
        waiting: &Waiting<'_>,
        manner: &mut Manner<'_>,
    ) -> Result<(HttpResponse, Vec<u8>), ProbeError> {
        let mut reader = Reader::default();
        reader.restart(request.head, false);
        let mut raw = Vec::new();
        let wrong = |why| ProbeError::Wrong {
            address: waiting.address,
            why,
        };
        loop {
            let uninteresting = match manner.keep {
                0 => reader.uninteresting(),
                _ => 0,
            };
            let came = stream
                .read(&mut self.buffer, uninteresting)
                .map_err(|error| waiting.broken(error))?;
            let whole = match came {
                ReadOutcome::Nothing => {
                    waiting.wait(stream, PollFlags::IN)?;
                    continue;
                }
                ReadOutcome::Bytes(n, _) => {
                    (manner.came)(Instant::now(), n as u64);
                    let room = match manner.keep {
                        0 => 0,
                        keep => (keep + HEADS).saturating_sub(raw.len()),
                    };
                    raw.extend_from_slice(&self.buffer[..n.min(room)]);
                    reader
                        .feed(&self.buffer[..n], &mut self.memory)
                        .map_err(wrong)?
                }
                ReadOutcome::Skipped(n, _) => {
                    (manner.came)(Instant::now(), n);
                    reader.skip(n)
                }
                ReadOutcome::End => Some(reader.end().map_err(wrong)?),
            };
            if let Some(answer) = whole {
                let length = usize::try_from(answer.body).unwrap_or(usize::MAX);
                let start = raw.len().saturating_sub(length);
                let mut body = raw.split_off(start);
                body.truncate(manner.keep);
                return Ok((answer, body));
            }
            waiting.look()?;
        }
    }
}

struct Waiting<'a> {
    address: SocketAddr,
    end: Instant,
    limit: Duration,
    stop: &'a dyn Fn() -> bool,
}

impl Waiting<'_> {
    fn look(&self) -> Result<(), ProbeError> {
        if (self.stop)() {
            return Err(ProbeError::Interrupted);
        }
        match Instant::now() >= self.end {
            true => Err(ProbeError::Slow {
                address: self.address,
                limit: self.limit,
            }),
            false => Ok(()),
        }
    }

    fn wait(&self, stream: &Stream, flags: PollFlags) -> Result<(), ProbeError> {
        loop {
            self.look()?;
            let left = self.end.saturating_duration_since(Instant::now());
            let slice = left.min(SLICE);
            let slice = Timespec {
                tv_sec: 0,
                tv_nsec: slice.subsec_nanos().into(),
            };
            match poll(&mut [PollFd::new(&stream.tcp, flags)], Some(&slice)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(self.broken(io::Error::from(error).into())),
            }
        }
    }

    fn connect(
        &self,
        tls: Option<&Tls>,
        connected: &mut Option<Instant>,
    ) -> Result<Stream, ProbeError> {
        let refused = |error| ProbeError::connect(self.address, error);
        let mut stream = Stream::begin(&self.address, tls).map_err(refused)?;
        self.wait(&stream, PollFlags::OUT)?;
        let failed = stream.tcp.take_error().map_err(|e| refused(e.into()))?;
        if let Some(source) = failed {
            return Err(refused(source.into()));
        }
        *connected = Some(Instant::now());
        while !stream.shake_hands().map_err(refused)? {
            self.wait(&stream, PollFlags::IN)?;
        }
        Ok(stream)
    }

    fn send(&self, stream: &mut Stream, bytes: &[u8]) -> Result<(), ProbeError> {
        let mut sent = 0;
        while sent < bytes.len() {
            sent += stream
                .write(&bytes[sent..])
                .map_err(|error| self.broken(error))?;
            if sent < bytes.len() {
                self.wait(stream, PollFlags::OUT)?;
            }
        }
        while !stream.flush().map_err(|error| self.broken(error))? {
            self.wait(stream, PollFlags::OUT)?;
        }
        Ok(())
    }

    fn broken(&self, error: Broken) -> ProbeError {
        ProbeError::broken(self.address, error)
    }
}
