//! The I/O engines of fio: which there are, and which do one I/O at a time.

use strsim::damerau_levenshtein;

/// What an engine is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// One I/O at a time: `queue` returns when it is done (FIO_SYNCIO), whatever `iodepth` says.
    Synchronous,
    /// Several I/Os at once.
    Asynchronous,
    /// It does no I/O on data: names, sizes, the processor.
    NoData,
}

use EngineKind::{Asynchronous, NoData, Synchronous};

/// The engines in `engines/` of fio (August 2026) and of older releases, with the flags in their
/// `ioengine_ops`. `libiscsi` and `sg` carry FIO_SYNCIO; the first queues all the same.
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

/// What is known of an engine, none when fio has none of this name.
#[must_use]
pub fn find_engine(name: &str) -> Option<EngineKind> {
    let found = ENGINES.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind)
}

/// The engine that was probably meant.
#[must_use]
pub fn nearest_engine(name: &str) -> Option<&'static str> {
    ENGINES
        .iter()
        .map(|(known, _)| (damerau_levenshtein(name, known), *known))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, known)| known)
}
