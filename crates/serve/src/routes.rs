//! Maps each path to the function that answers requests for it.

use crate::answer::{Answer, Refusal};
use crate::query::QueryParameters;
use crate::site::Site;
use crate::{api, live_events, pages, prometheus, request_guard};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The parts of a request that a page function needs.
pub(crate) struct PageRequest {
    /// Variable part of the path; empty if the path has none.
    pub(crate) name: String,
    /// Parameters of the URL's query.
    pub(crate) query: QueryParameters,
}

/// Function that builds the answer to a request.
pub(crate) type PageFunction = fn(&Site, &PageRequest) -> Result<Answer, Refusal>;

/// Builds the router of all pages.
pub(crate) fn build_router(site: Arc<Site>) -> Router {
    let router = Router::new()
        .route("/", page(pages::overview::show))
        .route("/machines", page(pages::machines::show))
        .route("/machines/{name}", page(pages::machine::show))
        .route("/runs", page(pages::runs::show))
        .route("/runs/{name}", page(show_run))
        .route("/compare", page(pages::run::compare))
        .route("/figures", page(pages::figures::show))
        .route("/trials", page(pages::trials::show))
        .route("/trials/{name}", page(show_trial))
        .route("/tuning", page(pages::tuning::show_list))
        .route("/tuning/{name}", page(pages::tuning::show))
        .route("/observations", page(pages::observations::show_list))
        .route("/observations/{name}", page(pages::observations::show))
        .route("/advice", page(pages::catalogue::show))
        .route("/advice/{name}", page(pages::advice::show))
        .route("/plan", page(pages::plan::show))
        .route("/duplicates", page(pages::duplicates::show))
        .route("/about", page(pages::about::show))
        .route("/assets/{name}", page(pages::assets::show))
        .route("/metrics", page(prometheus::show))
        .route("/api/v1/openapi.json", page(api::openapi))
        .route("/api/v1/runs", page(api::runs))
        .route("/api/v1/runs/{name}", page(api::run))
        .route("/api/v1/trials", page(api::trials))
        .route("/api/v1/trials/{name}", page(api::trial))
        .route("/api/v1/tuning", page(api::sessions))
        .route("/api/v1/tuning/{name}", page(api::session))
        .route("/api/v1/observations", page(api::observations))
        .route("/api/v1/observations/{name}", page(api::observation))
        .route("/api/v1/machines", page(api::machines))
        .route("/api/v1/machines/{name}", page(api::machine))
        .route("/api/v1/changed", page(api::changed))
        .route("/actions", page(pages::actions::show))
        .route("/actions/start", post(start_action))
        .route("/actions/stop", post(stop_action))
        .route("/jobs/{name}", page(pages::actions::show_job))
        .route("/live/jobs/{name}", get(live_events::job))
        .route("/live/runs/{name}", get(live_events::run))
        .route("/live/trials/{name}", get(live_events::trial))
        .route("/live/tuning/{name}", get(live_events::session))
        .fallback(missing);
    router
        .layer(from_fn_with_state(site.clone(), request_guard::guard))
        .with_state(site)
}

fn show_run(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let address = shared_address(site, "runs", request);
    let draw = || pages::run::show(site, request);
    site.drawn.get_or_draw(site, address, draw)
}

fn show_trial(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let address = shared_address(site, "trials", request);
    let draw = || pages::trial::show(site, request);
    site.drawn.get_or_draw(site, address, draw)
}

/// Returns a key for everything except the store that determines a page: its address, and the jobs that can be stopped.
fn shared_address(site: &Site, path: &str, request: &PageRequest) -> String {
    let jobs = site.jobs.as_ref().map(|jobs| jobs.list_running());
    format!("{path} {:?} {:?} {jobs:?}", request.name, request.query)
}

/// Creates a route for a page function. The function runs on a separate thread, within the limits of the site.
fn page(function: PageFunction) -> MethodRouter<Arc<Site>> {
    get(
        async move |State(site): State<Arc<Site>>,
                    name: Option<Path<String>>,
                    RawQuery(query): RawQuery,
                    headers: HeaderMap|
                    -> Response<Body> {
            let request = PageRequest {
                name: name.map_or_else(String::new, |Path(name)| name),
                query: QueryParameters::parse(query.as_deref().unwrap_or_default()),
            };
            let answer = site.draw(function, request).await;
            answer.into_response(accepts_gzip(&headers))
        },
    )
}

/// Maximum length of a form in bytes.
const MOST_FORM: usize = 16 << 10;
/// Time limit for receiving a form.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

async fn start_action(State(site): State<Arc<Site>>, request: Request) -> Response<Body> {
    take_form(site, request, pages::actions::start).await
}

async fn stop_action(State(site): State<Arc<Site>>, request: Request) -> Response<Body> {
    take_form(site, request, pages::actions::stop).await
}

/// Receives a form and passes it to the function that handles it.
async fn take_form(
    site: Arc<Site>,
    request: Request,
    function: fn(&Site, &[u8], &str) -> Result<Answer, Refusal>,
) -> Response<Body> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let is_form = kind.is_some_and(|kind| kind.as_bytes() == b"application/x-www-form-urlencoded");
    let from = request
        .extensions()
        .get::<SocketAddr>()
        .map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let body = tokio::time::timeout(
        FORM_TIMEOUT,
        axum::body::to_bytes(request.into_body(), MOST_FORM),
    );
    let Ok(Ok(body)) = body.await else {
        let refusal = Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "Nothing was started",
            "The form is too long, or did not arrive.",
        );
        return site.refusal_page(&refusal).into_response(false);
    };
    if !is_form {
        let refusal = Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Nothing was started",
            "Send a form: application/x-www-form-urlencoded.",
        );
        return site.refusal_page(&refusal).into_response(false);
    }
    let answering = site.clone();
    let done = tokio::task::spawn_blocking(move || {
        function(&answering, &body, &from)
            .unwrap_or_else(|refusal| answering.refusal_page(&refusal))
    });
    match done.await {
        Ok(answer) => answer.into_response(false),
        Err(_) => {
            let refusal = Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "Nothing was started",
                "That is a fault of assay.",
            );
            site.refusal_page(&refusal).into_response(false)
        }
    }
}

async fn missing(State(site): State<Arc<Site>>) -> Response<Body> {
    let refusal =
        Refusal::missing("There is no such page. The navigation above leads to all of them.");
    site.refusal_page(&refusal).into_response(false)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|text| text.to_str().ok());
    accepted.is_some_and(|text| {
        text.split(',').any(|one| {
            let mut parts = one.split(';').map(str::trim);
            parts.next() == Some("gzip") && parts.next() != Some("q=0")
        })
    })
}
