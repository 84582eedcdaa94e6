//! Rolls back an unconfirmed change from outside the session that made it.
//!
//! The stand-by process ([`crate::fixes::StandBy`]) ends with the control group of the session, and at a reboot.
//! Therefore systemd, cron or atd also watches the change. The scheduler starts a copy of assay regularly, and once at
//! boot. The copy is in a directory that belongs to root. It runs [`undo_unconfirmed`]. One submodule per scheduler
//! installs the jobs.
#![allow(
    clippy::disallowed_methods,
    reason = "it makes the directory of a change, and reads the clock that no time step moves"
)]

mod atd;
mod copy;
mod cron;
mod systemd;

use crate::{ChangeError, Journal, Recovered, RecoveryOutcome, SessionState};
use assay_host::{HostError, HostMut, directory_owner};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Directory that contains one directory for each unconfirmed change.
const HOME: &str = "var/lib/assay/undo";
const ORDER: &str = "order";
const PROGRAM: &str = "assay";
/// Maximum time between two checks of the scheduler.
const LOOK: Duration = Duration::from_secs(20);
/// Extra time for the assay process and its stand-by process, beyond the user's time to confirm. After this time, the
/// scheduler's check kills the process that still holds the session, and rolls back.
const OTHERS_FIRST: Duration = Duration::from_secs(660);
/// How long to wait for a missing journal, because its file system may not be mounted yet.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// A scheduler that starts the copy of assay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scheduler {
    Systemd,
    Cron,
    At,
}

/// Stored data of a watched change. Each check of the scheduler reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WatchedChange {
    /// Number of the session that made the change.
    session: String,
    /// What the change does, for messages.
    label: String,
    #[serde(with = "assay_host::path_json")]
    journal: PathBuf,
    scheduler: Scheduler,
    /// Seconds that the user has to confirm the change.
    within: u64,
    /// Time at which the data was written, in seconds of `CLOCK_MONOTONIC` of that boot.
    since: u64,
    boot: String,
    /// Files that the change modifies.
    files: Vec<String>,
    /// Files and directories that the watch created outside of its own directory, in order of creation.
    made: Vec<String>,
}

/// Reason why no scheduler can watch a change.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    /// None of the three schedulers runs, or none of them accepted the job.
    #[error("{}", reasons.join("; "))]
    Nobody {
        /// For each scheduler, why it cannot be used.
        reasons: Vec<String>,
    },
    /// A file or directory cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error that the kernel returned.
        source: io::Error,
    },
    /// The stored data of a watched change cannot be parsed.
    #[error("{}: {source}", path.display())]
    WatchedChange {
        /// The file with the stored data.
        path: PathBuf,
        /// Error that the parser returned.
        source: serde_json::Error,
    },
    /// An operation of the machine failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The journal cannot be used, or does not exist (yet).
    #[error(transparent)]
    Journal(#[from] ChangeError),
    /// The journal does not exist because its file system is not mounted.
    #[error("{}: the journal of the change is not there now", path.display())]
    NoJournal {
        /// Path where the journal was.
        path: PathBuf,
    },
}

impl OutsideError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

/// Directories that this module writes to; tests replace them.
#[derive(Clone, Debug)]
struct Places {
    root: PathBuf,
}

impl Places {
    fn here() -> Self {
        Self { root: "/".into() }
    }

    fn home(&self) -> PathBuf {
        self.root.join(HOME)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// A change that a scheduler watches. [`OutsideUndo::disarm`] removes everything that was installed for it.
#[derive(Debug)]
pub struct OutsideUndo {
    dir: PathBuf,
    scheduler: Scheduler,
    name: String,
}

/// Description of a change that a scheduler must watch.
#[derive(Clone, Copy, Debug)]
pub struct Unconfirmed<'a> {
    /// Number of the session that makes the change.
    pub session: &'a str,
    /// What the change does, for messages.
    pub label: &'a str,
    /// Path of the journal that records the change.
    pub journal: &'a Path,
    /// Time that the user has to confirm the change.
    pub within: Duration,
    /// Files that the change modifies.
    pub files: &'a [String],
}

impl OutsideUndo {
    /// Installs the watch for a change that is about to be made, with the first available scheduler of
    /// systemd, cron and atd.
    ///
    /// # Errors
    /// No scheduler runs, this user is not root, or no copy of assay can be stored in a place that survives a
    /// reboot.
    pub fn arm(what: Unconfirmed<'_>, host: &dyn HostMut) -> Result<Self, OutsideError> {
        if !rustix::process::geteuid().is_root() {
            let reasons =
                vec!["only root may tell systemd, cron or atd: run assay as root".to_owned()];
            return Err(OutsideError::Nobody { reasons });
        }
        let places = Places::here();
        let mut reasons = Vec::new();
        for scheduler in [Scheduler::Systemd, Scheduler::Cron, Scheduler::At] {
            if let Err(reason) = scheduler.runs(host) {
                reasons.push(reason);
                continue;
            }
            let order = WatchedChange::of(what, scheduler, &places)?;
            match order.carry_out(&places, host) {
                Ok(()) => {
                    return Ok(Self {
                        dir: order.dir(&places),
                        scheduler,
                        name: order.name(),
                    });
                }
                Err(error) => {
                    reasons.push(error.to_string());
                    order.remove(&places, host)?;
                }
            }
        }
        Err(OutsideError::Nobody { reasons })
    }

