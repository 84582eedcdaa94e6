//! Combines all trials of a piece of advice. Each machine counts once, even if it has many trials. The machines of one
//! owner form a group.

use crate::bundle::TrialEnd;
use crate::collect::{Held, Pool};
use crate::stats::{self, LEAST_OWNERS, MeasuredEffect, PooledEstimate};
use assay_model::advice::{Advice, Moderator};
use assay_model::criterion::Metric;
use assay_model::result::Interval;
use assay_model::trial::Verdict;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of pairs of a machine. With fewer pairs, the variance of the machine's mean is unknown, so the mean
/// has no weight.
const LEAST_PAIRS: usize = 3;
/// Minimum variance of a machine's mean. A smaller variance only shows that the rounded effects of its pairs are equal.
const LEAST_VARIANCE: f64 = 1e-8;

/// Combined result of a piece of advice, for one metric and one set of parameters.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Pooled {
    /// Id of the advice page.
    pub advice: String,
    /// Parameters of the advice with their values.
    pub parameters: BTreeMap<String, String>,
    /// Metric on which the verdicts are based.
    #[schemars(with = "String")]
    pub metric: Metric,
    /// Whether the data was generated and not measured, because the bundles are marked as simulated.
    pub simulated: bool,
    /// Numbers of all started trials and of their results.
    pub funnel: Funnel,
    /// Number of different versions of the advice page that the trials used.
    pub pages: usize,
    /// Median number of pairs in trials with a verdict, from which the duration of a new trial is estimated.
    pub median_pairs: Option<u32>,
    /// Number of owners with at least one machine whose effect is used.
    pub owners: usize,
    /// Number of machines whose effect is used.
    pub machines: usize,
    /// Combined effect; `None` with fewer than five owners.
    pub effect: Option<Effect>,
    /// Effects for each value of each moderator (a property of the machine). A group with fewer than five owners has no
    /// effect.
    pub groups: Vec<MachineGroup>,
}

/// Numbers of trials by their end and their verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Funnel {
    /// Number of started trials, without A/A trials.
    pub started: usize,
    /// Number of trials that reached their stopping rule.
    pub done: usize,
    /// Number of trials that the user, the budget or an error stopped.
    pub stopped: usize,
    /// Number of trials that a crash interrupted, or that are still running.
    pub cut_off: usize,
    /// Number of trials with the verdict "better", whether finished or not.
    pub better: usize,
    /// Number of trials with the verdict "worse".
    pub worse: usize,
    /// Number of trials with the verdict "same" (no practical difference).
    pub same: usize,
    /// Number of trials with the verdict "not safe".
    pub not_safe: usize,
    /// Number of trials without a verdict.
    pub undecided: usize,
    /// Number of trials on machines with fewer than three measured pairs. These machines have no effect.
    pub without_figure: usize,
}

/// Effect over machines, as fractions: 0.05 means 5 % better.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Effect {
    /// 95 % prediction interval: the interval in which the effect on a machine of a new owner lies.
    pub prediction: Interval,
    /// Smallest relevant gain, as a fraction, from the advice page.
    pub worthwhile: f64,
    /// Fraction of machines whose gain is larger than `worthwhile`, 0 to 1.
    pub gain_more: f64,
    /// Fraction of machines whose loss is larger than `worthwhile`, 0 to 1.
    pub lose_more: f64,
    /// Mean effect over the machines.
    pub mean: f64,
    /// 95 % confidence interval of the mean effect.
    pub mean_interval: Interval,
    /// Variance of the log ratio between machines of the same owner; 0 if each owner has one machine.
    pub between_machines: f64,
    /// Variance of the log ratio between owners.
    pub between_owners: f64,
    /// Method by which the variances were estimated.
    pub method: stats::Method,
    /// Result without the owner whose omission changes the mean most; `None` if it cannot be computed.
    pub without_one: Option<LeaveOut>,
}

/// Mean effect if one owner is omitted.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct LeaveOut {
    /// Public key of the omitted owner.
    pub owner: String,
    /// Mean effect over the machines of the remaining owners.
    pub mean: f64,
    /// Smallest and largest mean effect that result from omitting one owner.
    pub range: [f64; 2],
}

/// Machines with the same value of a moderator.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Group")]
pub struct MachineGroup {
    /// Property of the machine that has this value.
    pub moderator: Moderator,
    /// Value of the moderator.
    pub value: String,
    /// Number of owners in the group.
    pub owners: usize,
    /// Number of machines in the group.
    pub machines: usize,
    /// Combined effect; `None` with fewer than five owners.
    pub effect: Option<Effect>,
}

