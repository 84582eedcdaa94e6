//! Privileges for building an image. The build runs as root, or as an ordinary user who is root in a user namespace.

use crate::error::LabError;
use assay_host::{Host as _, Limits, LiveHost};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Arguments of unshare(1) for the namespaces of a build. When the first process in them ends, all mounts and processes
/// of the build end.
const OWN: [&str; 7] = [
    "--mount",
    "--propagation",
    "private",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];
/// Options that map the user to root, and the subordinate ids (subuid(5)) to all other ids (unshare(1), util-linux
/// 2.38).
const MAPPED: [&str; 3] = ["--user", "--map-root-user", "--map-auto"];

/// How a build gets root privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builder {
    /// assay itself runs as root.
    Root,
    /// The build runs in a user namespace in which the user is mapped to root.
    Mapped,
}

impl Builder {
    /// Returns the builder for the current user.
    pub(crate) fn of_us() -> Self {
        match rustix::process::geteuid().is_root() {
            true => Self::Root,
            false => Self::Mapped,
        }
    }

    /// Returns the arguments for unshare(1) that precede the command.
    pub(crate) fn namespaces(self) -> Vec<&'static str> {
        let mapped: &[&str] = match self {
            Self::Root => &[],
            Self::Mapped => &MAPPED,
        };
        [mapped, &OWN].concat()
    }

    /// Creates the namespaces as a test, so that a build that cannot work fails early.
    ///
    /// # Errors
    /// The kernel or newuidmap(1) returns an error.
    pub(crate) fn check(self) -> Result<(), LabError> {
        let limits = Limits {
            timeout: Duration::from_secs(60),
        };
        let namespaces = self.namespaces();
        let words = ["unshare"].iter().chain(&namespaces).chain(&["true"]);
        let argv: Vec<_> = words.map(OsStr::new).collect();
        let refused = match LiveHost.run(&argv, limits) {
            Ok(output) if output.success() => return Ok(()),
            Ok(output) => output.complaint(),
            Err(error) => error.to_string(),
        };
        Err(match self {
            Self::Root => LabError::Namespaces(refused),
            Self::Mapped => LabError::NotRoot(refused),
        })
    }

    /// Removes a build directory with the privileges of the build, because the user cannot delete files of subordinate
    /// ids directly.
    pub(crate) fn remove(self, dir: &Path) {
        if fs::remove_dir_all(dir).is_ok() || self == Self::Root {
            return;
        }
        let words = ["unshare"]
            .iter()
            .chain(&MAPPED)
            .chain(&["rm", "-rf", "--"]);
        let mut argv: Vec<_> = words.map(OsStr::new).collect();
        argv.push(dir.as_os_str());
        let limits = Limits {
            timeout: Duration::from_secs(300),
        };
        // Remaining files are removed by the next build.
        let _ = LiveHost.run(&argv, limits);
    }
}

/// Finds an error in mmdebstrap's log that was caused by the machine or the network, and not by the recipe of the
/// image. Returns `None` if there is no known error.
pub(crate) fn find_refusal(log: &str, mirror: &str) -> Option<LabError> {
    let line = |words: &[&str]| {
        let found = |line: &&str| words.iter().any(|word| line.contains(word));
        log.lines().find(found).map(|line| line.trim().to_owned())
    };
    let network = [
        "Temporary failure resolving",
        "Could not resolve",
        "Could not connect",
        "Unable to connect",
        "Connection failed",
        "Connection timed out",
        "Failed to fetch",
    ];
    if let Some(said) = line(&network) {
        let mirror = mirror.to_owned();
        return Some(LabError::Mirror { mirror, said });
    }
    line(&["No space left on device"]).map(LabError::Full)
}
