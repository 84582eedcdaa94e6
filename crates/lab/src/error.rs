//! Errors of guests and images, with advice for the user.

use assay_qemu::QmpError;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An error of a library or another machine, or a description.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Why an image, a guest, or an answer of a guest is missing.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file or directory of assay cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error that this machine's kernel returned.
        source: io::Error,
    },
    /// The directory of the guest registry cannot be used.
    #[error(
        "{}: {source}; assay enters its guests there: set ASSAY_STATE to a directory that you may write",
        path.display()
    )]
    State {
        /// Path of the registry's directory.
        path: PathBuf,
        /// Error that the kernel returned.
        source: io::Error,
    },
    /// The machine returned an error or an unexpected answer.
    #[error(transparent)]
    Host(#[from] assay_host::HostError),
    /// A program on the host is not installed.
    #[error("{tool} is not installed: `apt install {package}`")]
    Missing {
        /// Name of the missing program.
        tool: &'static str,
        /// Debian package that contains the program.
        package: &'static str,
    },
    /// Guests support only x86-64, and this machine has another architecture.
    #[error("guests are x86-64 and need an x86-64 machine; this one is {0}")]
    Architecture(&'static str),
    /// assay contains no guest agent, because the static C library was missing when assay was compiled.
    #[error(
        "this assay was built without its guest agent, which only that for x86_64 has: there install the static C library (Debian: libc6-dev, Fedora: glibc-static) and build assay again"
    )]
    NoAgent,
    /// Building an image needs root, or a user with subordinate ids.
    #[error(
        "building the guest image needs root, or subordinate ids (the package uidmap, and lines for you in /etc/subuid and /etc/subgid): {0}; run `sudo assay lab build` once, or install them; ASSAY_LAB_CACHE names where the image is kept"
    )]
    NotRoot(String),
    /// The build runs as root, but without a permission that it needs.
    #[error(
        "building the guest image needs namespaces and mounts of its own, and this machine does not allow them, as in a container: {0}; build it elsewhere and copy it (ASSAY_LAB_CACHE names where it is kept)"
    )]
    Namespaces(String),
    /// The packages for the image cannot be downloaded.
    #[error(
        "the Debian mirror {mirror} cannot be reached: {said}; building the guest image needs it once (assay takes the mirror that apt uses here)"
    )]
    Mirror {
        /// URL of the Debian mirror.
        mirror: String,
        /// Error message that apt printed.
        said: String,
    },
    /// The disk became full before the build ended.
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
        /// Path of the image directory.
        path: PathBuf,
        /// Error that the kernel returned.
        source: io::Error,
    },
    /// A guest did not reboot; contains the reason.
    #[error("the guest does not reboot: {0}; `assay lab reboot --reset` does not ask it")]
    Reboot(String),
    /// A snapshot could not be saved or restored; contains the reason.
    #[error("no snapshot: {0}")]
    Snapshot(String),
    /// The directory of the image lacks a file.
    #[error(
        "{} is no whole guest image: {} is missing or empty; remove that directory, then `assay lab build` makes the image, or copy it once more",
        path.display(), missing.file_name().unwrap_or_default().display()
    )]
    Damaged {
        /// Path of the image's directory.
        path: PathBuf,
        /// Name of the missing or empty file.
        missing: PathBuf,
    },
    /// A packed image cannot be installed.
    #[error(
        "{}: {reason}; `assay lab pack FILE` of the same version makes such a file",
        path.display()
    )]
    Packed {
        /// Path of the packed image.
        path: PathBuf,
        /// Why the image cannot be installed.
        reason: String,
    },
    /// Other users may change the images, so they are not trustworthy.
    #[error(
        "{source}; guests boot from images that are kept there, so nobody else may change them: make it yours alone (chown, chmod go-w), or set ASSAY_LAB_CACHE to a directory that is"
    )]
    NotOurs {
        /// Error that contains the path, and who may change it.
        source: assay_host::HostError,
    },
    /// The directory of guest images cannot be determined, because the environment variables are missing.
    #[error(
        "neither HOME nor XDG_CACHE_HOME is set; set ASSAY_LAB_CACHE to a directory for the guest image"
    )]
    NoCache,
    /// A directory has too little free space.
    #[error(
        "{}: {} MiB free, {} MiB needed; free some space, or set {variable} to a directory with more",
        path.display(), free >> 20, need >> 20
    )]
    Space {
        /// Path of a directory on the full file system.
        path: PathBuf,
        /// Number of free bytes.
        free: u64,
        /// Number of bytes that are needed.
        need: u64,
        /// Environment variable that selects another directory.
        variable: &'static str,
    },
    /// mmdebstrap could not build the image.
    #[error("the guest image could not be built: {reason}\n{log}\nthe whole log: {}", path.display())]
    Build {
        /// Short reason why the build failed.
        reason: String,
        /// The last lines of mmdebstrap's log.
        log: String,
        /// Path of mmdebstrap's log.
        path: PathBuf,
    },
    /// The user interrupted the operation.
    #[error("interrupted; nothing is left behind")]
    Interrupted,
    /// QEMU did not start; contains the error.
    #[error("QEMU did not start: {0}")]
    Qemu(#[source] Cause),
    /// The guest did not boot.
    #[error("the guest did not come up: {why}{}", format_console_tail(console))]
    Boot {
        /// Why the boot failed: a panic, a timeout, or the end of QEMU.
        why: String,
        /// Last lines of the guest's console.
        console: String,
    },
    /// The guest has ended.
    #[error("the guest is gone: {why}{}", format_console_tail(console))]
    Gone {
        /// Why the guest ended, such as a panic, lack of memory or a kill.
        why: String,
        /// Last lines of the guest's console.
        console: String,
    },
    /// The guest runs but does not answer.
    #[error("the guest has not answered for {} s: {why}; `assay lab down` removes one that stays{}", after.as_secs(), format_console_tail(console))]
    Silent {
        /// How long assay waited for an answer.
        after: Duration,
        /// Why the guest does not answer, as far as the console shows it.
        why: String,
        /// Last lines of the guest's console.
        console: String,
    },
    /// All channels to the guest are in use; contains their number.
    #[error("all {0} channels to the guest are in use; end another `assay lab run` or `ssh`")]
    Busy(usize),
    /// No guest has this name.
    #[error("there is no guest {name}; {}", list_running(running))]
    NoGuest {
        /// The name that the user entered.
        name: String,
        /// Names of the running guests.
        running: Vec<String>,
    },
    /// Another guest already has this name.
    #[error("there is a guest {0} already: `assay lab down --guest {0}`, or choose another name")]
    Taken(String),
    /// This name is not valid for a guest.
    #[error("{0:?} is no name for a guest: letters, digits and dashes, at most 32")]
    Name(String),
    /// A command in the guest took too long.
    #[error("{argv}: no end after {} s: killed", limit.as_secs_f32())]
    Timeout {
        /// The command line that took too long.
        argv: String,
        /// The time limit of the command.
        limit: Duration,
    },
    /// The guest has no such command.
    #[error("{0}: command not found in the guest")]
    NoCommand(String),
    /// The guest's kernel refused an operation.
    #[error("{}: {reason} (in the guest)", path.display())]
    Refused {
        /// Path that the operation was about.
        path: PathBuf,
        /// Error number of the guest's kernel, 0 if there is none.
        errno: i32,
        /// Error message of the guest's kernel.
        reason: String,
    },
    /// The output of a command or file is too long.
    #[error("{what}: more than {} MiB", limit >> 20)]
    TooMuch {
        /// The command or path whose output is too long.
        what: String,
        /// Maximum length of the output in bytes.
        limit: usize,
    },
    /// QEMU's monitor refused a command, or is gone.
    #[error(transparent)]
    Qmp(#[from] QmpError),
    /// A program cannot be copied into a guest.
    #[error("{} cannot come along into the guest: {source}", path.display())]
    Tool {
        /// Path of the program on the host.
        path: PathBuf,
        /// Why the program cannot be copied.
        source: Cause,
    },
    /// A disk is not possible with these settings, or on this machine.
    #[error("disk {name}: {source}")]
    Disk {
        /// Name of the disk that cannot be used.
        name: String,
        /// Why the disk is not possible, and what the user can do.
        source: Cause,
    },
}

impl LabError {
    /// Returns a closure for `map_err` that adds `path` to an I/O error.
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