/// Smallest relevant gain if the page does not set it, as in [`assay_model::advice::TrialSpec`].
pub const USUAL_MARGIN: f64 = 0.03;

/// Combines the trials of an advice page. Uses the smallest relevant gain that the page sets, and the moderators
/// (properties of machines) that it declares.
#[must_use]
pub fn page_effects(pool: &Pool, page: &Advice) -> Vec<Pooled> {
    let margin = page.trial.as_ref().and_then(|trial| trial.get("margin"));
    let margin = margin.and_then(|margin| margin.as_float());
    let worthwhile = margin.unwrap_or(USUAL_MARGIN);
    pool_effects(pool, &page.id, worthwhile, &page.moderators)
}

/// Combines the trials of a piece of advice. Returns one result for each metric and set of parameters. Measured results
/// come first, then the results with most machines. `worthwhile` is the smallest relevant gain; `moderators` are the
/// moderators that the page declares.
#[must_use]
pub fn pool_effects(
    pool: &Pool,
    advice: &str,
    worthwhile: f64,
    moderators: &[Moderator],
) -> Vec<Pooled> {
    let mut questions: BTreeMap<_, Vec<&Held>> = BTreeMap::new();
    for held in pool.trials() {
        let plan = &held.trial.plan;
        if plan.advice == advice && !plan.both_same {
            let question = (held.simulated, plan.metric, plan.parameters.clone());
            questions.entry(question).or_default().push(held);
        }
    }
    let mut all: Vec<Pooled> = questions
        .into_iter()
        .map(|((simulated, metric, parameters), trials)| {
            let machines = group_by_machine(&trials);
            let groups = group_by_moderator(&machines, worthwhile, moderators);
            Pooled {
                advice: advice.to_owned(),
                parameters,
                metric,
                simulated,
                funnel: count_funnel(&trials, &machines),
                pages: count_pages(&trials),
                median_pairs: median_pairs(&trials),
                owners: count_owners(&machines),
                machines: machines.len(),
                effect: estimate_effect(&machines.iter().collect::<Vec<_>>(), worthwhile),
                groups,
            }
        })
        .collect();
    all.sort_by_key(|one| (one.simulated, std::cmp::Reverse(one.machines)));
    all
}

/// A machine whose effect is used, with its combined effect.
struct Machine<'a> {
    owner: &'a str,
    id: &'a str,
    effect: f64,
    variance: f64,
    /// Moderators whose values are the same in all trials of the machine.
    moderators: BTreeMap<Moderator, &'a str>,
}

/// Collects the pairs of all trials of each machine. Includes unfinished trials, because otherwise the decision to stop
/// a trial could influence the result.
fn group_by_machine<'a>(trials: &[&'a Held]) -> Vec<Machine<'a>> {
    let mut by_machine: BTreeMap<(&str, &str), Vec<&Held>> = BTreeMap::new();
    for held in trials {
        let key = (held.owner.as_str(), held.machine.as_str());
        by_machine.entry(key).or_default().push(held);
    }
    let machine = |((owner, id), trials): ((&'a str, &'a str), Vec<&'a Held>)| {
        let pairs: Vec<f64> = trials
            .iter()
            .flat_map(|held| held.trial.effects())
            .collect();
        let count = pairs.len() as f64;
        let effect = pairs.iter().sum::<f64>() / count;
        let squares: f64 = pairs.iter().map(|pair| (pair - effect).powi(2)).sum();
        let mut moderators: BTreeMap<Moderator, &str> = BTreeMap::new();
        for (which, value) in trials.iter().flat_map(|held| &held.trial.moderators) {
            moderators.insert(*which, value);
        }
        moderators.retain(|which, value| {
            let mut told = trials.iter().map(|held| held.trial.moderators.get(which));
            told.all(|one| one.is_none_or(|one| one == value))
        });
        (pairs.len() >= LEAST_PAIRS).then(|| Machine {
            owner,
            id,
            effect,
            variance: (squares / (count - 1.0) / count).max(LEAST_VARIANCE),
            moderators,
        })
    };
    by_machine.into_iter().filter_map(machine).collect()
}

