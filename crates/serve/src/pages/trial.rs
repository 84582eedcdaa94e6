//! The page with the report of a trial.

use super::{LinkView, machine_link};
use crate::answer::{Answer, Refusal};
use crate::fleet_state::short_host;
use crate::query::encode_segment;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use crate::stored_trial::StoredTrial;
use assay_model::trial::TrialState;
use minijinja::context;
use minijinja::value::Serde;

/// Answers `/trials/{name}`. The name is a number, `last`, or the start of a uid.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let read = site.store.read(|store| {
        let id = store.resolve_trial(&request.name)?;
        Ok((StoredTrial::read(store, id)?, store.machine_of_trial(id)?))
    })?;
    let (stored, machine) = read.ok_or_else(|| super::run::no_store(site))?;
    let trial = &stored.trial;
    let report = assay_report::trial::render_trial_page(&stored.view());
    let machine = machine.map(|machine| machine_link(short_host(machine.shown())));
    let toolbar = site.render_toolbar(context! {
        crumb => Serde(LinkView { text: "Trials".to_owned(), href: "/trials".to_owned() }),
        name => format!("Trial {}", trial.id),
        machine => Serde(machine),
        advice => format!("/advice/{}", encode_segment(&trial.plan.advice)),
        json => format!("/api/v1/trials/{}", trial.id),
        stop_job => super::actions::find_job_of(site, "trial", trial.started),
        form_token => super::actions::form_token(site),
        live => (trial.state == TrialState::Running).then(|| format!("/live/trials/{}", trial.id)),
        live_text => assay_report::trial::format_verdict_line(&stored.view()),
    });
    Ok(Answer {
        is_live: trial.state == TrialState::Running,
        ..Answer::page(site.frame_with_toolbar(&report, Section::Trials, &toolbar))
    })
}
