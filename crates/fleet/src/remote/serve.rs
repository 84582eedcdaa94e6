//! The server on the remote machine. It receives files, runs the verb, and sends its output and results. It ends
//! everything when the client is silent for too long.

use crate::line::listen;
use crate::remote::guard::Guard;
use crate::remote::outbox::Outbox;
use crate::remote::records::{LONGEST, Records};
use crate::remote::{HEARTBEAT, boot};
use assay_host::process::{Dies, ProgramEnd, Running};
use assay_model::Machine;
use assay_protocol::{AgentRequest, CHUNK, Frame, FrameDecoder, PathLook, Reply};
use assay_store::Store;
use rustix::process::Signal;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Maximum time for a verb to roll back its changes, because restarting a service may take minutes. After this time,
/// the server rolls back from the journal.
const TO_END: Duration = Duration::from_secs(180);

/// File name that requests use for the document of records.
pub(crate) const RECORDS: &[u8] = b"records";

/// Returns the path at which a file with this name is stored.
#[must_use]
pub fn file(dir: &Path, name: &str) -> PathBuf {
    dir.join("in").join(name)
}

/// Resources that the server receives from its caller.
pub struct Here<'a> {
    /// Private directory that contains the store and the received files.
    pub dir: &'a Path,
    /// Maximum time without any message from the client.
    pub silence: Duration,
    /// Version of this program.
    pub version: &'a str,
    /// Machine on which the server runs; `None` if unknown.
    pub machine: Option<Machine>,
    /// Flag that a signal handler sets to end the server.
    pub stop: Arc<AtomicBool>,
    /// Watchdog that rolls everything back if this process cannot do so.
    pub guard: Guard,
    /// Rolls back the changes of a verb that was killed.
    pub take_back: &'a mut dyn FnMut(),
}

/// Serves until the connection ends or is silent for too long.
///
/// # Errors
/// The connection or the directory cannot be used. When the error is returned, everything has been rolled back.
pub fn serve(
    here: Here<'_>,
    line: impl Read + Send + 'static,
    mut out: impl Write + Send + 'static,
) -> io::Result<()> {
    fs::create_dir_all(here.dir.join("in"))?;
    out.write_all(boot::ready(here.version).as_bytes())?;
    out.flush()?;
    let mut serving = Serving {
        out: Outbox::to(out),
        verb: None,
        put: None,
        heard: Instant::now(),
        said: Instant::now(),
        here,
    };
    let heard = listen(line);
    let ended = serving.serve(&heard);
    serving.end();
    ended
}

/// The verb that the server is running for the client.
struct Verb {
    running: Running,
    request: u64,
    /// Standard input of the verb; `None` if it has none.
    input: Option<Outbox>,
    /// Threads that forward standard output and standard error. The end of the verb is reported only after these
    /// threads have finished.
    pumps: Vec<std::thread::JoinHandle<()>>,
    /// Exit status of the verb and the time of its end; `None` while it runs.
    ended: Option<(ProgramEnd, Instant)>,
}

impl Verb {
    /// Makes the verb end by SIGINT, followed by SIGCONT, because a stopped process (signal(7)) handles a signal only
    /// after SIGCONT.
    fn told_to_end(&self) {
        self.running.signal(Signal::INT);
        self.running.signal(Signal::CONT);
    }
}

struct Serving<'a> {
    here: Here<'a>,
    out: Outbox,
    verb: Option<Verb>,
    put: Option<Put>,
    heard: Instant,
    said: Instant,
}

/// A file that is being received.
struct Put {
    file: File,
    bytes: usize,
    records: bool,
}

