//! Estimates the mean of a series whose values are correlated in time.
//!
//! A disk that does housekeeping is slow for seconds, so neighbouring windows are alike and carry
//! less information; in addition each window has noise of its own. The model is the sum of a
//! stationary first-order process and of independent noise, whose mean, variance, correlation and
//! shares are unknown. Its exact Gaussian likelihood (by a Kalman filter; Harvey, "Forecasting,
//! Structural Time Series Models and the Kalman Filter", 1989, section 3.4) is maximised with the
//! mean fixed and with the mean free. The signed root of twice the log-likelihood difference
//! measures how far the fixed mean is from the data. Unlike a mean over its standard error it
//! hardly depends on how long states last: if a lasting state explains the data, the likelihood
//! shows it.
//!
//! A state that lasts for the whole watch is indistinguishable from a slow disk. The model allows a
//! state beside noise to last for an eighth of the watch (seven seconds of a minute), and a state
//! without noise for more than half of the watch (`exp(-1.8 / windows)` from one window to the
//! next), because its own wandering is then visible.

use statrs::distribution::{ContinuousCDF as _, Normal};

/// Amount by which the root exceeds a standard normal number if equal disks stay in a state for half of the watch: 0.9
/// at 60 windows, less if states are shorter (simulated, 10,000 series or more for each of 37 cases). It is always
/// subtracted.
const EXCESS: f64 = 1.05;
/// Standard deviation of the logarithm of a ratio that is added to the deviation of the fitted residuals (1 %), because
/// ratios are not known more precisely.
const RESOLUTION: f64 = 0.01;
/// Number of correlations tried up to either bound. They are closer together where the correlation is high.
const STEPS: usize = 8;
/// Fractions of the variance that are assumed to be independent noise.
const NOISE: [f64; 7] = [0.0, 0.1, 0.25, 0.45, 0.65, 0.8, 0.92];

/// A series, prepared for its likelihood. For each correlation and noise fraction, the sum of
/// squared innovations is a parabola in the mean.
pub struct CorrelatedSeries {
    values: usize,
    fits: Vec<Parabola>,
}

/// Coefficients of `squares(mean) = all - 2 * slope * mean + curve * mean²`, in units of the total
/// variance, and the logarithms of the variances.
#[derive(Default)]
struct Parabola {
    all: f64,
    slope: f64,
    curve: f64,
    logs: f64,
}

/// A fitted model: twice the negative log-likelihood without its constant part, and the mean.
struct ModelFit {
    cost: f64,
    mean: f64,
}

impl CorrelatedSeries {
    /// Prepares a series. `points` contains (number of the window, value) in ascending order, possibly with gaps;
    /// `windows` is the length of the watch in windows.
    pub fn new(points: &[(usize, f64)], windows: usize) -> Self {
        let windows = windows.max(1) as f64;
        let (beside, alone) = ((-8.6 / windows).exp(), (-1.8 / windows).exp());
        let mut fits = vec![compute_parabola(points, 0.0, 0.0)];
        for step in 1..=STEPS {
            let low = 1.0 - step as f64 / STEPS as f64;
            let correlation = beside * (1.0 - low * low);
            fits.extend(NOISE.map(|noise| compute_parabola(points, correlation, noise)));
        }
        // Steps from one bound to the other, by equal ratios of the distance to 1.
        for step in 1..=STEPS / 2 {
            let part = step as f64 / (STEPS / 2) as f64;
            let missing = (1.0 - beside) * ((1.0 - alone) / (1.0 - beside)).powf(part);
            fits.push(compute_parabola(points, 1.0 - missing, 0.0));
        }
        Self {
            values: points.len(),
            fits,
        }
    }

    /// Bounds the probability of values this high or higher if the mean is `mean`.
    pub fn chance_above(&self, mean: f64) -> f64 {
        let free = self.fit_model(None);
        match free.mean > mean {
            true => compute_tail_chance(self.likelihood_root(&free, mean)),
            false => 1.0,
        }
    }

    /// Returns the interval of means that are not rejected, each end at the error level `share`.
    pub fn mean_interval(&self, share: f64) -> (f64, f64) {
        let free = self.fit_model(None);
        let end = |sign: f64| {
            // Moves away from the mean in powers of two until the mean is rejected, then bisects.
            let rejected = |off: f64| {
                compute_tail_chance(self.likelihood_root(&free, free.mean + sign * off)) <= share
            };
            let Some(mut out) = (0..24)
                .map(|n| 0.01 * 2f64.powi(n))
                .find(|off| rejected(*off))
            else {
                return sign * f64::INFINITY;
            };
            let mut inside = 0.0;
            while out - inside > 0.001 * (1.0 + inside) {
                let middle = f64::midpoint(inside, out);
                match rejected(middle) {
                    true => out = middle,
                    false => inside = middle,
                }
            }
            free.mean + sign * out
        };
        (end(-1.0), end(1.0))
    }

