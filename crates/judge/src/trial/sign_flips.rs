//! The group-sequential sign-flip test (a randomisation test), for trials with a planned end.
//!
//! If the change has no effect, the log ratios could have had any signs. The observed sum is ranked among the sums of
//! some ten thousand random sign vectors, and has to be among the largest `q` of them. At every look, exactly as many
//! vectors as the level permits are removed ("killed"); the hypothesis is rejected when the observed vector would be
//! removed. The probability of this over all looks is the level, whatever the noise, because the observed vector is one
//! of M + 1 equally likely ones. (Hemerik and Goeman 2018 show that the test with random flips that include the
//! observed vector is exact.)

use super::look_schedule::PlannedLook;
use super::robust_statistics::compute_median;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Stream of the generator, separate from the stream of the randomised order, which uses the same
/// seed.
const STREAM: u64 = 0x0061_7373_6179; // "assay"
/// Unit of the weights, which are integers, so that sums are exact in any order and ties are ties.
const ONE: f64 = (1u32 << 24) as f64;
/// Maximum number of pairs in a sign vector, one bit for each pair.
pub(super) const MOST: usize = 64;
/// Number of signs looked up at once.
const CHUNK: usize = 8;

/// Weight of a pair in a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairWeight {
    /// tanh(|x| / (2 × median |x|)): a pair with a very large ratio counts at most about twice as much as a typical
    /// pair.
    Bounded,
    /// The value itself, so that the sum is the sum of the values.
    Whole,
}

/// Random sign vectors: bit `j` of a word is the sign of pair `j`.
#[derive(Clone, Debug)]
pub(super) struct SignFlips(Vec<u64>);

impl SignFlips {
    /// Creates as many vectors as the level needs: 9,999, or more if the looks of a small level would remove fewer than
    /// 50 of them altogether. The test is exact with any number of vectors, but with few to remove the seed would
    /// decide borderline cases.
    pub(super) fn new(seed: u64, alpha: f64) -> Self {
        const BASE: f64 = 10_000.0;
        const LEAST: f64 = 50.0;
        const LIMIT: f64 = 100_000.0;
        let total = (LEAST / alpha).ceil().clamp(BASE, LIMIT) as usize;
        Self::with_vectors(seed, total)
    }

    /// Creates `total` − 1 random vectors; the observed vector is the last one.
    fn with_vectors(seed: u64, total: usize) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(STREAM);
        Self((1..total).map(|_| random.random()).collect())
    }

    /// Returns the index of the first look at which `x > 0` is proved. All reached looks are computed again from the
    /// first. `x` contains at least as many pairs as the last look.
    pub(super) fn find_rejection(
        &self,
        x: &[f64],
        looks: &[PlannedLook],
        weigh: PairWeight,
    ) -> Option<usize> {
        let all = self.0.len() + 1;
        let mut alive: Vec<(i32, u64)> = self.0.iter().map(|&flip| (0, flip)).collect();
        let mut used = 0;
        for (index, look) in looks.iter().enumerate() {
            // The addend corrects products such as 0.02 × 10,000 = 199.999….
            let budget = (look.spent * all as f64 + 1e-6) as usize;
            let q = budget.saturating_sub(used).min(alive.len());
            let x = &x[..look.pairs.min(x.len()).min(MOST)];
            // A level that this many signs cannot reach is left to later looks.
            if q == 0 || look.spent < compute_smallest_error(x.len()) {
                continue;
            }
            let (sums, observed) = SignedSums::new(x, weigh);
            let mut above = 0;
            for (sum, flip) in &mut alive {
                *sum = sums.sum_of_signs(*flip);
                above += usize::from(*sum >= observed);
            }
            if above < q {
                return Some(index);
            }
            if index + 1 == looks.len() {
                break;
            }
            // The largest sums are killed; a tie goes to the larger word, which makes the result
            // reproducible.
            alive.select_nth_unstable_by(q - 1, |a, b| b.cmp(a));
            alive.drain(..q);
            used += q;
        }
        None
    }
}

/// Returns the smallest error level that a test of `signs` signs can have: 2⁻ⁿ.
pub(super) fn compute_smallest_error(signs: usize) -> f64 {
    0.5f64.powi(i32::try_from(signs).unwrap_or(i32::MAX))
}

/// Signed sums of the weights |x|. For every eight weights: the sums under all 256 combinations of signs.
struct SignedSums(Vec<[i32; 1 << CHUNK]>);

impl SignedSums {
    /// Computes the sums, and the sum under the signs of `x`.
    fn new(x: &[f64], weigh: PairWeight) -> (Self, i32) {
        let scale = match weigh {
            PairWeight::Bounded => 2.0 * compute_median_magnitude(x),
            // The largest value has weight 1, so that no sum overflows.
            PairWeight::Whole => x.iter().map(|x| x.abs()).fold(0.0, f64::max),
        };
        let weight = |x: f64| {
            let weight = match (x.abs(), weigh) {
                (0.0, _) => 0.0,
                (size, PairWeight::Whole) => size / scale,
                (size, PairWeight::Bounded) if scale > 0.0 => (size / scale).tanh(),
                _ => 1.0,
            };
            (weight * ONE).round() as i32
        };
        let weights: Vec<i32> = x.iter().map(|&x| weight(x)).collect();
        let signed = weights.iter().zip(x);
        let observed = signed.map(|(w, x)| if *x < 0.0 { -w } else { *w }).sum();
        let table = |weights: &[i32]| {
            let mut table = [0; 1 << CHUNK];
            table[0] = -weights.iter().sum::<i32>();
            // Signs beyond the last weight have no effect.
            for bit in 0..CHUNK {
                let weight = weights.get(bit).copied().unwrap_or(0);
                let half = 1 << bit;
                for signs in 0..half {
                    table[half | signs] = table[signs] + 2 * weight;
                }
            }
            table
        };
        (Self(weights.chunks(CHUNK).map(table).collect()), observed)
    }

    fn sum_of_signs(&self, flip: u64) -> i32 {
        let bytes = flip.to_le_bytes();
        let parts = self.0.iter().zip(bytes);
        parts.map(|(table, byte)| table[usize::from(byte)]).sum()
    }
}

/// Computes the median of |x|; 0 for none.
fn compute_median_magnitude(x: &[f64]) -> f64 {
    compute_median(x.iter().map(|x| x.abs()).collect())
}

#[cfg(test)]
mod tests;
