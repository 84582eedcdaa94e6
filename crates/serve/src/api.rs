//! Paths `/api/v1/…`, which return the documents of `--json` for programs.

use crate::answer::{Answer, Refusal};
use crate::fleet_state::MachineState;
use crate::machine_check::MachineCheck;
use crate::pages::machine::read_check;
use crate::pages::observations::render_observation;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::stored_trial::StoredTrial;
use assay_model::SCHEMA_VERSION;
use assay_model::finding::Severity;
use assay_report::check::View;
use assay_report::fleet::{AskedMachine, MachineAnswer};
use assay_report::tune::{TuneView, tune_document, tune_list_document};
use assay_store::RunFilter;
use serde_json::json;
use std::sync::Arc;

/// Maximum number of runs in one answer. `?plan=`, `?target=` and `?newest=` select runs.
const MOST_RUNS: usize = 10_000;

/// Returns the OpenAPI description of these paths.
pub(crate) fn openapi(_: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    Ok(Answer::text(
        "application/json",
        include_str!("openapi.json").to_owned(),
    ))
}

/// Answers like `assay report runs --json`.
pub(crate) fn runs(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let query = &request.query;
    let newest = query.get("newest").and_then(|text| text.parse().ok());
    let filter = RunFilter {
        plan: query.get("plan"),
        target: query.get("target"),
        most: newest.unwrap_or(MOST_RUNS).min(MOST_RUNS),
        ..RunFilter::default()
    };
    let runs = site.store.read(|store| store.find_runs(&filter))?;
    let runs = runs.unwrap_or_default();
    Ok(Answer::json(
        &json!({ "schema": SCHEMA_VERSION, "runs": runs }),
    ))
}

/// Answers like `assay report show RUN --json`.
pub(crate) fn run(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let read = site.store.read(|store| {
        let id = store.resolve(&request.name)?;
        Ok((store.run(id)?, store.samples(id)?))
    })?;
    let (run, samples) = read.ok_or_else(|| no_store(site))?;
    let judged = assay_judge::judge_run(&run, &samples);
    Ok(Answer::json(&assay_report::json::run_to_json(
        &run, &judged, &samples,
    )))
}

/// Answers like `assay trial --list --json`.
pub(crate) fn trials(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let read = site.store.read(|store| {
        let mut all = Vec::new();
        for trial in store.trials()? {
            let slots = store.slots(trial.id)?;
            all.push(StoredTrial::new(trial, slots));
        }
        Ok(all)
    })?;
    let all = read.unwrap_or_default();
    let views: Vec<_> = all.iter().map(StoredTrial::view).collect();
    Ok(Answer::json(&assay_report::trial::trials_to_json(&views)))
}

/// Answers like `assay trial --show TRIAL --json`.
pub(crate) fn trial(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let read = site.store.read(|store| {
        let id = store.resolve_trial(&request.name)?;
        StoredTrial::read(store, id)
    })?;
    let stored = read.ok_or_else(|| no_store(site))?;
    Ok(Answer::json(&assay_report::trial::trial_to_json(
        &stored.view(),
    )))
}

/// Answers like `assay tune --list --json`.
pub(crate) fn sessions(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let all = site.store.read(assay_store::Store::tunes)?;
    let mut read = Vec::new();
    for (id, record) in all.unwrap_or_default() {
        let session = record.replay().map_err(|error| refuse_session(&error))?;
        read.push((id, record, session));
    }
    let views: Vec<TuneView<'_>> = read
        .iter()
        .map(|(id, record, session)| TuneView {
            id: *id,
            record,
            session,
        })
        .collect();
    Ok(Answer::json(&json!(tune_list_document(&views))))
}

/// Answers like `assay tune --show SESSION --json`.
pub(crate) fn session(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let read = site.store.read(|store| {
        let id = store.resolve_tune(&request.name)?;
        Ok((id, store.tune(id)?))
    })?;
    let (id, record) = read.ok_or_else(|| no_store(site))?;
    let session = record.replay().map_err(|error| refuse_session(&error))?;
    Ok(Answer::json(&json!(tune_document(&TuneView {
        id,
        record: &record,
        session: &session,
    }))))
}

/// Answers like `assay why --list --json`. The list also contains runs of `assay net` and checks of Wi-Fi.
pub(crate) fn observations(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let read = site.store.read(|store| store.observations(MOST_RUNS))?;
    let rows = read.unwrap_or_default();
    Ok(Answer::json(
        &json!({ "schema": SCHEMA_VERSION, "observations": rows }),
    ))
}

/// Answers with the document of the command that made the observation: `assay why --show N --json`,
/// `assay net run --json` or `assay check wifi --json`.
pub(crate) fn observation(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let read = site.store.read(|store| {
        let id = store.resolve_observation(&request.name)?;
        store.observation(id)
    })?;
    let report = render_observation(read.ok_or_else(|| no_store(site))?)?;
    Ok(Answer::text("application/json", report.json))
}

fn refuse_session(error: &assay_tune::ReplayError) -> Refusal {
    Refusal::new(
        axum::http::StatusCode::SERVICE_UNAVAILABLE,
        "The session cannot be read",
        error.to_string(),
    )
}

/// Name of a machine, and the check of its newest bundle; `None` if no bundle of the machine is stored.
pub(crate) type NamedCheck = (String, Option<Arc<MachineCheck>>);

/// Checks the newest bundle of each machine, for `assay fleet check --json` and Prometheus.
pub(crate) fn check_machines(site: &Site) -> Result<Vec<NamedCheck>, Refusal> {
    let state = site.fleet_state()?;
    let check = |machine: &MachineState| (machine.name.clone(), read_check(site, machine).0);
    let looked = state
        .machines
        .iter()
        .filter(|machine| machine.looked.is_some());
    Ok(looked.map(check).collect())
}

/// Converts checks to the form that `assay fleet check` reports. A machine without a stored bundle counts as failed.
pub(crate) fn as_asked(checks: &[NamedCheck]) -> Vec<AskedMachine<'_>> {
    checks
        .iter()
        .map(|(name, check)| AskedMachine {
            name,
            answer: match check {
                Some(check) => MachineAnswer::Checked(&check.checked),
                None => MachineAnswer::Failed("not-kept", "no bundle of this machine is kept"),
            },
        })
        .collect()
}

/// Answers like `assay fleet check --json`, from the newest bundle of each machine.
pub(crate) fn machines(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let checks = check_machines(site)?;
    Ok(Answer::json(&assay_report::fleet::json(&as_asked(&checks))))
}

/// Answers like `assay check --json`, from the newest bundle of a machine.
pub(crate) fn machine(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let missing = || Refusal::missing("There is no such machine, or no bundle of it is kept.");
    let machine = state.machine(&request.name).ok_or_else(missing)?;
    let check = read_check(site, machine).0.ok_or_else(missing)?;
    let document = assay_report::check::json(&View {
        checked: &check.checked,
        fail_on: Severity::Info,
        line: &|_, _| None,
    });
    Ok(Answer::json(&document))
}

/// Answers with the figures that shifted, as in `assay fleet changed --json` but without causes.
pub(crate) fn changed(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let figures: Vec<_> = state
        .shifts
        .iter()
        .filter_map(|recent| crate::figure_series::describe_recent_shift(recent))
        .collect();
    Ok(Answer::json(&assay_report::fleet::changes_json(
        &[],
        &figures,
    )))
}

fn no_store(site: &Site) -> Refusal {
    Refusal::missing(format!("There is no store at {}.", site.store.shown()))
}