    /// Removes the watch, because the change was confirmed or rolled back.
    ///
    /// # Errors
    /// A file cannot be removed; the next check retries.
    pub fn disarm(self, host: &dyn HostMut) -> Result<(), OutsideError> {
        match WatchedChange::read(&self.dir)? {
            Some(order) => order.remove(&Places::here(), host),
            None => Ok(()),
        }
    }

    /// Returns the scheduler's name for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        let name = &self.name;
        match self.scheduler {
            Scheduler::Systemd => format!("systemd ({name}.timer)"),
            Scheduler::Cron => format!("cron, which looks once a minute (/etc/cron.d/{name})"),
            Scheduler::At => "atd, which looks once a minute (atq)".to_owned(),
        }
    }
}

/// Checks one watched change. If the process that made the change has ended, rolls the change back. If the process
/// still runs but its time has passed, kills it first. Removes the watch if nothing is left to do. Returns descriptions
/// of the changes that were rolled back.
///
/// # Errors
/// The journal does not exist or cannot be used, or a change could not be rolled back; the next check retries.
pub fn undo_unconfirmed(dir: &Path, host: &dyn HostMut) -> Result<Vec<Recovered>, OutsideError> {
    let places = Places::here();
    let Some(order) = WatchedChange::read(dir)? else {
        return Ok(Vec::new());
    };
    // Before anything can fail: a scheduler that does not repeat by itself would never check again.
    order.look_again(host)?;
    let age = order.age()?;
    if !order.journal.is_dir() {
        if age > PATIENCE {
            order.remove(&places, host)?;
        }
        let path = order.journal;
        return Err(OutsideError::NoJournal { path });
    }
    let journal = Journal::open(&order.journal)?;
    let limit = OTHERS_FIRST + Duration::from_secs(order.within);
    if let SessionState::Live { holder } = journal.standing(&order.session)? {
        match holder.filter(|_| age > limit) {
            // The process exceeded its time; its changes are rolled back below.
            Some(holder) => host.kill(holder)?,
            None => return Ok(Vec::new()),
        }
    }
    let recovered = journal.recover_session(&order.session, host)?;
    let failed = recovered
        .iter()
        .any(|one| matches!(one.outcome, RecoveryOutcome::Failed(_)));
    if !failed && !matches!(journal.standing(&order.session)?, SessionState::Live { .. }) {
        order.remove(&places, host)?;
    }
    Ok(recovered)
}

/// Removes watches of changes that were already confirmed or rolled back. Such watches remain if assay is killed before
/// it removes them.
pub fn sweep_outside(host: &dyn HostMut) {
    let places = Places::here();
    let Ok(all) = fs::read_dir(places.home()) else {
        return;
    };
    for dir in all.flatten().map(|one| one.path()) {
        let Ok(Some(order)) = WatchedChange::read(&dir) else {
            // Succeeds only for an empty directory: assay was killed before it wrote a file.
            let _ = fs::remove_dir(&dir);
            continue;
        };
        let there = order.journal.is_dir();
        let standing = there.then(|| Journal::open(&order.journal)?.standing(&order.session));
        if matches!(standing, Some(Ok(SessionState::Gone))) {
            let _ = order.remove(&places, host);
        }
    }
}

impl WatchedChange {
    fn of(
        what: Unconfirmed<'_>,
        scheduler: Scheduler,
        places: &Places,
    ) -> Result<Self, OutsideError> {
        let mut order = Self {
            session: what.session.to_owned(),
            label: what.label.to_owned(),
            journal: what.journal.to_owned(),
            scheduler,
            within: what.within.as_secs().max(1),
            since: monotonic_seconds(),
            boot: boot_id()?,
            files: what.files.to_vec(),
            made: Vec::new(),
        };
        let paths = match scheduler {
            Scheduler::Systemd => systemd::list_paths(&order),
            Scheduler::Cron => vec![cron::cron_file(&order)],
            Scheduler::At => Vec::new(),
        };
        for path in paths {
            let missing = Path::new(&path)
                .ancestors()
                .skip(1)
                .map(|above| above.to_string_lossy().into_owned());
            let missing: Vec<_> = missing
                .take_while(|above| !places.at(above).exists())
                .collect();
            order.made.extend(missing.into_iter().rev());
            order.made.push(path);
        }
        Ok(order)
    }

    /// Returns the base name of the files that the scheduler needs.
    fn name(&self) -> String {
        format!("assay-undo-{}", self.session)
    }

