//! A new file, such as a drop-in of a service. The value is the text of the file; `None` means that the file does not
//! exist. assay writes the text to a temporary name next to the file, and gives it the final name in one step that
//! fails if the name exists.

use super::config::{run_for_file, validates_candidates};
use super::setting_kind::{Found, Original, Reading, SettingKind, ValueOrigin, Work};
use super::setting_workspace::NotedDirectory;
use crate::error::ChangeError;
use assay_host::held::Removed;
use assay_host::{FileVersion, HostError, HostMut};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Number of attempts to remove a file while another program has it open for writing.
const TRIES: usize = 20;
/// Number of last attempts, which no longer wait for such a program.
const LAST_TRIES: usize = 5;
/// Pause between two attempts.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// A file that does not exist before the change.
pub(super) struct NewFile {
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) validate: Vec<String>,
    pub(super) reload: Vec<String>,
    /// Hash of the contents that were read last. Only these contents are removed.
    pub(super) seen: Mutex<Option<String>>,
}

/// Returns the path with symbolic links in its existing directories resolved. The file itself, and the directories that
/// do not exist yet, are added unchanged.
pub(super) fn place(host: &dyn HostMut, file: &str) -> Result<PathBuf, ChangeError> {
    let path = Path::new(file);
    let plain = |part: std::path::Component<'_>| {
        use std::path::Component::{Normal, RootDir};
        matches!(part, Normal(_) | RootDir)
    };
    let (true, Some(above), Some(name)) = (
        path.components().all(plain) && path.is_absolute(),
        path.parent(),
        path.file_name(),
    ) else {
        return Err(ChangeError::refused(file, "it is no path of a file"));
    };
    let mut missing = vec![name];
    for dir in above.ancestors() {
        match host.realpath(dir) {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(error) if error.is_absent() && host.link(dir).is_err() => {
                missing.extend(dir.file_name());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(ChangeError::refused(file, "none of its directories exists"))
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Describes a value for messages, without the text, which may contain a secret.
fn display_value(value: Option<&str>) -> String {
    match value {
        Some(text) => format!("a file with {} lines", text.lines().count()),
        None => "no file".to_owned(),
    }
}

impl NewFile {
    fn aside(&self, work: &Work) -> PathBuf {
        self.file.with_file_name(&work.aside)
    }

    /// Reads the file; `None` if it does not exist.
    fn contents(&self, host: &dyn HostMut) -> Result<Option<(Vec<u8>, FileVersion)>, ChangeError> {
        match host.read_plain(&self.file) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the directories that do not exist, the outermost first, and the nearest existing one.
    fn directories(&self, host: &dyn HostMut) -> Result<(Vec<PathBuf>, PathBuf), ChangeError> {
        let mut missing = Vec::new();
        for dir in self.file.ancestors().skip(1) {
            if host.exists(dir)? || host.link(dir).is_ok() {
                missing.reverse();
                return Ok((missing, dir.to_owned()));
            }
            missing.push(dir.to_owned());
        }
        Err(ChangeError::refused(
            &self.name,
            "none of its directories exists",
        ))
    }

    /// Creates the missing directories. Each is noted before and after it is created.
    fn create_directories(&self, host: &dyn HostMut, work: &Work) -> Result<(), ChangeError> {
        let (missing, above) = self.directories(host)?;
        host.check_directory(&above)?;
        for path in missing {
            let mut noted = work.noted_directories()?;
            noted.retain(|known| known.path != path);
            let before = noted.clone();
            noted.push(NotedDirectory {
                path: path.clone(),
                known: None,
            });
            work.note_directories(&noted)?;
            match host.create_directory(&path) {
                Ok(Some(known)) => {
                    if let Some(last) = noted.last_mut() {
                        last.known = Some(known);
                    }
                    work.note_directories(&noted)?;
                }
                // Somebody else created it at this moment, so it stays.
                Ok(None) => {
                    work.note_directories(&before)?;
                    host.check_directory(&path)?;
                }
                // It may have been created all the same, so the note stays.
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Removes the directories that assay created, as far as they are empty.
    fn remove_directories(&self, host: &dyn HostMut, work: &Work) -> Result<(), ChangeError> {
        let noted = work.noted_directories()?;
        let mut left = false;
        for NotedDirectory { path, known } in noted.iter().rev() {
            left |= host.remove_directory(path, known.as_ref())? == Removed::Another;
        }
        match left || noted.is_empty() {
            true => Ok(()),
            false => work.note_directories(&[]),
        }
    }

    /// Restores another program's edit that the removal moved to the temporary name. This happens if assay was killed
    /// before it could check that file.
    fn put_back_edit(&self, host: &dyn HostMut, work: &Work) -> Result<(), ChangeError> {
        let Some(noted) = work.noted_candidate()? else {
            return Ok(());
        };
        let aside = self.aside(work);
        let found = match host.read_plain(&aside) {
            Ok((bytes, _)) => hash(&bytes),
            Err(error) if error.is_absent() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if noted.candidate == found {
            return Ok(());
        }
        match host.rename_new(&aside, &self.file) {
            Err(error) if error.is_meanwhile() => {}
            other => return Ok(other?),
        }
        Err(ChangeError::refused(
            &self.name,
            format!(
                "{} is what somebody wrote to {} at the moment when assay was killed, and that file was written again \
                 since: compare the two (diff), then remove {}",
                aside.display(),
                self.file.display(),
                aside.display()
            ),
        ))
    }

    /// Removes the file, if its contents are still those that were read last.
    fn remove(
        &self,
        host: &dyn HostMut,
        work: &Work,
        despite_writers: bool,
    ) -> Result<(), ChangeError> {
        let Some((bytes, seen)) = self.contents(host)? else {
            return Ok(());
        };
        let found = hash(&bytes);
        let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() != Some(&found) {
            let text = String::from_utf8_lossy(&bytes);
            return Err(ChangeError::Meanwhile {
                what: self.name.clone(),
                found: display_value(Some(&*text)),
                original: display_value(None),
            });
        }
        drop(known);
        work.note_candidate(&found, None)?;
        let seen = FileVersion {
            despite_writers,
            ..seen
        };
        Ok(host.take_away(&self.aside(work), &seen)?)
    }
}

impl SettingKind for NewFile {
    fn reads_as_written(&self) -> bool {
        true
    }

    /// Returns the path of the file, as for a setting in a file.
    fn identity(&self) -> String {
        format!("file:{}", self.file.display())
    }

    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError> {
        if self.contents(host)?.is_some() {
            return Err(ChangeError::refused(
                &self.name,
                "it exists already, and assay overwrites no file: look at it, and move it away or edit it",
            ));
        }
        let (_, above) = self.directories(host)?;
        host.check_directory(&above)?;
        if !validates_candidates(&self.validate) {
            run_for_file(host, &self.name, &self.validate, &self.file)?;
        }
        Ok(Found {
            original: Original {
                value: None,
                shown: display_value(None),
                origin: ValueOrigin::Absent,
                place: self.file.clone(),
                along: Vec::new(),
                file: None,
            },
            contents: None,
        })
    }

    fn check(&self, _host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError> {
        match value {
            Some(text) if !text.ends_with('\n') || text.contains('\0') => Err(
                ChangeError::refused(&self.name, "its text is no text with whole lines"),
            ),
            _ => Ok(()),
        }
    }

    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError> {
        let contents = self.contents(host)?.map(|(bytes, _)| bytes);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = contents.as_deref().map(hash);
        let value = contents.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Reading {
            shown: display_value(value.as_deref()),
            value,
        })
    }

    fn prepare(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        work: &Work,
    ) -> Result<(), ChangeError> {
        self.tidy(host, work)?;
        let Some(text) = value else {
            return Ok(());
        };
        if self.contents(host)?.is_some() {
            let reason = "it has another text already: restore it first";
            return Err(ChangeError::refused(&self.name, reason));
        }
        let stage = || {
            self.create_directories(host, work)?;
            let aside = self.aside(work);
            host.create_new(&aside, text.as_bytes())?;
            work.note_candidate(&hash(text.as_bytes()), None)?;
            match validates_candidates(&self.validate) {
                true => run_for_file(host, &self.name, &self.validate, &aside),
                false => Ok(()),
            }
        };
        let staged = stage();
        if staged.is_err() {
            self.tidy(host, work)?;
        }
        staged
    }

    fn write(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        work: &Work,
    ) -> Result<(), ChangeError> {
        match value {
            Some(_) => host.rename_new(&self.aside(work), &self.file)?,
            None => self.remove(host, work, false)?,
        }
        if !validates_candidates(&self.validate) {
            run_for_file(host, &self.name, &self.validate, &self.file)?;
        }
        run_for_file(host, &self.name, &self.reload, &self.file)
    }

    fn restore(
        &self,
        host: &dyn HostMut,
        _original: &Original,
        work: &Work,
    ) -> Result<(), ChangeError> {
        let mut tries = TRIES;
        loop {
            match self.remove(host, work, tries < LAST_TRIES) {
                Err(ChangeError::Host(error)) if error.is_meanwhile() && tries > 0 => {
                    tries -= 1;
                    std::thread::sleep(TRY_AGAIN);
                }
                other => break other?,
            }
        }
        self.tidy(host, work)?;
        run_for_file(host, &self.name, &self.reload, &self.file)
    }

    /// Returns false if the service has a reload command. The file may be removed while the service still uses it.
    fn settled(
        &self,
        host: &dyn HostMut,
        _original: &Original,
        _work: &Work,
    ) -> Result<bool, ChangeError> {
        Ok(self.reload.is_empty() && self.contents(host)?.is_none())
    }

    fn tidy(&self, host: &dyn HostMut, work: &Work) -> Result<(), ChangeError> {
        self.put_back_edit(host, work)?;
        match host.remove_file(&self.aside(work)) {
            Err(HostError::NotFound { .. }) => {}
            other => other?,
        }
        work.forget_candidate()?;
        self.remove_directories(host, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn links_are_followed_up_to_the_first_missing_directory() {
        let host = Recorded::new()
            .file("/etc/real/a", "")
            .linked("/etc/way", "/etc/real")
            .linked("/etc/dangling", "/nowhere");
        for (path, wanted) in [
            ("/etc/real/b", Some("/etc/real/b")),
            ("/etc/way/b", Some("/etc/real/b")),
            ("/etc/way/x/y/b", Some("/etc/real/x/y/b")),
            ("/etc/dangling/b", None),
            ("/etc/way/../b", None),
            ("etc/b", None),
            ("/", None),
        ] {
            let found = place(&host, path).ok();
            assert_eq!(found.as_deref(), wanted.map(Path::new), "{path}");
        }
    }
}
