//! Writes job files for fio. Users can also run these files manually.
//!
//! Sizes are in plain bytes, because fio swaps the meaning of `KiB` and `kB` (`kib` = 1000 unless `kb_base=1000`; fio
//! HOWTO, "kb_base"). Options and defaults are those of the fio 3.33 HOWTO.

use assay_model::workload::{Durability, Engine};
use assay_model::{Bytes, Nanos, Workload};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Percentiles that every job requests in its result.
pub const PERCENTILES: &str = "50:90:95:99:99.9:99.99";
/// Maximum length of a file name in bytes. fio reads a line of at most 4096 bytes (`__parse_jobs_ini`, fio init.c),
/// which also contains the option.
const MAX_FILENAME: usize = 4000;
/// Maximum length of a socket path in bytes (`sockaddr_un`, unix(7)).
const MAX_SOCKET: usize = 107;
/// Largest block in bytes that a file system compresses as a unit: a ZFS record, at most 1 MiB by default.
const LARGEST_WINDOW: u64 = 1 << 20;
/// Keywords that fio replaces in job files (`fio_keywords`, fio options.c).
const KEYWORDS: [&str; 4] = ["$pagesize", "$mb_memory", "$ncpus", "$jobname"];

/// Reasons why a job file cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// fio's syntax cannot express the path.
    #[error("`{path}`: {reason}; use another path, or a link to this one")]
    Filename {
        /// The path with escaped control characters.
        path: String,
        /// Why fio cannot express the path.
        reason: &'static str,
    },
    /// The workload is incomplete, or fio cannot execute it.
    #[error("workload `{name}`: {reason}")]
    Workload {
        /// Name of the workload with escaped control characters.
        name: String,
        /// Why fio cannot execute the workload.
        reason: String,
    },
}

/// Returns the job file for a workload on `size` bytes of `filename`.
///
/// Each of several sequential jobs uses its own part of the file. Random jobs use the whole file with different
/// offsets. `seed` determines offsets and data.
///
/// # Errors
/// fio cannot express the path, the engine or time is not set, or the file is too small.
pub fn render(
    workload: &Workload,
    filename: &Path,
    size: Bytes,
    seed: u64,
) -> Result<String, RenderError> {
    if workload.engine == Engine::Nbd {
        return Err(refused_workload(
            workload,
            "engine nbd works on an NBD export, not on a file",
        ));
    }
    render_job(workload, Place::File(&escape(filename)?), size, seed)
}

/// Returns the job file for a workload with engine nbd on the first `size` bytes of an export at a Unix socket. A
/// relative `socket` is relative to fio's working directory, in which a link keeps the path within the kernel's limit.
///
/// NBD has one kind of flush, which is used for both `fsync` and `fdatasync`. `sync=` and `direct=` affect only files
/// that fio opens. Therefore `dsync` is rejected instead of ignored (fio 3.33 engines/nbd.c).
///
/// # Errors
/// Another engine, `dsync`, a socket path that is too long, or as [`render`].
pub fn render_nbd(
    workload: &Workload,
    socket: &Path,
    export: &str,
    size: Bytes,
    seed: u64,
) -> Result<String, RenderError> {
    if workload.engine != Engine::Nbd {
        return Err(refused_workload(workload, "an NBD export needs engine nbd"));
    }
    if workload.pattern.writes() && workload.durability == Durability::Dsync {
        return Err(refused_workload(
            workload,
            "fio's nbd engine ignores sync=dsync: say `durability = \"fsync\"`, a flush after every \
             write",
        ));
    }
    if socket.as_os_str().len() > MAX_SOCKET {
        return Err(RenderError::Filename {
            path: socket.to_string_lossy().escape_debug().to_string(),
            reason: "the name of a unix socket has at most 107 bytes",
        });
    }
    let uri = nbd_uri(socket, export);
    render_job(workload, Place::Nbd(&uri), size, seed)
}

/// Returns `nbd+unix:///EXPORT?socket=PATH` (the NBD project's doc/uri.md). Escapes all special bytes, so that no byte
/// of a name can end the value of an option.
#[must_use]
pub fn nbd_uri(socket: &Path, export: &str) -> String {
    let escaped = |bytes: &[u8]| -> String {
        let mut text = String::new();
        for byte in bytes {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    text.push(char::from(*byte));
                }
                byte => {
                    let _ = write!(text, "%{byte:02X}");
                }
            }
        }
        text
    };
    format!(
        "nbd+unix:///{}?socket={}",
        escaped(export.as_bytes()),
        escaped(socket.as_os_str().as_bytes())
    )
}

