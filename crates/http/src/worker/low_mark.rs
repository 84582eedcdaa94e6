//! Makes the kernel wake the thread once per answer in a closed loop, when the whole answer has arrived
//! (`SO_RCVLOWAT`). Otherwise a server that writes head and body separately would wake the thread twice.
//!
//! This only works if all answers have the same length. After the first answer of another length, the mark is not used
//! for the rest of the load. If that answer is shorter, it does not wake the thread. Then the periodic check of slow
//! requests reads it, at most [`super::LOOK`] late.

use super::{LOOK, Worker};
use crate::connection::ConnectionPhase;
use assay_host::receive_low_mark::set_receive_low_mark;
use assay_model::web::Protocol;

/// Number of answers of equal length after which the low-water mark is set.
const ENOUGH: u32 = 64;
/// Maximum length in bytes of an answer for which the low-water mark is set. A higher mark would change the receive
/// window.
const LONGEST: u64 = 16 << 10;
/// Maximum duration in nanoseconds of an answer for which the low-water mark is set. Slow answers rarely wake the
/// thread anyway, and each periodic check would read in vain.
const SLOWEST: u64 = LOOK / 2;

/// State of the low-water mark, which depends on the lengths of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowMark {
    /// The mark is not set yet. The last `count` answers had `length` bytes each.
    Learning { length: u64, count: u32 },
    /// The mark is set to this number of bytes.
    Set(u32),
    /// The mark is not used, so that every byte wakes the thread.
    Off,
}

impl LowMark {
    /// Creates the initial state. The mark is not used in two cases: in open loops, whose latencies must not depend on
    /// a guess, and if the number of received bytes differs from the length of the answer (HTTP/2, TLS).
    pub fn new(is_closed: bool, protocol: Protocol, is_plain: bool) -> Self {
        match is_closed && protocol == Protocol::Http1 && is_plain {
            true => Self::Learning {
                length: 0,
                count: 0,
            },
            false => Self::Off,
        }
    }

    /// Returns the state after an answer of `bytes` bytes that took `took` nanoseconds.
    pub fn after(self, bytes: u64, took: u64) -> Self {
        match self {
            Self::Learning { length, count } => {
                if bytes > LONGEST || took > SLOWEST || count > 0 && bytes != length {
                    return Self::Off;
                }
                match count + 1 {
                    ENOUGH => u32::try_from(bytes).map_or(Self::Off, Self::Set),
                    count => Self::Learning {
                        length: bytes,
                        count,
                    },
                }
            }
            Self::Set(length) if bytes == u64::from(length) => self,
            Self::Set(_) | Self::Off => Self::Off,
        }
    }
}

impl Worker<'_> {
    /// Sets the low-water mark of an open connection before its next request.
    pub(super) fn mark(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let wanted = match self.mark {
            LowMark::Set(length) => length,
            LowMark::Learning { .. } | LowMark::Off => 1,
        };
        if connection.marked != wanted
            && let Some(stream) = &connection.stream
        {
            match set_receive_low_mark(&stream.tcp, wanted) {
                Ok(()) => connection.marked = wanted,
                Err(_) => self.mark = LowMark::Off,
            }
        }
    }

    /// Updates the state of the mark after an answer.
    pub(super) fn learn_length(&mut self, at: usize) {
        if self.mark == LowMark::Off {
            return;
        }
        let connection = &self.connections[at];
        let took = self.now.saturating_sub(connection.begun);
        let after = self.mark.after(connection.came, took);
        let ended = matches!(self.mark, LowMark::Set(_)) && after == LowMark::Off;
        self.mark = after;
        if ended {
            self.unmark();
        }
    }

    /// Reads the bytes of a slow answer that are fewer than the mark. The mark is not used any more after this answer.
    pub(super) fn look_below_mark(&mut self, at: usize) {
        let connection = &self.connections[at];
        let came = connection.came;
        if connection.marked <= 1
            || connection.phase != ConnectionPhase::Reading
            || self.now.saturating_sub(connection.begun) < LOOK
        {
            return;
        }
        self.receive(at);
        let connection = &self.connections[at];
        if connection.came != came && self.mark != LowMark::Off {
            self.mark = LowMark::Off;
            self.unmark();
        }
    }

    /// Stops using the mark on all connections. Bytes that have already arrived then cause an event.
    fn unmark(&mut self) {
        for at in 0..self.connections.len() {
            self.mark(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_of_one_length_set_a_mark() {
        let start = LowMark::new(true, Protocol::Http1, true);
        let learn = |mark: LowMark, bytes: u64, took: u64| {
            (0..ENOUGH).fold(mark, |mark, _| mark.after(bytes, took))
        };
        let set = learn(start, 300, 1000);
        assert_eq!(set, LowMark::Set(300));
        assert_eq!(set.after(300, SLOWEST + 1), set);
        for other in [299, 301] {
            assert_eq!(set.after(other, 1000), LowMark::Off);
            assert_eq!(learn(start.after(other, 1000), 300, 1000), LowMark::Off);
        }
        assert_eq!(learn(start, LONGEST + 1, 1000), LowMark::Off);
        assert_eq!(learn(start, 300, SLOWEST + 1), LowMark::Off);
        for off in [
            LowMark::new(false, Protocol::Http1, true),
            LowMark::new(true, Protocol::Http2, true),
            LowMark::new(true, Protocol::Http1, false),
        ] {
            assert_eq!(learn(off, 300, 1000), LowMark::Off);
        }
    }
}
