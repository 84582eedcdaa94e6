//! The landing page. It shows the items that need attention first, then the machines and the newest runs.

use super::run_row::list_runs;
use super::{TimeView, attention, machine_row};
use crate::answer::{Answer, Refusal};
use crate::fleet_state::FleetState;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_model::run::RunState;
use assay_model::trial::TrialState;
use assay_render::units::format_plural;
use minijinja::context;
use minijinja::value::Serde;

/// Maximum number of items that need attention on the page.
const MOST_ITEMS: usize = 40;
/// Number of the newest runs that the page shows.
const RUNS: usize = 8;
/// Maximum number of machines on the page. A separate page lists all machines.
const MACHINES: usize = 12;

/// Answers `/` with the landing page.
pub(crate) fn show(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let template = include_str!("../templates/overview.html");
    let mut items = attention::find_items(site, &state);
    let left_out = items.len().saturating_sub(MOST_ITEMS);
    items.truncate(MOST_ITEMS);
    attention::add_causes(site, &state, &mut items);
    let running = state.runs.iter().enumerate();
    let running = running.filter(|(_, run)| run.state == RunState::Running);
    let running: Vec<usize> = running.map(|(at, _)| at).take(RUNS).collect();
    let running = list_runs(site, &state, &running)?;
    let trials = state
        .trials
        .iter()
        .filter(|trial| trial.state == TrialState::Running);
    let trials: Vec<_> = trials
        .map(|trial| super::trial_row::TrialRowView::new(trial))
        .collect();
    let is_tuning = |one: &assay_tune::TuneRecord| one.state == assay_tune::TuneState::Running;
    let tuning = site
        .store
        .read(|store| super::tuning::list_sessions(store, is_tuning))?
        .unwrap_or_default();
    let newest: Vec<usize> = (0..state.runs.len().min(RUNS)).collect();
    let newest = list_runs(site, &state, &newest)?;
    let mut machines: Vec<_> = state.machines.iter().collect();
    machines
        .sort_by_key(|machine| std::cmp::Reverse(machine.findings.first().map(|one| one.severity)));
    let machines: Vec<_> = machines.into_iter().take(MACHINES).collect();
    let rows = machine_row::build_rows(&state, machines.into_iter());
    let page = site.render_page(
        "Overview",
        Section::Overview,
        template,
        context! {
            is_empty => state.machines.is_empty() && state.runs.is_empty() && state.trials.is_empty(),
            store => site.store.shown(),
            items => Serde(&items),
            left_out,
            summary => summarize(&state),
            newest_time => Serde(state.newest.map(TimeView::new)),
            is_partial => state.is_partial,
            running => Serde(running),
            trials => Serde(trials),
            tuning => Serde(tuning),
            machines => Serde(&rows),
            more_machines => state.machines.len().saturating_sub(MACHINES),
            runs => Serde(newest),
            all_runs => state.runs.len(),
        },
    );
    Ok(Answer::page(page))
}

/// Returns the number of criteria that a run missed. Criteria that were not judged do not count.
pub(super) fn count_missed(state: &FleetState, run: usize) -> usize {
    let missed = state.missed.iter().find(|missed| missed.run == run);
    missed.map_or(0, |missed| missed.criteria.len())
}

fn summarize(state: &FleetState) -> String {
    let count = |n: usize, one: &str, many: &str| format_plural(n as u64, one, many);
    format!(
        "{}, {}, {}",
        count(state.machines.len(), "machine", "machines"),
        count(state.runs.len(), "run", "runs"),
        count(state.trials.len(), "trial", "trials")
    )
}
