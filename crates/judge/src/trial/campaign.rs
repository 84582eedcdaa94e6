//! Several pieces of advice tested one after the other: the more are tried, the more often chance
//! would find a "better" among them.

/// The level of each trial of a campaign, so that in the whole campaign the probability of any
/// false "better" stays below `level` (Bonferroni). None are counted as one.
#[must_use]
pub fn level(level: f64, pieces: usize) -> f64 {
    level / pieces.max(1) as f64
}
