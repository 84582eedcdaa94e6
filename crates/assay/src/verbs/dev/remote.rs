//! Runs the server process that `--host` starts on the other machine, and its watchdog.

use crate::context;
use crate::sweep;
use assay_changes::Journal;
use assay_fleet::remote::guard::{Guard, watch};
use assay_fleet::remote::serve::{Here, serve as serve_line};
use assay_host::{Host as _, LiveHost};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Maximum extra time that the watchdog waits after the server's time limit. The extra time is half of `silence`, but
/// not more than this.
const GRACE: Duration = Duration::from_secs(15);

/// Runs the server: answers the client over standard input and output, and starts the watchdog process.
#[allow(
    clippy::disallowed_methods,
    reason = "the process that outlives this one is this program itself"
)]
pub fn serve(dir: &Path, silence: u64) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let others = sessions();
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["dev", "remote-guard", "--silence", &silence.to_string()])
        .arg("--dir")
        .arg(dir)
        .args(&others);
    let here = Here {
        dir,
        silence: Duration::from_secs(silence),
        version: env!("CARGO_PKG_VERSION"),
        machine: assay_facts::machine(&LiveHost),
        stop,
        guard: Guard::start(command)?,
        take_back: &mut || {
            take_back(&others);
        },
    };
    serve_line(here, std::io::stdin(), std::io::stdout())?;
    Ok(())
}

/// Runs the watchdog. After the server has ended, reverts its changes, and removes `dir` when no change is left.
pub fn guard(dir: &Path, silence: u64, others: &[String]) {
    // The signal would kill it together with the processes that it watches.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
    let silence = Duration::from_secs(silence);
    let silence = silence + GRACE.min(silence / 2);
    if watch(silence, std::io::stdin(), &mut || take_back(others)) {
        #[allow(
            clippy::disallowed_methods,
            reason = "the directory was made for this program alone"
        )]
        let _ = std::fs::remove_dir_all(dir);
    }
}

/// Returns the journal if it exists; does not create one.
fn journal() -> Option<Journal> {
    let dir = context::journal_dir().ok()?;
    match LiveHost.exists(&dir) {
        Ok(true) => Journal::open(&dir).ok(),
        _ => None,
    }
}

fn sessions() -> Vec<String> {
    let found = journal().and_then(|journal| journal.sessions_there().ok());
    found.unwrap_or_default()
}

/// Reverts sessions whose process ended. Skips the sessions `others`, which existed before this server. Returns whether
/// no other session is left.
fn take_back(others: &[String]) -> bool {
    sweep::at_start();
    let Some(journal) = journal() else {
        return true;
    };
    let Ok(all) = journal.sessions_there() else {
        return false;
    };
    let mut nothing_left = true;
    for number in all.iter().filter(|number| !others.contains(number)) {
        nothing_left &= match journal.is_left(number) {
            Ok(true) => journal.recover_session(number, &LiveHost).is_ok(),
            _ => false,
        };
    }
    nothing_left
}
