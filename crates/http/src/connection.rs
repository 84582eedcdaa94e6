//! What is known of one connection of a load.

use crate::answer::Reader;
use crate::stream::Stream;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPhase {
    /// Free for a request of an open loop.
    Free,
    /// Of a closed loop: waiting until then, after a failure or before the first request.
    Resting(u64),
    Connecting,
    /// In the handshake of TLS.
    Shaking,
    Sending,
    Reading,
    /// No more requests.
    Over,
}

/// One place for a request under way.
pub struct Connection {
    pub stream: Option<Stream>,
    pub phase: ConnectionPhase,
    pub reader: Reader,
    /// Bytes of the request that are sent.
    pub sent: usize,
    /// Which request.
    pub which: usize,
    /// When it was due.
    pub intended: u64,
    /// When it began.
    pub begun: u64,
    /// When the connection was begun.
    pub dialled: u64,
    /// Answers that came over this stream.
    pub answers: u32,
    /// When the last answer over this stream ended.
    pub answered: u64,
    /// Counts the streams, so that an event of a closed one is known as such.
    pub generation: u32,
    /// The server has closed its side.
    pub hung_up: bool,
    /// Of HTTP/2: over which link the request goes.
    pub link: usize,
    /// Of HTTP/2: the request was sent a second time.
    pub again: bool,
}

impl Connection {
    pub fn new(phase: ConnectionPhase) -> Self {
        Self {
            stream: None,
            phase,
            reader: Reader::default(),
            sent: 0,
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

    /// Whether a request is under way.
    pub fn is_busy(&self) -> bool {
        use ConnectionPhase::{Connecting, Reading, Sending, Shaking};
        matches!(self.phase, Connecting | Shaking | Sending | Reading)
    }

    /// Closes the stream: in order when the server has closed its side, else with a reset.
    pub fn close(&mut self) {
        if let Some(stream) = self.stream.take()
            && !self.hung_up
        {
            stream.cut();
        }
        self.hung_up = false;
        self.answers = 0;
        self.generation = self.generation.wrapping_add(1);
    }
}
