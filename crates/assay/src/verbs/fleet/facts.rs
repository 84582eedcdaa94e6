//! `assay fleet facts`: by value, so that the odd one out is seen.

use super::{Which, ask};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use assay_advice::Catalogue;
use assay_fleet::Outcome;
use assay_model::{FactValue, SCHEMA_VERSION};
use assay_page::text::clean;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What is shown when nothing is asked for.
const USUAL: [&str; 6] = [
    "os.name",
    "kernel.release",
    "virtualisation.vm",
    "cpu.threads",
    "memory.total",
    "package.",
];

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Facts whose key begins with this [default: the system, its size, packages]
    #[arg(long = "key", value_name = "PREFIX")]
    keys: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let catalogue = Catalogue::builtin()?;
    let asked = ask::ask(&args.which, &catalogue)?;
    let wanted = |key: &str| match args.keys.is_empty() {
        true => args.json || USUAL.iter().any(|prefix| key.starts_with(prefix)),
        false => args.keys.iter().any(|prefix| key.starts_with(prefix)),
    };
    let name = |at: usize| asked.machines[at].name.as_str();
    if args.json {
        let machines: Vec<Value> = asked
            .outcomes
            .iter()
            .enumerate()
            .map(|(at, outcome)| match outcome {
                Outcome::Done(judged) => {
                    let mut facts = judged.facts.clone();
                    facts.map.retain(|key, _| wanted(key));
                    json!({ "name": name(at), "facts": facts })
                }
                Outcome::Same(other) => json!({ "name": name(at), "same_as": name(*other) }),
                Outcome::Failed(_) => json!({
                    "name": name(at),
                    "failed": { "kind": ask::kind(outcome), "reason": ask::reason(outcome) },
                }),
            })
            .collect();
        print(&format!(
            "{:#}\n",
            json!({ "schema": SCHEMA_VERSION, "machines": machines })
        ))?;
    } else {
        let mut values: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
        for (at, outcome) in asked.outcomes.iter().enumerate() {
            let Outcome::Done(judged) = outcome else {
                continue;
            };
            for (key, fact) in judged.facts.map.iter().filter(|(key, _)| wanted(key)) {
                let text = match &fact.value {
                    FactValue::Known(Value::String(text)) => text.clone(),
                    FactValue::Known(value) => value.to_string(),
                    FactValue::Unknown(why) => format!("not known: {why}"),
                };
                values
                    .entry(key)
                    .or_default()
                    .entry(text)
                    .or_default()
                    .push(name(at));
            }
        }
        let style = context::style(global);
        let mut out = String::new();
        for (key, values) in values {
            let _ = writeln!(out, "{}", style.bold(&clean(key)));
            let mut rows: Vec<_> = values.into_iter().collect();
            rows.sort_by_key(|(value, names)| (std::cmp::Reverse(names.len()), value.clone()));
            for (value, names) in rows {
                let names: Vec<String> = names.into_iter().map(clean).collect();
                let text = format!("{} ({}): {}", clean(&value), names.len(), names.join(", "));
                style.paragraph(&mut out, "", 2, &text);
            }
        }
        for outcome in asked
            .outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Outcome::Failed(_)))
        {
            style.paragraph(&mut out, "not asked: ", 2, &clean(&ask::reason(outcome)));
        }
        print(&out)?;
    }
    Ok(
        match (asked.interrupted, ask::any_failed(&asked.outcomes)) {
            (true, _) => Status::Interrupted,
            (false, true) => Status::Unreadable,
            (false, false) => Status::Ok,
        },
    )
}
