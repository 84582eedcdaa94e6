//! Runs a target on many inputs. A panic, a hang, or memory use without a limit is a failure.

use crate::{Mutator, ParserTarget};
use rustix::time::{ClockId, clock_gettime};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Error: a target panicked on an input.
pub struct TargetFailure {
    /// Name of the target.
    pub target: &'static str,
    /// Input on which the target panicked.
    pub input: Vec<u8>,
}

/// CPU seconds of this process after which one input counts as a hang, even on the slowest machine. Wall-clock time is
/// not used for this, because the machine may be busy.
const HANG: i64 = 60;
/// Wall-clock seconds after which one input counts as a hang. This limit is needed because a target may wait without
/// using the CPU.
const WAITING: i64 = 1200;
/// Maximum address space of a test in bytes.
const MEMORY: u64 = 6 << 30;

/// Runs a target on its seeds and on mutated inputs, `executions` in total, until one panics. If an input hangs, prints
/// the input and aborts the process.
///
/// # Errors
/// The input on which the target panicked.
pub fn attack(target: &ParserTarget, executions: u64) -> Result<(), TargetFailure> {
    limit_memory();
    let beat = Arc::new(AtomicU64::new(0));
    let current = Arc::new(Mutex::new(Vec::new()));
    let over = Arc::new(AtomicBool::new(false));
    let watch = watch(target.name, beat.clone(), current.clone(), over.clone());
    let mut mutator = Mutator::new(target.name, &target.seeds);
    let whole = target.seeds.clone().into_iter();
    let mutated = std::iter::repeat_with(|| mutator.next_input());
    let inputs = whole
        .chain(mutated)
        .take(usize::try_from(executions).unwrap_or(usize::MAX));
    let mut outcome = Ok(());
    for input in inputs {
        input.clone_into(&mut current.lock().unwrap_or_else(PoisonError::into_inner));
        beat.fetch_add(1, Ordering::Relaxed);
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
            outcome = Err(TargetFailure {
                target: target.name,
                input,
            });
            break;
        }
    }
    over.store(true, Ordering::Relaxed);
    watch.thread().unpark();
    let _ = watch.join();
    outcome
}

fn watch(
    name: &'static str,
    beat: Arc<AtomicU64>,
    current: Arc<Mutex<Vec<u8>>>,
    over: Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut last = (u64::MAX, 0, 0);
        while !over.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_secs(1));
            let now = beat.load(Ordering::Relaxed);
            let [worked, waited] = [ClockId::ProcessCPUTime, ClockId::Monotonic]
                .map(|clock| clock_gettime(clock).tv_sec);
            if now != last.0 {
                last = (now, worked, waited);
            }
            let endless = worked - last.1 >= HANG || waited - last.2 >= WAITING;
            if endless && !over.load(Ordering::Relaxed) {
                let input = current.lock().unwrap_or_else(PoisonError::into_inner);
                eprintln!("{name}: no end after {HANG} s of: {}", input.escape_ascii());
                std::process::abort();
            }
        }
    })
}

/// Limits the address space of this process. A parser whose memory grows without limit then fails here, and does not
/// use up the memory of the machine.
fn limit_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::As);
    let limit = Rlimit {
        current: Some(before.maximum.unwrap_or(MEMORY).min(MEMORY)),
        maximum: before.maximum,
    };
    let _ = setrlimit(Resource::As, limit);
}
