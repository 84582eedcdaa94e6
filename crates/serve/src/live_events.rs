//! Server-sent events of a running run or trial. Measurements write each sample into the store, so that the store is
//! what is watched: once a second for all pages of a record together.

use crate::answer::Refusal;
use crate::site::Site;
use crate::stored_trial::StoredTrial;
use assay_model::run::RunState;
use assay_model::trial::TrialState;
use assay_store::{Store, StoreError};
use assay_tune::TuneState;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the store is looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// A stream ends after this time; the browser opens a new one.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Records whose state is remembered.
const MOST_STATES: usize = 64;

/// How far a measurement is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct LiveState {
    /// Samples or slots that are stored.
    done: usize,
    /// As many as there will be at most.
    planned: usize,
    is_running: bool,
    /// Seconds since the last sample ended; none before the first.
    idle_s: Option<i64>,
    /// The state in words.
    text: String,
    /// What else is known: time left, guardrails.
    details: Vec<String>,
}

/// Reads the state of a record by its name.
type ReadState = fn(&Store, &str) -> Result<LiveState, StoreError>;

/// States that were read in the last second.
#[derive(Debug, Default)]
pub(crate) struct LiveCache(Mutex<HashMap<String, (Instant, Arc<LiveState>)>>);

/// Answers `/live/runs/{name}`.
pub(crate) async fn run(State(site): State<Arc<Site>>, Path(name): Path<String>) -> Response<Body> {
    answer(site, "run", name, read_run).await
}

