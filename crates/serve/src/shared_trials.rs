//! Trials from machines of other people, in bundles that `assay fleet pool add` stores beside the store.

use crate::site::Site;
use assay_host::{Host as _, LiveHost};
use assay_model::advice::Advice;
use assay_pool::{Pool, Pooled, page_effects};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Extension of the file names of bundles.
const ENDING: &str = ".pool";

/// Cache of the parsed bundles. The cache is valid for the file names in it.
#[derive(Debug, Default)]
pub(crate) struct PoolCache(Mutex<Option<(Vec<String>, Arc<Pool>)>>);

impl Site {
    /// Returns the combined effects of the shared trials of a piece of advice; empty if there are no bundles.
    pub(crate) fn pooled_effects(&self, advice: &Advice) -> Vec<Pooled> {
        let Some(dir) = &self.options.pool else {
            return Vec::new();
        };
        let names = list_bundles(dir);
        if names.is_empty() {
            return Vec::new();
        }
        page_effects(&self.load_pool(dir, names), advice)
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

/// Returns the file names of the bundles in sorted order. A name contains the hash of the content, so equal names mean
/// equal content.
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
