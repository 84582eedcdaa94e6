//! Whether a figure of the same plan on the same machine moved from one run on, and from which.
//!
//! Runs are looked at again after each new one, for as long as there are any: a rule that is wrong once in a
//! hundred looks is wrong in the end. So the evidence is a *test martingale*: bets against "these runs could stand in
//! any order" that are worth 1 on average as long as that is true, whatever the noise is distributed like. By
//! Ville's inequality it reaches 1/α at any time, ever, with probability α at most.
//!
//! One bet says: from run k on, what is measured follows Fᐞ in the place of F (Lehmann's alternatives). The
//! likelihood of the order in which the runs rank is a closed form then (Savage 1956; Savage and Sethuraman
//! 1966, as a sequential test), which is Cox's partial likelihood; ter Schure, Pérez-Ortiz, Ly and Grünwald, *The
//! anytime-valid logrank test*, NEJSDS 2 (2024), show that it is such a martingale. Which run it is and how strong the
//! change is nobody knows beforehand: the stake is spread over all of them. Only ranks count, so one slow run
//! is one slow run and no more.

mod extent;
mod figures;

pub use figures::{Figure, figures};

use assay_model::result::Interval;

/// How often a figure of which nothing changed is ever said to have changed, over all its runs: at most.
pub const LEVEL: f64 = 0.01;
/// Runs that are looked at, the newest: judging takes the cube of it.
pub const LONGEST: usize = 200;
/// A change needs so many runs before it.
const BEFORE: usize = 5;
/// Strengths of a change that are bet on, each upwards and downwards. With Δ the new runs are the largest of Δ
/// old ones: 4 is one standard deviation of normal noise, 64 is two and a half.
const STRENGTHS: [f64; 3] = [4.0, 16.0, 64.0];
/// Weight that the runs at which a change may have begun have together.
const WHERE: f64 = 0.95;

/// What a run measured.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Natural logarithm of the figure.
    pub log: f64,
    /// Decides between equal figures; it must have nothing to do with them.
    pub tie: u64,
}

/// A figure is another one from a run on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The first run of the new level, most likely: of those between which it began, the one that leaves least scatter
    /// around the medians before and after; of several, the one with the most weight.
    pub at: usize,
    /// The first and the last run with which it may have begun (95 % of the weight).
    pub between: [usize; 2],
    /// The run with which the evidence was enough.
    pub noticed: usize,
    /// The evidence then: 1/α, or more.
    pub evidence: f64,
    /// Where the level before begins and the new one ends (exclusive).
    pub span: [usize; 2],
    /// New level ÷ old one: the median of all ratios (Hodges and Lehmann 1963).
    pub ratio: f64,
    /// By the test of Mann and Whitney, 95 %; none with too few runs. It is what it would be if the run had been
    /// known beforehand.
    pub interval: Option<Interval>,
}

/// The changes of a figure, the oldest first. `level` bounds how often anything is told of a figure of which nothing
/// changed; with several figures it is to be shared among them. After a change the runs from it on are a new series.
#[must_use]
pub fn shifts(points: &[Point], level: f64) -> Vec<Shift> {
    let mut found: Vec<(usize, usize, f64)> = Vec::new();
    let mut start = 0;
    let mut end = start + BEFORE + 1;
    while end <= points.len() {
        let (evidence, weights) = evidence(&points[start..end]);
        if evidence >= 1.0 / level
            && let Some(at) = heaviest(&weights)
        {
            found.push((start + at, end - 1, evidence));
            start += at;
            end = end.max(start + BEFORE);
        }
        end += 1;
    }
    // With all runs up to the next change it is better known where each began.
    let mut out: Vec<Shift> = Vec::new();
    for (number, &(at, noticed, evidence)) in found.iter().enumerate() {
        let from = out.last().map_or(0, |shift| shift.at);
        let to = found.get(number + 1).map_or(points.len(), |next| next.0);
        out.push(located(points, [from, to], at, noticed, evidence));
    }
    out
}

fn located(points: &[Point], span: [usize; 2], at: usize, noticed: usize, found: f64) -> Shift {
    let [from, to] = span;
    let (_, weights) = evidence(&points[from..to]);
    let logs = |part: &[Point]| part.iter().map(|point| point.log).collect::<Vec<f64>>();
    let (at, between) = match around(&weights) {
        Some([first, last]) => {
            let all = logs(&points[from..to]);
            // Ranks say that something changed; how far apart the runs are says best where.
            let rest = |at: usize| scatter(&all[..at]) + scatter(&all[at..]);
            let rests: Vec<(usize, f64)> = (first..=last).map(|at| (at, rest(at))).collect();
            let least = rests.iter().map(|one| one.1).fold(f64::MAX, f64::min);
            // A run between both medians leaves as much on either side, and rounding must not decide.
            let places = rests.iter().filter(|one| one.1 <= least * (1.0 + 1e-9));
            let at = places.max_by(|a, b| weights[a.0].total_cmp(&weights[b.0]));
            let at = at.map_or(first, |one| one.0);
            (from + at, [from + first, from + last])
        }
        None => (at, [at, at]),
    };
    let (ratio, interval) = extent::extent(&logs(&points[from..at]), &logs(&points[at..to]));
    Shift {
        at,
        between,
        noticed: noticed.max(at),
        evidence: found,
        span,
        ratio,
        interval,
    }
}

/// The evidence that there was a change, and what each place of it contributes: the weight of k runs before.
fn evidence(points: &[Point]) -> (f64, Vec<f64>) {
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
            [&order, &turned].map(|ranks| likelihood(ranks, before, strength))
        });
        *weight = prior(before) * bets.sum::<f64>() / (2 * STRENGTHS.len()) as f64;
    }
    // What is staked on a change that is still to come is neither won nor lost.
    let kept = (BEFORE as f64 / n.max(BEFORE) as f64).sqrt();
    (kept + weights.iter().sum::<f64>(), weights)
}

/// The stake on a change after so many runs. All of them add up to 1, and falls slowly: a change after a
/// year of runs is to be noticed, too.
fn prior(before: usize) -> f64 {
    let root = |n: usize| (n as f64).sqrt().recip();
    (BEFORE as f64).sqrt() * (root(before) - root(before + 1))
}

/// How much likelier this order is when all runs but the first `before` are the largest of `strength` others:
/// `ranks` are the numbers of the runs, the smallest first.
fn likelihood(ranks: &[usize], before: usize, strength: f64) -> f64 {
    let (mut log, mut product, mut sum) = (0.0, 1.0, 0.0);
    for (place, &run) in ranks.iter().enumerate() {
        let weight = if run < before { 1.0 } else { strength };
        sum += weight;
        product *= weight * (place + 1) as f64 / sum;
        // Few logarithms: they would be most of the time.
        if place % 32 == 31 {
            log += f64::ln(product);
            product = 1.0;
        }
    }
    (log + product.ln()).exp()
}

/// How far runs are from their median, all of them together.
fn scatter(logs: &[f64]) -> f64 {
    let mut sorted = logs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    logs.iter().map(|log| (log - middle).abs()).sum()
}

fn heaviest(weights: &[f64]) -> Option<usize> {
    let best = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.filter(|(_, weight)| **weight > 0.0).map(|(at, _)| at)
}

/// The shortest list of the heaviest places that hold [`WHERE`] of the weight: its first and last.
fn around(weights: &[f64]) -> Option<[usize; 2]> {
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