fn count_funnel(trials: &[&Held], counted: &[Machine<'_>]) -> Funnel {
    let counted: BTreeSet<_> = counted.iter().map(|one| (one.owner, one.id)).collect();
    let mut funnel = Funnel::default();
    for held in trials {
        let trial = &held.trial;
        funnel.started += 1;
        *match trial.ended {
            TrialEnd::Done => &mut funnel.done,
            TrialEnd::Stopped => &mut funnel.stopped,
            TrialEnd::CutOff => &mut funnel.cut_off,
        } += 1;
        *match trial.verdict {
            Verdict::Better => &mut funnel.better,
            Verdict::Worse => &mut funnel.worse,
            Verdict::NoPracticalDifference => &mut funnel.same,
            Verdict::Unsafe => &mut funnel.not_safe,
            Verdict::Undecided => &mut funnel.undecided,
        } += 1;
        let has = counted.contains(&(held.owner.as_str(), held.machine.as_str()));
        funnel.without_figure += usize::from(!has);
    }
    funnel
}

fn count_pages(trials: &[&Held]) -> usize {
    let all = trials.iter().map(|held| &held.trial.plan.page);
    all.collect::<BTreeSet<_>>().len()
}

fn median_pairs(trials: &[&Held]) -> Option<u32> {
    let decided = trials
        .iter()
        .filter(|held| held.trial.verdict != Verdict::Undecided);
    let mut pairs: Vec<usize> = decided.map(|held| held.trial.pairs.len()).collect();
    pairs.sort_unstable();
    u32::try_from(*pairs.get(pairs.len() / 2)?).ok()
}

fn count_owners(machines: &[Machine<'_>]) -> usize {
    let all = machines.iter().map(|one| one.owner);
    all.collect::<BTreeSet<_>>().len()
}

fn group_by_moderator(
    machines: &[Machine<'_>],
    worthwhile: f64,
    moderators: &[Moderator],
) -> Vec<MachineGroup> {
    let mut all = Vec::new();
    for which in moderators {
        let mut by_value: BTreeMap<&str, Vec<&Machine<'_>>> = BTreeMap::new();
        for machine in machines {
            if let Some(value) = machine.moderators.get(which) {
                by_value.entry(value).or_default().push(machine);
            }
        }
        for (value, machines) in by_value {
            let owners: BTreeSet<&str> = machines.iter().map(|one| one.owner).collect();
            // A small group would identify its members.
            if owners.len() >= LEAST_OWNERS {
                all.push(MachineGroup {
                    moderator: *which,
                    value: value.to_owned(),
                    owners: owners.len(),
                    machines: machines.len(),
                    effect: estimate_effect(&machines, worthwhile),
                });
            }
        }
    }
    all
}

fn estimate_effect(machines: &[&Machine<'_>], worthwhile: f64) -> Option<Effect> {
    let names: Vec<&str> = machines
        .iter()
        .map(|one| one.owner)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let measured: Vec<MeasuredEffect> = machines
        .iter()
        .filter_map(|one| {
            Some(MeasuredEffect {
                owner: names.binary_search(&one.owner).ok()?,
                effect: one.effect,
                variance: one.variance,
            })
        })
        .collect();
    let estimate = stats::estimate(&measured)?;
    let threshold = worthwhile.max(0.0).ln_1p();
    Some(Effect {
        prediction: to_interval(estimate.prediction.interval()),
        worthwhile,
        gain_more: 1.0 - estimate.prediction.below(threshold),
        lose_more: estimate.prediction.below(-threshold),
        mean: estimate.fit.mean.exp_m1(),
        mean_interval: to_interval(estimate.mean),
        between_machines: estimate.fit.between_machines,
        between_owners: estimate.fit.between_owners,
        method: estimate.fit.method,
        without_one: without_one(&measured, &names, &estimate),
    })
}

fn without_one(
    measured: &[MeasuredEffect],
    names: &[&str],
    all: &PooledEstimate,
) -> Option<LeaveOut> {
    let each = stats::without_each(measured);
    let means: Vec<(usize, f64)> = each
        .iter()
        .enumerate()
        .filter_map(|(owner, fit)| Some((owner, fit.as_ref()?.mean)))
        .collect();
    let far = |mean: f64| (mean - all.fit.mean).abs();
    let (owner, mean) = *means.iter().max_by(|a, b| far(a.1).total_cmp(&far(b.1)))?;
    let lowest = means.iter().map(|one| one.1).fold(f64::INFINITY, f64::min);
    let highest = means
        .iter()
        .map(|one| one.1)
        .fold(f64::NEG_INFINITY, f64::max);
    Some(LeaveOut {
        owner: (*names.get(owner)?).to_owned(),
        mean: mean.exp_m1(),
        range: [lowest.exp_m1(), highest.exp_m1()],
    })
}

fn to_interval([low, high]: [f64; 2]) -> Interval {
    Interval {
        low: low.exp_m1(),
        high: high.exp_m1(),
        confidence: stats::CONFIDENCE,
    }
}
