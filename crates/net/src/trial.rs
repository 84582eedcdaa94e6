//! Compares two networks, or two settings of one network, in a randomised trial. The trial shows whether one side is
//! better for the people by more than chance.
//!
//! Each slot of a pair is a complete run of the same plan; the order within a pair is random. The verdict compares the
//! mean fraction of events in time, with equal weight for each person. Each person's own fraction is a guardrail.
//! [`assay_judge::trial`] judges the pairs, as in all trials of assay.

use crate::plan::NetPlan;
use crate::player::Played;
use crate::result::Run;
use crate::role::{Role, Workload};
use crate::verdict::{Grade, LEAST_EVENTS, PersonVerdict, RoleVerdict};
use assay_judge::trial::{TrialRule, find_reason_to_give_up, judge_trial_pairs};
use assay_model::advice::Guard;
use assay_model::criterion::{Metric, Quantity};
use assay_model::trial::{Judgement, PairOutcome, Side, Verdict};
use serde::{Deserialize, Serialize};

/// Smallest relevant gain in the fraction of events in time. For comparison: between a good and a tolerable result, 1
/// to 5 % of the events differ.
pub const MARGIN: f64 = 0.03;
/// Largest loss that each person may have, as a fraction of events in time. A person with a larger loss cannot have a
/// tolerable result (`tolerable_over` of the roles).
pub const GUARD: f64 = 0.05;

/// Settings and runs of a trial between two networks or settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trial {
    /// Plan that runs on each side.
    pub plan: NetPlan,
    /// Names of the sides: baseline and change.
    pub sides: [String; 2],
    /// Smallest relevant relative difference: 0.03 for 3 %.
    pub margin: f64,
    /// Largest loss in the fraction of events in time that each person may have.
    pub guard: f64,
    /// Probability of a false verdict "better", and also of a false verdict "worse", 0 to 1.
    pub alpha: f64,
    /// Seed of the randomised order and of the randomisation test.
    pub seed: u64,
    /// Side that is measured first in each pair. The length of this list is the maximum number of pairs.
    pub first: Vec<Side>,
    /// Runs in the order in which they were measured.
    pub slots: Vec<Slot>,
}

/// One run of the plan on one side of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slot {
    /// Number of the pair, from 1.
    pub pair: u32,
    /// Side on which the plan was run.
    pub side: Side,
    /// Setting that distinguishes the sides, as read before the run.
    pub read_back: String,
    /// Result of the run.
    pub run: Run,
}

/// One person's results on both sides, over all valid pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PersonOutcome {
    /// Name of the person.
    pub person: String,
    /// Mean fraction of events in time, for the person's worst role: baseline, change. `None` if no role of the person
    /// has a goal.
    pub in_time: [Option<f64>; 2],
    /// Number of bad runs on each side.
    pub bad: [u32; 2],
    /// Index of this person's guardrail in [`Judgement::guards`].
    pub guard: Option<usize>,
}

/// Reason why a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The judge reached a verdict, or all pairs were measured.
    Judged,
    /// The user stopped the trial.
    Stopped,
    /// Several consecutive pairs were void. Contains the reason why the last pair was void.
    Fruitless(String),
}

impl Trial {
    /// Returns the indices of the people who have a role with a goal.
    fn judged_people(&self) -> Vec<usize> {
        let people = self.plan.people.iter().enumerate();
        let with_goal = people.filter(|(_, person)| {
            let roles = self.plan.roles_of(person).unwrap_or_default();
            roles.iter().any(Role::has_goal)
        });
        with_goal.map(|(at, _)| at).collect()
    }

    /// Checks whether the trial can be judged.
    ///
    /// # Errors
    /// Nobody has a role with a goal, or a run is too short for a goal.
    pub fn check(&self) -> Result<(), String> {
        self.plan.check()?;
        for person in &self.plan.people {
            for role in self
                .plan
                .roles_of(person)?
                .iter()
                .filter(|role| role.has_goal())
            {
                let least = shortest(role);
                if self.plan.seconds < least {
                    return Err(format!(
                        "in {} s too little of `{}` is due for a verdict: let a run take {least} s or more",
                        self.plan.seconds, role.name
                    ));
                }
            }
        }
        match self.judged_people().is_empty() {
            true => Err(
                "nobody in this plan has a role with a goal, so nothing tells which side is better; \
                 give one `goal = { within_ms = … }` or `{ bit_per_s = … }`"
                    .to_owned(),
            ),
            false => Ok(()),
        }
    }

    /// Returns the complete pairs, each with the baseline run first.
    fn pairs(&self) -> impl Iterator<Item = (&Run, &Run)> {
        self.slots.chunks_exact(2).filter_map(|two| {
            let of = |side| {
                two.iter()
                    .find(|slot| slot.side == side)
                    .map(|slot| &slot.run)
            };
            Some((of(Side::Now)?, of(Side::Changed)?))
        })
    }

