//! Look schedule: the numbers of pairs at which the interim results are tested ("looks"), and the cumulative error
//! level that is spent up to each look. The tests are in `sequential_test`.

use super::trial_rule::ALPHA;
use assay_model::trial::MAX_PAIRS;

/// Number of measured pairs at each look. Six is the smallest number at which chance reaches the same result in fewer
/// than one of 20 trials (2⁻⁶ = 1.6 %); each step is about 1.4 times the previous one.
pub(super) const LOOKS: [u32; 8] = [6, 8, 11, 15, 21, 30, 42, 60];

/// Cumulative error level spent up to each look of a trial with level [`ALPHA`]; other levels are proportional. Most of
/// it is spent early, because large effects should end a trial early.
const SPENT: [f64; 8] = [0.020, 0.022, 0.025, 0.028, 0.032, 0.037, 0.043, 0.050];

/// Fraction of the level spent at each look of [`LOOKS`] that is reserved for "worse in total" instead of "worse". It
/// is 0 at first, because rare slow slots prove a worse total, and at least six of them are needed.
const TOTAL: [f64; 8] = [0.0, 0.0, 0.04, 0.07, 0.12, 0.19, 0.28, 0.36];

/// A planned number of pairs at which the interim results are tested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PlannedLook {
    /// Number of pairs at the look.
    pub pairs: usize,
    /// Cumulative error level that may be spent up to this look.
    pub spent: f64,
}

/// Returns the looks reached after `measured` of at most `planned` pairs. If all pairs were tried (`over`) but some
/// were left out, adds a last look at the remaining pairs. This is valid because the reasons to leave a pair out do not
/// depend on which side was better, so their number carries no information about the sign.
pub(super) fn list_reached_looks(
    planned: u32,
    alpha: f64,
    measured: usize,
    over: bool,
) -> Vec<PlannedLook> {
    let planned = planned.min(MAX_PAIRS);
    let scale = alpha / ALPHA;
    let mut looks: Vec<PlannedLook> = LOOKS
        .iter()
        .zip(SPENT)
        .filter(|(pairs, _)| **pairs < planned)
        .map(|(pairs, spent)| PlannedLook {
            pairs: *pairs as usize,
            spent: spent * scale,
        })
        .filter(|look| look.pairs <= measured)
        .collect();
    let last = if over {
        measured.min(planned as usize)
    } else {
        planned as usize
    };
    if measured >= last && last > 0 {
        looks.retain(|look| look.pairs < last);
        looks.push(PlannedLook {
            pairs: last,
            spent: alpha,
        });
    }
    looks
}

/// Returns the reached looks of a schedule that the plan fixed. The level is divided evenly among its looks.
pub(super) fn list_settled_looks(
    looks: &[u32],
    alpha: f64,
    measured: usize,
    over: bool,
) -> Vec<PlannedLook> {
    let planned = looks
        .last()
        .map_or(0, |last| (*last).min(MAX_PAIRS) as usize);
    let last = if over { measured.min(planned) } else { planned };
    let share = |at: usize| alpha * (at + 1) as f64 / looks.len() as f64;
    let mut reached: Vec<PlannedLook> = (looks.iter().enumerate())
        .map(|(at, pairs)| PlannedLook {
            pairs: *pairs as usize,
            spent: share(at),
        })
        .filter(|look| look.pairs < last && look.pairs <= measured)
        .collect();
    if measured >= last && last > 0 {
        reached.push(PlannedLook {
            pairs: last,
            spent: alpha,
        });
    }
    reached
}

/// Returns the looks of "worse in total".
pub(super) fn plan_looks_for_total(looks: &[PlannedLook]) -> Vec<PlannedLook> {
    share_level(looks, compute_share_for_total)
}

/// Returns the looks of "worse" in the typical pair. Together with the looks of [`plan_looks_for_total`], they spend
/// the level of "worse" once.
pub(super) fn plan_looks_without_total(looks: &[PlannedLook]) -> Vec<PlannedLook> {
    share_level(looks, |pairs| 1.0 - compute_share_for_total(pairs))
}

fn share_level(looks: &[PlannedLook], share: impl Fn(usize) -> f64) -> Vec<PlannedLook> {
    let of = |look: &PlannedLook| PlannedLook {
        spent: look.spent * share(look.pairs),
        ..*look
    };
    looks.iter().map(of).collect()
}

fn compute_share_for_total(pairs: usize) -> f64 {
    let reached = LOOKS.iter().rposition(|look| *look as usize <= pairs);
    reached.map_or(0.0, |at| TOTAL[at])
}

/// Returns the number of measured pairs at the next look after `measured` pairs; `None` after the last look.
#[must_use]
pub fn find_next_look(planned: u32, measured: u32) -> Option<u32> {
    let next = match planned > MAX_PAIRS {
        true => plan_open_ended_looks(ALPHA, planned as usize)
            .iter()
            .map(|look| look.pairs as u32)
            .find(|look| *look > measured),
        false => LOOKS.into_iter().find(|look| *look > measured),
    };
    let next = next.unwrap_or(planned).min(planned);
    (next > measured).then_some(next)
}

/// Returns the looks of an open-ended trial: at every pair, later after every additional 5 %. Its
/// test spends no level.
pub(super) fn plan_open_ended_looks(alpha: f64, measured: usize) -> Vec<PlannedLook> {
    std::iter::successors(Some(LOOKS[0] as usize), |n| Some(n + (n / 20).max(1)))
        .take_while(|pairs| *pairs <= measured)
        .map(|pairs| PlannedLook {
            pairs,
            spent: alpha,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_looks_spend_the_whole_level_at_the_last() {
        let at = |measured, over| {
            let looks = list_settled_looks(&[20, 40], 0.05, measured, over);
            let pairs: Vec<usize> = looks.iter().map(|look| look.pairs).collect();
            (pairs, looks.last().map(|look| look.spent))
        };
        assert_eq!(at(19, false), (vec![], None));
        assert_eq!(at(20, false), (vec![20], Some(0.025)));
        assert_eq!(at(40, true), (vec![20, 40], Some(0.05)));
        // Some pairs were left out: the last look is at the remaining pairs.
        assert_eq!(at(33, true), (vec![20, 33], Some(0.05)));
        assert_eq!(at(18, true), (vec![18], Some(0.05)));
    }
}
