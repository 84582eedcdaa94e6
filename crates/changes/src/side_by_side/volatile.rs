//! A file on a disk with a volatile write cache, for image servers and loop devices. QEMU's storage daemon
//! exports the disk ([`crate::side_by_side::nbd::disk`]) as a file with FUSE. Each write and each fsync of the
//! file reaches the disk as one request, and root is not required.

use crate::side_by_side::ArmError;
use crate::side_by_side::child::{Program, Running};
use crate::side_by_side::nbd::Disk;
use crate::side_by_side::teardown::Things;
use crate::side_by_side::tool::storage_daemon;
use crate::{Made, MadeId};
use assay_loads::Cancel;
use serde_json::json;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

const DISK: &str = "disk.sock";
const MOUNTPOINT: &str = "disk";
/// Name of the directory that contains both files.
const PLACE: &str = "volatile";

/// A file on such a disk: unflushed data is lost at a power cut.
pub(crate) struct VolatileFile {
    disk: Disk,
    daemon: Running,
    mount: MadeId,
    /// Path of the file's permanent contents while it is mounted.
    kept: PathBuf,
    path: PathBuf,
    mountpoint: PathBuf,
}

/// The file after its last use. The contents after power cuts at successive moments can be computed from it.
pub(crate) struct AfterCut {
    disk: Disk,
    file: File,
    path: PathBuf,
    from: usize,
}

impl VolatileFile {
    /// Moves an existing file of the arm to a disk with a volatile write cache, and mounts this disk.
    pub fn mount(
        things: &mut Things<'_>,
        dir: &Path,
        name: &str,
        cancel: &Cancel,
    ) -> Result<Self, ArmError> {
        let daemon = storage_daemon(things.host)?;
        // As root libfuse mounts directly, otherwise with this helper.
        if !rustix::process::geteuid().is_root()
            && things.host.which(OsStr::new("fusermount3")).is_none()
        {
            return Err(ArmError::Missing {
                program: "fusermount3, which the durability proof needs,".to_owned(),
                debian: "fuse3",
                fedora: "fuse3",
            });
        }
        let [path, kept, now, log] = [name, "kept", "now", "log"].map(|name| dir.join(name));
        // A mount is found by its path after a crash, so it is in a directory where no other user can rename
        // anything.
        let left = things.kept(PLACE);
        if things.host.exists(&left)? {
            // Remains of an interrupted attempt; the removal fails if something is still mounted.
            things.host.remove_tree(&left)?;
        }
        let place = things.keep(PLACE)?;
        let [mountpoint, socket] = [MOUNTPOINT, DISK].map(|name| place.join(name));
        let open = |path: &Path| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            options.open(path).map_err(ArmError::io(path))
        };
        fs::rename(&path, &kept).map_err(ArmError::io(&kept))?;
        copy(&kept, &now).map_err(ArmError::io(&now))?;
        let disk = Disk::serve(&socket, open(&now)?, open(&log)?).map_err(ArmError::io(&socket))?;
        drop(open(&mountpoint)?);
        symlink(&mountpoint, &path).map_err(ArmError::io(&path))?;
        let found = mountpoint.metadata();
        let before = found.map_err(ArmError::io(&mountpoint))?.dev();
        let mount = things.enter(&Made::Mount {
            mountpoint: mountpoint.clone(),
        })?;
        let program = Program {
            path: &daemon,
            dir: &place,
            log: "disk.log",
        };
        let node = json!({
            "driver": "nbd",
            "node-name": "disk",
            "server": { "type": "unix", "path": DISK },
            "export": "disk",
            "discard": "unmap",
        });
        let export = json!({
            "type": "fuse",
            "id": "file",
            "node-name": "disk",
            "mountpoint": MOUNTPOINT,
            "writable": true,
        });
        let args = [
            "--blockdev".to_owned(),
            node.to_string(),
            "--export".to_owned(),
            export.to_string(),
        ];
        let mut daemon = things.start(&program, &args)?;
        daemon.wait_until(cancel, || {
            mountpoint
                .metadata()
                .is_ok_and(|found| found.dev() != before)
        })?;
        Ok(Self {
            disk,
            daemon,
            mount,
            kept,
            path,
            mountpoint,
        })
    }

    /// Returns the mounted file; while it is mounted, its former name is a symbolic link to it.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Returns the number of events so far; it identifies a moment for a power cut.
    pub fn moment(&self) -> usize {
        self.disk.moment()
    }

    /// Ends the use of the file. The file has its initial contents until [`AfterCut::cut`] is called.
    pub fn unmount(self, things: &mut Things<'_>) -> Result<AfterCut, ArmError> {
        drop(self.daemon);
        things.remove(self.mount)?;
        let place = self.mountpoint.parent().unwrap_or(Path::new("/"));
        things.host.remove_tree(place)?;
        fs::rename(&self.kept, &self.path).map_err(ArmError::io(&self.path))?;
        let file = File::options().write(true).open(&self.path);
        Ok(AfterCut {
            disk: self.disk,
            file: file.map_err(ArmError::io(&self.path))?,
            path: self.path,
            from: 0,
        })
    }
}

impl AfterCut {
    /// Gives the file the contents that it would have after a power cut at `moment`. Moments must not decrease from
    /// call to call.
    pub fn cut(&mut self, moment: usize) -> Result<(), ArmError> {
        let cut = self.disk.cut(&self.file, self.from, moment);
        self.from = cut.map_err(ArmError::io(&self.path))?;
        Ok(())
    }
}

/// Copies a file and keeps its holes.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let to = File::options().write(true).create_new(true).open(to)?;
    to.set_len(from.metadata()?.len())?;
    let mut data = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let read = from.read(&mut data)?;
        if read == 0 {
            return Ok(());
        }
        if data[..read].iter().any(|byte| *byte != 0) {
            to.write_all_at(&data[..read], at)?;
        }
        at += read as u64;
    }
}