    fn outcomes(&self) -> Vec<PairOutcome> {
        let people = self.judged_people();
        self.pairs()
            .map(|(now, changed)| outcome(&people, now, changed))
            .collect()
    }

    /// Judges the pairs. The judgement is always computed from the runs and never stored.
    #[must_use]
    pub fn judgement(&self) -> Judgement {
        let people = self.judged_people();
        let outcomes = self.outcomes();
        // The judge identifies guardrails by index. The metric of storage trials is not used here.
        let guard = Guard {
            metric: Metric::all(Quantity::Iops),
            margin: self.guard,
        };
        let rule = TrialRule {
            margin: self.margin,
            guards: vec![guard; people.len()],
            max_pairs: u32::try_from(self.first.len()).unwrap_or(u32::MAX),
            alpha: self.alpha,
            seed: self.seed,
            safety_broken: None,
            looks: Vec::new(),
            unproved: None,
            by_latency: false,
            aa: false,
        };
        let mut judgement = judge_trial_pairs(&rule, &outcomes);
        if let Some(reason) = self.reason(&people, &judgement) {
            judgement.reason = reason;
        }
        judgement
    }

    /// If a guardrail decided, returns a reason with the names of the affected people. It replaces the judge's reason.
    fn reason(&self, people: &[usize], judgement: &Judgement) -> Option<String> {
        let guards = || people.iter().zip(&judgement.guards);
        let name = |at: &usize| self.plan.people[*at].name.clone();
        let pairs = judgement.pairs;
        match judgement.verdict {
            Verdict::Worse => {
                let (at, guard) = guards().find(|(_, guard)| guard.broken)?;
                Some(format!(
                    "{} lost {:.0} % of what came in time, {pairs} pairs; at most {:.0} % was allowed",
                    name(at),
                    (1.0 - 1.0 / guard.worsening) * 100.0,
                    self.guard * 100.0
                ))
            }
            Verdict::Undecided if judgement.pairs > 0 => {
                let open: Vec<String> = guards()
                    .filter(|(_, guard)| !guard.held)
                    .map(|(at, _)| name(at))
                    .collect();
                let gain = (judgement.ratio? - 1.0) * 100.0;
                let open = match open.is_empty() {
                    true => String::new(),
                    false => format!(
                        "; whether it costs nobody is not proved yet for {}",
                        open.join(", ")
                    ),
                };
                Some(format!(
                    "{gain:+.1} % of what was due came in time after {pairs} pairs{open}"
                ))
            }
            _ => None,
        }
    }

