//! Detects inode flags that prevent a file or directory from being replaced or removed (chattr(1)), and returns the
//! commands that clear the flags.

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::Path;

/// An inode flag that only root can set and clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Immutable (`chattr +i`).
    Immutable,
    /// Append-only (`chattr +a`).
    AppendOnly,
    /// Sealed by fs-verity.
    Sealed,
}

impl Mark {
    /// Returns the flag of an open file or directory. Always `None` on kernels before 4.11, and in sandboxes without
    /// statx(2).
    #[must_use]
    pub fn of(fd: impl AsFd) -> Option<Self> {
        let found =
            rustix::fs::statx(fd, OsStr::new(""), AtFlags::EMPTY_PATH, StatxFlags::empty()).ok()?;
        Self::among(found.stx_attributes)
    }

    /// Returns the flag of the object at a path. Does not follow a link.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let found = rustix::fs::statx(CWD, path, flags, StatxFlags::empty()).ok()?;
        Self::among(found.stx_attributes)
    }

    fn among(found: StatxAttributes) -> Option<Self> {
        let all = [
            (StatxAttributes::IMMUTABLE, Self::Immutable),
            (StatxAttributes::APPEND, Self::AppendOnly),
            (StatxAttributes::VERITY, Self::Sealed),
        ];
        let marks = all.into_iter().find(|(bit, _)| found.contains(*bit));
        marks.map(|(_, mark)| mark)
    }

    /// Returns the flag that prevents the removal of a path as a reason for the user: that of the object, or that of
    /// its directory. `None` if there is no such flag.
    #[must_use]
    pub fn against_removal(path: &Path) -> Option<String> {
        let own = Self::at(path).filter(|mark| *mark != Self::Sealed);
        let above = path
            .parent()
            .and_then(|above| Some((Self::at(above)?, above)));
        let (mark, which) = own
            .map(|mark| (mark, path))
            .or(above.filter(|(mark, _)| *mark != Self::Sealed))?;
        let (word, letter) = mark.words();
        let shown = shell_word(which);
        Some(format!(
            "{shown} is {word}: `chattr -{letter} {shown}` allows it"
        ))
    }

    /// Returns the name of the flag, and the letter that chattr(1) uses for it.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Immutable => ("immutable", "i"),
            Self::AppendOnly => ("append-only", "a"),
            Self::Sealed => ("sealed", "V"),
        }
    }
}

/// Quotes a path so that a shell reads it as one word.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@%:,=".contains(letter);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_word() {
        for (path, word) in [
            ("/etc/ssh/sshd_config", "/etc/ssh/sshd_config"),
            ("/a b", "'/a b'"),
            ("/it's", r"'/it'\''s'"),
            ("/$(x)", "'/$(x)'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }
}
