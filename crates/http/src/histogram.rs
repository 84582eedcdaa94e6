//! Latency histogram of one thread: an HDR histogram with a precision of 0.1 %. Histograms of threads are merged by
//! adding their counts.

use assay_model::Histogram;
use hdrhistogram::Histogram as Hdr;

/// Maximum latency in nanoseconds (15 minutes). Longer latencies are counted with this value.
const LONGEST: u64 = 900_000_000_000;

/// Counts of latencies in nanoseconds. Recording a latency takes a few nanoseconds and allocates no memory.
#[derive(Clone)]
pub struct Latencies(Hdr<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // hdrhistogram accepts these constants: low ≥ 1, high ≥ 2·low, digits ≤ 5.
        match Hdr::new_with_bounds(1, LONGEST, 3) {
            Ok(histogram) => Self(histogram),
            Err(error) => unreachable!("the bounds are part of the program: {error}"),
        }
    }
}

impl Latencies {
    pub fn record(&mut self, nanos: u64) {
        self.0.saturating_record(nanos);
    }

    pub fn merge(&mut self, other: &Self) {
        // All histograms have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// Converts the counts to the histogram of the model. All latencies of a bin get the value in the middle of the
    /// bin.
    pub fn to_model(&self) -> Histogram {
        let bins = self.0.iter_recorded();
        bins.map(|bin| {
            let value = bin.value_iterated_to();
            let middle = self.0.median_equivalent(value);
            (middle, bin.count_at_value())
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_recording_all_and_values_are_close() {
        let (mut a, mut b, mut both) = <(Latencies, Latencies, Latencies)>::default();
        for i in 1..=2000u64 {
            let nanos = i * i * 977;
            if i % 3 == 0 { &mut a } else { &mut b }.record(nanos);
            both.record(nanos);
        }
        a.merge(&b);
        assert_eq!(a.to_model(), both.to_model());
        let model = both.to_model();
        assert_eq!(model.count(), 2000);
        let p99 = model.percentile(99.0).unwrap() as f64;
        assert!(
            (p99 / (1980.0 * 1980.0 * 977.0) - 1.0).abs() < 0.001,
            "{p99}"
        );
        both.record(u64::MAX);
        assert!(both.to_model().percentile(100.0).unwrap() >= LONGEST / 2);
    }
}
