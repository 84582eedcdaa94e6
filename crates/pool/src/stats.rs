//! Statistics of a pool. The unit is the machine, and each machine belongs to an owner.
//!
//! The model has three levels: `effect = mean + owner + machine + error`. The variance of the error is known from the
//! pairs of the machine. If each owner has one machine, this is the usual random-effects model. `tests.rs` compares the
//! results with metafor 3.8.

mod fit;
mod predict;

#[cfg(test)]
mod tests;

pub use fit::{Fit, Method, fit_model};
pub use predict::Prediction;

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Minimum number of owners for a result. The interval of the mean depends on the variance between owners, which cannot
/// be estimated from four owners.
pub const LEAST_OWNERS: usize = 5;

/// Confidence level of all intervals in the statistics.
pub const CONFIDENCE: f64 = 0.95;

/// Effect that was measured on a machine, as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredEffect {
    /// Index of the owner, from 0 without gaps.
    pub owner: usize,
    /// Mean log ratio of the machine's pairs. Above 0, the change is better.
    pub effect: f64,
    /// Variance of `effect`; always above 0.
    pub variance: f64,
}

/// Combined result of all machines, as logarithms.
#[derive(Clone, Debug)]
pub struct PooledEstimate {
    /// Fitted model: the mean, and the variances between machines and between owners.
    pub fit: Fit,
    /// Standard error of the mean by the modified Knapp–Hartung method.
    pub se: f64,
    /// Lower and upper end of the interval of the mean.
    pub mean: [f64; 2],
    /// Distribution of the effect on a new owner's machine.
    pub prediction: Prediction,
}

/// Computes the estimate. Returns `None` with fewer than [`LEAST_OWNERS`] owners, or if a value is not a number.
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

/// Returns the standard error of the mean by the modified Knapp–Hartung method (Hartung and Knapp 2001; Röver, Knapp
/// and Friede 2015, PMC4647507). This is the ordinary standard error, which is increased if the owners vary more than
/// expected, but never reduced. metafor calls this method `test = "adhoc"`. The machines of each owner are combined
/// first, with the estimated variances, so that the unit is the owner.
#[must_use]
pub fn knapp_hartung(machines: &[MeasuredEffect], fit: &Fit) -> f64 {
    let owners = fit::weigh_owners(machines, fit.between_machines, fit.between_owners);
    let spread = fit::generalised_q(&owners, fit.mean) / (owners.len() as f64 - 1.0);
    fit.ordinary_se * spread.sqrt().max(1.0)
}

/// Returns the two-sided quantile of Student's t distribution for [`CONFIDENCE`], with `freedom` degrees of freedom.
fn student_quantile(freedom: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(t.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// Computes the fit without each owner in turn, to detect an owner who dominates the result.
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
