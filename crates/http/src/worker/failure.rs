//! Handles requests that failed.

use super::Worker;
use crate::answer::Wrong;
use crate::connection::ConnectionPhase;
use crate::stream::{Broken, Stream};
use assay_host::tcp_info::{has_peer_received_all, is_closed_by_peer};
use assay_model::web::FailureKind;
use std::io;
use std::time::Duration;

/// Pause in nanoseconds after a failure on a connection that received no answer. The pause limits the request rate
/// against a server that is down.
pub(super) const REST: u64 = 10_000_000;

/// Time in nanoseconds without traffic after which a connection counts as idle. Servers close idle connections after
/// seconds (nginx 75 s, Apache and Node.js 5 s). A request may be sent at the same moment, which is not a failure of
/// the server. If a server closes a connection that was busy more recently than this time, the server dropped the
/// request.
const IDLE: u64 = 500_000_000;
/// Time in nanoseconds after which a connection counts as idle if the kernel knows that the server has not received the
/// request. The shortest usual setting of servers is 100 ms.
const RESTED: u64 = 50_000_000;

/// Time in nanoseconds after which a reset without an earlier close counts as the end of an idle connection. Firewalls
/// and load balancers forget idle connections after a while; servers close their connections normally.
const FORGOTTEN: u64 = 5_000_000_000;

/// Returns whether a connection was idle for at least `least` before a request. The last answer ended at `answered`,
/// and the request began at `begun`. All times are in nanoseconds from the start of the load.
fn was_idle(answered: u64, begun: u64, least: u64) -> bool {
    begun.saturating_sub(answered) >= least
}

/// Returns whether the server's kernel has acknowledged all bytes of a connection; `None` if this is unknown.
pub(super) fn has_received_all(stream: Option<&Stream>) -> Option<bool> {
    has_peer_received_all(&stream?.tcp)
}

/// Returns whether the server closed an idle connection while the request was on its way, so that the server did not
/// drop the request. `received` is whether the server's kernel acknowledged the request. A server that drops a request
/// has received it before. A server that resets the connection also drops a request, before its kernel acknowledges
/// anything.
pub(super) fn has_crossed_end(
    received: Option<bool>,
    is_reset: bool,
    answered: u64,
    begun: u64,
) -> bool {
    match received {
        Some(true) => false,
        Some(false) if is_reset => was_idle(answered, begun, FORGOTTEN),
        Some(false) => was_idle(answered, begun, RESTED),
        None => was_idle(answered, begun, IDLE),
    }
}

/// Returns whether the connection was reset without an earlier close. After an earlier close, the kernel reports a
/// broken pipe.
pub(super) fn is_reset(error: &Broken) -> bool {
    matches!(error, Broken::Io(error) if error.kind() == io::ErrorKind::ConnectionReset)
}

/// Returns whether the server has closed a connection that was idle before a request that begins at `begun`.
pub(super) fn has_ended_at_rest(stream: &Stream, answered: u64, begun: u64) -> bool {
    was_idle(answered, begun, RESTED) && is_closed_by_peer(&stream.tcp) == Some(true)
}

impl Worker<'_> {
    /// Ends a request that takes too long.
    pub(super) fn expire(&mut self, at: usize) {
        let connection = &self.connections[at];
        let kind = match connection.phase {
            ConnectionPhase::Connecting | ConnectionPhase::Shaking => FailureKind::ConnectTimeout,
            _ => FailureKind::TimedOut,
        };
        let status = connection.reader.status();
        let limit = self.load.limit;
        self.fail(at, kind, || late(status, limit));
    }

    pub(super) fn wrong(&mut self, at: usize, wrong: Wrong) {
        match wrong {
            Wrong::Nothing => self.broken(at, io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Wrong::Short => self.fail(at, FailureKind::ShortBody, || {
                "the connection was closed in the middle of the answer".to_owned()
            }),
            Wrong::Form(why) => self.fail(at, FailureKind::NotHttp, || why.to_owned()),
        }
    }

    /// Handles a connection that failed or was closed before the answer was complete.
    pub(super) fn broken(&mut self, at: usize, error: Broken) {
        let connection = &mut self.connections[at];
        let request = &self.load.requests[connection.which];
        let received = has_received_all(connection.stream.as_ref());
        let crossed = connection.answers > 0
            && has_crossed_end(
                received,
                is_reset(&error),
                connection.answered,
                connection.begun,
            );
        if crossed && !connection.reader.started() && request.repeatable {
            return self.reopen(at);
        }
        let (kind, why) = classify(&error, connection.phase, connection.reader.started());
        self.fail(at, kind, || why);
    }

    /// Sends a request again on a new connection, because the server closed an idle connection. The latency counts from
    /// the first attempt (RFC 9112, section 9.3.1).
    pub(super) fn reopen(&mut self, at: usize) {
        self.tally.reopened += 1;
        let connection = &mut self.connections[at];
        connection.close();
        let request = &self.load.requests[connection.which];
        connection
            .reader
            .restart(request.head, request.expect.hash.is_some());
        let now = self.now;
        self.connect(at, now);
    }

    pub(super) fn fail(&mut self, at: usize, kind: FailureKind, why: impl FnOnce() -> String) {
        let connection = &mut self.connections[at];
        // A server that answered on this connection is alive. A pause would be time in which the closed loop asks for
        // nothing, and the capacity of a server that drops requests would be that of the pauses.
        let alive = connection.answers > 0;
        connection.close();
        let intended = connection.intended;
        self.tally.fail(kind, intended, self.now, why);
        let rest = if alive { 0 } else { REST };
        self.ended(at, self.now + rest);
    }
}

/// Describes a request that exceeded the time limit, by the part of the answer that arrived.
pub(super) fn late(status: Option<u16>, limit: Duration) -> String {
    match status {
        None => format!("nothing within {limit:?}"),
        Some(status) => format!("status {status}, and no end of the body within {limit:?}"),
    }
}

/// Returns the kind of failure for a connection in this phase. `started` is whether a part of the answer has arrived.
pub(super) fn classify(
    error: &Broken,
    phase: ConnectionPhase,
    started: bool,
) -> (FailureKind, String) {
    use io::ErrorKind as K;
    let error = match error {
        Broken::Tls(error) => return (FailureKind::Tls, error.to_string()),
        Broken::Protocol(why) => return (FailureKind::NoHttp2, (*why).to_owned()),
        Broken::Io(error) => error,
    };
    let connecting = phase == ConnectionPhase::Connecting;
    let kind = match error.kind() {
        K::ConnectionRefused => FailureKind::Refused,
        K::HostUnreachable | K::NetworkUnreachable | K::NetworkDown => FailureKind::Unreachable,
        K::AddrNotAvailable => FailureKind::NoPort,
        K::TimedOut if connecting => FailureKind::ConnectTimeout,
        K::TimedOut => FailureKind::TimedOut,
        K::ConnectionReset | K::BrokenPipe | K::ConnectionAborted if connecting => {
            FailureKind::Refused
        }
        _ if phase == ConnectionPhase::Shaking => FailureKind::Tls,
        K::ConnectionReset | K::BrokenPipe | K::ConnectionAborted => match started {
            true => FailureKind::ShortBody,
            false => FailureKind::Reset,
        },
        K::UnexpectedEof => FailureKind::EarlyClose,
        _ => FailureKind::Local,
    };
    let why = match kind {
        FailureKind::EarlyClose => "the connection was closed without an answer".to_owned(),
        FailureKind::Tls => format!("in the handshake: {error}"),
        FailureKind::ShortBody => format!("in the middle of the answer: {error}"),
        _ => error.to_string(),
    };
    (kind, why)
}
