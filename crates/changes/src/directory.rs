//! A private directory of assay inside a directory that another user may own.

use crate::error::ChangeError;
use crate::session::{ChangeSession, MadeId};
use crate::temporary_objects::Made;
use assay_host::HostMut;
use assay_host::held::Directory;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A directory that only this user may enter, accessed through an open file descriptor. The owner of the parent
/// directory may rename or replace it at any time, so assay does not use its path. For an object that needs a stable
/// path, such as a mount, use [`ChangeSession::dir`] instead.
#[derive(Debug)]
pub struct OwnDirectory {
    /// Number of the directory in the session's journal.
    pub id: MadeId,
    /// The open directory, with its file descriptor.
    pub held: Directory,
    through: PathBuf,
    shown: PathBuf,
    name: OsString,
}

impl OwnDirectory {
    /// Returns a path through the file descriptor, for programs and for inspection. The path is valid while this value
    /// exists.
    #[must_use]
    pub fn through(&self) -> &Path {
        &self.through
    }

    /// Returns the path at creation, with symbolic links resolved; for messages and for the journal.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Returns the directory's name, which contains the session's tag.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }
}

impl ChangeSession {
    /// Creates a directory in `above`. The journal records the directory before it is created, and its
    /// identity before anything is put into it.
    ///
    /// # Errors
    /// The name exists already, the directory cannot be created, or the journal cannot be written.
    pub fn own_directory(
        &self,
        host: &dyn HostMut,
        above: &Path,
        name: &str,
    ) -> Result<OwnDirectory, ChangeError> {
        let above = Directory::open(above)?;
        let name = self.name(name);
        // Returns the present path of the held directory; the journal needs a path without symbolic links.
        let shown = host.realpath(&above.through())?.join(&name);
        let made = Made::Directory(shown.clone());
        // Checked before the journal entry, because recovery removes every recorded object, also after a
        // failure.
        if above.look(&name)?.is_some() {
            let reason = "there is something of that name already";
            return Err(ChangeError::refused(made.to_string(), reason));
        }
        let id = self.made(&made)?;
        let held = above.make_known::<ChangeError>(&name, &mut |held| {
            above.sync()?;
            self.identify(id, held)
        });
        let held = match held {
            Ok(held) => held,
            Err(error) => {
                // If the removal fails, the directory stays in the journal.
                let _ = self.unmake(host, id);
                return Err(error);
            }
        };
        Ok(OwnDirectory {
            id,
            through: held.through(),
            held,
            shown,
            name,
        })
    }
}
