//! Errors of a probe.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Reasons why a probe has no result. An error is about one connection, unless its description names another
/// scope.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The given text is not a valid host and port.
    #[error("`{given}`: {expected}; write HOST, HOST:PORT or [ADDRESS]:PORT")]
    Address {
        /// The given text.
        given: String,
        /// Description of the syntax error.
        expected: &'static str,
    },
    /// The host name has no address.
    #[error(
        "{host}: no address is known for that name; is it spelt right, and does `getent hosts {host}` find it?"
    )]
    Resolve {
        /// The host name.
        host: String,
        /// Error of the resolver.
        #[source]
        source: io::Error,
    },
    /// The resolver did not answer in time.
    #[error("{host}: the resolver did not answer within {} s; give an address instead of the name", .after.as_secs_f32())]
    ResolveTime {
        /// The host name.
        host: String,
        /// Time limit of the lookup.
        after: Duration,
    },
    /// The connection failed.
    #[error(
        "{address}: no connection ({source}); does the service listen there, and does a firewall let you through?"
    )]
    Connect {
        /// Address of the server.
        address: SocketAddr,
        /// Error of the kernel.
        #[source]
        source: io::Error,
    },
    /// The answer did not arrive completely within the time limit.
    #[error("no whole answer within {} s while waiting for {waiting_for}", .after.as_secs_f32())]
    Time {
        /// Name of the expected answer.
        waiting_for: &'static str,
        /// The time limit.
        after: Duration,
    },
    /// The time limit for the whole host has passed.
    #[error("the time for this host is over ({} s); --time gives it more", .after.as_secs_f32())]
    Deadline {
        /// The time limit.
        after: Duration,
    },
    /// The server closed the connection.
    #[error("the server closed the connection while {waiting_for} was due")]
    Closed {
        /// Name of the expected answer.
        waiting_for: &'static str,
    },
    /// The server sent more bytes than a valid answer has.
    #[error("more than {limit} bytes came while waiting for {waiting_for}")]
    TooMuch {
        /// Name of the expected answer.
        waiting_for: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer does not follow the protocol.
    #[error("this is not {protocol}: {what}")]
    Foreign {
        /// The expected protocol.
        protocol: &'static str,
        /// Description of the answer.
        what: String,
    },
    /// Sending or receiving failed.
    #[error("{source} while waiting for {waiting_for}")]
    Io {
        /// Name of the expected answer.
        waiting_for: &'static str,
        /// Error of the kernel.
        #[source]
        source: io::Error,
    },
}

impl ProbeError {
    /// Builds [`ProbeError::Foreign`] for an answer that does not follow the protocol.
    #[must_use]
    pub fn foreign(protocol: &'static str, what: impl Into<String>) -> Self {
        Self::Foreign {
            protocol,
            what: what.into(),
        }
    }
}

/// Formats the first bytes of an answer for users. Printable characters stay unchanged; others are escaped.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    let some = &bytes[..bytes.len().min(40)];
    let dots = if bytes.len() > some.len() { "…" } else { "" };
    format!("`{}`{dots}", some.escape_ascii())
}
