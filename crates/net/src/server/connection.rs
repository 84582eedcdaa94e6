//! Serves one connection: the TLS handshake, then requests and their answers, one after the other.

use super::gate::Pass;
use super::head::{self, Head};
use super::hub::Refused;
use super::{AT_ONCE, Shared};
use crate::congestion;
use crate::record::Segments;
use crate::role::MOST_BYTES;
use crate::wire::{Done, Join, Joined, KEY, Poll, Refusal, Started};
use assay_host::tcp_info::{self, SentSegments};
use rustls::{ServerConnection, StreamOwned};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

/// Time within which a new connection must send the token.
const STRANGER: Duration = Duration::from_secs(10);
/// Time without a request after which an authenticated client is disconnected.
const MEMBER: Duration = Duration::from_secs(120);
/// Time limit for receiving a body. The time that its bytes take at [`SLOWEST`] is added.
const BODY: Duration = Duration::from_secs(30);
/// Minimum network speed that the server supports, in bytes per second.
const SLOWEST: u64 = 16 << 10;
/// Maximum size of a JSON body other than a record, in bytes.
const SMALL: u64 = 1 << 20;
/// Maximum size of a record, in bytes.
const RECORD: u64 = 24 << 20;

/// A socket whose reads and writes fail after a deadline.
struct Timed {
    tcp: TcpStream,
    end: Option<Instant>,
}

impl Timed {
    fn arm(&self) -> io::Result<()> {
        if let Some(end) = self.end {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.tcp.set_read_timeout(Some(left))?;
            self.tcp.set_write_timeout(Some(left))?;
        }
        Ok(())
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.arm()?;
        self.tcp.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.arm()?;
        self.tcp.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

/// Answer to a valid request.
enum Answer {
    Json(u16, String),
    Bytes(u64),
    Page,
}

/// Serves a connection until it ends. Errors end the connection; the client handles them.
pub fn serve(shared: &Shared, tcp: TcpStream, from: IpAddr, pass: &Pass) {
    let _ = talk(shared, tcp, from, pass);
}

fn talk(shared: &Shared, tcp: TcpStream, from: IpAddr, pass: &Pass) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let mut timed = Timed {
        tcp,
        end: Some(Instant::now() + STRANGER),
    };
    timed.arm()?;
    // A TLS handshake starts with byte 22 (RFC 8446 section 5.1). Plain HTTP gets an explanation.
    let mut first = [0];
    if timed.tcp.peek(&mut first)? == 1 && first[0] != 22 {
        let text = "this server speaks TLS: its address begins with https://\n";
        let length = text.len();
        write!(
            timed,
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
        )?;
        return linger(&timed.tcp);
    }
    let session = ServerConnection::new(shared.tls.clone()).map_err(io::Error::other)?;
    let mut connection = Connection {
        shared,
        stream: StreamOwned::new(session, timed),
        from,
        pass,
        buffer: Vec::new(),
        left: 0,
        member: false,
        whose: None,
        counted: SentSegments::default(),
    };
    let ended = connection.all();
    // Count segments that were sent before an error, too.
    connection.count_segments();
    ended?;
    connection.stream.conn.send_close_notify();
    connection.stream.flush()?;
    linger(&connection.stream.get_ref().tcp)
}

/// Discards further input for a moment. Closing a socket with unread input resets the connection, and the
/// client may never see the answer (RFC 9112 section 9.6).
fn linger(mut tcp: &TcpStream) -> io::Result<()> {
    tcp.shutdown(std::net::Shutdown::Write)?;
    let end = Instant::now() + Duration::from_secs(1);
    let mut bytes = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        tcp.set_read_timeout(Some(left))?;
        if tcp.read(&mut bytes)? == 0 {
            return Ok(());
        }
    }
}

struct Connection<'a> {
    shared: &'a Shared,
    stream: StreamOwned<ServerConnection, Timed>,
    from: IpAddr,
    pass: &'a Pass,
    buffer: Vec<u8>,
    /// Number of bytes of the request's body that have not been read.
    left: u64,
    member: bool,
    /// Client and role to which the current answers belong.
    whose: Option<(u64, String)>,
    /// Sent segments that have already been counted.
    counted: SentSegments,
}

