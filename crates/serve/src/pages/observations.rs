//! Observations, which are made without an experiment: answers of `assay why`, the experience of people in runs of
//! `assay net`, and findings of `assay check wifi`.

use super::{LinkView, TimeView, machine_link, short_name};
use crate::answer::{Answer, Refusal};
use crate::fleet_state::short_host;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_model::finding::{Checked, Severity};
use assay_net::result::Run;
use assay_report::check::View;
use assay_report::net::Net;
use assay_report::stored_text::{bound_texts, escape_texts};
use assay_report::why::{answer_to_json, read_answer, render_answer_page};
use assay_store::{Observation, ObservationRow, Observer};
use axum::http::StatusCode;
use jiff::tz::TimeZone;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

/// Maximum number of observations that the list shows.
const MOST_LISTED: usize = 500;
/// Maximum number of observations on the page of a machine.
const MOST_OF_MACHINE: usize = 5;

/// A row of the list of observations.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ObservationView {
    id: i64,
    verb: &'static str,
    subject: String,
    summary: String,
    machine: Option<LinkView>,
    started: TimeView,
}

fn describe_row(row: &ObservationRow) -> ObservationView {
    let machine = row.machine.as_ref();
    ObservationView {
        id: row.id.0,
        verb: row.by.name(),
        subject: short_name(&row.subject),
        summary: short_name(&row.summary),
        machine: machine.map(|machine| machine_link(short_host(machine.shown()))),
        started: TimeView::new(row.started),
    }
}

/// Answers `/observations` with the list of observations.
pub(crate) fn show_list(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let rows = site.store.read(|store| store.observations(MOST_LISTED))?;
    let rows: Vec<ObservationView> = rows.unwrap_or_default().iter().map(describe_row).collect();
    let page = site.render_page(
        "Observations",
        Section::Observations,
        include_str!("../templates/observations.html"),
        context! { observations => Serde(rows) },
    );
    Ok(Answer::page(page))
}

/// Lists the newest observations of a machine.
pub(super) fn list_of_machine(site: &Site, machine: &str) -> Result<Vec<ObservationView>, Refusal> {
    let rows = site.store.read(|store| store.observations(MOST_LISTED))?;
    let is_of_it = |row: &&ObservationRow| {
        let observed = row.machine.as_ref();
        observed.is_some_and(|one| short_host(one.shown()) == machine)
    };
    let rows = rows.unwrap_or_default();
    let rows = rows.iter().filter(is_of_it).take(MOST_OF_MACHINE);
    Ok(rows.map(describe_row).collect())
}

/// An observation as a page and as a JSON document.
pub(crate) struct ObservationReport {
    page: String,
    /// JSON document, in the format of `--json`.
    pub(crate) json: String,
}

/// Renders an observation with the report of the command that made it.
///
/// # Errors
/// Another version of assay stored the observation in a different form.
pub(crate) fn render_observation(mut one: Observation) -> Result<ObservationReport, Refusal> {
    bound_texts(&mut one.document);
    let unreadable = |error: serde_json::Error| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The observation cannot be read",
            error.to_string(),
        )
    };
    match one.by {
        Observer::Why => {
            let answer = read_answer(one.document).map_err(unreadable)?;
            Ok(ObservationReport {
                page: render_answer_page(&answer),
                json: answer_to_json(&answer),
            })
        }
        Observer::Wifi => {
            let read = |document| serde_json::from_value::<Checked>(document).map_err(unreadable);
            // The page shows ids of rules as they are, which are the program's own in a check of today.
            let mut escaped = one.document.clone();
            escape_texts(&mut escaped);
            let (shown, checked) = (read(escaped)?, read(one.document)?);
            Ok(ObservationReport {
                page: assay_report::check::html(&view_check(&shown)),
                json: format!("{:#}\n", assay_report::check::json(&view_check(&checked))),
            })
        }
        Observer::Net => {
            let run: Run = serde_json::from_value(one.document).map_err(unreadable)?;
            let judged = run.judged();
            let net = Net {
                run: &run,
                judged: &judged,
                zone: TimeZone::system(),
            };
            Ok(ObservationReport {
                page: assay_report::net::page(&net),
                json: assay_report::net::json(&net),
            })
        }
    }
}

fn view_check(checked: &Checked) -> View<'_> {
    View {
        checked,
        fail_on: Severity::Info,
        line: &|_, _| None,
    }
}

/// Answers `/observations/{name}`. The name is a number, `last`, or the start of a uid.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let read = site.store.read(|store| {
        let id = store.resolve_observation(&request.name)?;
        Ok((
            id,
            store.observation(id)?,
            store.machine_of_observation(id)?,
        ))
    })?;
    let (id, one, machine) = read.ok_or_else(|| super::run::no_store(site))?;
    let name = format!("{} {id}", one.by.name());
    let report = render_observation(one)?;
    let machine = machine.map(|machine| machine_link(short_host(machine.shown())));
    let toolbar = site.render_toolbar(context! {
        crumb => Serde(LinkView { text: "Observations".to_owned(), href: "/observations".to_owned() }),
        name,
        machine => Serde(machine),
        json => format!("/api/v1/observations/{id}"),
    });
    Ok(Answer::page(site.frame_with_toolbar(
        &report.page,
        Section::Observations,
        &toolbar,
    )))
}
