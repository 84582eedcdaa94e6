//! Total work and total time: what the robust centre of the pairs does not see.
//!
//! A change that makes the typical pair faster and one slot in ten three times slower is no gain for
//! who has all the work to do. So beside the centre stand the ratios of the sums over all slots: of
//! the work done in the same time, and of the time that the same work takes, on which slow slots
//! weigh most.
//!
//! That the total is *worse* is proved under the same coins, by sign flips of the differences as
//! they are, and shares the level of "worse" with the centre. That it is *not* worse cannot be
//! proved by a handful of pairs, however they look: what is rare was not seen. So for "better" the
//! total, as measured, has to stand one slot more that is three times as slow as usual.
//!
//! The total is always of operations done and time spent. Where a latency decides, its gain need not be
//! one of work: there the deciding figure has to stand the slow slot, and the total must not be worse.

use super::centre::{centre, median};
use assay_model::trial::TotalJudgement;

/// How much slower than usual the slot is that a total must stand.
const STALL: f64 = 3.0;

/// Ratios of sums over all slots, B ÷ A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Total {
    /// Of the work done in the same time.
    pub work: f64,
    /// Of the time for the same work.
    pub time: f64,
    /// The same two with one slow slot more in B.
    slower: [f64; 2],
}

impl Total {
    /// Of the work of each pair. None without a pair.
    pub(super) fn of(work: &[[f64; 2]]) -> Option<Self> {
        let n = work.len() as f64;
        let mean = |of: &dyn Fn(&[f64; 2]) -> f64| work.iter().map(of).sum::<f64>() / n;
        let [work_a, work_b] = [mean(&|w| w[0]), mean(&|w| w[1])];
        let [time_a, time_b] = [mean(&|w| w[0].recip()), mean(&|w| w[1].recip())];
        let usual = median(work.iter().map(|w| w[1]).collect());
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

    /// Neither differs by more than the margin (ln), as measured.
    pub(super) fn within(&self, margin: f64) -> bool {
        let small = |ratio: f64| ratio.ln().abs() <= margin;
        small(self.work) && small(self.time)
    }

    /// Neither is worse by more than the margin (ln), as measured.
    pub(super) fn is_not_worse(&self, margin: f64) -> bool {
        self.work.ln() >= -margin && self.time.ln() <= margin
    }

    /// Neither would be worse by more than the margin (ln), were there one slow slot more.
    pub(super) fn stands(&self, margin: f64) -> bool {
        let [work, time] = self.slower;
        work.ln() >= -margin && time.ln() <= margin
    }
}

/// How much longer the work took with the change than without, per pair.
pub(super) fn lost_time(work: &[[f64; 2]]) -> Vec<f64> {
    work.iter().map(|w| w[1].recip() - w[0].recip()).collect()
}

/// Pairs until a gain of this size (log ratio) stands one slow slot more, in quiet noise.
pub(super) fn pairs_to_stand(effect: f64, margin: f64) -> f64 {
    let room = (effect + margin).exp_m1();
    (STALL - 1.0) / room.max(0.0) - 1.0
}

/// Returns the total of what decides, each pair by itself.
pub(super) fn of_deciding(effects: &[f64]) -> Option<Total> {
    let relative: Vec<[f64; 2]> = effects.iter().map(|effect| [1.0, effect.exp()]).collect();
    Total::of(&relative)
}

/// Pairs in which A, or B, did less than the typical pair lets expect, by more than `far` (ln).
fn slower(ratios: &[f64], far: f64) -> [u32; 2] {
    let typical = centre(ratios).unwrap_or_default();
    let count = |is: &dyn Fn(f64) -> bool| ratios.iter().filter(|x| is(**x - typical)).count();
    [count(&|x| x > far) as u32, count(&|x| x < -far) as u32]
}

/// A slot that did this much less than usual (ln) is no noise of a quiet machine.
const STALLED: f64 = 0.1;
/// Nor is one that is this many times as far from the middle as half of the pairs are.
const FAR: f64 = 8.0;

/// Pairs with stalls on either side.
fn stalled(ratios: &[f64]) -> [u32; 2] {
    if ratios.is_empty() {
        return [0, 0];
    }
    let middle = median(ratios.to_vec());
    let spread = median(ratios.iter().map(|x| (x - middle).abs()).collect());
    slower(ratios, STALLED.max(FAR * spread))
}

/// All that is known of the total.
pub(super) fn judgement(
    effects: &[f64],
    work: &[[f64; 2]],
    margin: f64,
    by_latency: bool,
    worse: bool,
) -> Option<TotalJudgement> {
    let total = Total::of(work)?;
    let margin_ln = margin.max(0.0).ln_1p();
    let stands = match by_latency {
        true => total.is_not_worse(margin_ln) && of_deciding(effects)?.stands(margin_ln),
        false => total.stands(margin_ln),
    };
    let ratios: Vec<f64> = work.iter().map(|w| (w[1] / w[0]).ln()).collect();
    Some(TotalJudgement {
        work: total.work,
        time: total.time,
        margin,
        within: total.within(margin_ln),
        stands,
        worse,
        slow: slower(&ratios, std::f64::consts::LN_2),
        stalled: stalled(&ratios),
    })
}
