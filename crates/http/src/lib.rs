//! HTTP load generator with closed and open loops. It counts each kind of failure separately, and measures latencies
//! without coordinated omission.
//!
//! The generator executes a given load, and returns observations of the server and of itself. It does not choose loads,
//! judge results or print. Its own cost is low, so that it is rarely the bottleneck: one thread serves many connections
//! (epoll), requests are encoded once, a repeated answer head is recognised and not parsed again, an unused body is
//! discarded in the kernel, and the clock is read once per wake-up.
//!
//! Rules for correct results:
//! - The send times of an open loop are fixed before the start, and latency is measured from the due time.
//! - A failed request does not contribute to rates and latencies, and counts as slower than any successful request.
//! - The result contains the generator's own delay, CPU time, and time spent waiting for a CPU.
#![allow(
    clippy::disallowed_methods,
    reason = "a load generator reads the clock, and what the kernel says of its own threads"
)]

pub mod answer;
mod connection;
mod counts_over_time;
mod exchange;
pub mod h2;
mod histogram;
mod load;
mod probe;
mod request;
mod schedule;
mod stream;
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
