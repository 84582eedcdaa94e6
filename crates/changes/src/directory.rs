//! A directory of assay's own in a directory that somebody else may own.

use crate::error::ChangeError;
use crate::session::{ChangeSession, MadeId};
use crate::temporary_objects::Made;
use assay_host::HostMut;
use assay_host::held::Directory;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A directory that was made for this user alone, and is held. The owner of the directory above may
/// give its name to something else at any moment, so it is used through its descriptor; what needs a
/// path that stays, as a mount does, lies in [`Session::dir`] instead.
#[derive(Debug)]
pub struct OwnDirectory {
    /// Its number in the journal.
    pub id: MadeId,
    /// The directory.
    pub held: Directory,
    through: PathBuf,
    shown: PathBuf,
    name: OsString,
}

impl OwnDirectory {
    /// A path for programs and for looking, which leads to it as long as it is held.
    #[must_use]
    pub fn through(&self) -> &Path {
        &self.through
    }

    /// The path that it was made with, without links: for people and for the journal.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Its name, which holds the session's tag.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }
}

impl ChangeSession {
    /// Makes a directory in `above`, entered before it is made, and known by what it is before
    /// anything is in it.
    ///
    /// # Errors
    /// There is something of that name, it cannot be made, or the journal cannot be written.
    pub fn own_directory(
        &self,
        host: &dyn HostMut,
        above: &Path,
        name: &str,
    ) -> Result<OwnDirectory, ChangeError> {
        let above = Directory::open(above)?;
        let name = self.name(name);
        // What is held has this path now; the journal wants one without links.
        let shown = host.realpath(&above.through())?.join(&name);
        let made = Made::Directory(shown.clone());
        // Looked at first: what is entered is removed again, also after a failure.
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
                // What does not go stays in the journal.
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
