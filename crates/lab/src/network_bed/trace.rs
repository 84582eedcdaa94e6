//! A recorded link rate in the format of mahimahi (mm-link(1)). Each line contains a whole number: the millisecond
//! since the start at which the link could send one packet of at most [`OPPORTUNITY`] bytes. If the link could send
//! several packets in one millisecond, the number is repeated on several lines. After the last line the recording
//! starts again. Performs no I/O.

/// Maximum number of bytes that one line permits to send.
pub const OPPORTUNITY: usize = 1500;
/// Maximum number of lines of a recording.
pub const MOST: usize = 8_000_000;
/// Maximum length of a recording in milliseconds: a day.
pub const LONGEST: u32 = 86_400_000;

/// Times in milliseconds at which a link could send, ascending. After the last time the recording starts again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    times: Vec<u32>,
    period: u32,
}

/// Why a text is not a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line does not contain what was expected.
    #[error("line {line}: {expected} was expected")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// What the line should contain.
        expected: &'static str,
    },
    /// The recording has no line after millisecond 0, so it has no duration.
    #[error("a recording has a line after millisecond 0, or it would last no time")]
    Empty,
    /// The recording has too many lines.
    #[error("a recording has at most {MOST} lines")]
    TooLarge,
}

impl Trace {
    /// Parses a recording.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn read(text: &[u8]) -> Result<Self, TraceError> {
        let mut times: Vec<u32> = Vec::new();
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let expected = |expected| TraceError::Line {
                line: at + 1,
                expected,
            };
            let digits = line.len() <= 8 && line.iter().all(u8::is_ascii_digit);
            let number = digits
                .then(|| {
                    line.iter()
                        .fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))
                })
                .filter(|number| *number <= LONGEST)
                .ok_or(expected("a whole number of milliseconds, at most a day"))?;
            if times.last().is_some_and(|last| *last > number) {
                return Err(expected("no earlier millisecond than the line before"));
            }
            if times.len() >= MOST {
                return Err(TraceError::TooLarge);
            }
            times.push(number);
        }
        match times.last().copied() {
            Some(period) if period > 0 => Ok(Self { times, period }),
            _ => Err(TraceError::Empty),
        }
    }

    /// Returns the time of opportunity `n` (from 0), in nanoseconds from the start.
    #[must_use]
    pub fn at(&self, n: u64) -> u64 {
        let lines = self.times.len() as u64;
        let (round, line) = (n / lines, usize::try_from(n % lines).unwrap_or(0));
        // A day's recording, repeated for centuries, must not overflow.
        let ms = round
            .saturating_mul(u64::from(self.period))
            .saturating_add(u64::from(self.times[line]));
        ms.saturating_mul(1_000_000)
    }

    /// Returns the duration of the recording in milliseconds, after which it repeats.
    #[must_use]
    pub fn period_ms(&self) -> u32 {
        self.period
    }

    /// Returns the mean rate in bits per second.
    #[must_use]
    pub fn bit_per_s(&self) -> f64 {
        self.times.len() as f64 * OPPORTUNITY as f64 * 8e3 / f64::from(self.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_recording_begins_again_at_its_end() {
        let trace = Trace::read(b"0\n5\n5\r\n20\n\n").unwrap();
        let times: Vec<u64> = (0..9).map(|n| trace.at(n) / 1_000_000).collect();
        assert_eq!(times, [0, 5, 5, 20, 20, 25, 25, 40, 40]);
        assert_eq!((trace.period_ms(), trace.bit_per_s()), (20, 2.4e6));
    }

    #[test]
    fn what_is_no_recording() {
        let line = |text: &str| match Trace::read(text.as_bytes()) {
            Err(TraceError::Line { line, .. }) => line,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(line("1\n2\nx"), 3);
        assert_eq!(line("5\n4"), 2);
        assert_eq!(line("-1"), 1);
        assert_eq!(line("1.5"), 1);
        assert_eq!(line("86400001"), 1);
        assert_eq!(line("99999999999999999999"), 1);
        for empty in ["", "\n\n", "0\n0\n"] {
            assert_eq!(Trace::read(empty.as_bytes()), Err(TraceError::Empty));
        }
    }

    proptest! {
        #[test]
        fn times_never_go_back(mut times in prop::collection::vec(0u32..5000, 1..50), from in 0u64..1000) {
            times.sort_unstable();
            let text: String = times.iter().map(|ms| format!("{ms}\n")).collect();
            if let Ok(trace) = Trace::read(text.as_bytes()) {
                for n in from..from + 60 {
                    prop_assert!(trace.at(n) <= trace.at(n + 1));
                }
            }
        }
    }
}
