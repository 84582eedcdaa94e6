//! Decides by the options whether a job reaches its queue depth. The description of a job and the doubt
//! `depth-not-reached` (`assay-judge`) both use this decision.

use super::JobOptions;
use super::engines::{EngineKind, find_engine};

/// Reason for which a job has one I/O in flight, whatever `iodepth` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepthLimit {
    /// The engine executes one I/O after another.
    SynchronousEngine,
    /// glibc executes the `posixaio` requests of one file descriptor one after another (aio(7)). Other systems
    /// than Linux do not.
    PosixAioOfOneFile,
    /// `libaio` blocks in the submission of buffered I/O (io_submit(2)).
    BufferedLibaio,
}

impl JobOptions {
    /// Returns the reason for which the job has one I/O in flight, or `None` if it can reach `iodepth`.
    #[must_use]
    pub fn depth_limit(&self) -> Option<DepthLimit> {
        // With offloading, threads of fio pass I/Os to the engine one by one, several threads at once.
        let is_offloaded = self.given("io_submit_mode") == Some("offload");
        if find_engine(&self.engine) == Some(EngineKind::Synchronous) && !is_offloaded {
            return Some(DepthLimit::SynchronousEngine);
        }
        match self.engine.as_str() {
            "posixaio" if self.has_one_file() && !self.is_of_macos_or_bsd() => {
                Some(DepthLimit::PosixAioOfOneFile)
            }
            "libaio" if !self.direct => Some(DepthLimit::BufferedLibaio),
            _ => None,
        }
    }

    fn has_one_file(&self) -> bool {
        let several_names = self
            .given("filename")
            .is_some_and(|name| name.contains(':'));
        self.count_of("nrfiles").unwrap_or(1) <= 1 && !several_names
    }

    /// Returns whether the files or devices have names of macOS or of a BSD.
    #[must_use]
    pub fn is_of_macos_or_bsd(&self) -> bool {
        const PREFIXES: [&str; 7] = [
            "/Users/",
            "/Volumes/",
            "/dev/disk",
            "/dev/rdisk",
            "/dev/nvd",
            "/dev/nda",
            "/dev/ada",
        ];
        let given = ["filename", "directory"]
            .into_iter()
            .filter_map(|key| self.given(key));
        given
            .chain([self.name.as_str()])
            .flat_map(|names| names.split(':'))
            .any(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
    }
}
