//! Findings of the catalogue on a machine with their evidence, from the newest stored bundle.

use crate::site::Site;
use assay_advice::{accept, findings};
use assay_facts::CollectOptions;
use assay_host::{Bundle, Host as _, LiveHost};
use assay_model::Facts;
use assay_model::finding::Checked;
use assay_model::stack::Stack;
use assay_stack::{StackTarget, discover};
use jiff::Timestamp;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of cached checks. If it is exceeded, the cache is emptied.
const MOST_CHECKS: usize = 600;

/// Facts and findings of a machine, from its newest bundle.
#[derive(Debug)]
pub(crate) struct MachineCheck {
    /// Time at which the bundle was collected.
    pub(crate) at: Timestamp,
    pub(crate) facts: Facts,
    pub(crate) checked: Checked,
    /// Layers below `/`; `None` if the bundle does not contain them.
    pub(crate) stack: Option<Stack>,
}

/// Cache of checks, by the hash of the bundle. A cached check stays valid, because bundles and the catalogue of a
/// running server do not change.
#[derive(Debug, Default)]
pub(crate) struct CheckCache(Mutex<HashMap<String, Arc<MachineCheck>>>);

impl Site {
    /// Returns the check of the newest bundle of a machine; `None` without a bundle.
    ///
    /// # Errors
    /// A stored bundle cannot be read. The text is a sentence for the user.
    pub(crate) fn check_machine(&self, host: &str) -> Result<Option<Arc<MachineCheck>>, String> {
        let entries = self
            .history
            .entries(host)
            .map_err(|error| error.to_string())?;
        let Some(entry) = entries.last() else {
            return Ok(None);
        };
        let accepted = self.read_accepted();
        // What is accepted may change and expires; the bundle does not.
        let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let key = match &accepted {
            Some((_, text)) => format!(
                "{} {host} {today} {}",
                entry.bundle,
                blake3::hash(text.as_bytes())
            ),
            None => entry.bundle.clone(),
        };
        let known = {
            let checks = self.checks.0.lock().unwrap_or_else(PoisonError::into_inner);
            checks.get(&key).cloned()
        };
        if let Some(known) = known {
            return Ok(Some(known));
        }
        let bytes = self
            .history
            .bundle(host, entry)
            .map_err(|error| error.to_string())?;
        let bundle =
            Bundle::read(&bytes[..], "what was kept").map_err(|error| error.to_string())?;
        let options = CollectOptions {
            services: true,
            ..CollectOptions::default()
        };
        let facts = assay_facts::collect(&bundle, &options);
        let mut checked = findings(self.options.catalogue.all(), &facts);
        if let Some((path, text)) = &accepted {
            accept(&mut checked, path, text, today, Some(host));
        }
        let stack = discover(&bundle, &StackTarget::Path(PathBuf::from("/"))).ok();
        let check = Arc::new(MachineCheck {
            at: entry.at,
            facts,
            checked,
            stack: stack.filter(|stack| stack.layers.len() > 1),
        });
        let mut checks = self.checks.0.lock().unwrap_or_else(PoisonError::into_inner);
        if checks.len() >= MOST_CHECKS {
            checks.clear();
        }
        checks.insert(key, check.clone());
        Ok(Some(check))
    }

    /// Returns the path and the content of the file with accepted findings. Returns `None` if the file cannot be read;
    /// then no finding is accepted.
    fn read_accepted(&self) -> Option<(String, String)> {
        let path = self.options.accept.as_ref()?;
        let text = LiveHost.read_text(path).ok()?;
        Some((path.display().to_string(), text))
    }
}
