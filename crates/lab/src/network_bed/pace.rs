//! When a link sends: at an even rate, or as it was recorded. Pure: times are passed in, in nanoseconds.

use crate::network_bed::trace::{OPPORTUNITY, Trace};
use std::sync::Arc;

/// A link that had nothing to do may be ahead by so much: timers are late by as much now and then.
pub const AHEAD: u64 = 1_000_000;

/// When a link may send next, and what it still has to send of a packet.
#[derive(Debug)]
pub enum LinkPace {
    /// So many nanoseconds for a byte; it is free from then on.
    Even {
        /// Nanoseconds for a byte.
        per_byte: f64,
        /// When it has sent what it was given.
        free: u64,
    },
    /// As it was recorded.
    Recorded {
        /// The recording.
        trace: Arc<Trace>,
        /// Which line is next.
        next: u64,
        /// Bytes that the last line still lets through.
        left: usize,
        /// When that is, or was.
        since: u64,
    },
}

impl LinkPace {
    /// At so many bits per second.
    #[must_use]
    pub fn even(bit_per_s: f64) -> Self {
        Self::Even {
            per_byte: 8e9 / bit_per_s,
            free: 0,
        }
    }

    /// As recorded.
    #[must_use]
    pub fn recorded(trace: Arc<Trace>) -> Self {
        Self::Recorded {
            trace,
            next: 0,
            left: 0,
            since: 0,
        }
    }

    /// When it can send something.
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

    /// Nothing waits: what could have been sent until now is lost.
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

    /// Sends so many bytes; when the last of them is sent. Before that time nothing else is ready.
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
        // Two small ones share a line, and what a packet lacks comes with the next.
        assert_eq!(ms(&mut pace, 700), 10);
        assert_eq!(pace.ready(), 10_000_000);
        pace.send(700, 10_000_000);
        assert_eq!(ms(&mut pace, 300), 40);
        assert_eq!((pace.ready(), ms(&mut pace, 1300)), (40_000_000, 40));
        assert_eq!(ms(&mut pace, 1), 50);
        // What it could have sent while nothing waited is lost.
        pace.idle(200_000_000);
        assert_eq!(pace.ready(), 200_000_000);
    }
}
