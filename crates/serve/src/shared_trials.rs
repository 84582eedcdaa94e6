//! Trials of other people's machines: the bundles that `assay fleet pool add` keeps beside the store.

use crate::site::Site;
use assay_host::{Host as _, LiveHost};
use assay_model::advice::Advice;
use assay_pool::{Pool, Pooled, pool_effects};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Ends the names of bundles.
const ENDING: &str = ".pool";
/// Smallest gain that matters where a page names none.
const USUAL_MARGIN: f64 = 0.03;

/// The bundles of the last request, with the names of their files.
#[derive(Debug, Default)]
pub(crate) struct PoolCache(Mutex<Option<(Vec<String>, Arc<Pool>)>>);

impl Site {
    /// Returns what the shared trials of a piece of advice amount to; nothing without bundles.
    pub(crate) fn pooled_effects(&self, advice: &Advice) -> Vec<Pooled> {
        let Some(dir) = &self.options.pool else {
            return Vec::new();
        };
        let names = list_bundles(dir);
        if names.is_empty() {
            return Vec::new();
        }
        let pool = self.load_pool(dir, names);
        let margin = advice.trial.as_ref().and_then(|trial| trial.get("margin"));
        let margin = margin.and_then(|margin| margin.as_float());
        pool_effects(
            &pool,
            &advice.id,
            margin.unwrap_or(USUAL_MARGIN),
            &advice.moderators,
        )
    }

    fn load_pool(&self, dir: &Path, names: Vec<String>) -> Arc<Pool> {
        let mut last = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, pool)) = &*last
            && *known == names
        {
            return pool.clone();
        }
        let mut pool = Pool::default();
        for name in &names {
            let Ok(bytes) = LiveHost.read(&dir.join(name)) else {
                continue;
            };
            // A bundle that is damaged, or contradicts another one, is left out; `fleet pool show` names it.
            if let Ok(bundle) = assay_pool::read(&bytes) {
                let _ = pool.add(&bundle);
            }
        }
        let pool = Arc::new(pool);
        *last = Some((names, pool.clone()));
        pool
    }
}

/// Returns the names of the bundles, sorted. They contain the hashes of their contents.
fn list_bundles(dir: &Path) -> Vec<String> {
    let names = LiveHost.list(dir).unwrap_or_default();
    let mut names: Vec<String> = names
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.ends_with(ENDING) && !name.starts_with('.'))
        .collect();
    names.sort();
    names
}