/// Target of a job.
#[derive(Clone, Copy)]
enum Place<'a> {
    File(&'a str),
    Nbd(&'a str),
}

fn refused_workload(workload: &Workload, reason: &str) -> RenderError {
    RenderError::Workload {
        name: workload.name.escape_debug().to_string(),
        reason: reason.to_owned(),
    }
}

fn render_job(
    workload: &Workload,
    place: Place<'_>,
    size: Bytes,
    seed: u64,
) -> Result<String, RenderError> {
    let fail = |reason: String| RenderError::Workload {
        name: workload.name.escape_debug().to_string(),
        reason,
    };
    let name = &workload.name;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name == "global" || !name.chars().all(plain) {
        return Err(fail(
            "a job name consists of letters, digits, `-`, `_` and `.`, and is not `global`"
                .to_owned(),
        ));
    }
    let engine = workload
        .engine
        .fio()
        .ok_or_else(|| fail("the engine is not settled: io_uring, libaio or psync".to_owned()))?;
    if workload.engine == Engine::Psync && workload.queue_depth > 1 {
        return Err(fail(format!(
            "psync does one I/O at a time, queue_depth = {} cannot be reached",
            workload.queue_depth
        )));
    }
    let runtime = workload.runtime.unwrap_or_default();
    if to_millis(runtime) == 0 {
        return Err(fail("it has no runtime of 1 ms or more".to_owned()));
    }
    let block = workload.block_size.0;
    let pattern = workload.pattern;
    let shares = if pattern.random() {
        1
    } else {
        u64::from(workload.jobs)
    };
    let blocks = size.0 / block.max(1) / shares.max(1);
    if block == 0 || blocks == 0 {
        return Err(fail(format!(
            "{size} is too small for {shares} share(s) of {}",
            workload.block_size
        )));
    }
    let share = blocks * block;

    let mut text = String::new();
    let mut line = |key: &str, value: &dyn std::fmt::Display| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key}={value}");
    };
    match place {
        Place::File(name) => line("filename", &name),
        Place::Nbd(uri) => line("uri", &uri),
    }
    line("thread", &1);
    line("ioengine", &engine);
    if matches!(place, Place::File(_)) {
        line("direct", &u8::from(workload.direct));
    }
    line("rw", &pattern.fio());
    if pattern.mixed() {
        line("rwmixread", &workload.read_percent.unwrap_or(50));
    }
    line("bs", &block);
    line("size", &share);
    line("iodepth", &workload.queue_depth);
    line("numjobs", &workload.jobs);
    if shares > 1 {
        line("offset_increment", &share);
    }
    line("time_based", &1);
    line("runtime", &format_args!("{}ms", to_millis(runtime)));
    let ramp = to_millis(workload.ramp.unwrap_or_default());
    if ramp > 0 {
        line("ramp_time", &format_args!("{ramp}ms"));
    }
    line("randrepeat", &0);
    line("randseed", &seed);
    if pattern.writes() {
        // From one MiB on, no compressor sees two blocks at once, and fio's initial buffer, scrambled for
        // every write, neither compresses nor repeats. Refilling would take up to 60 % of a CPU.
        if block < LARGEST_WINDOW {
            line("refill_buffers", &1);
        }
        match workload.durability {
            Durability::None => {}
            Durability::Dsync => line("sync", &"dsync"),
            // The nbd engine refuses fdatasync with EINVAL.
            Durability::Fdatasync if matches!(place, Place::Nbd(_)) => line("fsync", &1),
            Durability::Fdatasync => line("fdatasync", &1),
            Durability::Fsync => line("fsync", &1),
        }
    }
    if matches!(place, Place::File(_)) {
        line("invalidate", &1);
        line("allow_file_create", &0);
        line("fallocate", &"none");
        line("unlink", &0);
    }
    line("percentile_list", &PERCENTILES);
    // Percentiles of the latency including the submission, as a program sees it; `clat` excludes it.
    line("lat_percentiles", &1);
    Ok(format!("[{name}]\n{text}"))
}

/// Returns the job file that fills `filename` with `size` bytes and syncs them. The data cannot be compressed and have
/// no repetitions.
///
/// # Errors
/// fio cannot express the path, or the size is zero.
pub fn layout_job(filename: &Path, size: Bytes, seed: u64) -> Result<String, RenderError> {
    if size.0 == 0 {
        return Err(RenderError::Workload {
            name: "layout".to_owned(),
            reason: "a file of no bytes cannot be laid out".to_owned(),
        });
    }
    Ok(format!(
        "[layout]\nfilename={}\nthread=1\nioengine=psync\ndirect=0\nrw=write\nbs={}\nsize={}\n\
         randrepeat=0\nrandseed={seed}\nrefill_buffers=1\nend_fsync=1\nfallocate=none\nunlink=0\n",
        escape(filename)?,
        size.0.min(1 << 20),
        size.0,
    ))
}

fn to_millis(time: Nanos) -> u64 {
    time.0.div_ceil(1_000_000)
}

/// Escapes a path for the option `filename`, in which `:` is a separator and `\:` is a colon.
fn escape(path: &Path) -> Result<String, RenderError> {
    let fail = |reason| {
        Err(RenderError::Filename {
            path: path.to_string_lossy().escape_debug().to_string(),
            reason,
        })
    };
    let Some(text) = path.to_str() else {
        return fail("it is not UTF-8");
    };
    if text.is_empty() || text == "-" {
        return fail("it is not the name of a file");
    }
    if text.chars().any(char::is_control) {
        return fail("it contains a line break or another control character");
    }
    if text.trim() != text {
        return fail("fio removes the blanks at its ends");
    }
    if text.contains(['#', ';']) {
        return fail("fio cuts a value at `#` or `;` and would use another file");
    }
    // fio passes a value with such a keyword to a shell.
    if text.contains("${") || KEYWORDS.iter().any(|keyword| text.contains(keyword)) {
        return fail("fio replaces what follows the `$`");
    }
    if text.contains("\\:") {
        return fail("a backslash before a colon has two meanings for fio");
    }
    let escaped = text.replace(':', "\\:");
    if escaped.len() > MAX_FILENAME {
        return fail("it is longer than a line of a job file");
    }
    Ok(escaped)
}

#[cfg(test)]
mod tests;
