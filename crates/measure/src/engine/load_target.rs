//! Where a load reads and writes, or which service it uses.

use crate::engine::EngineError;
use assay_host::held::{Access, Held};
use assay_loads::file_state;
use assay_model::target::FileState;
use std::path::{Path, PathBuf};

/// Target of a load. Load generators reach files and sockets through symbolic links in the work directory, so that they
/// never receive a file name of the user.
#[derive(Clone, Debug)]
pub enum LoadTarget {
    /// A file or block device.
    File {
        /// Directory of the file, if assay created the file system; else `None`.
        dir: Option<PathBuf>,
        /// Name of the symbolic link in the work directory.
        link: String,
        /// State of the file directly after it was laid out; `None` for a device.
        state: Option<FileState>,
    },
    /// An export of a Network Block Device (NBD) server.
    Nbd {
        /// Name of the symbolic link to the socket of the export.
        link: String,
        /// Name of the export.
        export: String,
    },
    /// A service that listens on a TCP port.
    Address {
        /// Host name or address of the service.
        host: String,
        /// TCP port of the service.
        port: u16,
    },
    /// The load defines its target itself, for example by a URL.
    Itself,
    /// A target whose path is passed to the user's command.
    Named {
        /// Path that replaces `{path}` in the command.
        path: PathBuf,
    },
    /// A file or device in a temporary guest.
    Guest {
        /// Path of the file or device in the guest.
        path: PathBuf,
    },
}

/// Creates the symbolic link `name` to `to` in the work directory, so that load generators need not handle unusual or
/// hostile paths. Replaces an existing link that has another destination.
///
/// # Errors
/// The link cannot be created.
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
    /// Returns a target for an open file or device, and creates the symbolic link `name` to it in the work directory.
    ///
    /// # Errors
    /// The link cannot be created.
    pub fn held(work: &Path, name: &str, held: &Held) -> Result<Self, EngineError> {
        Ok(Self::File {
            dir: None,
            link: link(work, name, &held.through())?,
            state: read_file_state(held),
        })
    }

    /// Like [`LoadTarget::held`], for a file that assay created in a directory where no other user can replace it.
    ///
    /// # Errors
    /// The link cannot be created.
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

    /// Returns the state of the file after it was laid out; `None` for other targets.
    #[must_use]
    pub fn state(&self) -> Option<&FileState> {
        match self {
            Self::File { state, .. } => state.as_ref(),
            _ => None,
        }
    }
}

/// Reads the state of a file. Returns `None` for a device, which has no such state.
fn read_file_state(held: &Held) -> Option<FileState> {
    let state = file_state::look(held.file()).ok();
    state.filter(|state| state.size.0 > 0)
}