/// Answers `/live/trials/{name}`.
pub(crate) async fn trial(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Response<Body> {
    answer(site, "trial", name, read_trial).await
}

/// Answers `/live/tuning/{name}`.
pub(crate) async fn session(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Response<Body> {
    answer(site, "tuning", name, read_session).await
}

/// Answers `/live/jobs/{name}`: what is read is no store, but the table of jobs.
pub(crate) async fn job(State(site): State<Arc<Site>>, Path(name): Path<String>) -> Response<Body> {
    let find = |site: &Site| site.jobs.as_ref().and_then(|table| table.find(&name));
    let Some(job) = find(&site) else {
        return site
            .refusal_page(&Refusal::missing("There is no such job."))
            .into_response(false);
    };
    let watch = (job, None, false);
    let events = stream::unfold(watch, async |(job, last, is_over)| {
        if is_over {
            return None;
        }
        loop {
            let (count, lines, ended) = job.output();
            let now = (count, ended.is_some());
            if last != Some(now) {
                let state = LiveState {
                    done: count,
                    planned: 0,
                    is_running: ended.is_none(),
                    idle_s: None,
                    text: lines.last().cloned().unwrap_or_default(),
                    details: Vec::new(),
                };
                let name = if state.is_running { "progress" } else { "end" };
                let event = format!("event: {name}\ndata: {}\n\n", serde_json::json!(state));
                let is_over = !state.is_running;
                return Some((
                    Ok::<String, std::convert::Infallible>(event),
                    (job, Some(now), is_over),
                ));
            }
            tokio::time::sleep(INTERVAL).await;
        }
    });
    stream_response(Body::from_stream(events))
}

fn read_run(store: &Store, name: &str) -> Result<LiveState, StoreError> {
    let id = store.resolve(name)?;
    let (run, samples) = (store.run(id)?, store.samples(id)?);
    let last = samples
        .iter()
        .map(|sample| (sample.started, sample.wall))
        .max();
    let planned = run.plan.order.len();
    Ok(LiveState {
        done: samples.len(),
        planned,
        is_running: run.state == RunState::Running,
        idle_s: last.map(seconds_since),
        text: format!("{} of {planned} samples", samples.len()),
        details: describe_time_left(
            samples.first().map(|sample| sample.started),
            samples.len(),
            planned,
            None,
        )
        .into_iter()
        .collect(),
    })
}

fn read_trial(store: &Store, name: &str) -> Result<LiveState, StoreError> {
    let stored = StoredTrial::read(store, store.resolve_trial(name)?)?;
    let view = stored.view();
    let last = view
        .slots
        .iter()
        .map(|slot| (slot.sample.started, slot.sample.wall))
        .max();
    let plan = &view.trial.plan;
    let planned = 2 * plan.max_pairs as usize;
    let mut details: Vec<String> = (view.judgement.guards.iter())
        .map(|guard| {
            let state = match (guard.held, guard.broken) {
                (_, true) => "broken",
                (true, false) => "held",
                (false, false) => "open",
            };
            format!("guardrail {} {state}", guard.metric)
        })
        .collect();
    let measured = view.judgement.pairs;
    if let Some(next) = assay_judge::trial::find_next_look(plan.max_pairs, measured) {
        details.push(format!("next look at pair {next}"));
    }
    let budget = plan.budget.map(|budget| budget.0 / 1_000_000_000);
    details.extend(describe_time_left(
        view.slots.first().map(|slot| slot.sample.started),
        view.slots.len(),
        planned,
        budget,
    ));
    Ok(LiveState {
        done: view.slots.len(),
        planned,
        is_running: view.trial.state == TrialState::Running,
        idle_s: last.map(seconds_since),
        text: assay_report::trial::format_verdict_line(&view),
        details,
    })
}

fn read_session(store: &Store, name: &str) -> Result<LiveState, StoreError> {
    let record = store.tune(store.resolve_tune(name)?)?;
    let left = record.replay().map_or(0, |session| {
        let clock = session.clock();
        clock.budget.0.saturating_sub(clock.spent.0) / 1_000_000_000
    });
    Ok(LiveState {
        done: record.seen.len(),
        planned: 0,
        is_running: record.state == TuneState::Running,
        idle_s: None,
        text: format!("{} steps measured", record.seen.len()),
        details: vec![format!("at most {} left", format_left(left))],
    })
}

/// Returns the time left at the mean pace since `first`, at most until the budget in seconds is used up.
fn describe_time_left(
    first: Option<Timestamp>,
    done: usize,
    planned: usize,
    budget: Option<u64>,
) -> Option<String> {
    /// Fewer measured parts show no pace.
    const FEWEST: usize = 2;
    let spent = Timestamp::now()
        .duration_since(first?)
        .as_secs_f64()
        .max(0.0);
    let pace = (done >= FEWEST).then(|| spent / done as f64)?;
    let left = pace * planned.saturating_sub(done) as f64;
    let left = budget.map_or(left, |budget| left.min((budget as f64 - spent).max(0.0)));
    Some(format!("at most {} left", format_left(left as u64)))
}

/// Formats seconds: `40 s`, `4 min`, `1 h 20 min`.
fn format_left(seconds: u64) -> String {
    match seconds {
        ..90 => format!("{seconds} s"),
        90..5_400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

fn seconds_since((started, wall): (Timestamp, assay_model::Nanos)) -> i64 {
    let wall = i64::try_from(wall.0 / 1_000_000_000).unwrap_or(0);
    (Timestamp::now().duration_since(started).as_secs() - wall).max(0)
}

async fn look(
    site: &Arc<Site>,
    kind: &str,
    name: &str,
    read: ReadState,
) -> Result<Arc<LiveState>, Refusal> {
    let key = format!("{kind} {name}");
    let known = {
        let states = site.live.0.lock().unwrap_or_else(PoisonError::into_inner);
        states
            .get(&key)
            .filter(|(at, _)| at.elapsed() < INTERVAL)
            .map(|(_, state)| state.clone())
    };
    if let Some(known) = known {
        return Ok(known);
    }
    let (reader, name) = (site.clone(), name.to_owned());
    let read = tokio::task::spawn_blocking(move || reader.store.read(|store| read(store, &name)));
    let state = match read.await {
        Ok(state) => state?.ok_or_else(|| Refusal::missing("There is no store."))?,
        Err(_) => return Err(Refusal::missing("The record could not be read.")),
    };
    let state = Arc::new(state);
    let mut states = site.live.0.lock().unwrap_or_else(PoisonError::into_inner);
    if states.len() >= MOST_STATES {
        states.clear();
    }
    states.insert(key, (Instant::now(), state.clone()));
    Ok(state)
}

/// What a stream remembers between events.
struct Watch {
    site: Arc<Site>,
    kind: &'static str,
    name: String,
    read: ReadState,
    began: Instant,
    last: Option<Arc<LiveState>>,
    is_over: bool,
}

async fn answer(
    site: Arc<Site>,
    kind: &'static str,
    name: String,
    read: ReadState,
) -> Response<Body> {
    // What is not there is an answer like any other, not a stream.
    if let Err(refusal) = look(&site, kind, &name, read).await {
        return site.refusal_page(&refusal).into_response(false);
    }
    let watch = Watch {
        site,
        kind,
        name,
        read,
        began: Instant::now(),
        last: None,
        is_over: false,
    };
    let events = stream::unfold(watch, async |watch| {
        let (event, watch) = next_event(watch).await?;
        Some((Ok::<String, std::convert::Infallible>(event), watch))
    });
    stream_response(Body::from_stream(events))
}

fn stream_response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Waits for a change. While nothing changes, a comment shows every few seconds whether the browser is still there.
async fn next_event(mut watch: Watch) -> Option<(String, Watch)> {
    const COMMENT_AFTER: u32 = 15;
    if watch.is_over || watch.began.elapsed() > LONGEST {
        return None;
    }
    for _ in 0..COMMENT_AFTER {
        if watch.last.is_some() {
            tokio::time::sleep(INTERVAL).await;
        }
        let Ok(state) = look(&watch.site, watch.kind, &watch.name, watch.read).await else {
            // It was deleted, or the store is gone.
            watch.is_over = true;
            return Some(("event: gone\ndata: {}\n\n".to_owned(), watch));
        };
        let same = watch
            .last
            .as_ref()
            .is_some_and(|last| (last.done, last.is_running) == (state.done, state.is_running));
        if !same {
            let name = if state.is_running { "progress" } else { "end" };
            let event = format!("event: {name}\ndata: {}\n\n", serde_json::json!(*state));
            watch.is_over = !state.is_running;
            watch.last = Some(state);
            return Some((event, watch));
        }
    }
    Some((": still there\n\n".to_owned(), watch))
}
