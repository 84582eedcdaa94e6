//! Carries out a plan without losing changes that other programs make to the files.
//!
//! For each step, opens both files from the root folders without following links and compares their identity with the
//! plan. The mount table must prove that the two names are different files. A read lease on both files makes sure that
//! no program has them open for writing, and delays programs that open them later. Then the files are compared byte for
//! byte.
//!
//! Only then the name is changed, relative to the open folder, by an exchange or by a rename without replacement. So
//! even a file that was just put under the name still exists and is checked again. The old file is removed at the end
//! of the batch, when all data for an undo is on disk, the lease still holds and the file's times are unchanged.
//! Otherwise the step is rolled back.

use super::attributes::Attributes;
use super::journal::{Journal, RemovedFile, StepState};
use super::names::Names;
use super::plan::ActPlan;
use super::{ActStep, Action, Refusal, Subject, copy};
use crate::mount_identity::CurrentMounts;
use crate::name::split;
use crate::roots::{Anchors, OpenRoot, RootIdentity};
use crate::sys::{self, Deduped};
use crate::{Control, Error, Identity};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Number of steps between two syncs of the journal. A file is checked for the last time at the end of its
/// batch.
const BATCH: usize = 32;
/// Maximum bytes compared within one batch. Programs that want to write to these files wait until the batch ends.
const BATCH_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum bytes per deduplication call; btrfs accepts no more (ioctl_fideduperange(2)).
const DEDUPE: u64 = 16 * 1024 * 1024;

/// Points in a step at which tests simulate other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The intent is in the journal; no file is open.
    Intended,
    /// Both files are open and leased but not compared.
    Opened,
    /// The files are compared; the name is unchanged.
    Compared,
    /// The name is changed; the old file still exists.
    Exchanged,
    /// The last check of the old file is about to start.
    Finishing,
    /// The step is done.
    Done,
}

/// Options of carrying out a plan.
pub struct ActOptions<'a> {
    /// Act even if the file system grants no leases (NFS, files of other users). A program that has the file open could
    /// then write to a file that is being removed.
    pub without_lease: bool,
    /// Rename without the flags of renameat2(2). This is always done on file systems that do not support the flags.
    pub plain_renames: bool,
    /// Called at each point of each step; tests use it to simulate other programs.
    pub interfere: &'a dyn Fn(Moment, &ActStep),
}

impl Default for ActOptions<'_> {
    fn default() -> Self {
        Self {
            without_lease: false,
            plain_renames: false,
            interfere: &|_, _| {},
        }
    }
}

/// What the execution of a plan achieved.
#[derive(Debug, Default)]
pub struct ActOutcome {
    /// Number of completed steps.
    pub done: u64,
    /// Number of bytes that the completed steps freed.
    pub gain: u64,
    /// Steps that were not carried out, with reasons.
    pub refused: Vec<Refusal>,
    /// New state of each changed name (`None` if removed), with which the index is updated.
    pub changes: BTreeMap<Vec<u8>, Option<Identity>>,
}

/// Executes a plan.
///
/// # Errors
/// The journal cannot be written. Started steps are rolled back, or recovered at the next start.
pub fn execute(
    plan: &ActPlan,
    journal: &mut Journal,
    options: &ActOptions<'_>,
    control: &Control<'_>,
) -> Result<ActOutcome, Error> {
    // A broken lease sends SIGIO, which would end the process. SAFETY: ignoring a signal installs no handler
    // of ours.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    let mut run = Run {
        options,
        control,
        outcome: ActOutcome::default(),
        touched: HashMap::new(),
        names: Names {
            plain: options.plain_renames,
        },
        anchors: Anchors::default(),
        targets: HashMap::new(),
        grounds: CurrentMounts::default(),
        promised: HashMap::new(),
    };
    let mut rest = &plan.steps[..];
    let mut number = 0_u64;
    while !rest.is_empty() && !control.stopped() {
        let batch;
        (batch, rest) = rest.split_at(batch_length(rest));
        number += 1;
        let asides: Vec<Vec<u8>> = (0..batch.len())
            .map(|at| {
                let unique = sys::coarse_unix_nanos() ^ i64::from(std::process::id()) << 40;
                format!(".assay-dups-{unique:x}-{number}-{at}").into_bytes()
            })
            .collect();
        let targets: Vec<Option<Arc<RootIdentity>>> = batch
            .iter()
            .map(|step| run.anchor_of_target(step))
            .collect();
        let intents = batch.iter().zip(&asides).zip(&targets);
        let first = journal.intend(
            intents.map(|((step, aside), target)| (step, aside.as_slice(), target.as_deref())),
        )?;
        let mut states = vec![StepState::Untouched; batch.len()];
        let pending = run.begin_all(batch, &asides, &mut states);
        let found = pending
            .iter()
            .filter_map(|(at, open)| Some((first + *at as u64, open.found.clone()?)));
        let noted = journal.note(found);
        run.finish_all(batch, &asides, pending, &mut states, noted.is_ok());
        journal.conclude((first..).zip(states))?;
        noted?;
    }
    // Without this entry the journal is only checked once more.
    let _ = journal.end(0);
    Ok(run.outcome)
}

