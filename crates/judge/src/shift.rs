//! Shift detection: finds whether a figure of the same plan on the same machine shifted at some run, and at which run.
//!
//! The series is judged again after each new run, without end, so a rule that is wrong once in a hundred times is wrong
//! eventually. The evidence is therefore a *test martingale*: bets against the hypothesis "the runs are exchangeable",
//! whose value is 1 on average under that hypothesis, whatever the distribution of the noise. By Ville's inequality the
//! probability that the value ever reaches 1/α is at most α.
//!
//! One bet is: from run k on, figures follow Fᐞ instead of F (Lehmann's alternatives). The likelihood of the rank order
//! then has a closed form (Savage 1956; Savage and Sethuraman 1966, as a sequential test), which is Cox's partial
//! likelihood; ter Schure, Pérez-Ortiz, Ly and Grünwald, *The anytime-valid logrank test*, NEJSDS 2 (2024), show that
//! it is such a martingale. The run and the size of the shift are unknown, so the stake is spread over all of them.
//! Only ranks count, so a single slow run has a bounded effect.

mod followed_figures;
mod shift_ratio;

pub use followed_figures::{FollowedFigure, collect_followed_figures};

use assay_model::result::Interval;

/// Maximum probability that a figure without any shift is ever reported as shifted, over all its runs.
pub const LEVEL: f64 = 0.01;
/// Number of newest runs that are examined; the computing time grows with its cube.
pub const LONGEST: usize = 200;
/// Minimum number of runs before a shift.
const BEFORE: usize = 5;
/// Sizes of a shift that the bets cover, each upwards and downwards. With Δ, a new run is
/// distributed like the largest of Δ old runs: 4 is one standard deviation of normal noise, 64 is
/// two and a half.
const STRENGTHS: [f64; 3] = [4.0, 16.0, 64.0];
/// Fraction of the weight that the reported range of possible runs of a shift contains.
const WHERE: f64 = 0.95;

/// A figure of one run, as a point of a series.
#[derive(Clone, Copy, Debug)]
pub struct RunFigure {
    /// Natural logarithm of the figure.
    pub log: f64,
    /// Decides the order of equal figures; must be independent of the figures.
    pub tie: u64,
}

/// A shift of a figure at some run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureShift {
    /// Most likely first run of the new level: of the candidates, the run that minimises the
    /// scatter around the medians before and after; on a tie, the run with the most weight.
    pub at: usize,
    /// First and last candidate for the first run of the new level (95 % of the weight).
    pub between: [usize; 2],
    /// Run at which the evidence became sufficient.
    pub noticed: usize,
    /// Evidence at the run `noticed`: at least 1/α.
    pub evidence: f64,
    /// Start of the old level and end (exclusive) of the new level.
    pub span: [usize; 2],
    /// New level ÷ old level: the median of all ratios (Hodges and Lehmann 1963).
    pub ratio: f64,
    /// 95 % interval of `ratio` by the Mann–Whitney test; `None` with too few runs. The interval ignores that the
    /// position of the shift was chosen from the data.
    pub interval: Option<Interval>,
}

/// Finds the shifts of a figure, the oldest first. `level` bounds the probability of reporting any shift of a figure
/// that has none; a caller with several figures divides it among them. After a shift, the runs form a new series.
#[must_use]
pub fn find_shifts(points: &[RunFigure], level: f64) -> Vec<FigureShift> {
    let mut found: Vec<(usize, usize, f64)> = Vec::new();
    let mut start = 0;
    let mut end = start + BEFORE + 1;
    while end <= points.len() {
        let (evidence, weights) = weigh_change_points(&points[start..end]);
        if evidence >= 1.0 / level
            && let Some(at) = find_heaviest(&weights)
        {
            found.push((start + at, end - 1, evidence));
            start += at;
            end = end.max(start + BEFORE);
        }
        end += 1;
    }
    // With all runs up to the next shift, the start of each shift is known better.
    let mut out: Vec<FigureShift> = Vec::new();
    for (number, &(at, noticed, evidence)) in found.iter().enumerate() {
        let from = out.last().map_or(0, |shift| shift.at);
        let to = found.get(number + 1).map_or(points.len(), |next| next.0);
        out.push(locate_shift(points, [from, to], at, noticed, evidence));
    }
    out
}

