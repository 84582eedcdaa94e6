//! HTTP/2 client protocol (RFC 9113): processes received bytes, and returns answers and bytes to send, without
//! sockets or clocks.
//!
//! Every stream carries one request. A protocol violation of the server is an error that names it. Frames that
//! a server may send endlessly (interim heads, continuations, pings) are counted to limit memory.

mod frame;
pub(crate) mod hpack;
mod huffman;
mod names;
mod session;

pub use session::{H2Fault, H2Session, StreamEvent};

#[cfg(test)]
mod tests;
