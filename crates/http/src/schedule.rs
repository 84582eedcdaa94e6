//! Computes the due times of requests in an open loop. The times depend only on the rate and a seed, never on the
//! server.

use assay_model::web::Pace;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// Due times of one thread in nanoseconds from the start, in ascending order.
pub struct Intents {
    next: f64,
    gap: Gap,
}

enum Gap {
    Even(f64),
    Random {
        mean: f64,
        random: Box<ChaCha8Rng>,
    },
    /// The due times come from a list. Each thread takes every n-th entry, where n is the number of threads.
    Listed {
        list: Arc<[Listed]>,
        at: usize,
        step: usize,
    },
}

/// A request of a list with its due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Due time in nanoseconds from the start.
    pub due: u64,
    /// Index of the request.
    pub which: u32,
}

impl Intents {
    /// Creates the due times of thread `which` of `threads` threads; `None` for a closed loop. Equally spaced times are
    /// assigned to the threads in turn. Random times are drawn independently for each thread, so that the rates of all
    /// threads add up to the whole rate.
    pub fn new(
        pace: Pace,
        which: u32,
        threads: u32,
        seed: u64,
        listed: &Arc<[Listed]>,
    ) -> Option<Self> {
        let rate = pace.rate()?;
        let gap = 1e9 * f64::from(threads) / rate;
        Some(match pace {
            Pace::Closed => return None,
            Pace::Replay { .. } => Self {
                next: due(listed, which as usize),
                gap: Gap::Listed {
                    list: Arc::clone(listed),
                    at: which as usize,
                    step: threads as usize,
                },
            },
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

    /// Returns the due time of the next request.
    pub fn next(&self) -> u64 {
        self.next as u64
    }

    /// Returns the index of the next request; `None` if the caller can choose any request.
    pub fn which(&self) -> Option<usize> {
        match &self.gap {
            Gap::Listed { list, at, .. } => Some(list.get(*at)?.which as usize),
            Gap::Even(_) | Gap::Random { .. } => None,
        }
    }

    /// Advances to the next request.
    pub fn advance(&mut self) {
        match &mut self.gap {
            Gap::Even(gap) => self.next += *gap,
            Gap::Random { mean, random } => {
                // Uniform in (0, 1]: 53 random bits.
                let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                self.next += -uniform.ln() * *mean;
            }
            Gap::Listed { list, at, step } => {
                *at += *step;
                self.next = due(list, *at);
            }
        }
    }
}

/// Returns the due time of a list entry; infinity after the last entry.
fn due(list: &[Listed], at: usize) -> f64 {
    list.get(at).map_or(f64::INFINITY, |one| one.due as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_list_in_turn() {
        let list: Arc<[Listed]> = [5, 5, 9, 12]
            .into_iter()
            .zip(0..)
            .map(|(due, which)| Listed { due, which })
            .collect();
        let pace = Pace::Replay { per_s: 1.0 };
        let mut all = Vec::new();
        for thread in 0..2 {
            let mut intents = Intents::new(pace, thread, 2, 7, &list).unwrap();
            while intents.next() < u64::MAX {
                all.push((intents.next(), intents.which().unwrap()));
                intents.advance();
            }
            intents.advance();
            assert_eq!((intents.next(), intents.which()), (u64::MAX, None));
        }
        all.sort_unstable();
        assert_eq!(all, [(5, 0), (5, 1), (9, 2), (12, 3)]);
    }

    fn times(pace: Pace, which: u32, threads: u32, until: u64) -> Vec<u64> {
        let mut intents = Intents::new(pace, which, threads, 7, &Arc::from([])).unwrap();
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
        assert!(Intents::new(Pace::Closed, 0, 1, 0, &Arc::from([])).is_none());
    }

    #[test]
    fn random_times_have_the_rate_and_the_spread_and_are_the_same_again() {
        let pace = Pace::Poisson { per_s: 10_000.0 };
        let one = times(pace, 0, 2, 2_000_000_000);
        assert_eq!(one, times(pace, 0, 2, 2_000_000_000));
        let other = times(pace, 1, 2, 2_000_000_000);
        assert_ne!(one, other);
        // 20,000 in total, with a standard deviation of √20,000 ≈ 141.
        assert!((one.len() + other.len()).abs_diff(20_000) < 700);
        let gaps: Vec<f64> = one.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Exponential distribution: the standard deviation equals the mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.1);
    }
}
