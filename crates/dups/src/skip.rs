//! Counts skipped files by reason. Every file is either examined or counted here.

use std::sync::Mutex;

/// Why a file or folder was skipped.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A symbolic link; never followed below a root.
    Symlink,
    /// A FIFO, socket or device.
    Special,
    /// An empty file, because removing its copies frees nothing.
    Empty,
    /// A file that the user's limits of size, age, owner or name exclude.
    Filtered,
    /// A file or folder that an ignore file excludes.
    Ignored,
    /// A folder on another file system than its root (a btrfs subvolume counts as one).
    OtherFilesystem,
    /// A folder that contains snapshots, such as `.zfs`.
    Snapshot,
    /// A file system of the kernel (`/proc`, `/sys` …), whose files have no stored content.
    Pseudo,
    /// A folder that was already walked: a bind mount, or overlapping roots.
    SeenAlready,
    /// A folder that cannot be opened or listed.
    UnreadableFolder,
    /// A file that cannot be opened, read or examined.
    Unreadable,
    /// A file that changed, disappeared or was replaced during the scan.
    Changed,
}

impl Reason {
    /// All reasons, in the order of the report.
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

    /// Returns the text that follows the number of skipped files.
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

    /// Returns whether each skipped file is reported individually, and not only counted.
    pub fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::UnreadableFolder | Self::Unreadable | Self::Changed
        )
    }
}

/// A skipped file that is reported individually.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skip {
    /// Full path of the file, as bytes.
    pub path: Vec<u8>,
    /// Why the file was skipped.
    pub reason: Reason,
    /// Kernel error, or description of the change.
    pub detail: String,
}

/// Counts of all skipped files, and details of the reported ones.
#[derive(Default, Debug, Clone)]
pub struct Skipped {
    counts: [u64; Reason::ALL.len()],
    /// Reported files, sorted by path at the end of the scan.
    pub details: Vec<Skip>,
}

impl Skipped {
    /// Returns the number of files skipped for this reason.
    pub fn count(&self, reason: Reason) -> u64 {
        self.counts[reason as usize]
    }

    /// Returns the count of each reason that occurred.
    pub fn counts(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL
            .into_iter()
            .map(|reason| (reason, self.count(reason)))
            .filter(|(_, count)| *count > 0)
    }

    /// Counts a skipped file without details.
    pub fn add(&mut self, reason: Reason) {
        self.counts[reason as usize] += 1;
    }

    /// Counts a skipped file and stores its details.
    pub fn note(&mut self, path: Vec<u8>, reason: Reason, detail: impl Into<String>) {
        self.add(reason);
        self.details.push(Skip {
            path,
            reason,
            detail: detail.into(),
        });
    }

    /// Adds the counts and details of `other`.
    pub fn absorb(&mut self, other: Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
        self.details.extend(other.details);
    }
}

/// Merges the skipped files of one thread into the shared list.
pub(crate) fn merge(into: &Mutex<Skipped>, from: Skipped) {
    lock(into).absorb(from);
}

/// Locks a mutex and ignores poisoning. If a thread panics, the thread scope passes the panic on, so poisoned data is
/// never reported.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
