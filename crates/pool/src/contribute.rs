//! Builds the contribution of a stored trial. Copies nothing that could contain a name. Every value is a number, a
//! value of the catalogue, a word from a fixed list, or a version of two numbers.

use crate::bundle::{BundlePlan, BundleTrial, TrialEnd, Without};
use crate::check::round_pair;
use crate::{OwnerKey, Pair};
use assay_model::Trial as Stored;
use assay_model::advice::{Advice, Moderator, Parameter, ParameterKind};
use assay_model::change::Change;
use assay_model::trial::{Judgement, PairOutcome, Side, TrialState};
use std::collections::BTreeMap;

/// File systems whose names are shared. The name of any other file system is not shared.
const FILE_SYSTEMS: [&str; 8] = [
    "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "xfs", "zfs",
];

/// Builds the contribution of a trial. Returns `None` if the trial's page is not in the catalogue. `version` is the
/// version of this program; a trial of another version may have used another page.
#[must_use]
pub fn build_contribution(
    key: &OwnerKey,
    page: &Advice,
    stored: &Stored,
    outcomes: &[PairOutcome],
    judgement: &Judgement,
    version: &str,
) -> Option<BundleTrial> {
    let plan = &stored.plan;
    // A user's own page may have the name of a catalogue page.
    if plan.advice != page.id || plan.title != page.title || plan.predicts != page.predicts {
        return None;
    }
    let number = |key: &str| stored.facts.str(key).and_then(two_numbers);
    Some(BundleTrial {
        id: key.name("trial", &stored.uid),
        plan: BundlePlan {
            advice: page.id.clone(),
            page: (stored.assay_version == version).then(|| page_digest(page)),
            parameters: shared_parameters(page, &plan.parameters),
            change: change_kind(&plan.change),
            both_same: plan.aa,
            metric: plan.metric,
            margin: plan.margin,
            alpha: plan.alpha,
            slot_ms: plan.slot.0 / 1_000_000,
            washout_ms: plan.washout.0 / 1_000_000,
            max_pairs: plan.max_pairs,
            seed: plan.seed,
            coins: plan
                .first
                .iter()
                .map(|side| first_side_letter(*side))
                .collect(),
        },
        assay: two_numbers(&stored.assay_version).unwrap_or_else(|| "unknown".to_owned()),
        kernel: number("kernel.release"),
        fio: number("tool.fio"),
        moderators: collect_moderators(page, stored),
        pairs: outcomes.iter().map(to_pair).collect(),
        ended: match stored.state {
            TrialState::Running => TrialEnd::CutOff,
            TrialState::Stopped => TrialEnd::Stopped,
            TrialState::Complete => TrialEnd::Done,
        },
        verdict: judgement.verdict,
    })
}

fn to_pair(outcome: &PairOutcome) -> Pair {
    match outcome {
        PairOutcome::Measured { effect, .. } => round_pair(*effect),
        PairOutcome::FailedChanged { .. } => Pair::Without(Without::FailedChanged),
        PairOutcome::Failed { .. } => Pair::Without(Without::Failed),
        PairOutcome::Void { .. } => Pair::Without(Without::Void),
    }
}

fn first_side_letter(first: Side) -> char {
    match first {
        Side::Now => 'A',
        Side::Changed => 'B',
    }
}

/// Computes the digest of a page, which differs between different versions of the page.
fn page_digest(page: &Advice) -> String {
    let text = serde_json::to_vec(page).unwrap_or_default();
    crate::sign::encode_hex(&blake3::hash(&text).as_bytes()[..16])
}

/// Returns the first two numbers of a version, such as `6.1` for `6.1.0-18-amd64` or `3.33` for `fio-3.33`. The rest of
/// the version could identify a machine.
fn two_numbers(text: &str) -> Option<String> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut parts = text.get(start..)?.split('.');
    let number = |part: &str| {
        let digits: String = part
            .chars()
            .take_while(char::is_ascii_digit)
            .take(4)
            .collect();
        (!digits.is_empty()).then_some(digits)
    };
    Some(format!(
        "{}.{}",
        number(parts.next()?)?,
        number(parts.next()?)?
    ))
}

/// Returns the parameters that the user set. A value is included if the page lists the value or if it is a number.
fn shared_parameters(page: &Advice, set: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let known = page.parameters.iter().filter_map(|(name, parameter)| {
        let value = set.get(name)?;
        Some((name.clone(), value_told(parameter, value)))
    });
    known.collect()
}

fn value_told(parameter: &Parameter, value: &str) -> String {
    let named = parameter.choices.iter().any(|one| one == value)
        || parameter.default.as_deref() == Some(value);
    // A default may be a path. Such characters are not shared.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+%".contains(c);
    let short = value.len() <= 16 && !value.is_empty() && value.chars().all(plain);
    let figure = match parameter.kind {
        ParameterKind::Number => value.parse::<f64>().is_ok_and(|one| one.abs() < 1e9),
        ParameterKind::Flag => matches!(value, "true" | "false"),
        ParameterKind::Text | ParameterKind::Words => false,
    };
    match short && (named || figure) {
        true => value.to_owned(),
        false => "other".to_owned(),
    }
}

/// Returns the name of the kind of change, as pages write it.
fn change_kind(change: &Change) -> String {
    match change {
        Change::SideBySide { .. } => "side-by-side".to_owned(),
        Change::Set { setting, .. } => {
            let written = serde_json::to_value(setting).unwrap_or_default();
            written["kind"].as_str().unwrap_or_default().to_owned()
        }
    }
}

/// Returns the moderators that the page declares and whose values are known.
fn collect_moderators(page: &Advice, stored: &Stored) -> BTreeMap<Moderator, String> {
    let all = page.moderators.iter();
    all.filter_map(|one| Some((*one, moderator_value(*one, stored)?)))
        .collect()
}

fn moderator_value(which: Moderator, stored: &Stored) -> Option<String> {
    let facts = &stored.facts;
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    match which {
        Moderator::FileSystem => {
            let name = stored.target.as_ref()?.fs_type.as_deref()?;
            let named = FILE_SYSTEMS.iter().find(|one| **one == name);
            Some((*named.unwrap_or(&"other")).to_owned())
        }
        Moderator::RotatingDisk => {
            let disks = &stored.target.as_ref()?.disks;
            let rotates = |disk: &String| {
                let value = facts.get(&format!("disk.{disk}.rotational"))?;
                value.as_bool().or_else(|| Some(value.as_u64()? != 0))
            };
            let all: Option<Vec<bool>> = disks.iter().map(rotates).collect();
            all.filter(|all| !all.is_empty())
                .map(|all| yes(all.contains(&true)))
        }
        Moderator::Memory => {
            let gib = facts.u64("memory.total")?.div_ceil(1 << 30).max(1);
            Some(format!("up to {} GiB", gib.checked_next_power_of_two()?))
        }
        Moderator::VirtualMachine => Some(yes(facts.str("virtualisation.vm")? != "none")),
    }
}
