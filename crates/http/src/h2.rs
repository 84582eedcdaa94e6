//! HTTP/2 client protocol (RFC 9113). Processes received bytes, and returns answers and bytes to send. Uses neither
//! sockets nor clocks.
//!
//! Every stream carries one request. If the server violates the protocol, the error describes the violated rule. Frames
//! that a server could send endlessly (interim heads, continuations, pings) are counted and limited, to bound memory.

mod frame;
pub(crate) mod hpack;
mod huffman;
mod names;
mod session;

pub use session::{H2Fault, H2Session, StreamEvent};

#[cfg(test)]
mod tests;
