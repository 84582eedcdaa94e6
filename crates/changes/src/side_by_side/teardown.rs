//! What was made for one arm: entered in the journal first, taken away in the opposite order.
//!
//! The directory that the user named may belong to somebody who renames and replaces what lies in it.
//! So the arm's directory is held by its descriptor, nobody else may enter it, and every path below
//! leads through the descriptor. Whatever needs a path that the kernel tells others, which is a
//! mount, lies in the session's own directory instead.

use crate::side_by_side::child::{Program, Running};
use crate::side_by_side::endpoint::ArmSite;
use crate::side_by_side::error::ArmError;
use crate::{ChangeError, ChangeSession, Made, MadeId, OwnDirectory};
use assay_host::held::Held;
use assay_host::{HostMut, ProcessId, loops};
use assay_model::Bytes;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The arm's directory and everything that hangs on it.
pub(crate) struct Things<'a> {
    pub host: &'a dyn HostMut,
    session: &'a ChangeSession,
    own: OwnDirectory,
    made: Vec<MadeId>,
}

impl<'a> Things<'a> {
    /// Makes the arm's directory, for this user alone.
    pub fn new(
        host: &'a dyn HostMut,
        session: &'a ChangeSession,
        place: &ArmSite,
    ) -> Result<Self, ArmError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if place.name.is_empty() || !place.name.chars().all(plain) {
            return Err(ArmError::Refused {
                what: format!("an arm named `{}`", place.name.escape_debug()),
                source: "the name of an arm consists of letters, digits, `-` and `_`".into(),
            });
        }
        let own = session.own_directory(host, &place.dir, &place.name);
        let own = own.map_err(|error| match error {
            ChangeError::Refused { what, .. } => ArmError::Refused {
                what,
                source: "there is an arm of that name here already".into(),
            },
            error => error.into(),
        })?;
        Ok(Self {
            host,
            session,
            made: vec![own.id],
            own,
        })
    }

    /// Through the descriptor: for programs, and for looking at.
    pub fn dir(&self) -> &Path {
        self.own.through()
    }

    /// The session's mark, which the name of everything that is entered holds.
    pub fn tag(&self) -> String {
        self.session.tag()
    }

    /// The arm's name with the mark, not hidden: `assay-0123456789abcdef-now`.
    pub fn tagged(&self) -> String {
        let name = self.own.name().to_string_lossy();
        name.trim_start_matches('.').to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.own.through().join(name)
    }

    /// The arm's directory by the name that it was made with.
    pub fn shown(&self) -> &Path {
        self.own.shown()
    }

    /// An error with the arm's directory by the name that people know.
    pub fn named(&self, error: ArmError) -> ArmError {
        error.named(self.dir(), self.shown())
    }

    /// A new, empty file in the arm's directory.
    pub fn create(&self, name: &str) -> Result<Held, ArmError> {
        Ok(self.own.held.create(OsStr::new(name))?)
    }

    /// Where something of this arm lies that has to keep its path: in the session's directory, in
    /// which nobody else may rename anything.
    pub fn kept(&self, name: &str) -> PathBuf {
        self.session.dir().join(self.own.name()).join(name)
    }

    /// As [`Things::kept`], a directory, which is made when it is not there.
    pub fn keep(&self, name: &str) -> Result<PathBuf, ArmError> {
        let dir = self.kept(name);
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir);
        made.map_err(ArmError::io(&dir))?;
        Ok(dir)
    }

    /// Puts a loop device on an open file. `shown` is the file's name, which nobody else may change
    /// where the file is not `lasting`: where it may not answer any more when the device has to go.
    pub fn attach(
        &mut self,
        file: &File,
        shown: PathBuf,
        lasting: bool,
        direct: bool,
    ) -> Result<(MadeId, String), ArmError> {
        let id = self.enter(&Made::Loop { backing: shown })?;
        if lasting {
            self.session.identify(id, file)?;
        }
        let node = loops::attach(file, direct)?;
        Ok((id, node.display().to_string()))
    }

    /// Differs between arms, whose data therefore differ too: a file system that stores equal
    /// blocks once must not see any.
    pub fn seed(&self) -> u64 {
        // FNV-1a.
        let bytes = self.own.shown().as_os_str().as_encoded_bytes();
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Refuses when less than this is free.
    pub fn room(&self, needed: Bytes) -> Result<(), ArmError> {
        let free = Bytes(self.host.statfs(self.own.through())?.available);
        match free < needed {
            true => Err(ArmError::Space {
                dir: self.own.shown().to_owned(),
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
        // Mount points. What is still mounted keeps them, and nothing in them is touched.
        let kept = self.session.dir().join(self.own.name());
        for entry in fs::read_dir(&kept).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(kept);
    }
}
