//! The samples of one workload on one target, judged.

use crate::doubts::{self, Around};
use crate::estimate::{Pooled, pool};
use crate::figures::{Sides, figures, sides};
use assay_model::criterion::Metric;
use assay_model::doubt::{Severity, Validity};
use assay_model::result::{CountedDoubt, JudgedSample};
use assay_model::sample::{Outcome, Worker};
use assay_model::{Doubt, Planned, Run, Sample};
use std::collections::BTreeMap;

/// A sample with its doubts and figures.
#[derive(Clone, Debug)]
pub(crate) struct Judged<'a> {
    pub sample: &'a Sample,
    pub sides: Sides,
    pub doubts: Vec<Doubt>,
    pub validity: Validity,
}

/// One workload on one target.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub workload: String,
    pub target: String,
    /// From the plan; none when the plan does not know it.
    pub spec: Option<&'a Planned>,
    /// In the order in which they were taken.
    pub samples: Vec<Judged<'a>>,
}

/// Code of the doubt of a sample that did not end by itself.
pub(crate) const NOT_COMPLETED: &str = "not-completed";

impl Judged<'_> {
    /// The same without doubts of these codes.
    pub fn without(mut self, codes: &[&str]) -> Self {
        self.doubts
            .retain(|doubt| !codes.contains(&doubt.code.as_str()));
        self.validity = Validity::of(&self.doubts);
        self
    }
}

pub(crate) fn judge<'a>(around: Around<'_>, sample: &'a Sample) -> Judged<'a> {
    let mut doubts = doubts::for_sample(around, sample);
    if let (Outcome::Completed, Some(step)) = (&sample.outcome, crate::web::of(sample)) {
        doubts.extend(crate::web::doubts(step));
    }
    let sides = match &sample.outcome {
        Outcome::Completed => sides(&sample.workers),
        _ => Sides::new(),
    };
    doubt_the_end(&mut doubts, &sample.outcome, &sides);
    Judged {
        sample,
        sides,
        validity: Validity::of(&doubts),
        doubts,
    }
}

/// Returns the figures of one sample; none where it did not complete.
#[must_use]
pub fn sample_figures(sample: &Sample) -> assay_model::result::Figures {
    match &sample.outcome {
        Outcome::Completed => figures(&sides(&sample.workers)),
        _ => assay_model::result::Figures::new(),
    }
}

/// The doubts about jobs of ours that ran together to their end, where fio's result is all that is
/// known: neither what they ran on nor what the kernel counted.
#[must_use]
pub fn judge_jobs(jobs: &[Worker]) -> Vec<Doubt> {
    let mut doubts = doubts::for_jobs(jobs);
    doubt_the_end(&mut doubts, &Outcome::Completed, &sides(jobs));
    doubts
}

/// What did not end by itself, or ended without a figure, is void.
fn doubt_the_end(doubts: &mut Vec<Doubt>, outcome: &Outcome, sides: &Sides) {
    let why = match outcome {
        Outcome::Completed if sides.is_empty() => {
            Some("not one operation was completed".to_owned())
        }
        Outcome::Completed => None,
        Outcome::Interrupted => Some("it was interrupted".to_owned()),
        Outcome::Failed { error } => Some(doubts::clean(error)),
        Outcome::TimedOut { after } => Some(format!(
            "the load did not end and was stopped after {after}"
        )),
    };
    let voided = doubts.iter().any(|doubt| doubt.severity == Severity::Void);
    if let Some(why) = why.filter(|_| !voided) {
        doubts.push(doubts::void(
            NOT_COMPLETED,
            why,
            "Remove the cause and measure again.",
        ));
    }
}

/// The groups in plan order; those that the plan does not know come last.
pub(crate) fn groups<'a>(run: &'a Run, samples: &'a [Sample]) -> Vec<Group<'a>> {
    let judged = samples
        .iter()
        .map(|sample| judge(Around::of(run, sample), sample))
        .collect();
    group(run, judged)
}

/// Puts judged samples into their groups.
pub(crate) fn group<'a>(run: &'a Run, judged: Vec<Judged<'a>>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut index: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut at = |groups: &mut Vec<Group<'a>>, workload: &str, target: &str| {
        *index
            .entry((workload.to_owned(), target.to_owned()))
            .or_insert_with(|| {
                groups.push(Group {
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

impl<'a> Judged<'a> {
    /// As part of the result.
    pub(crate) fn to_result(&self) -> JudgedSample {
        JudgedSample {
            workload: self.sample.workload.clone(),
            target: self.sample.target.clone(),
            round: self.sample.round,
            slot: self.sample.slot,
            validity: self.validity,
            doubts: self.doubts.clone(),
            figures: figures(&self.sides),
        }
    }
}

impl<'a> Group<'a> {
    /// Samples that count: void ones reach no estimate.
    pub(crate) fn valid(&self) -> Vec<(&'a Sample, &Sides)> {
        let valid = self
            .samples
            .iter()
            .filter(|one| one.validity != Validity::Void);
        valid.map(|one| (one.sample, &one.sides)).collect()
    }

    /// Estimates with their standard errors.
    pub(crate) fn pooled(&self) -> BTreeMap<Metric, Pooled> {
        let sides: Vec<&Sides> = self.valid().into_iter().map(|(_, sides)| sides).collect();
        pool(&sides)
    }

    /// Worst validity among the samples that count; void when none does.
    pub(crate) fn validity(&self) -> Validity {
        let validity = self.samples.iter().map(|one| one.validity);
        validity
            .filter(|v| *v != Validity::Void)
            .max()
            .unwrap_or(Validity::Void)
    }

    /// Every doubt of any sample, the worst first, in the order of the rules.
    pub(crate) fn doubts(&self) -> Vec<CountedDoubt> {
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
