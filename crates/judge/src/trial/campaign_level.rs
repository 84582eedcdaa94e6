//! Error level of a campaign: with more pieces of advice under test, chance more often finds a
//! "better" among them. The level within a trial is spent in `look_schedule`.

/// Returns the level of each trial of a campaign, so that the probability of any false "better" in
/// the whole campaign stays below `level` (Bonferroni). 0 pieces count as 1.
#[must_use]
pub fn compute_level_per_trial(level: f64, pieces: usize) -> f64 {
    level / pieces.max(1) as f64
}
