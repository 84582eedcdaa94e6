//! What was made for one arm: entered in the journal first, taken away in the opposite order.

use crate::child::{Program, Running};
use crate::{ArmError, Place};
use assay_changes::{Made, MadeId, Session};
use assay_host::{HostMut, ProcessId};
use assay_model::Bytes;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The arm's directory and everything that hangs on it.
pub(crate) struct Things<'a> {
    pub host: &'a dyn HostMut,
    session: &'a Session,
    dir: PathBuf,
    made: Vec<MadeId>,
}

impl<'a> Things<'a> {
    /// Makes the arm's directory, for this user alone.
    pub fn new(
        host: &'a dyn HostMut,
        session: &'a Session,
        place: &Place,
    ) -> Result<Self, ArmError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if place.name.is_empty() || !place.name.chars().all(plain) {
            return Err(ArmError::Refused {
                what: format!("an arm named `{}`", place.name.escape_debug()),
                reason: "the name of an arm consists of letters, digits, `-` and `_`".to_owned(),
            });
        }
        // Absolute and without links: the kernel tells mounts and loop devices so.
        let parent = host.realpath(&place.dir)?;
        let mut things = Self {
            host,
            session,
            dir: parent.join(session.name(&place.name)),
            made: Vec::new(),
        };
        // Looked at first: what is entered is removed again, also after a failure.
        if host.exists(&things.dir)? {
            return Err(ArmError::Refused {
                what: things.dir.display().to_string().escape_debug().to_string(),
                reason: "there is an arm of that name here already".to_owned(),
            });
        }
        things.enter(&Made::Directory(things.dir.clone()))?;
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&things.dir)
            .map_err(ArmError::io(&things.dir))?;
        Ok(things)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The session's mark, which the name of everything that is entered holds.
    pub fn tag(&self) -> String {
        self.session.tag()
    }

    /// The arm's name with the mark, not hidden: `assay-0123456789abcdef-now`.
    pub fn tagged(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
        name.trim_start_matches('.').to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Differs between arms, whose data therefore differ too: a file system that stores equal
    /// blocks once must not see any.
    pub fn seed(&self) -> u64 {
        // FNV-1a.
        let bytes = self.dir.as_os_str().as_encoded_bytes();
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Refuses when less than this is free.
    pub fn room(&self, needed: Bytes) -> Result<(), ArmError> {
        let free = Bytes(self.host.statfs(&self.dir)?.available);
        match free < needed {
            true => Err(ArmError::Space {
                dir: self.dir.clone(),
                needed,
                free,
            }),
            false => Ok(()),
        }
    }

    /// Writes down what is about to be made.
    pub fn enter(&mut self, thing: &Made) -> Result<MadeId, ArmError> {
        let id = self.session.made(thing)?;
        self.made.push(id);
        Ok(id)
    }

    /// Takes one thing away before all others.
    pub fn remove(&mut self, id: MadeId) -> Result<(), ArmError> {
        self.session.unmake(self.host, id)?;
        self.made.retain(|other| *other != id);
        Ok(())
    }

    /// Does something in a directory of its own inside the arm's, and takes away what it made,
    /// however it ended.
    pub fn aside<T>(
        &mut self,
        name: &str,
        needed: Bytes,
        act: impl FnOnce(&mut Self, &Path) -> Result<T, ArmError>,
    ) -> Result<T, ArmError> {
        self.room(needed)?;
        let dir = self.path(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(ArmError::io(&dir))?;
        let before = self.made.len();
        let done = act(self, &dir);
        let mut gone = Ok(());
        for id in self.made.split_off(before).into_iter().rev() {
            gone = gone.and(self.session.unmake(self.host, id));
        }
        let removed = match gone {
            // Never through a mount that did not go.
            Ok(()) => self.host.remove_tree(&dir).map_err(ArmError::from),
            Err(error) => Err(error.into()),
        };
        let result = done?;
        removed?;
        Ok(result)
    }

    /// Starts a server that ends with this arm, or with assay.
    pub fn start<S: AsRef<OsStr>>(
        &mut self,
        program: &Program<'_>,
        args: &[S],
    ) -> Result<Running, ArmError> {
        let running = program.start(args)?;
        if let Some(process) = ProcessId::of(running.pid()) {
            self.enter(&process.into())?;
        }
        Ok(running)
    }
}

impl Drop for Things<'_> {
    fn drop(&mut self) {
        for id in self.made.drain(..).rev() {
            // What does not go stays in the journal, and is tried again when the session is closed.
            let _ = self.session.unmake(self.host, id);
        }
    }
}
