//! E-divisive (Matteson and James 2014) as Otava, formerly Hunter, has it (Fleming et al. 2023): the series
//! is split where the energy distance is largest as long as Student's t-test is below ten times the level, then splits
//! that do not reach the level are taken out again, the weakest first. With its defaults: p < 0.001, no least
//! magnitude. Series are shorter than its window of 50 runs, so there is one window.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

const LEVEL: f64 = 0.001;

/// Where the series changes.
pub fn changes(series: &[f64]) -> Vec<usize> {
    let mut found = Vec::new();
    split(series, 0, series.len(), &mut found);
    found.sort_unstable();
    // The merge step.
    loop {
        let tests: Vec<f64> = (0..found.len())
            .map(|at| {
                let from = if at == 0 { 0 } else { found[at - 1] };
                let to = found.get(at + 1).copied().unwrap_or(series.len());
                test(&series[from..found[at]], &series[found[at]..to])
            })
            .collect();
        let weakest = tests.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        match weakest {
            Some((at, p)) if *p >= LEVEL => found.remove(at),
            _ => return found,
        };
    }
}

fn split(series: &[f64], from: usize, to: usize, found: &mut Vec<usize>) {
    let part = &series[from..to];
    if part.len() < 3 {
        return;
    }
    let at = candidate(part);
    if test(&part[..at], &part[at..]) < 10.0 * LEVEL {
        found.push(from + at);
        split(series, from, from + at, found);
        split(series, from + at, to, found);
    }
}

/// The τ of the largest Q(τ, κ): all that follows up to any κ is looked at.
fn candidate(part: &[f64]) -> usize {
    let n = part.len();
    let distance = |i: usize, j: usize| (part[i] - part[j]).abs();
    // within[k]: the sum over all pairs before k.
    let mut within = vec![0.0; n + 1];
    for k in 0..n {
        within[k + 1] = within[k] + (0..k).map(|i| distance(i, k)).sum::<f64>();
    }
    let (mut best, mut place) = (f64::NEG_INFINITY, 1);
    for (tau, &before) in within.iter().enumerate().take(n).skip(1) {
        let (mut across, mut right) = (0.0, 0.0);
        for kappa in tau + 1..=n {
            let new = kappa - 1;
            across += (0..tau).map(|i| distance(i, new)).sum::<f64>();
            right += (tau..new).map(|i| distance(i, new)).sum::<f64>();
            let (a, b) = (tau as f64, (kappa - tau) as f64);
            let mut q = 2.0 / (a + b) * across;
            if tau > 1 {
                q -= 2.0 * b / (a + b) / (a - 1.0) * before;
            }
            if kappa - tau > 1 {
                q -= 2.0 * a / (a + b) / (b - 1.0) * right;
            }
            if q > best {
                (best, place) = (q, tau);
            }
        }
    }
    place
}

/// The p of Student's t-test, two-sided, equal variances.
fn test(left: &[f64], right: &[f64]) -> f64 {
    let freedom = left.len() as f64 + right.len() as f64 - 2.0;
    let moments = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        (
            mean,
            part.iter().map(|value| (value - mean).powi(2)).sum::<f64>(),
        )
    };
    let ((a, sum_a), (b, sum_b)) = (moments(left), moments(right));
    let share = (left.len() as f64).recip() + (right.len() as f64).recip();
    let error = ((sum_a + sum_b) / freedom * share).sqrt();
    let t = (a - b) / error;
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(student) if t.is_finite() => 2.0 * student.cdf(-t.abs()),
        _ => 1.0,
    }
}
