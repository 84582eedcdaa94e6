//! The mean of a series whose values hang together in time.
//!
//! A disk that cleans up is slow for seconds, so neighbouring windows are alike and count for fewer
//! than they are; and each window has noise of its own beside such a state. The series is taken as the
//! sum of a stationary first-order process and of independent noise, whose mean, spread, correlation and
//! shares are all unknown. Its exact Gaussian likelihood (by a Kalman filter; Harvey, "Forecasting,
//! Structural Time Series Models and the Kalman Filter", 1989, section 3.4) is maximised with the mean
//! held and with the mean free. The signed root of twice the difference of the logarithms says how far
//! the held mean is from what was seen. Unlike a mean over a standard error it hardly depends on how
//! states last: where a lasting state would explain what was seen, it is the likelihood that says so.
//!
//! How long may a state last? What goes on for all of a watch cannot be told from a disk that is so. A
//! state beside noise may last for an eighth of the watch (seven seconds of a minute), one without for
//! more than half of it (`exp(-1.8 / windows)` from one window to the next), where its own wandering
//! gives it away.

use statrs::distribution::{ContinuousCDF as _, Normal};

/// By how much the root exceeds a standard normal number when equal disks stay in a state for half of
/// the watch: 0.9 at 60 windows, less with less persistence (simulated, 10,000 series and more for each of
/// 37 cases). It is taken off always.
const EXCESS: f64 = 1.05;
/// Below this the logarithm of a ratio is not known: 1 %.
const RESOLUTION: f64 = 0.01;
/// Correlations up to either bound that are tried, closer to each other where they are high.
const STEPS: usize = 8;
/// Shares of the variance that are noise of each window.
const NOISE: [f64; 7] = [0.0, 0.1, 0.25, 0.45, 0.65, 0.8, 0.92];

/// A series. For each correlation and share of noise, what its likelihood needs: the squares of what is new in each value
/// are a parabola in the mean.
pub struct Series {
    values: usize,
    fits: Vec<Parabola>,
}

/// `squares(mean) = all - 2 * slope * mean + curve * mean²`, in units of the variance of all, and the
/// logarithms of the variances.
#[derive(Default)]
struct Parabola {
    all: f64,
    slope: f64,
    curve: f64,
    logs: f64,
}

/// Twice the negative logarithm of the likelihood, less what is the same for all, and the mean.
struct Fit {
    cost: f64,
    mean: f64,
}

impl Series {
    /// `points` are windows, some of which may be missing, ascending, and values; of a watch of so many
    /// windows.
    pub fn new(points: &[(usize, f64)], windows: usize) -> Self {
        let windows = windows.max(1) as f64;
        let (beside, alone) = ((-8.6 / windows).exp(), (-1.8 / windows).exp());
        let mut fits = vec![parabola(points, 0.0, 0.0)];
        for step in 1..=STEPS {
            let low = 1.0 - step as f64 / STEPS as f64;
            let correlation = beside * (1.0 - low * low);
            fits.extend(NOISE.map(|noise| parabola(points, correlation, noise)));
        }
        // From one bound to the other, by equal ratios of what is missing to one.
        for step in 1..=STEPS / 2 {
            let part = step as f64 / (STEPS / 2) as f64;
            let missing = (1.0 - beside) * ((1.0 - alone) / (1.0 - beside)).powf(part);
            fits.push(parabola(points, 1.0 - missing, 0.0));
        }
        Self {
            values: points.len(),
            fits,
        }
    }

    /// Chance of values so high or higher if the mean is `mean`, at most.
    pub fn chance_above(&self, mean: f64) -> f64 {
        let free = self.fit(None);
        match free.mean > mean {
            true => tail(self.root(&free, mean)),
            false => 1.0,
        }
    }

    /// Means that are not to be rejected, each end at the level `share`.
    pub fn interval(&self, share: f64) -> (f64, f64) {
        let free = self.fit(None);
        let end = |sign: f64| {
            // In powers of two away from the mean until it is rejected, then bisected.
            let rejected = |off: f64| tail(self.root(&free, free.mean + sign * off)) <= share;
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

    fn root(&self, free: &Fit, mean: f64) -> f64 {
        (self.fit(Some(mean)).cost - free.cost).max(0.0).sqrt()
    }

    /// The best fit of all, with the mean held or free.
    fn fit(&self, held: Option<f64>) -> Fit {
        let n = self.values.max(1) as f64;
        let all = self.fits.iter().map(|fit| {
            let mean = held.unwrap_or(fit.slope / fit.curve.max(f64::MIN_POSITIVE));
            let squares = fit.all - 2.0 * fit.slope * mean + fit.curve * mean * mean;
            Fit {
                cost: n * (squares.max(0.0) / n + RESOLUTION * RESOLUTION).ln() + fit.logs,
                mean,
            }
        });
        let none = Fit {
            cost: f64::INFINITY,
            mean: held.unwrap_or(0.0),
        };
        all.fold(none, |best, one| match one.cost < best.cost {
            true => one,
            false => best,
        })
    }
}

fn parabola(points: &[(usize, f64)], correlation: f64, noise: f64) -> Parabola {
    let mut sum = Parabola::default();
    // What is known of the state: of the values, of a mean of one, and its variance.
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

/// Chance of such a root, at most.
fn tail(root: f64) -> f64 {
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
        let steady = Series::new(&steady, 60);
        assert!(steady.chance_above(0.0) < 1e-9);
        let (low, high) = steady.interval(0.05);
        assert!(
            low > 0.8 && low < 1.0 && high > 1.0 && high < 1.2,
            "{low} {high}"
        );
        // Half of the watch up, half of it down: the mean may be zero.
        let wandering: Vec<(usize, f64)> = (0..60)
            .map(|at| (at, if at < 40 { 1.5 } else { -0.5 }))
            .collect();
        let wandering = Series::new(&wandering, 60);
        assert!(
            wandering.chance_above(0.0) > 0.01,
            "{}",
            wandering.chance_above(0.0)
        );
        assert!(wandering.interval(0.05).1 > 1.5);
    }

    #[test]
    fn missing_windows_are_passed_over() {
        let all: Vec<(usize, f64)> = (0..60)
            .map(|at| (at, ((at * 37) % 11) as f64 / 11.0))
            .collect();
        let some: Vec<(usize, f64)> = all.iter().copied().filter(|(at, _)| at % 3 != 0).collect();
        let (few, many) = (Series::new(&some, 60), Series::new(&all, 60));
        let width = |(low, high): (f64, f64)| high - low;
        assert!(width(few.interval(0.05)) > width(many.interval(0.05)));
    }

    #[test]
    fn nothing_and_one_value_do_no_harm() {
        for points in [vec![], vec![(3, 0.7)], vec![(0, 0.0), (1, 0.0)]] {
            let series = Series::new(&points, 60);
            assert!(series.chance_above(0.0) > 0.0);
            let (low, high) = series.interval(0.05);
            assert!(low <= high, "{low} {high}");
        }
    }
}
