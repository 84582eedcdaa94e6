//! Removes what must not leave the machine: secrets always, host names and addresses unless the user requests them.
//! Collectors read a machine through [`Redacted`], which redacts text while it is read. Files and commands that are not
//! in the tables of [`files`] and [`commands`] are not read at all.

mod cmdline;
mod commands;
mod complaint;
mod files;
mod mount;

/// Word lists of the redaction rules, for the shell collector, which applies the same rules.
pub(crate) mod lists {
    pub(crate) use super::cmdline::{MODULES, PLAIN};
    pub(crate) use super::commands::{TARGETS, WORDS};
    pub(crate) use super::complaint::{FILES, KINDS, OTHER, VERSION_WORDS};
    pub(crate) use super::mount::{FLAGS, NAMES, VALUES};
}

pub(crate) use cmdline::module_value;
pub(crate) use mount::escape_blanks;
pub use mount::{mount_options, mount_source};

use crate::collectors::services::packages;
use assay_host::{CommandOutput, Host, HostError, Limits, Stat, StatFs};
use assay_model::secrets::WITHHELD;
use assay_model::{FactValue, Facts};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A view of a machine without its secrets. Redacting twice changes nothing, so a capture gives the same facts as the
/// machine.
pub struct Redacted<'a> {
    inner: &'a dyn Host,
    identity: bool,
    withheld: Mutex<BTreeMap<String, String>>,
    /// The redacted list of packages. The list is cached, because it has about a megabyte and several collectors read
    /// it.
    packages: OnceLock<Vec<u8>>,
}

impl<'a> Redacted<'a> {
    /// Creates the view. With `identity`, the view contains host names, addresses and serial numbers, but no secrets.
    #[must_use]
    pub fn new(inner: &'a dyn Host, identity: bool) -> Self {
        Self {
            inner,
            identity,
            withheld: Mutex::default(),
            packages: OnceLock::new(),
        }
    }

    /// Returns the files and commands of which text was removed so far, each with the reason.
    #[must_use]
    pub fn withheld(&self) -> BTreeMap<String, String> {
        let found = self.withheld.lock();
        found.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, what: &str, how: &str) {
        let mut notes = self.withheld.lock().unwrap_or_else(PoisonError::into_inner);
        notes.insert(what.to_owned(), how.to_owned());
    }

    fn refuse(&self, what: String) -> HostError {
        self.note(&what, "not read: no rule says what of it is harmless");
        HostError::Withheld { what }
    }
}

/// Reason that is noted for a source of which only a part is kept.
const PARTLY: &str = "kept in part: only what is known to be harmless";

impl Host for Redacted<'_> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        let name = path.to_string_lossy();
        let Some(rule) = files::rule(&name, self.identity) else {
            return Err(self.refuse(name.into_owned()));
        };
        let is_packages = name == packages::STATUS;
        if let Some(clean) = self.packages.get().filter(|_| is_packages) {
            return Ok(clean.clone());
        }
        let bytes = self.inner.read(path)?;
        let clean = rule.apply(&bytes, self.identity);
        if clean != bytes {
            self.note(&name, PARTLY);
        }
        if is_packages {
            let _ = self.packages.set(clean.clone());
        }
        Ok(clean)
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        let name = dir.to_string_lossy();
        if !files::may_be_listed(&name) {
            return Err(self.refuse(name.into_owned()));
        }
        self.inner.list(dir)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.inner.link(path)
    }

    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.inner.realpath(path)
    }

    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        self.inner.stat(path)
    }

    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.inner.statfs(path)
    }

    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.inner.open_exclusive(path)
    }

    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError> {
        let words: Vec<String> = argv
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let line = words.join(" ");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some(rule) = commands::rule(&words) else {
            return Err(self.refuse(line));
        };
        let output = self.inner.run(argv, limits)?;
        let clean = CommandOutput {
            status: output.status,
            stdout: commands::apply(rule, &output.stdout, &words, self.identity),
            stderr: complaint::complaint(&words, &output.stderr),
        };
        if clean != output {
            self.note(&line, PARTLY);
        }
        Ok(clean)
    }

    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.inner.which(name)
    }
}

/// Applies the redaction rules of this version to facts that another version of assay may have collected.
pub fn facts(facts: &mut Facts) {
    for (key, fact) in &mut facts.map {
        let FactValue::Known(Value::String(text)) = &mut fact.value else {
            continue;
        };
        let parts: Vec<&str> = key.split('.').collect();
        let clean = match parts.as_slice() {
            ["kernel", "cmdline"] => cmdline::cmdline(text, false),
            ["mount", _, "options"] => mount_options(text),
            ["module", module, parameter, "configured"]
                if !module_value(module, parameter, text) =>
            {
                WITHHELD.to_owned()
            }
            _ => continue,
        };
        *text = clean;
    }
}

/// Returns the redaction rule of a file, for the tests of the shell collector.
#[cfg(test)]
pub(crate) fn rule_of_file(path: &str) -> Option<impl Fn(&[u8]) -> Vec<u8>> {
    let rule = files::rule(path, false)?;
    Some(move |text: &[u8]| rule.apply(text, false))
}

/// Applies the redaction rule to the output of a command, for the tests of the shell collector.
#[cfg(test)]
pub(crate) fn answer_of_command(argv: &[&str], text: &str) -> String {
    let clean =
        commands::rule(argv).map(|rule| commands::apply(rule, text.as_bytes(), argv, false));
    String::from_utf8_lossy(&clean.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests;
