//! The local client of a remote run. It copies the program to the machine, runs verbs there, and fetches their results.

mod clock;
mod pieces;
mod talk;

pub use talk::{Speaker, Talk};

use crate::line::{Line, Lines};
use crate::remote::boot::{self, Said};
use crate::remote::outbox::Outbox;
use crate::remote::program::Program;
use crate::remote::records::{LONGEST, Records};
use crate::remote::{HEARTBEAT, serve};
use crate::session::{SessionError, SessionFault, SshSession, check_name};
use assay_protocol::{AgentRequest, CHUNK, Frame, FrameDecoder, PathLook, Reply};
use assay_render::text::escape_line;
use clock::Clock;
use pieces::Fetch;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Maximum number of bytes that a machine may print before the first line of the bootstrap script.
const MOST_BEFORE: usize = 1 << 20;
/// Maximum number of bytes of a verb's standard output that are kept.
const MOST_OUTPUT: usize = 64 << 20;
/// Interval at which results are fetched while a verb runs. So a lost connection does not lose all results.
const FETCH: Duration = Duration::from_secs(30);
/// Time limit for the start of the remote program.
const BEGIN: Duration = Duration::from_secs(30);
/// Maximum time for a verb to end after the user stops it. This time is long because the verb may have to revert a
/// setting and restart a service.
const TO_END: Duration = Duration::from_secs(300);
/// Interval at which `stop` is checked.
const LOOK: Duration = Duration::from_millis(100);

/// A connection to a machine on which this program runs.
pub struct RemoteLink<'a> {
    session: &'a SshSession,
    silence: Duration,
    line: Line,
    out: Outbox,
    decoder: FrameDecoder,
    frames: VecDeque<Frame>,
    last_heard: Instant,
    last_said: Instant,
    request: u64,
    dir: String,
}

/// Result of a remote verb after its end.
#[derive(Debug)]
pub struct Ran {
    /// Exit status of the verb; 128 + signal if a signal ended the verb.
    pub status: i32,
    /// Standard output of the verb.
    pub stdout: Vec<u8>,
}

/// Callbacks that are called while a verb runs.
pub struct Wishes<'a> {
    /// Returns whether the verb must end now.
    pub stop: &'a dyn Fn() -> bool,
    /// Receives each line of standard error, without control characters.
    pub say: &'a mut dyn FnMut(&str),
    /// Receives all results until now, each time they are fetched.
    pub measured: &'a mut dyn FnMut(Records),
}

