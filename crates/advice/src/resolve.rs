//! Replaces the placeholders of a trial: converts the table of a page to a [`TrialSpec`].

mod fill;
mod trial_table;

pub(crate) use fill::{BUILTIN, LATER, placeholders};
pub(crate) use trial_table::shape;

use crate::nearest_name;
use assay_model::TargetInfo;
use assay_model::advice::{Advice, Parameter, ParameterKind, TargetKind, TrialSpec};
use fill::Fill;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};
use trial_table::{culprit, sensible, with_hint};

/// Reasons why no trial can be created from a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The page has no trial.
    #[error("`{advice}` cannot be tried: {why}")]
    NoTrial {
        /// Id of the advice.
        advice: String,
        /// Reason in the page why it has no trial.
        why: String,
    },
    /// The user gave a parameter that the page does not have.
    #[error("`{advice}` has no parameter `{name}`{hint}; it has {known}")]
    UnknownParameter {
        /// Id of the advice.
        advice: String,
        /// Name of the unknown parameter.
        name: String,
        /// `; did you mean …?` with a similar name, or empty.
        hint: String,
        /// Names of the parameters that the advice has.
        known: String,
    },
    /// A parameter without a default has no value.
    #[error("`{advice}` needs `--set {name}=…`: {about}")]
    MissingParameter {
        /// Id of the advice.
        advice: String,
        /// Name of the parameter.
        name: String,
        /// Meaning of the parameter.
        about: String,
    },
    /// The value of a parameter is invalid.
    #[error("`{value}` is not a value of `{name}`: {expected}")]
    Value {
        /// Name of the parameter.
        name: String,
        /// Value that the user gave.
        value: String,
        /// Description of the permitted values.
        expected: String,
    },
    /// There is neither a target nor a default target.
    #[error("`{advice}` needs a target: {expected}")]
    NoTarget {
        /// Id of the advice.
        advice: String,
        /// Description of the permitted targets.
        expected: &'static str,
    },
    /// The target lacks a layer that the trial needs.
    #[error("{target}: {missing}")]
    Target {
        /// Target as the user wrote it.
        target: String,
        /// Name of the missing layer.
        missing: String,
    },
    /// The trial contains an unknown placeholder.
    #[error("{at}: nothing fills in `{{{name}}}`{hint}")]
    Placeholder {
        /// Key in the front matter that contains the placeholder, such as `trial.load.argv`.
        at: String,
        /// Name of the placeholder.
        name: String,
        /// `; did you mean …?` with a similar name, or empty.
        hint: String,
    },
    /// The table is not a trial after its placeholders were replaced.
    #[error("{at}: {message}")]
    Shape {
        /// Key in the front matter that causes the error.
        at: String,
        /// Description of the error.
        message: String,
    },
}

/// What the trial is to measure: kind and name of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Kind of target that the trial needs.
    pub kind: TargetKind,
    /// Name of the target: the user's, or the default of the advice.
    pub target: String,
}

/// Returns the target of a trial. `target` is the target that the user gave, if any.
///
/// # Errors
/// The advice has no trial, a parameter is invalid, or there is no default target.
pub fn aim(
    advice: &Advice,
    given: &BTreeMap<String, String>,
    target: Option<&str>,
) -> Result<Aim, ResolveError> {
    let trial = trial(advice)?;
    let parameters = parameters(advice, given)?;
    let kind = kind_of(trial)?;
    let target = match (target, trial.get("default_target").and_then(Value::as_str)) {
        (Some(target), _) => target.to_owned(),
        (None, Some(default)) => {
            let fill = Fill {
                advice,
                parameters: &parameters,
                builtin: &BTreeMap::new(),
            };
            fill.text(default, &["trial".to_owned(), "default_target".to_owned()])?
        }
        (None, None) => {
            return Err(ResolveError::NoTarget {
                advice: advice.id.clone(),
                expected: expected(kind),
            });
        }
    };
    Ok(Aim { kind, target })
}

