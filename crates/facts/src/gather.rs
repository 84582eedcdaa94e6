//! What all collectors do: read something, and note what it says or why it says nothing.

use assay_config::effective::files::{FileFault, OfHost};
use assay_config::effective::{
    ConfigProblem, Effective, Program, ScopeId, Trouble, read_effective,
};
use assay_host::{CommandOutput, Host, HostError, Limits};
use assay_model::{FactKind, FactPlace, Facts, Subject};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// zdb and smartctl take seconds on a busy machine; no command that only asks should take longer.
pub(crate) const LIMITS: Limits = Limits {
    timeout: Duration::from_secs(20),
};

/// A machine and the facts that were found on it so far.
pub(crate) struct Gather<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) facts: Facts,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Self {
        Self {
            host,
            facts: Facts::default(),
        }
    }

    /// Notes a fault: what does not exist is left out, anything else is unknown.
    pub(crate) fn fault(
        &mut self,
        key: &str,
        error: &HostError,
        kind: FactKind,
        place: impl Into<FactPlace>,
    ) {
        if !error.is_absent() {
            self.facts.unknown(key, error.reason(), kind, place);
        }
    }

    /// Reads a file whole; a fault is noted under `key`.
    pub(crate) fn read(&mut self, key: &str, path: &str) -> Option<String> {
        match self.host.read_text(Path::new(path)) {
            Ok(text) => Some(text),
            Err(error) => {
                self.fault(key, &error, FactKind::Runtime, path);
                None
            }
        }
    }

    /// Lists a directory; a fault is noted under `key`.
    pub(crate) fn list(&mut self, key: &str, dir: &str) -> Vec<OsString> {
        match self.host.list(Path::new(dir)) {
            Ok(names) => names,
            Err(error) => {
                self.fault(key, &error, FactKind::Runtime, dir);
                Vec::new()
            }
        }
    }

    /// A run-time value from a file; what `understand` cannot make sense of is unknown.
    pub(crate) fn value<V: Into<Value>>(
        &mut self,
        key: &str,
        path: &str,
        understand: impl FnOnce(&str) -> Option<V>,
    ) {
        let Some(text) = self.read(key, path) else {
            return;
        };
        let text = text.trim();
        match understand(text) {
            Some(value) => self.facts.known(key, value, FactKind::Runtime, path),
            None => self
                .facts
                .unknown(key, not_understood(text), FactKind::Runtime, path),
        }
    }

    /// A run-time text; nothing is noted for an empty file.
    pub(crate) fn text(&mut self, key: &str, path: &str) {
        let Some(text) = self.read(key, path) else {
            return;
        };
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        if !text.is_empty() {
            self.facts.known(key, text, FactKind::Runtime, path);
        }
    }

    /// A run-time whole number, times `unit`.
    pub(crate) fn number(&mut self, key: &str, path: &str, unit: i64) {
        self.value(key, path, |text| {
            text.parse::<i64>().ok()?.checked_mul(unit)
        });
    }

    /// A run-time `0` or `1`.
    pub(crate) fn flag(&mut self, key: &str, path: &str) {
        self.value(key, path, flag);
    }

    /// Reads the whole configuration of a program; a fault is noted under `key`, and so is every file
    /// of it that could not be read. Without a main file there is none.
    pub(crate) fn configuration(
        &mut self,
        key: &str,
        program: Program,
        main: &str,
    ) -> Option<Effective> {
        let all = match read_effective(program, Path::new(main), &OfHost(self.host)) {
            Ok(all) => all,
            Err(FileFault::Absent) => return None,
            Err(fault) => {
                self.facts
                    .unknown(key, fault.to_string(), FactKind::Runtime, main);
                return None;
            }
        };
        // What the program refuses hides nothing: it is known, and a finding.
        let refused =
            |problem: &&ConfigProblem| !matches!(problem.trouble, Trouble::Refused { .. });
        if let Some(problem) = all.problems.iter().find(refused) {
            self.facts.unknown(
                key,
                problem.trouble.to_string(),
                FactKind::Configured,
                &problem.place,
            );
        }
        Some(all)
    }

    /// Notes what a configuration says for a key in a scope, with its file and line: its first word
    /// as `understand` makes it, else the default and where that is written. What could stand in a
    /// file that could not be read is unknown.
    pub(crate) fn configured(
        &mut self,
        fact: &str,
        all: &Effective,
        (scope, key): (ScopeId, &str),
        understand: impl FnOnce(String) -> String,
        (default, documented): (&str, &str),
    ) {
        match all.certain(scope, key) {
            Ok(Some(said)) => {
                let value = understand(said.word().unwrap_or_default());
                self.facts
                    .known(fact, value, FactKind::Configured, &said.place);
            }
            Ok(None) => self
                .facts
                .known(fact, default, FactKind::Default, documented),
            Err(problem) => {
                let reason = problem.trouble.to_string();
                self.facts
                    .unknown(fact, reason, FactKind::Configured, &problem.place);
            }
        }
    }

    /// Says what the facts below `path` are about; see [`Facts::about`].
    pub(crate) fn about<S: AsRef<str>>(&mut self, path: impl IntoIterator<Item = S>) {
        self.facts.about(&Subject::new(path));
    }

    /// Runs a command that asks for something. A command that is not installed is absent; one that
    /// fails is noted under `key`.
    pub(crate) fn ask(&mut self, key: &str, argv: &[&str]) -> Option<CommandOutput> {
        match self.try_ask(argv) {
            Ok(output) if output.success() => Some(output),
            Ok(output) => {
                let place = FactPlace::command(argv);
                self.facts
                    .unknown(key, output.complaint(), FactKind::Runtime, place);
                None
            }
            Err(error) => {
                self.fault(key, &error, FactKind::Runtime, FactPlace::command(argv));
                None
            }
        }
    }

    /// Runs a command if it is installed.
    pub(crate) fn try_ask(&self, argv: &[&str]) -> Result<CommandOutput, HostError> {
        let name = argv.first().copied().unwrap_or_default();
        if self.host.which(OsStr::new(name)).is_none() {
            return Err(HostError::NoCommand {
                name: name.to_owned(),
            });
        }
        let argv: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        self.host.run(&argv, LIMITS)
    }
}

/// Reads `0`/`1` and `N`/`Y`.
pub(crate) fn flag(text: &str) -> Option<bool> {
    match text {
        "0" | "N" => Some(false),
        "1" | "Y" => Some(true),
        _ => None,
    }
}

/// The choice in `none [mq-deadline] kyber`; a line without brackets is the choice.
pub(crate) fn chosen(text: &str) -> Option<String> {
    match text.split_once('[') {
        Some((_, rest)) => rest.split_once(']').map(|(chosen, _)| chosen.to_owned()),
        None => (!text.is_empty()).then(|| text.to_owned()),
    }
}

/// What to say about contents that are not as expected: a number or a word as it is. Of anything else,
/// which a captured directory may hold in this place, only the length.
pub(crate) fn not_understood(text: &str) -> String {
    match text.len() <= 40
        && text
            .split_ascii_whitespace()
            .all(assay_model::secrets::is_plain)
    {
        true => format!("not understood: `{text}`"),
        false => format!(
            "not understood: {} bytes that are no such value",
            text.len()
        ),
    }
}

/// A number where it is one, else the text.
pub(crate) fn scalar(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(number) => number.into(),
        Err(_) => text.into(),
    }
}

/// A name as part of a key.
pub(crate) fn lossy(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
