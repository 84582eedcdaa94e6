//! State that all requests have in common: the store, the catalogue, caches, and limits for rendering pages.

use crate::answer::{Answer, Refusal};
use crate::drawn_pages::DrawnPages;
use crate::fleet_state::FleetStateCache;
use crate::jobs::{ActionOptions, JobTable};
use crate::live_watch::LiveWatch;
use crate::machine_check::CheckCache;
use crate::pages::duplicates::DuplicatesCache;
use crate::routes::{PageFunction, PageRequest};
use crate::shared_trials::PoolCache;
use crate::site_page::{Section, StyleRegistry};
use crate::store_access::StoreAccess;
use crate::stored_trial::TrialCache;
use assay_advice::Catalogue;
use assay_fleet::History;
use assay_model::advice::Advice;
use assay_model::{Facts, TargetInfo};
use axum::http::StatusCode;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum number of requests that wait for a thread. Further requests are refused.
const MOST_WAITING: usize = 256;
/// Time limit for a page. It includes the time that the request waits for a thread.
const PAGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Function that reads the facts of this machine, and of the file system for which advice is judged.
pub type ReadFacts = Box<dyn Fn() -> (Facts, Option<TargetInfo>) + Send + Sync>;

/// Configuration of the site: what it shows, and who can see it.
pub struct SiteOptions {
    /// Location of the store: the path of a file, or a URL.
    pub store: PathBuf,
    /// Directory with the bundles of machines. Their findings are shown with evidence.
    pub history: PathBuf,
    /// File with the findings that the user accepts. The file need not exist.
    pub accept: Option<PathBuf>,
    /// Directory with trials of other people's machines. The directory need not exist.
    pub pool: Option<PathBuf>,
    /// Index of duplicate files. The index need not exist.
    pub duplicates: Option<PathBuf>,
    /// Catalogue of advice that the site shows.
    pub catalogue: Catalogue,
    /// Function that reads the facts of this machine. It is called once, when a page needs the facts for the first
    /// time.
    pub read_facts: ReadFacts,
    /// Token that every visitor needs; `None` permits access without a token.
    pub token: Option<String>,
    /// Host names of the server, in addition to IP addresses and `localhost`.
    pub names: Vec<String>,
    /// Version of assay that serves the pages.
    pub version: &'static str,
    /// Name that this machine has in the records of the store; `None` if unknown.
    pub machine: Option<String>,
    /// Configuration of the commands that visitors can start; `None` for a read-only server.
    pub actions: Option<ActionOptions>,
    /// Notice above every page, for example that the figures are invented; `None` without a notice.
    pub notice: Option<String>,
}

#[cfg(test)]
impl SiteOptions {
    /// Returns options for a store in the directory of a test.
    pub(crate) fn of_test(dir: &std::path::Path) -> Self {
        Self {
            store: dir.join("s.db"),
            history: dir.join("fleet"),
            accept: None,
            duplicates: None,
            pool: None,
            catalogue: Catalogue::builtin().unwrap(),
            read_facts: Box::new(|| (Facts::default(), None)),
            token: None,
            names: Vec::new(),
            version: "0.0.0",
            machine: None,
            actions: None,
            notice: None,
        }
    }
}

/// State of a running server, which all requests share.
pub(crate) struct Site {
    pub(crate) options: SiteOptions,
    pub(crate) store: StoreAccess,
    pub(crate) history: History,
    pub(crate) fleet: FleetStateCache,
    pub(crate) trials: TrialCache,
    pub(crate) checks: CheckCache,
    pub(crate) live: LiveWatch,
    pub(crate) drawn: DrawnPages,
    pub(crate) styles: StyleRegistry,
    pub(crate) pool: PoolCache,
    pub(crate) duplicates: DuplicatesCache,
    /// Jobs that visitors started; `None` for a read-only server.
    pub(crate) jobs: Option<Arc<JobTable>>,
    token: Option<blake3::Hash>,
    facts: OnceLock<(Facts, Option<TargetInfo>)>,
    waiting: Semaphore,
}

impl Site {
    /// Creates the state of a server from its options.
    ///
    /// # Errors
    /// The log of actions cannot be written.
    pub(crate) fn new(mut options: SiteOptions) -> io::Result<Self> {
        let jobs = options.actions.take().map(JobTable::new).transpose()?;
        Ok(Self {
            jobs: jobs.map(Arc::new),
            store: StoreAccess::new(options.store.clone()),
            history: History::at(options.history.clone()),
            fleet: FleetStateCache::default(),
            trials: TrialCache::default(),
            checks: CheckCache::default(),
            live: LiveWatch::default(),
            drawn: DrawnPages::default(),
            styles: StyleRegistry::default(),
            pool: PoolCache::default(),
            duplicates: DuplicatesCache::default(),
            token: options
                .token
                .as_ref()
                .map(|token| blake3::hash(token.as_bytes())),
            facts: OnceLock::new(),
            waiting: Semaphore::new(MOST_WAITING),
            options,
        })
    }

    /// Returns the hash of the token; `None` if visitors need no token.
    pub(crate) fn token_hash(&self) -> Option<&blake3::Hash> {
        self.token.as_ref()
    }

    /// Returns the host names of the server, in addition to IP addresses and `localhost`.
    pub(crate) fn names(&self) -> &[String] {
        &self.options.names
    }

    /// Returns the facts of this machine.
    pub(crate) fn facts(&self) -> &(Facts, Option<TargetInfo>) {
        self.facts.get_or_init(|| (self.options.read_facts)())
    }

    /// Returns the advice with this id. The id comes from the store, so it may be any text.
    pub(crate) fn find_advice(&self, id: &str) -> Option<&Advice> {
        /// Maximum length of an id that is searched. Ids in the catalogue are shorter, and searching an unknown id
        /// compares it with all others.
        const MOST: usize = 100;
        match id.len() <= MOST {
            true => self.options.catalogue.get(id).ok(),
            false => None,
        }
    }

    /// Runs a page function on a thread, within the limits of the site. If the function panics, the visitor still
    /// receives an answer.
    pub(crate) async fn draw(
        self: &Arc<Self>,
        function: PageFunction,
        request: PageRequest,
    ) -> Answer {
        let Ok(_place) = self.waiting.try_acquire() else {
            return self.refusal_page(&Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many requests",
                "Try again in a moment.",
            ));
        };
        let site = self.clone();
        let drawn = tokio::task::spawn_blocking(move || {
            function(&site, &request).unwrap_or_else(|refusal| site.refusal_page(&refusal))
        });
        match tokio::time::timeout(PAGE_TIMEOUT, drawn).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => self.refusal_page(&Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "This page could not be drawn",
                "That is a fault of assay. The other pages are not affected.",
            )),
            Err(_) => self.refusal_page(&Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "The page took too long",
                "The store is locked by another process, or very large. Try again.",
            )),
        }
    }

    /// Renders the page for a refusal.
    pub(crate) fn refusal_page(&self, refusal: &Refusal) -> Answer {
        let values = minijinja::context! {
            title => &refusal.title,
            text => assay_render::text::escape_line(&refusal.text),
        };
        let template = include_str!("templates/refusal.html");
        Answer {
            status: refusal.status,
            ..Answer::page(self.render_page(&refusal.title, Section::None, template, values))
        }
    }

    /// Renders the form that requests the token.
    pub(crate) fn token_page(&self, was_wrong: bool) -> Answer {
        let template = include_str!("templates/token.html");
        let values = minijinja::context! { was_wrong };
        Answer {
            status: StatusCode::UNAUTHORIZED,
            ..Answer::page(self.render_page("Token", Section::Closed, template, values))
        }
    }
}
