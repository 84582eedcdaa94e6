//! A machine in a list: its findings by severity, and its last runs as a row of coloured cells (strip).

use super::{LinkView, TimeView, machine_link, run_row};
use crate::fleet_state::{FleetState, MachineState};
use assay_model::finding::Severity;
use assay_model::run::RunState;
use serde::Serialize;

/// Maximum number of runs in the strip.
const STRIP: usize = 24;
/// Width in pixels of the severity bar of the machine with the most findings.
const BAR: f64 = 96.0;

/// Number of findings of one severity, with its part of the bar.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SeverityCount {
    pub(super) name: &'static str,
    pub(super) count: usize,
    /// Left end of this severity's part of the bar, in pixels. The next field is the width.
    x: f64,
    width: f64,
}

/// A run of the machine, as a coloured cell of the strip.
#[derive(Clone, Debug, Serialize)]
struct StripCell {
    x: usize,
    class: &'static str,
    title: String,
}

/// A row of the table of machines.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MachineRowView {
    link: LinkView,
    seen: Option<TimeView>,
    counts: Vec<SeverityCount>,
    new: usize,
    strip: Vec<StripCell>,
    /// Description of the strip for screen readers.
    strip_text: String,
    runs: usize,
    runs_href: String,
    last_run: Option<TimeView>,
    trials: usize,
    /// CSS class for the most severe problem of the machine: `bad`, `warn` or `good`.
    class: &'static str,
}

/// Builds the rows of the machines. Machines with problems come first.
pub(super) fn build_rows<'a>(
    state: &FleetState,
    machines: impl Iterator<Item = &'a MachineState>,
) -> Vec<MachineRowView> {
    let machines: Vec<&MachineState> = machines.collect();
    let most = state
        .machines
        .iter()
        .map(|machine| machine.findings.len())
        .max();
    let scale = BAR / most.unwrap_or(0).max(1) as f64;
    machines
        .iter()
        .map(|machine| build_row(state, machine, scale))
        .collect()
}

fn build_row(state: &FleetState, machine: &MachineState, scale: f64) -> MachineRowView {
    let strip: Vec<StripCell> = machine
        .runs
        .iter()
        .take(STRIP)
        .rev()
        .enumerate()
        .filter_map(|(at, run)| {
            let row = state.runs.get(*run)?;
            let missed = state.missed.iter().any(|one| one.run == *run);
            let word = match missed {
                true => "criteria missed",
                false => run_row::state_name(row.state),
            };
            Some(StripCell {
                x: at * 7,
                class: run_row::state_class(row.state, missed),
                title: format!(
                    "run {} of {}: {word}",
                    row.id,
                    assay_render::units::format_timestamp(row.started)
                ),
            })
        })
        .collect();
    let of_class = |class: &str| strip.iter().filter(|cell| cell.class == class).count();
    let strip_text = format!(
        "last {} runs: {} as they should be, {} failed or missed a criterion, {} interrupted",
        strip.len(),
        of_class("good"),
        of_class("bad"),
        of_class("warn")
    );
    let last = machine.runs.first().and_then(|at| state.runs.get(*at));
    let failed = last.is_some_and(|row| row.state == RunState::Failed);
    MachineRowView {
        link: machine_link(&machine.name),
        seen: machine.looked.map(|[_, last]| TimeView::new(last)),
        counts: count_findings(machine, scale),
        new: machine
            .findings
            .iter()
            .filter(|finding| finding.is_new)
            .count(),
        strip,
        strip_text,
        runs: machine.runs.len(),
        runs_href: list_href("/runs", &machine.name),
        last_run: last.map(|row| TimeView::new(row.started)),
        trials: machine.trials.len(),
        class: match machine.findings.first().map(|finding| finding.severity) {
            Some(Severity::Critical | Severity::High) => "bad",
            _ if failed => "bad",
            Some(Severity::Medium) => "warn",
            _ => "good",
        },
    }
}

/// Returns the hyperlink to a list that is filtered by a machine.
fn list_href(path: &str, machine: &str) -> String {
    match machine.len() > super::MOST_LINKED {
        true => path.to_owned(),
        false => format!("{path}?{}", crate::query::encode(&[("machine", machine)])),
    }
}

/// Counts findings by severity, the most severe first. Also computes the parts of the bar.
pub(super) fn count_findings(machine: &MachineState, scale: f64) -> Vec<SeverityCount> {
    let mut x = 0.0;
    Severity::ALL
        .into_iter()
        .map(|severity| (severity, machine.count(severity)))
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| {
            let width = count as f64 * scale;
            let part = SeverityCount {
                name: severity.name(),
                count,
                x,
                width: (width - 1.0).max(1.0),
            };
            x += width;
            part
        })
        .collect()
}