impl Connection<'_> {
    fn all(&mut self) -> io::Result<()> {
        while self.one()? && !self.shared.stopped() {}
        Ok(())
    }

    /// Sets the client to which the next answer belongs, so that the answer uses the plan's congestion control.
    fn belongs_to(&mut self, head: &Head) {
        let Some((number, key, role)) = &head.client else {
            return;
        };
        if self.shared.hub().is_client(*number, key) {
            self.send_as_planned(*number);
            self.whose = Some((*number, role.clone()));
        }
    }

    /// Sets the plan's congestion control for this connection, and records which algorithm the kernel then uses.
    fn send_as_planned(&self, client: u64) {
        let now = self.shared.now_us();
        let wanted = self.shared.hub().wanted_congestion(client, now);
        let tcp = &self.stream.get_ref().tcp;
        let algorithm = match wanted {
            Some(wanted) => congestion::set(tcp, &wanted),
            None => congestion::of_connection(tcp),
        };
        self.shared.hub().sends_with(client, algorithm);
    }

    /// Counts the TCP segments that were sent since the last call.
    fn count_segments(&mut self) {
        let Some((client, role)) = &self.whose else {
            return;
        };
        let Some(now) = tcp_info::sent_segments(&self.stream.get_ref().tcp) else {
            return;
        };
        let more = Segments {
            sent: now.sent.saturating_sub(self.counted.sent),
            again: now.again.saturating_sub(self.counted.again),
        };
        self.counted = now;
        let time = self.shared.now_us();
        self.shared.hub().sent(*client, role, more, time);
    }

    /// Serves one request. Returns whether the connection may serve another one.
    fn one(&mut self) -> io::Result<bool> {
        let head = loop {
            match head::read(&self.buffer) {
                Ok(Some((head, length))) => {
                    self.buffer.drain(..length);
                    break head;
                }
                Ok(None) => {}
                Err(why) => {
                    self.answer(&refusal(400, why), true)?;
                    return Ok(false);
                }
            }
            if !self.fill()? {
                return Ok(false);
            }
        };
        self.left = head.length;
        let (answer, whole) = match self.route(&head) {
            Ok(answer) => (answer, true),
            Err(Stop::Refused(answer)) => (answer, false),
            Err(Stop::Io(error)) => return Err(error),
        };
        // Discard the rest of an unused body before the next request.
        if whole && self.left > 0 && self.left <= SMALL {
            self.body(&mut |_| true)?;
        }
        let close = head.close || !whole || self.left > 0;
        if matches!(answer, Answer::Bytes(_)) {
            self.belongs_to(&head);
        }
        self.answer(&answer, close)?;
        self.count_segments();
        Ok(!close)
    }

    fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        let n = self.stream.read(&mut bytes)?;
        self.buffer.extend_from_slice(&bytes[..n]);
        Ok(n > 0)
    }

    /// Answers a request. After a refusal the connection ends.
    fn route(&mut self, head: &Head) -> Result<Answer, Stop> {
        let path: Vec<&str> = head.path.trim_start_matches('/').split('/').collect();
        if (&*head.method, &*path) == ("GET", &[""]) {
            return Ok(Answer::Page);
        }
        let shown = head.token.as_deref().unwrap_or_default();
        let (client, controller) = (self.shared.token.is(shown), self.shared.control.is(shown));
        if !client && !controller {
            let why = match head.token {
                None => "no token was shown: use the whole address that `assay net serve` printed",
                Some(_) => "this is not the token of this server; it has a new one at every start",
            };
            return Err(Stop::Refused(refusal(401, why)));
        }
        if !self.member {
            self.member = true;
            self.pass.no_stranger();
            self.wait_for_member()?;
        }
        match (&*head.method, &*path) {
            ("POST", ["join"]) if client => {
                let join: Join = self.json(head, SMALL)?;
                let key: [u8; KEY] = super::random()?;
                let now = self.shared.now_us();
                let joined = self.shared.hub().join(&join, self.from, key, now);
                if let Ok(joined) = &joined {
                    let algorithm = congestion::of_connection(&self.stream.get_ref().tcp);
                    self.shared.hub().sends_with(joined.client, algorithm);
                }
                let ports = &self.shared.ports;
                Ok(said(&joined.map(|joined| Joined {
                    ports: ports.clone(),
                    ..joined
                })))
            }
            ("POST", ["poll"]) if client => {
                let poll: Poll = self.json(head, SMALL)?;
                let now = self.shared.now_us();
                let number = poll.client;
                let polled = self.shared.hub().poll(poll, now);
                if polled.is_ok() {
                    self.send_as_planned(number);
                }
                Ok(said(&polled))
            }
            ("POST", ["done"]) if client => {
                let done: Done = self.json(head, RECORD)?;
                let now = self.shared.now_us();
                Ok(said(&self.shared.hub().done(done, now)))
            }
            ("GET", ["bytes", n]) if client => match n.parse() {
                Ok(n) if n <= MOST_BYTES => Ok(Answer::Bytes(n)),
                _ => Ok(refusal(400, "a body has at most 64 MiB")),
            },
            ("POST", ["bytes"]) if client => self.upload(head),
            ("GET", ["clients"]) if controller => {
                Ok(said(&Ok(self.shared.hub().clients(self.shared.now_us()))))
            }
            ("POST", ["run"]) if controller => {
                let plan = self.json(head, SMALL)?;
                let now = self.shared.now_us();
                let started = self.shared.hub().begin(&plan, now);
                Ok(said(&started.map(|started| Started {
                    congestion: self.shared.congestion.clone(),
                    ..started
                })))
            }
            ("GET", ["run", run]) if controller => Ok(with_number(run, |run| {
                self.shared.hub().status(run, self.shared.now_us())
            })),
            ("POST", ["run", run, "abort"]) if controller => Ok(with_number(run, |run| {
                self.shared.hub().abort(run, self.shared.now_us())
            })),
            ("GET", ["run", run, "person", person]) if controller => {
                let person = person.parse().unwrap_or(usize::MAX);
                Ok(with_number(run, |run| {
                    self.shared.hub().record(run, person).cloned()
                }))
            }
            _ if client => Err(Stop::Refused(refusal(
                403,
                "there is nothing here for a client; a controller needs the other address that `assay net serve` printed",
            ))),
            _ => Err(Stop::Refused(refusal(
                403,
                "there is nothing here for a controller; a client needs the other address that `assay net serve` printed",
            ))),
        }
    }

    /// Gives the connection of an authenticated client the longer time limit [`MEMBER`].
    fn wait_for_member(&mut self) -> io::Result<()> {
        let timed = self.stream.get_mut();
        timed.end = None;
        timed.tcp.set_read_timeout(Some(MEMBER))?;
        timed.tcp.set_write_timeout(Some(MEMBER))
    }

    /// Reads a JSON body. For a large body the client header is required, and its key is checked first.
    fn json<T: DeserializeOwned>(&mut self, head: &Head, most: u64) -> Result<T, Stop> {
        let client = match &head.client {
            Some((number, key, _)) if self.shared.hub().is_client(*number, key) => Some(*number),
            Some(_) => return Err(Stop::Refused(refusal(404, "this client is not known"))),
            None => None,
        };
        let most = if client.is_some() {
            most
        } else {
            most.min(SMALL)
        };
        if head.length > most {
            return Err(Stop::Refused(refusal(413, "this is larger than it can be")));
        }
        let mut share = self.shared.budget.begin(self.from, client);
        let mut body = Vec::new();
        let mut room = true;
        self.body(&mut |bytes| {
            room &= share.take(bytes.len());
            if room {
                body.extend_from_slice(bytes);
            } else {
                body = Vec::new();
            }
            room
        })?;
        let large = head.length > SMALL;
        let _one = large.then(|| self.shared.large.lock());
        serde_json::from_slice(&body)
            .map_err(|error| Stop::Refused(refusal(400, &format!("not understood: {error}"))))
    }

    fn upload(&mut self, head: &Head) -> Result<Answer, Stop> {
        let Some((client, key, role)) = &head.client else {
            return Err(Stop::Refused(refusal(400, "an upload needs its client")));
        };
        if !self.shared.hub().is_client(*client, key) || head.length > MOST_BYTES {
            return Err(Stop::Refused(refusal(
                400,
                "this upload is nobody's, or too large",
            )));
        }
        let shared = self.shared;
        self.body(&mut |bytes| {
            let now = shared.now_us();
            shared
                .hub()
                .uploaded(*client, role, bytes.len() as u64, now);
            true
        })?;
        Ok(Answer::Json(200, "{}".to_owned()))
    }

    /// Reads the rest of the body before one deadline. If memory is exhausted, `take` returns false and the connection
    /// ends. The client then retries.
    fn body(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
        let time = BODY + Duration::from_secs(self.left / SLOWEST);
        self.stream.get_mut().end = Some(Instant::now() + time);
        self.body_in_time(take)?;
        self.wait_for_member()
    }

    fn body_in_time(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
        let full = || io::Error::new(io::ErrorKind::OutOfMemory, "no room for this body");
        let less = |n: usize, left: u64| n.min(usize::try_from(left).unwrap_or(usize::MAX));
        let here = less(self.buffer.len(), self.left);
        if !take(&self.buffer[..here]) {
            return Err(full());
        }
        self.buffer.drain(..here);
        self.left -= here as u64;
        let mut bytes = vec![0; less(AT_ONCE, self.left)];
        while self.left > 0 {
            let most = less(bytes.len(), self.left);
            let n = self.stream.read(&mut bytes[..most])?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if !take(&bytes[..n]) {
                return Err(full());
            }
            self.left -= n as u64;
        }
        Ok(())
    }

    fn answer(&mut self, answer: &Answer, close: bool) -> io::Result<()> {
        let (status, kind, length) = match answer {
            Answer::Json(status, text) => (*status, "application/json", text.len() as u64),
            Answer::Bytes(n) => (200, "application/octet-stream", *n),
            Answer::Page => (200, "text/html; charset=utf-8", super::PAGE.len() as u64),
        };
        let close = if close { "Connection: close\r\n" } else { "" };
        // The page runs only its own script and connects only to this server, on all ports. The policy names
        // ports without a host, because it cannot contain an IPv6 address. Requests without the token are
        // refused from any page.
        let ports: String = (self.shared.ports.iter())
            .map(|port| format!(" https://*:{port}"))
            .collect();
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nAccess-Control-Allow-Origin: *\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n\
             Cross-Origin-Embedder-Policy: require-corp\r\nContent-Security-Policy: default-src 'none'; \
             connect-src 'self' blob:{ports}; script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n{close}\r\n",
            if status == 200 { "OK" } else { "Refused" },
        );
        // Write small answers at once, so that they fit one packet.
        let mut bytes = head.into_bytes();
        match answer {
            Answer::Json(_, text) => bytes.extend_from_slice(text.as_bytes()),
            Answer::Page => bytes.extend_from_slice(super::PAGE.as_bytes()),
            Answer::Bytes(n) => return self.incompressible(bytes, *n),
        }
        self.stream.write_all(&bytes)?;
        self.stream.flush()
    }

    fn incompressible(&mut self, mut head: Vec<u8>, length: u64) -> io::Result<()> {
        let pool = &self.shared.pool;
        let mut at = self.shared.anywhere() % (pool.len() - AT_ONCE);
        let mut left = usize::try_from(length).unwrap_or(usize::MAX);
        while left > 0 || !head.is_empty() {
            let n = left.min(AT_ONCE - head.len().min(AT_ONCE));
            head.extend_from_slice(&pool[at..at + n]);
            self.stream.write_all(&head)?;
            head.clear();
            at = (at + n) % (pool.len() - AT_ONCE);
            left -= n;
        }
        self.stream.flush()
    }
}

/// Reasons why a request does not get its normal answer.
enum Stop {
    Refused(Answer),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn refusal(status: u16, why: &str) -> Answer {
    let refusal = Refusal {
        error: why.to_owned(),
    };
    Answer::Json(status, serde_json::to_string(&refusal).unwrap_or_default())
}

fn said<T: Serialize>(result: &Result<T, Refused>) -> Answer {
    match result {
        Ok(value) => match serde_json::to_string(value) {
            Ok(text) => Answer::Json(200, text),
            Err(error) => refusal(500, &error.to_string()),
        },
        Err(Refused::Bad(why)) => refusal(400, why),
        Err(Refused::Unknown(why)) => refusal(404, why),
        Err(Refused::Busy(why)) => refusal(409, why),
        Err(Refused::Full(why)) => refusal(503, why),
    }
}

fn with_number<T: Serialize>(number: &str, ask: impl FnOnce(u64) -> Result<T, Refused>) -> Answer {
    match number.parse() {
        Ok(number) => said(&ask(number)),
        Err(_) => refusal(404, "runs have numbers"),
    }
}
