//! The page with the table of all machines.

use super::machine_row;
use crate::answer::{Answer, Refusal};
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_render::units::format_plural;
use minijinja::context;
use minijinja::value::Serde;

/// Answers `/machines` with the table of machines.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let words = request.query.get("q").unwrap_or_default();
    let lower = words.to_lowercase();
    let mut machines: Vec<_> = state
        .machines
        .iter()
        .filter(|machine| machine.name.to_lowercase().contains(&lower))
        .collect();
    if request.query.get("order") != Some("name") {
        machines.sort_by_key(|machine| {
            let worst = machine.findings.first().map(|finding| finding.severity);
            std::cmp::Reverse((worst, machine.findings.len()))
        });
    }
    let (cut, pager) = super::PagerView::cut(&machines, &request.query);
    let rows = machine_row::build_rows(&state, cut.iter().copied());
    let page = site.render_page(
        "Machines",
        Section::Machines,
        include_str!("../templates/machines.html"),
        context! {
            count => format_plural(state.machines.len() as u64, "machine", "machines"),
            is_empty => state.machines.is_empty(),
            words,
            by_name => request.query.get("order") == Some("name"),
            machines => Serde(rows),
            pager => Serde(pager),
        },
    );
    Ok(Answer::page(page))
}