/// Returns the number of steps in the next batch; at least one.
fn batch_length(steps: &[ActStep]) -> usize {
    let mut bytes = 0_u64;
    let fitting = steps.iter().take(BATCH).take_while(|step| {
        bytes = bytes.saturating_add(step.remove.size);
        bytes <= BATCH_BYTES
    });
    fitting.count().max(1)
}

pub(super) struct Run<'a> {
    options: &'a ActOptions<'a>,
    control: &'a Control<'a>,
    outcome: ActOutcome,
    /// Current identity of the files whose ctime this run changed when it added or removed hard links, by device and
    /// inode.
    pub touched: HashMap<(u64, u64), Identity>,
    pub names: Names,
    /// The root folders, held open until the end.
    pub anchors: Anchors,
    targets: HashMap<Vec<u8>, Result<Rc<OpenRoot>, String>>,
    grounds: CurrentMounts,
    /// Number of bytes that the removal of a file's last name frees, by device and inode.
    promised: HashMap<(u64, u64), u64>,
}

/// A step whose name is changed and whose old file is not removed yet.
pub(super) struct Pending {
    pub keep: OwnedFd,
    pub remove: OwnedFd,
    pub parent: OwnedFd,
    /// Folder on another file system that contains the copy; `None` unless the file moves across file systems.
    pub across: Option<OwnedFd>,
    found: Option<RemovedFile>,
}