/// Returns all parameters. Each has the user's value, or else its default.
///
/// # Errors
/// A parameter is unknown, invalid or missing.
pub fn parameters(
    advice: &Advice,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ResolveError> {
    let names = || advice.parameters.keys().map(String::as_str);
    if let Some(name) = given
        .keys()
        .find(|name| !advice.parameters.contains_key(*name))
    {
        return Err(ResolveError::UnknownParameter {
            advice: advice.id.clone(),
            name: name.clone(),
            hint: nearest_name::hint(name, names()),
            known: nearest_name::list(names()),
        });
    }
    let value = |(name, parameter): (&String, &Parameter)| {
        let value = given.get(name).or(parameter.default.as_ref());
        let value = value.ok_or_else(|| ResolveError::MissingParameter {
            advice: advice.id.clone(),
            name: name.clone(),
            about: parameter.about.clone(),
        })?;
        fits(name, parameter, value)?;
        Ok((name.clone(), value.clone()))
    };
    advice.parameters.iter().map(value).collect()
}

/// Returns the parameters without a default that only the load of the trial uses. Each has a dummy value of its type. A
/// session with a load of its own does not need the real values.
#[must_use]
pub fn placeholder_values_of_load(advice: &Advice) -> BTreeMap<String, String> {
    let (load, rest) = placeholders_by_use(advice);
    let is_in_condition = |name: &str| {
        let named = format!("parameters.{name}");
        advice.when.iter().any(|one| one.cel.contains(&named))
    };
    let is_needed = |(name, parameter): &(&String, &Parameter)| {
        parameter.default.is_none()
            && load.contains(*name)
            && !rest.contains(*name)
            && !is_in_condition(name)
    };
    let value = |(name, parameter): (&String, &Parameter)| {
        let value = match (parameter.choices.first(), parameter.kind) {
            (Some(choice), _) => choice.as_str(),
            (None, ParameterKind::Number) => "1",
            (None, ParameterKind::Flag | ParameterKind::Text | ParameterKind::Words) => "true",
        };
        (name.clone(), value.to_owned())
    };
    advice
        .parameters
        .iter()
        .filter(is_needed)
        .map(value)
        .collect()
}

/// Returns whether only the load of the trial uses `{target}`.
#[must_use]
pub fn is_target_of_load(advice: &Advice) -> bool {
    !placeholders_by_use(advice).1.contains("target")
}

/// Returns the placeholders in the trial's load, and the placeholders in the other parts of the trial.
fn placeholders_by_use(advice: &Advice) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut rest = advice.trial.clone().unwrap_or_default();
    let load = rest
        .remove("load")
        .map(|load| Table::from_iter([("load".to_owned(), load)]));
    (placeholders(&load.unwrap_or_default()), placeholders(&rest))
}

/// Creates a trial: replaces placeholders, and checks the types of values.
///
/// `target` is the target as the user wrote it. `info` describes the layers below the target, if it is storage. The
/// placeholders `{mountpoint}`, `{source}`, `{device}` and `{disk}` need `info`.
///
/// # Errors
/// See [`ResolveError`].
pub fn resolve(
    advice: &Advice,
    given: &BTreeMap<String, String>,
    target: Option<&str>,
    info: Option<&TargetInfo>,
) -> Result<TrialSpec, ResolveError> {
    let trial = trial(advice)?;
    let parameters = parameters(advice, given)?;
    let aim = aim(advice, given, target)?;
    let builtin = builtin(trial, &aim.target, info)?;
    let fill = Fill {
        advice,
        parameters: &parameters,
        builtin: &builtin,
    };
    let filled = fill.value(&Value::Table(trial.clone()), &mut vec!["trial".to_owned()])?;
    let spec: TrialSpec = typed(filled).map_err(|message| ResolveError::Shape {
        at: culprit(trial, &message).join("."),
        message: with_hint(&message),
    })?;
    match sensible(&spec) {
        Ok(()) => Ok(spec),
        Err((key, message)) => Err(ResolveError::Shape {
            at: format!("trial.{key}"),
            message: message.to_owned(),
        }),
    }
}

