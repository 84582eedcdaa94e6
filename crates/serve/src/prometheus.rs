//! The page `/metrics`, which contains the state of machines, runs and trials for Prometheus.

use crate::answer::{Answer, Refusal};
use crate::api::{as_asked, check_machines};
use crate::fleet_state::{FleetState, MachineState, short_host};
use crate::routes::PageRequest;
use crate::site::Site;
use assay_model::finding::Severity;
use assay_model::result::Change;
use assay_render::text::escape_line;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// MIME type of the text format of Prometheus.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers `/metrics` with the metrics.
pub(crate) fn show(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let checks = check_machines(site)?;
    let mut out = assay_report::fleet::prometheus_of(&as_asked(&checks));
    write_machines(&state, &mut out);
    write_runs(&state, &mut out);
    Ok(Answer::text(KIND, out))
}

fn write_head(out: &mut String, name: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge");
}

/// Escapes the value of a Prometheus label.
fn label(text: &str) -> String {
    escape_line(text).replace('\\', "\\\\").replace('"', "\\\"")
}

fn write_machines(state: &FleetState, out: &mut String) {
    write_head(
        out,
        "assay_machine_checked_timestamp_seconds",
        "When the machine was checked last.",
    );
    for machine in &state.machines {
        if let Some([_, last]) = machine.looked {
            let name = label(&machine.name);
            let _ = writeln!(
                out,
                "assay_machine_checked_timestamp_seconds{{machine=\"{name}\"}} {}",
                last.as_second()
            );
        }
    }
    write_head(
        out,
        "assay_machine_findings",
        "Findings that stand in the store, by severity.",
    );
    let looked = |machine: &&MachineState| machine.looked.is_some();
    for machine in state.machines.iter().filter(looked) {
        for severity in Severity::ALL {
            let _ = writeln!(
                out,
                "assay_machine_findings{{machine=\"{}\",severity=\"{}\"}} {}",
                label(&machine.name),
                severity.name(),
                machine.count(severity)
            );
        }
    }
}

fn write_runs(state: &FleetState, out: &mut String) {
    write_head(out, "assay_runs", "Runs in the store.");
    let _ = writeln!(out, "assay_runs {}", state.runs.len());
    write_head(out, "assay_trials", "Trials in the store.");
    let _ = writeln!(out, "assay_trials {}", state.trials.len());
    write_head(
        out,
        "assay_run_timestamp_seconds",
        "When the newest run of a plan on a machine began.",
    );
    let mut newest: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for row in &state.runs {
        let machine = row.machine_name().map_or("", short_host);
        newest
            .entry((machine, &row.plan))
            .or_insert_with(|| row.started.as_second());
    }
    for ((machine, plan), second) in newest {
        let _ = writeln!(
            out,
            "assay_run_timestamp_seconds{{machine=\"{}\",plan=\"{}\"}} {second}",
            label(machine),
            label(plan)
        );
    }
    write_head(
        out,
        "assay_run_criteria_missed",
        "Criteria that the newest run of a plan missed.",
    );
    for missed in &state.missed {
        let Some(row) = state.runs.get(missed.run) else {
            continue;
        };
        let _ = writeln!(
            out,
            "assay_run_criteria_missed{{machine=\"{}\",plan=\"{}\",run=\"{}\"}} {}",
            label(row.machine_name().map_or("", short_host)),
            label(&row.plan),
            row.id,
            missed.criteria.len()
        );
    }
    write_head(
        out,
        "assay_figures_worse",
        "Figures that shifted for the worse in the last 30 days.",
    );
    let worse = state
        .shifts
        .iter()
        .filter(|one| one.series.judge_shift(&one.shift) == Change::Worse);
    let _ = writeln!(out, "assay_figures_worse {}", worse.count());
}
