//! The list of runs, with filters in the URL.

use super::run_row::{RunView, state_name};
use super::{PagerView, filter_options, overview};
use crate::answer::{Answer, Refusal};
use crate::fleet_state::{machine_name, short_host};
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_store::RunRow;
use minijinja::context;
use minijinja::value::Serde;

/// Answers `/runs`.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let query = &request.query;
    let (plan, machine, target, status) = (
        query.get("plan"),
        query.get("machine"),
        query.get("target"),
        query.get("state"),
    );
    let fits = |(_, row): &(usize, &RunRow)| {
        plan.is_none_or(|plan| row.plan == plan)
            && machine.is_none_or(|name| machine_name(row).map(short_host) == Some(name))
            && target.is_none_or(|target| row.targets.iter().any(|one| one == target))
            && status.is_none_or(|status| state_name(row.state) == status)
    };
    let rows: Vec<(usize, &RunRow)> = state.runs.iter().enumerate().filter(fits).collect();
    let (cut, pager) = PagerView::cut(&rows, query);
    let views: Vec<RunView> = cut
        .iter()
        .map(|(at, row)| RunView::new(row, overview::count_missed(&state, *at)))
        .collect();
    let all = &state.runs;
    let page = site.render_page(
        "Runs",
        Section::Runs,
        include_str!("../templates/runs.html"),
        context! {
            is_empty => all.is_empty(),
            runs => Serde(views),
            pager => Serde(pager),
            plans => Serde(filter_options(all.iter().map(|row| row.plan.as_str()), plan)),
            machines => Serde(filter_options(all.iter().filter_map(machine_name).map(short_host), machine)),
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
