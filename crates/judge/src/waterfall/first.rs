//! Which layer to look at first.

use super::paired::{Rounds, difference, linear};
use super::told;
use assay_model::ladder::Step;

/// Of the layers on a path (`among`, indices into `steps`): the one whose added time is largest for
/// certain (the largest lower end of an interval), then all that are not told from it, the dearest
/// first.
///
/// To name one alone it must be told from each of the others, so their number needs no correction
/// (an intersection–union test; Berger 1982, *Technometrics* 24, 295–300).
pub(super) fn first(
    steps: &[Step],
    among: &[usize],
    added: &dyn Fn(&Step) -> Rounds,
) -> Vec<usize> {
    let low = |step: usize| {
        let added = steps[step].added?;
        Some(added.interval?.low)
    };
    let costs = among.iter().copied().filter(|&step| {
        let cost = steps[step].added.filter(|_| steps[step].told);
        cost.is_some_and(|added| added.value > 0.0)
    });
    let best =
        costs.max_by(|&a, &b| f64::total_cmp(&low(a).unwrap_or(0.0), &low(b).unwrap_or(0.0)));
    let Some(best) = best else {
        return Vec::new();
    };
    let dearest = added(&steps[best]);
    let not_told = |&step: &usize| {
        if step == best {
            return true;
        }
        let other = added(&steps[step]);
        match linear(&difference(&dearest, &other)) {
            Some(gap) => !(told(gap) && gap.value > 0.0),
            // Nothing was measured of it: that is said of the layer itself.
            None => false,
        }
    };
    let mut first: Vec<usize> = among.iter().copied().filter(not_told).collect();
    let value = |step: usize| steps[step].added.map_or(0.0, |added| added.value);
    first.sort_by(|&a, &b| f64::total_cmp(&value(b), &value(a)));
    first.sort_by_key(|&step| step != best);
    first
}
