//! Where layers are created and measured: in a throwaway guest, or below a dataset that the user named.

use super::build::{LIMIT, POOL};
use crate::fio::{TARGET, Work};
use crate::guest;
use crate::{BenchContext, StudyError};
use assay_changes::{Made, MadeId};
use assay_fio::json::FioDocument;
use assay_host::{CommandOutput, Limits};
use assay_lab::Guest;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time limit for udev in an emulated guest on a busy machine.
const UDEV_NOTICES_WITHIN: Duration = Duration::from_secs(90);

/// Where layers are created and measured.
pub(super) enum Ground<'a> {
    /// A throwaway guest with its own pool.
    Guest(Box<Guest>),
    /// This machine, below a dataset that the user named.
    Here(Here<'a>),
}

/// This machine, below a dataset that the user named.
pub(super) struct Here<'a> {
    place: &'a BenchContext<'a>,
    /// Name of the user's dataset.
    parent: String,
    /// Directory for job files and mounts. Closing the session removes the directory.
    dir: PathBuf,
    work: Work,
}

impl<'a> Here<'a> {
    /// Checks the dataset.
    ///
    /// # Errors
    /// The dataset does not exist or is not a file system, ZFS is missing, or assay does not run as root.
    pub fn new(place: &'a BenchContext<'a>, parent: &str) -> Result<Self, StudyError> {
        let wrong = |reason: &str| Err(StudyError::measure(format!("--on {parent}"), reason));
        let word = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.: ".contains(c);
            part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(plain)
        };
        if !parent.split('/').all(word) {
            return wrong("that is no name of a ZFS file system");
        }
        if !rustix::process::geteuid().is_root() {
            return wrong("only root makes datasets and mounts them");
        }
        let argv = [
            "zfs",
            "list",
            "-H",
            "-o",
            "type",
            "-t",
            "filesystem",
            parent,
        ];
        let words = argv.map(OsStr::new);
        let found = place.env.host.run(&words, Limits { timeout: LIMIT })?;
        if !found.success() {
            return wrong(&found.complaint());
        }
        let dir = place.kept_dir("study")?;
        let work = Work::new(dir.join("fio"))?;
        Ok(Self {
            place,
            parent: parent.to_owned(),
            dir,
            work,
        })
    }

    /// Records an object in the journal before the object is created.
    pub fn enter(&self, thing: &Made) -> Result<MadeId, StudyError> {
        Ok(self.place.session.made(thing)?)
    }

    /// Returns the name of a scratch dataset, and the ZFS property that marks the dataset as assay's.
    pub fn dataset(&self, name: &str) -> (String, String) {
        let tag = self.place.session.tag();
        let mark = format!("{}={tag}", Made::ZFS_MARK);
        (format!("{}/{tag}-{name}", self.parent), mark)
    }

    /// Returns the bytes available below the dataset.
    pub fn available(&self) -> Result<u64, StudyError> {
        let argv = [
            "zfs",
            "get",
            "-Hp",
            "-o",
            "value",
            "available",
            &self.parent,
        ];
        let text = command_output(
            &argv,
            self.place
                .env
                .host
                .run(&argv.map(OsStr::new), Limits { timeout: LIMIT })?,
        )?;
        text.trim()
            .parse()
            .map_err(|error| StudyError::measure(argv.join(" "), error))
    }
}

fn command_output(argv: &[&str], output: CommandOutput) -> Result<String, StudyError> {
    match output.success() {
        true => Ok(output.text()),
        false => Err(StudyError::measure(argv.join(" "), output.complaint())),
    }
}

impl Ground<'_> {
    /// Returns the guest, if there is one.
    pub fn guest(&self) -> Option<&Guest> {
        match self {
            Self::Guest(guest) => Some(guest),
            Self::Here(_) => None,
        }
    }

    /// Returns this machine, if the layers are created on it.
    pub fn here(&self) -> Option<&Here<'_>> {
        match self {
            Self::Guest(_) => None,
            Self::Here(here) => Some(here),
        }
    }

    /// Returns the dataset below which zvols and datasets are created.
    pub fn parent(&self) -> &str {
        match self {
            Self::Guest(_) => POOL,
            Self::Here(here) => &here.parent,
        }
    }

    /// Returns the path of a scratch file with this name.
    pub fn path(&self, name: &str) -> String {
        let dir = match self {
            Self::Guest(_) => Path::new("/run"),
            Self::Here(here) => &here.dir,
        };
        dir.join(format!("study-{name}"))
            .to_string_lossy()
            .into_owned()
    }

    /// Runs a command and returns its output, whatever its exit status.
    pub fn run(&self, argv: &[&str], limit: Duration) -> Result<CommandOutput, StudyError> {
        let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        let limits = Limits { timeout: limit };
        Ok(match self {
            Self::Guest(guest) => guest.run(&words, limits)?,
            Self::Here(here) => here.place.env.host.run(&words, limits)?,
        })
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub fn command(&self, argv: &[&str]) -> Result<String, StudyError> {
        command_output(argv, self.run(argv, LIMIT)?)
    }

    /// Writes a file at a path from [`Ground::path`].
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), StudyError> {
        let path = Path::new(path);
        if let Some(guest) = self.guest() {
            return Ok(guest.push_bytes(bytes, path, 0o600)?);
        }
        let mut options = std::fs::File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path);
        file.and_then(|mut file| file.write_all(bytes))
            .map_err(StudyError::io(path))
    }

    /// Runs an fio job on a directory or block device. `job` returns the text of the job for the given target name.
    pub fn fio(
        &self,
        on: &str,
        job: &dyn Fn(&str) -> String,
        limit: Duration,
    ) -> Result<FioDocument, StudyError> {
        match self {
            Self::Guest(guest) => guest::run_fio(guest, &job(on), limit),
            Self::Here(here) => here
                .work
                .run(here.place, Path::new(on), &job(TARGET), limit),
        }
    }

    /// Returns the device of a virtual disk in the guest; `None` on this machine.
    pub fn disk(&self, name: &str) -> Result<Option<String>, StudyError> {
        let Some(guest) = self.guest() else {
            return Ok(None);
        };
        let found = guest.devices(&[name])?;
        Ok(found.first().map(|path| path.display().to_string()))
    }

    /// Waits until udev has created a device node.
    pub fn node(&self, path: &str) -> Result<(), StudyError> {
        self.command(&["udevadm", "settle"])?;
        let begun = Instant::now();
        while !self.run(&["test", "-e", path], LIMIT)?.success() {
            if begun.elapsed() > UDEV_NOTICES_WITHIN {
                return Err(StudyError::measure(path, "udev does not make it"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Removes an object on this machine, by its journal entry.
    pub fn remove(&self, id: MadeId) -> Result<(), StudyError> {
        match self {
            Self::Guest(_) => Ok(()),
            Self::Here(here) => here.place.remove(id),
        }
    }
}
