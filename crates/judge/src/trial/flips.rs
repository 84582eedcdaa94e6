//! The group-sequential sign-flip test.
//!
//! If the change does nothing, the log ratios could have had any signs. So the observed sum is put
//! among the sums of some ten thousand random sign vectors, and it has to be among the largest `q`
//! of them. At every look exactly as many flips as the level allows are taken out ("killed"); a
//! trial is rejected when the observed vector would have been taken out. Over all looks that is
//! the level times the number of vectors, whatever the noise: the observed vector is one of M + 1
//! that were equally likely. (Exactness of the test with random flips that include the observed
//! one: Hemerik and Goeman 2018.)

use super::centre::median;
use super::looks::At;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Stream of the generator, apart from that of the coins, which come from the same seed.
const STREAM: u64 = 0x0061_7373_6179; // "assay"
/// Weights are integers in this unit, so that sums are exact in whatever order, and ties are ties.
const ONE: f64 = (1u32 << 24) as f64;
/// Most pairs a sign vector holds.
pub(super) const MOST: usize = 64;
/// Signs that are looked up at once.
const CHUNK: usize = 8;

/// How much a pair counts for in a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weigh {
    /// tanh(|x| / twice the median |x|): a large pair counts up to twice a middling one and no more,
    /// however wild it is.
    Bounded,
    /// As it is: the sum is that of the values themselves.
    Whole,
}

/// Random sign vectors: bit `j` of a word is the sign of pair `j`.
#[derive(Clone, Debug)]
pub(super) struct Flips(Vec<u64>);

impl Flips {
    /// As many as the level needs: 9,999, and more where the looks of a smaller level would kill
    /// fewer than 50 of them altogether. The test is exact with any number; with few to kill the
    /// edge between proof and none would be a matter of the seed.
    pub(super) fn new(seed: u64, alpha: f64) -> Self {
        const BASE: f64 = 10_000.0;
        const LEAST: f64 = 50.0;
        const LIMIT: f64 = 100_000.0;
        let total = (LEAST / alpha).ceil().clamp(BASE, LIMIT) as usize;
        Self::with(seed, total)
    }

    /// `total` less one vectors: the observed one makes it full.
    fn with(seed: u64, total: usize) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(STREAM);
        Self((1..total).map(|_| random.random()).collect())
    }

    /// The first look at which `x > 0` is proved, by its index. Every look that was reached is
    /// replayed. `x` holds at least as many pairs as the last look.
    pub(super) fn rejects(&self, x: &[f64], looks: &[At], weigh: Weigh) -> Option<usize> {
        let all = self.0.len() + 1;
        let mut alive: Vec<(i32, u64)> = self.0.iter().map(|&flip| (0, flip)).collect();
        let mut used = 0;
        for (index, look) in looks.iter().enumerate() {
            // The sum guards against 0.02 × 10,000 being 199.999….
            let budget = (look.spent * all as f64 + 1e-6) as usize;
            let q = budget.saturating_sub(used).min(alive.len());
            let x = &x[..look.pairs.min(x.len()).min(MOST)];
            // What this many signs cannot reach is left to later looks.
            if q == 0 || look.spent < floor(x.len()) {
                continue;
            }
            let (sums, observed) = Sums::of(x, weigh);
            let mut above = 0;
            for (sum, flip) in &mut alive {
                *sum = sums.of_signs(*flip);
                above += usize::from(*sum >= observed);
            }
            if above < q {
                return Some(index);
            }
            if index + 1 == looks.len() {
                break;
            }
            // The largest are killed; of equal ones the larger word, so that it can be replayed.
            alive.select_nth_unstable_by(q - 1, |a, b| b.cmp(a));
            alive.drain(..q);
            used += q;
        }
        None
    }
}

/// Smallest error that `signs` signs can have: 2⁻ⁿ.
pub(super) fn floor(signs: usize) -> f64 {
    0.5f64.powi(i32::try_from(signs).unwrap_or(i32::MAX))
}

/// Signed sums of the weights |x|: of each eight of them, the sums under all 256 sign vectors.
struct Sums(Vec<[i32; 1 << CHUNK]>);

impl Sums {
    /// With the sum under the signs of `x`.
    fn of(x: &[f64], weigh: Weigh) -> (Self, i32) {
        let scale = match weigh {
            Weigh::Bounded => 2.0 * median_size(x),
            // The largest has weight 1, so that no sum overflows.
            Weigh::Whole => x.iter().map(|x| x.abs()).fold(0.0, f64::max),
        };
        let weight = |x: f64| {
            let weight = match (x.abs(), weigh) {
                (0.0, _) => 0.0,
                (size, Weigh::Whole) => size / scale,
                (size, Weigh::Bounded) if scale > 0.0 => (size / scale).tanh(),
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
            // Signs beyond the last weight change nothing.
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

    fn of_signs(&self, flip: u64) -> i32 {
        let bytes = flip.to_le_bytes();
        let parts = self.0.iter().zip(bytes);
        parts.map(|(table, byte)| table[usize::from(byte)]).sum()
    }
}

/// Median of |x|; 0 for none.
fn median_size(x: &[f64]) -> f64 {
    median(x.iter().map(|x| x.abs()).collect())
}

#[cfg(test)]
mod tests;
