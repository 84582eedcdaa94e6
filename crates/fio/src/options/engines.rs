//! fio's I/O engines, and which of them execute one I/O at a time.

use strsim::damerau_levenshtein;

/// How an engine executes I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// One I/O at a time, whatever the `iodepth`: `queue` returns when the I/O is complete (FIO_SYNCIO).
    Synchronous,
    /// Several I/Os at the same time.
    Asynchronous,
    /// No I/O on data: the engine uses file names, file sizes or the CPU.
    NoData,
}

use EngineKind::{Asynchronous, NoData, Synchronous};

/// Engines in `engines/` of fio (August 2026) and of older releases, classified by the flags in their `ioengine_ops`.
/// `libiscsi` and `sg` have FIO_SYNCIO, but `libiscsi` has several I/Os in flight anyway.
const ENGINES: [(&str, EngineKind); 55] = [
    ("cpuio", NoData),
    ("dev-dax", Synchronous),
    ("dfs", Asynchronous),
    ("dircreate", NoData),
    ("dirdelete", NoData),
    ("dirstat", NoData),
    ("e4defrag", NoData),
    ("exec", NoData),
    ("external", Asynchronous),
    ("falloc", NoData),
    ("filecreate", NoData),
    ("filedelete", NoData),
    ("filestat", NoData),
    ("ftruncate", NoData),
    ("gfapi", Synchronous),
    ("gfapi_async", Asynchronous),
    ("guasi", Asynchronous),
    ("http", Synchronous),
    ("ime_aio", Asynchronous),
    ("ime_psync", Synchronous),
    ("ime_psyncv", Synchronous),
    ("io_uring", Asynchronous),
    ("io_uring_cmd", Asynchronous),
    ("libaio", Asynchronous),
    ("libblkio", Asynchronous),
    ("libcufile", Synchronous),
    ("libhdfs", Synchronous),
    ("libhipfile", Synchronous),
    ("libiscsi", Asynchronous),
    ("libpmem", Synchronous),
    ("libzbc", Synchronous),
    ("linux-aio", Asynchronous),
    ("mmap", Synchronous),
    ("mtd", Synchronous),
    ("nbd", Asynchronous),
    ("net", Synchronous),
    ("netsplice", Synchronous),
    ("nfs", Asynchronous),
    ("null", Asynchronous),
    ("page_fault", Synchronous),
    ("pmemblk", Synchronous),
    ("posixaio", Asynchronous),
    ("psync", Synchronous),
    ("pvsync", Synchronous),
    ("pvsync2", Synchronous),
    ("rados", Asynchronous),
    ("rbd", Asynchronous),
    ("rdma", Asynchronous),
    ("sg", Synchronous),
    ("solarisaio", Asynchronous),
    ("splice", Synchronous),
    ("sync", Synchronous),
    ("vsync", Synchronous),
    ("windowsaio", Asynchronous),
    ("xnvme", Asynchronous),
];

/// Returns how an engine executes I/O; `None` if fio has no such engine.
#[must_use]
pub fn find_engine(name: &str) -> Option<EngineKind> {
    let found = ENGINES.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind)
}

/// Returns the engine that `name` is probably a misspelling of.
#[must_use]
pub fn nearest_engine(name: &str) -> Option<&'static str> {
    ENGINES
        .iter()
        .map(|(known, _)| (damerau_levenshtein(name, known), *known))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, known)| known)
}
