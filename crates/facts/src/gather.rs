//! Common operations of all collectors. A collector reads a source and notes its value, that is, adds it to the facts.
//! If there is no value, the collector notes the reason.

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

/// Limits of a command that only reads. The timeout is long because zdb and smartctl take seconds on a busy machine.
pub(crate) const LIMITS: Limits = Limits {
    timeout: Duration::from_secs(20),
};

/// A machine, and the facts that were collected so far.
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

    /// Notes that a source could not be read. If the source is missing, the fact is left out. After any other error,
    /// the fact is unknown.
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

    /// Reads a whole file; notes an error under `key`. A link to /dev/null counts as an empty file, because such a link
    /// masks a unit or a file of sysctl.d or modprobe.d (systemd.unit(5), sysctl.d(5)).
    pub(crate) fn read(&mut self, key: &str, path: &str) -> Option<String> {
        match self.host.read_text(Path::new(path)) {
            Ok(text) => Some(text),
            Err(_) if self.is_masked(path) => Some(String::new()),
            Err(error) => {
                self.fault(key, &error, FactKind::Runtime, path);
                None
            }
        }
    }

    fn is_masked(&self, path: &str) -> bool {
        let null = Path::new("/dev/null");
        let target = self.host.link(Path::new(path));
        target.is_ok_and(|target| target == null)
    }

    /// Lists a directory; notes an error under `key`.
    pub(crate) fn list(&mut self, key: &str, dir: &str) -> Vec<OsString> {
        match self.host.list(Path::new(dir)) {
            Ok(names) => names,
            Err(error) => {
                self.fault(key, &error, FactKind::Runtime, dir);
                Vec::new()
            }
        }
    }

    /// Notes a run-time value from a file. The fact is unknown if `understand` returns `None`.
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

    /// Notes a run-time text. An empty file gives no fact.
    pub(crate) fn text(&mut self, key: &str, path: &str) {
        let Some(text) = self.read(key, path) else {
            return;
        };
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        if !text.is_empty() {
            self.facts.known(key, text, FactKind::Runtime, path);
        }
    }

    /// Notes a run-time integer from a file, multiplied by `unit`.
    pub(crate) fn number(&mut self, key: &str, path: &str, unit: i64) {
        self.value(key, path, |text| {
            text.parse::<i64>().ok()?.checked_mul(unit)
        });
    }

    /// Notes a run-time flag from a file that contains `0` or `1`.
    pub(crate) fn flag(&mut self, key: &str, path: &str) {
        self.value(key, path, flag);
    }

    /// Reads the complete configuration of a program. Notes every error and every unreadable file under `key`. Returns
    /// `None` if there is no main file.
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
        // A setting that the program rejects is no gap: the value is known, and the rejection is a
        // finding.
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

    /// Notes the configured value of a key in a scope, with file and line. The value is the first word, converted by
    /// `understand`; without a line, the default. The fact is unknown if an unreadable file could contain the key.
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

    /// Declares what the facts below `path` describe; see [`Facts::about`].
    pub(crate) fn about<S: AsRef<str>>(&mut self, path: impl IntoIterator<Item = S>) {
        self.facts.about(&Subject::new(path));
    }

    /// Runs a command that only reads. Notes a failure under `key`. A command that is not installed gives no fact.
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

    /// Runs a command that only reads; fails if the command is not installed.
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

/// Parses a flag that the kernel prints as `0`/`1` or `N`/`Y`.
pub(crate) fn flag(text: &str) -> Option<bool> {
    match text {
        "0" | "N" => Some(false),
        "1" | "Y" => Some(true),
        _ => None,
    }
}

/// Returns the selected word of a sysfs list such as `none [mq-deadline] kyber`. Without brackets, returns the whole
/// line.
pub(crate) fn chosen(text: &str) -> Option<String> {
    match text.split_once('[') {
        Some((_, rest)) => rest.split_once(']').map(|(chosen, _)| chosen.to_owned()),
        None => (!text.is_empty()).then(|| text.to_owned()),
    }
}

/// Describes content that does not have the expected form. Only a number or a word is quoted. Of other content, which
/// may be private in a captured directory, only the length is reported.
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

/// Returns an integer if the text is one, else the text.
pub(crate) fn scalar(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(number) => number.into(),
        Err(_) => text.into(),
    }
}

/// Converts a name to a part of a fact key.
pub(crate) fn lossy(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
