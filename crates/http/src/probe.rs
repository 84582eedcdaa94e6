//! Sends one request before a load, to determine the properties of a good answer.

mod http2;

use crate::answer::{HttpResponse, Memory, Reader, Wrong};
use crate::request::Request;
use crate::stream::{Broken, ReadOutcome, Stream};
use crate::tls::Tls;
use assay_model::web::Protocol;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Maximum number of bytes of heads that are kept. Several interim heads (1xx) may precede the final head.
const HEADS: usize = 80 << 10;
/// Maximum size of an answer in bytes.
const MOST: u64 = 1 << 30;

/// The first answer of a server, from which the expected answer is derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Address from which the answer came.
    pub address: SocketAddr,
    /// Status, length and hash of the answer.
    pub answer: HttpResponse,
    /// Headers of the answer in order.
    pub headers: Vec<(String, String)>,
    /// First bytes of the body, at most 4 KiB.
    pub start: Vec<u8>,
    /// Time from opening the connection to the end of the answer.
    pub took: Duration,
    /// Time from the end of the last handshake (TLS, otherwise TCP) to the end of the answer. A request on an open
    /// connection takes this time.
    pub answered: Duration,
    /// HTTP version of the connection.
    pub protocol: Protocol,
    /// The server's limit of concurrent HTTP/2 streams; `None` with HTTP/1.1, or if there is no limit.
    pub most_streams: Option<u32>,
}

impl Probed {
    /// Returns the value of the first header with this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Reason why no valid answer was received.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The connection could not be opened.
    #[error("{address}: no connection: {source}")]
    Connect {
        /// Address of the server.
        address: SocketAddr,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("{address}: TLS: {source}")]
    Tls {
        /// Address of the server.
        address: SocketAddr,
        /// Reason from the TLS library.
        source: rustls::Error,
    },
    /// The connection broke before the answer was complete.
    #[error("{address}: the connection broke: {source}")]
    Broken {
        /// Address of the server.
        address: SocketAddr,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The server does not support HTTP/2 or violates the protocol.
    #[error("{address}: {why}")]
    Protocol {
        /// Address of the server.
        address: SocketAddr,
        /// Description of the violation.
        why: String,
    },
    /// The answer is incomplete or invalid.
    #[error("{address}: {why}")]
    Wrong {
        /// Address of the server.
        address: SocketAddr,
        /// What is wrong with the answer.
        why: Wrong,
    },
    /// The answer did not arrive within the time limit.
    #[error("{address}: no whole answer within {limit:?}")]
    Slow {
        /// Address of the server.
        address: SocketAddr,
        /// Time limit that was exceeded.
        limit: Duration,
    },
    /// The user interrupted the request.
    #[error("interrupted")]
    Interrupted,
}

/// Sends one request and waits for the answer. Computes the BLAKE3 hash of the answer's body.
///
/// # Errors
/// No complete answer arrives within `limit`, or `stop` returned true.
pub fn probe(
    request: &Request,
    address: SocketAddr,
    tls: Option<&Tls>,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Probed, ProbeError> {
    let mut probing = Probing {
        address,
        begin: Instant::now(),
        opened: Instant::now(),
        limit,
        stop,
    };
    let mut stream = Stream::begin(&address, tls).map_err(|error| probing.connect(error))?;
    probing.wait(&stream, PollFlags::OUT)?;
    if let Some(source) = stream
        .tcp
        .take_error()
        .map_err(|e| probing.connect(e.into()))?
    {
        return Err(probing.connect(source.into()));
    }
    let offered = |error: Broken| match request.protocol {
        Protocol::Http1 => error,
        Protocol::Http2 => error.offering_http2(),
    };
    while !stream
        .shake_hands()
        .map_err(|error| probing.connect(offered(error)))?
    {
        probing.wait(&stream, PollFlags::IN)?;
    }
    probing.opened = Instant::now();
    if request.protocol == Protocol::Http2 {
        stream
            .agreed_on_http2()
            .map_err(|error| probing.connect(error))?;
        return probing.http2(&mut stream, request);
    }
    let mut sent = 0;
    while sent < request.bytes.len() {
        sent += stream
            .write(&request.bytes[sent..])
            .map_err(|e| probing.broken(e))?;
        if sent < request.bytes.len() {
            probing.wait(&stream, PollFlags::OUT)?;
        }
    }
    while !stream.flush().map_err(|error| probing.broken(error))? {
        probing.wait(&stream, PollFlags::OUT)?;
    }
    probing.answer(&mut stream, request)
}

struct Probing<'a> {
    address: SocketAddr,
    begin: Instant,
    /// End of the handshakes; before, the same as `begin`.
    opened: Instant,
    limit: Duration,
    stop: &'a dyn Fn() -> bool,
}

impl ProbeError {
    /// Converts an error that occurred while the connection was being opened.
    pub(crate) fn connect(address: SocketAddr, error: Broken) -> Self {
        match error {
            Broken::Io(source) => Self::Connect { address, source },
            Broken::Tls(source) => Self::Tls { address, source },
            Broken::Protocol(why) => Self::Protocol {
                address,
                why: why.to_owned(),
            },
        }
    }