impl Serving<'_> {
    fn serve(&mut self, heard: &Receiver<Vec<u8>>) -> io::Result<()> {
        let mut decoder = FrameDecoder::default();
        loop {
            let wait = match self.verb.is_some() {
                true => Duration::from_millis(50),
                false => Duration::from_millis(500),
            };
            match heard.recv_timeout(wait) {
                Ok(bytes) => {
                    self.heard = Instant::now();
                    decoder.push(&bytes);
                    for frame in decoder.by_ref() {
                        self.handle(&frame);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            self.here.guard.goes_on();
            self.look_after_the_verb()?;
            if self.said.elapsed() >= HEARTBEAT && self.out.waits() == 0 {
                self.said = Instant::now();
                self.out.put(Reply::Alive.frame(0).encode());
            }
            let silent = self.heard.elapsed() > self.here.silence;
            if silent || self.out.is_gone() || self.here.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    fn send(&self, request: u64, reply: &Reply) {
        self.out.put(reply.frame(request).encode());
    }

    fn handle(&mut self, frame: &Frame) {
        let Some(request) = AgentRequest::read(frame) else {
            return;
        };
        let number = frame.request;
        let done = match request {
            AgentRequest::Hello => {
                self.send(number, &Reply::Hello);
                return;
            }
            AgentRequest::Run { argv, input, .. } => match self.begin(argv, input, number) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            AgentRequest::Input(bytes) => {
                let verb = self.verb.as_ref().filter(|verb| verb.request == number);
                if let Some(input) = verb.and_then(|verb| verb.input.as_ref()) {
                    match bytes.is_empty() {
                        true => input.close(),
                        false => input.put(bytes),
                    }
                }
                return;
            }
            AgentRequest::Interrupt => {
                if let Some(verb) = &self.verb {
                    verb.told_to_end();
                }
                return;
            }
            AgentRequest::Kill => {
                if let Some(verb) = &self.verb {
                    verb.running.signal(Signal::KILL);
                }
                return;
            }
            AgentRequest::Put { path, .. } => match self.open(&path) {
                Ok(put) => {
                    self.put = Some(put);
                    return;
                }
                Err(error) => Err(error),
            },
            AgentRequest::Data(bytes) => match self.data(&bytes) {
                Ok(false) => return,
                Ok(true) => Ok(()),
                Err(error) => {
                    self.put = None;
                    Err(error)
                }
            },
            AgentRequest::Look(PathLook::Get, name) if name == RECORDS => self.records(number),
            AgentRequest::Alive => return,
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        self.send(
            number,
            &match done {
                Ok(()) => Reply::Done(Vec::new()),
                Err(error) => Reply::Failed {
                    errno: error.raw_os_error().map_or(0, i32::unsigned_abs),
                    reason: error.to_string().into_bytes(),
                },
            },
        );
    }

    /// Starts a verb, which is this program with the store in the private directory.
    fn begin(&mut self, argv: Vec<Vec<u8>>, input: bool, request: u64) -> io::Result<()> {
        if self.verb.is_some() {
            return Err(io::Error::other("something runs already"));
        }
        let (out, out_end) = io::pipe()?;
        let (err, err_end) = io::pipe()?;
        let mut command = Command::new("/proc/self/exe");
        command
            .args(argv.into_iter().map(OsString::from_vec))
            .env("ASSAY_STORE", store_path(self.here.dir))
            .stdout(Stdio::from(OwnedFd::from(out_end)))
            .stderr(Stdio::from(OwnedFd::from(err_end)));
        let (running, input) = match input {
            false => (Running::start(command, Dies::WithAssay)?, None),
            true => {
                let (read, write) = io::pipe()?;
                let read = File::from(OwnedFd::from(read));
                let running = Running::start_with_input(command, read, Dies::WithAssay)?;
                // A verb that does not read its input must not block the server.
                (running, Some(Outbox::to(write)))
            }
        };
        let pumps = vec![
            pump(out, Reply::Out, request, &self.out),
            pump(err, Reply::Err, request, &self.out),
        ];
        self.verb = Some(Verb {
            running,
            request,
            input,
            pumps,
            ended: None,
        });
        Ok(())
    }

    /// Checks whether the verb has ended. If it has, reports the end to the client.
    fn look_after_the_verb(&mut self) -> io::Result<()> {
        let Some(verb) = &mut self.verb else {
            return Ok(());
        };
        if verb.ended.is_none() {
            verb.ended = verb.running.ended()?.map(|ended| (ended, Instant::now()));
        }
        let Some((ended, at)) = verb.ended else {
            return Ok(());
        };
        // A process that outlives the verb may keep its outputs open for ever. Output that waits for room is
        // sent first.
        let said = verb.pumps.iter().all(std::thread::JoinHandle::is_finished);
        if !said && (at.elapsed() < Duration::from_secs(2) || self.out.waits() > 0) {
            return Ok(());
        }
        let request = verb.request;
        if let Some(input) = &verb.input {
            input.close();
        }
        self.verb = None;
        if ended.status.code().is_none() {
            (self.here.take_back)();
        }
        self.send(request, &Reply::Exit(ended.code()));
        Ok(())
    }

    fn open(&mut self, path: &[u8]) -> io::Result<Put> {
        let name = std::str::from_utf8(path).unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        Ok(Put {
            file: options.open(file(self.here.dir, name))?,
            bytes: 0,
            records: path == RECORDS,
        })
    }

    /// Receives a chunk of a file. Returns whether the file is complete.
    fn data(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let Some(put) = &mut self.put else {
            return Err(io::Error::other("no file is put"));
        };
        put.bytes += bytes.len();
        if put.bytes > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        put.file.write_all(bytes)?;
        if !bytes.is_empty() {
            return Ok(false);
        }
        let records = put.records;
        self.put = None;
        if records {
            self.take_records()?;
        }
        Ok(true)
    }

    /// Imports the records that a verb will continue into the local store.
    fn take_records(&self) -> io::Result<()> {
        let name = std::str::from_utf8(RECORDS).unwrap_or_default();
        let bytes = fs::read(file(self.here.dir, name))?;
        let mut records = Records::read(&bytes).map_err(io::Error::other)?;
        let store = Store::open(&store_path(self.here.dir)).map_err(io::Error::other)?;
        let mut store = store.on(self.here.machine.clone());
        records.keep(&mut store, &[]).map_err(io::Error::other)
    }

    /// Sends the results that were measured until now to the client.
    fn records(&self, request: u64) -> io::Result<()> {
        let path = store_path(self.here.dir);
        let store = Store::open_existing(&path).map_err(io::Error::other)?;
        let machine = self.here.machine.clone();
        let records = match store {
            Some(store) => Records::of(&store, machine).map_err(io::Error::other)?,
            None => Records {
                machine,
                ..Records::default()
            },
        };
        let bytes = records.write().map_err(io::Error::other)?;
        for piece in bytes.chunks(CHUNK) {
            self.send(request, &Reply::Piece(piece.to_vec()));
        }
        Ok(())
    }

    /// Ends the server, because the client is gone or everything is done.
    fn end(mut self) {
        if let Some(mut verb) = self.verb.take() {
            self.out.give_up();
            verb.told_to_end();
            let begun = Instant::now();
            while matches!(verb.running.wait(Duration::from_millis(200)), Ok(false))
                && begun.elapsed() < TO_END
            {
                self.here.guard.goes_on();
            }
            let _ = verb.running.kill();
        }
        (self.here.take_back)();
        self.out.flush(Duration::from_secs(1));
        let _ = fs::remove_dir_all(self.here.dir);
        self.here.guard.dismiss();
    }
}

fn store_path(dir: &Path) -> PathBuf {
    dir.join("store.db")
}

/// Forwards the output of a pipe until the pipe is closed.
fn pump(
    mut pipe: PipeReader,
    reply: fn(Vec<u8>) -> Reply,
    request: u64,
    out: &Outbox,
) -> std::thread::JoinHandle<()> {
    let out = out.clone();
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let frame = reply(buffer[..count].to_vec()).frame(request);
            out.put_when_there_is_room(frame.encode());
        }
    })
}
