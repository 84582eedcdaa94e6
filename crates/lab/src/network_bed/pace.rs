//! Computes when a link may send, at a constant rate or as recorded. Performs no I/O: times are parameters in
//! nanoseconds.

use crate::network_bed::trace::{OPPORTUNITY, Trace};
use std::sync::Arc;

/// Maximum time in nanoseconds by which a transmission after idling may start in the past, because timers may be this
/// late.
pub const AHEAD: u64 = 1_000_000;

/// Computes when a link may send next, from its rate and its last transmission.
#[derive(Debug)]
pub enum LinkPace {
    /// The link has a constant rate.
    Even {
        /// Time per byte in nanoseconds.
        per_byte: f64,
        /// Time at which the link becomes free, in nanoseconds.
        free: u64,
    },
    /// The link sends as in a recording.
    Recorded {
        /// The recording that determines the rate.
        trace: Arc<Trace>,
        /// Index of the next line of the recording to use.
        next: u64,
        /// Number of bytes that the current line still permits to send.
        left: usize,
        /// Time from which these bytes may be sent, in nanoseconds.
        since: u64,
    },
}

impl LinkPace {
    /// Creates a link with a constant rate in bits per second.
    #[must_use]
    pub fn even(bit_per_s: f64) -> Self {
        Self::Even {
            per_byte: 8e9 / bit_per_s,
            free: 0,
        }
    }

    /// Creates a link that sends as in a recording.
    #[must_use]
    pub fn recorded(trace: Arc<Trace>) -> Self {
        Self::Recorded {
            trace,
            next: 0,
            left: 0,
            since: 0,
        }
    }

    /// Returns the earliest time at which the link can send, in nanoseconds.
    #[must_use]
    pub fn ready(&self) -> u64 {
        match self {
            Self::Even { free, .. } => *free,
            Self::Recorded {
                left: 1.., since, ..
            } => *since,
            Self::Recorded { trace, next, .. } => trace.at(*next),
        }
    }

    /// Records that the queue is empty. Capacity that was not used before `now` is lost.
    pub fn idle(&mut self, now: u64) {
        let Self::Recorded {
            trace,
            next,
            left,
            since,
        } = self
        else {
            return;
        };
        let past = now.saturating_sub(AHEAD);
        if *since < past {
            *left = 0;
        }
        while trace.at(*next) < past {
            *next += 1;
        }
    }

    /// Sends a packet. Returns the time at which its last byte is sent; until then the link is busy.
    pub fn send(&mut self, bytes: usize, now: u64) -> u64 {
        match self {
            Self::Even { per_byte, free } => {
                let start = (*free).max(now.saturating_sub(AHEAD));
                *free = start + (bytes as f64 * *per_byte) as u64;
                *free
            }
            Self::Recorded {
                trace,
                next,
                left,
                since,
            } => {
                let mut bytes = bytes;
                loop {
                    let part = bytes.min(*left);
                    bytes -= part;
                    *left -= part;
                    if bytes == 0 {
                        return now.max(*since);
                    }
                    *since = trace.at(*next);
                    *next += 1;
                    *left = OPPORTUNITY;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_link_takes_its_time() {
        let mut pace = LinkPace::even(8e6);
        assert_eq!(pace.send(1000, 5_000_000), 5_000_000);
        assert_eq!(pace.send(1000, 5_000_000), 6_000_000);
        assert_eq!(pace.ready(), 6_000_000);
    }

    #[test]
    fn a_recorded_link_sends_when_it_could() {
        let trace = Arc::new(Trace::read(b"10\n10\n40\n").unwrap());
        let mut pace = LinkPace::recorded(trace);
        assert_eq!(pace.ready(), 10_000_000);
        let ms = |pace: &mut LinkPace, bytes| pace.send(bytes, 0) / 1_000_000;
        assert_eq!(ms(&mut pace, 1500), 10);
        // Two small packets share a line, and a packet may span two lines.
        assert_eq!(ms(&mut pace, 700), 10);
        assert_eq!(pace.ready(), 10_000_000);
        pace.send(700, 10_000_000);
        assert_eq!(ms(&mut pace, 300), 40);
        assert_eq!((pace.ready(), ms(&mut pace, 1300)), (40_000_000, 40));
        assert_eq!(ms(&mut pace, 1), 50);
        // Unused capacity is lost.
        pace.idle(200_000_000);
        assert_eq!(pace.ready(), 200_000_000);
    }
}
