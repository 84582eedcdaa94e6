//! Shows a progress line on standard error, beginning one second after the start. Ctrl-C stops the operation early and
//! keeps the results so far.

use super::age;
use assay_dups::{Control, ScanProgress};
use assay_model::size::Convention::Binary;
use assay_render::units::format_plural;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Time in milliseconds until the progress line appears. The next constant is the time between two updates.
const FIRST_MS: i64 = 1000;
const EVERY_MS: i64 = 200;

/// Runs a long operation with a progress line. Ctrl-C stops the operation cleanly.
///
/// # Errors
/// The signal handler cannot be installed.
pub fn watch<T>(threads: Option<usize>, work: impl FnOnce(&Control<'_>) -> T) -> anyhow::Result<T> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The second signal ends the process at once.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let progress = ScanProgress::default();
    let begun = assay_dups::unix_nanos();
    let shown = AtomicI64::new(FIRST_MS - EVERY_MS);
    let visible = std::io::stderr().is_terminal();
    let tick = || {
        let now = (assay_dups::unix_nanos() - begun) / 1_000_000;
        if visible && now - shown.load(Ordering::Relaxed) >= EVERY_MS {
            shown.store(now, Ordering::Relaxed);
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(&progress, now));
        }
    };
    let done = work(&Control {
        stop: &stop,
        progress: &progress,
        tick: &tick,
        threads,
    });
    if visible && shown.load(Ordering::Relaxed) >= FIRST_MS {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    Ok(done)
}

fn line(progress: &ScanProgress, elapsed_ms: i64) -> String {
    let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let files = format_plural(get(&progress.files_seen), "file", "files");
    let planned = get(&progress.bytes_planned);
    if planned == 0 {
        let seen = Binary.show(get(&progress.bytes_seen));
        return format!("walking: {files}, {seen}");
    }
    let read = get(&progress.bytes_read);
    let mut text = format!(
        "comparing: {files}, {} of at most {}",
        Binary.show(read),
        Binary.show(planned)
    );
    if read > 0 {
        let left = (elapsed_ms as f64 * planned.saturating_sub(read) as f64 / read as f64) as i64;
        let left = age::show(left.saturating_mul(1_000_000));
        text.push_str(&format!(", at most {left} left"));
    }
    text
}
