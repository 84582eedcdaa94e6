//! A trial's placeholders filled in: the catalogue's table becomes a [`TrialSpec`].

use crate::near;
use assay_model::TargetInfo;
use assay_model::advice::{Advice, Parameter, ParameterKind, TargetKind, TrialSpec};
use assay_model::change::Change;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Placeholders that assay fills in: the target as named; where its file system is mounted, and what
/// is mounted there (`/dev/vda2`, `tank/data`); the whole block device directly below (of a
/// partition, its disk); the physical disk at the bottom.
pub(crate) const BUILTIN: [&str; 5] = ["target", "mountpoint", "source", "device", "disk"];

/// Placeholders that stay, because they are filled in while the trial is carried out.
pub(crate) const LATER: [&str; 5] = ["host", "port", "path", "file", "value"];

/// Where each of [`LATER`] has a meaning: the key that holds it.
const LATER_IN: [(&str, &[&str]); 5] = [
    ("host", &["argv"]),
    ("port", &["argv"]),
    ("path", &["argv"]),
    ("file", &["validate"]),
    ("value", &["apply", "undo"]),
];

/// Why no trial can be made of a piece of advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// It can only be explained.
    #[error("`{advice}` cannot be tried: {why}")]
    NoTrial {
        /// Advice.
        advice: String,
        /// What its page says of it.
        why: String,
    },
    /// No such parameter.
    #[error("`{advice}` has no parameter `{name}`{hint}; it has {known}")]
    UnknownParameter {
        /// Advice.
        advice: String,
        /// As given.
        name: String,
        /// `; did you mean …?` or nothing.
        hint: String,
        /// Those it has.
        known: String,
    },
    /// A parameter without a default was not given.
    #[error("`{advice}` needs `--set {name}=…`: {about}")]
    MissingParameter {
        /// Advice.
        advice: String,
        /// Name.
        name: String,
        /// What it is.
        about: String,
    },
    /// A value that the parameter cannot have.
    #[error("`{value}` is not a value of `{name}`: {expected}")]
    Value {
        /// Parameter.
        name: String,
        /// As given.
        value: String,
        /// What would fit.
        expected: String,
    },
    /// No target, and no default one.
    #[error("`{advice}` needs a target: {expected}")]
    NoTarget {
        /// Advice.
        advice: String,
        /// What would fit.
        expected: &'static str,
    },
    /// The target does not have what the trial is about.
    #[error("{target}: {missing}")]
    Target {
        /// As named.
        target: String,
        /// What is missing.
        missing: String,
    },
    /// A placeholder that nothing fills in.
    #[error("{at}: nothing fills in `{{{name}}}`{hint}")]
    Placeholder {
        /// Key in the front matter: `trial.load.argv`.
        at: String,
        /// Placeholder.
        name: String,
        /// `; did you mean …?` or nothing.
        hint: String,
    },
    /// The table, filled in, is no trial.
    #[error("{at}: {message}")]
    Shape {
        /// Key in the front matter.
        at: String,
        /// What is wrong.
        message: String,
    },
}

/// What a trial is pointed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// What kind of thing.
    pub kind: TargetKind,
    /// Its name: the one given, else the advice's own.
    pub target: String,
}

/// What a trial of this advice would be pointed at when the user names `target`, or nothing.
///
/// # Errors
/// It has no trial, a parameter is wrong, or there is no default target.
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

/// All parameters with their values: those given, else their defaults.
///
/// # Errors
/// One that is not known, does not fit, or is missing.
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
            hint: near::hint(name, names()),
            known: near::list(names()),
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

/// Makes a trial: placeholders filled in, types checked.
///
/// `target` is the target as the user named it, `info` what lies under it when it is storage; the
/// trial uses `{mountpoint}`, `{source}`, `{device}` and `{disk}` only where `info` is given.
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

/// Whether a value fits a parameter.
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
            near::list(choices()),
            near::hint(value, choices())
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

/// A value as what it should be; toml's message otherwise.
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

/// What assay fills in itself, as far as the trial asks for it.
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

