//! All connections in one thread: epoll, edge-triggered, one write and one read for a small
//! answer.

use super::Request;
use crate::Cancel;
use crate::connect::{self, timespec};
use crate::measured::{Done, LOOK, LoadError, Measured, REST, Tally, finish, thread_cpu};
use assay_http::answer::{Answer, Memory, Reader, Wrong};
use assay_http::{Method, Url};
use assay_model::sample::Operation;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Bytes taken from a connection at once.
const BUFFER: usize = 128 << 10;

/// What a connection is doing.
#[derive(Debug, PartialEq)]
enum Phase {
    /// Waiting after a failure, or before its first request.
    Resting(Instant),
    Connecting,
    /// So many bytes of the request are sent.
    Sending(usize),
    Reading,
    /// No more requests.
    Over,
}

struct Connection {
    stream: Option<TcpStream>,
    phase: Phase,
    reader: Reader,
    /// Beginning of the request.
    start: Instant,
    /// Answers that came over this stream.
    answers: u64,
    /// Counts the streams, so that an event of a closed one is known as such.
    generation: u32,
}

struct Engine<'a> {
    request: &'a Request,
    url: &'a Url,
    bytes: Vec<u8>,
    address: SocketAddr,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    tally: Tally,
    /// Length of the first answer's body.
    length: Option<u64>,
    buffer: Vec<u8>,
    memory: Memory,
}

pub fn run(
    request: &Request,
    url: &Url,
    addresses: &[SocketAddr],
    cancel: &Cancel,
) -> Result<Measured, LoadError> {
    let io = |what| {
        move |error: rustix::io::Errno| LoadError::Io {
            what,
            source: error.into(),
        }
    };
    let bytes = assay_http::Request::new(&Method::Get, url, &[], &[], request.keep_alive)
        .map_err(|why| LoadError::Request {
            what: request.url.clone(),
            why,
        })?
        .into_bytes();
    let begin = Instant::now();
    let used = thread_cpu();
    let mut engine = Engine {
        request,
        url,
        bytes,
        address: reachable(addresses, cancel).ok_or_else(|| LoadError::Request {
            what: request.url.clone(),
            why: "the host has no address".to_owned(),
        })?,
        epoll: epoll::create(CreateFlags::CLOEXEC).map_err(io("epoll_create1"))?,
        connections: (0..request.connections)
            .map(|_| Connection {
                stream: None,
                phase: Phase::Resting(begin),
                reader: Reader::default(),
                start: begin,
                answers: 0,
                generation: 0,
            })
            .collect(),
        tally: Tally::new(&request.timing, begin),
        length: None,
        buffer: vec![0; BUFFER],
        memory: Memory::default(),
    };
    engine.work(cancel).map_err(io("epoll_wait"))?;
    let cpu = thread_cpu().saturating_sub(used);
    finish(
        ("http", Operation::Request),
        vec![engine.tally],
        begin.elapsed(),
        cpu,
        cancel,
    )
}

/// The first address that takes a connection, else the first.
fn reachable(addresses: &[SocketAddr], cancel: &Cancel) -> Option<SocketAddr> {
    let works = |address: &&SocketAddr| {
        let deadline = Instant::now() + Duration::from_secs(1);
        connect::wait(address, deadline, cancel).is_ok()
    };
    match addresses {
        [] => None,
        [only] => Some(*only),
        [first, ..] => Some(*addresses.iter().find(works).unwrap_or(first)),
    }
}

