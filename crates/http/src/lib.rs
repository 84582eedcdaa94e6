//! The HTTP load generator: closed and open loop, honest latencies, every failure counted apart.
//!
//! It executes what it is told and returns what it saw, of the server and of itself: it chooses nothing,
//! prints nothing and judges nothing. What it costs is kept low, so that it is rarely the limit: one
//! thread waits for many connections (epoll), requests are built once, a head that was seen before is
//! recognised and not parsed again, a body that nobody looks at is thrown away in the kernel, and the
//! clock is read once for each wake-up.
//!
//! What makes figures honest:
//! - An open loop's times are fixed before the start, and latency is from the intended time.
//! - A failed request is in no rate and no latency, and counts as slower than any answer.
//! - How late the generator was, its CPU time, and the time it waited for a CPU are in the result.
#![allow(
    clippy::disallowed_methods,
    reason = "a load generator reads the clock, and what the kernel says of its own threads"
)]

pub mod answer;
mod connection;
mod exchange;
pub mod h2;
mod histogram;
mod load;
mod probe;
mod request;
mod schedule;
mod stream;
mod stretches;
mod tally;
mod tls;
pub mod url;
mod worker;

pub use exchange::{ConnectionSlot, Exchanged, Manner};
pub use load::{HttpLoad, Live, LoadError, MOST_CONNECTIONS, run};
pub use probe::{ProbeError, Probed, probe};
pub use request::{Expect, Method, Request};
pub use rustls::Error as RustlsError;
pub use schedule::Listed;
pub use tls::{AnyCertificate, Tls, TlsError, Trust};
pub use url::Url;
