//! Builds a candidate from an advice page. The caller decides whether the page applies.

use crate::candidate::{Acts, Applicability, Candidate, Prior, Toggle};
use assay_model::Nanos;
use assay_model::advice::{ActsOn, Advice, ExpectedGain, ToggleCost, TrialSpec};
use assay_model::change::{Arm, Change, ConfigKey, ImageArm, Setting};
use std::collections::BTreeMap;

/// Reason why a candidate is never kept if its trial compares two created objects.
const ONLY_COMPARED: &str = "compares two things that are made for the trial; how the change is kept is not part \
     of the page";

/// Builds a candidate from a page and the trial of the page for this machine. `id` is the name of the page, with the
/// value if the page has several. The caller adds earlier verdicts and the part of an operation that the candidate can
/// influence.
#[must_use]
pub fn candidate_of_page(
    id: &str,
    advice: &Advice,
    spec: &TrialSpec,
    state: Applicability,
) -> Candidate {
    let acts = advice.acts.as_ref();
    let made = matches!(spec.change, Change::SideBySide { .. });
    let cost = acts.map_or_else(|| usual_cost(&spec.change), |acts| acts.toggle);
    Candidate {
        id: id.to_owned(),
        title: advice.title.clone(),
        state,
        touches: touched_settings(&spec.change),
        excludes: acts.map_or_else(Vec::new, |acts| acts.excludes.clone()),
        risk: advice.risk.level,
        never_kept: acts
            .and_then(|acts| acts.never.clone())
            .or_else(|| (made && spec.keep.is_none()).then(|| ONLY_COMPARED.to_owned())),
        literature: advice.literature.standing,
        literature_text: advice.literature.text.clone(),
        acts: acts.map_or_else(Acts::default, Acts::of_page),
        share: None,
        before: None,
        prior: acts.map_or_else(
            || Prior::by_literature(advice.literature.standing),
            |acts| Prior::of_page(&acts.prior),
        ),
        toggle: Toggle::of_cost(cost),
        switch: usual_duration(cost),
    }
}

impl Acts {
    /// Converts the page's information about what the change influences.
    #[must_use]
    pub fn of_page(acts: &ActsOn) -> Self {
        Self {
            relieves: acts.relieves.clone(),
            loads: acts
                .loads
                .iter()
                .map(|load| load.name().to_owned())
                .collect(),
            moves: acts.moves.clone(),
        }
    }
}

impl Prior {
    /// Converts the effect that the page expects. The gain is the geometric mean of the page's lowest and highest gain.
    #[must_use]
    pub fn of_page(expected: &ExpectedGain) -> Self {
        let logs = expected.gain.map(f64::ln_1p);
        Self {
            helps: expected.helps,
            gain: f64::midpoint(logs[0], logs[1]).exp_m1(),
        }
    }
}

impl Toggle {
    /// Converts the cost of a change to the way in which the change is applied.
    #[must_use]
    pub fn of_cost(cost: ToggleCost) -> Self {
        match cost {
            ToggleCost::Live | ToggleCost::Remount => Self::Cheap,
            ToggleCost::Reload => Self::Reload,
            ToggleCost::Restart => Self::Restart,
            ToggleCost::Recreate => Self::Remake,
            ToggleCost::Reboot => Self::Reboot,
        }
    }
}

/// Returns the usual cost of applying a change, for a page that does not specify the cost.
fn usual_cost(change: &Change) -> ToggleCost {
    match change {
        Change::SideBySide { .. } => ToggleCost::Recreate,
        Change::Set { setting, .. } => match setting {
            Setting::MountOption { .. } => ToggleCost::Remount,
            Setting::Config { .. } | Setting::ConfigKeys { .. } | Setting::NewFile { .. } => {
                ToggleCost::Reload
            }
            _ => ToggleCost::Live,
        },
    }
}

