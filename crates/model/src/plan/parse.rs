//! Parses and prints plans as TOML. Errors contain the line, the key, and the most similar known key.

use super::{Plan, PlanSpec};
use crate::load::Load;
use crate::workload::Workload;
use std::fmt::Write as _;

/// Reason why a plan cannot be parsed or executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The text is not TOML, or contains an unknown key or an invalid value.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// File name for the message, as given by the caller.
        file: String,
        /// Line number, counted from 1.
        line: usize,
        /// Description of the error.
        message: String,
    },
    /// The text can be parsed, but the plan cannot be executed.
    #[error("plan `{plan}`: {message}")]
    Content {
        /// Name of the plan.
        plan: String,
        /// Description of the error, and how to correct it.
        message: String,
    },
}

/// Adds the most similar name to an error of serde such as "unknown field `a`, expected one of `b`, `c`".
fn with_hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown_key = message.starts_with("unknown field");
    let unknown_value = message.starts_with("unknown variant");
    let (true, Some(unknown)) = (unknown_key || unknown_value, quoted.next()) else {
        return message.to_owned();
    };
    let known: Vec<&str> = quoted.collect();
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(unknown, name), *name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().max(unknown.len()) / 2);
    let what = if unknown_key { "key" } else { "value" };
    match nearest {
        Some((_, name)) => format!("unknown {what} `{unknown}`: did you mean `{name}`?"),
        None => format!("unknown {what} `{unknown}`: known are {}", known.join(", ")),
    }
}

impl PlanSpec {
    /// Parses a plan. `file` is the file name for error messages.
    ///
    /// # Errors
    /// The error contains the line and the key.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, PlanError> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start).min(text.len());
            PlanError::Syntax {
                file: file.to_owned(),
                line: text.as_bytes()[..at]
                    .iter()
                    .filter(|b| **b == b'\n')
                    .count()
                    + 1,
                message: with_hint(error.message()),
            }
        })
    }
}

/// Checks rules that serde cannot check, such as unique names and valid ranges.
pub(super) fn check(plan: &Plan) -> Result<(), PlanError> {
    let fail = |message: String| {
        Err(PlanError::Content {
            plan: plan.name.clone(),
            message,
        })
    };
    if plan.workloads.is_empty() {
        return fail("it has no workload: add a [[workload]] or a [[grid]]".to_owned());
    }
    if plan.rounds == 0 || plan.rounds > 10_000 {
        return fail(format!("rounds = {}: use 1 to 10000", plan.rounds));
    }
    let mut names = std::collections::BTreeSet::new();
    for workload in &plan.workloads {
        let name = &workload.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return fail(format!(
                "workload name `{}`: use 1 to 64 letters, digits, `-` and `_`",
                name.escape_debug()
            ));
        }
        if !names.insert(name) {
            return fail(format!(
                "two workloads are named `{name}`: names must differ"
            ));
        }
        if workload.runtime.0 < 100_000_000 {
            return fail(format!(
                "{name}: runtime {} is too short to measure: use 100ms or more",
                workload.runtime
            ));
        }
        if let Load::Attributes { .. } = workload.load {
            return fail(format!(
                "{name}: files with attributes are made on a file system of assay's own, as trials \
                 make it"
            ));
        }
        if let Some(load) = workload.load.http() {
            let wrong = load.check().err().or_else(|| {
                let shared =
                    "a share of the capacity needs one that was found: use `assay web`, or a rate";
                load.share.map(|_| shared.to_owned())
            });
            if let Some(why) = wrong {
                return fail(format!("{name}: {why}"));
            }
        }
        if let Some(workload) = workload.fio() {
            fits(workload, plan).map_err(|message| PlanError::Content {
                plan: plan.name.clone(),
                message: format!("{name}: {message}"),
            })?;
        }
    }
    for criterion in &plan.want {
        if !names.contains(&criterion.workload) {
            let known: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            return fail(format!(
                "criterion `{criterion}` names no workload of this plan; it has {}",
                known.join(", ")
            ));
        }
        if let Some(target) = &criterion.target
            && !plan.targets.contains(target)
        {
            return fail(format!(
                "criterion `{criterion}` names no target of this plan"
            ));
        }
    }
    let distinct: std::collections::BTreeSet<_> = plan.targets.iter().collect();
    if distinct.len() < plan.targets.len() {
        return fail("a target is named twice".to_owned());
    }
    Ok(())
}

