//! Detects outlier rounds: one round of five at a fiftieth of the rate makes the mean meaningless.

use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Judged, WorkloadResult};
use assay_render::units::format_value;

/// A round is an outlier if its rate differs from the median of the others by this factor.
const FACTOR: f64 = 10.0;

/// An outlier round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OddRound {
    /// Number of the round, from 1.
    pub(crate) round: u32,
    /// Its operations per second.
    pub(crate) rate: f64,
    /// Median of the other rounds.
    pub(crate) usual: f64,
}

impl OddRound {
    /// Finds the largest outlier round; void samples are ignored.
    pub(crate) fn find(judged: &Judged, result: &WorkloadResult) -> Option<Self> {
        Self::among(judged, &result.workload, &result.target)
    }

    fn among(judged: &Judged, workload: &str, target: &str) -> Option<Self> {
        let metric = Metric::all(Quantity::Iops);
        let counts = judged.samples.iter().filter(|sample| {
            sample.workload == workload
                && sample.target == target
                && sample.validity != Validity::Void
        });
        let rates: Vec<(u32, f64)> = counts
            .filter_map(|sample| Some((sample.round, *sample.figures.get(&metric)?)))
            .filter(|(_, rate)| *rate > 0.0)
            .collect();
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
    pub(crate) fn describe(&self) -> String {
        format!(
            "round {}: {} per second, the others {} ({:.0}-fold)",
            self.round,
            format_value(Quantity::Iops, self.rate),
            format_value(Quantity::Iops, self.usual),
            self.factor()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::result::JudgedSample;

    fn judged(rates: &[f64]) -> Judged {
        let sample = |(at, rate): (usize, &f64)| JudgedSample {
            workload: "w".to_owned(),
            target: "t".to_owned(),
            round: at as u32 + 1,
            slot: at as u32,
            validity: match *rate < 0.0 {
                true => Validity::Void,
                false => Validity::Valid,
            },
            doubts: Vec::new(),
            figures: [(Metric::all(Quantity::Iops), rate.abs())].into(),
        };
        Judged {
            samples: rates.iter().enumerate().map(sample).collect(),
            results: Vec::new(),
            criteria: Vec::new(),
        }
    }

    #[test]
    fn a_round_that_differs_tenfold_is_found_and_a_void_one_is_none() {
        for (rates, found) in [
            (&[9800.0, 9700.0, 188.0, 9900.0, 9750.0][..], Some(3)),
            (&[100.0, 110.0, 105.0, 4000.0], Some(4)),
            (&[9800.0, 9700.0, 1200.0, 9900.0], None),
            (&[9800.0, 9700.0, -188.0, 9900.0], None),
            (&[9800.0], None),
        ] {
            let odd = OddRound::among(&judged(rates), "w", "t");
            assert_eq!(odd.map(|one| one.round), found, "{rates:?}");
        }
    }
}
