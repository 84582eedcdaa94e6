//! Limits the time and size of each answer of a PostgreSQL server.
//!
//! The client library has no such limits: it waits forever and buffers everything that it receives. Therefore the
//! library connects to a socket of this process, which forwards the traffic and counts the messages (PostgreSQL,
//! "Message Formats").

mod messages;

use super::encryption::Encryption;
use super::tls_pump;
use messages::Messages;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval of the check for late answers.
const LOOK: Duration = Duration::from_millis(200);
/// Slowest supported connection in bytes per second, from which the time limit of a long answer follows.
const SLOWEST: u64 = 64 << 10;

/// Limits for the answers of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Time from the connection until the server accepts requests.
    pub(super) start: Duration,
    /// Time limit of an answer. The time that its bytes take at [`SLOWEST`] is added.
    pub(super) answer: Duration,
    /// Maximum size of an answer in bytes.
    pub(super) bytes: u64,
    /// Maximum number of bytes in unrequested messages, such as notices.
    pub(super) notices: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            answer: Duration::from_secs(120),
            bytes: 512 << 20,
            notices: 1 << 20,
        }
    }
}

/// Address at which a server listens.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Unix(PathBuf),
    Tcp {
        address: SocketAddr,
        /// Host name that the server's certificate must contain.
        name: String,
    },
}

/// A connection through the guard: its socket, and the reason if the guard closed the connection.
pub(super) struct Guard {
    dir: Option<tempfile::TempDir>,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    limits: Limits,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Number of answers that the server has not sent yet. The first is the answer to the connection request.
    awaited: u64,
    /// Whether the server has answered the connection request.
    started: bool,
    /// Time at which waiting for the next answer began.
    since: Instant,
    bytes: u64,
    notices: u64,
    reason: Option<String>,
}

impl Guard {
    /// Port number from which the name of the socket in [`Guard::dir`] is built.
    pub(super) const PORT: u16 = 5432;

    /// Connects to a server through its Unix socket or over TCP. Uses TLS if configured.
    pub(super) fn connect(
        place: &Place,
        encryption: Option<&Encryption>,
        within: Duration,
        limits: Limits,
    ) -> io::Result<Self> {
        let server = match place {
            Place::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
            Place::Tcp { address, name } => {
                let mut stream = TcpStream::connect_timeout(address, within)?;
                stream.set_nodelay(true)?;
                let begun = encryption.map(|tls| tls.begin(&mut stream, name, within));
                match begun.transpose()?.flatten() {
                    None => Socket::Tcp(stream),
                    Some(connection) => {
                        let (near, far) = UnixStream::pair()?;
                        stream.set_write_timeout(Some(limits.answer))?;
                        far.set_write_timeout(Some(limits.answer))?;
                        std::thread::spawn(move || tls_pump::pass(connection, &stream, &far));
                        Socket::Unix(near)
                    }
                }
            }
        };
        server.set_timeouts(limits.answer)?;
        let dir = private_directory()?;
        let listener = UnixListener::bind(dir.path().join(format!(".s.PGSQL.{}", Self::PORT)))?;
        let inner = Inner {
            awaited: 1,
            started: false,
            since: Instant::now(),
            bytes: 0,
            notices: 0,
            reason: None,
        };
        let state = Arc::new(State {
            limits,
            inner: Mutex::new(inner),
        });
        let passing = Arc::clone(&state);
        std::thread::spawn(move || pass(&listener, server, &passing));
        Ok(Self {
            dir: Some(dir),
            state,
        })
    }

    /// Returns the directory that contains the socket for the client library.
    pub(super) fn dir(&self) -> &Path {
        self.dir.as_ref().map_or(Path::new(""), |dir| dir.path())
    }

    /// Removes the directory after the client has connected.
    pub(super) fn remove_dir(&mut self) {
        self.dir = None;
    }

    /// Returns why the guard closed the connection; `None` if it did not.
    pub(super) fn reason(&self) -> Option<String> {
        self.state.lock().reason.clone()
    }
}

/// Creates a directory that only this user can enter. A process that connects to the socket in this directory acts as
/// this user.
fn private_directory() -> io::Result<tempfile::TempDir> {
    let usual = std::env::temp_dir();
    let places = [usual.as_path(), Path::new("/tmp"), Path::new("/dev/shm")];
    let mut failed = None;
    // A socket's path has at most 108 bytes.
    for place in places.iter().filter(|place| place.as_os_str().len() < 60) {
        let made = tempfile::Builder::new().prefix(".assay-").tempdir_in(place);
        match made {
            Ok(dir) => return Ok(dir),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| ErrorKind::InvalidInput.into()))
}

