//! Takes back what acting did: from the journal and the copy that stayed, and nothing else. Neither
//! the index is needed nor that anything has the numbers it had; what counts is the content, of
//! which the journal knows the hash. Names that were one file become one file again.

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

/// Moments within the undo of one name; tests end the process there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoMoment {
    /// The journal says that undo begins.
    Begun,
    /// The file stands under the name used meanwhile.
    Made,
    /// The file has its name; what had the name is not removed yet.
    Placed,
    /// All is as before, the journal does not say so yet.
    Restored,
}

/// How to undo.
pub struct UndoOptions<'a> {
    /// Whether to make a copy of its own for a name that cannot be a name of its file again.
    pub despite_cost: bool,
    /// Called at each moment of each name.
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

/// What was set right or taken back.
#[derive(Debug, Default)]
pub struct Undone {
    /// Files that are as they were before.
    pub restored: u64,
    /// Steps that turned out to be finished (recovery only).
    pub finished: u64,
    /// Whether an undo ended in the middle and is to be started again (recovery only).
    pub interrupted: bool,
    /// What could not be taken back, and why.
    pub refused: Vec<Refusal>,
    /// What the names are now, for the index.
    pub names: Vec<Vec<u8>>,
}

/// Takes back every step of a journal that was done, the last file first. Moved files go back; names
/// that were linked, and files that were deleted, become files of their own again, copied from the
/// copy that stayed if its content is still the same. Names that were one file share one copy, or
/// are linked to a name of that file that is still there. What an undo that was killed has done is
/// recognised.
///
/// # Errors
/// When the journal cannot be read or written.
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

/// Writes down what became of steps, and that nothing is left to be done or told.
pub(super) fn conclude(
    journal: &Path,
    states: Vec<(u64, StepState)>,
    damaged: &[(usize, String)],
) -> Result<(), Error> {
    let mut journal = Journal::reopen(journal)?;
    journal.conclude(states)?;
    journal.end(damaged.len())
}

/// What lines that cannot be read may have said is for the user to look after.
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