/// Checks that a value is permitted for a parameter.
pub(crate) fn fits(name: &str, parameter: &Parameter, value: &str) -> Result<(), ResolveError> {
    let fault = |expected: String| ResolveError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        expected,
    };
    let choices = || parameter.choices.iter().map(String::as_str);
    if !parameter.choices.is_empty() && !parameter.choices.iter().any(|choice| choice == value) {
        return Err(fault(format!(
            "it is one of {}{}",
            nearest_name::list(choices()),
            nearest_name::hint(value, choices())
        )));
    }
    match parameter.kind {
        ParameterKind::Text => Ok(()),
        ParameterKind::Number => number(value)
            .map(drop)
            .ok_or_else(|| fault("a number such as 4 or 0.5 was expected".to_owned())),
        ParameterKind::Words => shell_words::split(value)
            .map(drop)
            .map_err(|error| fault(format!("{error}"))),
        ParameterKind::Flag => match value {
            "true" | "false" => Ok(()),
            _ => Err(fault("`true` or `false` was expected".to_owned())),
        },
    }
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::Integer(whole));
    }
    let decimal: f64 = text.parse().ok()?;
    decimal.is_finite().then_some(Value::Float(decimal))
}

fn trial(advice: &Advice) -> Result<&Table, ResolveError> {
    advice.trial.as_ref().ok_or_else(|| ResolveError::NoTrial {
        advice: advice.id.clone(),
        why: advice.literature.text.clone(),
    })
}

fn kind_of(trial: &Table) -> Result<TargetKind, ResolveError> {
    let kind = trial.get("target").cloned();
    let kind = kind.ok_or_else(|| "missing field `target`".to_owned());
    kind.and_then(typed).map_err(|message| ResolveError::Shape {
        at: "trial.target".to_owned(),
        message,
    })
}

/// Converts a TOML value to a type. The error is the message of the TOML parser.
fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    value
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_owned())
}

fn expected(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Directory => "a directory in which assay may make scratch files",
        TargetKind::Mount => "a directory on the file system",
        TargetKind::Device => "a block device or a directory on it; it is only read",
        TargetKind::Dataset => "a ZFS dataset, POOL/NAME",
        TargetKind::Address => "an address, URL or HOST:PORT",
    }
}

/// Returns the values of the built-in placeholders that the trial uses.
fn builtin(
    trial: &Table,
    target: &str,
    info: Option<&TargetInfo>,
) -> Result<BTreeMap<&'static str, String>, ResolveError> {
    let used = placeholders(trial);
    let missing = |what: &str| ResolveError::Target {
        target: target.to_owned(),
        missing: what.to_owned(),
    };
    let mut builtin = BTreeMap::from([("target", target.to_owned())]);
    for name in ["mountpoint", "source", "device", "disk"] {
        if !used.contains(name) {
            continue;
        }
        let info = info.ok_or_else(|| missing("what lies under it is not known"))?;
        let value = match name {
            "mountpoint" => info
                .mount_point
                .clone()
                .ok_or_else(|| missing("no mounted file system: name a directory on it"))?,
            "source" => info
                .mount_source
                .clone()
                .ok_or_else(|| missing("no mounted file system: name a directory on it"))?,
            "device" => device(info).map_err(|error| missing(&error))?,
            _ => one(&info.disks, "disk").map_err(|error| missing(&error))?,
        };
        builtin.insert(name, value);
    }
    Ok(builtin)
}

/// Returns the whole block device directly below the target. For a partition, returns its disk, because only the disk
/// has a request queue.
pub(crate) fn device(info: &TargetInfo) -> Result<String, String> {
    let device = one(&info.devices, "block device")?;
    Ok(match info.disks.as_slice() {
        [disk] if partition_of(&device, disk) => disk.clone(),
        _ => device,
    })
}

/// Returns whether a device is a partition of a disk, such as `sda1` of `sda`, or `nvme0n1p2` of `nvme0n1`. A `p`
/// precedes the number if the name of the disk ends with a digit (Linux, block/partitions/core.c).
fn partition_of(device: &str, disk: &str) -> bool {
    let Some(rest) = device.strip_prefix(disk) else {
        return false;
    };
    let number = match disk.ends_with(|c: char| c.is_ascii_digit()) {
        true => rest.strip_prefix('p'),
        false => Some(rest),
    };
    number.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}

pub(crate) fn one(names: &[String], what: &str) -> Result<String, String> {
    match names {
        [name] => Ok(name.clone()),
        [] => Err(format!("no {what} lies under it that could be named")),
        many => Err(format!(
            "{} lie under it: name one {what}",
            many.join(" and ")
        )),
    }
}

#[cfg(test)]
mod tests;
