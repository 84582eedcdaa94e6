//! Settings in configuration files. assay writes a candidate file next to the original and runs the program's check on
//! it. The candidate then replaces the original atomically, and the service reads the new file.

use super::joined_settings;
use super::setting_kind::{AsFound, Found, Original, Reading, SettingKind, ValueOrigin, Work, run};
use crate::error::ChangeError;
use assay_config::ConfError;
use assay_host::{FileVersion, HostError, HostMut, Times};
use assay_model::change::{ConfigKey, ConfigLanguage};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const CANDIDATE: &str = "{file}";
/// Number of attempts to restore a file while another program writes it.
const TRIES: usize = 20;
/// Number of last attempts, which no longer wait for a process that has the file open for writing.
const LAST_TRIES: usize = 5;
/// Pause between two attempts.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// A setting in a configuration file, or several that change together.
pub(super) struct InFile {
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) language: ConfigLanguage,
    pub(super) keys: Keys,
    pub(super) validate: Vec<String>,
    pub(super) reload: Vec<String>,
    /// Version of the file from which the candidate was made. Only this version is replaced.
    pub(super) seen: Mutex<Option<FileVersion>>,
}

/// The settings of a file that form one change.
pub(super) enum Keys {
    /// One setting. Its value is the value of the whole change.
    One(ConfigKey),
    /// Several settings. The value of the change is the JSON array of `joined_settings`.
    Several(Vec<ConfigKey>),
}

/// Returns the file's path with symbolic links resolved.
pub(super) fn place(host: &dyn HostMut, file: &str) -> Result<PathBuf, ChangeError> {
    Ok(host.realpath(Path::new(file))?)
}

impl InFile {
    fn conf<T>(&self, result: Result<T, ConfError>) -> Result<T, ChangeError> {
        result.map_err(|source| ChangeError::Config {
            path: self.file.clone(),
            source,
        })
    }

    fn value(&self, text: &[u8]) -> Result<Option<String>, ChangeError> {
        let one = |one: &ConfigKey| {
            let found = assay_config::get(self.language, text, &one.section, &one.key);
            Ok(self.conf(found)?.map(|found| found.value))
        };
        match &self.keys {
            Keys::One(key) => one(key),
            Keys::Several(keys) => {
                let values: Result<Vec<_>, ChangeError> = keys.iter().map(one).collect();
                Ok(Some(joined_settings::join_values(&values?)))
            }
        }
    }

    fn edit(&self, text: &[u8], value: Option<&str>) -> Result<Vec<u8>, ChangeError> {
        let one = |text: &[u8], one: &ConfigKey, value: Option<&str>| {
            let ConfigKey { section, key } = one;
            self.conf(match value {
                Some(value) => assay_config::set(self.language, text, section, key, value),
                None => assay_config::remove(self.language, text, section, key),
            })
        };
        let keys = match &self.keys {
            Keys::One(key) => return one(text, key, value),
            Keys::Several(keys) => keys,
        };
        let values = joined_settings::parse_values(value, keys.len()).ok_or_else(|| {
            let reason = format!("{value:?} is not a value for each of these settings");
            ChangeError::refused(&self.name, reason)
        })?;
        let mut text = text.to_vec();
        for (key, value) in keys.iter().zip(values) {
            // A setting that already has the value keeps its bytes.
            let now = assay_config::get(self.language, &text, &key.section, &key.key);
            if self.conf(now)?.map(|found| found.value) != value {
                text = one(&text, key, value.as_deref())?;
            }
        }
        Ok(text)
    }

    fn aside(&self, work: &Work) -> PathBuf {
        self.file.with_file_name(&work.aside)
    }

    /// Runs the service's own check on a file.
    fn validate(&self, host: &dyn HostMut, file: &Path) -> Result<(), ChangeError> {
        run_for_file(host, &self.name, &self.validate, file)
    }

    fn validates_candidates(&self) -> bool {
        validates_candidates(&self.validate)
    }

    fn reload(&self, host: &dyn HostMut) -> Result<(), ChangeError> {
        run_for_file(host, &self.name, &self.reload, &self.file)
    }

    /// Creates the candidate from the version of the file that was read.
    fn stage(
        &self,
        host: &dyn HostMut,
        seen: FileVersion,
        text: &[u8],
        times: Option<Times>,
        work: &Work,
    ) -> Result<(), ChangeError> {
        self.tidy(host, work)?;
        host.create_like(&self.aside(work), &seen, text, times)?;
        let before = seen.content.map(|before| before.to_hex().to_string());
        work.note_candidate(&hash(text), before.as_deref())?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        Ok(())
    }

