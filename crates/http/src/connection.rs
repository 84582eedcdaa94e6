//! State of one connection of a load. With HTTP/2, state of one stream.

use crate::answer::Reader;
use crate::stream::Stream;

/// What a connection does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPhase {
    /// Open loop: the connection is available for a request.
    Free,
    /// Closed loop: the connection pauses until this time in nanoseconds, after a failure or before the first request.
    Resting(u64),
    Connecting,
    /// The TLS handshake is running.
    Shaking,
    Sending,
    Reading,
    /// The connection sends no more requests, because the load ends.
    Over,
}

/// A slot for one request in flight, with the connection that carries it.
pub struct Connection {
    pub stream: Option<Stream>,
    pub phase: ConnectionPhase,
    pub reader: Reader,
    /// Number of bytes of the request that were sent.
    pub sent: usize,
    /// Number of bytes of the answer that have arrived.
    pub came: u64,
    /// Number of received bytes from which the kernel wakes the thread (`SO_RCVLOWAT`).
    pub marked: u32,
    /// Index of the request in the load.
    pub which: usize,
    /// Time at which the request was due. All times are in nanoseconds from the start of the load.
    pub intended: u64,
    /// Time at which sending the request began.
    pub begun: u64,
    /// Time at which opening the connection began.
    pub dialled: u64,
    /// Number of answers that this stream has received.
    pub answers: u32,
    /// Time at which the last answer of this stream ended.
    pub answered: u64,
    /// Number of the stream. An event that carries another number belongs to an earlier, closed stream and is ignored.
    pub generation: u32,
    /// Whether the server has closed its side.
    pub hung_up: bool,
    /// Index of the connection that carries the request; only with HTTP/2.
    pub link: usize,
    /// Whether the request was sent a second time; only with HTTP/2.
    pub again: bool,
}

impl Connection {
    pub fn new(phase: ConnectionPhase) -> Self {
        Self {
            stream: None,
            phase,
            reader: Reader::default(),
            sent: 0,
            came: 0,
            marked: 1,
            which: 0,
            intended: 0,
            begun: 0,
            dialled: 0,
            answers: 0,
            answered: 0,
            generation: 0,
            hung_up: false,
            link: 0,
            again: false,
        }
    }

    /// Returns whether a request is in flight.
    pub fn is_busy(&self) -> bool {
        use ConnectionPhase::{Connecting, Reading, Sending, Shaking};
        matches!(self.phase, Connecting | Shaking | Sending | Reading)
    }

    /// Closes the stream. The close is normal if the server has closed its side, else a reset.
    pub fn close(&mut self) {
        if let Some(stream) = self.stream.take()
            && !self.hung_up
        {
            stream.cut();
        }
        self.hung_up = false;
        self.answers = 0;
        self.marked = 1;
        self.generation = self.generation.wrapping_add(1);
    }
}
