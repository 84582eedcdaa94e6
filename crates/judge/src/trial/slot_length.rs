//! Chooses the slot length with which a verdict takes the least time. The noise is measured before the first pair, so
//! the choice does not change the error level.

use super::forecast::{forecast_pairs_for_difference, forecast_pairs_for_equality};
use assay_model::Nanos;

/// Gain (as a fraction) that should be found soon.
const GAIN: f64 = 0.10;
/// Gain (as a fraction) that should still be found within `max_pairs`.
const SMALL: f64 = 0.05;
/// Minimum number of short slots that separate noise from drift roughly.
const FEWEST: usize = 8;

/// Computes how many short slots to measure before the pairs: as many as take the time of six of the longest slots,
/// within limits.
#[must_use]
pub fn count_short_slots(least: Nanos, most: Nanos, besides: Nanos) -> u32 {
    let long = most.0.saturating_add(besides.0).saturating_mul(6);
    let many = long / least.0.saturating_add(besides.0).max(1);
    many.clamp(10, 20) as u32
}

/// Limits within which the slot length is chosen.
#[derive(Clone, Copy, Debug)]
pub struct SlotBounds {
    /// Minimum length of a slot, which is also the length of the short slots that are measured first.
    pub least: Nanos,
    /// Maximum length of a slot, which is used if the noise is unknown.
    pub most: Nanos,
    /// Time of a slot in addition to its length: washout, starting the load, applying the change.
    pub besides: Nanos,
    /// Smallest ratio that matters, as in the plan.
    pub margin: f64,
    /// Maximum number of pairs in the trial.
    pub max_pairs: u32,
}

/// Slot length that needs the least time for a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotChoice {
    /// Chosen length of a slot.
    pub slot: Nanos,
    /// Estimated standard deviation of a pair's log ratio at this length.
    pub noise: f64,
}

/// Variance of the log ratio of two neighbouring slots as a function of their length in short
/// slots: `drift + independent / length`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SlotVariance {
    drift: f64,
    independent: f64,
}

impl SlotVariance {
    fn at_length(self, length: usize) -> f64 {
        self.drift + self.independent / length as f64
    }

    /// Fits the variance to blocks of short slots, in logarithms: least squares, weighted with the
    /// number of blocks that do not overlap; neither part is negative.
    fn fit(logs: &[f64]) -> Option<Self> {
        if logs.len() < FEWEST {
            return None;
        }
        let seen = (1..=logs.len() / 4).map(|length| {
            let mean = |from: usize| logs[from..from + length].iter().sum::<f64>() / length as f64;
            let last = logs.len() - 2 * length;
            let squares = (0..=last).map(|at| (mean(at + length) - mean(at)).powi(2));
            let variance = squares.sum::<f64>() / (last + 1) as f64;
            let weight = logs.len() as f64 / (2 * length) as f64;
            (1.0 / length as f64, variance, weight)
        });
        let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (x, y, weight) in seen {
            w += weight;
            wx += weight * x;
            wy += weight * y;
            wxx += weight * x * x;
            wxy += weight * x * y;
        }
        let spread = w * wxx - wx * wx;
        let slope = if spread > 0.0 {
            (w * wxy - wx * wy) / spread
        } else {
            0.0
        };
        let level = (wy - slope * wx) / w;
        Some(match (slope < 0.0, level < 0.0) {
            (true, _) => Self {
                drift: wy / w,
                independent: 0.0,
            },
            (_, true) => Self {
                drift: 0.0,
                independent: wxy / wxx,
            },
            _ => Self {
                drift: level,
                independent: slope,
            },
        })
    }
}

