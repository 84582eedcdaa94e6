//! Groups the judged samples by workload and target. Pairing of trial slots is in `trial::pair_outcomes`.

use crate::doubts::{self, SampleContext};
use crate::estimate::{PooledValue, pool_metrics};
use crate::sample_figures::{FiguresByDirection, compute_figures, sum_workers};
use assay_model::criterion::Metric;
use assay_model::doubt::{Severity, Validity};
use assay_model::result::{CountedDoubt, JudgedSample};
use assay_model::sample::{Outcome, Worker};
use assay_model::{Doubt, Planned, Run, Sample};
use std::collections::BTreeMap;

/// A sample with its doubts and figures.
#[derive(Clone, Debug)]
pub(crate) struct SampleWithFigures<'a> {
    pub sample: &'a Sample,
    pub sides: FiguresByDirection,
    pub doubts: Vec<Doubt>,
    pub validity: Validity,
}

/// The samples of one workload on one target.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadGroup<'a> {
    pub workload: String,
    pub target: String,
    /// The workload as planned; `None` if the plan does not contain it.
    pub spec: Option<&'a Planned>,
    /// Samples in the order in which they were taken.
    pub samples: Vec<SampleWithFigures<'a>>,
}

/// Code of the doubt about a sample whose load did not finish, or finished without a figure.
pub(crate) const NOT_COMPLETED: &str = "not-completed";

impl SampleWithFigures<'_> {
    /// Removes the doubts with these codes, for example if they do not apply to the sample.
    pub fn without_codes(mut self, codes: &[&str]) -> Self {
        self.doubts
            .retain(|doubt| !codes.contains(&doubt.code.as_str()));
        self.validity = Validity::of(&self.doubts);
        self
    }
}

pub(crate) fn judge_sample<'a>(
    around: SampleContext<'_>,
    sample: &'a Sample,
) -> SampleWithFigures<'a> {
    let mut doubts = doubts::find_sample_doubts(around, sample);
    if let (Outcome::Completed, Some(step)) = (&sample.outcome, crate::web::of(sample)) {
        doubts.extend(crate::web::doubts(step));
    }
    let sides = match &sample.outcome {
        Outcome::Completed => sum_workers(&sample.workers),
        _ => FiguresByDirection::new(),
    };
    add_outcome_doubts(&mut doubts, &sample.outcome, &sides);
    SampleWithFigures {
        sample,
        sides,
        validity: Validity::of(&doubts),
        doubts,
    }
}

/// Returns the figures of one sample; empty if it did not complete.
#[must_use]
pub fn sample_figures(sample: &Sample) -> assay_model::result::Figures {
    match &sample.outcome {
        Outcome::Completed => compute_figures(&sum_workers(&sample.workers)),
        _ => assay_model::result::Figures::new(),
    }
}

/// Finds the doubts about assay's own jobs that ran together to their end. Uses only fio's result, because the target
/// and the kernel's counters are unknown.
#[must_use]
pub fn judge_jobs(jobs: &[Worker]) -> Vec<Doubt> {
    let mut doubts = doubts::find_job_doubts(jobs);
    add_outcome_doubts(&mut doubts, &Outcome::Completed, &sum_workers(jobs));
    doubts
}

/// Voids a sample whose load did not finish, or finished without a figure.
fn add_outcome_doubts(doubts: &mut Vec<Doubt>, outcome: &Outcome, sides: &FiguresByDirection) {
    let why = match outcome {
        Outcome::Completed if sides.is_empty() => {
            Some("not one operation was completed".to_owned())
        }
        Outcome::Completed => None,
        Outcome::Interrupted => Some("it was interrupted".to_owned()),
        Outcome::Failed { error } => Some(doubts::clean_text(error)),
        Outcome::TimedOut { after } => Some(format!(
            "the load did not end and was stopped after {after}"
        )),
    };
    let voided = doubts.iter().any(|doubt| doubt.severity == Severity::Void);
    if let Some(why) = why.filter(|_| !voided) {
        doubts.push(doubts::void_doubt(
            NOT_COMPLETED,
            why,
            "Remove the cause and measure again.",
        ));
    }
}