/// Forwards the traffic between the client library and the server.
fn pass(listener: &UnixListener, server: Socket, state: &State) {
    let done = (|| -> io::Result<()> {
        let (client, _) = listener.accept()?;
        let (mut to_server, mut from_client) = (server.try_clone()?, client.try_clone()?);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut messages = Messages::of_client();
                let mut buffer = [0; 16 << 10];
                while let Ok(count @ 1..) = from_client.read(&mut buffer) {
                    state.ask(&mut messages, &buffer[..count]);
                    if to_server.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
                to_server.shut_down();
            });
            let why = pass_answers(&server, &client, state);
            if let Some(why) = why {
                state.lock().reason.get_or_insert(why);
            }
            let _ = client.shutdown(Shutdown::Both);
            server.shut_down();
        });
        Ok(())
    })();
    // The client detects the end of its connection.
    drop(done);
}

/// Forwards answers until one side ends. Returns the reason if the guard closed the connection.
fn pass_answers(mut server: &Socket, mut client: &UnixStream, state: &State) -> Option<String> {
    let mut messages = Messages::of_server();
    let mut buffer = [0; 64 << 10];
    loop {
        let came = match server.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => &buffer[..count],
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => &[][..],
                _ => return None,
            },
        };
        if let Err(why) = state.answer(&mut messages, came) {
            return Some(why);
        }
        client.write_all(came).ok()?;
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the client's requests that the server must answer.
    fn ask(&self, messages: &mut Messages, bytes: &[u8]) {
        let mut inner = self.lock();
        messages.feed(bytes, &mut |kind, _| {
            // The server answers Sync, Query and FunctionCall with one ReadyForQuery each.
            if matches!(kind, b'S' | b'Q' | b'F') {
                if inner.awaited == 0 {
                    inner.begin();
                }
                inner.awaited += 1;
            }
        });
    }

    /// Counts the server's messages. The error describes the exceeded limit.
    fn answer(&self, messages: &mut Messages, bytes: &[u8]) -> Result<(), String> {
        let (mut inner, limits) = (self.lock(), self.limits);
        inner.bytes += bytes.len() as u64;
        let mut longest = 0;
        messages.feed(bytes, &mut |kind, length| {
            longest = longest.max(length);
            match kind {
                // ReadyForQuery.
                b'Z' => {
                    inner.awaited = inner.awaited.saturating_sub(1);
                    inner.started = true;
                    inner.begin();
                }
                // NoticeResponse, NotificationResponse, ParameterStatus.
                b'N' | b'A' | b'S' => inner.notices += length,
                _ => {}
            }
        });
        if inner.notices > limits.notices {
            let most = limits.notices >> 10;
            return Err(format!(
                "it sent more than {most} KiB that nobody asked for"
            ));
        }
        if inner.bytes.max(longest) > limits.bytes {
            let most = limits.bytes >> 20;
            return Err(format!("it answered with more than {most} MiB"));
        }
        let time = if inner.started {
            limits.answer
        } else {
            limits.start
        };
        let whole = time + Duration::from_secs(inner.bytes / SLOWEST);
        match inner.awaited > 0 && inner.since.elapsed() > whole {
            true => Err(format!(
                "it gave no whole answer within {} s",
                whole.as_secs()
            )),
            false => Ok(()),
        }
    }
}

impl Inner {
    fn begin(&mut self) {
        self.since = Instant::now();
        self.bytes = 0;
        self.notices = 0;
    }
}

/// Connection to the server, over TCP or a Unix socket.
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn set_timeouts(&self, write: Duration) -> io::Result<()> {
        let (read, write) = (Some(LOOK), Some(write));
        match self {
            Self::Unix(stream) => {
                stream.set_read_timeout(read)?;
                stream.set_write_timeout(write)
            }
            Self::Tcp(stream) => {
                stream.set_read_timeout(read)?;
                stream.set_write_timeout(write)
            }
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    fn shut_down(&self) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&*stream).read(into),
            Socket::Tcp(stream) => (&*stream).read(into),
        }
    }
}

#[cfg(test)]
mod tests;
