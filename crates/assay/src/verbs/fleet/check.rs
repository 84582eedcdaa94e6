//! `assay fleet check`: checks machines. Prints a line for each machine as soon as it is finished, and then all
//! findings by rule.

use super::{Which, ask};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use crate::verbs::check::{Threshold, accept_usual, known};
use assay_advice::fails;
use assay_fleet::{Machine, Outcome};
use assay_model::finding::{Checked, Severity};
use assay_report::fleet as report;
use std::path::PathBuf;

const AFTER: &str = "\
As text, a line is printed for each machine as soon as it answered; all findings follow once every
machine is done. A machine that hangs costs its deadline and holds up nothing else.

Exit status: 0 nothing at or above --fail-on, 1 findings, 2 error, 3 nothing found, but a machine or
something on it could not be read. With --format nagios: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.";

#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Check only these domains or rules
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Fail from this severity on: info, low, medium, high or critical
    #[arg(long, value_enum, default_value_t = Threshold::Low, value_name = "SEVERITY", hide_possible_values = true)]
    fail_on: Threshold,
    /// Print one JSON object
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print text, json, html, nagios or prometheus
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORM", hide_possible_values = true)]
    format: Format,
    /// Write the report to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    own: crate::verbs::advice::Own,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Html,
    Nagios,
    Prometheus,
}

/// Runs `assay fleet check`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let format = match args.json {
        true => Format::Json,
        false => args.format,
    };
    let catalogue = crate::verbs::advice::catalogue(&args.own)?;
    known(&catalogue, &args.only)?;
    let only = assay_advice::chosen(catalogue.all(), &args.only);
    let is_asked = |rule: &str| only.iter().any(|page| page.id == rule);
    // All rules are evaluated for the stored result; only the selected ones are shown.
    let shown = |machine: &Machine, checked: &mut Checked| {
        checked.findings.retain(|finding| is_asked(&finding.rule));
        checked.not_asked.retain(|one| is_asked(&one.rule));
        checked.rules.retain(|one| is_asked(&one.rule));
        accept_usual(checked, Some(&machine.name))
    };
    let as_they_come = format == Format::Text && args.output.is_none();
    let came = |machine: &Machine, outcome: ask::MachineResult<'_>| {
        if !as_they_come {
            return Ok(String::new());
        }
        let line = |answer| {
            let name = &machine.name;
            report::line(
                &report::AskedMachine { name, answer },
                context::style(global),
            )
        };
        Ok(match outcome {
            Ok(judged) => {
                let mut checked = judged.checked.clone();
                shown(machine, &mut checked)?;
                line(report::MachineAnswer::Checked(&checked))
            }
            Err(error) => line(report::MachineAnswer::Failed(
                &ask::kind_of(error),
                &error.to_string(),
            )),
        })
    };
    let asked = ask::ask_telling(&args.which, &catalogue, global, &came)?;
    let mut outcomes = asked.outcomes;
    for (machine, outcome) in asked.machines.iter().zip(&mut outcomes) {
        if let Outcome::Done(judged) = outcome {
            shown(machine, &mut judged.checked)?;
        }
    }
    let name = |at: usize| asked.machines[at].name.as_str();
    let kinds: Vec<String> = outcomes.iter().map(ask::kind).collect();
    let reasons: Vec<String> = outcomes.iter().map(ask::reason).collect();
    let all: Vec<report::AskedMachine<'_>> = outcomes
        .iter()
        .enumerate()
        .map(|(at, outcome)| report::AskedMachine {
            name: name(at),
            answer: match outcome {
                Outcome::Done(judged) => report::MachineAnswer::Checked(&judged.checked),
                Outcome::Same(other) => report::MachineAnswer::Same(name(*other)),
                Outcome::Failed(_) => report::MachineAnswer::Failed(&kinds[at], &reasons[at]),
            },
        })
        .collect();
    let fail_on: Severity = args.fail_on.into();
    let mut plugin = None;
    let text = match format {
        Format::Json => format!("{:#}\n", report::json(&all)),
        Format::Html => report::checks_html(&all),
        Format::Prometheus => report::prometheus_of(&all),
        Format::Nagios => {
            let (line, status) = report::nagios_of(&all, fail_on);
            plugin = Some(match status {
                0 => Status::Ok,
                1 => Status::Findings,
                2 => Status::Error,
                _ => Status::Unreadable,
            });
            line
        }
        Format::Text => {
            let text = report::terminal(&all, context::style(global));
            match as_they_come && all.len() > 1 {
                true => format!("\n{text}"),
                false => text,
            }
        }
    };
    match &args.output {
        Some(path) => context::write_file(path, &text)?,
        None => print(&text)?,
    }
    if asked.interrupted {
        return Ok(Status::Interrupted);
    }
    if let Some(status) = plugin {
        return Ok(status);
    }
    let mut checks = outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Done(judged) => Some(&judged.checked),
        _ => None,
    });
    let found = checks.clone().any(|checked| fails(checked, fail_on));
    let unknown = checks.any(Checked::has_unknown) || ask::any_failed(&outcomes);
    Ok(match (found, unknown) {
        (true, _) => Status::Findings,
        (false, true) => Status::Unreadable,
        (false, false) => Status::Ok,
    })
}
