//! Trials of the store, judged by the current rules.

use assay_judge::trial::{JudgedSlots, forecast, judge_slots_for_display, judge_trial};
use assay_model::advice::RiskLevel;
use assay_model::change::Change;
use assay_model::trial::{Judgement, Kept, PairOutcome, Slot, Trial, TrialId, TrialState, Verdict};
use assay_report::trial::{TrialView, convert_improvement};
use assay_store::{Store, StoreError};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A trial with its slots, its judgement, and everything that is derived from them.
pub struct StoredTrial {
    /// Trial, as it is stored.
    pub trial: Trial,
    slots: Vec<Slot>,
    pairs: Vec<PairOutcome>,
    judgement: Judgement,
    shown: JudgedSlots,
    smallest: Vec<(u32, f64)>,
}

impl StoredTrial {
    /// Judges a trial from its slots.
    #[must_use]
    pub fn new(trial: Trial, slots: Vec<Slot>) -> Self {
        let (pairs, judgement) = judge_trial(&trial, &slots);
        let smallest = |noise: f64| {
            [10, 30, 60]
                .map(|pairs| {
                    let effect = forecast::forecast_smallest_effect(noise, pairs);
                    (pairs, effect.exp_m1())
                })
                .to_vec()
        };
        Self {
            shown: judge_slots_for_display(&trial, &slots, &pairs),
            smallest: judgement.pair_sd.map(smallest).unwrap_or_default(),
            trial,
            slots,
            pairs,
            judgement,
        }
    }

    /// Reads a trial and judges it.
    ///
    /// # Errors
    /// The trial does not exist or cannot be read.
    pub fn read(store: &Store, id: TrialId) -> Result<Self, StoreError> {
        Ok(Self::new(store.trial(id)?, store.slots(id)?))
    }

    /// Returns the view that reports need.
    #[must_use]
    pub fn view(&self) -> TrialView<'_> {
        TrialView {
            trial: &self.trial,
            slots: &self.slots,
            samples: &self.shown.samples,
            pairs: &self.pairs,
            judgement: &self.judgement,
            latency: &self.shown.latency,
            smallest: &self.smallest,
        }
    }

    fn summarize(&self) -> TrialSummary {
        let (trial, judgement) = (&self.trial, &self.judgement);
        let plan = &trial.plan;
        // Follows `assay trial`, which never keeps an unsafe change.
        let safe = plan.safety.is_none() && plan.risk != RiskLevel::DataLoss;
        let keepable = safe && (plan.keep.is_some() || matches!(plan.change, Change::Set { .. }));
        let change = |ratio| convert_improvement(plan.metric, ratio);
        TrialSummary {
            id: trial.id,
            advice: plan.advice.clone(),
            target: plan.target.clone(),
            metric: plan.metric.to_string(),
            started: trial.started,
            state: trial.state,
            verdict: judgement.verdict,
            is_aa: plan.aa,
            improvement: judgement.ratio,
            interval: judgement.interval.map(|range| [range.low, range.high]),
            change: judgement.ratio.map(change),
            margin: plan.margin,
            pairs: judgement.pairs,
            most_pairs: plan.max_pairs,
            kept: trial.kept,
            waits_for_keep: keepable
                && !plan.aa
                && judgement.verdict == Verdict::Better
                && trial.state == TrialState::Complete
                && trial.kept == Some(Kept::Reverted),
            machine: None,
        }
    }
}

/// Summary of a trial for lists.
#[derive(Clone, Debug)]
pub(crate) struct TrialSummary {
    pub(crate) id: TrialId,
    pub(crate) advice: String,
    pub(crate) target: String,
    pub(crate) metric: String,
    pub(crate) started: Timestamp,
    pub(crate) state: TrialState,
    pub(crate) verdict: Verdict,
    pub(crate) is_aa: bool,
    /// Improvement factor, where above 1 is better; `None` without a figure.
    pub(crate) improvement: Option<f64>,
    /// Lower and upper end of the interval of `improvement`.
    pub(crate) interval: Option<[f64; 2]>,
    /// Figure of B divided by figure of A.
    pub(crate) change: Option<f64>,
    /// Smallest relevant difference as a fraction.
    pub(crate) margin: f64,
    pub(crate) pairs: u32,
    pub(crate) most_pairs: u32,
    pub(crate) kept: Option<Kept>,
    /// Whether the verdict is "better" but the change was reverted, so that the user may still keep it.
    pub(crate) waits_for_keep: bool,
    /// Name of the machine; `None` if unknown.
    pub(crate) machine: Option<String>,
}

/// Cache of the summaries of trials that have ended, because judging a trial takes some milliseconds.
#[derive(Debug, Default)]
pub(crate) struct TrialCache(Mutex<HashMap<String, Arc<TrialSummary>>>);

impl TrialCache {
    /// Returns the summaries of all trials of the store, the newest first.
    pub(crate) fn read_all(&self, store: &Store) -> Result<Vec<Arc<TrialSummary>>, StoreError> {
        let mut all = Vec::new();
        for trial in store.trials()? {
            // What may still change names the summary as well.
            let key = format!("{} {:?} {:?}", trial.uid, trial.state, trial.kept);
            let known = self.lock().get(&key).cloned();
            if let Some(known) = known {
                all.push(known);
                continue;
            }
            let (id, is_running) = (trial.id, trial.state == TrialState::Running);
            let mut summary = StoredTrial::new(trial, store.slots(id)?).summarize();
            let machine = store.machine_of_trial(id)?;
            summary.machine = machine.map(|machine| machine.shown().to_owned());
            let summary = Arc::new(summary);
            if !is_running {
                self.lock().insert(key, summary.clone());
            }
            all.push(summary);
        }
        Ok(all)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<TrialSummary>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
