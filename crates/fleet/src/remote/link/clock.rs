//! One clock for all that a machine has to take or send: a byte now and then does not stop it.

use std::time::{Duration, Instant};

/// Slowest link that is waited for, in bytes per second: a modem of 128 kbit/s.
const SLOWEST: u64 = 16 << 10;

/// How long an exchange may take: some patience, and the time that its bytes need on the slowest link.
#[derive(Debug)]
pub(super) struct Clock {
    patience: Duration,
    begun: Instant,
    /// When it went on last.
    went_on: Instant,
    moved: u64,
}

impl Clock {
    /// Starts it. After `patience` without progress it is late as well.
    pub(super) fn start(patience: Duration) -> Self {
        let now = Instant::now();
        Self {
            patience,
            begun: now,
            went_on: now,
            moved: 0,
        }
    }

    /// Enters bytes that were taken or came.
    pub(super) fn enter(&mut self, bytes: usize) {
        self.enter_at(bytes, Instant::now());
    }

    fn enter_at(&mut self, bytes: usize, now: Instant) {
        self.moved = self.moved.saturating_add(bytes as u64);
        self.went_on = now;
    }

    /// Whether the machine is to be given up.
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
        // A byte a second.
        for passed in 1..=10 {
            clock.enter_at(1, begun + second(passed));
            assert!(!clock.is_late_at(begun + second(passed)));
        }
        assert!(clock.is_late_at(begun + second(11)));
        // A slow link that goes on.
        let mut clock = Clock::start(second(10));
        let begun = clock.begun;
        for passed in 1..=600 {
            clock.enter_at(20 << 10, begun + second(passed));
            assert!(!clock.is_late_at(begun + second(passed)));
        }
        // One that stands still after much.
        assert!(clock.is_late_at(begun + second(611)));
    }
}
