//! The fold-over screen measures many candidates in the same pairs. It selects the candidates that are proved later;
//! the screen itself proves nothing.
//!
//! A pair compares a row of a Hadamard matrix with its complement (Plackett and Burman 1946 with fold-over), in a
//! random order. Drift cancels, as in every pair. Every interaction of two candidates cancels too, because the product
//! of their signs is the same in a row and in its complement. Columns without a candidate are *blanks*. Their apparent
//! effects are noise, with which the effects of the candidates are compared.

use crate::budget::Row;
use crate::seeds;
use crate::step::{PairOrder, Stage};
use assay_judge::trial::{compute_centre, forecast};
use assay_model::trial::PairOutcome;
use serde::{Deserialize, Serialize};

/// Minimum number of candidates for a screen. Fewer candidates can be proved one by one in the same time.
pub const LEAST_CANDIDATES: usize = 6;
/// Maximum number of candidates of a screen.
pub(crate) const MOST_CANDIDATES: usize = 30;
/// Number of iterations of the fit. Before the last iteration, the effects already change by less than the noise.
const PASSES: usize = 8;
/// Number of failed pairs that ends a screen. A setting may break the load only in combination with another setting.
const FAILURES: usize = 3;

/// A screen, which is running or has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Screen {
    /// Round of the search, from 0.
    pub round: u32,
    /// Candidates as indices into the plan, in the order of the matrix columns.
    pub candidates: Vec<usize>,
    /// Candidates that are in effect on both sides.
    pub base: Row,
    /// Seed of the rows and of the order of the sides.
    pub seed: u64,
    /// Maximum number of pairs.
    pub planned: u32,
    /// Outcomes of the measured pairs, in order.
    pub pairs: Vec<PairOutcome>,
}

/// Estimated effects of the candidates in a screen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Screened {
    /// Gain of each candidate as a natural logarithm, in the order of the columns.
    pub effects: Vec<f64>,
    /// Standard error of an effect, as a natural logarithm.
    pub error: f64,
    /// Standard deviation of the pairs around the fit.
    pub noise: f64,
    /// Largest absolute effect of a blank; `None` without blanks.
    pub largest_blank: Option<f64>,
}

/// Returns the number of rows of the smallest matrix that has a column for each candidate and for at least one blank;
/// `None` if there are too many candidates.
#[must_use]
pub fn matrix_order(candidates: usize) -> Option<u32> {
    let fits = |order: &u32| candidates < *order as usize - 1;
    [8, 16, 32].into_iter().find(fits)
}

impl Screen {
    fn rows(&self) -> usize {
        matrix_order(self.candidates.len()).unwrap_or(8) as usize
    }

    /// Returns the design: for each pair and each column, whether the column is in effect on side B. The columns of the
    /// candidates come first, then the blanks.
    fn design(&self) -> Vec<Vec<bool>> {
        let order = self.rows();
        // Column 0 of Sylvester's matrix is constant.
        let columns = seeds::shuffle(self.seed ^ 1, order - 1);
        (0..self.planned.max(self.pairs.len() as u32))
            .map(|pair| {
                let block = u64::from(pair) / order as u64;
                let rows = seeds::shuffle(self.seed.wrapping_add(2 + block), order);
                let row = rows[pair as usize % order];
                let on = |column: &usize| (row & (column + 1)).count_ones().is_multiple_of(2);
                columns.iter().map(on).collect()
            })
            .collect()
    }

    /// Returns the sides and candidates of the next pair.
    pub(crate) fn order(&self) -> PairOrder {
        let at = self.pairs.len();
        let design = self.design();
        let on_in_b = |column: usize| design.get(at).is_some_and(|row| row[column]);
        let row = |in_b: bool| -> Row {
            let columns = self.candidates.iter().enumerate();
            let on = columns.filter(|(column, _)| on_in_b(*column) == in_b);
            on.map(|(_, candidate)| *candidate)
                .chain(self.base.iter().copied())
                .collect()
        };
        PairOrder {
            stage: Stage::Screen { round: self.round },
            number: at as u32 + 1,
            now: row(false),
            changed: row(true),
            first: seeds::first_side(self.seed, at as u32 + 1),
            alternations: 1,
            held: 0,
        }
    }

    /// Returns whether the screen may end, because all pairs are measured or the standard error of the effects is at
    /// most `error`. A screen proves nothing, so it may end at any time.
    pub(crate) fn is_over(&self, error: f64) -> bool {
        const STEP: usize = 8;
        let n = self.pairs.len();
        let enough = n >= 2 * self.rows() && n.is_multiple_of(STEP);
        n >= self.planned as usize || enough && self.fit().error <= error
    }

    /// Returns whether so many pairs failed that the screen is useless.
    pub(crate) fn is_broken(&self) -> bool {
        let left_out = |pair: &&PairOutcome| !matches!(pair, PairOutcome::Measured { .. });
        self.pairs.iter().filter(left_out).count() >= FAILURES
    }

    /// Fits additive effects to the log ratios by backfitting. Each effect is a robust centre of the residuals after
    /// subtracting the other effects.
    #[must_use]
    pub fn fit(&self) -> Screened {
        let design = self.design();
        let measured: Vec<(f64, &Vec<bool>)> = self
            .pairs
            .iter()
            .zip(&design)
            .filter_map(|(pair, row)| match pair {
                PairOutcome::Measured { effect, .. } if effect.is_finite() => Some((*effect, row)),
                _ => None,
            })
            .collect();
        let columns = self.candidates.len().min(self.rows() - 1);
        let sign = |row: &[bool], column: usize| if row[column] { 1.0 } else { -1.0 };
        let mut effects = vec![0.0; columns];
        let mut rest: Vec<f64> = measured.iter().map(|(y, _)| *y).collect();
        let alone = |rest: &[f64], column: usize, effect: f64| {
            let values: Vec<f64> = (rest.iter().zip(&measured))
                .map(|(rest, (_, row))| sign(row, column) * rest + effect)
                .collect();
            compute_centre(&values).unwrap_or_default()
        };
        for _ in 0..PASSES {
            for (column, effect) in effects.iter_mut().enumerate() {
                let after = alone(&rest, column, *effect);
                for (rest, (_, row)) in rest.iter_mut().zip(&measured) {
                    *rest -= sign(row, column) * (after - *effect);
                }
                *effect = after;
            }
        }
        let blanks = (columns..self.rows() - 1).map(|column| alone(&rest, column, 0.0).abs());
        let largest_blank = blanks.reduce(f64::max);
        let n = measured.len().max(1) as f64;
        let free = measured.len().saturating_sub(columns).max(1) as f64;
        // The fit uses up degrees of freedom, so the residuals are too small.
        let noise = forecast::estimate_noise(&rest) * (n / free).sqrt();
        Screened {
            effects,
            error: noise / n.sqrt(),
            noise,
            largest_blank,
        }
    }
}

#[cfg(test)]
mod tests;
