//! What samples mean: doubts, statistics, criteria, attribution. Pure.
//!
//! Everything here is derived from stored samples on read, so that an old run can be judged again
//! by better rules.

mod compare;
mod criteria;
pub mod doubts;
mod estimate;
mod figures;
mod group;
mod limit;
pub mod shift;
pub mod siblings;
mod steady;
pub mod study;
pub mod trial;
mod waterfall;
pub mod web;

pub use compare::compare;
pub use criteria::probability_met;
pub use group::judge_jobs;
pub use steady::is_steady;
pub use waterfall::waterfalls;

use assay_model::criterion::Direction;
use assay_model::result::{Judged, Limit as Answer, WorkloadResult};
use assay_model::{Run, Sample};
use doubts::Around;
use group::Group;
use limit::{Evidence, Sibling};

/// Judges a run: each sample, each workload on each target, each criterion.
#[must_use]
pub fn judge(run: &Run, samples: &[Sample]) -> Judged {
    let judged: Vec<group::Judged> = samples
        .iter()
        .map(|s| group::judge(Around::of(run, s), s))
        .collect();
    let samples = judged.iter().map(group::Judged::to_result).collect();
    let groups = group::group(run, judged);
    let evidence = evidence(run, &groups);
    let results: Vec<WorkloadResult> = groups
        .iter()
        .zip(&evidence)
        .map(|(group, evidence)| result(group, evidence))
        .collect();
    Judged {
        samples,
        criteria: criteria::judge(&run.plan.want, &results),
        results,
    }
}

fn result(group: &Group, evidence: &Evidence) -> WorkloadResult {
    let valid = group.valid();
    let sides: Vec<&figures::Sides> = valid.iter().map(|(_, sides)| *sides).collect();
    let rates: Vec<f64> = sides
        .iter()
        .filter_map(|sides| Some(sides.get(&Direction::All)?.iops))
        .collect();
    let pooled = group.pooled();
    let counted: Vec<&Sample> = valid.iter().map(|(sample, _)| *sample).collect();
    let answer = web::limit_of(&counted).unwrap_or_else(|| limit::judge(evidence));
    WorkloadResult {
        workload: group.workload.clone(),
        target: group.target.clone(),
        description: group.spec.map_or_else(String::new, |spec| spec.describe()),
        rounds: valid.len() as u32,
        rounds_void: (group.samples.len() - valid.len()) as u32,
        validity: group.validity(),
        doubts: group.doubts(),
        estimates: pooled
            .into_iter()
            .map(|(metric, pooled)| (metric, pooled.estimate()))
            .collect(),
        steadiness: steady::judge(&rates, &evidence.series),
        limit: answer,
        latency: estimate::latency(&sides).histogram,
        series: valid
            .iter()
            .map(|(sample, _)| (sample.round, sample.series.clone()))
            .collect(),
    }
}

/// The evidence of each group, with its siblings in the same run.
fn evidence<'a>(run: &'a Run, groups: &[Group<'a>]) -> Vec<Evidence<'a>> {
    let mut all: Vec<Evidence> = groups
        .iter()
        .map(|group| {
            let target = run
                .targets
                .iter()
                .find(|target| target.name == group.target);
            Evidence::of(group.spec, target, &run.facts, &group.valid())
        })
        .collect();
    let siblings: Vec<Option<Sibling>> = groups
        .iter()
        .zip(&all)
        .map(|(group, evidence)| {
            (fio(group).is_some() && evidence.iops > 0.0).then(|| Sibling {
                workload: group.workload.clone(),
                in_flight: evidence.in_flight,
                block_size: evidence.block_size,
                iops: evidence.iops,
                variation: limit::variation(&evidence.series),
            })
        })
        .collect();
    for (i, one) in groups.iter().enumerate() {
        for (j, other) in groups.iter().enumerate() {
            let (Some(sibling), Some(a), Some(b)) = (&siblings[j], fio(one), fio(other)) else {
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

fn fio<'a>(group: &Group<'a>) -> Option<&'a assay_model::Workload> {
    group.spec?.fio()
}

#[cfg(test)]
#[path = "../../../bench/trials/noise.rs"]
#[allow(dead_code, reason = "a bench needs more of it")]
mod noise;
#[cfg(test)]
mod tests;
