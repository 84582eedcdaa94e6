//! A directory for arms, with a journal.
#![allow(dead_code, reason = "each test binary uses its share")]

use assay_changes::side_by_side::ArmSite;
use assay_changes::{ChangeSession, Journal};
use assay_model::Bytes;
use std::path::PathBuf;

pub struct Bench {
    pub dir: PathBuf,
    pub session: ChangeSession,
    pub journal: Journal,
    _held: [tempfile::TempDir; 2],
}

impl Bench {
    /// Creates the directory outside of any tmpfs, so that O_DIRECT works.
    pub fn new() -> Self {
        Self::below("")
    }

    /// Creates the directory in a directory with this name.
    pub fn below(name: &str) -> Self {
        let base = tempfile::tempdir_in("/var/tmp").unwrap();
        // Durable writes of the journal have their own tests; here they may be fast.
        let memory = std::path::Path::new("/dev/shm");
        let state = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
        let state = state.unwrap();
        let dir = base.path().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let journal = Journal::open(state.path()).unwrap();
        Self {
            dir,
            session: journal.begin("a test", "here").unwrap(),
            journal,
            _held: [base, state],
        }
    }

    pub fn place(&self, name: &str, size: Bytes) -> ArmSite {
        ArmSite {
            dir: self.dir.clone(),
            name: name.to_owned(),
            size,
        }
    }

    /// Returns the directory of the arm with that name.
    pub fn arm(&self, name: &str) -> PathBuf {
        self.dir.join(self.session.name(name))
    }

    pub fn nothing_left(&self) -> bool {
        self.dir.read_dir().unwrap().next().is_none()
    }
}

/// Whether a process runs; a zombie does not count.
pub fn alive(pid: u32) -> bool {
    assay_host::ProcessId::of(pid).is_some()
}
