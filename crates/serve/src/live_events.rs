//! Server-sent events about a running run, trial, tuning session or job.

use crate::answer::Refusal;
use crate::jobs::Job;
use crate::live_state::{LiveState, RecordKind};
use crate::live_watch::{INTERVAL, LiveEvent, follow_record};
use crate::site::Site;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Maximum duration of a stream. The browser opens a new stream afterwards.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Time without an event after which a comment is sent. The comment shows whether the browser is still connected.
const COMMENT_AFTER: Duration = Duration::from_secs(15);

/// Answers `/live/runs/{name}` with the events of a run.
pub(crate) async fn run(State(site): State<Arc<Site>>, Path(name): Path<String>) -> Response<Body> {
    answer(site, RecordKind::Run, name).await
}

/// Answers `/live/trials/{name}` with the events of a trial.
pub(crate) async fn trial(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Response<Body> {
    answer(site, RecordKind::Trial, name).await
}

/// Answers `/live/tuning/{name}` with the events of a tuning session.
pub(crate) async fn session(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Response<Body> {
    answer(site, RecordKind::Session, name).await
}

async fn answer(site: Arc<Site>, kind: RecordKind, name: String) -> Response<Body> {
    match follow_record(&site, kind, name).await {
        Ok(events) => stream_events(events),
        // What is not there is an answer like any other, not a stream.
        Err(refusal) => site.refusal_page(&refusal).into_response(false),
    }
}

/// State of one event stream between two events.
struct EventStream<T> {
    changes: watch::Receiver<T>,
    began: Instant,
    /// Whether no event was sent yet. The first event is sent without waiting.
    is_first: bool,
    is_over: bool,
}

impl<T> EventStream<T> {
    fn new(changes: watch::Receiver<T>) -> Self {
        Self {
            changes,
            began: Instant::now(),
            is_first: true,
            is_over: false,
        }
    }

    /// Waits for a change. Returns false if a comment must be sent instead, and `None` at the end of the stream.
    async fn wait(&mut self) -> Option<bool> {
        if self.is_over || self.began.elapsed() > LONGEST {
            return None;
        }
        if std::mem::take(&mut self.is_first) {
            return Some(true);
        }
        match tokio::time::timeout(COMMENT_AFTER, self.changes.changed()).await {
            Ok(Ok(())) => Some(true),
            Ok(Err(_)) => None,
            Err(_) => Some(false),
        }
    }
}

const COMMENT: &[u8] = b": still there\n\n";

fn stream_events(events: watch::Receiver<LiveEvent>) -> Response<Body> {
    let events = stream::unfold(EventStream::new(events), async |mut stream| {
        let bytes = match stream.wait().await? {
            true => {
                let event = stream.changes.borrow_and_update().clone();
                stream.is_over = event.is_last;
                event.bytes
            }
            false => Bytes::from_static(COMMENT),
        };
        Some((Ok::<Bytes, Infallible>(bytes), stream))
    });
    stream_response(Body::from_stream(events))
}

/// Answers `/live/jobs/{name}` with the output of a command.
pub(crate) async fn job(State(site): State<Arc<Site>>, Path(name): Path<String>) -> Response<Body> {
    let found = site.jobs.as_ref().and_then(|table| table.find(&name));
    let Some(job) = found else {
        return site
            .refusal_page(&Refusal::missing("There is no such job."))
            .into_response(false);
    };
    let stream = EventStream::new(job.changes());
    let events = stream::unfold((job, stream), async |(job, mut stream)| {
        let is_first = stream.is_first;
        let bytes = match stream.wait().await? {
            true => {
                if !is_first {
                    // Lines may come fast.
                    tokio::time::sleep(INTERVAL).await;
                }
                stream.changes.mark_unchanged();
                let event = LiveEvent::of_state(&describe_job(&job));
                stream.is_over = event.is_last;
                event.bytes
            }
            false => Bytes::from_static(COMMENT),
        };
        Some((Ok::<Bytes, Infallible>(bytes), (job, stream)))
    });
    stream_response(Body::from_stream(events))
}

fn describe_job(job: &Job) -> LiveState {
    let (count, last) = job.last_line();
    LiveState {
        done: count as u64,
        planned: 0,
        is_running: job.is_running(),
        idle_s: None,
        text: last.unwrap_or_default(),
        details: Vec::new(),
    }
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
