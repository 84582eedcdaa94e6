//! Pages that start and stop commands of assay: forms, the list of jobs, and one job with its output.

use super::TimeView;
use crate::action_request::{FormFields, build_request};
use crate::answer::{Answer, Refusal};
use crate::jobs::{Job, JobTable, StartRefusal};
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_model::run::RunState;
use assay_model::trial::TrialState;
use assay_render::text::escape_line;
use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::sync::Arc;

/// A row of the list of jobs.
#[derive(Serialize)]
struct JobRow {
    id: usize,
    kind: &'static str,
    subject: String,
    command: String,
    started: TimeView,
    state: String,
    class: &'static str,
}

/// Returns the table of jobs. Refuses the request if this server is read-only.
fn find_table(site: &Site) -> Result<&Arc<JobTable>, Refusal> {
    site.jobs.as_ref().ok_or_else(|| {
        Refusal::new(
            StatusCode::FORBIDDEN,
            "This server only shows",
            "It starts nothing. `assay serve --allow-actions` starts and stops measurements.",
        )
    })
}

/// Answers `/actions` with the forms and the list of jobs.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let table = find_table(site)?;
    let jobs: Vec<JobRow> = table.list().iter().map(|job| describe_job(job)).collect();
    let mut advice: Vec<(String, String)> = (site.options.catalogue.all().iter())
        .filter(|advice| advice.trial.is_some())
        .map(|advice| (escape_line(&advice.id), escape_line(&advice.title)))
        .collect();
    advice.sort_unstable();
    let page = site.render_page(
        "Measure",
        Section::Measure,
        include_str!("../templates/actions.html"),
        context! {
            jobs => Serde(jobs),
            advice,
            chosen => request.query.get("advice"),
            target => request.query.get("target"),
            form_token => &table.form_token,
        },
    );
    Ok(Answer::page(page))
}

fn describe_job(job: &Job) -> JobRow {
    let (_, _, ended) = job.output();
    let (state, class) = match (&ended, job.is_stopping()) {
        (None, false) => ("running".to_owned(), "live"),
        (None, true) => ("stopping".to_owned(), "live"),
        (Some((_, end)), _) => match end.as_str() {
            "exit status 0" => ("done".to_owned(), "good"),
            "exit status 1" => ("done, with findings".to_owned(), "good"),
            "exit status 130" => ("stopped, and undone".to_owned(), "warn"),
            end => (end.to_owned(), "bad"),
        },
    };
    JobRow {
        id: job.id,
        kind: job.kind,
        subject: super::short_name(&job.subject),
        command: job.command.clone(),
        started: TimeView::new(job.started),
        state,
        class,
    }
}

/// Answers `/jobs/{name}` with the page of a job.
pub(crate) fn show_job(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let table = find_table(site)?;
    let job = table
        .find(&request.name)
        .ok_or_else(|| Refusal::missing("There is no such job since the server was started."))?;
    let (count, lines, ended) = job.output();
    let page = site.render_page(
        &format!("Job {}", job.id),
        Section::Measure,
        include_str!("../templates/job.html"),
        context! {
            job => Serde(describe_job(&job)),
            is_running => ended.is_none(),
            is_stopping => job.is_stopping(),
            ended => Serde(ended.map(|(at, _)| TimeView::new(at))),
            left_out => count - lines.len(),
            lines,
            record => find_record(site, &job)?,
            live => format!("/live/jobs/{}", job.id),
            form_token => &table.form_token,
        },
    );
    Ok(Answer::page(page))
}

/// Finds the record that a job wrote, which is the newest record of its kind since the start of the job.
fn find_record(site: &Site, job: &Job) -> Result<Option<(String, String)>, Refusal> {
    let state = site.fleet_state()?;
    Ok(match job.kind {
        "trial" => (state.trials.iter())
            .find(|trial| trial.started >= job.started)
            .map(|trial| {
                (
                    format!("/trials/{}", trial.id),
                    format!("Trial {}", trial.id),
                )
            }),
        "run" => (state.runs.iter())
            .find(|run| run.started >= job.started)
            .map(|run| (format!("/runs/{}", run.id), format!("Run {}", run.id))),
        "why" => Some(("/observations/last".to_owned(), "The answer".to_owned())),
        "tune" | "undo" => Some(("/tuning/last".to_owned(), "The notebook".to_owned())),
        _ => None,
    })
}

