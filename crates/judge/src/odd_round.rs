//! Finds rounds whose rate differs tenfold from the other rounds. For example, if one round of five has a fiftieth of
//! the rate, the mean is meaningless. Permanent shifts are in `shift`, doubts about web loads in `web::drift`.

use crate::workload_groups::WorkloadGroup;
use assay_model::criterion::Direction;
use assay_model::units::format_significant;

/// A round is an outlier if its rate differs from the median of the other rounds by this factor.
const FACTOR: f64 = 10.0;

/// Maximum number of outliers that a description lists one by one.
const LISTED: usize = 3;

/// Outliers among the rounds of one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct OddRounds {
    /// The outliers as (number of the round, operations per second); never empty.
    odd: Vec<(u32, f64)>,
    /// Median of the other rounds, in operations per second.
    usual: f64,
}

impl OddRounds {
    /// Finds the outliers among rounds, given as (number, rate). `None` if no round differs tenfold from the median. If
    /// there are only two rounds, the slower one is the outlier.
    #[must_use]
    pub fn find(rates: &[(u32, f64)]) -> Option<Self> {
        let rates = rates.iter().filter(|(_, rate)| *rate > 0.0);
        let rates: Vec<(u32, f64)> = rates.copied().collect();
        let middle = find_median(&rates)?;
        let (odd, others): (Vec<_>, Vec<_>) = rates
            .into_iter()
            .partition(|(_, rate)| compare(*rate, middle) >= FACTOR);
        let usual = find_median(&others)?;
        (!odd.is_empty()).then_some(Self { odd, usual })
    }

    /// Whether a round is one of the outliers.
    #[must_use]
    pub fn contains(&self, round: u32) -> bool {
        self.odd.iter().any(|(odd, _)| *odd == round)
    }

    /// Describes the outliers on one line: their rates, the usual rate, and the largest ratio.
    #[must_use]
    pub fn describe(&self) -> String {
        let factors = self.odd.iter().map(|(_, rate)| compare(*rate, self.usual));
        let factor = factors.fold(1.0, f64::max);
        let numbers: Vec<String> = self
            .odd
            .iter()
            .map(|(round, _)| round.to_string())
            .collect();
        let mut rates: Vec<f64> = self.odd.iter().map(|(_, rate)| *rate).collect();
        let shown = |rates: &[f64]| -> Vec<String> {
            rates.iter().map(|rate| format_significant(*rate)).collect()
        };
        let (numbers, rates) = match numbers.len() {
            1..=LISTED => (join(&numbers), join(&shown(&rates))),
            count => {
                rates.sort_by(f64::total_cmp);
                let ends: Vec<String> = shown(&[rates[0], rates[count - 1]]);
                let more = format!(
                    "{} and {} more",
                    numbers[..LISTED].join(", "),
                    count - LISTED
                );
                (more, ends.join(" to "))
            }
        };
        let word = if self.odd.len() == 1 {
            "round"
        } else {
            "rounds"
        };
        let usual = format_significant(self.usual);
        format!("{word} {numbers}: {rates} per second, the others {usual} ({factor:.0}-fold)")
    }
}

/// Returns the median of the rates; for an even number of rates, the higher of the middle two.
fn find_median(rates: &[(u32, f64)]) -> Option<f64> {
    let mut sorted: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Returns the factor between two rates, at least 1.
fn compare(a: f64, b: f64) -> f64 {
    (a / b).max(b / a)
}

/// Joins words to a list such as `2, 3 and 4`.
fn join(words: &[String]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Finds the outliers among the samples of a workload that are not void.
pub(crate) fn find_in_group(group: &WorkloadGroup) -> Option<OddRounds> {
    let rates = group.valid_samples().into_iter();
    let rates: Vec<(u32, f64)> = rates
        .filter_map(|(sample, sides)| Some((sample.round, sides.get(&Direction::All)?.iops)))
        .collect();
    OddRounds::find(&rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_differs_tenfold_is_found() {
        for (rates, found) in [
            (&[9800.0, 9700.0, 188.0, 9900.0, 9750.0][..], &[3][..]),
            (&[9800.0, 197.0, 9700.0, 198.0, 9900.0], &[2, 4]),
            (&[197.0, 9700.0, 198.0, 9900.0], &[1, 3]),
            (&[196.0, 9800.0, 197.0, 198.0, 9900.0], &[2, 5]),
            (&[100.0, 110.0, 105.0, 4000.0], &[4]),
            (&[9000.0, 300.0], &[2]),
            (&[9800.0, 9700.0, 1200.0, 9900.0], &[]),
            (&[9800.0, 9700.0, 0.0, 9900.0], &[]),
            (&[9800.0], &[]),
            (&[], &[]),
        ] {
            let rates: Vec<(u32, f64)> = (1..).zip(rates.iter().copied()).collect();
            let odd = OddRounds::find(&rates).map_or(Vec::new(), |all| all.odd);
            let odd: Vec<u32> = odd.iter().map(|(round, _)| *round).collect();
            assert_eq!(odd, found, "{rates:?}");
        }
    }

    #[test]
    fn all_outliers_stand_in_the_description() {
        let describe = |rates: &[f64]| {
            let rates: Vec<(u32, f64)> = (1..).zip(rates.iter().copied()).collect();
            OddRounds::find(&rates).unwrap().describe()
        };
        let usual = 9_000.0;
        insta::assert_snapshot!(
            describe(&[usual, 90.0, usual]),
            @"round 2: 90.0 per second, the others 9,000 (100-fold)"
        );
        insta::assert_snapshot!(
            describe(&[usual, 90.0, usual, 300.0, usual]),
            @"rounds 2 and 4: 90.0 and 300 per second, the others 9,000 (100-fold)"
        );
        let many = [usual, 90.0, usual, 300.0, usual, 450.0, usual, 100.0, usual];
        insta::assert_snapshot!(
            describe(&many),
            @"rounds 2, 4, 6 and 1 more: 90.0 to 450 per second, the others 9,000 (100-fold)"
        );
    }
}