fn locate_shift(
    points: &[RunFigure],
    span: [usize; 2],
    at: usize,
    noticed: usize,
    found: f64,
) -> FigureShift {
    let [from, to] = span;
    let (_, weights) = weigh_change_points(&points[from..to]);
    let logs = |part: &[RunFigure]| part.iter().map(|point| point.log).collect::<Vec<f64>>();
    let (at, between) = match find_heaviest_range(&weights) {
        Some([first, last]) => {
            let all = logs(&points[from..to]);
            // Ranks show that a figure shifted; the distances between runs show best where.
            let rest = |at: usize| estimate_scatter(&all[..at]) + estimate_scatter(&all[at..]);
            let rests: Vec<(usize, f64)> = (first..=last).map(|at| (at, rest(at))).collect();
            let least = rests.iter().map(|one| one.1).fold(f64::MAX, f64::min);
            // A run between both medians leaves the same scatter on either side; rounding must not
            // decide.
            let places = rests.iter().filter(|one| one.1 <= least * (1.0 + 1e-9));
            let at = places.max_by(|a, b| weights[a.0].total_cmp(&weights[b.0]));
            let at = at.map_or(first, |one| one.0);
            (from + at, [from + first, from + last])
        }
        None => (at, [at, at]),
    };
    let (ratio, interval) =
        shift_ratio::estimate_ratio(&logs(&points[from..at]), &logs(&points[at..to]));
    FigureShift {
        at,
        between,
        noticed: noticed.max(at),
        evidence: found,
        span,
        ratio,
        interval,
    }
}

/// Computes the evidence for a shift, and the weight of each possible position: index k is a shift after the first k
/// runs.
fn weigh_change_points(points: &[RunFigure]) -> (f64, Vec<f64>) {
    let n = points.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| {
        let (one, other) = (&points[a], &points[b]);
        one.log
            .total_cmp(&other.log)
            .then(one.tie.cmp(&other.tie))
            .then(a.cmp(&b))
    });
    let turned: Vec<usize> = order.iter().rev().copied().collect();
    let mut weights = vec![0.0; n];
    for (before, weight) in weights.iter_mut().enumerate().skip(BEFORE) {
        let bets = STRENGTHS.iter().flat_map(|&strength| {
            [&order, &turned].map(|ranks| compute_likelihood_ratio(ranks, before, strength))
        });
        *weight = compute_prior(before) * bets.sum::<f64>() / (2 * STRENGTHS.len()) as f64;
    }
    // A stake on a later shift is neither won nor lost.
    let kept = (BEFORE as f64 / n.max(BEFORE) as f64).sqrt();
    (kept + weights.iter().sum::<f64>(), weights)
}

/// Returns the stake on a shift after `before` runs. All stakes add up to 1 and decrease slowly, so that a shift after
/// a year of runs is noticed too.
fn compute_prior(before: usize) -> f64 {
    let root = |n: usize| (n as f64).sqrt().recip();
    (BEFORE as f64).sqrt() * (root(before) - root(before + 1))
}

/// Computes the likelihood ratio of a rank order if all runs after the first `before` are
/// distributed like the largest of `strength` runs. `ranks` contains the runs' numbers, the
/// smallest figure first.
fn compute_likelihood_ratio(ranks: &[usize], before: usize, strength: f64) -> f64 {
    let (mut log, mut product, mut sum) = (0.0, 1.0, 0.0);
    for (place, &run) in ranks.iter().enumerate() {
        let weight = if run < before { 1.0 } else { strength };
        sum += weight;
        product *= weight * (place + 1) as f64 / sum;
        // Logarithms would dominate the cost, so one is taken for 32 factors.
        if place % 32 == 31 {
            log += f64::ln(product);
            product = 1.0;
        }
    }
    (log + product.ln()).exp()
}

/// Computes the sum of the absolute deviations of the runs from their median.
fn estimate_scatter(logs: &[f64]) -> f64 {
    let mut sorted = logs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    logs.iter().map(|log| (log - middle).abs()).sum()
}

fn find_heaviest(weights: &[f64]) -> Option<usize> {
    let best = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.filter(|(_, weight)| **weight > 0.0).map(|(at, _)| at)
}

/// Selects the heaviest positions that together have the fraction [`WHERE`] of the weight, and returns the first and
/// the last of them.
fn find_heaviest_range(weights: &[f64]) -> Option<[usize; 2]> {
    let total: f64 = weights.iter().sum();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    let mut held = 0.0;
    let mut found: Option<[usize; 2]> = None;
    for at in order {
        if weights[at] <= 0.0 || held >= WHERE * total {
            break;
        }
        held += weights[at];
        found = Some(found.map_or([at, at], |[first, last]| [first.min(at), last.max(at)]));
    }
    found
}

#[cfg(test)]
mod tests;