/// Returns the number of the running job that writes this record. With it, the page of the record can stop the job.
pub(super) fn find_job_of(site: &Site, kind: &str, started: jiff::Timestamp) -> Option<usize> {
    let job = site.jobs.as_ref()?.running(kind)?;
    (started >= job.started).then_some(job.id)
}

/// Returns the secret for forms; `None` if this server is read-only.
pub(super) fn form_token(site: &Site) -> Option<&str> {
    site.jobs.as_ref().map(|table| table.form_token.as_str())
}

/// Answers `POST /actions/start`, which starts a command.
pub(crate) fn start(site: &Site, body: &[u8], from: &str) -> Result<Answer, Refusal> {
    let (table, fields) = check_form(site, body)?;
    let request = build_request(&fields, &site.options.catalogue)
        .map_err(|why| Refusal::new(StatusCode::BAD_REQUEST, "Nothing was started", why))?;
    if request.kind != "why" && is_measured_here(site)? {
        return Err(Refusal::new(
            StatusCode::CONFLICT,
            "Nothing was started",
            "A measurement runs on this machine already. Two at once would disturb each other.",
        ));
    }
    let job = table.start(request, from).map_err(|why| match why {
        StartRefusal::Busy(job) => Refusal::new(
            StatusCode::CONFLICT,
            "Nothing was started",
            format!("Job {} runs: {}. Stop it, or wait.", job.id, job.command),
        ),
        StartRefusal::Failed(why) => Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Nothing was started",
            why,
        ),
    })?;
    Ok(Answer::redirect(format!("/jobs/{}", job.id)))
}

/// Returns whether this machine is being measured according to this store. This is the case if a run or trial was
/// started within the last ten minutes, by any user, and is still running.
fn is_measured_here(site: &Site) -> Result<bool, Refusal> {
    const RECENT: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);
    let here = site.options.machine.as_deref();
    let state = site.fleet_state()?;
    let since = jiff::Timestamp::now() - RECENT;
    let run = state.runs.iter().any(|run| {
        run.state == RunState::Running && run.started > since && run.machine_name() == here
    });
    let trial = state.trials.iter().any(|trial| {
        trial.state == TrialState::Running
            && trial.started > since
            && trial.machine.as_deref() == here
    });
    Ok(here.is_some() && (run || trial))
}

/// Answers `POST /actions/stop`, which stops a job.
pub(crate) fn stop(site: &Site, body: &[u8], from: &str) -> Result<Answer, Refusal> {
    let (table, fields) = check_form(site, body)?;
    let job = fields.get("job").and_then(|id| table.find(id));
    let job = job.ok_or_else(|| Refusal::missing("There is no such job."))?;
    table.stop(&job, from);
    Ok(Answer::redirect(format!("/jobs/{}", job.id)))
}

/// Checks the secret of a form and decodes its fields.
fn check_form<'a>(site: &'a Site, body: &[u8]) -> Result<(&'a Arc<JobTable>, FormFields), Refusal> {
    let table = find_table(site)?;
    let wrong = |text: &str| {
        Refusal::new(
            StatusCode::FORBIDDEN,
            "Nothing was started or stopped",
            text,
        )
    };
    let fields = FormFields::parse(body).map_err(|why| wrong(&why))?;
    let given = fields.get("form_token").unwrap_or_default();
    // Hashes are compared in constant time.
    match blake3::hash(given.as_bytes()) == blake3::hash(table.form_token.as_bytes()) {
        true => Ok((table, fields)),
        false => Err(wrong(
            "The form is not of this server, or the server was started anew. Load the page again.",
        )),
    }
}
