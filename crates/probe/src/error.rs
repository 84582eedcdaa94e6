//! Reasons why a probe has no result.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Reason why a probe has no result. Except where its description names another scope, an error concerns a single
/// connection.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The text from the user is not a valid host and port.
    #[error("`{given}`: {expected}; write HOST, HOST:PORT or [ADDRESS]:PORT")]
    Address {
        /// Text from the user.
        given: String,
        /// Description of the expected syntax.
        expected: &'static str,
    },
    /// The host name has no address.
    #[error(
        "{host}: no address is known for that name; is it spelt right, and does `getent hosts {host}` find it?"
    )]
    Resolve {
        /// Host name from the user.
        host: String,
        /// Error of the resolver.
        #[source]
        source: io::Error,
    },
    /// The resolver did not answer in time.
    #[error("{host}: the resolver did not answer within {} s; give an address instead of the name", .after.as_secs_f32())]
    ResolveTime {
        /// Host name from the user.
        host: String,
        /// Time limit of the lookup.
        after: Duration,
    },
    /// The connection could not be opened.
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
        /// Time limit that was exceeded.
        after: Duration,
    },
    /// The time limit for the whole host has passed.
    #[error("the time for this host is over ({} s); --time gives it more", .after.as_secs_f32())]
    Deadline {
        /// Time limit that was exceeded.
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
        /// Maximum number of bytes that are read.
        limit: usize,
    },
    /// The answer does not follow the expected protocol.
    #[error("this is not {protocol}: {what}")]
    Foreign {
        /// Name of the expected protocol.
        protocol: &'static str,
        /// Description of the answer, with its first bytes.
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
    /// Builds [`ProbeError::Foreign`] with a description of the answer.
    #[must_use]
    pub fn foreign(protocol: &'static str, what: impl Into<String>) -> Self {
        Self::Foreign {
            protocol,
            what: what.into(),
        }
    }
}

/// Formats the first bytes of an answer for users. Escapes all bytes that are not printable characters.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    let some = &bytes[..bytes.len().min(40)];
    let dots = if bytes.len() > some.len() { "…" } else { "" };
    format!("`{}`{dots}", some.escape_ascii())
}
