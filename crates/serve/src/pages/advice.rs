//! The page of one piece of advice. It shows whether the advice applies to this machine, and its trials.

use super::catalogue::{Judged, advice_href, applies_name, standing_class, standing_name};
use super::trial_row::{TrialRowView, draw_effects};
use super::{LinkView, machine_link, short_name};
use crate::answer::{Answer, Refusal};
use crate::markdown_html::render_markdown;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use crate::stored_trial::TrialSummary;
use assay_advice::{Applicability, Evidence, applies};
use assay_pool::Pooled;
use assay_render::text::escape_line;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct EvidenceView {
    key: String,
    value: String,
    place: String,
}

/// Answers `/advice/{name}` with the page of one piece of advice.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let unknown = || {
        Refusal::missing(format!(
            "The catalogue has no advice {}. Search it above.",
            short_name(&request.name)
        ))
    };
    let advice = site.find_advice(&request.name).ok_or_else(unknown)?;
    let machine = request.query.get("machine");
    let judged = Judged::choose(site, machine);
    let (facts, target) = judged.facts(site);
    let here = applies(advice, facts, target, &BTreeMap::new(), None);
    let state = site.fleet_state()?;
    let trials: Vec<&TrialSummary> = state
        .trials
        .iter()
        .map(AsRef::as_ref)
        .filter(|trial| trial.advice == advice.id)
        .collect();
    let found: Vec<LinkView> = state
        .machines
        .iter()
        .filter(|machine| {
            machine
                .findings
                .iter()
                .any(|finding| finding.rule == advice.id)
        })
        .map(|machine| machine_link(&machine.name))
        .collect();
    let elsewhere = site.pooled_effects(advice);
    let standing = standing_name(advice.literature.standing);
    let page = site.render_page(
        &escape_line(&advice.title),
        Section::Catalogue,
        include_str!("../templates/advice.html"),
        context! {
            id => &advice.id,
            title => escape_line(&advice.title),
            domain => &advice.domain,
            domain_href => format!("/advice?{}", crate::query::encode(&[("domain", &advice.domain)])),
            statement => escape_line(&advice.statement),
            predicts => escape_line(&advice.predicts),
            standing,
            class => standing_class(standing),
            literature => escape_line(&advice.literature.text),
            references => advice.literature.references.iter().map(|text| escape_line(text)).collect::<Vec<_>>(),
            who => escape_line(&advice.source.who),
            claimed => escape_line(&advice.source.claimed),
            risk => escape_line(&advice.risk.text),
            has_trial => advice.trial.is_some(),
            may_start => site.jobs.is_some(),
            start_href => format!("/actions?{}#start-trial", crate::query::encode(&[("advice", &advice.id)])),
            has_check => advice.check.is_some(),
            applies => applies_name(&here),
            reasons => list_reasons(&here),
            evidence => Serde(here.evidence().iter().map(describe_evidence).collect::<Vec<_>>()),
            on => match &judged { Judged::Here => None, Judged::Machine(_) => machine.map(short_name) },
            machines => Serde(
                super::catalogue::checked_machines(site)
                    .iter()
                    .map(|name| LinkView { text: short_name(name), href: advice_href(&advice.id, Some(name)) })
                    .collect::<Vec<_>>(),
            ),
            found => Serde(found),
            effects => Serde(draw_effects(&trials, &elsewhere)),
            elsewhere => elsewhere.iter().map(describe_shared).collect::<Vec<_>>(),
            trials => Serde(trials.iter().map(|trial| TrialRowView::new(trial)).collect::<Vec<_>>()),
            page => render_markdown(&advice.page),
        },
    );
    Ok(Answer::page(page))
}

/// Describes the shared trials of one metric in one sentence.
fn describe_shared(pooled: &Pooled) -> String {
    let funnel = &pooled.funnel;
    let simulated = if pooled.simulated { " (simulated)" } else { "" };
    format!(
        "Elsewhere{simulated}, {}: {} trials on {} machines of {} owners: {} better, {} worse, {} no difference, {} \
         undecided, {} unsafe.",
        pooled.metric,
        funnel.started,
        pooled.machines,
        pooled.owners,
        funnel.better,
        funnel.worse,
        funnel.same,
        funnel.undecided,
        funnel.not_safe
    )
}

fn describe_evidence(one: &Evidence) -> EvidenceView {
    let value = match &one.value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    EvidenceView {
        key: escape_line(&one.key),
        value: short_name(&value),
        place: escape_line(&one.place.to_string()),
    }
}

fn list_reasons(here: &Applicability) -> Vec<String> {
    match here {
        Applicability::Applies { .. } => Vec::new(),
        Applicability::Not { reasons, .. } => reasons
            .iter()
            .map(|reason| escape_line(&reason.otherwise))
            .collect(),
        Applicability::Unknown { missing, .. } => missing
            .iter()
            .map(|missing| {
                format!(
                    "{} is not known: {}",
                    escape_line(&missing.key),
                    escape_line(&missing.why)
                )
            })
            .collect(),
    }
}