/// Groups the samples in plan order; groups that are not in the plan come last.
pub(crate) fn group_samples<'a>(run: &'a Run, samples: &'a [Sample]) -> Vec<WorkloadGroup<'a>> {
    let judged = samples
        .iter()
        .map(|sample| judge_sample(SampleContext::of(run, sample), sample))
        .collect();
    group_judged(run, judged)
}

/// Groups samples that were already judged by workload and target.
pub(crate) fn group_judged<'a>(
    run: &'a Run,
    judged: Vec<SampleWithFigures<'a>>,
) -> Vec<WorkloadGroup<'a>> {
    let mut groups: Vec<WorkloadGroup<'a>> = Vec::new();
    let mut index: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut at = |groups: &mut Vec<WorkloadGroup<'a>>, workload: &str, target: &str| {
        *index
            .entry((workload.to_owned(), target.to_owned()))
            .or_insert_with(|| {
                groups.push(WorkloadGroup {
                    workload: workload.to_owned(),
                    target: target.to_owned(),
                    spec: run.plan.workloads.iter().find(|spec| spec.name == workload),
                    samples: Vec::new(),
                });
                groups.len() - 1
            })
    };
    let mut planned: Vec<(usize, usize)> = run
        .plan
        .order
        .iter()
        .map(|slot| (slot.workload, slot.target))
        .collect();
    planned.sort_unstable();
    planned.dedup();
    for (workload, target) in planned {
        if let (Some(workload), Some(target)) =
            (run.plan.workloads.get(workload), run.targets.get(target))
        {
            at(&mut groups, &workload.name, &target.name);
        }
    }
    for one in judged {
        let index = at(&mut groups, &one.sample.workload, &one.sample.target);
        groups[index].samples.push(one);
    }
    groups
}

impl<'a> SampleWithFigures<'a> {
    /// Converts the sample to the form in which a result is stored.
    pub(crate) fn to_judged_sample(&self) -> JudgedSample {
        JudgedSample {
            workload: self.sample.workload.clone(),
            target: self.sample.target.clone(),
            round: self.sample.round,
            slot: self.sample.slot,
            validity: self.validity,
            doubts: self.doubts.clone(),
            figures: compute_figures(&self.sides),
        }
    }
}

impl<'a> WorkloadGroup<'a> {
    /// Returns the samples that are not void. Void samples are excluded from every estimate.
    pub(crate) fn valid_samples(&self) -> Vec<(&'a Sample, &FiguresByDirection)> {
        let valid = self
            .samples
            .iter()
            .filter(|one| one.validity != Validity::Void);
        valid.map(|one| (one.sample, &one.sides)).collect()
    }

    /// Pools the samples that are not void, and computes standard errors.
    pub(crate) fn pool_samples(&self) -> BTreeMap<Metric, PooledValue> {
        let sides: Vec<&FiguresByDirection> = self
            .valid_samples()
            .into_iter()
            .map(|(_, sides)| sides)
            .collect();
        pool_metrics(&sides)
    }

    /// Returns the worst validity among the samples that are not void; `Void` if all samples are void.
    pub(crate) fn validity(&self) -> Validity {
        let validity = self.samples.iter().map(|one| one.validity);
        validity
            .filter(|v| *v != Validity::Void)
            .max()
            .unwrap_or(Validity::Void)
    }

    /// Counts how many samples each doubt occurs in: the worst doubts first, then in the order of the rules.
    pub(crate) fn count_doubts(&self) -> Vec<CountedDoubt> {
        let mut counted: Vec<CountedDoubt> = Vec::new();
        for doubt in self.samples.iter().flat_map(|one| &one.doubts) {
            let same = |known: &&mut CountedDoubt| {
                known.doubt.code == doubt.code && known.doubt.severity == doubt.severity
            };
            match counted.iter_mut().find(same) {
                Some(known) => known.samples += 1,
                None => counted.push(CountedDoubt {
                    doubt: doubt.clone(),
                    samples: 1,
                }),
            }
        }
        counted.sort_by_key(|known| std::cmp::Reverse(known.doubt.severity));
        counted
    }
}
