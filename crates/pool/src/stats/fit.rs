//! Estimates the variances between machines and between owners by restricted maximum likelihood.
//!
//! With `a = 1 ÷ (variance + between machines)`, the covariance of an owner's machines is
//! `diag(1 ÷ a) + between owners`. The inverse and the determinant of this matrix are known (Sherman and Morrison), so
//! no matrix is computed. An owner is a weighted mean with the variance `1 ÷ Σa + between owners`.

use super::MeasuredEffect;

/// Number of grid points in the search for the maximum of the likelihood. A grid is needed because the likelihood can
/// have two local maxima.
const STEPS: usize = 40;
/// Number of golden-section steps after the grid search. Each step reduces the interval to 0.618 of its length.
const SECTIONS: usize = 60;

/// Method by which the variances are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Restricted maximum likelihood, the usual method.
    Reml,
    /// Method of Paule and Mandel (1982), which is used if the likelihood is not a number.
    PauleMandel,
}

/// Fitted model: the mean over all machines, and the variances of the log ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Method by which the variances were estimated.
    pub method: Method,
    /// Number of machines in the fit.
    pub machines: usize,
    /// Number of owners in the fit.
    pub owners: usize,
    /// Variance between machines of the same owner; 0 if each owner has one machine, because then the two variances
    /// cannot be distinguished.
    pub between_machines: f64,
    /// Variance of the log ratio between owners.
    pub between_owners: f64,
    /// Mean log ratio over all machines.
    pub mean: f64,
    /// Standard error of the mean if the variances were known exactly.
    pub ordinary_se: f64,
}

impl Fit {
    /// Returns the variance between machines of different owners, which is the sum of both variances.
    #[must_use]
    pub fn between(&self) -> f64 {
        self.between_machines + self.between_owners
    }

    /// Returns the fraction of the variance between machines of different owners that lies between owners, 0 to 1.
    #[must_use]
    pub fn share_of_owners(&self) -> f64 {
        match self.between() > 0.0 {
            true => self.between_owners / self.between(),
            false => 1.0,
        }
    }
}

/// Combined effect of all machines of one owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub mean: f64,
    pub variance: f64,
}

/// Combines the machines of each owner. The variances within and between owners are given.
pub(super) fn weigh_owners(machines: &[MeasuredEffect], within: f64, between: f64) -> Vec<Owner> {
    let sums = owner_sums(machines, within);
    let owner = |sum: &Sums| Owner {
        mean: sum.weighted / sum.weights,
        variance: sum.weights.recip() + between,
    };
    sums.iter().map(owner).collect()
}

/// Returns the weighted mean over the owners, and the variance of this mean.
pub(super) fn weighted_mean(owners: &[Owner]) -> (f64, f64) {
    let weights: f64 = owners.iter().map(|one| one.variance.recip()).sum();
    let weighted: f64 = owners.iter().map(|one| one.mean / one.variance).sum();
    (weighted / weights, weights.recip())
}

/// Returns the sum of squared deviations of the owners from a mean, each divided by its variance (generalised
/// Q).
pub(super) fn generalised_q(owners: &[Owner], mean: f64) -> f64 {
    let each = owners
        .iter()
        .map(|one| (one.mean - mean).powi(2) / one.variance);
    each.sum()
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weights: f64,
    weighted: f64,
}

fn owner_sums(machines: &[MeasuredEffect], within: f64) -> Vec<Sums> {
    let mut all: Vec<Sums> = Vec::new();
    for one in machines {
        if all.len() <= one.owner {
            all.resize(one.owner + 1, Sums::default());
        }
        let weight = (one.variance + within).recip();
        all[one.owner].weights += weight;
        all[one.owner].weighted += weight * one.effect;
    }
    all
}

/// Returns twice the restricted log-likelihood without constants.
fn restricted_log_likelihood(machines: &[MeasuredEffect], within: f64, between: f64) -> f64 {
    let sums = owner_sums(machines, within);
    let total = |sum: &Sums| {
        let variance = sum.weights.recip() + between;
        Owner {
            mean: sum.weighted / sum.weights,
            variance,
        }
    };
    let owners: Vec<Owner> = sums.iter().map(total).collect();
    let (mean, variance) = weighted_mean(&owners);
    let mut twice = variance.ln() - generalised_q(&owners, mean);
    for sum in &sums {
        twice -= (between * sum.weights).ln_1p();
    }
    for one in machines {
        let own = one.variance + within;
        let centre = sums[one.owner].weighted / sums[one.owner].weights;
        twice -= own.ln() + (one.effect - centre).powi(2) / own;
    }
    twice
}

