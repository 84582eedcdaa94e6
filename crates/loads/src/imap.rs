//! Load of IMAP sign-ins without TLS. A sign-in consists of connect, greeting, LOGIN, OK and LOGOUT (RFC 3501).

mod server_replies;
mod session;

use crate::Cancel;
use crate::measured::{Done, LoadError, LoadResult, Tally, Timing, finish, rest, thread_cpu};
use assay_host::resolve;
use assay_model::sample::Operation;
use std::fmt;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// A password. Messages do not contain it, and `Debug` prints dots instead.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Creates a secret from a password. Removes a line end after the password.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Parameters of the load of IMAP sign-ins.
#[derive(Clone, Debug)]
pub struct ImapRequest {
    /// Address of the server as `HOST:PORT`.
    pub address: String,
    /// User name of the mailbox.
    pub user: String,
    /// Password of the user.
    pub password: Secret,
    /// Number of simultaneous sessions, at least 1. Each session has its own thread.
    pub sessions: u32,
    /// Duration of the load, and time limit of a sign-in.
    pub timing: Timing,
}

/// Time limit for resolving the host name.
const RESOLVER: Duration = Duration::from_secs(30);

/// Resolves `HOST:PORT`. An IPv6 address must be in brackets.
fn resolve_addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    let wrong = |why: &str| format!("not an address as HOST:PORT ({why})");
    let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("no port"))?;
    let port = port
        .parse()
        .map_err(|_| wrong("the port is no number up to 65535"))?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    resolve::resolve_addresses(bare.unwrap_or(host), port, RESOLVER)
        .map_err(|error| wrong(&error.to_string()))
}

/// Signs in repeatedly. The latency of a sign-in is the time from the start of the connection to the tagged OK, without
/// the LOGOUT.
///
/// # Errors
/// An address or user name is invalid, or no sign-in succeeded. If some sign-ins succeeded, the failed ones are in
/// `LoadResult::errors`.
pub fn run(request: &ImapRequest, cancel: &Cancel) -> Result<LoadResult, LoadError> {
    let bad = |why: String| LoadError::Request {
        what: request.address.clone(),
        why,
    };
    let addresses = resolve_addresses(&request.address).map_err(&bad)?;
    if request.sessions == 0 {
        return Err(bad("no session to start".to_owned()));
    }
    if request.user.contains('\0') || request.password.0.contains(&0) {
        return Err(bad(
            "IMAP has no way to send a NUL byte in a name or password".to_owned(),
        ));
    }
    let begin = Instant::now();
    let mut tallies = Vec::new();
    let mut cpu = Duration::ZERO;
    thread::scope(|scope| {
        let session = || run_session(request, &addresses, begin, cancel);
        let threads: Vec<_> = (0..request.sessions)
            .map(|_| scope.spawn(session))
            .collect();
        for (tally, used) in threads.into_iter().filter_map(|thread| thread.join().ok()) {
            tallies.push(tally);
            cpu += used;
        }
    });
    finish(
        ("imap", Operation::Login),
        tallies,
        begin.elapsed(),
        cpu,
        cancel,
    )
}

fn run_session(
    request: &ImapRequest,
    addresses: &[SocketAddr],
    begin: Instant,
    cancel: &Cancel,
) -> (Tally, Duration) {
    let mut tally = Tally::new(&request.timing, begin);
    while tally.goes_on(Instant::now()) && !cancel.is_cancelled() {
        let start = Instant::now();
        let result = session::login(request, addresses, start, cancel);
        let end = Instant::now();
        let done: Done = match result {
            Ok(Some(session)) => {
                let bytes = session.logout();
                Ok(bytes)
            }
            Ok(None) => break,
            Err(error) => Err(error),
        };
        let failed = done.is_err();
        tally.record(start, end, done);
        if failed {
            rest(cancel);
        }
    }
    (tally, thread_cpu())
}
