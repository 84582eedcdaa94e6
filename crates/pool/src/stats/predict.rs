//! Predicts the effect on a machine of a new owner.
//!
//! The usual interval treats the estimated variance between machines as exact, so it is too narrow with few owners.
//! Nagashima, Noma and Furukawa (2019) correct this with a bootstrap over the confidence distribution of the variance.
//! This module integrates over the same distribution instead of sampling from it. At the true variance, the owners'
//! generalised Q is chi-squared distributed with owners − 1 degrees of freedom (Q-profile, Viechtbauer 2007). Each
//! quantile of this distribution gives a variance, a mean with its error, and therefore a normal distribution for a new
//! machine. The prediction is the mixture of these normal distributions.

use super::fit::{Fit, paule_mandel, weigh_owners, weighted_mean};
use super::{CONFIDENCE, MeasuredEffect};
use statrs::distribution::{ChiSquared, ContinuousCDF as _, Normal};

/// Number of quantiles over which the prediction is integrated.
const NODES: usize = 200;

/// Distribution of the effect on a new owner's machine, as logarithms.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// Mean and standard deviation of the normal distribution that belongs to each quantile.
    nodes: Vec<(f64, f64)>,
}

impl Prediction {
    pub(super) fn of(machines: &[MeasuredEffect], fit: &Fit) -> Self {
        let share = fit.share_of_owners();
        let Ok(spread) = ChiSquared::new((fit.owners - 1) as f64) else {
            return Self::default();
        };
        let node = |number: usize| {
            let aim = spread.inverse_cdf((number as f64 + 0.5) / NODES as f64);
            let total = paule_mandel(machines, share, aim);
            let owners = weigh_owners(machines, total * (1.0 - share), total * share);
            let (mean, variance) = weighted_mean(&owners);
            (mean, (variance + total).sqrt())
        };
        Self {
            nodes: (0..NODES).map(node).collect(),
        }
    }

    /// Returns the fraction of machines whose effect is below `effect`.
    #[must_use]
    pub fn below(&self, effect: f64) -> f64 {
        let each = self.nodes.iter().filter_map(|(mean, deviation)| {
            Normal::new(*mean, *deviation)
                .ok()
                .map(|normal| normal.cdf(effect))
        });
        each.sum::<f64>() / self.nodes.len().max(1) as f64
    }

    /// Returns the effect that the fraction `share` of machines stays below.
    fn quantile(&self, share: f64) -> f64 {
        let reach = |sign: f64| {
            let ends = self.nodes.iter();
            ends.map(move |(mean, deviation)| mean + sign * 40.0 * deviation)
        };
        let mut low = reach(-1.0).fold(f64::INFINITY, f64::min);
        let mut high = reach(1.0).fold(f64::NEG_INFINITY, f64::max);
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            match self.below(middle) < share {
                true => low = middle,
                false => high = middle,
            }
        }
        f64::midpoint(low, high)
    }

    /// Returns the interval of the effect on a new machine at level [`CONFIDENCE`].
    #[must_use]
    pub fn interval(&self) -> [f64; 2] {
        let tail = (1.0 - CONFIDENCE) / 2.0;
        [self.quantile(tail), self.quantile(1.0 - tail)]
    }
}