    /// Converts an error that occurred on an open connection.
    pub(crate) fn broken(address: SocketAddr, error: Broken) -> Self {
        match error {
            Broken::Io(source) => Self::Broken { address, source },
            Broken::Tls(source) => Self::Tls { address, source },
            Broken::Protocol(why) => Self::Protocol {
                address,
                why: why.to_owned(),
            },
        }
    }
}

impl Probing<'_> {
    fn connect(&self, error: Broken) -> ProbeError {
        ProbeError::connect(self.address, error)
    }

    fn broken(&self, error: Broken) -> ProbeError {
        ProbeError::broken(self.address, error)
    }

    fn wait(&self, stream: &Stream, flags: PollFlags) -> Result<(), ProbeError> {
        let slice = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        loop {
            if (self.stop)() {
                return Err(ProbeError::Interrupted);
            }
            if self.begin.elapsed() >= self.limit {
                return Err(self.slow());
            }
            match poll(&mut [PollFd::new(&stream.tcp, flags)], Some(&slice)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(self.broken(io::Error::from(error).into())),
            }
        }
    }

    fn slow(&self) -> ProbeError {
        ProbeError::Slow {
            address: self.address,
            limit: self.limit,
        }
    }

    /// Reads more bytes into `all`, which contains the bytes until now. Enforces the limits on size and time, so that
    /// an endless answer fails even if it arrives fast.
    fn read(
        &self,
        stream: &mut Stream,
        buffer: &mut [u8],
        all: &mut u64,
    ) -> Result<ReadOutcome, ProbeError> {
        let came = stream.read(buffer, 0).map_err(|error| self.broken(error))?;
        if let ReadOutcome::Bytes(n, _) = came {
            if *all > MOST || self.begin.elapsed() >= self.limit {
                return Err(self.slow());
            }
            *all += n as u64;
        }
        Ok(came)
    }

    fn answer(&mut self, stream: &mut Stream, request: &Request) -> Result<Probed, ProbeError> {
        let (mut reader, mut memory) = (Reader::default(), Memory::default());
        reader.restart(request.head, true);
        let mut kept = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        let mut all = 0;
        let answer = loop {
            let read = match self.read(stream, &mut buffer, &mut all)? {
                ReadOutcome::Nothing => {
                    self.wait(stream, PollFlags::IN)?;
                    continue;
                }
                ReadOutcome::Bytes(n, _) => {
                    let room = HEADS.saturating_sub(kept.len());
                    kept.extend_from_slice(&buffer[..n.min(room)]);
                    reader.feed(&buffer[..n], &mut memory)
                }
                ReadOutcome::Skipped(..) | ReadOutcome::End => reader.end().map(Some),
            };
            match read {
                Ok(Some(answer)) => break answer,
                Ok(None) => {}
                Err(wrong) => {
                    return Err(ProbeError::Wrong {
                        address: self.address,
                        why: wrong,
                    });
                }
            }
        };
        Ok(Probed {
            address: self.address,
            answer,
            headers: headers(&kept),
            start: reader.start().to_vec(),
            took: self.begin.elapsed(),
            answered: self.opened.elapsed(),
            protocol: Protocol::Http1,
            most_streams: None,
        })
    }
}

/// Returns the headers of the last head in the bytes, that is after all interim heads.
fn headers(mut bytes: &[u8]) -> Vec<(String, String)> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 256];
        let mut response = httparse::Response::new(&mut headers);
        let Ok(httparse::Status::Complete(length)) = response.parse(bytes) else {
            return Vec::new();
        };
        if response
            .code
            .is_some_and(|status| (100..200).contains(&status))
        {
            bytes = &bytes[length..];
            continue;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = response.headers.iter();
        return headers
            .map(|h| (h.name.to_owned(), text(h.value)))
            .collect();
    }
}
