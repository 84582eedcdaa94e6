//! Settings in configuration files: a candidate beside the file is validated, takes its place in
//! one step, and is read by the service.

use super::{Found, Knob, Origin, Original, Reading, Work};
use crate::error::ChangeError;
use assay_conf::ConfError;
use assay_host::{HostError, HostMut};
use assay_model::change::ConfigLanguage;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

const CANDIDATE: &str = "{file}";

/// A setting in a file.
pub(super) struct InFile {
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) language: ConfigLanguage,
    pub(super) section: Vec<String>,
    pub(super) key: String,
    pub(super) validate: Vec<String>,
    pub(super) reload: Vec<String>,
}

/// Where the file itself is, for a name may be a link to it.
pub(super) fn place(host: &dyn HostMut, file: &str) -> Result<PathBuf, ChangeError> {
    Ok(host.realpath(Path::new(file))?)
}

impl InFile {
    fn conf<T>(&self, result: Result<T, ConfError>) -> Result<T, ChangeError> {
        result.map_err(|error| ChangeError::Config {
            path: self.file.clone(),
            reason: error.to_string(),
        })
    }

    fn value(&self, text: &[u8]) -> Result<Option<String>, ChangeError> {
        let found = assay_conf::get(self.language, text, &self.section, &self.key);
        Ok(self.conf(found)?.map(|found| found.value))
    }

    fn edit(&self, text: &[u8], value: Option<&str>) -> Result<Vec<u8>, ChangeError> {
        let Self { section, key, .. } = self;
        self.conf(match value {
            Some(value) => assay_conf::set(self.language, text, section, key, value),
            None => assay_conf::remove(self.language, text, section, key),
        })
    }

    fn aside(&self, work: &Work) -> PathBuf {
        self.file.with_file_name(&work.aside)
    }

    /// Lets the service's own check look at a file.
    fn validate(&self, host: &dyn HostMut, file: &Path) -> Result<(), ChangeError> {
        if self.validate.is_empty() {
            return Ok(());
        }
        let words: Vec<_> = self
            .validate
            .iter()
            .map(|word| with_file(word, file))
            .collect();
        let argv: Vec<_> = words.iter().map(OsString::as_os_str).collect();
        super::run(host, &self.name, &argv, super::command::PATIENCE).map(drop)
    }

    fn validates_candidates(&self) -> bool {
        self.validate.iter().any(|word| word.contains(CANDIDATE))
    }

    fn reload(&self, host: &dyn HostMut) -> Result<(), ChangeError> {
        if self.reload.is_empty() {
            return Ok(());
        }
        let argv: Vec<_> = self.reload.iter().map(OsStr::new).collect();
        super::run(host, &self.name, &argv, super::command::PATIENCE).map(drop)
    }

    /// Makes the candidate.
    fn stage(&self, host: &dyn HostMut, text: &[u8], work: &Work) -> Result<(), ChangeError> {
        self.tidy(host, work)?;
        Ok(host.create_like(&self.aside(work), &self.file, text)?)
    }

    /// What the file shall say to be as it was found: its bytes, or, when somebody changed other
    /// lines meanwhile, only our line taken back.
    fn former(&self, now: &[u8], original: &Original, work: &Work) -> Result<Vec<u8>, ChangeError> {
        let saved = std::fs::read(&work.saved).map_err(ChangeError::journal(&work.saved))?;
        let ours = self.edit(&saved, self.value(now)?.as_deref());
        match now == saved || ours.is_ok_and(|ours| ours == now) {
            true => Ok(saved),
            false => self.edit(now, original.value.as_deref()),
        }
    }
}

/// A word of a command line with `{file}` replaced; the name need not be text.
fn with_file(word: &str, file: &Path) -> OsString {
    let mut out = OsString::new();
    for (index, part) in word.split(CANDIDATE).enumerate() {
        if index > 0 {
            out.push(file);
        }
        out.push(part);
    }
    out
}

impl Knob for InFile {
    /// Two settings of one file would undo each other's bytes.
    fn identity(&self) -> String {
        format!("file:{}", self.file.display())
    }

    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError> {
        let contents = host.read(&self.file)?;
        let Reading { value, shown } = self.read(host)?;
        host.check_writable(&self.file)?;
        self.validate(host, &self.file)?;
        let origin = match value {
            Some(_) => Origin::Set,
            None => Origin::Absent,
        };
        Ok(Found {
            original: Original {
                value,
                shown,
                origin,
                place: self.file.clone(),
                along: Vec::new(),
            },
            contents: Some(contents),
        })
    }

    fn check(&self, host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError> {
        self.edit(&host.read(&self.file)?, value).map(drop)
    }

    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError> {
        let value = self.value(&host.read(&self.file)?)?;
        let shown = value.clone().unwrap_or_else(|| "no line for it".to_owned());
        Ok(Reading { value, shown })
    }

    fn prepare(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        work: &Work,
    ) -> Result<(), ChangeError> {
        let text = self.edit(&host.read(&self.file)?, value)?;
        self.stage(host, &text, work)?;
        let valid = match self.validates_candidates() {
            true => self.validate(host, &self.aside(work)),
            false => Ok(()),
        };
        if valid.is_err() {
            self.tidy(host, work)?;
        }
        valid
    }

    fn write(
        &self,
        host: &dyn HostMut,
        _value: Option<&str>,
        work: &Work,
    ) -> Result<(), ChangeError> {
        host.rename(&self.aside(work), &self.file)?;
        if !self.validates_candidates() {
            self.validate(host, &self.file)?;
        }
        self.reload(host)
    }

    fn restore(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
    ) -> Result<(), ChangeError> {
        let now = host.read(&self.file)?;
        let former = self.former(&now, original, work)?;
        if former != now {
            self.stage(host, &former, work)?;
            host.rename(&self.aside(work), &self.file)?;
        }
        self.tidy(host, work)?;
        self.reload(host)
    }

    /// The file may be as it was while the service still runs with the other one.
    fn settled(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
    ) -> Result<bool, ChangeError> {
        let now = host.read(&self.file)?;
        Ok(self.reload.is_empty() && self.former(&now, original, work)? == now)
    }

    fn tidy(&self, host: &dyn HostMut, work: &Work) -> Result<(), ChangeError> {
        match host.remove_file(&self.aside(work)) {
            Err(HostError::NotFound { .. }) => Ok(()),
            other => Ok(other?),
        }
    }

    fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        one.map(words) == other.map(words)
    }
}
