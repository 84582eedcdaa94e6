//! Judges stored samples: doubts, statistics, criteria and limits. All functions are pure. The text of a report is in
//! `assay-report`.
//!
//! All results are derived from stored samples on every read, so that better rules also apply to old runs.

mod criteria;
pub mod doubts;
mod estimate;
mod limit;
mod load_diagnosis;
mod odd_round;
mod run_comparison;
mod sample_figures;
pub mod shift;
pub mod sibling_disks;
mod steadiness;
pub mod study;
pub mod trial;
mod waterfall;
pub mod web;
mod workload_groups;

pub use criteria::probability_met;
pub use load_diagnosis::{LoadDiagnosis, diagnose_load};
pub use odd_round::OddRounds;
pub use run_comparison::compare_runs;
pub use steadiness::is_steady;
pub use waterfall::build_waterfalls;
pub use workload_groups::{judge_jobs, sample_figures};

use assay_model::criterion::Direction;
use assay_model::result::{Judged, Limit as Answer, WorkloadResult};
use assay_model::{Run, Sample};
use doubts::SampleContext;
use limit::{LimitEvidence, SiblingResult};
use workload_groups::WorkloadGroup;

/// Judges each sample, each workload on each target and each criterion of a run.
#[must_use]
pub fn judge_run(run: &Run, samples: &[Sample]) -> Judged {
    let judged: Vec<workload_groups::SampleWithFigures> = samples
        .iter()
        .map(|s| workload_groups::judge_sample(SampleContext::of(run, s), s))
        .collect();
    let samples = judged
        .iter()
        .map(workload_groups::SampleWithFigures::to_judged_sample)
        .collect();
    let groups = workload_groups::group_judged(run, judged);
    let evidence = collect_evidence(run, &groups);
    let results: Vec<WorkloadResult> = groups
        .iter()
        .zip(&evidence)
        .map(|(group, evidence)| build_workload_result(group, evidence))
        .collect();
    Judged {
        samples,
        criteria: criteria::judge_criteria(&run.plan.want, &results),
        results,
    }
}

fn build_workload_result(group: &WorkloadGroup, evidence: &LimitEvidence) -> WorkloadResult {
    let valid = group.valid_samples();
    let sides: Vec<&sample_figures::FiguresByDirection> =
        valid.iter().map(|(_, sides)| *sides).collect();
    let rates: Vec<f64> = sides
        .iter()
        .filter_map(|sides| Some(sides.get(&Direction::All)?.iops))
        .collect();
    let pooled = group.pool_samples();
    let counted: Vec<&Sample> = valid.iter().map(|(sample, _)| *sample).collect();
    let answer = web::limit_of(&counted).unwrap_or_else(|| limit::find_limit(evidence));
    WorkloadResult {
        workload: group.workload.clone(),
        target: group.target.clone(),
        description: group.spec.map_or_else(String::new, |spec| spec.describe()),
        rounds: valid.len() as u32,
        rounds_void: (group.samples.len() - valid.len()) as u32,
        validity: group.validity(),
        doubts: group.count_doubts(),
        estimates: pooled
            .into_iter()
            .map(|(metric, pooled)| (metric, pooled.to_estimate()))
            .collect(),
        steadiness: steadiness::judge_steadiness(&rates, &evidence.series),
        limit: answer,
        latency: estimate::merge_latencies(&sides).histogram,
        series: valid
            .iter()
            .map(|(sample, _)| (sample.round, sample.series.clone()))
            .collect(),
    }
}

/// Collects the evidence of each group, including the results of similar workloads in the same run.
fn collect_evidence<'a>(run: &'a Run, groups: &[WorkloadGroup<'a>]) -> Vec<LimitEvidence<'a>> {
    let mut all: Vec<LimitEvidence> = groups
        .iter()
        .map(|group| {
            let target = run
                .targets
                .iter()
                .find(|target| target.name == group.target);
            LimitEvidence::collect(group.spec, target, &run.facts, &group.valid_samples())
        })
        .collect();
    let siblings: Vec<Option<SiblingResult>> = groups
        .iter()
        .zip(&all)
        .map(|(group, evidence)| {
            (find_fio_workload(group).is_some() && evidence.iops > 0.0).then(|| SiblingResult {
                workload: group.workload.clone(),
                in_flight: evidence.in_flight,
                block_size: evidence.block_size,
                iops: evidence.iops,
                variation: limit::find_largest_variation(&evidence.series),
            })
        })
        .collect();
    for (i, one) in groups.iter().enumerate() {
        for (j, other) in groups.iter().enumerate() {
            let (Some(sibling), Some(a), Some(b)) = (
                &siblings[j],
                find_fio_workload(one),
                find_fio_workload(other),
            ) else {
                continue;
            };
            let alike = i != j
                && one.target == other.target
                && a.pattern == b.pattern
                && a.read_percent == b.read_percent
                && a.engine == b.engine
                && a.direct == b.direct
                && a.durability == b.durability;
            if alike && a.block_size == b.block_size {
                all[i].depths.push(sibling.clone());
            } else if alike && a.queue_depth == b.queue_depth && a.jobs == b.jobs {
                all[i].sizes.push(sibling.clone());
            }
        }
    }
    all
}

fn find_fio_workload<'a>(group: &WorkloadGroup<'a>) -> Option<&'a assay_model::Workload> {
    group.spec?.fio()
}

#[cfg(test)]
#[path = "../../../bench/trials/noise.rs"]
#[allow(dead_code, reason = "a bench needs more of it")]
mod noise;
#[cfg(test)]
mod tests;
