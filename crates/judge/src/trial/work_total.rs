//! Total work and total time: the effects that the robust centre of the pairs hides.
//!
//! A change that makes the typical pair faster and one slot in ten three times slower is no gain
//! for a user who has to do all the work. Beside the centre, the judge therefore computes two
//! ratios of sums over all slots: the work done in the same time, and the time for the same work,
//! which slow slots dominate.
//!
//! A *worse* total is proved by the same randomisation, by sign flips of the unweighted
//! differences, and shares the level of "worse" with the centre. A total that is *not* worse cannot
//! be proved by a few pairs, because a rare event may not have occurred yet. For "better", the
//! measured total therefore has to withstand one more slot that is three times as slow as usual.
//!
//! The total always compares operations done and time spent. If a latency decides, its gain need
//! not be a gain of work: then the deciding figure has to withstand the slow slot, and the total
//! must not be worse.

use super::robust_statistics::{compute_centre, compute_median};
use assay_model::trial::TotalJudgement;

/// Slowdown factor of the hypothetical additional slot: "better" must still hold if one more slot were this slow.
const STALL: f64 = 3.0;

/// Ratios of sums over all slots, B ÷ A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WorkTotal {
    /// Ratio of the work done in the same time.
    pub work: f64,
    /// Ratio of the time for the same work, which slow slots dominate.
    pub time: f64,
    /// Both ratios, computed with one more slow slot in B.
    slower: [f64; 2],
}

impl WorkTotal {
    /// Sums the work of the pairs; `None` if there are none.
    pub(super) fn sum(work: &[[f64; 2]]) -> Option<Self> {
        let n = work.len() as f64;
        let mean = |of: &dyn Fn(&[f64; 2]) -> f64| work.iter().map(of).sum::<f64>() / n;
        let [work_a, work_b] = [mean(&|w| w[0]), mean(&|w| w[1])];
        let [time_a, time_b] = [mean(&|w| w[0].recip()), mean(&|w| w[1].recip())];
        let usual = compute_median(work.iter().map(|w| w[1]).collect());
        let one_more = |mean: f64, slot: f64| (mean * n + slot) / (n + 1.0);
        (!work.is_empty()).then(|| Self {
            work: work_b / work_a,
            time: time_b / time_a,
            slower: [
                one_more(work_b, usual / STALL) / work_a,
                one_more(time_b, STALL / usual) / time_a,
            ],
        })
    }

    /// Whether neither measured ratio differs from 1 by more than the margin (natural logarithm).
    pub(super) fn is_within(&self, margin: f64) -> bool {
        let small = |ratio: f64| ratio.ln().abs() <= margin;
        small(self.work) && small(self.time)
    }

    /// Whether neither measured ratio is worse by more than the margin (natural logarithm).
    pub(super) fn is_not_worse(&self, margin: f64) -> bool {
        self.work.ln() >= -margin && self.time.ln() <= margin
    }

    /// Whether neither ratio would be worse by more than the margin (natural logarithm) if there were one more slow
    /// slot.
    pub(super) fn withstands_slow_slot(&self, margin: f64) -> bool {
        let [work, time] = self.slower;
        work.ln() >= -margin && time.ln() <= margin
    }
}

/// Computes, for each pair, the additional time that the same work took with the change.
pub(super) fn compute_lost_time(work: &[[f64; 2]]) -> Vec<f64> {
    work.iter().map(|w| w[1].recip() - w[0].recip()).collect()
}

/// Computes the number of pairs until a gain of this size (log ratio) stays a gain with one more slow slot, if there is
/// little noise.
pub(super) fn forecast_pairs_to_withstand(effect: f64, margin: f64) -> f64 {
    let room = (effect + margin).exp_m1();
    (STALL - 1.0) / room.max(0.0) - 1.0
}

/// Returns the total of the deciding figure, in which each pair counts as one unit of work.
pub(super) fn sum_effects(effects: &[f64]) -> Option<WorkTotal> {
    let relative: Vec<[f64; 2]> = effects.iter().map(|effect| [1.0, effect.exp()]).collect();
    WorkTotal::sum(&relative)
}

/// Counts, for A and for B, the pairs in which this side did less work than in the typical pair, by more than `far`
/// (natural logarithm).
fn count_slow_pairs(ratios: &[f64], far: f64) -> [u32; 2] {
    let typical = compute_centre(ratios).unwrap_or_default();
    let count = |is: &dyn Fn(f64) -> bool| ratios.iter().filter(|x| is(**x - typical)).count();
    [count(&|x| x > far) as u32, count(&|x| x < -far) as u32]
}

/// Minimum loss of a stalled slot (natural logarithm); the noise of a quiet machine is smaller.
const STALLED: f64 = 0.1;
/// Minimum distance of a stalled slot from the median, in multiples of the median absolute deviation.
const FAR: f64 = 8.0;

/// Counts the pairs with a stall in A, and in B.
fn count_stalled_pairs(ratios: &[f64]) -> [u32; 2] {
    if ratios.is_empty() {
        return [0, 0];
    }
    let middle = compute_median(ratios.to_vec());
    let spread = compute_median(ratios.iter().map(|x| (x - middle).abs()).collect());
    count_slow_pairs(ratios, STALLED.max(FAR * spread))
}

/// Returns the part of the judgement about total work and time.
pub(super) fn judge_total(
    effects: &[f64],
    work: &[[f64; 2]],
    margin: f64,
    by_latency: bool,
    worse: bool,
) -> Option<TotalJudgement> {
    let total = WorkTotal::sum(work)?;
    let margin_ln = margin.max(0.0).ln_1p();
    let stands = match by_latency {
        true => {
            total.is_not_worse(margin_ln) && sum_effects(effects)?.withstands_slow_slot(margin_ln)
        }
        false => total.withstands_slow_slot(margin_ln),
    };
    let ratios: Vec<f64> = work.iter().map(|w| (w[1] / w[0]).ln()).collect();
    Some(TotalJudgement {
        work: total.work,
        time: total.time,
        margin,
        within: total.is_within(margin_ln),
        stands,
        worse,
        slow: count_slow_pairs(&ratios, std::f64::consts::LN_2),
        stalled: count_stalled_pairs(&ratios),
    })
}
