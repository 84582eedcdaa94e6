//! The report of a run, alone or compared with another run.

use super::{LinkView, machine_link, short_name};
use crate::answer::{Answer, Refusal};
use crate::fleet_state::short_host;
use crate::query::encode;
use crate::record_pages::render_run_record;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_model::result::Judged;
use assay_model::run::{Run, RunState};
use assay_model::{Machine, RunId, Sample};
use assay_store::{RunFilter, Store, StoreError};
use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::Serde;

/// Maximum number of runs that the page offers for a comparison.
const MOST_OTHERS: usize = 12;

/// A run with its samples and their judgement.
struct JudgedRun {
    run: Run,
    samples: Vec<Sample>,
    judged: Judged,
}

fn read_run(store: &Store, id: RunId) -> Result<JudgedRun, StoreError> {
    let (run, samples) = (store.run(id)?, store.samples(id)?);
    let judged = assay_judge::judge_run(&run, &samples);
    Ok(JudgedRun {
        run,
        samples,
        judged,
    })
}

/// Returns the refusal for a page that needs a store, if no store exists.
pub(super) fn no_store(site: &Site) -> Refusal {
    Refusal::missing(format!(
        "Nothing has been measured yet: there is no store at {}.",
        site.store.shown()
    ))
}

/// Answers `/runs/{name}`. The name is a number, `last`, or the start of a uid.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let other = request.query.get("against");
    let read = site.store.read(|store| {
        let this = read_run(store, store.resolve(&request.name)?)?;
        let other = match other {
            Some(name) => Some(read_run(store, store.resolve(name)?)?),
            None => None,
        };
        Ok((this, other))
    })?;
    let (this, other) = read.ok_or_else(|| no_store(site))?;
    let comparison = other.as_ref().map(|other| {
        assay_judge::compare_runs((&other.run, &other.samples), (&this.run, &this.samples))
    });
    let against = other.as_ref().zip(comparison.as_ref());
    let against = against.map(|(other, comparison)| (&other.run, &other.judged, comparison));
    let report = render_run_record(&this.run, &this.judged, &this.samples, against);
    let toolbar = build_toolbar(site, &this.run, other.as_ref().map(|other| &other.run))?;
    Ok(Answer {
        is_live: this.run.state == RunState::Running,
        ..Answer::page(site.frame_with_toolbar(&report, Section::Runs, &toolbar))
    })
}

/// Answers `/compare?run=A&run=B`. The older run is the baseline.
pub(crate) fn compare(_: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let mut runs: Vec<&str> = request
        .query
        .all("run")
        .iter()
        .map(String::as_str)
        .collect();
    runs.sort_by_key(|run| run.parse::<i64>().unwrap_or(i64::MAX));
    runs.dedup();
    let [a, b] = runs.as_slice() else {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "Choose two runs",
            format!(
                "A comparison needs two runs; {} are chosen. Go back and tick two boxes.",
                runs.len()
            ),
        ));
    };
    let path = format!(
        "/runs/{}?{}#against",
        crate::query::encode_segment(b),
        encode(&[("against", a)])
    );
    Ok(Answer::redirect(path))
}

fn build_toolbar(site: &Site, run: &Run, other: Option<&Run>) -> Result<String, Refusal> {
    let targets: Vec<String> = run.targets.iter().map(|one| one.name.clone()).collect();
    let filter = RunFilter {
        plan: Some(&run.plan.name),
        targets: Some(&targets),
        most: MOST_OTHERS + 1,
        ..RunFilter::default()
    };
    let read = site
        .store
        .read(|store| Ok((store.find_runs(&filter)?, store.machine_of_run(run.id)?)))?;
    let (alike, here) = read.unwrap_or_default();
    let mut others: Vec<(String, String, bool)> = alike
        .iter()
        .filter(|one| one.uid != run.uid)
        .take(MOST_OTHERS)
        .map(|one| {
            let machine = one.machine.as_ref().map(Machine::shown);
            let machine = machine.map_or(String::new(), |name| format!(" on {}", short_name(name)));
            let when = one.started.strftime("%Y-%m-%d %H:%M");
            let chosen = other.is_some_and(|other| other.uid == one.uid);
            (
                one.id.to_string(),
                format!("run {}{machine}, {when}", one.id),
                chosen,
            )
        })
        .collect();
    // A run that was chosen elsewhere stays the chosen one.
    if let Some(other) = other.filter(|_| others.iter().all(|(_, _, chosen)| !chosen)) {
        let text = format!(
            "run {}, {}",
            other.id,
            other.started.strftime("%Y-%m-%d %H:%M")
        );
        others.insert(0, (other.id.to_string(), text, true));
    }
    let machine = here.as_ref().map(|machine| short_host(machine.shown()));
    let mut figures = vec![("plan", run.plan.name.as_str())];
    figures.extend(machine.map(|name| ("machine", name)));
    let values = context! {
        crumb => Serde(LinkView { text: "Runs".to_owned(), href: "/runs".to_owned() }),
        name => format!("Run {}", run.id),
        machine => Serde(machine.map(machine_link)),
        path => format!("/runs/{}", run.id),
        others => Serde(others),
        is_compared => other.is_some(),
        figures => format!("/figures?{}", encode(&figures)),
        json => format!("/api/v1/runs/{}", run.id),
        stop_job => super::actions::find_job_of(site, "run", run.started),
        form_token => super::actions::form_token(site),
        live => (run.state == RunState::Running).then(|| format!("/live/runs/{}", run.id)),
        live_text => "running",
    };
    Ok(site.render_toolbar(values))
}
