//! The objects created for one arm. Each object is recorded in the journal first, and they are removed in reverse
//! order.
//!
//! The directory that the user specifies may belong to another user, who can rename and replace its entries. Therefore
//! assay accesses the arm's directory through a file descriptor, no other user may enter the directory, and all paths
//! below it begin at the descriptor. Some paths are reported by the kernel to other programs, such as the path of a
//! mount. Such an object is created in the session's own directory instead.

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

/// The arm's directory and all objects that belong to the arm.
pub(crate) struct Things<'a> {
    pub host: &'a dyn HostMut,
    session: &'a ChangeSession,
    own: OwnDirectory,
    made: Vec<MadeId>,
}

impl<'a> Things<'a> {
    /// Creates the arm's directory, for this user only.
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

    /// Returns a path through the file descriptor, for programs and for inspection.
    pub fn dir(&self) -> &Path {
        self.own.through()
    }

    /// Returns the session's tag, which is part of the name of every recorded object.
    pub fn tag(&self) -> String {
        self.session.tag()
    }

    /// Returns the arm's name with the tag, not hidden, such as `assay-0123456789abcdef-now`.
    pub fn tagged(&self) -> String {
        let name = self.own.name().to_string_lossy();
        name.trim_start_matches('.').to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.own.through().join(name)
    }

    /// Returns the path of the arm's directory at its creation.
    pub fn shown(&self) -> &Path {
        self.own.shown()
    }

    /// Replaces the descriptor's path in an error by the directory's real name.
    pub fn named(&self, error: ArmError) -> ArmError {
        error.named(self.dir(), self.shown())
    }

    /// Creates an empty file in the arm's directory.
    pub fn create(&self, name: &str) -> Result<Held, ArmError> {
        Ok(self.own.held.create(OsStr::new(name))?)
    }

    /// Returns a path in the session's directory, for an object whose path must stay valid. No other user can rename
    /// anything in this directory.
    pub fn kept(&self, name: &str) -> PathBuf {
        self.session.dir().join(self.own.name()).join(name)
    }

    /// As [`Things::kept`], but creates the directory at the path if it is missing.
    pub fn keep(&self, name: &str) -> Result<PathBuf, ArmError> {
        let dir = self.kept(name);
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir);
        made.map_err(ArmError::io(&dir))?;
        Ok(dir)
    }

    /// Attaches a loop device to an open file with the path `shown`. `lasting` means that the file will still have this
    /// path when the device is detached. Without `lasting`, no other program may rename the file.
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

    /// Returns a random seed that differs between arms, so that a file system with deduplication finds no equal blocks
    /// in them.
    pub fn seed(&self) -> u64 {
        // FNV-1a.
        let bytes = self.own.shown().as_os_str().as_encoded_bytes();
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Fails if fewer than `needed` bytes are free.
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

    /// Records an object that is about to be created.
    pub fn enter(&mut self, thing: &Made) -> Result<MadeId, ArmError> {
        let id = self.session.made(thing)?;
        self.made.push(id);
        Ok(id)
    }

    /// Removes one object now, before all other objects.
    pub fn remove(&mut self, id: MadeId) -> Result<(), ArmError> {
        self.session.unmake(self.host, id)?;
        self.made.retain(|other| *other != id);
        Ok(())
    }

    /// Runs a function in a new directory inside the arm's directory. Afterwards removes everything that the function
    /// created, whatever its result.
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
            // Never removes files through a mount that could not be unmounted.
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
            // An object that cannot be removed stays in the journal; closing the session retries.
            let _ = self.session.unmake(self.host, id);
        }
        // The directory of mount points. It stays if something is still mounted there, and mounted files are
        // never removed.
        let kept = self.session.dir().join(self.own.name());
        for entry in fs::read_dir(&kept).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(kept);
    }
}
