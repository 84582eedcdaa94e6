//! Checks whether a target may be used, and for which loads. Nothing is changed before these checks.

use crate::runner::target_lock::{Claim, Key, take};
use assay_facts::TargetError;
use assay_host::held::{Access, Directory, Held, Identity};
use assay_host::{Host, HostError};
use assay_model::plan::Plan;
use assay_model::target::is_url;
use assay_model::{Bytes, TargetInfo};
use std::error::Error;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Permissions that the user gave on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// `--destroy-data`: overwrite files and devices that the user named as targets, if they contain only zeroes.
    pub destroy_data: bool,
    /// `--destroy-unknown-data`: overwrite files and devices that the user named as targets, even if they contain
    /// unrecognised data.
    pub destroy_unknown_data: bool,
}

/// Reason why a target was refused. Each message contains the target and a way to proceed.
#[derive(Debug, thiserror::Error)]
pub enum TargetRefused {
    /// The user named no target.
    #[error("name a directory to measure, such as `assay run quick .`")]
    None,
    /// The target does not exist.
    #[error(
        "{target}: there is no such file or directory; fio would create it and measure whatever is mounted above: create it, or check that the file system is mounted"
    )]
    Missing {
        /// Target as the user named it.
        target: String,
    },
    /// The storage layers below the target cannot be determined.
    #[error(transparent)]
    Unreadable(#[from] TargetError),
    /// assay cannot write to the target, because the target is read-only or the permission is missing.
    #[error(
        "{target}: cannot write there ({source}); assay needs a directory in which it can make a test file of its own"
    )]
    NotWritable {
        /// Target as the user named it.
        target: String,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The file system has too little free space.
    #[error(
        "{target}: the test file needs {needed} and {spare} must stay free, but {free} is free: use a smaller --size (at most {most}) or another directory"
    )]
    NoSpace {
        /// Target as the user named it.
        target: String,
        /// Size of the test file.
        needed: Bytes,
        /// Number of bytes that must stay free on the file system.
        spare: Bytes,
        /// Number of free bytes on the file system.
        free: Bytes,
        /// Largest test file that would be accepted.
        most: Bytes,
    },
    /// The plan would write to data of the user.
    #[error(
        "{target} is {what} of yours and the plan `{plan}` writes: name a directory instead (assay then makes and removes a file of its own), use a plan that only reads, or say --destroy-data if everything in it may be lost"
    )]
    WouldDestroy {
        /// Target as the user named it.
        target: String,
        /// Kind of the target: `a file` or `a block device`.
        what: &'static str,
        /// Name of the plan.
        plan: String,
    },
    /// The target is a symbolic link to a file or device.
    #[error(
        "{target} is a link to {device}: with --destroy-data, name that itself, so that there is no doubt which one is overwritten"
    )]
    NotExact {
        /// Target as the user named it, which is the symbolic link.
        target: String,
        /// Destination of the link: the file or device.
        device: String,
    },
    /// The target is in use, contains data that the user did not release, or could not be checked.
    #[error("{target} will not be overwritten: {refused}")]
    InUse {
        /// Target as the user named it.
        target: String,
        /// All reasons why the target will not be overwritten.
        #[source]
        refused: assay_facts::overwrite::OverwriteRefused,
    },
    /// The target cannot be opened.
    #[error("{0}")]
    NotOpened(#[source] HostError),
    /// The target was replaced during the check.
    #[error(
        "{target} changed while it was looked at ({source}): see what happens there, and start again"
    )]
    Changed {
        /// Target as the user named it.
        target: String,
        /// Difference from the object that was checked.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another assay process measures the target.
    #[error(
        "{target} is being measured by another assay{by}, and two would measure each other: wait for it to end"
    )]
    Measured {
        /// Target as the user named it.
        target: String,
        /// Description of the process that measures the target; empty if unknown.
        by: String,
    },
    /// The target is not a directory, a file or a block device.
    #[error("{target} is neither a directory, a regular file nor a block device")]
    WrongKind {
        /// Target as the user named it.
        target: String,
    },
    /// The target is too small for the plan.
    #[error(
        "{target} has {size}, less than one block of {block}: use a smaller block size or a larger file"
    )]
    TooSmall {
        /// Target as the user named it.
        target: String,
        /// Size of the target in bytes.
        size: Bytes,
        /// Size of the largest block in the plan.
        block: Bytes,
    },
    /// The target is a web server, and the load is for files.
    #[error(
        "{target} is a web server, and `{workload}` of the plan `{plan}` works on files: name a directory, or use the plan `http`"
    )]
    NotFiles {
        /// Target as the user named it.
        target: String,
        /// Name of the workload.
        workload: String,
        /// Name of the plan.
        plan: String,
    },
    /// The target is not a web server, and the load is for web servers.
    #[error(
        "{target} is no web server, and `{workload}` of the plan `{plan}` asks one: name a URL as target, or give the load its url"
    )]
    NoServer {
        /// Target as the user named it.
        target: String,
        /// Name of the workload.
        workload: String,
        /// Name of the plan.
        plan: String,
    },
    /// Two names refer to the same target.
    #[error("{first} and {second} are the same place: name it once")]
    Same {
        /// The name that the user gave first.
        first: String,
        /// The name that the user gave second.
        second: String,
    },
}