impl Run<'_> {
    fn begin_all(
        &mut self,
        steps: &[ActStep],
        asides: &[Vec<u8>],
        states: &mut [StepState],
    ) -> Vec<(usize, Pending)> {
        let mut pending = Vec::new();
        let mounts = self.grounds.refresh();
        for (at, (step, aside)) in steps.iter().zip(asides).enumerate() {
            self.control.tick();
            if self.control.stopped() {
                break;
            }
            (self.options.interfere)(Moment::Intended, step);
            let file = (step.remove.device, step.remove.ino);
            *self.promised.entry(file).or_default() += step.gain;
            match mounts.clone().and_then(|()| self.begin(step, aside)) {
                Ok(Some(open)) => pending.push((at, open)),
                Ok(None) => {
                    states[at] = StepState::Done;
                    self.done(step, true);
                }
                Err(why) => self.refuse(step, why),
            }
        }
        pending
    }

    /// Finishes the pending steps. `noted` is true if all data that an undo needs is on disk.
    fn finish_all(
        &mut self,
        steps: &[ActStep],
        asides: &[Vec<u8>],
        pending: Vec<(usize, Pending)>,
        states: &mut [StepState],
        noted: bool,
    ) {
        for (at, open) in pending {
            let (step, aside) = (&steps[at], &asides[at]);
            (self.options.interfere)(Moment::Finishing, step);
            match self.finish(step, aside, &open, noted) {
                Ok(()) => {
                    states[at] = StepState::Done;
                    // A moved file leaves its place, whatever other names it has.
                    let moved = matches!(step.action, Action::Move(_));
                    let gone = rustix::fs::fstat(&open.remove).is_ok_and(|now| now.st_nlink == 0);
                    self.done(step, moved || gone);
                }
                Err(why) => self.refuse(step, why),
            }
            sys::release(&open.remove);
            sys::release(&open.keep);
        }
    }

    /// Opens the target folder of moves once, and creates it if it is missing.
    pub(super) fn target(&mut self, target: &[u8]) -> Result<Rc<OpenRoot>, String> {
        if let Some(known) = self.targets.get(target) {
            return known.clone();
        }
        let fresh = OpenRoot::make(target).map(Rc::new);
        self.targets.insert(target.to_vec(), fresh.clone());
        fresh
    }

    fn anchor_of_target(&mut self, step: &ActStep) -> Option<Arc<RootIdentity>> {
        match &step.action {
            Action::Move(target) => Some(self.target(target).ok()?.anchor.clone()),
            _ => None,
        }
    }

    fn refuse(&mut self, step: &ActStep, why: String) {
        self.outcome.refused.push(Refusal {
            path: step.remove.path.clone(),
            why,
        });
    }

    /// Records a completed step. `freed` is true if the file's bytes became free.
    fn done(&mut self, step: &ActStep, freed: bool) {
        (self.options.interfere)(Moment::Done, step);
        self.outcome.done += 1;
        let file = (step.remove.device, step.remove.ino);
        if freed && let Some(bytes) = self.promised.get_mut(&file) {
            self.outcome.gain += std::mem::take(bytes);
        }
        for subject in [&step.keep, &step.remove] {
            let now = self.folder(subject).ok().and_then(|(parent, name)| {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::statx(&parent, name, flags, sys::WANTED).ok()
            });
            self.outcome.changes.insert(
                subject.path.clone(),
                now.map(|stat| sys::statx_identity(&stat)),
            );
        }
    }

    /// Returns the folder that the path of a subject leads to now, and the file's name in this folder.
    pub(super) fn folder<'s>(
        &mut self,
        subject: &'s Subject,
    ) -> Result<(OwnedFd, &'s [u8]), String> {
        let root = self.anchors.stand(&subject.root)?;
        root.parent(&subject.path).map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR => format!(
                "a link took the place of a folder of {}",
                crate::name::format_readable(&subject.path)
            ),
            errno => describe_failure("open the folder of", &subject.path, errno),
        })
    }

    /// Opens a subject in its folder and checks its identity against the plan.
    fn open(&mut self, subject: &Subject) -> Result<(OwnedFd, OwnedFd), String> {
        let (parent, name) = self.folder(subject)?;
        let fd = sys::open_file_at(&parent, name).map_err(|errno| match errno {
            Errno::LOOP => "a symbolic link took its place".into(),
            errno => describe_failure("open", &subject.path, errno),
        })?;
        let stat =
            sys::stat_fd(&fd).map_err(|errno| describe_failure("examine", &subject.path, errno))?;
        let now = Subject::from_stat(subject.path.clone(), &subject.root, &stat);
        let expected = self
            .touched
            .get(&(subject.device, subject.ino))
            .copied()
            .unwrap_or_else(|| subject.identity());
        let same = now.identity() == expected
            && now.device == subject.device
            && (now.mode, now.uid, now.gid) == (subject.mode, subject.uid, subject.gid);
        match same {
            true => Ok((parent, fd)),
            false => Err(format!(
                "{} changed since the plan was made",
                crate::name::format_readable(&subject.path)
            )),
        }
    }

    fn lease(&self, fd: &OwnedFd, subject: &Subject) -> Result<(), String> {
        match sys::lease(fd) {
            Ok(()) => Ok(()),
            Err(Errno::AGAIN) => Err(format!(
                "{} is open for writing in some program",
                crate::name::format_readable(&subject.path)
            )),
            Err(_) if self.options.without_lease => Ok(()),
            Err(errno) => Err(format!(
                "no lease on {} ({}); --without-lease acts nevertheless",
                crate::name::format_readable(&subject.path),
                sys::describe_errno(errno)
            )),
        }
    }

    pub(super) fn leased(&self, fd: &OwnedFd) -> bool {
        self.options.without_lease || sys::lease_holds(fd)
    }

    /// Carries out a step except for the last check of the old file. Returns `None` if the step needs no such check.
    fn begin(&mut self, step: &ActStep, aside: &[u8]) -> Result<Option<Pending>, String> {
        let (_, keep) = self.open(&step.keep)?;
        let (parent, remove) = self.open(&step.remove)?;
        if (step.keep.device, step.keep.ino) == (step.remove.device, step.remove.ino) {
            return Err("it is the kept file itself".into());
        }
        let mount = |fd: &OwnedFd| sys::mount_id(fd).and_then(|id| self.grounds.mount(id));
        self.grounds.apart(mount(&keep), mount(&remove))?;
        if step.action == Action::Reflink {
            (self.options.interfere)(Moment::Opened, step);
            reflink(&keep, &remove, step)?;
            return Ok(None);
        }
        self.lease(&keep, &step.keep)?;
        self.lease(&remove, &step.remove)?;
        (self.options.interfere)(Moment::Opened, step);
        let content = copy::compare_content(&keep, &remove, step.remove.size)?
            .ok_or("it no longer has the content of the copy that stays")?;
        let attributes = Attributes::of(&remove)?;
        if step.action == Action::Hardlink && Attributes::of(&keep)? != attributes {
            return Err("the copy that stays has other extended attributes, ACLs or flags".into());
        }
        let kept = sys::identity_there(&keep).map_err(sys::describe_errno)?;
        (self.options.interfere)(Moment::Compared, step);
        if !self.leased(&keep) || !self.leased(&remove) {
            return Err("a program began to write to it".into());
        }
        let (_, name) = split(&step.remove.path);
        let mut across = None;
        match &step.action {
            Action::Hardlink => self.exchange(step, aside, &keep, &parent, name)?,
            Action::Delete => {
                self.set_away(step, &parent, name, aside)?;
                self.unmoved(&keep, kept)
                    .or_else(|why| self.give_back(step, (&parent, aside), &parent, why))?;
            }
            Action::Move(target) => {
                let target = self.target(target)?;
                let like = (step, &attributes, &content);
                across = self.carry(like, aside, (&remove, &parent, name), &target, &keep)?;
            }
            Action::Reflink => {}
        }
        for (fd, subject) in [(&keep, &step.keep), (&remove, &step.remove)] {
            if let Ok(now) = sys::identity_now(fd) {
                self.touched.insert((subject.device, subject.ino), now);
            }
        }
        (self.options.interfere)(Moment::Exchanged, step);
        let found = RemovedFile {
            content,
            attributes,
            across: across.is_some(),
        };
        Ok(Some(Pending {
            keep,
            remove,
            parent,
            across,
            found: Some(found),
        }))
    }
}

