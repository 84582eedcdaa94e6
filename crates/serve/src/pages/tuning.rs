//! Tuning sessions: the list of all sessions, and the page (notebook) of one session.

use super::{LinkView, TimeView, machine_link, short_name};
use crate::answer::{Answer, Refusal};
use crate::fleet_state::short_host;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_render::text::escape_line;
use assay_report::tune::{TuneView, render_tune_page};
use assay_store::{Store, StoreError};
use assay_tune::{KeptState, ReplayError, TuneId, TuneRecord, TuneState};
use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

/// Maximum number of sessions that the list shows.
const MOST_SESSIONS: usize = 200;

/// A row of the list of sessions.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SessionRow {
    id: i64,
    subject: String,
    wants: String,
    machine: Option<LinkView>,
    started: TimeView,
    outcome: String,
    class: &'static str,
    kept: &'static str,
}

/// Answers `/tuning` with the list of sessions.
pub(crate) fn show_list(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let rows = site.store.read(|store| list_sessions(store, |_| true))?;
    let rows = rows.unwrap_or_default();
    let page = site.render_page(
        "Tuning",
        Section::Tuning,
        include_str!("../templates/tuning.html"),
        context! { sessions => Serde(rows) },
    );
    Ok(Answer::page(page))
}

/// Lists the sessions for which `is_shown` returns true, the newest first.
pub(super) fn list_sessions(
    store: &Store,
    is_shown: fn(&TuneRecord) -> bool,
) -> Result<Vec<SessionRow>, StoreError> {
    let mut rows = Vec::new();
    let chosen = store.tunes()?.into_iter().filter(|(_, one)| is_shown(one));
    for (id, record) in chosen.take(MOST_SESSIONS) {
        let machine = store.machine_of_tune(id)?;
        rows.push(describe_session(
            id,
            &record,
            machine.map(|machine| machine_link(short_host(machine.shown()))),
        ));
    }
    Ok(rows)
}

fn describe_session(id: TuneId, record: &TuneRecord, machine: Option<LinkView>) -> SessionRow {
    let wants = &record.plan.goal.wants;
    let wants: Vec<String> = wants.iter().map(ToString::to_string).collect();
    let (subject, outcome) = match record.replay() {
        Ok(session) => {
            let view = TuneView {
                id,
                record,
                session: &session,
            };
            (view.subject(), view.outcome())
        }
        Err(error) => (record.target.clone(), format!("unreadable: {error}")),
    };
    SessionRow {
        id: id.0,
        subject: short_name(&subject),
        wants: short_name(&wants.join(" and ")),
        machine,
        started: TimeView::new(record.started),
        outcome: match record.state {
            TuneState::Running => "running".to_owned(),
            _ => short_name(&outcome),
        },
        class: match record.state {
            TuneState::Running => "live",
            TuneState::Complete => "good",
            TuneState::Stopped => "warn",
        },
        kept: match record.kept {
            KeptState::Kept { .. } => "in effect",
            KeptState::Undone { .. } => "undone",
            KeptState::Nothing => "nothing",
        },
    }
}

/// Returns the refusal for a stored session whose outcomes do not fit its plan.
fn refuse_replay(error: &ReplayError) -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "The session cannot be read",
        escape_line(&error.to_string()),
    )
}

/// Answers `/tuning/{name}`. The name is a number, `last`, or the start of a uid.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let read = site.store.read(|store| {
        let id = store.resolve_tune(&request.name)?;
        Ok((id, store.tune(id)?, store.machine_of_tune(id)?))
    })?;
    let (id, record, machine) = read.ok_or_else(|| super::run::no_store(site))?;
    let session = record.replay().map_err(|error| refuse_replay(&error))?;
    let report = render_tune_page(&TuneView {
        id,
        record: &record,
        session: &session,
    });
    let machine = machine.map(|machine| machine_link(short_host(machine.shown())));
    let is_running = record.state == TuneState::Running;
    let toolbar = site.render_toolbar(context! {
        crumb => Serde(LinkView { text: "Tuning".to_owned(), href: "/tuning".to_owned() }),
        name => format!("Session {id}"),
        machine => Serde(machine),
        json => format!("/api/v1/tuning/{id}"),
        stop_job => super::actions::find_job_of(site, "tune", record.started),
        form_token => super::actions::form_token(site),
        live => is_running.then(|| format!("/live/tuning/{id}")),
        live_text => "running",
    });
    Ok(Answer::page(site.frame_with_toolbar(
        &report,
        Section::Tuning,
        &toolbar,
    )))
}
