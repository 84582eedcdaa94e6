//! Checks when a page is read that a trial can be created from the page's table.

use super::fill::{BUILTIN, Fill};
use super::typed;
use crate::nearest_name;
use assay_model::advice::{Advice, TrialSpec};
use assay_model::change::Change;
use toml::{Table, Value};

/// Error in a page's trial, and the path of the key that causes it.
pub(crate) struct Fault {
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
}

/// Checks that a trial can be created from the table. Substitutes stand for values of the machine or the user.
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

/// Returns the name in backticks in an error message of serde.
fn quoted(message: &str) -> Option<&str> {
    message.split('`').nth(1)
}

/// Appends the most similar expected name to an error message of serde.
pub(super) fn with_hint(message: &str) -> String {
    let name = quoted(message).unwrap_or_default();
    let expected = message
        .split_once(", expected ")
        .map_or("", |(_, rest)| rest);
    format!(
        "{message}{}",
        nearest_name::hint(name, expected.split('`').skip(1).step_by(2))
    )
}

/// Returns the path in the trial of the name that the error message quotes.
pub(super) fn culprit(trial: &Table, message: &str) -> Vec<String> {
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

/// Checks limits that the types of a trial cannot express, such as a margin between 0 and 1.
pub(super) fn sensible(spec: &TrialSpec) -> Result<(), (&'static str, &'static str)> {
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
    if spec
        .no_tail_guard
        .as_deref()
        .is_some_and(|why| why.trim().is_empty())
    {
        return Err((
            "no_tail_guard",
            "`no_tail_guard` says why no guardrail looks at the slowest operations",
        ));
    }
    if !(spec.slot_seconds > 0.0 && spec.slot_seconds.is_finite()) {
        return Err(("slot_seconds", "`slot_seconds` is more than 0"));
    }
    let least = spec.slot_seconds_min.unwrap_or(spec.slot_seconds);
    if !(least > 0.0 && least <= spec.slot_seconds) {
        return Err((
            "slot_seconds_min",
            "`slot_seconds_min` is more than 0 and at most `slot_seconds`",
        ));
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