    /// Exchanges the names of the file and the candidate.
    fn exchange(&self, host: &dyn HostMut, work: &Work) -> Result<(), ChangeError> {
        let seen = self
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let seen = seen.ok_or_else(|| {
            ChangeError::refused(&self.name, "there is no candidate to put in its place")
        })?;
        Ok(host.exchange(&self.aside(work), &seen)?)
    }

    /// Replaces the file by the contents that restore its original state.
    fn put_former(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
        despite_writers: bool,
    ) -> Result<(), ChangeError> {
        let (now, seen) = host.read_plain(&self.file)?;
        let seen = FileVersion {
            despite_writers,
            ..seen
        };
        let (former, exact) = self.former(&now, original, work)?;
        let times = original_times(original).filter(|_| exact);
        if former != now
            || modification_time(times) != modification_time(seen.times.filter(|_| times.is_some()))
        {
            self.stage(host, seen, &former, times, work)?;
            self.exchange(host, work)?;
        }
        Ok(())
    }

    /// Restores another program's edit that an exchange moved to the temporary name. This happens if assay was killed
    /// before it could check that file.
    fn put_back_edit(&self, host: &dyn HostMut, work: &Work) -> Result<(), ChangeError> {
        let aside = self.aside(work);
        let Some(noted) = work.noted_candidate()? else {
            return Ok(());
        };
        let found = match host.read_plain(&aside) {
            Ok((bytes, _)) => hash(&bytes),
            Err(HostError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if noted.candidate == found || noted.before.is_none_or(|before| before == found) {
            return Ok(());
        }
        let (now, seen) = host.read_plain(&self.file)?;
        if hash(&now) == noted.candidate {
            return Ok(host.exchange(&aside, &seen)?);
        }
        Err(ChangeError::refused(
            &self.name,
            format!(
                "{} is what somebody wrote to {} at the moment when assay was killed, and that file was written again since: compare the two (diff), then remove {}",
                aside.display(),
                self.file.display(),
                aside.display()
            ),
        ))
    }

    /// Returns the contents that restore the original state, and whether they are the original bytes. If another
    /// program changed other lines after assay did, the result is the present text in which only assay's lines are
    /// reverted.
    fn former(
        &self,
        now: &[u8],
        original: &Original,
        work: &Work,
    ) -> Result<(Vec<u8>, bool), ChangeError> {
        let wanted = original.file.as_ref().map(|file| &file.blake3);
        let is_former = |text: &[u8]| wanted.is_some_and(|wanted| hash(text) == *wanted);
        if is_former(now) {
            return Ok((now.to_vec(), true));
        }
        let by_line = || self.edit(now, original.value.as_deref());
        let damaged = match std::fs::read(&work.saved) {
            Ok(saved) if wanted.is_none() || is_former(&saved) => {
                let ours = self.edit(&saved, self.value(now)?.as_deref());
                // Otherwise some of the settings stay as another program set them.
                let is_whole = self.same(self.value(&saved)?.as_deref(), original.value.as_deref());
                let is_only_ours = ours.is_ok_and(|ours| ours == now);
                return match now == saved || is_whole && is_only_ours {
                    true => Ok((saved, true)),
                    false => Ok((by_line()?, false)),
                };
            }
            Ok(_) => "it is not what the journal says it was".to_owned(),
            Err(error) => error.to_string(),
        };
        let line = by_line()?;
        match is_former(&line) {
            true => Ok((line, true)),
            false if work.force => Ok((line, false)),
            false => Err(ChangeError::Saved {
                saved: work.saved.clone(),
                file: self.file.clone(),
                reason: damaged,
            }),
        }
    }
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Returns the access and modification times of the original file.
fn original_times(original: &Original) -> Option<Times> {
    original.file.as_ref()?.times
}

fn modification_time(times: Option<Times>) -> Option<(i64, i64)> {
    times.map(|times| times.modified)
}

/// Whether a command checks a candidate file instead of the installed configuration.
pub(super) fn validates_candidates(validate: &[String]) -> bool {
    validate.iter().any(|word| word.contains(CANDIDATE))
}

/// Runs a command of the service that reads the file; does nothing without a command.
pub(super) fn run_for_file(
    host: &dyn HostMut,
    what: &str,
    command: &[String],
    file: &Path,
) -> Result<(), ChangeError> {
    if command.is_empty() {
        return Ok(());
    }
    let words: Vec<_> = command.iter().map(|word| with_file(word, file)).collect();
    let argv: Vec<_> = words.iter().map(OsString::as_os_str).collect();
    run(host, what, &argv, super::command::COMMAND_LIMIT).map(drop)
}

/// Replaces `{file}` in a word of a command line. The file name may contain any bytes.
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

impl SettingKind for InFile {
    fn reads_as_written(&self) -> bool {
        true
    }

    /// Returns the path of the file, because two settings of one file would overwrite each other.
    fn identity(&self) -> String {
        format!("file:{}", self.file.display())
    }

    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError> {
        let (contents, seen) = host.read_plain(&self.file)?;
        let Reading { value, shown } = self.read(host)?;
        host.check_writable(&self.file)?;
        self.validate(host, &self.file)?;
        let origin = match value {
            Some(_) => ValueOrigin::Set,
            None => ValueOrigin::Absent,
        };
        Ok(Found {
            original: Original {
                value,
                shown,
                origin,
                place: self.file.clone(),
                along: Vec::new(),
                file: Some(AsFound {
                    blake3: hash(&contents),
                    times: seen.times,
                }),
            },
            contents: Some(contents),
        })
    }

    fn check(&self, host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError> {
        self.edit(&host.read_plain(&self.file)?.0, value).map(drop)
    }

    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError> {
        let value = self.value(&host.read_plain(&self.file)?.0)?;
        let shown = match (&self.keys, &value) {
            (Keys::Several(keys), Some(text)) => joined_settings::display_values(
                &joined_settings::parse_values(Some(text), keys.len()).unwrap_or_default(),
            ),
            (_, Some(text)) => text.clone(),
            (_, None) => "no line for it".to_owned(),
        };
        Ok(Reading { value, shown })
    }

    fn prepare(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        work: &Work,
    ) -> Result<(), ChangeError> {
        let (now, seen) = host.read_plain(&self.file)?;
        let text = self.edit(&now, value)?;
        self.stage(host, seen, &text, None, work)?;
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
        self.exchange(host, work)?;
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
        let mut tries = TRIES;
        loop {
            match self.put_former(host, original, work, tries < LAST_TRIES) {
                // The next attempt includes what another program writes at this moment.
                Err(ChangeError::Host(error)) if error.is_meanwhile() && tries > 0 => {
                    tries -= 1;
                    std::thread::sleep(TRY_AGAIN);
                }
                other => break other?,
            }
        }
        self.tidy(host, work)?;
        self.reload(host)
    }

    fn restore_ours(
        &self,
        known: &[Option<String>],
        original: Option<&str>,
        now: Option<&str>,
    ) -> Option<String> {
        let Keys::Several(keys) = &self.keys else {
            return None;
        };
        let parse = |value: Option<&str>| joined_settings::parse_values(value, keys.len());
        let known: Vec<_> = known
            .iter()
            .filter_map(|one| parse(one.as_deref()))
            .collect();
        let (original, mut values) = (parse(original)?, parse(now)?);
        let mut is_any_ours = false;
        for (at, value) in values.iter_mut().enumerate() {
            let is = |other: &Option<String>| self.same(value.as_deref(), other.as_deref());
            if !is(&original[at]) && known.iter().any(|all| is(&all[at])) {
                value.clone_from(&original[at]);
                is_any_ours = true;
            }
        }
        is_any_ours.then(|| joined_settings::join_values(&values))
    }

    /// Returns false if the service has a reload command. The file may be in its original state while the service still
    /// uses the changed configuration.
    fn settled(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
    ) -> Result<bool, ChangeError> {
        let (now, seen) = host.read_plain(&self.file)?;
        let (former, exact) = self.former(&now, original, work)?;
        let times = original_times(original).filter(|_| exact);
        Ok(self.reload.is_empty()
            && former == now
            && modification_time(times)
                == modification_time(seen.times.filter(|_| times.is_some())))
    }

    fn apart(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
    ) -> Result<Option<String>, ChangeError> {
        let (now, _) = host.read_plain(&self.file)?;
        let same = match &original.file {
            Some(found) => hash(&now) == found.blake3,
            None => std::fs::read(&work.saved).map_err(ChangeError::journal(&work.saved))? == now,
        };
        Ok((!same).then(|| {
            format!(
                "other lines of {} are not as they were found; {} has them as they were (compare with diff)",
                self.file.display(),
                work.saved.display()
            )
        }))
    }

    fn tidy(&self, host: &dyn HostMut, work: &Work) -> Result<(), ChangeError> {
        self.put_back_edit(host, work)?;
        match host.remove_file(&self.aside(work)) {
            Err(HostError::NotFound { .. }) => {}
            other => other?,
        }
        work.forget_candidate()
    }

    fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        one.map(words) == other.map(words)
    }
}
