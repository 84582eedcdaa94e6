//! Creates, names and finds the host files that contain a guest's disks.

use crate::disk::{Disk, DiskFormat, SECRET};
use crate::error::LabError;
use crate::sparse;
use crate::state::scratch_prefix;
use assay_host::held::{Directory, Held};
use assay_host::{CommandFailure, Host as _, Limits, LiveHost, run_successfully};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of a disk's files in the guest's directory.
const INSIDE: &str = "disk-";
/// Suffixes of a disk's files: data, initial content, log of writes.
const ENDINGS: [&str; 3] = ["img", "first", "log"];

/// Paths of a disk's files: its data and, if its writes are logged, the initial content and the log.
pub(crate) struct DiskFiles {
    pub(crate) data: PathBuf,
    pub(crate) logged: Option<Logged>,
}

/// Paths of the additional files of a disk whose writes are logged.
pub(crate) struct Logged {
    pub(crate) first: PathBuf,
    pub(crate) log: PathBuf,
}

impl DiskFiles {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let logged = self
            .logged
            .iter()
            .flat_map(|logged| [&logged.first, &logged.log]);
        std::iter::once(&self.data)
            .chain(logged)
            .map(PathBuf::as_path)
    }

    fn through(
        self,
        one: &mut dyn FnMut(&Path) -> Result<PathBuf, LabError>,
    ) -> Result<Self, LabError> {
        Ok(Self {
            data: one(&self.data)?,
            logged: match self.logged {
                None => None,
                Some(logged) => Some(Logged {
                    first: one(&logged.first)?,
                    log: one(&logged.log)?,
                }),
            },
        })
    }

    /// Returns the same files. For each file in `held`, the returned path leads through the open descriptor.
    pub(crate) fn held(self, held: &[Held]) -> Self {
        let found = |path: PathBuf| {
            let name = path.file_name();
            let file = held.iter().find(|file| file.shown().file_name() == name);
            file.map_or(path, Held::through)
        };
        Self {
            data: found(self.data),
            logged: self.logged.map(|logged| Logged {
                first: found(logged.first),
                log: found(logged.log),
            }),
        }
    }

    fn all(self) -> impl Iterator<Item = PathBuf> {
        let logged = self.logged.map(|logged| [logged.first, logged.log]);
        std::iter::once(self.data).chain(logged.into_iter().flatten())
    }
}

/// Files created for a disk. A file outside the guest's directory is kept open and used through its descriptor, because
/// the owner of its directory may replace the file.
pub(crate) struct Made {
    /// Paths under which QEMU opens the files.
    pub(crate) files: DiskFiles,
    pub(crate) held: Vec<Held>,
}

/// Returns the paths of a disk's files for the guest with the directory `guest`.
pub(crate) fn disk_file_names(guest: &Path, disk: &Disk) -> DiskFiles {
    if let Some(device) = &disk.device {
        return DiskFiles {
            data: device.clone(),
            logged: None,
        };
    }
    let (dir, prefix) = match &disk.dir {
        // The path for others: the directory may be named by a descriptor.
        Some(dir) => (
            LiveHost.realpath(dir).unwrap_or_else(|_| dir.clone()),
            scratch_prefix(guest),
        ),
        None => (guest.to_owned(), INSIDE.to_owned()),
    };
    let [data, first, log] = ENDINGS;
    let file = |ending: &str| dir.join(format!("{prefix}{}.{ending}", disk.name));
    DiskFiles {
        data: file(data),
        logged: disk.logged.then(|| Logged {
            first: file(first),
            log: file(log),
        }),
    }
}

/// Returns the files of a disk by its name. `outside` contains all files of the guest outside its directory.
pub(crate) fn find_disk_files(guest: &Path, disk: &str, outside: &[PathBuf]) -> Vec<PathBuf> {
    let files = |dir: &Path, prefix: &str| {
        ENDINGS.map(|ending| dir.join(format!("{prefix}{disk}.{ending}")))
    };
    let prefix = scratch_prefix(guest);
    let dirs = outside.iter().filter_map(|file| file.parent());
    let far: Vec<_> = dirs.flat_map(|dir| files(dir, &prefix)).collect();
    let far = outside.iter().filter(|file| far.contains(file)).cloned();
    files(guest, INSIDE).into_iter().chain(far).collect()
}

/// Returns the absolute paths of files outside the guest's directory.
pub(crate) fn list_outside_files(guest: &Path, disks: &[Disk]) -> Vec<PathBuf> {
    let outside = disks.iter().filter(|disk| disk.dir.is_some());
    outside
        .flat_map(|disk| disk_file_names(guest, disk).all())
        .collect()
}