/// A target that passed all checks.
#[derive(Debug)]
pub(crate) struct Checked {
    /// Description of the target and of the storage layers below it.
    pub info: TargetInfo,
    /// Resolved path, from which facts are read; I/O uses [`Checked::place`]. For a web server, its URL.
    pub path: PathBuf,
    /// Size of the whole file or device in bytes. Only the first `info.size` bytes are measured.
    pub whole: Bytes,
    /// The open target until the end of the run; `None` for a web server, whose name the load resolves.
    pub place: Option<Place>,
    /// Lock that keeps other assay processes from measuring the target.
    pub measuring: Claim,
}

/// An open target, whose name was resolved only once.
#[derive(Debug)]
pub(crate) enum Place {
    /// A directory in which assay creates a file.
    Directory(Arc<Directory>),
    /// A file or block device of the user. A device that will be overwritten is opened exclusively, so that no other
    /// program can mount it or add it to an array.
    File(Held),
}

impl Place {
    fn identity(&self) -> Result<Identity, HostError> {
        match self {
            Self::Directory(directory) => directory.identity(),
            Self::File(held) => Ok(held.identity()),
        }
    }

    pub(crate) fn key(&self) -> Result<Key, rustix::io::Errno> {
        match self {
            Self::Directory(directory) => Key::of(directory),
            Self::File(held) => Key::of(held.file()),
        }
    }
}

/// Returns how many bytes must stay free on the file system: 5 % of the test file, at least 64 MiB.
fn spare_space(size: Bytes) -> Bytes {
    Bytes((size.0 / 20).max(64 << 20))
}

/// Checks all targets of a plan.
pub(crate) fn check(
    host: &dyn Host,
    plan: &Plan,
    permission: Permission,
) -> Result<Vec<Checked>, TargetRefused> {
    if plan.targets.is_empty() {
        return Err(TargetRefused::None);
    }
    let mut checked: Vec<(Key, Checked)> = Vec::new();
    for target in &plan.targets {
        suits(plan, target)?;
        let (place, path) = match is_url(target) {
            true => (None, PathBuf::from(target)),
            false => {
                let (place, path) = open(host, plan, target, permission)?;
                (Some(place), path)
            }
        };
        let key = match &place {
            Some(place) => place.key().map_err(|error| target_changed(target, error))?,
            None => Key::of_server(target),
        };
        if let Some((_, other)) = checked.iter().find(|(other, _)| *other == key) {
            let (first, second) = (other.info.name.clone(), target.clone());
            return Err(TargetRefused::Same { first, second });
        }
        let measuring = take(&key, target)?;
        let one = match place {
            Some(place) => check_size(host, plan, target, place, path, measuring)?,
            None => {
                let info = TargetInfo::server(&assay_model::secrets::withhold_in_text(target));
                Checked {
                    info,
                    path,
                    whole: Bytes(0),
                    place: None,
                    measuring,
                }
            }
        };
        checked.push((key, one));
    }
    Ok(checked.into_iter().map(|(_, one)| one).collect())
}

/// Checks that the target is of the kind that every load of the plan needs.
fn suits(plan: &Plan, target: &str) -> Result<(), TargetRefused> {
    let url = is_url(target);
    let misfit = plan.workloads.iter().find(|planned| match url {
        true => planned.fio().is_some(),
        false => planned.load.http().is_some_and(|http| http.url.is_empty()),
    });
    let Some(misfit) = misfit else { return Ok(()) };
    let (target, plan) = (target.to_owned(), plan.name.clone());
    let workload = misfit.name.clone();
    Err(match url {
        true => TargetRefused::NotFiles {
            target,
            workload,
            plan,
        },
        false => TargetRefused::NoServer {
            target,
            workload,
            plan,
        },
    })
}

pub(crate) fn target_changed(
    target: &str,
    found: impl Into<Box<dyn Error + Send + Sync>>,
) -> TargetRefused {
    TargetRefused::Changed {
        target: target.to_owned(),
        source: found.into(),
    }
}

/// Opens the target. Returns the open target and its resolved path.
fn open(
    host: &dyn Host,
    plan: &Plan,
    target: &str,
    permission: Permission,
) -> Result<(Place, PathBuf), TargetRefused> {
    let (real, kind) = find(target)?;
    let file = kind.is_block_device() || kind.is_file();
    let place = match plan.writes() && file {
        true => {
            let device = kind.is_block_device();
            let held = check_overwritable(host, plan, target, device, &real, permission)?;
            Place::File(held)
        }
        false => hold(target, &real, kind)?,
    };
    Ok((place, real))
}

/// Returns the resolved path of a target and its type.
fn find(target: &str) -> Result<(PathBuf, FileType), TargetRefused> {
    let missing = |_| TargetRefused::Missing {
        target: target.to_owned(),
    };
    let real = Path::new(target).canonicalize().map_err(missing)?;
    let kind = real.metadata().map_err(missing)?.file_type();
    Ok((real, kind))
}

