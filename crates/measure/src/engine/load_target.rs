//! What a load is pointed at.

use crate::engine::EngineError;
use assay_host::held::{Access, Held};
use assay_loads::file_state;
use assay_model::target::FileState;
use std::path::{Path, PathBuf};

/// What a load is pointed at. File and socket are names below the work directory, links to the real
/// ones, so that no load generator sees what a user called them.
#[derive(Clone, Debug)]
pub enum LoadTarget {
    /// A file or block device.
    File {
        /// Its directory, where assay made the file system.
        dir: Option<PathBuf>,
        /// Link to it.
        link: String,
        /// What it looked like after layout.
        state: Option<FileState>,
    },
    /// An NBD export.
    Nbd {
        /// Link to its socket.
        link: String,
        /// Its name.
        export: String,
    },
    /// Something that listens.
    Address {
        /// Host.
        host: String,
        /// Port.
        port: u16,
    },
    /// What the load says, word for word.
    Itself,
    /// A target that a command gets by its name.
    Named {
        /// The target, for `{path}` of a command.
        path: PathBuf,
    },
    /// A file or device in a guest of assay's own.
    Guest {
        /// Its path there.
        path: PathBuf,
    },
}

/// Gives `to` the plain name `name` in the work directory, so that no load generator has to
/// understand a path, however hostile. A name that leads elsewhere is led here.
///
/// # Errors
/// The link cannot be made.
#[allow(
    clippy::disallowed_methods,
    reason = "the work directory is assay's own"
)]
pub fn link(work: &Path, name: &str, to: &Path) -> Result<String, EngineError> {
    let at = work.join(name);
    let fail = |source| EngineError::Link {
        path: at.clone(),
        source,
    };
    match std::fs::remove_file(&at) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(fail(error)),
    }
    std::os::unix::fs::symlink(to, &at).map_err(fail)?;
    Ok(name.to_owned())
}

impl LoadTarget {
    /// A file or device that is held, by the plain name `name` in the work directory.
    ///
    /// # Errors
    /// The link cannot be made.
    pub fn held(work: &Path, name: &str, held: &Held) -> Result<Self, EngineError> {
        Ok(Self::File {
            dir: None,
            link: link(work, name, &held.through())?,
            state: read_file_state(held),
        })
    }

    /// As [`Place::held`], for what assay made where nobody else may exchange it.
    ///
    /// # Errors
    /// The link cannot be made.
    pub fn at(work: &Path, name: &str, path: &Path) -> Result<Self, EngineError> {
        Ok(Self::File {
            dir: None,
            link: link(work, name, path)?,
            state: Held::open(path, Access::Read)
                .ok()
                .as_ref()
                .and_then(read_file_state),
        })
    }

    /// What the file looked like after layout, where it is one.
    #[must_use]
    pub fn state(&self) -> Option<&FileState> {
        match self {
            Self::File { state, .. } => state.as_ref(),
            _ => None,
        }
    }
}

/// What a file looks like. A device has no size there, and nothing to look at.
fn read_file_state(held: &Held) -> Option<FileState> {
    let state = file_state::look(held.file()).ok();
    state.filter(|state| state.size.0 > 0)
}
