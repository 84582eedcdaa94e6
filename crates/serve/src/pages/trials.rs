//! The page with the list of trials and the forest plot of their effects.

use super::trial_row::{TrialRowView, draw_effects, verdict_name};
use super::{PagerView, filter_options};
use crate::answer::{Answer, Refusal};
use crate::fleet_state::short_host;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use crate::stored_trial::TrialSummary;
use minijinja::context;
use minijinja::value::Serde;

/// Answers `/trials` with the list of trials.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let query = &request.query;
    let (advice, machine, verdict) = (
        query.get("advice"),
        query.get("machine"),
        query.get("verdict"),
    );
    let host = |trial: &TrialSummary| {
        trial
            .machine
            .as_deref()
            .map(|name| short_host(name).to_owned())
    };
    let all: Vec<&TrialSummary> = state.trials.iter().map(AsRef::as_ref).collect();
    let rows: Vec<&TrialSummary> = all
        .iter()
        .copied()
        .filter(|trial| {
            advice.is_none_or(|advice| trial.advice == advice)
                && machine.is_none_or(|name| host(trial).as_deref() == Some(name))
                && verdict.is_none_or(|verdict| verdict_name(trial) == verdict)
        })
        .collect();
    let (cut, pager) = PagerView::cut(&rows, query);
    let views: Vec<TrialRowView> = cut.iter().map(|trial| TrialRowView::new(trial)).collect();
    let hosts: Vec<String> = all.iter().filter_map(|trial| host(trial)).collect();
    let page = site.render_page(
        "Trials",
        Section::Trials,
        include_str!("../templates/trials.html"),
        context! {
            is_empty => all.is_empty(),
            effects => Serde(draw_effects(cut, &[])),
            trials => Serde(views),
            pager => Serde(pager),
            advice => Serde(filter_options(all.iter().map(|trial| trial.advice.as_str()), advice)),
            machines => Serde(filter_options(hosts.iter().map(String::as_str), machine)),
            verdicts => Serde(filter_options(all.iter().map(|trial| verdict_name(trial)), verdict)),
            is_filtered => advice.or(machine).or(verdict).is_some(),
        },
    );
    Ok(Answer::page(page))
}
