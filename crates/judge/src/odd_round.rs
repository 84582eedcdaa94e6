//! Finds a round whose rate differs tenfold from the others: one round of five at a fiftieth of the rate makes the mean
//! meaningless. Shifts that last are in `shift`, doubts about web loads in `web::drift`.

use crate::workload_groups::WorkloadGroup;
use assay_model::criterion::Direction;
use assay_model::units::format_significant;

/// A round is an outlier if its rate differs from the median of the others by this factor.
const FACTOR: f64 = 10.0;

/// An outlier round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OddRound {
    /// Number of the round, as in the rates.
    pub round: u32,
    /// Its operations per second.
    pub rate: f64,
    /// Median of the other rounds.
    pub usual: f64,
}

impl OddRound {
    /// Finds the largest outlier among rounds with their rates; `None` if no round differs tenfold.
    #[must_use]
    pub fn find(rates: &[(u32, f64)]) -> Option<Self> {
        let rates = rates.iter().filter(|(_, rate)| *rate > 0.0);
        let rates: Vec<(u32, f64)> = rates.copied().collect();
        let odd = rates.iter().enumerate().filter_map(|(at, (round, rate))| {
            let others = rates.iter().enumerate().filter(|(other, _)| *other != at);
            let mut others: Vec<f64> = others.map(|(_, (_, rate))| *rate).collect();
            others.sort_by(f64::total_cmp);
            let usual = *others.get(others.len() / 2)?;
            Some(Self {
                round: *round,
                rate: *rate,
                usual,
            })
        });
        odd.filter(|one| one.factor() >= FACTOR)
            .max_by(|a, b| a.factor().total_cmp(&b.factor()))
    }

    fn factor(&self) -> f64 {
        (self.rate / self.usual).max(self.usual / self.rate)
    }

    /// Describes the outlier on one line: both rates and their ratio.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "round {}: {} per second, the others {} ({:.0}-fold)",
            self.round,
            format_significant(self.rate),
            format_significant(self.usual),
            self.factor()
        )
    }
}

/// Finds the outlier among the samples of a workload that count.
pub(crate) fn find_in_group(group: &WorkloadGroup) -> Option<OddRound> {
    let rates = group.valid_samples().into_iter();
    let rates: Vec<(u32, f64)> = rates
        .filter_map(|(sample, sides)| Some((sample.round, sides.get(&Direction::All)?.iops)))
        .collect();
    OddRound::find(&rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_differs_tenfold_is_found() {
        for (rates, found) in [
            (&[9800.0, 9700.0, 188.0, 9900.0, 9750.0][..], Some(3)),
            (&[100.0, 110.0, 105.0, 4000.0], Some(4)),
            (&[9800.0, 9700.0, 1200.0, 9900.0], None),
            (&[9800.0, 9700.0, 0.0, 9900.0], None),
            (&[9800.0], None),
            (&[], None),
        ] {
            let rates: Vec<(u32, f64)> = (1..).zip(rates.iter().copied()).collect();
            let odd = OddRound::find(&rates);
            assert_eq!(odd.map(|one| one.round), found, "{rates:?}");
        }
    }
}