/// The whole device directly below: a partition's queue is that of its disk.
pub(crate) fn device(info: &TargetInfo) -> Result<String, String> {
    let device = one(&info.devices, "block device")?;
    Ok(match info.disks.as_slice() {
        [disk] if partition_of(&device, disk) => disk.clone(),
        _ => device,
    })
}

/// `sda1` of `sda`, `nvme0n1p2` of `nvme0n1` (Linux, block/partitions/core.c: a `p` goes between
/// when the disk's name ends in a digit).
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

/// All placeholders in a table.
pub(crate) fn placeholders(table: &Table) -> BTreeSet<String> {
    fn walk(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                found.extend(pieces(text).into_iter().filter_map(|piece| match piece {
                    Piece::Name(name) => Some(name.to_owned()),
                    Piece::Text(_) => None,
                }))
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            Value::Table(table) => table.values().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    table.values().for_each(|value| walk(value, &mut found));
    found
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Splits a text at its placeholders. Braces that are around anything but a name are text.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|found| at + found) {
        let after = &text[open + 1..];
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let end = after.find(|c| !good(c)).unwrap_or(after.len());
        if end > 0 && after[end..].starts_with('}') {
            if from < open {
                pieces.push(Piece::Text(&text[from..open]));
            }
            pieces.push(Piece::Name(&after[..end]));
            from = open + end + 2;
            at = from;
        } else {
            at = open + 1;
        }
    }
    if from < text.len() {
        pieces.push(Piece::Text(&text[from..]));
    }
    pieces
}

/// The values that take the place of placeholders.
struct Fill<'a> {
    advice: &'a Advice,
    parameters: &'a BTreeMap<String, String>,
    builtin: &'a BTreeMap<&'static str, String>,
}

impl Fill<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let parameter = self.parameters.get(name);
        parameter
            .or_else(|| self.builtin.get(name))
            .map(String::as_str)
    }

    fn value(&self, value: &Value, at: &mut Vec<String>) -> Result<Value, ResolveError> {
        Ok(match value {
            Value::String(text) => match self.whole(text) {
                Some(value) => value,
                None => Value::String(self.text(text, at)?),
            },
            Value::Array(items) => {
                let mut filled = Vec::with_capacity(items.len());
                for (number, item) in items.iter().enumerate() {
                    if let Some(words) = item.as_str().and_then(|text| self.words(text)) {
                        filled.extend(words.into_iter().map(Value::String));
                        continue;
                    }
                    at.push(number.to_string());
                    filled.push(self.value(item, at)?);
                    at.pop();
                }
                Value::Array(filled)
            }
            Value::Table(table) => {
                let mut filled = Table::new();
                for (key, item) in table {
                    at.push(key.clone());
                    filled.insert(key.clone(), self.value(item, at)?);
                    at.pop();
                }
                Value::Table(filled)
            }
            other => other.clone(),
        })
    }

    /// The words that an item of a list stands for when it is one placeholder alone.
    fn words(&self, text: &str) -> Option<Vec<String>> {
        let [Piece::Name(name)] = pieces(text)[..] else {
            return None;
        };
        match self.advice.parameters.get(name)?.kind {
            ParameterKind::Words => shell_words::split(self.parameters.get(name)?).ok(),
            _ => None,
        }
    }

    /// The number or flag that a text stands for when it is one placeholder alone.
    fn whole(&self, text: &str) -> Option<Value> {
        let [Piece::Name(name)] = pieces(text)[..] else {
            return None;
        };
        let value = self.parameters.get(name)?;
        match self.advice.parameters.get(name)?.kind {
            ParameterKind::Text | ParameterKind::Words => None,
            ParameterKind::Number => number(value),
            ParameterKind::Flag => value.parse().ok().map(Value::Boolean),
        }
    }

    fn text(&self, text: &str, at: &[String]) -> Result<String, ResolveError> {
        let mut out = String::new();
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Name(name) => match self.get(name) {
                    Some(value) => out.push_str(value),
                    None if later(name, at) => out.push_str(&format!("{{{name}}}")),
                    None => {
                        let known = self.advice.parameters.keys().map(String::as_str);
                        return Err(ResolveError::Placeholder {
                            at: at.join("."),
                            name: name.to_owned(),
                            hint: near::hint(name, known.chain(BUILTIN).chain(LATER)),
                        });
                    }
                },
            }
        }
        Ok(out)
    }
}