/// Creates the files of a disk. A file that already exists belongs to another owner and is an error. For each file
/// outside the guest's directory, calls `known` with its identity before another user can rename it.
pub(crate) fn create(
    disk: &Disk,
    names: DiskFiles,
    known: &mut dyn FnMut(&Held) -> Result<(), LabError>,
) -> Result<Made, LabError> {
    let mut held = Vec::new();
    let files = match &disk.dir {
        None => {
            for path in names.paths().filter(|_| disk.device.is_none()) {
                File::create_new(path).map_err(LabError::io(path))?;
            }
            names
        }
        Some(dir) => {
            let above = Directory::open(dir)?;
            names.through(&mut |name| {
                let name = name.file_name().unwrap_or_default();
                let file = above.create_known(name, known)?;
                let through = file.through();
                held.push(file);
                Ok(through)
            })?
        }
    };
    write(disk, &files)?;
    Ok(Made { files, held })
}

/// Writes the initial content of a new disk.
fn write(disk: &Disk, files: &DiskFiles) -> Result<(), LabError> {
    if disk.device.is_none() {
        set_size(&files.data, disk.size)?;
    }
    if disk.format != DiskFormat::Raw {
        format(disk, &files.data)?;
    }
    if let Some(content) = &disk.content {
        sparse::copy(content, &files.data)?;
    }
    if let Some(Logged { first, .. }) = &files.logged {
        set_size(first, disk.size)?;
        if disk.format != DiskFormat::Raw || disk.content.is_some() {
            sparse::copy(&files.data, first)?;
        }
    }
    Ok(())
}

fn set_size(path: &Path, size: u64) -> Result<(), LabError> {
    let file = File::options().write(true).open(path);
    file.and_then(|file| file.set_len(size))
        .map_err(LabError::io(path))
}

/// Writes the metadata of the disk's image format.
fn format(disk: &Disk, path: &Path) -> Result<(), LabError> {
    let mut argv: Vec<OsString> = ["create", "-q", "-f"].map(OsString::from).into();
    argv.push(disk.format.name().into());
    match disk.format {
        DiskFormat::Raw => {}
        DiskFormat::Qcow2 {
            cluster,
            preallocated,
            extended_l2,
            lazy_refcounts,
        } => {
            let on = |flag| if flag { "on" } else { "off" };
            let preallocation = if preallocated { "metadata" } else { "off" };
            let options = format!(
                "cluster_size={cluster},preallocation={preallocation},extended_l2={},lazy_refcounts={}",
                on(extended_l2),
                on(lazy_refcounts)
            );
            argv.extend(["-o".into(), options.into()]);
        }
        DiskFormat::Luks => {
            // Short key derivation, because only reading and writing are measured.
            let secret = format!("secret,id=secret,data={SECRET}");
            let options = "key-secret=secret,iter-time=10";
            argv.extend([
                "--object".into(),
                secret.into(),
                "-o".into(),
                options.into(),
            ]);
        }
    }
    argv.extend([path.into(), disk.size.to_string().into()]);
    let mut made = qemu_img(&argv, &disk.name);
    // QEMU measures its key stretching with getrusage, and fails if a kernel that counts CPU time in ticks
    // reports none (crypto/pbkdf.c, qcrypto_pbkdf2_count_iters).
    for _ in 0..20 {
        match &made {
            Err(LabError::Disk { source, .. })
                if source.to_string().contains("accurate CPU usage") =>
            {
                made = qemu_img(&argv, &disk.name);
            }
            _ => break,
        }
    }
    made
}

/// Runs `qemu-img` for a disk. Fails with the message of `qemu-img`.
pub fn qemu_img(arguments: &[OsString], disk: &str) -> Result<(), LabError> {
    let mut argv = vec![OsStr::new("qemu-img")];
    argv.extend(arguments.iter().map(OsString::as_os_str));
    let limits = Limits {
        timeout: Duration::from_secs(300),
    };
    let missing = ("qemu-img", "qemu-utils");
    run_here(&argv, limits, missing, |reason| LabError::Disk {
        name: disk.to_owned(),
        source: reason.into(),
    })
}

/// Runs a host program that must succeed. `package` is the Debian package of the program.
///
/// # Errors
/// [`LabError::Missing`], or the error that `refused` returns.
pub fn run_here(
    argv: &[&OsStr],
    limits: Limits,
    (tool, package): (&'static str, &'static str),
    refused: impl FnOnce(String) -> LabError,
) -> Result<(), LabError> {
    match run_successfully(&LiveHost, argv, limits) {
        Ok(_) => Ok(()),
        Err(CommandFailure::NotInstalled) => Err(LabError::Missing { tool, package }),
        Err(failure) => Err(refused(failure.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disks_files_are_found_by_its_name_and_no_others() {
        let guest = Path::new("/state/lab/g");
        let mut near = Disk::scratch("d", 512);
        near.logged = true;
        let mut far = near.clone();
        far.dir = Some("/srv".into());
        let mut other = far.clone();
        other.name = "dd".to_owned();
        let outside = list_outside_files(guest, &[far.clone(), other]);
        assert_eq!(outside.len(), 6);
        let found = find_disk_files(guest, "d", &outside);
        let expected: Vec<_> = disk_file_names(guest, &near)
            .all()
            .chain(disk_file_names(guest, &far).all())
            .collect();
        assert_eq!(found, expected);
    }
}
