//! HTTP/2 as a client speaks it (RFC 9113): bytes in, answers out, and bytes to be sent. Nothing here
//! touches a socket or a clock.
//!
//! Every stream is of one request. What a server must not do is an error that names it; what it may send
//! without end (interim heads, continuations, pings) is counted, so that memory is bounded.

mod frame;
pub(crate) mod hpack;
mod huffman;
mod names;
mod session;

pub use session::{H2Fault, H2Session, StreamEvent};

#[cfg(test)]
mod tests;
