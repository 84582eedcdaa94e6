//! Takes an unconfirmed change back from outside of the session that made it.
//!
//! The process that stands by ([`crate::fixes::StandBy`]) ends with the session's control group, and with the machine.
//! So something that neither owns looks after the change as well: systemd, cron or atd. Each starts, again and
//! again and once at boot, a copy of assay that lies in a directory of root's. What that copy does is
//! [`undo_unconfirmed`]; how each of the three is told is in the files of their names.
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

/// Where a change that waits for its confirmation has a directory.
const HOME: &str = "var/lib/assay/undo";
const ORDER: &str = "order";
const PROGRAM: &str = "assay";
/// The longest time between two looks.
const LOOK: Duration = Duration::from_secs(20);
/// How long making a change may take, with the time that is left to the assay that makes it and to the process
/// that stands by: after that time and the user's, whoever still holds the session is ended.
const OTHERS_FIRST: Duration = Duration::from_secs(660);
/// How long a journal that is not there is waited for.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Who starts the copy of assay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scheduler {
    Systemd,
    Cron,
    At,
}

/// What is known of a change that is looked after, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Order {
    /// Number of the session.
    session: String,
    /// What it does.
    label: String,
    #[serde(with = "assay_host::path_json")]
    journal: PathBuf,
    scheduler: Scheduler,
    /// How long the user has to confirm, in seconds.
    within: u64,
    /// When this was written, in seconds of `CLOCK_MONOTONIC` of that boot.
    since: u64,
    boot: String,
    /// Files that the change is made to.
    files: Vec<String>,
    /// Files and directories that were made outside of its own directory, in this order.
    made: Vec<String>,
}

/// Why nothing outside of the session can look after a change.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    /// None of the three is there, or each refused.
    #[error("{}", reasons.join("; "))]
    Nobody {
        /// Why, of each.
        reasons: Vec<String>,
    },
    /// A file or directory cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// What is stored is none that this assay understands.
    #[error("{}: {source}", path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The machine gave no answer.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The journal cannot be used, or is not there (yet).
    #[error(transparent)]
    Journal(#[from] ChangeError),
    /// The same, because its file system is not mounted.
    #[error("{}: the journal of the change is not there now", path.display())]
    NoJournal {
        /// Where it was.
        path: PathBuf,
    },
}

impl OutsideError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

/// The places of a machine that this writes to; tests have a machine of their own.
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

/// A change that is looked after from outside. Nothing of it is left after [`OutsideUndo::disarm`].
#[derive(Debug)]
pub struct OutsideUndo {
    dir: PathBuf,
    scheduler: Scheduler,
    name: String,
}

/// What is to be looked after.
#[derive(Clone, Copy, Debug)]
pub struct Unconfirmed<'a> {
    /// The session's number.
    pub session: &'a str,
    /// What it does.
    pub label: &'a str,
    /// Where it is entered.
    pub journal: &'a Path,
    /// How long the user has to confirm.
    pub within: Duration,
    /// The files that are changed.
    pub files: &'a [String],
}

impl OutsideUndo {
    /// Lets systemd, cron or atd look after a change that is about to be made: the first of them that runs here.
    ///
    /// # Errors
    /// None of them does, this user is not root, or no copy of assay can be kept where it survives a boot.
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
            let order = Order::of(what, scheduler, &places)?;
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

    /// Ends it: the change was confirmed, or taken back.
    ///
    /// # Errors
    /// Something of it cannot be removed; the next look tries it again.
    pub fn disarm(self, host: &dyn HostMut) -> Result<(), OutsideError> {
        match Order::read(&self.dir)? {
            Some(order) => order.remove(&Places::here(), host),
            None => Ok(()),
        }
    }

