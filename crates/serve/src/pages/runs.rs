//! The page with the list of runs. Its filters are in the URL.

use super::run_row::{list_runs, state_name};
use super::{PagerView, filter_options};
use crate::answer::{Answer, Refusal};
use crate::fleet_run::FleetRun;
use crate::fleet_state::short_host;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use minijinja::context;
use minijinja::value::Serde;

/// Answers `/runs` with the list of runs.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let query = &request.query;
    let (plan, machine, target, status) = (
        query.get("plan"),
        query.get("machine"),
        query.get("target"),
        query.get("state"),
    );
    let fits = |row: &FleetRun| {
        plan.is_none_or(|plan| &*row.plan == plan)
            && machine.is_none_or(|name| row.machine_name().map(short_host) == Some(name))
            && target.is_none_or(|target| row.targets.iter().any(|one| one == target))
            && status.is_none_or(|status| state_name(row.state) == status)
    };
    let chosen = state.runs.iter().enumerate().filter(|(_, run)| fits(run));
    let chosen: Vec<usize> = chosen.map(|(at, _)| at).collect();
    let (cut, pager) = PagerView::cut(&chosen, query);
    let views = list_runs(site, &state, cut)?;
    let all = &state.runs;
    let page = site.render_page(
        "Runs",
        Section::Runs,
        include_str!("../templates/runs.html"),
        context! {
            is_empty => all.is_empty(),
            runs => Serde(views),
            pager => Serde(pager),
            plans => Serde(filter_options(all.iter().map(|row| &*row.plan), plan)),
            machines => Serde(filter_options(all.iter().filter_map(FleetRun::machine_name).map(short_host), machine)),
            targets => Serde(filter_options(
                all.iter().flat_map(|row| row.targets.iter().map(String::as_str)),
                target,
            )),
            states => Serde(filter_options(all.iter().map(|row| state_name(row.state)), status)),
            is_filtered => plan.or(machine).or(target).or(status).is_some(),
        },
    );
    Ok(Answer::page(page))
}