impl Engine<'_> {
    fn work(&mut self, cancel: &Cancel) -> rustix::io::Result<()> {
        let mut events = Vec::with_capacity(self.connections.len().min(1024));
        let mut looked = Instant::now();
        let mut wait = self.look(looked);
        while !cancel.is_cancelled() && self.connections.iter().any(|c| c.phase != Phase::Over) {
            events.clear();
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, room, Some(&timespec(wait))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in &events {
                // The kernel's structure is packed: fields are copied out.
                let data = { event.data }.u64();
                let (at, generation) = ((data >> 32) as usize, data as u32);
                if self.connections[at].generation == generation {
                    self.drive(at);
                }
            }
            let now = Instant::now();
            if events.is_empty() || now - looked >= wait {
                looked = now;
                wait = self.look(now);
            }
        }
        Ok(())
    }

    /// Ends requests that take too long, begins those whose rest is over; tells when to look again.
    fn look(&mut self, now: Instant) -> Duration {
        let limit = Duration::from(self.request.timing.limit);
        let mut wait = LOOK;
        for at in 0..self.connections.len() {
            let connection = &self.connections[at];
            match connection.phase {
                Phase::Over => {}
                Phase::Resting(until) if now >= until => self.begin(at, now),
                Phase::Resting(_) => wait = REST,
                _ if now - connection.start >= limit => {
                    self.fail(
                        at,
                        LoadError::TimedOut {
                            what: self.request.url.clone(),
                            limit: self.request.timing.limit,
                        },
                    );
                    wait = REST;
                }
                _ => {}
            }
        }
        wait
    }

    /// Begins a request, over the open stream if there is one.
    fn begin(&mut self, at: usize, now: Instant) {
        let connection = &mut self.connections[at];
        if !self.tally.goes_on(now) {
            connection.phase = Phase::Over;
            connection.stream = None;
            return;
        }
        connection.start = now;
        connection.reader = Reader::default();
        if connection.stream.is_some() {
            connection.phase = Phase::Sending(0);
            self.drive(at);
        } else {
            self.connect(at);
        }
    }

    fn connect(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        connection.generation = connection.generation.wrapping_add(1);
        connection.answers = 0;
        connection.reader = Reader::default();
        let data = EventData::new_u64((at as u64) << 32 | u64::from(connection.generation));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let opened = connect::begin(&self.address).and_then(|stream| {
            epoll::add(&self.epoll, &stream, data, flags)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => {
                connection.stream = Some(stream);
                connection.phase = Phase::Connecting;
            }
            Err(error) => self.not_connected(at, error),
        }
    }

    fn not_connected(&mut self, at: usize, source: io::Error) {
        let address = self.url.address();
        self.fail(
            at,
            match source.kind() {
                io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::TimedOut => LoadError::NotListening { address, source },
                _ => LoadError::Connection { address, source },
            },
        );
    }

    /// Goes on as far as it goes without waiting.
    fn drive(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let Some(stream) = &mut connection.stream else {
            return;
        };
        if connection.phase == Phase::Connecting {
            match stream.take_error() {
                Ok(None) => connection.phase = Phase::Sending(0),
                Ok(Some(error)) | Err(error) => return self.not_connected(at, error),
            }
        }
        while let Phase::Sending(sent) = connection.phase {
            match stream.write(&self.bytes[sent..]) {
                Ok(n) if sent + n == self.bytes.len() => connection.phase = Phase::Reading,
                Ok(n) => connection.phase = Phase::Sending(sent + n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.broken(at, error),
            }
            // The answer cannot be there yet; its event will come.
            if connection.phase == Phase::Reading {
                return;
            }
        }
        while connection.phase == Phase::Reading {
            match stream.read(&mut self.buffer) {
                Ok(0) if !connection.reader.started() => {
                    return self.broken(at, io::ErrorKind::UnexpectedEof.into());
                }
                Ok(0) => {
                    let ended = connection.reader.end();
                    return self.answered(at, ended);
                }
                Ok(n) => match connection.reader.feed(&self.buffer[..n], &mut self.memory) {
                    Ok(None) => {}
                    Ok(Some(answer)) => return self.answered(at, Ok(answer)),
                    Err(why) => return self.answered(at, Err(why)),
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.broken(at, error),
            }
        }
    }

    /// The stream ended or broke before the answer was there.
    fn broken(&mut self, at: usize, source: io::Error) {
        let connection = &mut self.connections[at];
        if connection.answers > 0 && !connection.reader.started() {
            // The server closed a connection that was at rest: the request is sent anew.
            connection.stream = None;
            return self.connect(at);
        }
        let address = self.url.address();
        self.fail(at, LoadError::Connection { address, source });
    }

    fn answered(&mut self, at: usize, answer: Result<Answer, Wrong>) {
        let now = Instant::now();
        let (done, reusable) = match answer {
            Ok(answer) => (self.judge(&answer), answer.reusable),
            Err(why) => {
                let what = self.request.url.clone();
                let why = why.to_string();
                (Err(LoadError::WrongAnswer { what, why }), false)
            }
        };
        if let Err(error) = done {
            return self.fail(at, error);
        }
        let connection = &mut self.connections[at];
        self.tally.record(connection.start, now, done);
        connection.answers += 1;
        if !(reusable && self.request.keep_alive) {
            self.close(at);
        }
        self.begin(at, now);
    }

    fn judge(&mut self, answer: &Answer) -> Done {
        let url = || self.request.url.clone();
        if answer.status != 200 {
            return Err(LoadError::Status {
                url: url(),
                status: answer.status,
            });
        }
        let length = *self.length.get_or_insert(answer.body);
        if answer.body != length {
            return Err(LoadError::WrongAnswer {
                what: url(),
                why: format!("a body of {} bytes, the first had {length}", answer.body),
            });
        }
        Ok(answer.body)
    }

    /// Closes with a reset: waiting states (TIME_WAIT) of thousands of connections would use up
    /// the local ports.
    fn close(&mut self, at: usize) {
        if let Some(stream) = self.connections[at].stream.take() {
            let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        }
    }

    fn fail(&mut self, at: usize, error: LoadError) {
        let now = Instant::now();
        self.close(at);
        let connection = &mut self.connections[at];
        self.tally.record(connection.start, now, Err(error));
        connection.phase = Phase::Resting(now + REST);
    }
}
