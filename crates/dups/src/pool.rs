//! Runs threads: one per CPU while the threads compute, more while they wait for a disk.

use crate::Control;
use crate::sys;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Maximum number of threads. On a virtual solid-state disk, 32 readers took 83 % of the time of 8; 64 were no
/// faster.
const MOST: usize = 32;
/// Interval at which the pool measures the load of its threads.
const TICK: Duration = Duration::from_millis(10);
/// Fraction of CPU time below which the threads count as waiting. They wait for a disk if they also gave up the CPU at
/// least [`WAITS`] times in a tick; otherwise other programs use the CPUs.
const BUSY: f64 = 0.75;
const WAITS: i64 = 4;

/// Returns the number of CPUs that this process can use.
pub(crate) fn count_processors() -> usize {
    std::thread::available_parallelism().map_or(2, |n| n.get())
}

/// Waits for a thread and returns its result; a panic of the thread continues in the caller.
pub(crate) fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `work` on several threads until all have returned. `work` takes tasks from a shared queue and returns when the
/// queue is empty. `most` is the maximum number of threads (`None`: adapted to the load). `tick` runs on the calling
/// thread at every tick.
pub(crate) fn run(
    control: &Control<'_>,
    most: Option<usize>,
    work: impl Fn() + Sync,
    tick: impl Fn(),
) {
    let processors = count_processors();
    let most = most
        .or(control.threads)
        .unwrap_or(MOST.max(processors))
        .max(1);
    let done = Done::default();
    std::thread::scope(|scope| {
        let body = || {
            // Also counted after a panic of `work`, so that the caller does not wait forever.
            let _count = Count(&done);
            work();
        };
        let mut started = 0;
        let mut start = |more: usize| {
            for _ in 0..more {
                scope.spawn(body);
            }
            started += more;
            started
        };
        let mut running = start(processors.min(most));
        let mut before = (
            Instant::now(),
            sys::cpu_time(),
            sys::count_voluntary_switches(),
        );
        while done.wait(running) {
            tick();
            let now = (
                Instant::now(),
                sys::cpu_time(),
                sys::count_voluntary_switches(),
            );
            let wall = now.0.duration_since(before.0).as_nanos() as f64;
            let used = (now.1 - before.1) as f64 / (wall * processors as f64);
            let waits = now.2 - before.2 >= WAITS;
            if used < BUSY && waits && running < most && done.count() == 0 {
                running = start((most - running).min(processors.max(running / 2)));
            }
            before = now;
        }
    });
}

#[derive(Default)]
struct Done {
    finished: Mutex<()>,
    changed: Condvar,
    number: AtomicUsize,
}

impl Done {
    /// Waits until the next tick. Returns false when all threads have finished.
    fn wait(&self, running: usize) -> bool {
        let guard = crate::skip::lock(&self.finished);
        if self.count() >= running {
            return false;
        }
        drop(self.changed.wait_timeout(guard, TICK));
        self.count() < running
    }

    fn count(&self) -> usize {
        self.number.load(Ordering::SeqCst)
    }
}

struct Count<'a>(&'a Done);

impl Drop for Count<'_> {
    fn drop(&mut self) {
        let _guard = crate::skip::lock(&self.0.finished);
        self.0.number.fetch_add(1, Ordering::SeqCst);
        self.0.changed.notify_all();
    }
}