/// Returns the destination of a moved file: its whole path, below the target folder.
pub(crate) fn move_destination(target: &[u8], path: &[u8]) -> Vec<u8> {
    crate::table::join(target, path.strip_prefix(b"/").unwrap_or(path))
}

pub(super) fn describe_failure(verb: &str, path: &[u8], errno: Errno) -> String {
    format!(
        "cannot {verb} {}: {}",
        crate::name::format_readable(path),
        sys::describe_errno(errno)
    )
}

/// Shares all blocks that the kernel finds equal.
fn reflink(keep: &OwnedFd, remove: &OwnedFd, step: &ActStep) -> Result<(), String> {
    let place = |fd: &OwnedFd| crate::sharing::extent_fingerprint(fd);
    if place(keep).is_some() && place(keep) == place(remove) {
        return Err("it shares its blocks with the copy that stays already".into());
    }
    let mut offset = 0;
    while offset < step.remove.size {
        let length = DEDUPE.min(step.remove.size - offset);
        match sys::dedupe_range(keep.as_fd(), remove.as_fd(), offset, length) {
            Ok(Deduped::Bytes(0)) => return Err("the kernel shared nothing".into()),
            Ok(Deduped::Bytes(bytes)) => offset += bytes,
            Ok(Deduped::Differs) => {
                return Err("it no longer has the content of the copy that stays".into());
            }
            Err(Errno::OPNOTSUPP | Errno::NOTTY) => {
                return Err("this file system cannot share blocks between files".into());
            }
            Err(Errno::INVAL) => {
                return Err(
                    "the kernel cannot share blocks between these two (chattr +C, encryption or compression \
                     of one of them, or a file system without shared blocks)"
                        .into(),
                );
            }
            Err(errno) => {
                return Err(describe_failure(
                    "share blocks with",
                    &step.keep.path,
                    errno,
                ));
            }
        }
    }
    match sys::is_inline(remove) {
        true => Err(
            "its content lies in the metadata of the file system, which cannot be shared".into(),
        ),
        false => Ok(()),
    }
}

/// Returns the journals of runs that were interrupted or damaged; [`super::undo::recover`] repairs them.
///
/// # Errors
/// A journal cannot be read.
pub fn find_unfinished_journals(index: &Path) -> Result<Vec<std::path::PathBuf>, Error> {
    let mut found = Vec::new();
    for path in Journal::all(index)? {
        if Journal::load(&path)?.is_unfinished() {
            found.push(path);
        }
    }
    Ok(found)
}
