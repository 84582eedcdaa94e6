//! Selects the files to scan.

use crate::Error;
use crate::sys;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

/// The user's file selection. [`Filter::default`] selects every file that is not empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Minimum size of a file in bytes.
    pub min_size: u64,
    /// Maximum size of a file in bytes.
    pub max_size: u64,
    /// Globs as in `rg --glob`: `*.jpg` selects only these files, `!*.tmp` excludes files, and the last match
    /// decides.
    pub globs: Vec<String>,
    /// Whether to respect `.gitignore` and `.ignore` files.
    pub ignore_files: bool,
    /// Maximum age of a file in nanoseconds: the time from its last change to the scan.
    pub newer_than: Option<i64>,
    /// Minimum age of a file in nanoseconds: the time from its last change to the scan.
    pub older_than: Option<i64>,
    /// User id that the owner of a file must have.
    pub owner: Option<u32>,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            min_size: 1,
            max_size: u64::MAX,
            globs: Vec::new(),
            ignore_files: false,
            newer_than: None,
            older_than: None,
            owner: None,
        }
    }
}

impl Filter {
    /// Compiles the globs for one root.
    ///
    /// # Errors
    /// A glob is invalid; the message contains it.
    pub(crate) fn globs_for(&self, root: &Path) -> Result<Option<Override>, Error> {
        if self.globs.is_empty() {
            return Ok(None);
        }
        let mut builder = OverrideBuilder::new(root);
        for glob in &self.globs {
            builder
                .add(glob)
                .map_err(|error| Error::Filter(format!("glob `{glob}`: {error}")))?;
        }
        builder
            .build()
            .map(Some)
            .map_err(|error| Error::Filter(format!("globs: {error}")))
    }

    /// Returns whether a file with this size, age (nanoseconds, negative in the future) and owner passes the filter.
    pub(crate) fn wants(&self, size: u64, age: i64, owner: u32) -> bool {
        (self.min_size..=self.max_size).contains(&size)
            && self.newer_than.is_none_or(|limit| age <= limit)
            && self.older_than.is_none_or(|limit| age > limit)
            && self.owner.is_none_or(|wanted| wanted == owner)
    }
}

/// Returns whether the globs exclude a path.
pub(crate) fn glob_excludes(globs: Option<&Override>, path: &[u8], is_dir: bool) -> bool {
    globs.is_some_and(|globs| {
        globs
            .matched(sys::path_from_bytes(path), is_dir)
            .is_ignore()
    })
}

/// Ignore files of a folder and its parents, innermost first.
pub(crate) struct IgnoreChain {
    rules: Gitignore,
    above: Option<Arc<Self>>,
}

impl IgnoreChain {
    /// Adds the ignore files of an open folder to its parent's chain. Like git, does not follow links and reads only
    /// regular files.
    pub(crate) fn descend(
        above: Option<&Arc<Self>>,
        folder: &[u8],
        fd: impl AsFd,
    ) -> Option<Arc<Self>> {
        let mut builder = GitignoreBuilder::new(sys::path_from_bytes(folder));
        let mut any = false;
        for name in [".gitignore", ".ignore"] {
            let Some(text) = ignore_file(&fd, name) else {
                continue;
            };
            for line in text.trim_start_matches('\u{feff}').lines() {
                // An invalid line is skipped; the other lines apply.
                let _ = builder.add_line(None, line);
            }
            any = true;
        }
        match builder.build() {
            Ok(rules) if any => Some(Arc::new(Self {
                rules,
                above: above.cloned(),
            })),
            _ => above.cloned(),
        }
    }

    /// Returns whether the ignore files exclude a path.
    pub(crate) fn excludes(chain: Option<&Arc<Self>>, path: &[u8], is_dir: bool) -> bool {
        let mut link = chain;
        while let Some(one) = link {
            match one.rules.matched(sys::path_from_bytes(path), is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => link = one.above.as_ref(),
            }
        }
        false
    }
}

/// Maximum size of an ignore file in bytes.
const LONGEST: u64 = 16 << 20;

/// Reads an ignore file, if it exists.
fn ignore_file(folder: impl AsFd, name: &str) -> Option<String> {
    let file = std::fs::File::from(sys::open_file_at(folder, name.as_bytes()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the id of a user, given as a number or as a name in /etc/passwd (passwd(5)).
///
/// # Errors
/// /etc/passwd contains no such user. The message describes the alternative.
pub fn parse_user(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let table = std::fs::read("/etc/passwd").unwrap_or_default();
    String::from_utf8_lossy(&table)
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields[0] == text)
        .and_then(|fields| fields.get(2)?.parse().ok())
        .ok_or_else(|| format!("no such user `{text}` in /etc/passwd; give the number instead"))
}
