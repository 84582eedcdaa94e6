//! Estimates the offset between two independent clocks from the message exchange with the smallest round trip.
//!
//! The remote clock is read between sending and receiving. The error is therefore at most half the round trip, whatever
//! the delay in either direction (RFC 5905, section 8). Wall clocks are not used.

use serde::{Deserialize, Serialize};

/// Timestamps of one message exchange, in microseconds of monotonic clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockExchange {
    /// Local time at which the request was sent.
    pub sent: i64,
    /// Remote time at which the request was received.
    pub there: i64,
    /// Local time at which the reply was received.
    pub received: i64,
}

/// Offset of the remote clock: local time + offset = remote time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Offset {
    /// Offset between the clocks in microseconds.
    pub offset_us: i64,
    /// Maximum error in microseconds: half the round trip, rounded up.
    pub error_us: i64,
}

impl ClockExchange {
    /// Returns the round trip in microseconds; `None` if the clock went backwards.
    #[must_use]
    pub fn round_trip(&self) -> Option<i64> {
        self.received.checked_sub(self.sent).filter(|us| *us >= 0)
    }

    /// Returns the offset and its maximum error from one exchange.
    #[must_use]
    pub fn offset(&self) -> Option<Offset> {
        let round_trip = self.round_trip()?;
        let middle = self.sent.checked_add(round_trip / 2)?;
        Some(Offset {
            offset_us: self.there.checked_sub(middle)?,
            error_us: (round_trip + 1) / 2,
        })
    }
}

/// Returns the offset of the exchange with the smallest round trip.
#[must_use]
pub fn best_offset(exchanges: &[ClockExchange]) -> Option<Offset> {
    let offsets = exchanges.iter().filter_map(ClockExchange::offset);
    offsets.min_by_key(|offset| offset.error_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_fastest_exchange_counts_and_nonsense_does_not() {
        let slow = ClockExchange {
            sent: 0,
            there: 1_000_900,
            received: 1000,
        };
        let fast = ClockExchange {
            sent: 2000,
            there: 1_002_100,
            received: 2200,
        };
        let back = ClockExchange {
            sent: 5,
            there: 0,
            received: 4,
        };
        let wild = ClockExchange {
            sent: i64::MIN,
            there: i64::MAX,
            received: i64::MAX,
        };
        let best = best_offset(&[slow, fast, back, wild]).unwrap();
        assert_eq!((best.offset_us, best.error_us), (1_000_000, 100));
        assert_eq!(super::best_offset(&[back]), None);
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_error(
            offset in -100_000_000_000i64..100_000_000_000,
            ways in prop::collection::vec((0i64..1_000_000, 0i64..1_000_000, 0i64..100_000_000), 1..30),
        ) {
            let exchanges: Vec<ClockExchange> = ways.iter().map(|&(out, home, sent)| ClockExchange {
                sent,
                there: sent + out + offset,
                received: sent + out + home,
            }).collect();
            let found = best_offset(&exchanges).unwrap();
            prop_assert!((found.offset_us - offset).abs() <= found.error_us);
        }
    }
}
