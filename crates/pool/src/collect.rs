//! Combines bundles to a pool. A later bundle can add trials and continue unfinished trials, but not change trials. The
//! order of the bundles does not matter.

use crate::bundle::{Bundle, BundleTrial, Pair, Without};
use std::collections::BTreeMap;

/// A pool: trials of many owners.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Trials by the key of the owner and the id of the trial.
    held: BTreeMap<(String, String), Held>,
    /// Owner and id of each trial, by its seed, order and plan. They show when another owner submits the same trial
    /// again.
    coins: BTreeMap<(u64, String, String), (String, String)>,
}

/// A trial in the pool, with its owner and machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Public key of the owner.
    pub owner: String,
    /// Id of the machine, from the owner's bundle.
    pub machine: String,
    /// Whether the data was generated, not measured.
    pub simulated: bool,
    /// Shared part of the trial.
    pub trial: BundleTrial,
}

/// Result of adding a bundle, as numbers of trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Added {
    /// Number of trials that were new.
    pub new: usize,
    /// Number of trials that have more pairs than before.
    pub longer: usize,
    /// Number of trials that the pool already contained in the same state.
    pub known: usize,
}

/// Reason why a bundle contradicts the pool. No part of such a bundle is added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// A trial differs from the same trial in an earlier bundle.
    #[error("trial {id} was told differently before: a trial that was given is not changed")]
    Changed {
        /// Id of the trial.
        id: String,
    },
    /// Another owner submitted the trial earlier.
    #[error("trial {id} has the coins of a trial that {owner} gave: a trial counts once")]
    Copied {
        /// Id of the trial.
        id: String,
        /// Public key of the owner who submitted the trial first.
        owner: String,
    },
}

impl Pool {
    /// Adds all trials of a bundle, or adds nothing.
    ///
    /// # Errors
    /// The bundle contradicts the pool.
    pub fn add(&mut self, bundle: &Bundle) -> Result<Added, Conflict> {
        let mut added = Added::default();
        let mut accepted = Vec::new();
        for machine in &bundle.machines {
            for trial in &machine.trials {
                let held = Held {
                    owner: bundle.owner.clone(),
                    machine: machine.id.clone(),
                    simulated: bundle.simulated,
                    trial: trial.clone(),
                };
                match self.sort(&held)? {
                    Sorted::New => added.new += 1,
                    Sorted::Longer => added.longer += 1,
                    Sorted::Known => {
                        added.known += 1;
                        continue;
                    }
                }
                accepted.push(held);
            }
        }
        // The same trial under two names in one bundle is detected during the insertion.
        let before = (accepted.len() > 1).then(|| self.clone());
        for held in accepted {
            if let Err(conflict) = self.sort(&held) {
                if let Some(before) = before {
                    *self = before;
                }
                return Err(conflict);
            }
            let key = (held.owner.clone(), held.trial.id.clone());
            self.coins.insert(trial_identity(&held.trial), key.clone());
            self.held.insert(key, held);
        }
        Ok(added)
    }

    fn sort(&self, new: &Held) -> Result<Sorted, Conflict> {
        let id = || new.trial.id.clone();
        let key = (new.owner.clone(), id());
        if let Some(other) = self.coins.get(&trial_identity(&new.trial))
            && *other != key
        {
            return Err(Conflict::Copied {
                id: id(),
                owner: other.0.clone(),
            });
        }
        let Some(old) = self.held.get(&key) else {
            return Ok(Sorted::New);
        };
        let same = old.machine == new.machine
            && old.simulated == new.simulated
            && old.trial.plan == new.trial.plan;
        let (short, long) = match rank(&old.trial) <= rank(&new.trial) {
            true => (&old.trial, &new.trial),
            false => (&new.trial, &old.trial),
        };
        if !same || !goes_on(&short.pairs, &long.pairs) {
            return Err(Conflict::Changed { id: id() });
        }
        Ok(match rank(&new.trial) > rank(&old.trial) {
            true => Sorted::Longer,
            false => Sorted::Known,
        })
    }

    /// Returns all trials of the pool.
    pub fn trials(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }
}

enum Sorted {
    New,
    Longer,
    Known,
}

/// Returns how far a trial has progressed. Two versions of a trial are compared by this value.
fn rank(trial: &BundleTrial) -> (usize, crate::bundle::TrialEnd) {
    (trial.pairs.len(), trial.ended)
}

/// Returns a key that identifies a trial. The key contains the seed of 64 bits, so two different trials never have the
/// same key by chance.
fn trial_identity(trial: &BundleTrial) -> (u64, String, String) {
    (
        trial.plan.seed,
        trial.plan.coins.clone(),
        trial.plan.advice.clone(),
    )
}

/// Returns whether the longer list of pairs continues the shorter list. The last pair of the shorter list may differ if
/// it was void, because an interrupted pair is measured again.
fn goes_on(short: &[Pair], long: &[Pair]) -> bool {
    if long.starts_with(short) {
        return true;
    }
    match short.split_last() {
        Some((Pair::Without(Without::Void), before)) => long.starts_with(before),
        _ => false,
    }
}