/// Chooses the slot length with the shortest total of two times: the time to detect a gain of 10 % (or three margins,
/// if larger), and the time to show "no practical difference". `logs` contains the natural logarithms of the figure of
/// consecutive short slots; the result is `None` if there are too few.
///
/// A gain of 5 % (or two margins) must also be detectable. A length that needs more than `max_pairs` for one of these
/// three goals is excluded, unless the longest length needs more too.
#[must_use]
pub fn choose_slot_length(logs: &[f64], bounds: &SlotBounds) -> Option<SlotChoice> {
    let variance = SlotVariance::fit(logs)?;
    let lengths = (bounds.most.0 / bounds.least.0.max(1)).max(1) as usize;
    let margin = bounds.margin.max(0.0).ln_1p();
    let gain = GAIN.ln_1p().max(3.0 * margin);
    let small = SMALL.ln_1p().max(2.0 * margin);
    let cost = |length: usize| {
        let noise = variance.at_length(length).sqrt();
        let found = forecast_pairs_for_difference(noise, gain, margin);
        let equal = forecast_pairs_for_equality(noise, 0.0, margin);
        let late = [
            found,
            equal,
            forecast_pairs_for_difference(noise, small, margin),
        ]
        .map(|pairs| pairs > bounds.max_pairs);
        let pairs = f64::from(found.min(bounds.max_pairs)) + f64::from(equal.min(bounds.max_pairs));
        let time = (bounds.least.0 as f64) * length as f64 + bounds.besides.0 as f64;
        (late, time * pairs)
    };
    let (late, _) = cost(lengths);
    let best = (1..=lengths)
        .map(|length| (length, cost(length)))
        .filter(|(_, (other, _))| other.iter().zip(late).all(|(one, whole)| !one || whole))
        .min_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b));
    let length = best.map_or(lengths, |(length, _)| length);
    Some(SlotChoice {
        // The longest length also gets the remainder of the division.
        slot: match length == lengths {
            true => bounds.most,
            false => Nanos(bounds.least.0.saturating_mul(length as u64)),
        },
        noise: variance.at_length(length).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    const S: u64 = 1_000_000_000;

    fn bounds() -> SlotBounds {
        SlotBounds {
            least: Nanos(S),
            most: Nanos(6 * S),
            besides: Nanos(S),
            margin: 0.03,
            max_pairs: 60,
        }
    }

    fn logs(seed: u64, n: usize, sd: f64, step: f64) -> Vec<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut level = 0.0;
        (0..n)
            .map(|_| {
                // A sum of twelve uniform numbers is nearly normal.
                let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                level += step * normal();
                level + sd * normal()
            })
            .collect()
    }

    #[test]
    fn a_quiet_machine_gets_short_slots_and_a_noisy_one_long_ones() {
        let slot = |sd, step| {
            let mut all: Vec<u64> = (0..99)
                .map(|seed| {
                    choose_slot_length(&logs(seed, 16, sd, step), &bounds())
                        .unwrap()
                        .slot
                        .0
                        / S
                })
                .collect();
            all.sort_unstable();
            all[49]
        };
        assert_eq!(slot(0.005, 0.0), 1);
        assert!(slot(0.10, 0.0) >= 2, "{}", slot(0.10, 0.0));
        // Longer slots do not reduce drift.
        assert_eq!(slot(0.005, 0.02), 1);
    }

    #[test]
    fn parts_of_the_noise_are_found() {
        let of = |sd, step| SlotVariance::fit(&logs(7, 4000, sd, step)).unwrap();
        let even = of(0.05, 0.0);
        assert!(
            (even.independent - 2.0 * 0.05f64.powi(2)).abs() < 0.001,
            "{even:?}"
        );
        assert!(even.drift < 0.001, "{even:?}");
    }

    #[test]
    fn nothing_is_chosen_from_too_few_and_nothing_odd_from_odd_ones() {
        assert_eq!(choose_slot_length(&[0.0; 7], &bounds()), None);
        let still = choose_slot_length(&[1.0; 8], &bounds()).unwrap();
        assert_eq!((still.slot, still.noise), (Nanos(S), 0.0));
        for odd in [f64::NAN, f64::INFINITY, 1e300] {
            let mut logs = [1.0; 12];
            logs[3] = odd;
            let chosen = choose_slot_length(&logs, &bounds()).unwrap().slot.0;
            assert!((S..=6 * S).contains(&chosen), "{odd}: {chosen}");
        }
        let same = SlotBounds {
            most: Nanos(S),
            ..bounds()
        };
        assert_eq!(choose_slot_length(&[1.0; 8], &same).unwrap().slot, Nanos(S));
    }
}
