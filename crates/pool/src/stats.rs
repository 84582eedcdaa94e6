//! The statistics of a pool: the unit is the machine, machines belong to owners.
//!
//! The model has three levels: `effect = mean + owner + machine + error`, where the error's variance is
//! known from the pairs of the machine. Where each owner has one machine it is the usual random-effects
//! model. Held against metafor 3.8 in `tests.rs`.

mod fit;
mod predict;

#[cfg(test)]
mod tests;

pub use fit::{Fit, Method, fit_model};
pub use predict::Prediction;

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Owners below which nothing but their number is told: the interval of the mean rests on the spread
/// between owners, and four give no idea of it.
pub const LEAST_OWNERS: usize = 5;

/// Confidence of all intervals.
pub const CONFIDENCE: f64 = 0.95;

/// What a machine measured, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredEffect {
    /// Which owner, from 0 on, without gaps.
    pub owner: usize,
    /// Mean log ratio of its pairs; above 0 is better.
    pub effect: f64,
    /// Variance of that mean; above 0.
    pub variance: f64,
}

/// What all machines say together, in logarithms.
#[derive(Clone, Debug)]
pub struct PooledEstimate {
    /// The mean, and how much machines and owners differ.
    pub fit: Fit,
    /// Standard error of the mean, as the modified Knapp–Hartung method has it.
    pub se: f64,
    /// Interval of the mean.
    pub mean: [f64; 2],
    /// What a machine of somebody else may see.
    pub prediction: Prediction,
}

/// The estimate; none with fewer than [`LEAST_OWNERS`] owners, or when a figure is none.
#[must_use]
pub fn estimate(machines: &[MeasuredEffect]) -> Option<PooledEstimate> {
    let fit = fit_model(machines)?;
    if fit.owners < LEAST_OWNERS {
        return None;
    }
    let se = knapp_hartung(machines, &fit);
    let reach = student_quantile((fit.owners - 1) as f64)? * se;
    let prediction = Prediction::of(machines, &fit);
    Some(PooledEstimate {
        mean: [fit.mean - reach, fit.mean + reach],
        prediction,
        se,
        fit,
    })
}

/// Standard error of the mean by the modified Knapp–Hartung method (Hartung and Knapp 2001; Röver, Knapp
/// and Friede 2015, PMC4647507): the ordinary one, widened by how far the owners lie apart, never
/// narrowed. metafor calls it `test = "adhoc"`. The owners are what is counted: machines of one owner
/// are brought together first, by the variances that were estimated.
#[must_use]
pub fn knapp_hartung(machines: &[MeasuredEffect], fit: &Fit) -> f64 {
    let owners = fit::weigh_owners(machines, fit.between_machines, fit.between_owners);
    let spread = fit::generalised_q(&owners, fit.mean) / (owners.len() as f64 - 1.0);
    fit.ordinary_se * spread.sqrt().max(1.0)
}

/// Student's t for [`CONFIDENCE`], two-sided.
fn student_quantile(freedom: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(t.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// The estimate without each of the owners, in their order: one owner who carries the result is seen here.
#[must_use]
pub fn without_each(machines: &[MeasuredEffect]) -> Vec<Option<Fit>> {
    let count = machines
        .iter()
        .map(|one| one.owner.saturating_add(1))
        .max()
        .unwrap_or(0);
    (0..count)
        .map(|left_out| {
            let rest = machines.iter().filter(|one| one.owner != left_out);
            let rest: Vec<MeasuredEffect> = rest
                .map(|one| MeasuredEffect {
                    owner: one.owner - usize::from(one.owner > left_out),
                    ..*one
                })
                .collect();
            fit_model(&rest)
        })
        .collect()
}
