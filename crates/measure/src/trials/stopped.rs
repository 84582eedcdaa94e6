//! Detects whether assay or its load was stopped while a slot was measured.
//!
//! A stopped process (SIGSTOP, Ctrl-Z, a frozen container) does no work while its clock continues. So a slot of 5 s
//! with a stop of 20 s would count as several times slower than it was. The duration alone does not prove a stop: a
//! stalling device has the same effect, and a trial must measure such stalls. Therefore a thread watches the state of
//! every child process and the duration of its own sleeps. If a sleep takes much too long although the thread did not
//! wait for a CPU, assay was stopped.

use crate::trials::void_doubt;
use assay_host::Host;
use assay_model::{Doubt, Nanos};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Code of the doubt (a reason to distrust a figure) about a stopped load.
pub const CODE: &str = "load-stopped";
/// Interval between two checks for a stopped process.
const TICK: Duration = Duration::from_millis(100);
/// Minimum excess duration of a sleep that proves a stop of assay, provided that the thread did not wait for a CPU.
const LATE: Duration = Duration::from_secs(1);

/// A stop of assay or its load that was detected.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stop {
    /// assay itself was stopped for this long.
    Assay(Duration),
    /// This child process was stopped by a signal.
    Load { pid: String, name: String },
}

/// Runs `work` and watches for stops during it. Without a host, only runs `work`.
pub(crate) fn watch_for_stops<T>(
    host: Option<&dyn Host>,
    work: impl FnOnce() -> T,
) -> (T, Option<Doubt>) {
    let Some(host) = host else {
        return (work(), None);
    };
    std::thread::scope(|scope| {
        let (done, ended) = channel::<()>();
        let watch = std::thread::Builder::new()
            .name("assay-watch".to_owned())
            .spawn_scoped(scope, move || watch(host, &ended));
        let worked = work();
        drop(done);
        // A thread that could not be started, or that panicked, detected nothing.
        let seen = watch.ok().and_then(|watch| watch.join().ok()).flatten();
        (worked, seen.map(|stop| stop_doubt(&stop)))
    })
}

/// Watches until the work has ended. Returns the first stop that is detected.
fn watch(host: &dyn Host, ended: &Receiver<()>) -> Option<Stop> {
    let mut seen = None;
    let mut waited = waited_for_processor(host);
    loop {
        let before = monotonic_time();
        let over = ended.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout);
        let slept = monotonic_time().saturating_sub(before);
        let waits = waited_for_processor(host);
        let late = slept
            .saturating_sub(TICK)
            .saturating_sub(waits.saturating_sub(waited));
        waited = waits;
        if late > LATE {
            // It contains more information than a stop of a child at the same time.
            seen = Some(Stop::Assay(late));
        }
        seen = seen.or_else(|| stopped_below(host));
        if over {
            return seen;
        }
    }
}

fn stop_doubt(stop: &Stop) -> Doubt {
    let evidence = match stop {
        Stop::Assay(late) => format!(
            "assay itself did not run for {} during the slot, though there was a processor for it",
            Nanos::from(*late)
        ),
        Stop::Load { pid, name } => {
            format!("`{name}` (process {pid}) was stopped by a signal during the slot")
        }
    };
    void_doubt(
        CODE,
        evidence,
        "the pair is left out; let assay and its load run (no Ctrl-Z, SIGSTOP or paused container)",
    )
}

fn monotonic_time() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns how long this thread was runnable without a CPU (`schedstat` in proc(5)); zero if the kernel does not count
/// this time.
fn waited_for_processor(host: &dyn Host) -> Duration {
    let text = read(host, "/proc/thread-self/schedstat").unwrap_or_default();
    let waited = text.split_whitespace().nth(1);
    Duration::from_nanos(waited.and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// Returns a stopped child process of assay, at any depth; `None` if there is none.
fn stopped_below(host: &dyn Host) -> Option<Stop> {
    let mut next = thread_children(host, "self");
    // New processes are found at the next check; the limit bounds a race with processes that fork.
    let mut left = 10_000;
    while let Some(pid) = next.pop() {
        left -= 1;
        if left == 0 {
            return None;
        }
        if let Some(name) =
            read(host, &format!("/proc/{pid}/stat")).and_then(|stat| find_stopped(&stat))
        {
            return Some(Stop::Load { pid, name });
        }
        next.extend(thread_children(host, &pid));
    }
    None
}

/// Parses `/proc/PID/stat`. Returns the name of the process if it is stopped. The name may contain brackets and blanks.
fn find_stopped(stat: &str) -> Option<String> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    (after.split_whitespace().next() == Some("T")).then(|| name.escape_debug().to_string())
}

/// Returns the ids of the child processes of all threads of a process.
fn thread_children(host: &dyn Host, pid: &str) -> Vec<String> {
    let tasks = format!("/proc/{pid}/task");
    let threads = host.list(Path::new(&tasks)).unwrap_or_default();
    let of =
        |thread: &std::ffi::OsString| read(host, &format!("{tasks}/{}/children", thread.to_str()?));
    let lists: Vec<String> = threads.iter().filter_map(of).collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.map(str::to_owned).collect()
}

fn read(host: &dyn Host, path: &str) -> Option<String> {
    String::from_utf8(host.read(Path::new(path)).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::LiveHost;
    use assay_host::process::{Dies, Running};
    use rustix::process::{Pid, Signal, kill_process};

    #[test]
    fn a_state_is_read_behind_whatever_name() {
        assert_eq!(find_stopped("7 (a) T 1) T 1 7").as_deref(), Some("a) T 1"));
        for runs in ["7 (T) S 1", "7 (x) t 1", "7 (x", "", "7 (T)"] {
            assert_eq!(find_stopped(runs), None, "{runs}");
        }
    }

    /// All cases are in one test, because tests that run at the same time would detect each other's stopped processes.
    #[test]
    fn a_stopped_program_is_seen_and_a_slow_one_is_not() {
        let ((), doubt) = watch_for_stops(Some(&LiveHost), || {
            Running::start(sleeping("0.4"), Dies::WithThread)
                .unwrap()
                .reap()
                .map(drop)
                .unwrap();
        });
        assert_eq!(doubt, None);
        let ((), doubt) = watch_for_stops(Some(&LiveHost), || {
            let mut running = Running::start(sleeping("0.2"), Dies::WithThread).unwrap();
            let pid = Pid::from_raw(i32::try_from(running.pid()).unwrap()).unwrap();
            kill_process(pid, Signal::STOP).unwrap();
            std::thread::sleep(Duration::from_millis(500));
            kill_process(pid, Signal::CONT).unwrap();
            running.reap().map(drop).unwrap();
        });
        let doubt = doubt.unwrap();
        assert_eq!(doubt.code, CODE);
        assert!(doubt.evidence.contains("`sleep`"), "{}", doubt.evidence);
    }

    #[allow(clippy::disallowed_methods, reason = "a real load")]
    fn sleeping(seconds: &str) -> std::process::Command {
        let mut command = std::process::Command::new("sleep");
        command.arg(seconds);
        command
    }
}
