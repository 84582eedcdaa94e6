//! Server-sent events of a running run or trial. Measurements write each sample into the store, so that the store is
//! what is watched: once a second for all pages of a record together.

use crate::answer::Refusal;
use crate::site::Site;
use crate::stored_trial::StoredTrial;
use assay_model::run::RunState;
use assay_model::trial::TrialState;
use assay_store::{Store, StoreError};
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
    Ok(LiveState {
        done: view.slots.len(),
        planned: 2 * view.trial.plan.max_pairs as usize,
        is_running: view.trial.state == TrialState::Running,
        idle_s: last.map(seconds_since),
        text: assay_report::trial::format_verdict_line(&view),
    })
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
    let mut response = Response::new(Body::from_stream(events));
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
