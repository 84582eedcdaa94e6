//! When requests of an open loop are due. The times follow from the rate and a seed alone: nothing that
//! the server does moves them.

use assay_model::web::Pace;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// The times of one thread, in nanoseconds from the start, ascending.
pub struct Intents {
    next: f64,
    gap: Gap,
}

enum Gap {
    Even(f64),
    Random { mean: f64, random: Box<ChaCha8Rng> },
}

impl Intents {
    /// Of thread `which` of `threads`; none for a closed loop. Threads share even times in turn, and
    /// independent random ones add up to random ones of the whole rate.
    pub fn new(pace: Pace, which: u32, threads: u32, seed: u64) -> Option<Self> {
        let rate = pace.rate()?;
        let gap = 1e9 * f64::from(threads) / rate;
        Some(match pace {
            Pace::Closed => return None,
            Pace::Constant { .. } => Self {
                next: 1e9 / rate * f64::from(which),
                gap: Gap::Even(gap),
            },
            Pace::Poisson { .. } => {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream(u64::from(which));
                let mut intents = Self {
                    next: 0.0,
                    gap: Gap::Random {
                        mean: gap,
                        random: Box::new(random),
                    },
                };
                intents.advance();
                intents
            }
        })
    }

    /// When the next request is due.
    pub fn next(&self) -> u64 {
        self.next as u64
    }

    /// It was taken.
    pub fn advance(&mut self) {
        self.next += match &mut self.gap {
            Gap::Even(gap) => *gap,
            Gap::Random { mean, random } => {
                // Uniform in (0, 1]: 53 random bits.
                let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                -uniform.ln() * *mean
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pace: Pace, which: u32, threads: u32, until: u64) -> Vec<u64> {
        let mut intents = Intents::new(pace, which, threads, 7).unwrap();
        let mut times = Vec::new();
        while intents.next() < until {
            times.push(intents.next());
            intents.advance();
        }
        times
    }

    #[test]
    fn threads_share_even_times() {
        let pace = Pace::Constant { per_s: 1000.0 };
        let mut all = [times(pace, 0, 2, 10_000_000), times(pace, 1, 2, 10_000_000)].concat();
        all.sort_unstable();
        assert_eq!(all, (0..10).map(|k| k * 1_000_000).collect::<Vec<_>>());
        assert!(Intents::new(Pace::Closed, 0, 1, 0).is_none());
    }

    #[test]
    fn random_times_have_the_rate_and_the_spread_and_are_the_same_again() {
        let pace = Pace::Poisson { per_s: 10_000.0 };
        let one = times(pace, 0, 2, 2_000_000_000);
        assert_eq!(one, times(pace, 0, 2, 2_000_000_000));
        let other = times(pace, 1, 2, 2_000_000_000);
        assert_ne!(one, other);
        // 20,000 in all, with a deviation of √20,000 ≈ 141.
        assert!((one.len() + other.len()).abs_diff(20_000) < 700);
        let gaps: Vec<f64> = one.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Exponential: the deviation is the mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.1);
    }
}
