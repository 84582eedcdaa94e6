//! Whether a target may be used, and for what: said before anything is touched.

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

/// What the user allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// `--destroy-data`: overwrite the files and devices that are named as targets, when nothing but
    /// zeroes is found on them.
    pub destroy_data: bool,
    /// `--destroy-unknown-data`: also when there is something that assay does not know to be unused.
    pub destroy_unknown_data: bool,
}

/// Why a target was refused. Each names the target and the way out.
#[derive(Debug, thiserror::Error)]
pub enum TargetRefused {
    /// No target at all.
    #[error("name a directory to measure, such as `assay run quick .`")]
    None,
    /// Nothing is there.
    #[error(
        "{target}: there is no such file or directory; fio would create it and measure whatever is mounted above: create it, or check that the file system is mounted"
    )]
    Missing {
        /// Target.
        target: String,
    },
    /// Its layers could not be found out.
    #[error(transparent)]
    Unreadable(#[from] TargetError),
    /// Read-only, or no permission.
    #[error(
        "{target}: cannot write there ({source}); assay needs a directory in which it can make a test file of its own"
    )]
    NotWritable {
        /// Target.
        target: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// No room.
    #[error(
        "{target}: the test file needs {needed} and {spare} must stay free, but {free} is free: use a smaller --size (at most {most}) or another directory"
    )]
    NoSpace {
        /// Target.
        target: String,
        /// Size of the test file.
        needed: Bytes,
        /// What must stay free.
        spare: Bytes,
        /// Free bytes.
        free: Bytes,
        /// Largest size that would be accepted.
        most: Bytes,
    },
    /// The plan writes to data of the user's.
    #[error(
        "{target} is {what} of yours and the plan `{plan}` writes: name a directory instead (assay then makes and removes a file of its own), use a plan that only reads, or say --destroy-data if everything in it may be lost"
    )]
    WouldDestroy {
        /// Target.
        target: String,
        /// `a file` or `a block device`.
        what: &'static str,
        /// Plan.
        plan: String,
    },
    /// A file or device was named by a link.
    #[error(
        "{target} is a link to {device}: with --destroy-data, name that itself, so that there is no doubt which one is overwritten"
    )]
    NotExact {
        /// Target.
        target: String,
        /// The file or device.
        device: String,
    },
    /// It is in use, holds data that nobody gave up, or that could not be ruled out.
    #[error("{target} will not be overwritten: {refused}")]
    InUse {
        /// Target.
        target: String,
        /// All reasons.
        #[source]
        refused: assay_facts::overwrite::OverwriteRefused,
    },
    /// It cannot be opened.
    #[error("{0}")]
    NotOpened(#[source] HostError),
    /// Somebody exchanged it while it was looked at.
    #[error(
        "{target} changed while it was looked at ({source}): see what happens there, and start again"
    )]
    Changed {
        /// Target.
        target: String,
        /// What was found.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another assay measures it.
    #[error(
        "{target} is being measured by another assay{by}, and two would measure each other: wait for it to end"
    )]
    Measured {
        /// Target.
        target: String,
        /// Which process, when that is known.
        by: String,
    },
    /// Neither directory, file nor block device.
    #[error("{target} is neither a directory, a regular file nor a block device")]
    WrongKind {
        /// Target.
        target: String,
    },
    /// Too small for the plan.
    #[error(
        "{target} has {size}, less than one block of {block}: use a smaller block size or a larger file"
    )]
    TooSmall {
        /// Target.
        target: String,
        /// Its size.
        size: Bytes,
        /// Largest block of the plan.
        block: Bytes,
    },
    /// A web server, and a load that is not for one.
    #[error(
        "{target} is a web server, and `{workload}` of the plan `{plan}` works on files: name a directory, or use the plan `http`"
    )]
    NotFiles {
        /// Target.
        target: String,
        /// Workload.
        workload: String,
        /// Plan.
        plan: String,
    },
    /// A directory, and a load that is for a web server.
    #[error(
        "{target} is no web server, and `{workload}` of the plan `{plan}` asks one: name a URL as target, or give the load its url"
    )]
    NoServer {
        /// Target.
        target: String,
        /// Workload.
        workload: String,
        /// Plan.
        plan: String,
    },
    /// Two names for one place.
    #[error("{first} and {second} are the same place: name it once")]
    Same {
        /// First name.
        first: String,
        /// Second name.
        second: String,
    },
}

/// A target that may be used.
#[derive(Debug)]
pub(crate) struct Checked {
    /// What it is and what lies below.
    pub info: TargetInfo,
    /// Where it really is, for facts; what is read and written is [`Checked::place`]. Of a web server
    /// its URL.
    pub path: PathBuf,
    /// Size of the whole file or device, of which `info.size` is measured.
    pub whole: Bytes,
    /// The target itself, held until the run ends; none for a web server, which whoever loads it has
    /// looked up.
    pub place: Option<Place>,
    /// Keeps other assays off.
    pub measuring: Claim,
}

/// A target that is held: its name was looked up once and is not looked up again.
#[derive(Debug)]
pub(crate) enum Place {
    /// A directory, in which assay makes a file of its own.
    Directory(Arc<Directory>),
    /// A file or block device of the user's. A device that will be overwritten is held exclusively,
    /// so that nobody mounts it or adds it to an array in between.
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

/// Stays free on the file system: 5 % of the test file and at least 64 MiB.
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

/// Whether every load that works on the target can.
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

/// Looks the target up, once. Says where it really is, too.
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

/// Where a target really is, and what.
fn find(target: &str) -> Result<(PathBuf, FileType), TargetRefused> {
    let missing = |_| TargetRefused::Missing {
        target: target.to_owned(),
    };
    let real = Path::new(target).canonicalize().map_err(missing)?;
    let kind = real.metadata().map_err(missing)?.file_type();
    Ok((real, kind))
}

/// Opens a target that is a directory, or that is only read.
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

/// Opens a target that is a directory, or that is only read, and finds out what lies below it.
pub(crate) fn look(host: &dyn Host, target: &str) -> Result<(Place, TargetInfo), TargetRefused> {
    let (real, kind) = find(target)?;
    let place = hold(target, &real, kind)?;
    let info = read_layers_below(host, target, &place, &real)?;
    Ok((place, info))
}

/// What lies below a target that is held at `path`.
fn read_layers_below(
    host: &dyn Host,
    target: &str,
    place: &Place,
    path: &Path,
) -> Result<TargetInfo, TargetRefused> {
    let mut info = assay_facts::target(host, path)?;
    // What was looked at by name must be what is held.
    let (held, named) = (place.identity(), assay_host::held::read_identity(path));
    match (held, named) {
        (Ok(held), Ok(named)) if held == named => {}
        (Err(error), _) | (_, Err(error)) => return Err(target_changed(target, error)),
        _ => return Err(target_changed(target, "something else has its name now")),
    }
    target.clone_into(&mut info.name);
    Ok(info)
}

/// Whether it is large enough, and what lies below it.
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

/// Whether a scratch file of `info.size` may be made in the directory.
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