    /// Returns the results of each person on both sides.
    #[must_use]
    pub fn people(&self) -> Vec<PersonOutcome> {
        let with_goal = self.judged_people();
        let judged: Vec<(Side, Vec<PersonVerdict>)> = self
            .slots
            .iter()
            .map(|slot| (slot.side, slot.run.judged()))
            .collect();
        let people = self.plan.people.iter().enumerate();
        let one = |(at, person): (usize, &crate::plan::Person)| {
            let roles = self.plan.roles_of(person).unwrap_or_default();
            let of = |side: Side| {
                let runs = judged.iter().filter(move |(own, _)| *own == side);
                runs.filter_map(move |(_, people)| people.get(at))
            };
            let mean = |side| {
                let shares: Vec<f64> = of(side)
                    .filter_map(|verdict| in_time(verdict, &roles))
                    .collect();
                (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
            };
            let bad = |side| {
                of(side)
                    .filter(|verdict| verdict.grade == Grade::Bad)
                    .count() as u32
            };
            PersonOutcome {
                person: person.name.clone(),
                in_time: [mean(Side::Now), mean(Side::Changed)],
                bad: [bad(Side::Now), bad(Side::Changed)],
                guard: with_goal.iter().position(|own| *own == at),
            }
        };
        people.map(one).collect()
    }

    /// Measures pairs until the judge reaches a verdict, all pairs are measured, or the user stops. `measure` applies a
    /// side and runs the plan; it returns `None` if the user stopped.
    ///
    /// # Errors
    /// Errors of `measure`. The slots then contain the runs before the error.
    pub fn carry_out<E>(
        &mut self,
        measure: &mut dyn FnMut(Side, u32) -> Result<Option<(String, Run)>, E>,
        tell: &mut dyn FnMut(&Self, &Judgement),
    ) -> Result<Ended, E> {
        for (pair, first) in (1..).zip(self.first.clone()) {
            for (at, side) in [first, first.other()].into_iter().enumerate() {
                let taken = measure(side, 2 * (pair - 1) + at as u32);
                let (read_back, run) = match taken {
                    Ok(Some(taken)) => taken,
                    ended => {
                        // One half of a pair cannot be judged alone.
                        self.slots.truncate(self.slots.len() - self.slots.len() % 2);
                        ended?;
                        return Ok(Ended::Stopped);
                    }
                };
                self.slots.push(Slot {
                    pair,
                    side,
                    read_back,
                    run,
                });
            }
            let judgement = self.judgement();
            tell(self, &judgement);
            if judgement.done {
                break;
            }
            if let Some(why) = find_reason_to_give_up(&self.outcomes()) {
                return Ok(Ended::Fruitless(why));
            }
        }
        Ok(Ended::Judged)
    }
}

/// Returns the minimum length of a run in seconds in which enough events of a role are due.
fn shortest(role: &Role) -> u32 {
    let every_ms = match &role.workload {
        Workload::Fetches { every_ms, .. }
        | Workload::Pages { every_ms, .. }
        | Workload::Packets { every_ms, .. } => *every_ms,
        Workload::Stream {
            bytes, bit_per_s, ..
        } => *bytes as f64 * 8e3 / bit_per_s,
        Workload::Bulk { .. } | Workload::Responsiveness { .. } => 1000.0,
    };
    (every_ms * LEAST_EVENTS as f64 / 1e3).ceil() as u32
}

/// Returns the fraction of a role's events that were in time, greater than 0 and at most 1; `None` without a goal or a
/// result.
fn role_in_time(role: &Role, verdict: &RoleVerdict) -> Option<f64> {
    if !role.has_goal() || verdict.grade == Grade::Unknown {
        return None;
    }
    if let (Workload::Bulk { .. }, Some(goal)) = (&role.workload, role.goal.bit_per_s) {
        return Some((verdict.bit_per_s? / goal).clamp(1e-3, 1.0));
    }
    // Adding half an event keeps the fraction above zero.
    let good = verdict.counted.saturating_sub(verdict.over) as f64 + 0.5;
    let share = good / (verdict.counted as f64 + 0.5);
    // A stalled film was not seen, even if its pieces arrived fast afterwards.
    let stood = verdict.played.as_ref().map_or(0, Played::stood_us) as f64;
    let ran = verdict.seconds.len() as f64 * 1e6;
    let played = 1.0 - stood / ran.max(1.0);
    Some(share.min(played).max(1e-3))
}

/// Returns the fraction of events in time for a person's worst role; `None` without a goal, or if a role has no result.
fn in_time(person: &PersonVerdict, roles: &[Role]) -> Option<f64> {
    let mut worst: Option<f64> = None;
    for (role, verdict) in roles.iter().zip(&person.roles) {
        if role.has_goal() {
            let share = role_in_time(role, verdict)?;
            worst = Some(worst.map_or(share, |worst| worst.min(share)));
        }
    }
    worst
}

/// Returns the fraction of events in time for each person of `people`. The error contains the reason and the name of a
/// person without a record or result.
fn shares(people: &[usize], run: &Run) -> Result<Vec<f64>, (bool, String)> {
    let judged = run.judged();
    let one = |at: &usize| {
        let (person, taken) = (&run.plan.people[*at], &run.people[*at]);
        if let Some(why) = &taken.missing {
            return Err((true, format!("{}: {why}", person.name)));
        }
        let roles = run.plan.roles_of(person).unwrap_or_default();
        let unknown = || {
            let void: u64 = judged[*at].roles.iter().map(|role| role.void).sum();
            let why = match void {
                0 => "too little came of what was due",
                _ => "its device was busy or away",
            };
            (false, format!("nothing is known of {}: {why}", person.name))
        };
        in_time(&judged[*at], &roles).ok_or_else(unknown)
    };
    people.iter().map(one).collect()
}

fn outcome(people: &[usize], now: &Run, changed: &Run) -> PairOutcome {
    match (shares(people, now), shares(people, changed)) {
        (Ok(now), Ok(changed)) => {
            let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len().max(1) as f64;
            let work = [mean(&now), mean(&changed)];
            PairOutcome::Measured {
                effect: (work[1] / work[0]).ln(),
                guards: now
                    .iter()
                    .zip(&changed)
                    .map(|(now, changed)| (now / changed).ln())
                    .collect(),
                work,
            }
        }
        (Ok(_), Err((true, error))) => PairOutcome::FailedChanged { error },
        (Err((true, error)), _) | (_, Err((true, error))) => PairOutcome::Failed { error },
        (Err((false, reason)), _) | (_, Err((false, reason))) => PairOutcome::Void { reason },
    }
}

#[cfg(test)]
mod tests;
