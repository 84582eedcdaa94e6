//! Describes the load of a session and its figures to the judge.

use assay_model::Load;
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::trial::{Trial, TrialPlan};
use assay_tune::TuneRecord;

/// Lists the names of figures for an error message.
pub(super) fn name_figures(metrics: impl Iterator<Item = Metric>) -> String {
    let all = metrics.filter(|metric| metric.direction == Direction::All);
    let mut names: Vec<String> = all.map(|metric| metric.to_string()).collect();
    names.sort();
    names.dedup();
    names.join(", ")
}

/// Returns the trial by which the judge evaluates each pair of a session. It contains the load, the deciding figure and
/// the guardrails.
pub(super) fn describe_to_judge(record: &TuneRecord, load: &Load) -> Trial {
    let plan = &record.plan;
    let load = load.clone();
    let is_cached = !matches!(&load, Load::Fio { workload, .. } if workload.direct);
    let metric = plan
        .goal
        .wants
        .first()
        .map_or(Metric::all(Quantity::P50), assay_tune::Want::metric);
    let plan = TrialPlan {
        advice: "tune".to_owned(),
        title: String::new(),
        predicts: String::new(),
        parameters: std::collections::BTreeMap::new(),
        target: record.target.clone(),
        // Nothing reads it: the rows of each pair say what differs.
        change: assay_model::Change::Set {
            setting: assay_model::change::Setting::Sysctl { key: String::new() },
            value: None,
        },
        aa: false,
        load,
        metric,
        guards: plan.goal.guards.clone(),
        margin: plan.goal.margin,
        slot: record.slot,
        slot_min: None,
        washout: record.washout,
        cached: is_cached,
        safety: None,
        keep: None,
        risk: plan.allowed.risk,
        max_pairs: assay_model::trial::MAX_PAIRS,
        budget: Some(plan.budget),
        alpha: assay_judge::trial::ALPHA,
        seed: plan.seed,
        first: Vec::new(),
    };
    Trial {
        id: assay_model::trial::TrialId(0),
        uid: record.uid.clone(),
        assay_version: record.assay_version.clone(),
        started: record.started,
        ended: None,
        state: assay_model::trial::TrialState::Running,
        plan,
        target: record.target_info.clone(),
        facts: record.facts.clone(),
        durability: Vec::new(),
        kept: None,
        kept_in: None,
        remarks: Vec::new(),
        campaign: Vec::new(),
    }
}
