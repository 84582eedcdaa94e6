//! Counts answers and latencies over time, for one thread. The counted time is divided into about forty equal
//! intervals.

use assay_model::Nanos;
use assay_model::web::Stretch;

/// Number of intervals. There are fewer if the intervals would be shorter than `SHORTEST`.
const STRETCHES: u64 = 40;
/// Minimum length of an interval in nanoseconds, so that each interval has enough answers.
const SHORTEST: u64 = 50_000_000;
/// Number of bits of a latency that are kept after the highest bit, so that a bin is 1/16 of its value wide.
const BITS: u32 = 4;
/// Number of bins. They cover up to 2^41 ns, more than half an hour.
const BINS: usize = (41 - BITS as usize) << BITS;

/// Counts of answers, failures and latencies in one interval.
#[derive(Clone)]
struct Counts {
    answers: u64,
    failures: u64,
    bins: Box<[u32]>,
}

/// Counts of all intervals of one thread. Times are in nanoseconds from the start of the counted time.
pub struct CountsOverTime {
    length: u64,
    all: Vec<Counts>,
}

impl CountsOverTime {
    /// Divides the counted time, which has `window` nanoseconds, into intervals.
    pub fn new(window: u64) -> Self {
        let length = (window / STRETCHES).max(SHORTEST);
        let count = usize::try_from(window.div_ceil(length)).unwrap_or(0);
        let none = Counts {
            answers: 0,
            failures: 0,
            bins: vec![0; BINS].into_boxed_slice(),
        };
        Self {
            length,
            all: vec![none; count],
        }
    }

    /// Returns the interval that contains a time; `None` after the last interval.
    fn at(&mut self, at: u64) -> Option<&mut Counts> {
        let stretch = at / self.length;
        self.all.get_mut(usize::try_from(stretch).ok()?)
    }

    /// Counts an answer in the interval in which it ended.
    pub fn answer(&mut self, at: u64) {
        if let Some(counts) = self.at(at) {
            counts.answers += 1;
        }
    }

    /// Counts a failure in the interval in which it happened.
    pub fn failure(&mut self, at: u64) {
        if let Some(counts) = self.at(at) {
            counts.failures += 1;
        }
    }

    /// Counts a latency in the interval in which its request was due.
    pub fn record(&mut self, due: u64, latency: u64) {
        if let Some(counts) = self.at(due) {
            let bin = &mut counts.bins[bin(latency)];
            *bin = bin.saturating_add(1);
        }
    }

    /// Adds the counts of another thread.
    pub fn merge(&mut self, other: &Self) {
        for (own, more) in self.all.iter_mut().zip(&other.all) {
            own.answers += more.answers;
            own.failures += more.failures;
            for (own, more) in own.bins.iter_mut().zip(&more.bins) {
                *own = own.saturating_add(*more);
            }
        }
    }

    /// Converts the counts to the model. Also returns the length of the intervals. Omits intervals that start after
    /// `window`.
    pub fn to_model(&self, window: u64) -> (Nanos, Vec<Stretch>) {
        let within = usize::try_from(window.div_ceil(self.length)).unwrap_or(usize::MAX);
        let stretches = self.all.iter().take(within).map(|counts| {
            let bins = counts
                .bins
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0);
            Stretch {
                answers: counts.answers,
                failures: counts.failures,
                latency: bins
                    .map(|(bin, count)| (middle(bin), u64::from(*count)))
                    .collect(),
            }
        });
        (Nanos(self.length), stretches.collect())
    }
}

/// Returns the bin of a latency, which its highest bits determine.
fn bin(nanos: u64) -> usize {
    let highest = (nanos | 1 << BITS).ilog2() - BITS;
    let bin = (highest as usize) << BITS | (nanos >> highest) as usize & ((1 << BITS) - 1);
    // Small latencies have a bin for each nanosecond.
    (bin + usize::from(nanos >= 1 << BITS) * (1 << BITS)).min(BINS - 1)
}

/// Returns the latency in the middle of a bin, in nanoseconds.
fn middle(bin: usize) -> u64 {
    let step = bin >> BITS;
    match step {
        0 => bin as u64,
        step => {
            let low = (1 << BITS | bin as u64 & ((1 << BITS) - 1)) << (step - 1);
            low + (1 << (step - 1)) / 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_ascend_and_are_a_sixteenth_wide() {
        let mut before = 0;
        for nanos in (0..40_000).chain((16..40).map(|power| (1u64 << power) + 12_345)) {
            let found = bin(nanos);
            assert!(found >= before, "{nanos}");
            before = found;
            let off = middle(found).abs_diff(nanos) as f64;
            assert!(
                off <= nanos as f64 / 32.0 + 1.0,
                "{nanos} {}",
                middle(found)
            );
        }
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn what_is_due_in_a_stretch_is_counted_there() {
        let second = 1_000_000_000;
        let mut stretches = CountsOverTime::new(4 * second);
        stretches.record(0, 5_000_000);
        stretches.answer(5_000_000);
        stretches.record(2 * second, 90_000_000);
        stretches.failure(2 * second);
        // After the end.
        stretches.answer(4 * second);
        let mut other = CountsOverTime::new(4 * second);
        other.record(2 * second, 90_000_000);
        stretches.merge(&other);
        let (length, all) = stretches.to_model(3 * second);
        assert_eq!((length, all.len()), (Nanos(second / 10), 30));
        assert_eq!((all[0].answers, all[0].latency.count()), (1, 1));
        assert_eq!((all[20].failures, all[20].latency.count()), (1, 2));
        assert_eq!(all.iter().map(|one| one.answers).sum::<u64>(), 1);
        // A short time has fewer intervals.
        assert_eq!(CountsOverTime::new(second / 5).all.len(), 4);
    }
}