/// Whether a placeholder stays at this place.
fn later(name: &str, at: &[String]) -> bool {
    LATER_IN
        .iter()
        .any(|(known, keys)| *known == name && keys.iter().any(|key| at.iter().any(|at| at == key)))
}

/// What is wrong with the trial of a page, and the keys that lead there.
pub(crate) struct Fault {
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
}

/// Checks that a trial can be made of the table, with values that stand in for what only a machine
/// or the user can say.
pub(crate) fn shape(advice: &Advice, trial: &Table) -> Result<(), Fault> {
    let parameters = advice.parameters.iter().map(|(name, parameter)| {
        let value = parameter.default.as_ref().or(parameter.choices.first());
        let value = value.map_or("1", String::as_str);
        (name.clone(), value.to_owned())
    });
    let fill = Fill {
        advice,
        parameters: &parameters.collect(),
        builtin: &BUILTIN.map(|name| (name, "x".to_owned())).into(),
    };
    let mut at = vec!["trial".to_owned()];
    let filled = fill.value(&Value::Table(trial.clone()), &mut at);
    let filled = filled.map_err(|error| Fault {
        path: at,
        message: error.to_string(),
    })?;
    let spec: TrialSpec = typed(filled).map_err(|message| Fault {
        path: culprit(trial, &message),
        message: format!("trial: {}", with_hint(&message)),
    })?;
    sensible(&spec).map_err(|(key, message)| Fault {
        path: vec!["trial".to_owned(), key.to_owned()],
        message: message.to_owned(),
    })
}

/// The name that a message of serde is about.
fn quoted(message: &str) -> Option<&str> {
    message.split('`').nth(1)
}

/// Adds the nearest of the names that were expected.
fn with_hint(message: &str) -> String {
    let name = quoted(message).unwrap_or_default();
    let expected = message
        .split_once(", expected ")
        .map_or("", |(_, rest)| rest);
    format!(
        "{message}{}",
        near::hint(name, expected.split('`').skip(1).step_by(2))
    )
}

/// Where in the trial the name stands that a message is about.
fn culprit(trial: &Table, message: &str) -> Vec<String> {
    fn find(value: &Value, name: &str, at: &mut Vec<String>) -> bool {
        match value {
            Value::String(text) => text == name,
            Value::Array(items) => items.iter().enumerate().any(|(number, item)| {
                at.push(number.to_string());
                let found = find(item, name, at);
                if !found {
                    at.pop();
                }
                found
            }),
            Value::Table(table) => table.iter().any(|(key, item)| {
                at.push(key.clone());
                let found = key == name || find(item, name, at);
                if !found {
                    at.pop();
                }
                found
            }),
            _ => false,
        }
    }
    let mut at = vec!["trial".to_owned()];
    if let Some(name) = quoted(message) {
        find(&Value::Table(trial.clone()), name, &mut at);
    }
    at
}

/// What types do not say of a trial.
fn sensible(spec: &TrialSpec) -> Result<(), (&'static str, &'static str)> {
    let share = |share: f64| share > 0.0 && share < 1.0;
    if !share(spec.margin) {
        return Err((
            "margin",
            "`margin` is a share between 0 and 1, such as 0.03",
        ));
    }
    if !spec.guards.iter().all(|guard| share(guard.margin)) {
        return Err((
            "guards",
            "the margin of a guard is a share between 0 and 1, such as 0.10",
        ));
    }
    if !(spec.slot_seconds > 0.0 && spec.slot_seconds.is_finite()) {
        return Err(("slot_seconds", "`slot_seconds` is more than 0"));
    }
    if !(spec.washout_seconds >= 0.0 && spec.washout_seconds.is_finite()) {
        return Err(("washout_seconds", "`washout_seconds` is at least 0"));
    }
    match &spec.change {
        Change::SideBySide { now, changed } if now == changed => Err((
            "change",
            "`now` and `changed` are the same: nothing would be tested",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
