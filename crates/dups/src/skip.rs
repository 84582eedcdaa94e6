//! What a scan left out, and why: every file is either looked at or counted here.

use std::sync::Mutex;

/// Why something was left out.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A symbolic link: never followed below a root.
    Symlink,
    /// A FIFO, socket or device.
    Special,
    /// No content, so nothing to gain.
    Empty,
    /// Outside the size, age, owner or name limits that the user gave.
    Filtered,
    /// Left out by an ignore file.
    Ignored,
    /// A folder on another file system than its root (a btrfs subvolume counts as one).
    OtherFilesystem,
    /// A folder of snapshots.
    Snapshot,
    /// A file system of the kernel (`/proc`, `/sys` …), whose files have no stored content.
    Pseudo,
    /// A folder that was already walked: a bind mount, or roots that overlap.
    SeenAlready,
    /// A folder that could not be opened or listed.
    UnreadableFolder,
    /// A file that could not be opened, read or examined.
    Unreadable,
    /// A file that changed, vanished or was replaced while the scan ran.
    Changed,
}

impl Reason {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 12] = [
        Self::Unreadable,
        Self::UnreadableFolder,
        Self::Changed,
        Self::Symlink,
        Self::Special,
        Self::Empty,
        Self::Filtered,
        Self::Ignored,
        Self::OtherFilesystem,
        Self::Snapshot,
        Self::Pseudo,
        Self::SeenAlready,
    ];

    /// In words, for a count behind it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Symlink => "symbolic links",
            Self::Special => "special files",
            Self::Empty => "empty files",
            Self::Filtered => "outside the filters",
            Self::Ignored => "left out by ignore files",
            Self::OtherFilesystem => "folders on other file systems",
            Self::Snapshot => "snapshot folders",
            Self::Pseudo => "kernel file systems",
            Self::SeenAlready => "folders seen already",
            Self::UnreadableFolder => "unreadable folders",
            Self::Unreadable => "unreadable files",
            Self::Changed => "files that changed during the scan",
        }
    }

    /// Whether the user should be told about each one, not only how many there were.
    pub fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::UnreadableFolder | Self::Unreadable | Self::Changed
        )
    }
}

/// One thing left out that the user should hear about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skip {
    /// Full path, as bytes.
    pub path: Vec<u8>,
    /// Why.
    pub reason: Reason,
    /// What the kernel said, or what changed.
    pub detail: String,
}

/// Everything left out: counts of all, details of the troublesome.
#[derive(Default, Debug, Clone)]
pub struct Skipped {
    counts: [u64; Reason::ALL.len()],
    /// The troublesome ones, sorted by path when the scan ends.
    pub details: Vec<Skip>,
}

impl Skipped {
    /// How many were left out for this reason.
    pub fn count(&self, reason: Reason) -> u64 {
        self.counts[reason as usize]
    }

    /// Counts by reason, those that occurred only.
    pub fn counts(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL
            .into_iter()
            .map(|reason| (reason, self.count(reason)))
            .filter(|(_, count)| *count > 0)
    }

    /// Counts one without details.
    pub fn add(&mut self, reason: Reason) {
        self.counts[reason as usize] += 1;
    }

    /// Counts one and keeps what happened.
    pub fn note(&mut self, path: Vec<u8>, reason: Reason, detail: impl Into<String>) {
        self.add(reason);
        self.details.push(Skip {
            path,
            reason,
            detail: detail.into(),
        });
    }

    /// Takes over another's counts and details.
    pub fn absorb(&mut self, other: Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
        self.details.extend(other.details);
    }
}

/// Merges what threads collected.
pub(crate) fn merge(into: &Mutex<Skipped>, from: Skipped) {
    lock(into).absorb(from);
}

/// Locks; a panic of another thread is passed on by the scope that joins it, so the data behind a
/// poisoned lock is never reported.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
