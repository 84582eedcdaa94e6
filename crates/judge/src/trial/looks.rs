//! When the judge looks, and how much of the level may be spent by then.

use super::rule::ALPHA;
use assay_model::trial::MAX_PAIRS;

/// Pairs measured at each look. Six is the first number at which chance cannot do the same in one
/// of 20 trials (2⁻⁶ = 1.6 %); each step is about 1.4 times the one before.
pub(super) const LOOKS: [u32; 8] = [6, 8, 11, 15, 21, 30, 42, 60];

/// Level spent by each look, cumulative, of a trial with level [`ALPHA`]. Other levels in
/// proportion. Front-loaded, because large effects should end a trial early.
const SPENT: [f64; 8] = [0.020, 0.022, 0.025, 0.028, 0.032, 0.037, 0.043, 0.050];

/// Share of what is spent by each look of [`LOOKS`] that "worse in total" gets of "worse". None at
/// first: a total is proved to be worse by rare slow slots, of which six have to be seen.
const TOTAL: [f64; 8] = [0.0, 0.0, 0.04, 0.07, 0.12, 0.19, 0.28, 0.36];

/// One look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct At {
    /// Pairs it rests on.
    pub pairs: usize,
    /// Level that may be spent by then, cumulative.
    pub spent: f64,
}

/// The looks that were reached after `measured` of at most `planned` pairs. When all were tried
/// (`over`) and some were left out, there is a last look at what there is: pairs are left out for
/// reasons that do not know which side was better, so their number says nothing about the sign.
pub(super) fn reached(planned: u32, alpha: f64, measured: usize, over: bool) -> Vec<At> {
    let planned = planned.min(MAX_PAIRS);
    let scale = alpha / ALPHA;
    let mut looks: Vec<At> = LOOKS
        .iter()
        .zip(SPENT)
        .filter(|(pairs, _)| **pairs < planned)
        .map(|(pairs, spent)| At {
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
        looks.push(At {
            pairs: last,
            spent: alpha,
        });
    }
    looks
}

/// The same where the looks were settled otherwise: the level is spent evenly over them.
pub(super) fn settled(looks: &[u32], alpha: f64, measured: usize, over: bool) -> Vec<At> {
    let planned = looks
        .last()
        .map_or(0, |last| (*last).min(MAX_PAIRS) as usize);
    let last = if over { measured.min(planned) } else { planned };
    let share = |at: usize| alpha * (at + 1) as f64 / looks.len() as f64;
    let mut reached: Vec<At> = (looks.iter().enumerate())
        .map(|(at, pairs)| At {
            pairs: *pairs as usize,
            spent: share(at),
        })
        .filter(|look| look.pairs < last && look.pairs <= measured)
        .collect();
    if measured >= last && last > 0 {
        reached.push(At {
            pairs: last,
            spent: alpha,
        });
    }
    reached
}

/// The looks of "worse in total".
pub(super) fn for_total(looks: &[At]) -> Vec<At> {
    shared(looks, total_share)
}

/// The looks of "worse" in the typical pair: with those of [`for_total`] they spend the level once.
pub(super) fn without_total(looks: &[At]) -> Vec<At> {
    shared(looks, |pairs| 1.0 - total_share(pairs))
}

fn shared(looks: &[At], share: impl Fn(usize) -> f64) -> Vec<At> {
    let of = |look: &At| At {
        spent: look.spent * share(look.pairs),
        ..*look
    };
    looks.iter().map(of).collect()
}

fn total_share(pairs: usize) -> f64 {
    let reached = LOOKS.iter().rposition(|look| *look as usize <= pairs);
    reached.map_or(0.0, |at| TOTAL[at])
}

/// Measured pairs at which the judge looks next, when so many are there; none after the last look.
#[must_use]
pub fn next_look(planned: u32, measured: u32) -> Option<u32> {
    let next = match planned > MAX_PAIRS {
        true => open_ended(ALPHA, planned as usize)
            .iter()
            .map(|look| look.pairs as u32)
            .find(|look| *look > measured),
        false => LOOKS.into_iter().find(|look| *look > measured),
    };
    let next = next.unwrap_or(planned).min(planned);
    (next > measured).then_some(next)
}

/// Looks of an open-ended trial: at every pair, later at every twentieth part more. Its test needs
/// no level spent.
pub(super) fn open_ended(alpha: f64, measured: usize) -> Vec<At> {
    std::iter::successors(Some(LOOKS[0] as usize), |n| Some(n + (n / 20).max(1)))
        .take_while(|pairs| *pairs <= measured)
        .map(|pairs| At {
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
            let looks = settled(&[20, 40], 0.05, measured, over);
            let pairs: Vec<usize> = looks.iter().map(|look| look.pairs).collect();
            (pairs, looks.last().map(|look| look.spent))
        };
        assert_eq!(at(19, false), (vec![], None));
        assert_eq!(at(20, false), (vec![20], Some(0.025)));
        assert_eq!(at(40, true), (vec![20, 40], Some(0.05)));
        // Pairs were left out: the last look is at what there is.
        assert_eq!(at(33, true), (vec![20, 33], Some(0.05)));
        assert_eq!(at(18, true), (vec![18], Some(0.05)));
    }
}