    /// Who looks after the change, for people.
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

/// Looks after one change: takes it back when nobody makes it any more, and ends who makes it when that takes
/// too long. Removes what was armed when nothing is left to do. Returns what was taken back.
///
/// # Errors
/// The journal is not there or cannot be used, or something could not be taken back; the next look tries
/// it again.
pub fn undo_unconfirmed(dir: &Path, host: &dyn HostMut) -> Result<Vec<Recovered>, OutsideError> {
    let places = Places::here();
    let Some(order) = Order::read(dir)? else {
        return Ok(Vec::new());
    };
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
            // It keeps to no time: what it has changed is taken back below.
            Some(holder) => host.kill(holder)?,
            None => return order.look_again(host).map(|()| Vec::new()),
        }
    }
    let recovered = journal.recover_session(&order.session, host)?;
    let failed = recovered
        .iter()
        .any(|one| matches!(one.outcome, RecoveryOutcome::Failed(_)));
    match failed || matches!(journal.standing(&order.session)?, SessionState::Live { .. }) {
        true => order.look_again(host)?,
        false => order.remove(&places, host)?,
    }
    Ok(recovered)
}

/// Removes what was armed for changes that are confirmed or taken back by now: an assay was killed just then.
pub fn sweep_outside(host: &dyn HostMut) {
    let places = Places::here();
    let Ok(all) = fs::read_dir(places.home()) else {
        return;
    };
    for dir in all.flatten().map(|one| one.path()) {
        let Ok(Some(order)) = Order::read(&dir) else {
            // It goes only when it is empty: an assay was killed before it wrote anything.
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

impl Order {
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

    /// What its files are called.
    fn name(&self) -> String {
        format!("assay-undo-{}", self.session)
    }

    fn dir(&self, places: &Places) -> PathBuf {
        places.home().join(&self.session)
    }

    /// The command line that looks after it, without a blank in any word.
    fn command(&self) -> String {
        let dir = format!("/{HOME}/{}", self.session);
        format!("{dir}/{PROGRAM} dev undo-unconfirmed --dir {dir}")
    }

    /// The time between two looks.
    fn interval(&self) -> Duration {
        LOOK.min(Duration::from_secs(self.within))
    }

    /// How long it is armed. After a boot, as long as the machine runs.
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
                .map_err(|source| OutsideError::Order { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OutsideError::file(&path)(error)),
        }
    }

    /// Writes everything down, then tells the scheduler.
    fn carry_out(&self, places: &Places, host: &dyn HostMut) -> Result<(), OutsideError> {
        self.write(places)?;
        copy::of_this_program(&self.dir(places), PROGRAM, host)?;
        match self.scheduler {
            Scheduler::Systemd => systemd::arm_timer(self, places, host),
            Scheduler::Cron => cron::write_cron_file(self, places),
            Scheduler::At => atd::enter_next_job(self, &self.dir(places), host),
        }
    }

    /// Enters it, before anything is made for it.
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
        let bytes = serde_json::to_vec(self).map_err(|source| OutsideError::Order {
            path: path.clone(),
            source,
        })?;
        write_file(&path, &bytes, 0o600).map_err(OutsideError::file(&path))?;
        for dir in [&dir, &home] {
            sync_dir(dir).map_err(OutsideError::file(dir))?;
        }
        Ok(())
    }

    /// Makes sure that there is a next look, where one is not made by itself.
    fn look_again(&self, host: &dyn HostMut) -> Result<(), OutsideError> {
        match self.scheduler {
            Scheduler::Systemd | Scheduler::Cron => Ok(()),
            Scheduler::At => atd::enter_next_job(self, &self.dir(&Places::here()), host),
        }
    }

    /// Removes everything that was made for it, itself last.
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
                // Others may have put something there since.
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
        // As long as others wait, it stays.
        let _ = fs::remove_dir(places.home());
        Ok(())
    }
}

impl Scheduler {
    /// Whether it runs here; else why not.
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

/// Writes a new file and forces it to disk.
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

/// Seconds that the machine ran, without those that it slept: no step of the clock changes them.
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