/// Fits the model. Returns `None` if there are fewer than two owners, if an owner has no machine, or if a value is
/// invalid.
#[must_use]
pub fn fit_model(machines: &[MeasuredEffect]) -> Option<Fit> {
    let usable = |one: &MeasuredEffect| {
        one.effect.is_finite() && one.variance.is_finite() && one.variance > 0.0
    };
    let count = machines
        .iter()
        .map(|one| one.owner.saturating_add(1))
        .max()
        .unwrap_or(0);
    let mut has = vec![0_usize; count.min(machines.len())];
    if count > machines.len() || count < 2 || !machines.iter().all(usable) {
        return None;
    }
    for one in machines {
        has[one.owner] += 1;
    }
    if has.contains(&0) {
        return None;
    }
    let single = has.iter().all(|machines| *machines == 1);
    let (method, total, share) = fit_variances(machines, single, count);
    let (within, between) = (total * (1.0 - share), total * share);
    let (mean, variance) = weighted_mean(&weigh_owners(machines, within, between));
    let fit = Fit {
        method,
        machines: machines.len(),
        owners: count,
        between_machines: within,
        between_owners: between,
        mean,
        ordinary_se: variance.sqrt(),
    };
    (fit.mean.is_finite() && fit.ordinary_se.is_finite()).then_some(fit)
}

/// Estimates the variance between machines of different owners, and the fraction of this variance that lies between
/// owners.
fn fit_variances(machines: &[MeasuredEffect], single: bool, owners: usize) -> (Method, f64, f64) {
    let most = largest_variance(machines);
    let at = |total: f64, share: f64| {
        restricted_log_likelihood(machines, total * (1.0 - share), total * share)
    };
    let best_total = |share: f64| {
        // Searches over the square root, so that small variances get the same resolution as large ones.
        let root = find_maximum(0.0, most.sqrt(), |root| at(root * root, share));
        (root * root, at(root * root, share))
    };
    let share = match single {
        true => 1.0,
        false => find_maximum(0.0, 1.0, |share| best_total(share).1),
    };
    let (total, likelihood) = best_total(share);
    match likelihood.is_finite() {
        true => (Method::Reml, total, share),
        false => (
            Method::PauleMandel,
            paule_mandel(machines, share, owners as f64 - 1.0),
            share,
        ),
    }
}

/// Returns an upper bound of the variance, which is a multiple of the variance of the effects.
pub(super) fn largest_variance(machines: &[MeasuredEffect]) -> f64 {
    let count = machines.len() as f64;
    let mean = machines.iter().map(|one| one.effect).sum::<f64>() / count;
    let squares = machines.iter().map(|one| (one.effect - mean).powi(2));
    (10.0 * squares.sum::<f64>() / (count - 1.0)).max(f64::MIN_POSITIVE)
}

/// Returns the variance at which the generalised Q equals `aim`. For `aim` = owners − 1, this is the estimate of Paule
/// and Mandel. Returns 0 if the owners differ less than expected by chance.
pub(super) fn paule_mandel(machines: &[MeasuredEffect], share: f64, aim: f64) -> f64 {
    let spread_at = |total: f64| {
        let owners = weigh_owners(machines, total * (1.0 - share), total * share);
        generalised_q(&owners, weighted_mean(&owners).0)
    };
    if spread_at(0.0) <= aim {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, largest_variance(machines));
    // Q decreases as the variance increases.
    for _ in 0..200 {
        if spread_at(high) <= aim {
            break;
        }
        low = high;
        high *= 4.0;
    }
    for _ in 0..SECTIONS {
        let middle = f64::midpoint(low, high);
        match spread_at(middle) > aim {
            true => low = middle,
            false => high = middle,
        }
    }
    f64::midpoint(low, high)
}

/// Finds the maximum of a function, first on a grid, then by golden sections around the best grid point.
fn find_maximum(low: f64, high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let step = (high - low) / STEPS as f64;
    let point = |number: usize| low + step * number as f64;
    let mut best = (0, of(low));
    for number in 1..=STEPS {
        let value = of(point(number));
        if value > best.1 {
            best = (number, value);
        }
    }
    let (mut left, mut right) = (
        point(best.0.saturating_sub(1)),
        point((best.0 + 1).min(STEPS)),
    );
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut a, mut b) = (
        right - golden * (right - left),
        left + golden * (right - left),
    );
    let (mut at_a, mut at_b) = (of(a), of(b));
    for _ in 0..SECTIONS {
        if at_a >= at_b {
            (right, b, at_b) = (b, a, at_a);
            a = right - golden * (right - left);
            at_a = of(a);
        } else {
            (left, a, at_a) = (a, b, at_b);
            b = left + golden * (right - left);
            at_b = of(b);
        }
    }
    let found = f64::midpoint(left, right);
    // Check the end of the range exactly, because no variance between machines is a common result.
    match of(point(best.0)) >= of(found) {
        true => point(best.0),
        false => found,
    }
}
