//! Finds the numbers of connections that are worth measuring, by short steps that are not stored.

use super::{CarryError, SEARCH, Session, Shape};
use assay_judge::web::{GAIN, fails_mostly};
use assay_model::web::{Pace, Step};

/// Rates of one target, each with its number of connections.
pub(super) type SearchedRates = Vec<(u32, f64)>;

/// Number of consecutive doublings without a higher rate that end a search. More than one is needed, because one short
/// step may be disturbed.
const FLAT: usize = 2;

impl Session<'_> {
    /// Doubles the number of connections from `first` on, until the rate of no target rises any more. Runs a short step
    /// for each number. Adds the rates to `searched`, which has an entry for each target.
    pub(super) fn search(
        &mut self,
        first: u32,
        most: u32,
        searched: &mut [SearchedRates],
    ) -> Result<(), CarryError> {
        let kept = self.steps.len();
        self.searching = true;
        let (mut connections, mut flat) = (first, 0);
        loop {
            for (target, rates) in searched.iter_mut().enumerate() {
                let seconds = (
                    self.settings.seconds.0.min(SEARCH.0),
                    self.settings.washout.min(SEARCH.1),
                );
                let shape = Shape {
                    target,
                    round: 0,
                    connections,
                    pace: Pace::Closed,
                    share: None,
                };
                self.step_for(shape, seconds)?;
                let works = |step: &Step| !fails_mostly(step.measured.failed(), step.measured.due);
                let seen = self.steps.drain(kept..).filter(works);
                let seen = seen.map(|step| step.measured.rate()).sum();
                rates.push((connections, seen));
            }
            flat = match searched.iter().any(|rates| is_rising(rates)) {
                true => 0,
                false => flat + 1,
            };
            if flat >= FLAT || connections >= most || (self.stop)() {
                break;
            }
            connections = connections.saturating_mul(2).min(most);
        }
        self.searching = false;
        Ok(())
    }
}

/// Returns whether the last step of a search raised the rate.
fn is_rising(rates: &[(u32, f64)]) -> bool {
    let Some(((_, last), before)) = rates.split_last() else {
        return false;
    };
    *last > GAIN * before.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
}

/// Returns the smallest number of connections that reaches the highest rate.
fn find_knee(rates: &[(u32, f64)]) -> u32 {
    let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let enough = rates.iter().find(|(_, rate)| *rate * GAIN >= best);
    enough.map_or(1, |(connections, _)| *connections)
}

/// Returns the numbers of connections around the knee of each target.
pub(super) fn list_around_knees(searched: &[SearchedRates], most: u32) -> Vec<u32> {
    let around = searched
        .iter()
        .map(|rates| find_knee(rates))
        .flat_map(|knee| {
            let twice = knee.saturating_mul(2).min(most);
            [1, knee / 4, knee / 2, knee, twice]
        });
    sorted(around)
}

/// Returns the knee of each target and twice the knee, all at least `least`.
pub(super) fn list_from_knees(searched: &[SearchedRates], least: u32, most: u32) -> Vec<u32> {
    let from = searched
        .iter()
        .map(|rates| find_knee(rates))
        .flat_map(|knee| {
            let knee = knee.max(least);
            [knee, knee.saturating_mul(2).min(most)]
        });
    sorted(from)
}

fn sorted(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut list: Vec<u32> = numbers.filter(|connections| *connections > 0).collect();
    list.sort_unstable();
    list.dedup();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_surround_the_knee() {
        let rates = vec![
            (1, 900.0),
            (2, 1_800.0),
            (4, 1_700.0),
            (8, 7_000.0),
            (16, 7_100.0),
            (32, 6_000.0),
        ];
        assert_eq!(find_knee(&rates), 8);
        assert!(!is_rising(&rates) && is_rising(&rates[..4]));
        let other = vec![(1, 50.0), (2, 50.0)];
        assert_eq!(
            list_around_knees(&[rates.clone(), other], 1024),
            [1, 2, 4, 8, 16]
        );
        assert_eq!(
            list_from_knees(std::slice::from_ref(&rates), 32, 1024),
            [32, 64]
        );
        assert_eq!(list_from_knees(&[rates], 64, 64), [64]);
        assert_eq!(list_around_knees(&[Vec::new()], 1), [1]);
    }
}
