//! Latencies of assay's own loads, in the same bins as fio's histogram.

use assay_model::histogram::Histogram;
use assay_model::sample::Latency;
use std::time::Duration;

/// Base-2 logarithm of the number of bins per power of two (`FIO_IO_U_PLAT_BITS` of fio's `stat.h`).
const BITS: u32 = 6;
/// Number of bins for all 64-bit values.
const BINS: usize = ((64 - BITS as usize) + 1) << BITS;

/// Returns the bin of a value (`plat_val_to_idx` of fio 3.33's `stat.c`).
fn latency_bin(nanos: u64) -> usize {
    let top = 63 - (nanos | 1).leading_zeros();
    if top <= BITS {
        return nanos as usize;
    }
    let shift = top - BITS;
    (((shift + 1) as usize) << BITS) + ((nanos >> shift) as usize & ((1 << BITS) - 1))
}

/// Returns the latency in the middle of a bin in nanoseconds (`plat_idx_to_val`). The value is exact below 128 ns.
fn bin_middle(bin: usize) -> u64 {
    if bin < 2 << BITS {
        return bin as u64;
    }
    let shift = (bin >> BITS) as u32 - 1;
    let low = ((1 << BITS) + (bin as u64 & ((1 << BITS) - 1))) << shift;
    low + (1 << shift) / 2
}

/// Histogram of latencies. Recording a latency takes a few nanoseconds and allocates no memory.
pub(crate) struct Latencies {
    counts: Box<[u64; BINS]>,
    n: u64,
    min: u64,
    max: u64,
    mean: f64,
    /// Sum of the squared differences from the mean, updated by Welford's method.
    squares: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BINS]),
            n: 0,
            min: u64::MAX,
            max: 0,
            mean: 0.0,
            squares: 0.0,
        }
    }
}

impl Latencies {
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[latency_bin(nanos)] += 1;
        self.n += 1;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        let off = nanos as f64 - self.mean;
        self.mean += off / self.n as f64;
        self.squares += off * (nanos as f64 - self.mean);
    }

    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        let (a, b) = (self.n as f64, other.n as f64);
        let off = other.mean - self.mean;
        self.mean += off * b / (a + b);
        self.squares += other.squares + off * off * a * b / (a + b);
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub fn count(&self) -> u64 {
        self.n
    }

    /// Converts the histogram to the latency type of the model. The standard deviation uses n − 1, as in fio.
    pub fn summary(&self) -> Latency {
        if self.n == 0 {
            return Latency::default();
        }
        let bins = self.counts.iter().enumerate();
        let histogram: Histogram = bins.map(|(bin, &count)| (bin_middle(bin), count)).collect();
        let variance = self.squares.max(0.0) / (self.n - 1).max(1) as f64;
        Latency {
            n: self.n,
            min: self.min,
            max: self.max,
            mean: self.mean,
            stddev: variance.sqrt(),
            percentiles: Vec::new(),
            histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_those_fio_prints() {
        // Keys of a JSON+ histogram of fio 3.33.
        for printed in [29_824, 64_256, 127_488, 257_024, 561_152, 1_761_280] {
            assert_eq!(bin_middle(latency_bin(printed)), printed);
        }
        for nanos in (0..63).flat_map(|bit| [1u64 << bit, (1 << bit) + 1, (2 << bit) - 1]) {
            let error = bin_middle(latency_bin(nanos)).abs_diff(nanos) as f64;
            assert!(error <= 0.008 * nanos as f64, "{nanos}");
        }
        assert!(latency_bin(u64::MAX) < BINS);
    }

    #[test]
    fn merging_is_recording_all() {
        let (mut a, mut b, mut both) = <(Latencies, Latencies, Latencies)>::default();
        for i in 1..=100u64 {
            let latency = Duration::from_nanos(i * i * 1000);
            if i % 3 == 0 { &mut a } else { &mut b }.record(latency);
            both.record(latency);
        }
        a.merge(&b);
        let (a, both) = (a.summary(), both.summary());
        assert_eq!((a.n, a.min, a.max), (100, 1_000, 10_000_000));
        assert_eq!(a.histogram, both.histogram);
        assert!((a.mean - 3_383_500.0).abs() < 1e-3 && (a.stddev - both.stddev).abs() < 1e-3);
    }
}
