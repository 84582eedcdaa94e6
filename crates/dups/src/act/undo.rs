//! Undoes a run. The undo needs only the journal and the copies that stayed. It needs neither the index nor the old
//! device and inode numbers, because files are identified by the content hash in the journal. Names that were hard
//! links become hard links again.

mod current_names;
mod inode;
mod restore;
mod space;
mod tidy;

pub use super::recover::recover;
pub use space::{Shortage, UndoPlan, plan_undo};

use super::journal::{Journal, Loaded, StepState};
use super::{ActStep, Refusal};
use crate::{Error, sys};
use inode::Inode;
use restore::Restorer;
use std::path::Path;

pub(super) use current_names::Finder;

/// Points in the undo of a name at which tests end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoMoment {
    /// The journal records the start of the undo.
    Begun,
    /// The file exists under the temporary name.
    Made,
    /// The file has its name; the file that had this name is not yet removed.
    Placed,
    /// Everything is restored; the journal does not record this yet.
    Restored,
}

/// Options of an undo.
pub struct UndoOptions<'a> {
    /// Make a separate copy if a name cannot become a hard link again.
    pub despite_cost: bool,
    /// Called at each point of the undo of each name; tests use it to end the process.
    pub interfere: &'a dyn Fn(UndoMoment, &ActStep),
}

impl Default for UndoOptions<'_> {
    fn default() -> Self {
        Self {
            despite_cost: false,
            interfere: &|_, _| {},
        }
    }
}

/// Result of an undo or a recovery.
#[derive(Debug, Default)]
pub struct Undone {
    /// Number of files restored to their earlier state.
    pub restored: u64,
    /// Number of steps that were already complete (recovery only).
    pub finished: u64,
    /// Whether an undo was interrupted and must be run again (recovery only).
    pub interrupted: bool,
    /// Files that could not be restored, with reasons.
    pub refused: Vec<Refusal>,
    /// Names that were changed, so that the index can be updated.
    pub names: Vec<Vec<u8>>,
}

/// Undoes every completed step of a journal, beginning with the last file. Moved files are moved back. Replaced and
/// deleted files become separate files again, copied from the copy that stayed if its content is unchanged. The names
/// of one original file become hard links again, either of a new copy or of a remaining name of the file. Continues an
/// undo that was interrupted.
///
/// # Errors
/// The journal cannot be read or written.
pub fn undo_journal(journal: &Path, options: &UndoOptions<'_>) -> Result<Undone, Error> {
    let mut undone = Undone::default();
    let mut states = Vec::new();
    let Loaded {
        entries, damaged, ..
    } = Journal::load(journal)?;
    let inodes = Inode::group(&entries);
    if !inodes.is_empty() {
        Journal::reopen(journal)?.begin_undo()?;
    }
    let mut restorer = Restorer::new(options);
    for inode in inodes.iter().rev() {
        for (number, result) in restorer.restore(inode) {
            let Some(entry) = entries.get(&number) else {
                continue;
            };
            match result {
                Ok(()) => {
                    undone.restored += 1;
                    states.push((number, StepState::Undone));
                }
                Err(why) => undone.refused.push(Refusal {
                    path: entry.step.remove.path.clone(),
                    why,
                }),
            }
            undone.names.push(entry.step.remove.path.clone());
        }
    }
    conclude(journal, states, &damaged)?;
    undone
        .refused
        .extend(refuse_damaged_lines(journal, damaged));
    Ok(undone)
}

/// Records the results of steps and the end of the run.
pub(super) fn conclude(
    journal: &Path,
    states: Vec<(u64, StepState)>,
    damaged: &[(usize, String)],
) -> Result<(), Error> {
    let mut journal = Journal::reopen(journal)?;
    journal.conclude(states)?;
    journal.end(damaged.len())
}

/// Returns a refusal for each damaged line, because the user must check the files that the line was about.
pub(super) fn refuse_damaged_lines(journal: &Path, damaged: Vec<(usize, String)>) -> Vec<Refusal> {
    let refused = damaged.into_iter().map(|(line, what)| Refusal {
        path: sys::path_bytes(journal).to_vec(),
        why: format!(
            "line {line} of this journal is damaged ({what}), so a file may be neither as it was nor as \
             it was to be: compare what the other lines tell with what is there, or with a backup"
        ),
    });
    refused.collect()
}