/// Checks that a fio workload is consistent with the plan.
fn fits(workload: &Workload, plan: &Plan) -> Result<(), String> {
    let size = workload.block_size.0;
    if size == 0 || !size.is_multiple_of(512) || size > 1 << 30 {
        return Err(format!(
            "block_size = {size}: use a multiple of 512 bytes up to 1G"
        ));
    }
    if size > plan.file_size.0 {
        return Err(format!(
            "block_size {} is larger than file_size {}",
            workload.block_size, plan.file_size
        ));
    }
    if !(1..=4096).contains(&workload.queue_depth) || !(1..=256).contains(&workload.jobs) {
        return Err("use queue_depth 1 to 4096 and jobs 1 to 256".to_owned());
    }
    if workload.engine == crate::workload::Engine::Psync && workload.queue_depth > 1 {
        return Err(format!(
            "engine psync does one I/O at a time, so queue_depth = {} would not be reached: use jobs, or another engine",
            workload.queue_depth
        ));
    }
    if workload.read_percent.is_some_and(|share| share > 100) {
        return Err("read_percent must be 0 to 100".to_owned());
    }
    if workload.durability != crate::workload::Durability::None && !workload.pattern.writes() {
        return Err("durability says when a write is done, but it only reads".to_owned());
    }
    let share = plan.file_size.0 / u64::from(workload.jobs);
    if share < size {
        return Err(format!(
            "{} jobs share {} and none gets a whole block",
            workload.jobs, plan.file_size
        ));
    }
    Ok(())
}

/// Prints a plan in an editable form.
pub(super) fn print(spec: &PlanSpec) -> String {
    // serde writes sizes and times as plain numbers; the short forms are easier to edit.
    let mut out = String::new();
    let quote = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let list = |items: Vec<String>| {
        let quoted: Vec<String> = items.iter().map(|item| quote(item)).collect();
        format!("[{}]", quoted.join(", "))
    };
    let _ = writeln!(out, "name = {}", quote(&spec.name));
    let _ = writeln!(out, "title = {}", quote(&spec.title));
    if let Some(rounds) = spec.rounds {
        let _ = writeln!(out, "rounds = {rounds}");
    }
    if let Some(size) = spec.file_size {
        let _ = writeln!(out, "file_size = \"{}\"", size.short());
    }
    if let Some(seed) = spec.seed {
        let _ = writeln!(out, "seed = {seed}");
    }
    if !spec.targets.is_empty() {
        let _ = writeln!(out, "targets = {}", list(spec.targets.clone()));
    }
    if !spec.want.is_empty() {
        let _ = writeln!(
            out,
            "want = {}",
            list(spec.want.iter().map(ToString::to_string).collect())
        );
    }
    for w in &spec.workloads {
        let enum_name = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let _ = writeln!(out, "\n[[workload]]");
        if let Some(name) = &w.name {
            let _ = writeln!(out, "name = {}", quote(name));
        }
        // An inline table, because the following keys belong to the workload.
        if let Some(load) = w
            .load
            .as_ref()
            .and_then(|load| toml::Value::try_from(load).ok())
        {
            let _ = writeln!(out, "load = {load}");
        }
        if let Some(pattern) = w.pattern {
            let _ = writeln!(out, "pattern = \"{}\"", pattern.fio());
        }
        if let Some(size) = w.block_size {
            let _ = writeln!(out, "block_size = \"{}\"", size.short());
        }
        if let Some(depth) = w.queue_depth {
            let _ = writeln!(out, "queue_depth = {depth}");
        }
        if let Some(jobs) = w.jobs {
            let _ = writeln!(out, "jobs = {jobs}");
        }
        if let Some(share) = w.read_percent {
            let _ = writeln!(out, "read_percent = {share}");
        }
        if let Some(engine) = w.engine {
            let name = enum_name(serde_json::json!(engine));
            let _ = writeln!(out, "engine = \"{name}\"");
        }
        if let Some(direct) = w.direct {
            let _ = writeln!(out, "direct = {direct}");
        }
        if let Some(durability) = w.durability {
            let name = enum_name(serde_json::json!(durability));
            let _ = writeln!(out, "durability = \"{name}\"");
        }
        if let Some(time) = w.runtime {
            let _ = writeln!(out, "runtime = \"{}\"", time.short());
        }
        if let Some(time) = w.ramp {
            let _ = writeln!(out, "ramp = \"{}\"", time.short());
        }
    }
    out
}
