//! Bundles brought together. What was once told stays: a later bundle adds trials and goes on with those
//! that were not at their end, and changes nothing else. The order in which bundles come does not matter.

use crate::bundle::{Bundle, BundleTrial, Pair, Without};
use std::collections::BTreeMap;

/// Trials of many owners.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// By owner and id.
    held: BTreeMap<(String, String), Held>,
    /// Who tells of these coins.
    coins: BTreeMap<(u64, String, String), (String, String)>,
}

/// A trial and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Its owner.
    pub owner: String,
    /// Its machine, which is the owner's.
    pub machine: String,
    /// Nobody measured it.
    pub simulated: bool,
    /// The trial.
    pub trial: BundleTrial,
}

/// What a bundle brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Added {
    /// Trials that were not known.
    pub new: usize,
    /// Trials that went on since they were told of.
    pub longer: usize,
    /// Trials that were known as they are.
    pub known: usize,
}

/// Why a bundle does not fit what is there. Nothing of it is taken then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// A trial says something else than before.
    #[error("trial {id} was told differently before: a trial that was given is not changed")]
    Changed {
        /// Its id.
        id: String,
    },
    /// Somebody else told of it.
    #[error("trial {id} has the coins of a trial that {owner} gave: a trial counts once")]
    Copied {
        /// Its id.
        id: String,
        /// Who gave it first.
        owner: String,
    },
}

impl Pool {
    /// Adds a bundle, whole or not at all.
    ///
    /// # Errors
    /// It contradicts what is there.
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
        // A bundle that tells one trial twice under two names is caught as it is entered.
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

    /// All trials.
    pub fn trials(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }
}

enum Sorted {
    New,
    Longer,
    Known,
}

/// How far a trial got.
fn rank(trial: &BundleTrial) -> (usize, crate::bundle::TrialEnd) {
    (trial.pairs.len(), trial.ended)
}

/// Two trials never have the same coins by chance: the seed alone has 64 bits.
fn trial_identity(trial: &BundleTrial) -> (u64, String, String) {
    (
        trial.plan.seed,
        trial.plan.coins.clone(),
        trial.plan.advice.clone(),
    )
}

/// Whether the longer one begins with the shorter. A pair that was interrupted is measured again.
fn goes_on(short: &[Pair], long: &[Pair]) -> bool {
    if long.starts_with(short) {
        return true;
    }
    match short.split_last() {
        Some((Pair::Without(Without::Void), before)) => long.starts_with(before),
        _ => false,
    }
}
