//! A file on a disk with a volatile write cache, for whoever opens files: image servers and loop
//! devices. QEMU's storage daemon shows the disk ([`crate::side_by_side::nbd::disk`]) as a file by FUSE, so that
//! every write and every fsync of the file arrives at the disk as one, and no root is needed.

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
/// What the directory of both is kept as.
const PLACE: &str = "volatile";

/// A file that forgets what it was not told to keep.
pub(crate) struct VolatileFile {
    disk: Disk,
    daemon: Running,
    mount: MadeId,
    /// Where the file's lasting contents are while it is mounted.
    kept: PathBuf,
    path: PathBuf,
    mountpoint: PathBuf,
}

/// The same file after its last use, to cut the power at one moment after the other.
pub(crate) struct AfterCut {
    disk: Disk,
    file: File,
    path: PathBuf,
    from: usize,
}

impl VolatileFile {
    /// Puts an existing file of a directory of this arm on such a disk.
    pub fn mount(
        things: &mut Things<'_>,
        dir: &Path,
        name: &str,
        cancel: &Cancel,
    ) -> Result<Self, ArmError> {
        let daemon = storage_daemon(things.host)?;
        // libfuse mounts by itself as root, and by this helper otherwise.
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
        // A mount is found again by its path, so it lies where nobody else may rename anything.
        let left = things.kept(PLACE);
        if things.host.exists(&left)? {
            // Of an attempt that was interrupted; refused when it is still mounted.
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

    /// The file itself: the name that it had is a link to it as long as it is mounted.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// How much has happened: a moment to cut the power at.
    pub fn moment(&self) -> usize {
        self.disk.moment()
    }

    /// Ends its use. The file has the contents that it had before, until the power is cut.
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
    /// Gives the file the contents that a power cut at `moment` leaves; not earlier than the last
    /// one.
    pub fn cut(&mut self, moment: usize) -> Result<(), ArmError> {
        let cut = self.disk.cut(&self.file, self.from, moment);
        self.from = cut.map_err(ArmError::io(&self.path))?;
        Ok(())
    }
}

/// Copies a file, holes as holes.
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
