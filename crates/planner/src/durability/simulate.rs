//! Simulates the Markov chain event by event, without time steps.

use super::HOURS_A_YEAR;
use super::chain::{Assumptions, DiskGroup, group_rates};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of arrays per block of work. Each block has its own stream of random numbers, so the result does not depend
/// on the number of threads.
const BLOCK: u64 = 8192;

/// How often data was lost in the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Estimate")]
pub struct LossEstimate {
    /// Number of simulated array-years: arrays × years.
    pub years: u64,
    /// Number of array-years in which data was lost.
    pub losses: u64,
    /// Fraction of array-years in which data was lost, 0 to 1.
    pub loss: f64,
    /// 95 % interval of `loss` (Wilson 1927). If no data was lost, the upper end is 3.84 ÷ years.
    pub interval: (f64, f64),
}

/// Simulates `years` arrays for one year each.
#[must_use]
pub fn simulate_arrays(
    group: DiskGroup,
    assumptions: &Assumptions,
    years: u64,
    seed: u64,
    threads: NonZero<usize>,
) -> LossEstimate {
    let blocks = years.div_ceil(BLOCK);
    let (next, losses) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= blocks {
                        break;
                    }
                    let arrays = BLOCK.min(years - block * BLOCK);
                    let lost = run_block(group, assumptions, arrays, seed, block);
                    losses.fetch_add(lost, Ordering::Relaxed);
                }
            });
        }
    });
    let losses = losses.into_inner();
    LossEstimate {
        years,
        losses,
        loss: losses as f64 / years.max(1) as f64,
        interval: wilson_interval(losses, years.max(1)),
    }
}

/// Simulates `arrays` arrays, and returns how many of them lost data. `seed` and `block` select the stream of random
/// numbers.
fn run_block(
    group: DiskGroup,
    assumptions: &Assumptions,
    arrays: u64,
    seed: u64,
    block: u64,
) -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(block);
    let rates = group_rates(group, assumptions);
    let mut lost = 0;
    for _ in 0..arrays {
        let (mut hours, mut failed) = (0.0, 0usize);
        loop {
            let (fail, repair) = (rates.fail[failed], rates.repair[failed]);
            let total = fail + repair + rates.unreadable[failed];
            if total <= 0.0 {
                break;
            }
            // random() is in [0, 1), so the logarithm is finite.
            hours -= (1.0 - random.random::<f64>()).ln() / total;
            if hours > HOURS_A_YEAR {
                break;
            }
            let which = match failed {
                0 => 0.0,
                _ => random.random::<f64>() * total,
            };
            if which < fail {
                failed += 1;
            } else if which < fail + repair {
                failed -= 1;
            } else {
                failed = rates.fail.len();
            }
            if failed == rates.fail.len() {
                lost += 1;
                break;
            }
        }
    }
    lost
}

/// Returns the Wilson interval at 95 %.
fn wilson_interval(hits: u64, trials: u64) -> (f64, f64) {
    let (n, z) = (trials as f64, 1.959_963_984_540_054);
    let share = hits as f64 / n;
    let centre = share + z * z / (2.0 * n);
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    (
        ((centre - spread) / scale).max(0.0),
        ((centre + spread) / scale).min(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::super::loss_in;
    use super::*;

    fn threads(n: usize) -> NonZero<usize> {
        NonZero::new(n).unwrap()
    }

    #[test]
    fn chance_agrees_with_the_chain() {
        let harsh = Assumptions {
            afr: 0.3,
            replace_hours: 100.0,
            rebuild_hours: 200.0,
            ure_per_bit: 1e-14,
            correlation: 2.0,
        };
        for (disks, survives, rebuild_reads) in
            [(4, 0, 0.0), (2, 1, 4e12), (6, 2, 1e12), (8, 3, 2e13)]
        {
            let group = DiskGroup {
                disks,
                survives,
                rebuild_reads,
            };
            let expected = loss_in(group, &harsh, HOURS_A_YEAR);
            let seen = simulate_arrays(group, &harsh, 200_000, 1, threads(2));
            let sigma = (expected * (1.0 - expected) / 200_000.0).sqrt();
            assert!(
                (seen.loss - expected).abs() < 4.0 * sigma,
                "{disks}/{survives}: chain {expected}, chance {} (sigma {sigma})",
                seen.loss
            );
        }
    }

    #[test]
    fn the_seed_decides_and_the_threads_do_not() {
        let group = DiskGroup {
            disks: 5,
            survives: 1,
            rebuild_reads: 0.0,
        };
        let harsh = Assumptions {
            afr: 0.5,
            ..Assumptions::default()
        };
        let one = simulate_arrays(group, &harsh, 50_000, 7, threads(1));
        assert_eq!(one, simulate_arrays(group, &harsh, 50_000, 7, threads(3)));
        assert_ne!(
            one.losses,
            simulate_arrays(group, &harsh, 50_000, 8, threads(1)).losses
        );
        assert!(one.interval.0 < one.loss && one.loss < one.interval.1);
    }
}
