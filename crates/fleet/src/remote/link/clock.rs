//! Deadline of an exchange, which grows with the number of its bytes. A few bytes now and then do not extend the
//! deadline.

use std::time::{Duration, Instant};

/// Slowest supported connection, in bytes per second: a modem of 128 kbit/s.
const SLOWEST: u64 = 16 << 10;

/// Deadline of an exchange: the fixed time `patience`, plus the time that the bytes take on the slowest connection.
#[derive(Debug)]
pub(super) struct Clock {
    patience: Duration,
    begun: Instant,
    /// Time at which bytes were last sent or received.
    went_on: Instant,
    moved: u64,
}

impl Clock {
    /// Starts the clock. If no byte is transferred, the exchange is late after `patience`.
    pub(super) fn start(patience: Duration) -> Self {
        let now = Instant::now();
        Self {
            patience,
            begun: now,
            went_on: now,
            moved: 0,
        }
    }

    /// Adds sent or received bytes to the exchange.
    pub(super) fn enter(&mut self, bytes: usize) {
        self.enter_at(bytes, Instant::now());
    }

    fn enter_at(&mut self, bytes: usize, now: Instant) {
        self.moved = self.moved.saturating_add(bytes as u64);
        self.went_on = now;
    }

    /// Returns whether the exchange took too long, so that the machine must be given up.
    pub(super) fn is_late(&self) -> bool {
        self.is_late_at(Instant::now())
    }

    fn is_late_at(&self, now: Instant) -> bool {
        let since = |then: Instant| now.saturating_duration_since(then);
        let whole = self.patience + Duration::from_secs(self.moved / SLOWEST);
        since(self.went_on) > self.patience || since(self.begun) > whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_give_time_and_drops_do_not() {
        let second = |count| Duration::from_secs(count);
        let mut clock = Clock::start(second(10));
        let begun = clock.begun;
        assert!(!clock.is_late_at(begun + second(10)));
        // One byte per second.
        for passed in 1..=10 {
            clock.enter_at(1, begun + second(passed));
            assert!(!clock.is_late_at(begun + second(passed)));
        }
        assert!(clock.is_late_at(begun + second(11)));
        // A slow connection with progress.
        let mut clock = Clock::start(second(10));
        let begun = clock.begun;
        for passed in 1..=600 {
            clock.enter_at(20 << 10, begun + second(passed));
            assert!(!clock.is_late_at(begun + second(passed)));
        }
        // A connection that hangs after many bytes.
        assert!(clock.is_late_at(begun + second(611)));
    }
}
