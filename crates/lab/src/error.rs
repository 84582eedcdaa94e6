//! What can go wrong with a guest, each with the way out.

use assay_qemu::QmpError;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a library or another machine said, or was found instead.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Why there is no image, no guest, or no answer from it.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file or directory of ours refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Guests cannot be entered.
    #[error(
        "{}: {source}; assay enters its guests there: set ASSAY_STATE to a directory that you may write",
        path.display()
    )]
    State {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The machine gave no answer, or another one than expected.
    #[error(transparent)]
    Host(#[from] assay_host::HostError),
    /// A program is not installed.
    #[error("{tool} is not installed: `apt install {package}`")]
    Missing {
        /// The program.
        tool: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// Guests exist for one architecture.
    #[error("guests are x86-64 and need an x86-64 machine; this one is {0}")]
    Architecture(&'static str),
    /// The static C library was missing when assay was built.
    #[error(
        "this assay was built without its guest agent, which only that for x86_64 has: there install the static C library (Debian: libc6-dev, Fedora: glibc-static) and build assay again"
    )]
    NoAgent,
    /// Only root can unpack a system, or a user with subordinate ids.
    #[error(
        "building the guest image needs root, or subordinate ids (the package uidmap, and lines for you in /etc/subuid and /etc/subgid): {0}; run `sudo assay lab build` once, or install them; ASSAY_LAB_CACHE names where the image is kept"
    )]
    NotRoot(String),
    /// Root is not allowed what a build needs.
    #[error(
        "building the guest image needs namespaces and mounts of its own, and this machine does not allow them, as in a container: {0}; build it elsewhere and copy it (ASSAY_LAB_CACHE names where it is kept)"
    )]
    Namespaces(String),
    /// The packages cannot be fetched.
    #[error(
        "the Debian mirror {mirror} cannot be reached: {said}; building the guest image needs it once (assay takes the mirror that apt uses here)"
    )]
    Mirror {
        /// Where from.
        mirror: String,
        /// What apt said.
        said: String,
    },
    /// The disk was full before the build ended.
    #[error(
        "no room for the guest image: {0}; free some space, or set ASSAY_LAB_CACHE to a directory with more"
    )]
    Full(String),
    /// The directory for images refused.
    #[error(
        "{}: {source}; there is no guest image in it yet: set ASSAY_LAB_CACHE to a directory that can be written to",
        path.display()
    )]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A guest did not start anew.
    #[error("the guest does not reboot: {0}; `assay lab reboot --reset` does not ask it")]
    Reboot(String),
    /// A moment of a guest was not kept, or not gone back to.
    #[error("no snapshot: {0}")]
    Snapshot(String),
    /// What lies where the image is kept is not one.
    #[error(
        "{} is no whole guest image: {} is missing or empty; remove that directory, then `assay lab build` makes the image, or copy it once more",
        path.display(), missing.file_name().unwrap_or_default().display()
    )]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// What is not there.
        missing: PathBuf,
    },
    /// Somebody else may change the images.
    #[error(
        "{source}; guests boot from images that are kept there, so nobody else may change them: make it yours alone (chown, chmod go-w), or set ASSAY_LAB_CACHE to a directory that is"
    )]
    NotOurs {
        /// What, and who may.
        source: assay_host::HostError,
    },
    /// Nobody said where images are kept.
    #[error(
        "neither HOME nor XDG_CACHE_HOME is set; set ASSAY_LAB_CACHE to a directory for the guest image"
    )]
    NoCache,
    /// No room.
    #[error(
        "{}: {} MiB free, {} MiB needed; free some space, or set {variable} to a directory with more",
        path.display(), free >> 20, need >> 20
    )]
    Space {
        /// Where.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that are needed.
        need: u64,
        /// The environment variable that moves it elsewhere.
        variable: &'static str,
    },
    /// mmdebstrap failed.
    #[error("the guest image could not be built: {reason}\n{log}\nthe whole log: {}", path.display())]
    Build {
        /// In short.
        reason: String,
        /// The last lines of the log.
        log: String,
        /// The log.
        path: PathBuf,
    },
    /// The user stopped it.
    #[error("interrupted; nothing is left behind")]
    Interrupted,
    /// QEMU did not start.
    #[error("QEMU did not start: {0}")]
    Qemu(#[source] Cause),
    /// The guest did not come up.
    #[error("the guest did not come up: {why}{}", format_console_tail(console))]
    Boot {
        /// Panic, timeout, end of QEMU.
        why: String,
        /// The last lines of its console.
        console: String,
    },
    /// The guest is gone.
    #[error("the guest is gone: {why}{}", format_console_tail(console))]
    Gone {
        /// Panic, out of memory, killed.
        why: String,
        /// The last lines of its console.
        console: String,
    },
    /// The guest is there but does not answer.
    #[error("the guest has not answered for {} s: {why}; `assay lab down` removes one that stays{}", after.as_secs(), format_console_tail(console))]
    Silent {
        /// How long it was waited for.
        after: Duration,
        /// As far as its console tells.
        why: String,
        /// The last lines of its console.
        console: String,
    },
    /// All channels are in use.
    #[error("all {0} channels to the guest are in use; end another `assay lab run` or `ssh`")]
    Busy(usize),
    /// No guest has that name.
    #[error("there is no guest {name}; {}", list_running(running))]
    NoGuest {
        /// The name.
        name: String,
        /// The names that there are.
        running: Vec<String>,
    },
    /// The name is taken.
    #[error("there is a guest {0} already: `assay lab down --guest {0}`, or choose another name")]
    Taken(String),
    /// Not a name for a guest.
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
    /// The guest's kernel refused.
    #[error("{}: {reason} (in the guest)", path.display())]
    Refused {
        /// What was asked for.
        path: PathBuf,
        /// Its number, 0 when there is none.
        errno: i32,
        /// In words.
        reason: String,
    },
    /// More output than anyone reads.
    #[error("{what}: more than {} MiB", limit >> 20)]
    TooMuch {
        /// The command or path.
        what: String,
        /// Bytes.
        limit: usize,
    },
    /// QEMU's monitor refused a command, or is gone.
    #[error(transparent)]
    Qmp(#[from] QmpError),
    /// A program that cannot be brought into a guest.
    #[error("{} cannot come along into the guest: {source}", path.display())]
    Tool {
        /// The program.
        path: PathBuf,
        /// Why.
        source: Cause,
    },
    /// A disk that cannot be had.
    #[error("disk {name}: {source}")]
    Disk {
        /// Its name.
        name: String,
        /// Why, and what would do.
        source: Cause,
    },
}

impl LabError {
    /// For `map_err`: an error about a path.
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
