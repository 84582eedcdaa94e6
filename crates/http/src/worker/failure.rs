//! Handles requests that failed.

use super::Worker;
use crate::answer::Wrong;
use crate::connection::ConnectionPhase;
use crate::stream::Broken;
use assay_model::web::FailureKind;
use std::io;
use std::time::Duration;

/// Pause in nanoseconds after a failure on a connection without an answer, to limit the rate against a dead server.
pub(super) const REST: u64 = 10_000_000;

/// Time in nanoseconds without traffic after which a connection counts as idle. Servers close idle connections
/// after seconds (nginx 75 s, Apache and Node.js 5 s), and a request may arrive at the same time. If a server
/// closes a connection that was busy more recently, it dropped the request.
const IDLE: u64 = 500_000_000;

/// Returns whether a connection was idle before a request that began at `begun`, when its last answer
/// ended at `answered`. All times are nanoseconds from the start of the load.
pub(super) fn was_idle(answered: u64, begun: u64) -> bool {
    begun.saturating_sub(answered) >= IDLE
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

    /// Handles a connection that failed or broke before the answer was complete.
    pub(super) fn broken(&mut self, at: usize, error: Broken) {
        let connection = &mut self.connections[at];
        let request = &self.load.requests[connection.which];
        let idle = connection.answers > 0 && was_idle(connection.answered, connection.begun);
        if idle && !connection.reader.started() && request.repeatable {
            // The server closed an idle connection: the request is sent again on a new one, and the time
            // counts (RFC 9112, section 9.3.1).
            self.tally.reopened += 1;
            connection.close();
            let now = self.now;
            return self.connect(at, now);
        }
        let (kind, why) = classify(&error, connection.phase, connection.reader.started());
        self.fail(at, kind, || why);
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

/// Describes a request that exceeds the limit.
pub(super) fn late(status: Option<u16>, limit: Duration) -> String {
    match status {
        None => format!("nothing within {limit:?}"),
        Some(status) => format!("status {status}, and no end of the body within {limit:?}"),
    }
}

/// Returns the kind of failure in a connection phase. `started` says whether part of the answer has arrived.
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