    fn likelihood_root(&self, free: &ModelFit, mean: f64) -> f64 {
        (self.fit_model(Some(mean)).cost - free.cost)
            .max(0.0)
            .sqrt()
    }

    /// Finds the best fit, with the mean fixed or free.
    fn fit_model(&self, held: Option<f64>) -> ModelFit {
        let n = self.values.max(1) as f64;
        let all = self.fits.iter().map(|fit| {
            let mean = held.unwrap_or(fit.slope / fit.curve.max(f64::MIN_POSITIVE));
            let squares = fit.all - 2.0 * fit.slope * mean + fit.curve * mean * mean;
            ModelFit {
                cost: n * (squares.max(0.0) / n + RESOLUTION * RESOLUTION).ln() + fit.logs,
                mean,
            }
        });
        let none = ModelFit {
            cost: f64::INFINITY,
            mean: held.unwrap_or(0.0),
        };
        all.fold(none, |best, one| match one.cost < best.cost {
            true => one,
            false => best,
        })
    }
}

fn compute_parabola(points: &[(usize, f64)], correlation: f64, noise: f64) -> Parabola {
    let mut sum = Parabola::default();
    // State of the filter: for the values, for a mean of one, and its variance.
    let (mut value, mut one, mut variance) = (0.0, 0.0, 1.0 - noise);
    let mut before: Option<usize> = None;
    for &(at, seen) in points {
        let keeps = before.map_or(0.0, |before| correlation.powi((at - before) as i32));
        (value, one) = (keeps * value, keeps * one);
        variance = keeps * keeps * variance + (1.0 - noise) * (1.0 - keeps * keeps);
        let new = variance + noise;
        let (off, share) = (seen - value, 1.0 - one);
        sum.all += off * off / new;
        sum.slope += off * share / new;
        sum.curve += share * share / new;
        sum.logs += new.ln();
        let gain = variance / new;
        value += gain * off;
        one += gain * share;
        variance *= 1.0 - gain;
        before = Some(at);
    }
    sum
}

/// Bounds the probability of a root this large.
fn compute_tail_chance(root: f64) -> f64 {
    let normal = Normal::standard();
    normal.sf(root - EXCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_values_are_known_and_wandering_ones_are_not() {
        let steady: Vec<(usize, f64)> = (0..60)
            .map(|at| (at, 1.0 + if at % 2 == 0 { 0.3 } else { -0.3 }))
            .collect();
        let steady = CorrelatedSeries::new(&steady, 60);
        assert!(steady.chance_above(0.0) < 1e-9);
        let (low, high) = steady.mean_interval(0.05);
        assert!(
            low > 0.8 && low < 1.0 && high > 1.0 && high < 1.2,
            "{low} {high}"
        );
        // Half of the watch is up, half of it is down: the mean may be zero.
        let wandering: Vec<(usize, f64)> = (0..60)
            .map(|at| (at, if at < 40 { 1.5 } else { -0.5 }))
            .collect();
        let wandering = CorrelatedSeries::new(&wandering, 60);
        assert!(
            wandering.chance_above(0.0) > 0.01,
            "{}",
            wandering.chance_above(0.0)
        );
        assert!(wandering.mean_interval(0.05).1 > 1.5);
    }

    #[test]
    fn missing_windows_are_passed_over() {
        let all: Vec<(usize, f64)> = (0..60)
            .map(|at| (at, ((at * 37) % 11) as f64 / 11.0))
            .collect();
        let some: Vec<(usize, f64)> = all.iter().copied().filter(|(at, _)| at % 3 != 0).collect();
        let (few, many) = (
            CorrelatedSeries::new(&some, 60),
            CorrelatedSeries::new(&all, 60),
        );
        let width = |(low, high): (f64, f64)| high - low;
        assert!(width(few.mean_interval(0.05)) > width(many.mean_interval(0.05)));
    }

    #[test]
    fn nothing_and_one_value_do_no_harm() {
        for points in [vec![], vec![(3, 0.7)], vec![(0, 0.0), (1, 0.0)]] {
            let series = CorrelatedSeries::new(&points, 60);
            assert!(series.chance_above(0.0) > 0.0);
            let (low, high) = series.mean_interval(0.05);
            assert!(low <= high, "{low} {high}");
        }
    }
}
