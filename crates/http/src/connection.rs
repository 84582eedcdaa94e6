//! State of one connection of a load; with HTTP/2, of one stream.

use crate::answer::Reader;
use crate::stream::Stream;

/// Phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPhase {
    /// Open loop: available for a request.
    Free,
    /// Closed loop: pauses until this time in nanoseconds, after a failure or before the first request.
    Resting(u64),
    Connecting,
    /// During the TLS handshake.
    Shaking,
    Sending,
    Reading,
    /// Sends no more requests, because the load ends.
    Over,
}

/// A slot for one request in flight.
pub struct Connection {
    pub stream: Option<Stream>,
    pub phase: ConnectionPhase,
    pub reader: Reader,
    /// Bytes of the request that are already sent.
    pub sent: usize,
    /// Bytes of the answer that have arrived.
    pub came: u64,
    /// Number of received bytes from which the kernel wakes the thread (`SO_RCVLOWAT`).
    pub marked: u32,
    /// Index of the request.
    pub which: usize,
    /// Due time of the request. All times are in nanoseconds from the start of the load.
    pub intended: u64,
    /// Time at which the request was started.
    pub begun: u64,
    /// Time at which the connection was started.
    pub dialled: u64,
    /// Number of answers over this stream.
    pub answers: u32,
    /// Time of the last answer over this stream.
    pub answered: u64,
    /// Number of the stream. An event with another number belongs to a closed stream and is ignored.
    pub generation: u32,
    /// Whether the server has closed its side.
    pub hung_up: bool,
    /// HTTP/2: index of the connection that carries the request.
    pub link: usize,
    /// HTTP/2: whether the request was sent a second time.
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

    /// Closes the stream: normally if the server has closed its side, else with a reset.
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
