//! `assay fleet facts`: shows facts of machines grouped by value, so that outliers are visible.

use super::{Which, ask};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use assay_advice::Catalogue;
use assay_fleet::Outcome;
use assay_model::{FactValue, Facts, SCHEMA_VERSION};
use assay_render::text::escape_line;
use assay_report::fleet::MachineFault;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Key prefixes of the facts that are shown if the user gives none.
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
    /// Show facts with this key prefix [default: system, size, packages]
    #[arg(long = "key", value_name = "PREFIX")]
    keys: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Document of `assay fleet facts`.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::verbs) struct Document<'a> {
    schema: u32,
    machines: Vec<Entry<'a>>,
}

/// A machine of the inventory with its facts. Instead of facts, the entry has an error, or the name of an earlier entry
/// for the same machine.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Entry<'a> {
    /// Name of the machine in the inventory.
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<Facts>,
    /// Name of an earlier entry that refers to the same machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<MachineFault<'a>>,
}

/// Runs `assay fleet facts`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let catalogue = Catalogue::builtin()?;
    let asked = ask::ask(&args.which, &catalogue, global)?;
    let wanted = |key: &str| match args.keys.is_empty() {
        true => args.json || USUAL.iter().any(|prefix| key.starts_with(prefix)),
        false => args.keys.iter().any(|prefix| key.starts_with(prefix)),
    };
    let name = |at: usize| asked.machines[at].name.as_str();
    if args.json {
        let kinds: Vec<String> = asked.outcomes.iter().map(ask::kind).collect();
        let reasons: Vec<String> = asked.outcomes.iter().map(ask::reason).collect();
        let entry = |(at, outcome)| {
            let outcome: &Outcome<ask::Judged> = outcome;
            let mut entry = Entry {
                name: name(at),
                facts: None,
                same_as: None,
                failed: None,
            };
            match outcome {
                Outcome::Done(judged) => {
                    let mut facts = judged.facts.clone();
                    facts.map.retain(|key, _| wanted(key));
                    entry.facts = Some(facts);
                }
                Outcome::Same(other) => entry.same_as = Some(name(*other)),
                Outcome::Failed(_) => {
                    entry.failed = Some(MachineFault {
                        kind: &kinds[at],
                        reason: &reasons[at],
                    });
                }
            }
            entry
        };
        let document = json!(Document {
            schema: SCHEMA_VERSION,
            machines: asked.outcomes.iter().enumerate().map(entry).collect(),
        });
        print(&format!("{document:#}\n"))?;
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
            let _ = writeln!(out, "{}", style.bold(&escape_line(key)));
            let mut rows: Vec<_> = values.into_iter().collect();
            rows.sort_by_key(|(value, names)| (std::cmp::Reverse(names.len()), value.clone()));
            for (value, names) in rows {
                let names: Vec<String> = names.into_iter().map(escape_line).collect();
                let text = format!(
                    "{} ({}): {}",
                    escape_line(&value),
                    names.len(),
                    names.join(", ")
                );
                style.write_paragraph(&mut out, "", 2, &text);
            }
        }
        for outcome in asked
            .outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Outcome::Failed(_)))
        {
            style.write_paragraph(
                &mut out,
                "not asked: ",
                2,
                &escape_line(&ask::reason(outcome)),
            );
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
