//! Why something could not be found out.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why a host could not be asked, or did not answer what was asked. Each is about one connection unless
/// it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// What was given is no host and port.
    #[error("`{given}`: {expected}; write HOST, HOST:PORT or [ADDRESS]:PORT")]
    Address {
        /// What was given.
        given: String,
        /// What is wrong with it.
        expected: &'static str,
    },
    /// The name has no address.
    #[error(
        "{host}: no address is known for that name; is it spelt right, and does `getent hosts {host}` find it?"
    )]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// The resolver did not answer.
    #[error("{host}: the resolver did not answer within {} s; give an address instead of the name", .after.as_secs_f32())]
    ResolveTime {
        /// The name.
        host: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// No connection came about.
    #[error(
        "{address}: no connection ({source}); does the service listen there, and does a firewall let you through?"
    )]
    Connect {
        /// Where to.
        address: SocketAddr,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Nothing, or too little, came in time.
    #[error("no whole answer within {} s while waiting for {waiting_for}", .after.as_secs_f32())]
    Time {
        /// What was waited for.
        waiting_for: &'static str,
        /// How long.
        after: Duration,
    },
    /// The time for the whole host is over.
    #[error("the time for this host is over ({} s); --time gives it more", .after.as_secs_f32())]
    Deadline {
        /// How long it had.
        after: Duration,
    },
    /// The server hung up.
    #[error("the server closed the connection while {waiting_for} was due")]
    Closed {
        /// What was waited for.
        waiting_for: &'static str,
    },
    /// The server sends more than any honest answer holds.
    #[error("more than {limit} bytes came while waiting for {waiting_for}")]
    TooMuch {
        /// What was waited for.
        waiting_for: &'static str,
        /// In bytes.
        limit: usize,
    },
    /// What came is not of the protocol.
    #[error("this is not {protocol}: {what}")]
    Foreign {
        /// What was expected.
        protocol: &'static str,
        /// What came.
        what: String,
    },
    /// The kernel reports an error.
    #[error("{source} while waiting for {waiting_for}")]
    Io {
        /// What was waited for.
        waiting_for: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

impl ProbeError {
    /// An answer that is not of the protocol.
    #[must_use]
    pub fn foreign(protocol: &'static str, what: impl Into<String>) -> Self {
        Self::Foreign {
            protocol,
            what: what.into(),
        }
    }
}

/// The first bytes of an answer, for people: printable ones as they are.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    let some = &bytes[..bytes.len().min(40)];
    let dots = if bytes.len() > some.len() { "…" } else { "" };
    format!("`{}`{dots}", some.escape_ascii())
}