/// Returns the usual time to apply a change. The session uses this time until it has measured the change.
fn usual_duration(cost: ToggleCost) -> Nanos {
    Nanos(match cost {
        ToggleCost::Live => 20_000_000,
        ToggleCost::Remount => 200_000_000,
        ToggleCost::Reload => 1_000_000_000,
        ToggleCost::Restart | ToggleCost::Reboot => 5_000_000_000,
        ToggleCost::Recreate => 20_000_000_000,
    })
}

/// Returns names of the settings that a change touches. Two changes of the same setting have a name
/// in common.
#[must_use]
pub fn touched_settings(change: &Change) -> Vec<String> {
    match change {
        Change::Set { setting, .. } => name_settings(setting),
        Change::SideBySide { now, changed } => name_differences(now, changed),
    }
}

fn name_settings(setting: &Setting) -> Vec<String> {
    match setting {
        Setting::ZfsProperty { dataset, property } => vec![format!("zfs/{dataset}/{property}")],
        Setting::ModuleParameter { module, name } => vec![format!("module/{module}/{name}")],
        Setting::Sysctl { key } => vec![key.clone()],
        Setting::Queue { device, attribute } => vec![format!("queue/{device}/{attribute}")],
        Setting::Sysfs { attribute } => vec![attribute.clone()],
        Setting::MountOption {
            mountpoint,
            choices,
        } => choices
            .iter()
            .filter(|choice| !choice.is_empty())
            .map(|choice| format!("mount/{mountpoint}/{choice}"))
            .collect(),
        Setting::Config {
            file, section, key, ..
        } => vec![name_key(file, section, key)],
        Setting::ConfigKeys { file, keys, .. } => keys
            .iter()
            .map(|ConfigKey { section, key }| name_key(file, section, key))
            .collect(),
        Setting::FileMode { file, .. } => vec![format!("mode/{file}")],
        Setting::NewFile { file, .. } => vec![file.clone()],
        Setting::Command { read, .. } => vec![format!("command/{}", read.join(" "))],
    }
}

/// The name begins with the file, so that a rule such as `/etc/nginx/*` covers all keys of the file.
fn name_key(file: &str, section: &[String], key: &str) -> String {
    let mut path = section.to_vec();
    path.push(key.to_owned());
    format!("{file}: {}", path.join("/"))
}

fn name_differences(now: &Arm, changed: &Arm) -> Vec<String> {
    match (now, changed) {
        (Arm::Image(now), Arm::Image(changed)) => name_image_differences(now, changed),
        (
            Arm::Dataset {
                properties: now, ..
            },
            Arm::Dataset {
                properties: changed,
                ..
            },
        ) => name_differing_keys("dataset", now, changed),
        (
            Arm::Zvol {
                properties: now, ..
            },
            Arm::Zvol {
                properties: changed,
                ..
            },
        ) => name_differing_keys("zvol", now, changed),
        (Arm::Sshd { set: now, .. }, Arm::Sshd { set: changed, .. }) => {
            name_differing_keys("sshd", now, changed)
        }
        _ => vec!["file-system".to_owned()],
    }
}

fn name_image_differences(now: &ImageArm, changed: &ImageArm) -> Vec<String> {
    let mut names = name_differing_keys("image", &now.options, &changed.options);
    for (name, differs) in [
        ("format", now.format != changed.format),
        ("cache", now.cache != changed.cache),
        ("aio", now.aio != changed.aio),
        ("luks", now.luks != changed.luks),
        ("filled", now.filled != changed.filled),
    ] {
        if differs {
            names.push(format!("image/{name}"));
        }
    }
    names
}

fn name_differing_keys(
    what: &str,
    now: &BTreeMap<String, String>,
    changed: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut keys: Vec<&String> = now.keys().chain(changed.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.retain(|key| now.get(*key) != changed.get(*key));
    keys.into_iter()
        .map(|key| format!("{what}/{key}"))
        .collect()
}

#[cfg(test)]
mod tests;
