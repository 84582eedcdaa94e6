//! Checks whether received data is plausible, that is whether names are valid and values are possible.

use crate::bundle::{Bundle, BundleMachine, BundlePlan, BundleTrial, FORMAT, Pair};
use crate::sign::BundleError;
use std::collections::BTreeSet;

/// Maximum number of machines in a bundle, and of trials of a machine.
const MANY: usize = 10_000;
/// Maximum number of pairs of a trial, far more than a real trial has.
const PAIRS: usize = 10_000;
/// Maximum absolute effect of a pair, ln 1000. A larger effect must be an error.
const LARGEST: f64 = 6.907_755;
/// Maximum length in bytes of a name in a bundle (see [`is_plain_word`]).
const WORD: usize = 64;

/// A value in a bundle that is not plausible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {what}")]
pub struct BundleFault {
    /// Position of the value in the bundle.
    pub at: String,
    /// Description of what is wrong with the value.
    pub what: &'static str,
}

/// Parses the JSON of a bundle, without its signature.
///
/// # Errors
/// The format is invalid, or a value is impossible.
pub fn parse_body(bytes: &[u8]) -> Result<Bundle, BundleError> {
    if bytes.len() > crate::LONGEST {
        return Err(BundleError::Long);
    }
    let bundle: Bundle = serde_json::from_slice(bytes)?;
    check(&bundle)?;
    Ok(bundle)
}

fn check(bundle: &Bundle) -> Result<(), BundleFault> {
    let at = || "the bundle".to_owned();
    hold(bundle.format == FORMAT, at, "it has another `format`")?;
    hold(
        has_only_digits(&bundle.owner, 64),
        at,
        "`owner` is no public key",
    )?;
    hold(is_plain_word(&bundle.assay), at, "`assay` is no version")?;
    hold(bundle.machines.len() <= MANY, at, "too many machines")?;
    let mut machines = BTreeSet::new();
    let mut trials = BTreeSet::new();
    for (number, machine) in bundle.machines.iter().enumerate() {
        let at = || format!("machine {}", number + 1);
        hold(
            has_only_digits(&machine.id, 32),
            at,
            "`id` is not 32 hexadecimal digits",
        )?;
        hold(machines.insert(&machine.id), at, "the same machine twice")?;
        hold(machine.trials.len() <= MANY, at, "too many trials")?;
        for (number, trial) in machine.trials.iter().enumerate() {
            let at = || place(machine, number);
            hold(trials.insert(&trial.id), at, "the same trial twice")?;
            check_trial(trial, &at)?;
        }
    }
    Ok(())
}

fn place(machine: &BundleMachine, number: usize) -> String {
    format!("trial {} of machine {}", number + 1, machine.id)
}

/// Checks whether a trial is plausible. A store that another program wrote may contain invalid trials.
///
/// # Errors
/// The first fault of the trial.
pub fn trial(trial: &BundleTrial) -> Result<(), BundleFault> {
    check_trial(trial, &|| format!("trial {}", trial.id))
}

fn check_trial(trial: &BundleTrial, at: &dyn Fn() -> String) -> Result<(), BundleFault> {
    hold(
        has_only_digits(&trial.id, 32),
        at,
        "`id` is not 32 hexadecimal digits",
    )?;
    let versions = [&trial.kernel, &trial.fio].into_iter().flatten();
    let mut versions = versions.chain([&trial.assay]);
    hold(
        versions.all(|text| is_plain_word(text)),
        at,
        "a version is no word",
    )?;
    let mut moderators = trial.moderators.values();
    hold(
        moderators.all(|text| is_plain_word(text)),
        at,
        "a moderator is no word",
    )?;
    check_plan(&trial.plan, at)?;
    let tried = trial.pairs.len();
    hold(
        tried <= trial.plan.max_pairs as usize,
        at,
        "more pairs than planned",
    )?;
    let possible = trial.effects().all(|one| one.abs() <= LARGEST);
    hold(possible, at, "a pair differs more than a thousandfold")
}

fn check_plan(plan: &BundlePlan, at: &dyn Fn() -> String) -> Result<(), BundleFault> {
    let mut words = [&plan.advice, &plan.change].into_iter();
    hold(
        words.all(|text| is_plain_word(text)),
        at,
        "`advice` or `change` is no word",
    )?;
    let page = plan
        .page
        .as_deref()
        .is_none_or(|page| has_only_digits(page, 32));
    hold(page, at, "`page` is no digest")?;
    hold(plan.parameters.len() <= 32, at, "too many parameters")?;
    let mut parameters = plan.parameters.iter();
    let plain = parameters.all(|(name, value)| is_plain_word(name) && is_plain_word(value));
    hold(plain, at, "a parameter is no word")?;
    let share = |value: f64| value.is_finite() && (0.0..=1.0).contains(&value);
    let shares = share(plan.margin) && share(plan.alpha);
    hold(shares, at, "`margin` or `alpha` is no share")?;
    let week = 7 * 24 * 3_600_000;
    let times = plan.slot_ms <= week && plan.washout_ms <= week;
    hold(times, at, "a slot of more than a week")?;
    let pairs = plan.max_pairs as usize;
    hold(pairs <= PAIRS, at, "too many pairs")?;
    hold(plan.coins.len() == pairs, at, "not one coin for each pair")?;
    let mut coins = plan.coins.bytes();
    hold(
        coins.all(|coin| matches!(coin, b'A' | b'B')),
        at,
        "a coin is neither A nor B",
    )
}

fn hold(holds: bool, at: impl Fn() -> String, what: &'static str) -> Result<(), BundleFault> {
    match holds {
        true => Ok(()),
        false => Err(BundleFault { at: at(), what }),
    }
}

fn has_only_digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether a name is harmless in terminals and web pages. Such a name is neither empty nor too long, and
/// consists of letters, digits, blanks and `-_.+%`.
fn is_plain_word(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"-_.+% ".contains(&c);
    !text.is_empty() && text.len() <= WORD && text.bytes().all(plain)
}

/// Rounds an effect to a millionth, which is precise enough for the statistics.
#[must_use]
pub(crate) fn round_pair(effect: f64) -> Pair {
    Pair::Effect((effect.clamp(-LARGEST, LARGEST) * 1e6).round() / 1e6)
}