/// Opens a directory, or opens a file or device that the plan only reads.
fn hold(target: &str, real: &Path, kind: FileType) -> Result<Place, TargetRefused> {
    let held = match () {
        () if kind.is_dir() => {
            Directory::open(real).map(|directory| Place::Directory(Arc::new(directory)))
        }
        () if kind.is_block_device() => Held::device(real).map(Place::File),
        () if kind.is_file() => Held::open(real, Access::Read).map(Place::File),
        () => {
            return Err(TargetRefused::WrongKind {
                target: target.to_owned(),
            });
        }
    };
    held.map_err(|error| match error.is_absent() {
        true => TargetRefused::Missing {
            target: target.to_owned(),
        },
        false => TargetRefused::NotOpened(error),
    })
}

/// Opens a directory, or opens a file or device for reading. Also finds the storage layers below the target.
pub(crate) fn look(host: &dyn Host, target: &str) -> Result<(Place, TargetInfo), TargetRefused> {
    let (real, kind) = find(target)?;
    let place = hold(target, &real, kind)?;
    let info = read_layers_below(host, target, &place, &real)?;
    Ok((place, info))
}

/// Finds the storage layers below a target that is open at `path`.
fn read_layers_below(
    host: &dyn Host,
    target: &str,
    place: &Place,
    path: &Path,
) -> Result<TargetInfo, TargetRefused> {
    let mut info = assay_facts::target(host, path)?;
    // The object checked by name must be the open one.
    let (held, named) = (place.identity(), assay_host::held::read_identity(path));
    match (held, named) {
        (Ok(held), Ok(named)) if held == named => {}
        (Err(error), _) | (_, Err(error)) => return Err(target_changed(target, error)),
        _ => return Err(target_changed(target, "something else has its name now")),
    }
    target.clone_into(&mut info.name);
    Ok(info)
}

/// Checks the size of an open target, and finds the storage layers below it.
fn check_size(
    host: &dyn Host,
    plan: &Plan,
    target: &str,
    place: Place,
    path: PathBuf,
    measuring: Claim,
) -> Result<Checked, TargetRefused> {
    let mut info = read_layers_below(host, target, &place, &path)?;
    let mut whole = plan.file_size;
    match &place {
        Place::Directory(directory) if plan.needs_file() => {
            info.size = plan.file_size;
            scratch_fits(&info, &directory.through())?;
        }
        Place::Directory(_) => whole = info.size,
        Place::File(_) => {
            let blocks = plan
                .workloads
                .iter()
                .filter_map(|load| Some(load.fio()?.block_size));
            let block = blocks.max().unwrap_or_default();
            if info.size < block {
                return Err(TargetRefused::TooSmall {
                    target: target.to_owned(),
                    size: info.size,
                    block,
                });
            }
            whole = info.size;
            info.size = Bytes(info.size.0.min(plan.file_size.0));
        }
    }
    Ok(Checked {
        info,
        path,
        whole,
        place: Some(place),
        measuring,
    })
}

/// Checks that a scratch file of `info.size` can be created in the directory.
pub(crate) fn scratch_fits(info: &TargetInfo, real: &Path) -> Result<(), TargetRefused> {
    writable(real, &info.name)?;
    space(info)
}

fn writable(real: &Path, name: &str) -> Result<(), TargetRefused> {
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(real, access).map_err(|error| TargetRefused::NotWritable {
        target: name.to_owned(),
        source: error.into(),
    })
}

fn space(info: &TargetInfo) -> Result<(), TargetRefused> {
    let Some(free) = info.free else { return Ok(()) };
    let spare = spare_space(info.size);
    if info.size.0.saturating_add(spare.0) <= free.0 {
        return Ok(());
    }
    let most = (free.0.saturating_sub(64 << 20)).min(free.0 / 21 * 20) >> 20 << 20;
    Err(TargetRefused::NoSpace {
        target: info.name.clone(),
        needed: info.size,
        spare,
        free,
        most: Bytes(most),
    })
}

fn check_overwritable(
    host: &dyn Host,
    plan: &Plan,
    target: &str,
    device: bool,
    real: &Path,
    permission: Permission,
) -> Result<Held, TargetRefused> {
    let name = target.to_owned();
    if !permission.destroy_data {
        let what = if device { "a block device" } else { "a file" };
        return Err(TargetRefused::WouldDestroy {
            target: name,
            what,
            plan: plan.name.clone(),
        });
    }
    let path = Path::new(target);
    if path.is_symlink() {
        return Err(TargetRefused::NotExact {
            target: name,
            device: real.display().to_string(),
        });
    }
    let unknown = permission.destroy_unknown_data;
    let held = match device {
        true => assay_facts::overwrite::device(host, real, unknown),
        false => assay_facts::overwrite::file(host, path, unknown),
    };
    held.map_err(|refused| TargetRefused::InUse {
        target: name,
        refused,
    })
}
