//! Groups the names of a journal that belonged to one file before the run.

use crate::act::Action;
use crate::act::journal::{JournalStep, StepState};
use crate::roots::RootIdentity;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A file with the names that steps of the run changed.
#[derive(Debug, Default)]
pub(super) struct Inode<'j> {
    /// Steps to undo, each with its number in the journal.
    pub done: Vec<(u64, &'j JournalStep)>,
    /// Names that no step changed, or that are already restored.
    pub others: Vec<Other<'j>>,
    /// Whether the file had additional names, for which no step was planned.
    pub has_other_names: bool,
    /// Whether the file shared its blocks with the copy that stays.
    pub shared: bool,
}

/// A name that may still refer to the file.
#[derive(Debug)]
pub(super) struct Other<'j> {
    pub path: &'j [u8],
    pub root: Arc<RootIdentity>,
    /// The step that was undone; `None` if no step changed the name.
    pub undone: Option<&'j JournalStep>,
}

/// Values that all names of one file have in common in a plan: device, inode, size, mtime, ctime.
type Key = (u64, u64, u64, i64, i64);

impl<'j> Inode<'j> {
    /// Groups the steps of a journal by file. Omits files without a step to undo.
    pub fn group(entries: &'j BTreeMap<u64, JournalStep>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let mut places: HashMap<Key, usize> = HashMap::new();
        for (number, entry) in entries {
            if entry.step.action == Action::Reflink {
                continue;
            }
            let file = &entry.step.remove;
            let key = (file.device, file.ino, file.size, file.mtime, file.ctime);
            let place = *places.entry(key).or_insert_with(|| {
                found.push(Self::default());
                found.len() - 1
            });
            found[place].take(*number, entry);
        }
        found.retain(|inode| !inode.done.is_empty());
        found
    }

    fn take(&mut self, number: u64, entry: &'j JournalStep) {
        let own = &entry.step.remove;
        if let Some(origin) = &entry.step.origin {
            self.has_other_names = origin.has_other_names();
            self.shared = origin.shared;
            self.others.extend(origin.others.iter().map(|name| Other {
                path: &name.path,
                root: match &name.root {
                    Some(root) => Arc::new(root.as_ref().clone()),
                    None => own.root.clone(),
                },
                undone: None,
            }));
        }
        match entry.state {
            StepState::Done => self.done.push((number, entry)),
            StepState::Undone | StepState::Untouched | StepState::Open => self.others.push(Other {
                path: &own.path,
                root: own.root.clone(),
                undone: (entry.state == StepState::Undone).then_some(entry),
            }),
        }
    }

    /// Returns the bytes that the changes of this file's names freed.
    pub fn freed(&self) -> u64 {
        self.done.iter().map(|(_, entry)| entry.step.gain).sum()
    }
}
