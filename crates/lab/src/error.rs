//! Errors of guests and images, with advice for the user.

use assay_qemu::QmpError;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An error of a library or another machine, or a description.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Reasons why an image, a guest, or an answer of a guest is missing.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file or directory of assay cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path.
        path: PathBuf,
        /// Error of the kernel of this machine.
        source: io::Error,
    },
    /// The directory of the guest registry cannot be used.
    #[error(
        "{}: {source}; assay enters its guests there: set ASSAY_STATE to a directory that you may write",
        path.display()
    )]
    State {
        /// The directory.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The machine returned an error or an unexpected answer.
    #[error(transparent)]
    Host(#[from] assay_host::HostError),
    /// A program is not installed.
    #[error("{tool} is not installed: `apt install {package}`")]
    Missing {
        /// The program.
        tool: &'static str,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// Guests support only one architecture.
    #[error("guests are x86-64 and need an x86-64 machine; this one is {0}")]
    Architecture(&'static str),
    /// The static C library was missing when assay was compiled.
    #[error(
        "this assay was built without its guest agent, which only that for x86_64 has: there install the static C library (Debian: libc6-dev, Fedora: glibc-static) and build assay again"
    )]
    NoAgent,
    /// Building needs root, or a user with subordinate ids.
    #[error(
        "building the guest image needs root, or subordinate ids (the package uidmap, and lines for you in /etc/subuid and /etc/subgid): {0}; run `sudo assay lab build` once, or install them; ASSAY_LAB_CACHE names where the image is kept"
    )]
    NotRoot(String),
    /// Root lacks a permission that the build needs.
    #[error(
        "building the guest image needs namespaces and mounts of its own, and this machine does not allow them, as in a container: {0}; build it elsewhere and copy it (ASSAY_LAB_CACHE names where it is kept)"
    )]
    Namespaces(String),
    /// The packages cannot be downloaded.
    #[error(
        "the Debian mirror {mirror} cannot be reached: {said}; building the guest image needs it once (assay takes the mirror that apt uses here)"
    )]
    Mirror {
        /// URL of the mirror.
        mirror: String,
        /// Error message of apt.
        said: String,
    },
    /// The disk was full before the build ended.
    #[error(
        "no room for the guest image: {0}; free some space, or set ASSAY_LAB_CACHE to a directory with more"
    )]
    Full(String),
    /// The directory for images cannot be used.
    #[error(
        "{}: {source}; there is no guest image in it yet: set ASSAY_LAB_CACHE to a directory that can be written to",
        path.display()
    )]
    Cache {
        /// The directory.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A guest did not reboot.
    #[error("the guest does not reboot: {0}; `assay lab reboot --reset` does not ask it")]
    Reboot(String),
    /// A snapshot could not be saved or restored.
    #[error("no snapshot: {0}")]
    Snapshot(String),
    /// The directory of the image is incomplete.
    #[error(
        "{} is no whole guest image: {} is missing or empty; remove that directory, then `assay lab build` makes the image, or copy it once more",
        path.display(), missing.file_name().unwrap_or_default().display()
    )]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// Missing file.
        missing: PathBuf,
    },
    /// A packed image cannot be installed.
    #[error(
        "{}: {reason}; `assay lab pack FILE` of the same version makes such a file",
        path.display()
    )]
    Packed {
        /// The file.
        path: PathBuf,
        /// Reason why the image cannot be installed.
        reason: String,
    },
    /// Another user may change the images.
    #[error(
        "{source}; guests boot from images that are kept there, so nobody else may change them: make it yours alone (chown, chmod go-w), or set ASSAY_LAB_CACHE to a directory that is"
    )]
    NotOurs {
        /// The path, and who may change it.
        source: assay_host::HostError,
    },
    /// The directory for images cannot be determined from the environment.
    #[error(
        "neither HOME nor XDG_CACHE_HOME is set; set ASSAY_LAB_CACHE to a directory for the guest image"
    )]
    NoCache,
    /// There is not enough space.
    #[error(
        "{}: {} MiB free, {} MiB needed; free some space, or set {variable} to a directory with more",
        path.display(), free >> 20, need >> 20
    )]
    Space {
        /// Directory.
        path: PathBuf,
        /// Free bytes.
        free: u64,
        /// Needed bytes.
        need: u64,
        /// Environment variable that selects another directory.
        variable: &'static str,
    },
    /// mmdebstrap failed.
    #[error("the guest image could not be built: {reason}\n{log}\nthe whole log: {}", path.display())]
    Build {
        /// Short reason.
        reason: String,
        /// The last lines of the log.
        log: String,
        /// Path of the log.
        path: PathBuf,
    },
    /// The user stopped the operation.
    #[error("interrupted; nothing is left behind")]
    Interrupted,
    /// QEMU did not start.
    #[error("QEMU did not start: {0}")]
    Qemu(#[source] Cause),
    /// The guest did not boot.
    #[error("the guest did not come up: {why}{}", format_console_tail(console))]
    Boot {
        /// Panic, timeout, or end of QEMU.
        why: String,
        /// Last lines of the guest's console.
        console: String,
    },
    /// The guest has ended.
    #[error("the guest is gone: {why}{}", format_console_tail(console))]
    Gone {
        /// Panic, out of memory, killed.
        why: String,
        /// Last lines of the guest's console.
        console: String,
    },
    /// The guest runs but does not answer.
    #[error("the guest has not answered for {} s: {why}; `assay lab down` removes one that stays{}", after.as_secs(), format_console_tail(console))]
    Silent {
        /// Waiting time.
        after: Duration,
        /// Reason, as far as the console shows it.
        why: String,
        /// Last lines of the guest's console.
        console: String,
    },
    /// All channels are in use.
    #[error("all {0} channels to the guest are in use; end another `assay lab run` or `ssh`")]
    Busy(usize),
    /// No guest has this name.
    #[error("there is no guest {name}; {}", list_running(running))]
    NoGuest {
        /// The name.
        name: String,
        /// Names of the running guests.
        running: Vec<String>,
    },
    /// The name is already used.
    #[error("there is a guest {0} already: `assay lab down --guest {0}`, or choose another name")]
    Taken(String),
    /// The name is invalid.
    #[error("{0:?} is no name for a guest: letters, digits and dashes, at most 32")]
    Name(String),
    /// The command took too long.
    #[error("{argv}: no end after {} s: killed", limit.as_secs_f32())]
    Timeout {
        /// The command line.
        argv: String,
        /// The limit.
        limit: Duration,
    },
    /// The guest has no such command.
    #[error("{0}: command not found in the guest")]
    NoCommand(String),
    /// The guest's kernel refused an operation.
    #[error("{}: {reason} (in the guest)", path.display())]
    Refused {
        /// The path.
        path: PathBuf,
        /// Error number, 0 if there is none.
        errno: i32,
        /// Description.
        reason: String,
    },
    /// The output is too long.
    #[error("{what}: more than {} MiB", limit >> 20)]
    TooMuch {
        /// The command or path.
        what: String,
        /// Limit in bytes.
        limit: usize,
    },
    /// QEMU's monitor refused a command, or is gone.
    #[error(transparent)]
    Qmp(#[from] QmpError),
    /// A program cannot be copied into a guest.
    #[error("{} cannot come along into the guest: {source}", path.display())]
    Tool {
        /// The program.
        path: PathBuf,
        /// Reason.
        source: Cause,
    },
    /// A disk is impossible.
    #[error("disk {name}: {source}")]
    Disk {
        /// Name of the disk.
        name: String,
        /// Reason, and what the user can do.
        source: Cause,
    },
}

impl LabError {
    /// Returns a closure for `map_err` that adds a path.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

fn format_console_tail(console: &str) -> String {
    match console.is_empty() {
        true => "; its console said nothing".to_owned(),
        false => format!("\nits console said last:\n{console}"),
    }
}

fn list_running(running: &[String]) -> String {
    match running {
        [] => "none is running: `assay lab up` starts one".to_owned(),
        names => format!("running: {}", names.join(", ")),
    }
}
