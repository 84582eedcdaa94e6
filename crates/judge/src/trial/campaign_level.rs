//! Error level of a campaign, in which several changes are tried: the more changes, the more often chance makes one
//! look "better". `look_schedule` divides the level within a trial.

/// Returns the error level for each trial of a campaign of `pieces` changes (Bonferroni). With this level, the
/// probability of any false "better" in the whole campaign is at most `level`. If `pieces` is 0, it counts as 1.
#[must_use]
pub fn compute_level_per_trial(level: f64, pieces: usize) -> f64 {
    level / pieces.max(1) as f64
}
