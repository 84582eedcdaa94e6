//! Determines the path of the index, and defines the formats of groups of duplicates.

use anyhow::Context as _;
use assay_dups::Index;
use clap::ValueEnum;
use std::path::PathBuf;

/// Formats of a list of groups.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// A summary for people.
    Text,
    /// A list of groups, each with `size`, `hash` and `files`.
    Json,
    /// The document of `--json`: one object with `groups`, counts and skipped files.
    #[value(skip)]
    Document,
    /// `size,hash,count,files…`, as in fclones.
    Csv,
    /// Paths, an empty line after each group.
    Fdupes,
    /// Default report of fclones, which `fclones link` and other fclones commands read.
    Fclones,
    /// Paths that end with NUL, and another NUL after each group.
    Nul,
}

impl Format {
    pub(super) fn machine(self) -> Option<assay_dups::format::GroupFormat> {
        use assay_dups::format::GroupFormat as F;
        match self {
            Self::Text => None,
            Self::Json => Some(F::Json),
            Self::Document => Some(F::Document),
            Self::Csv => Some(F::Csv),
            Self::Fdupes => Some(F::Fdupes),
            Self::Fclones => Some(F::Fclones),
            Self::Nul => Some(F::Nul),
        }
    }
}

/// Options that all verbs below `dups` share.
pub(super) struct Place {
    pub(super) index: Option<PathBuf>,
    pub(super) json: bool,
}

impl Place {
    /// Returns the path of the index: the path on the command line, or the user's default.
    pub(super) fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(named) = &self.index {
            return Ok(named.clone());
        }
        usual_index().context("name the index with --index FILE")
    }

    pub(super) fn read(&self) -> anyhow::Result<Index> {
        Ok(Index::read(&self.path()?)?)
    }
}

/// Returns the default path of the user's index. The file need not exist.
pub(in crate::verbs) fn usual_index() -> anyhow::Result<PathBuf> {
    Ok(crate::context::data_dir()?.join("dups.db"))
}

/// Returns the absolute form of paths on the command line.
pub(super) fn absolute(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    paths
        .iter()
        .map(|path| Ok(assay_dups::make_absolute(path)?))
        .collect()
}
