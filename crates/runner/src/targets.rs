//! Whether a target may be used, and for what: said before anything is touched.

use crate::claim::{Claim, claim};
use assay_facts::TargetError;
use assay_host::Host;
use assay_model::plan::Plan;
use assay_model::target::TargetKind;
use assay_model::{Bytes, TargetInfo};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What the user allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// `--destroy-data`: overwrite the files and devices that are named as targets.
    pub destroy_data: bool,
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
        "{target}: cannot write there ({reason}); assay needs a directory in which it can make a test file of its own"
    )]
    NotWritable {
        /// Target.
        target: String,
        /// The kernel's answer.
        reason: String,
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
    /// A device was named by a link.
    #[error(
        "{target} is a link to {device}: with --destroy-data, name the device itself, so that there is no doubt which one is overwritten"
    )]
    NotExact {
        /// Target.
        target: String,
        /// The device.
        device: String,
    },
    /// A device is in use, or that could not be ruled out.
    #[error("{target} will not be overwritten: {reasons}")]
    InUse {
        /// Target.
        target: String,
        /// All reasons.
        reasons: String,
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
    /// Where it really is.
    pub path: PathBuf,
    /// Size of the whole file or device, of which `info.size` is measured.
    pub whole: Bytes,
    /// Held until the run ends.
    pub held: Held,
}

/// What keeps others off a target.
#[derive(Debug)]
pub(crate) struct Held {
    _measuring: Claim,
    /// A device that will be overwritten, opened with O_EXCL, so that nobody mounts it or adds it to
    /// an array in between.
    _device: Option<File>,
}

/// Stays free on the file system: 5 % of the test file and at least 64 MiB.
fn spare(size: Bytes) -> Bytes {
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
    let mut checked: Vec<Checked> = Vec::new();
    for target in &plan.targets {
        let one = check_one(host, plan, target, permission)?;
        if let Some(other) = checked.iter().find(|other| other.path == one.path) {
            let (first, second) = (other.info.name.clone(), target.clone());
            return Err(TargetRefused::Same { first, second });
        }
        checked.push(one);
    }
    Ok(checked)
}

fn check_one(
    host: &dyn Host,
    plan: &Plan,
    target: &str,
    permission: Permission,
) -> Result<Checked, TargetRefused> {
    let name = target.to_owned();
    let path = Path::new(target);
    let Ok(real) = path.canonicalize() else {
        return Err(TargetRefused::Missing { target: name });
    };
    let mut info = assay_facts::target(host, &real)?;
    info.name = name.clone();
    let mut device = None;
    let mut whole = plan.file_size;
    match info.kind {
        TargetKind::Directory => {
            info.size = plan.file_size;
            scratch_fits(&info, &real)?;
        }
        TargetKind::File | TargetKind::BlockDevice => {
            let block = plan
                .workloads
                .iter()
                .map(|w| w.block_size)
                .max()
                .unwrap_or_default();
            if info.size < block {
                let size = info.size;
                return Err(TargetRefused::TooSmall {
                    target: name,
                    size,
                    block,
                });
            }
            whole = info.size;
            info.size = Bytes(info.size.0.min(plan.file_size.0));
            if plan.writes() {
                device = destroyable(host, plan, &info, path, &real, permission)?;
            }
        }
    }
    Ok(Checked {
        held: Held {
            _measuring: claim(&real, target)?,
            _device: device,
        },
        info,
        whole,
        path: real,
    })
}

/// Whether a scratch file of `info.size` may be made in the directory.
///
/// # Errors
/// It may not be written to, or there is no room.
pub fn scratch_fits(info: &TargetInfo, real: &Path) -> Result<(), TargetRefused> {
    writable(real, &info.name)?;
    space(info)
}

fn writable(real: &Path, name: &str) -> Result<(), TargetRefused> {
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(real, access).map_err(|error| TargetRefused::NotWritable {
        target: name.to_owned(),
        reason: std::io::Error::from(error).to_string(),
    })
}

fn space(info: &TargetInfo) -> Result<(), TargetRefused> {
    let Some(free) = info.free else { return Ok(()) };
    let spare = spare(info.size);
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

fn destroyable(
    host: &dyn Host,
    plan: &Plan,
    info: &TargetInfo,
    path: &Path,
    real: &Path,
    permission: Permission,
) -> Result<Option<File>, TargetRefused> {
    let target = info.name.clone();
    let device = info.kind == TargetKind::BlockDevice;
    if !permission.destroy_data {
        let what = if device { "a block device" } else { "a file" };
        return Err(TargetRefused::WouldDestroy {
            target,
            what,
            plan: plan.name.clone(),
        });
    }
    if !device {
        return Ok(None);
    }
    if path.is_symlink() {
        let device = real.display().to_string();
        return Err(TargetRefused::NotExact { target, device });
    }
    assay_facts::device_use(host, real).map_err(|in_use| TargetRefused::InUse {
        target: target.clone(),
        reasons: in_use.reasons.join("; "),
    })?;
    let flags = i32::try_from(rustix::fs::OFlags::EXCL.bits()).unwrap_or(0);
    let held = File::options().read(true).custom_flags(flags).open(real);
    held.map(Some).map_err(|error| TargetRefused::InUse {
        target,
        reasons: format!("it was taken by something else just now: {error}"),
    })
}
