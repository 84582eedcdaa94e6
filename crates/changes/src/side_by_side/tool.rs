//! Finds and runs the programs that arms need. Error messages contain the package of a missing program.

use crate::side_by_side::ArmError;
use assay_host::{CommandFailure, HostMut, Limits, run_successfully};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// Time limit for `zfs` and LVM commands, which wait for a transaction group or for udev.
const TOOL_LIMITS: Limits = Limits {
    timeout: Duration::from_secs(120),
};

/// Packages of Debian and Fedora that contain a program.
#[derive(Clone, Copy)]
pub(crate) struct Package {
    pub debian: &'static str,
    pub fedora: &'static str,
}

impl Package {
    fn missing(self, program: &str) -> ArmError {
        ArmError::Missing {
            program: program.to_owned(),
            debian: self.debian,
            fedora: self.fedora,
        }
    }
}

/// Finds the path of a program. The error contains its packages.
pub(crate) fn find(
    host: &dyn HostMut,
    program: &str,
    package: Package,
) -> Result<PathBuf, ArmError> {
    let found = host.which(OsStr::new(program));
    found.ok_or_else(|| package.missing(program))
}

/// Runs a command and returns its output. Fails if the command fails.
pub(crate) fn run(
    host: &dyn HostMut,
    argv: &[impl AsRef<OsStr>],
    package: Package,
) -> Result<String, ArmError> {
    let words: Vec<&OsStr> = argv.iter().map(AsRef::as_ref).collect();
    let program = words.first().map(|word| word.to_string_lossy());
    let program = program.unwrap_or_default();
    match run_successfully(host, &words, TOOL_LIMITS) {
        Ok(output) => Ok(output.text()),
        Err(CommandFailure::NotInstalled) => Err(package.missing(&program)),
        Err(CommandFailure::Host(error)) => Err(error.into()),
        Err(CommandFailure::Complaint(complaint)) => Err(ArmError::Tool {
            program: program.into_owned(),
            complaint,
        }),
    }
}

/// Finds QEMU's storage daemon, which has a monitor and exports disks as files.
pub(crate) fn storage_daemon(host: &dyn HostMut) -> Result<PathBuf, ArmError> {
    let package = Package {
        debian: "qemu-system-common",
        fedora: "qemu-storage-daemon",
    };
    find(host, "qemu-storage-daemon", package)
}
