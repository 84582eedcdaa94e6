//! Permission bits of a file or directory. A value has the form `0640`.

use super::setting_kind::{Found, Original, Reading, SettingKind, ValueOrigin, Work};
use crate::error::ChangeError;
use assay_host::{HostMut, Permissions};
use std::path::{Path, PathBuf};

/// Permissions of one file or directory as a setting.
pub(super) struct FileMode {
    pub(super) name: String,
    pub(super) file: PathBuf,
}

/// Returns the path with symbolic links in its directories resolved. Fails if the file itself is a symbolic link.
pub(super) fn place(host: &dyn HostMut, file: &str) -> Result<PathBuf, ChangeError> {
    let path = Path::new(file);
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ChangeError::refused(file, "it is no path of a file"));
    };
    Ok(host.realpath(above)?.join(name))
}

/// Writes permission bits as the value of a setting.
pub(crate) fn format_permissions(found: Permissions) -> String {
    format!("{:04o}", found.mode)
}

/// Parses a value. The owner of the result is the owner of `known`.
fn parse_permissions(value: &str, known: Permissions) -> Option<Permissions> {
    let octal = Some(value).filter(|word| word.len() == 4)?;
    let mode = u32::from_str_radix(octal, 8).ok()?;
    Some(Permissions { mode, ..known })
}

impl FileMode {
    fn wanted(&self, value: Option<&str>, known: Permissions) -> Result<Permissions, ChangeError> {
        let parsed = value.and_then(|value| parse_permissions(value, known));
        parsed.ok_or_else(|| {
            let reason = format!("{} are no permissions", value.unwrap_or("nothing"));
            ChangeError::refused(&self.name, reason)
        })
    }

    fn set(&self, host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError> {
        let seen = host.permissions(&self.file)?;
        let wanted = self.wanted(value, seen)?;
        if wanted != seen {
            host.set_permissions(&self.file, seen, wanted)?;
        }
        Ok(())
    }
}

impl SettingKind for FileMode {
    fn reads_as_written(&self) -> bool {
        true
    }

    fn identity(&self) -> String {
        format!("mode:{}", self.file.display())
    }

    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError> {
        let Reading { value, shown } = self.read(host)?;
        host.check_permissions(&self.file)?;
        Ok(Found {
            original: Original {
                value,
                shown,
                origin: ValueOrigin::Set,
                place: self.file.clone(),
                along: Vec::new(),
                file: None,
            },
            contents: None,
        })
    }

    fn check(&self, host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError> {
        let known = host.permissions(&self.file)?;
        self.wanted(value, known).map(drop)
    }

    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError> {
        let found = format_permissions(host.permissions(&self.file)?);
        Ok(Reading {
            shown: found.clone(),
            value: Some(found),
        })
    }

    fn write(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        self.set(host, value)
    }

    fn restore(
        &self,
        host: &dyn HostMut,
        original: &Original,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        self.set(host, original.value.as_deref())
    }

    fn settled(
        &self,
        host: &dyn HostMut,
        original: &Original,
        _work: &Work,
    ) -> Result<bool, ChangeError> {
        Ok(self.read(host)?.value == original.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_permissions() {
        let known = Permissions {
            mode: 0o644,
            user: 5,
            group: 6,
        };
        for (value, mode) in [
            ("0640", Some(0o640)),
            ("4755", Some(0o4755)),
            ("0640 0:42", None),
            ("640", None),
            ("08aa", None),
        ] {
            let parsed = parse_permissions(value, known);
            let wanted = mode.map(|mode| Permissions { mode, ..known });
            assert_eq!(parsed, wanted, "{value}");
            if let Some(parsed) = parsed {
                assert_eq!(format_permissions(parsed), value);
            }
        }
    }
}
