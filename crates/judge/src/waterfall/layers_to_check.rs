//! Finds the layer of a storage stack that should be examined first. The costs of the layers are estimated in the
//! parent module.

use super::differs_from_zero;
use super::paired_rounds::{FigureByRound, estimate_mean, subtract_rounds};
use assay_model::ladder::Step;

/// Finds the layers to examine first on a path (`among`, indices into `steps`): the layer whose added time is certainly
/// the largest (the largest lower end of an interval), then all layers that do not differ significantly from it, the
/// slowest first.
///
/// A layer is returned alone only if it differs from each of the other layers. Therefore the number of layers needs no
/// correction (an intersection–union test; Berger 1982, *Technometrics* 24, 295–300).
pub(super) fn find_layers_to_check(
    steps: &[Step],
    among: &[usize],
    added: &dyn Fn(&Step) -> FigureByRound,
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
        match estimate_mean(&subtract_rounds(&dearest, &other)) {
            Some(gap) => !(differs_from_zero(gap) && gap.value > 0.0),
            // A layer without a measurement is reported separately.
            None => false,
        }
    };
    let mut first: Vec<usize> = among.iter().copied().filter(not_told).collect();
    let value = |step: usize| steps[step].added.map_or(0.0, |added| added.value);
    first.sort_by(|&a, &b| f64::total_cmp(&value(b), &value(a)));
    first.sort_by_key(|&step| step != best);
    first
}