impl<'a> RemoteLink<'a> {
    /// Logs in, copies the program to the machine and starts it. Calls `stop` several times a second with the progress
    /// of the copy.
    ///
    /// # Errors
    /// [`SessionError`], whose message contains a way to proceed. Nothing remains on the machine.
    pub fn open(
        session: &'a SshSession,
        program: &mut Program,
        version: &str,
        silence: Duration,
        stop: &mut dyn FnMut(Duration, f64) -> bool,
    ) -> Result<Self, SessionError> {
        check_name(&session.host)?;
        let other =
            |error: io::Error| session.failed(SessionFault::Other, &format!("ssh: {error}"));
        let mut link = Self::start(session, silence).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => session.failed(
                SessionFault::NoSsh,
                "there is no ssh here: install the OpenSSH client",
            ),
            _ => other(error),
        })?;
        let begun = Instant::now();
        let size = program.size;
        link.out
            .put(boot::script(program, silence.as_secs().max(1)).into_bytes());
        let mut lines = Lines::default();
        let mut starts = None;
        // Until the copy starts, received output does not extend the deadline.
        let mut clock = Clock::start(session.deadline);
        let mut sending = 0;
        loop {
            let waits = link.out.waits();
            if waits < sending {
                clock.enter(sending - waits);
                sending = waits;
            }
            let share = 1.0 - ((waits as u64).min(size) as f64 / size.max(1) as f64);
            let passed = begun.elapsed();
            if stop(passed, share) {
                return Err(session.failed(SessionFault::Interrupted, "interrupted"));
            }
            let late = match starts {
                Some(at) => Instant::elapsed(&at) > BEGIN,
                None => clock.is_late(),
            };
            if late {
                let reason = format!(
                    "no answer after {} s: --deadline gives it more time",
                    passed.as_secs()
                );
                return Err(session.failed(SessionFault::Deadline, &reason));
            }
            match link.line.heard.recv_timeout(LOOK) {
                Ok(bytes) => lines.push(&bytes),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(link.line.ended(session, &lines.rest()));
                }
            }
            if lines.all() > MOST_BEFORE {
                let reason = "it prints more than 1 MiB before it does what it is asked: look at what its login shell prints";
                return Err(session.failed(SessionFault::TooMuch, reason));
            }
            while let Some(line) = lines.next() {
                let Some(said) = boot::read(&line) else {
                    continue;
                };
                let wrong = |reason: &str| Err(session.failed(SessionFault::Other, reason));
                match said {
                    Said::Place { machine, dir } if !boot::fits(program, &machine) => {
                        let (ours, _) = (program.machine.unwrap_or("another"), dir);
                        return wrong(&format!(
                            "it is {machine} and {} is for {ours}: name a static assay for it with --remote-assay",
                            program.path.display()
                        ));
                    }
                    Said::Place { dir, .. } if link.dir.is_empty() => {
                        link.dir = dir;
                        link.send_program(program).map_err(other)?;
                        sending = link.out.waits();
                        clock.enter(0);
                    }
                    Said::NoPlace => {
                        return wrong(&format!(
                            "no directory there may execute programs and has {} MiB to spare: tried /tmp, /var/tmp, the home directory, $XDG_RUNTIME_DIR and /run",
                            (size >> 20) + 64
                        ));
                    }
                    Said::NoSum => {
                        return wrong("it has no sha256sum, so what arrives cannot be compared");
                    }
                    Said::BadSum => return wrong("the program did not arrive as it was sent"),
                    Said::Starts => starts = Some(Instant::now()),
                    Said::Ready(there) if there == version => {
                        link.decoder.push(&lines.rest());
                        link.last_heard = Instant::now();
                        return Ok(link);
                    }
                    Said::Ready(there) => {
                        return wrong(&format!(
                            "the program that was sent is assay {there}, and this is {version}: both have to be the same"
                        ));
                    }
                    Said::Place { .. } => {}
                }
            }
        }
    }

    fn start(session: &'a SshSession, silence: Duration) -> io::Result<Self> {
        let (line, to) = Line::start(session)?;
        Ok(Self {
            session,
            silence,
            line,
            out: Outbox::to(to),
            decoder: FrameDecoder::default(),
            frames: VecDeque::new(),
            last_heard: Instant::now(),
            last_said: Instant::now(),
            request: 0,
            dir: String::new(),
        })
    }

    fn send_program(&self, program: &mut Program) -> io::Result<()> {
        let mut file = program.rewind()?;
        loop {
            let mut piece = Vec::with_capacity(1 << 20);
            file.by_ref().take(1 << 20).read_to_end(&mut piece)?;
            if piece.is_empty() {
                return Ok(());
            }
            self.out.put(piece);
        }
    }

    /// Returns the remote path of a file that was stored under this name.
    #[must_use]
    pub fn place(&self, name: &str) -> String {
        let path = serve::file(std::path::Path::new(&self.dir), name);
        path.to_string_lossy().into_owned()
    }

    /// Stores a file on the machine. The file is deleted when the connection ends.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn put(&mut self, name: &str, content: &[u8]) -> Result<(), SessionError> {
        let request = self.next_request();
        let path = name.as_bytes().to_vec();
        self.send(request, &AgentRequest::Put { mode: 0o600, path });
        for piece in content.chunks(CHUNK).chain([&[][..]]) {
            self.send(request, &AgentRequest::Data(piece.to_vec()));
        }
        let mut progress = self.progress();
        loop {
            match self.answer(request, &mut progress)? {
                Some(Reply::Done(_)) => return Ok(()),
                Some(Reply::Failed { reason, .. }) => {
                    let reason = String::from_utf8_lossy(&reason);
                    let reason = format!("{name} cannot be put there: {reason}");
                    return Err(self.session.failed(SessionFault::Other, &reason));
                }
                _ => {}
            }
        }
    }

    /// Copies records to the machine, so that a verb can continue them there.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn put_records(&mut self, records: &Records) -> Result<(), SessionError> {
        let bytes = records
            .write()
            .map_err(|error| self.session.failed(SessionFault::Other, &error.to_string()))?;
        let name = String::from_utf8_lossy(serve::RECORDS).into_owned();
        self.put(&name, &bytes)
    }

    /// Starts a verb, with standard input if `input` is true. Returns the number of the request.
    fn begin(&mut self, arguments: &[impl AsRef<OsStr>], input: bool) -> u64 {
        let request = self.next_request();
        let words = arguments.iter().map(|word| word.as_ref().as_bytes());
        self.send(
            request,
            &AgentRequest::Run {
                timeout_ms: 0,
                input,
                argv: words.map(<[u8]>::to_vec).collect(),
            },
        );
        request
    }

    /// Runs a verb to its end.
    ///
    /// # Errors
    /// [`SessionError`] if the connection is lost or the protocol is violated. The machine then rolls back the verb's
    /// changes without the client.
    pub fn run(
        &mut self,
        arguments: &[impl AsRef<OsStr>],
        wishes: &mut Wishes<'_>,
    ) -> Result<Ran, SessionError> {
        let request = self.begin(arguments, false);
        let mut stdout = Vec::new();
        let mut stderr = Lines::default();
        let mut asked: Option<Instant> = None;
        let mut fetch = Fetch::default();
        let status = loop {
            match asked {
                None if (wishes.stop)() => {
                    asked = Some(Instant::now());
                    self.send(request, &AgentRequest::Interrupt);
                }
                Some(at) if at.elapsed() > TO_END => {
                    let reason = format!(
                        "it was told to end {} s ago, and goes on: when the connection is lost, it reverts the changes",
                        TO_END.as_secs()
                    );
                    return Err(self.session.failed(SessionFault::Deadline, &reason));
                }
                _ => {}
            }
            if fetch.is_due() {
                fetch.request = self.next_request();
                fetch.bytes.clear();
                let look = AgentRequest::Look(PathLook::Get, serve::RECORDS.to_vec());
                self.send(fetch.request, &look);
            }
            let Some((number, reply)) = self.any_reply()? else {
                continue;
            };
            if number == fetch.request && number != 0 {
                if let Some(records) = fetch.take(reply) {
                    (wishes.measured)(records);
                }
                continue;
            }
            match reply {
                _ if number != request => {}
                Reply::Out(bytes) if stdout.len() + bytes.len() <= MOST_OUTPUT => {
                    stdout.extend_from_slice(&bytes);
                }
                Reply::Out(_) => {
                    let reason = "it prints more than 64 MiB: what it measures goes on to be measured no more";
                    return Err(self.session.failed(SessionFault::TooMuch, reason));
                }
                Reply::Err(bytes) => {
                    stderr.push(&bytes);
                    while let Some(line) = stderr.next() {
                        (wishes.say)(&escape_line(line.trim_end()));
                    }
                }
                Reply::Exit(status) => break status,
                Reply::Failed { reason, .. } => {
                    let reason = String::from_utf8_lossy(&reason);
                    return Err(self.session.failed(SessionFault::Other, &reason));
                }
                _ => {}
            }
        };
        let rest = stderr.rest();
        if !rest.is_empty() {
            (wishes.say)(&escape_line(&String::from_utf8_lossy(&rest)));
        }
        Ok(Ran { status, stdout })
    }

    /// Fetches the results of the verbs.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn records(&mut self) -> Result<Records, SessionError> {
        let request = self.next_request();
        self.send(
            request,
            &AgentRequest::Look(PathLook::Get, serve::RECORDS.to_vec()),
        );
        let mut bytes = Vec::new();
        let mut progress = self.progress();
        loop {
            match self.answer(request, &mut progress)? {
                Some(Reply::Piece(piece)) if bytes.len() + piece.len() <= LONGEST => {
                    bytes.extend(piece)
                }
                Some(Reply::Piece(_)) => {
                    let reason = "it sends more than was ever measured";
                    return Err(self.session.failed(SessionFault::TooMuch, reason));
                }
                Some(Reply::Done(_)) => break,
                Some(Reply::Failed { reason, .. }) => {
                    let reason = String::from_utf8_lossy(&reason);
                    return Err(self.session.failed(SessionFault::Other, &reason));
                }
                _ => {}
            }
        }
        Records::read(&bytes)
            .map_err(|error| self.session.failed(SessionFault::Other, &error.to_string()))
    }

    /// Ends the remote program, which deletes its own file.
    pub fn close(mut self) {
        self.out.close();
        self.line.close(Duration::from_secs(10));
    }

    fn next_request(&mut self) -> u64 {
        self.request += 1;
        self.request
    }

    fn send(&mut self, number: u64, request: &AgentRequest) {
        self.last_said = Instant::now();
        self.out.put(request.frame(number).encode());
    }

    /// Starts the clock of an exchange. Also returns the number of bytes that have not been sent yet.
    fn progress(&self) -> (Clock, usize) {
        (Clock::start(self.silence), self.out.waits())
    }

    /// Waits for a reply, at most as long as the bytes in flight permit. Heartbeats do not count as a reply, so a
    /// machine that only sends heartbeats is given up.
    fn answer(
        &mut self,
        number: u64,
        (clock, sending): &mut (Clock, usize),
    ) -> Result<Option<Reply>, SessionError> {
        let reply = self.reply(number)?;
        let waits = self.out.waits();
        if waits < *sending {
            clock.enter(*sending - waits);
        }
        *sending = waits;
        if let Some(Reply::Piece(piece)) = &reply {
            clock.enter(piece.len());
        }
        let is_end = matches!(reply, Some(Reply::Done(_) | Reply::Failed { .. }));
        if !is_end && clock.is_late() {
            let reason = format!(
                "it is there, and has not answered for {} s",
                self.silence.as_secs()
            );
            return Err(self.session.failed(SessionFault::Deadline, &reason));
        }
        Ok(reply)
    }

    fn reply(&mut self, number: u64) -> Result<Option<Reply>, SessionError> {
        let found = self.any_reply()?;
        Ok(found
            .filter(|(of, _)| *of == number)
            .map(|(_, reply)| reply))
    }

    /// Returns the next reply; `None` if no reply arrives within a short time.
    fn any_reply(&mut self) -> Result<Option<(u64, Reply)>, SessionError> {
        if self.last_said.elapsed() >= HEARTBEAT {
            self.send(0, &AgentRequest::Alive);
        }
        if self.frames.is_empty() {
            match self.line.heard.recv_timeout(LOOK) {
                Ok(bytes) => self.decoder.push(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.line.ended(self.session, b""));
                }
            }
            // Only complete frames count: bytes without a frame could arrive for ever.
            for frame in self.decoder.by_ref() {
                self.last_heard = Instant::now();
                self.frames.push_back(frame);
            }
        }
        if self.last_heard.elapsed() > self.silence {
            let reason = format!(
                "nothing was heard from it for {} s: it reverts the changes by itself",
                self.silence.as_secs()
            );
            return Err(self.session.failed(SessionFault::Deadline, &reason));
        }
        let Some(frame) = self.frames.pop_front() else {
            return Ok(None);
        };
        Ok(Reply::read(&frame).map(|reply| (frame.request, reply)))
    }
}