    fn dir(&self, places: &Places) -> PathBuf {
        places.home().join(&self.session)
    }

    /// Returns the command line of the check. No word of the command line contains a space.
    fn command(&self) -> String {
        let dir = format!("/{HOME}/{}", self.session);
        format!("{dir}/{PROGRAM} dev undo-unconfirmed --dir {dir}")
    }

    /// Returns the time between two checks.
    fn interval(&self) -> Duration {
        LOOK.min(Duration::from_secs(self.within))
    }

    /// Returns the time since the watch was installed; after a reboot, the time since boot.
    fn age(&self) -> Result<Duration, OutsideError> {
        let since = match boot_id()? == self.boot {
            true => self.since,
            false => 0,
        };
        Ok(Duration::from_secs(
            monotonic_seconds().saturating_sub(since),
        ))
    }

    fn read(dir: &Path) -> Result<Option<Self>, OutsideError> {
        let path = dir.join(ORDER);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|source| OutsideError::WatchedChange { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OutsideError::file(&path)(error)),
        }
    }

    /// Writes all files, then starts the scheduler's job.
    fn carry_out(&self, places: &Places, host: &dyn HostMut) -> Result<(), OutsideError> {
        self.write(places)?;
        copy::of_this_program(&self.dir(places), PROGRAM, host)?;
        match self.scheduler {
            Scheduler::Systemd => systemd::arm_timer(self, places, host),
            Scheduler::Cron => cron::write_cron_file(self, places),
            Scheduler::At => atd::enter_next_job(self, &self.dir(places), host),
        }
    }

    /// Stores the data of the watched change, before any other file is created.
    fn write(&self, places: &Places) -> Result<(), OutsideError> {
        let (home, dir) = (places.home(), self.dir(places));
        directory_owner::check(&home)?;
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir);
        made.map_err(OutsideError::file(&dir))?;
        directory_owner::check(&dir)?;
        let path = dir.join(ORDER);
        let bytes = serde_json::to_vec(self).map_err(|source| OutsideError::WatchedChange {
            path: path.clone(),
            source,
        })?;
        write_file(&path, &bytes, 0o600).map_err(OutsideError::file(&path))?;
        for dir in [&dir, &home] {
            sync_dir(dir).map_err(OutsideError::file(dir))?;
        }
        Ok(())
    }

    /// Schedules the next check, if the scheduler does not repeat jobs itself.
    fn look_again(&self, host: &dyn HostMut) -> Result<(), OutsideError> {
        match self.scheduler {
            Scheduler::Systemd | Scheduler::Cron => Ok(()),
            Scheduler::At => atd::enter_next_job(self, &self.dir(&Places::here()), host),
        }
    }

    /// Removes all files that were created for the watch. The directory of the watch is removed last.
    fn remove(&self, places: &Places, host: &dyn HostMut) -> Result<(), OutsideError> {
        let dir = self.dir(places);
        match self.scheduler {
            Scheduler::Systemd => systemd::stop_timer(self, host),
            Scheduler::Cron => {}
            Scheduler::At => atd::remove_job(&dir, host),
        }
        for path in self.made.iter().rev().map(|path| places.at(path)) {
            let is_dir = path.symlink_metadata().is_ok_and(|found| found.is_dir());
            match is_dir {
                // Other programs may have put files there in the meantime.
                true => drop(fs::remove_dir(&path)),
                false => {
                    absent_is_fine(fs::remove_file(&path)).map_err(OutsideError::file(&path))?
                }
            }
        }
        if self.scheduler == Scheduler::Systemd {
            systemd::forget_failures(self, host);
        }
        for name in [PROGRAM, atd::JOB, ORDER] {
            let path = dir.join(name);
            absent_is_fine(fs::remove_file(&path)).map_err(OutsideError::file(&path))?;
        }
        absent_is_fine(fs::remove_dir(&dir)).map_err(OutsideError::file(&dir))?;
        // Fails and is ignored while other changes are watched.
        let _ = fs::remove_dir(places.home());
        Ok(())
    }
}

impl Scheduler {
    /// Checks whether the scheduler runs on this machine.
    ///
    /// # Errors
    /// The reason why it does not run.
    fn runs(self, host: &dyn HostMut) -> Result<(), String> {
        match self {
            Self::Systemd => systemd::check_running(host),
            Self::Cron => cron::check_running(host),
            Self::At => atd::check_running(host),
        }
    }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Writes a new file and makes it durable.
fn write_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut options = fs::File::options();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    path.parent().map_or(Ok(()), sync_dir)
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    fs::File::open(dir)?.sync_all()
}

/// Returns the seconds since boot, without suspended time. Changes of the wall clock do not affect the result.
fn monotonic_seconds() -> u64 {
    u64::try_from(clock_gettime(ClockId::Monotonic).tv_sec).unwrap_or(0)
}

fn boot_id() -> Result<String, OutsideError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(OutsideError::file(path))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests;
