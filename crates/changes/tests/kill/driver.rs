//! Runs scenarios in processes that are killed, and checks the remaining state.

use super::common::{Deadly, LoopDevice, Point, inside, root};
use assay_changes::{ChangeError, ChangeSession, Foreign, Journal, RecoveryOutcome};
use assay_host::lockdir::LockDirectory;
use assay_host::{Faulty, HostMut};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// A scenario: a change of objects that the driver prepares in a directory.
pub struct Scenario {
    /// Name of the test that runs the scenario.
    pub name: &'static str,
    /// Prepares real objects; the returned value is kept until the end.
    pub prepare: fn(&Path) -> Option<LoopDevice>,
    /// Returns the state that must be the same before and after.
    pub look: fn(&Path) -> String,
    /// Whether the scenario can run without root.
    pub unprivileged: bool,
    /// Whether the scenario has its own tools in `bin`, which only child processes find.
    pub tools: bool,
    /// Whether the process is also killed at every system call. This is slower, and adds no cases if the kernel does
    /// the work.
    pub traced: bool,
    /// Changes objects and rolls them back.
    pub act: fn(&Path, &ChangeSession, &dyn HostMut) -> Result<(), ChangeError>,
}

const STEP: &str = "ASSAY_TEST_STEP";
/// Environment variable that contains the directory of the objects, for child processes.
pub const DIR: &str = "ASSAY_TEST_DIR";

pub fn journal(dir: &Path) -> Journal {
    Journal::open(&dir.join("journal")).unwrap()
}

pub fn left(dir: &Path) -> usize {
    fs::read_dir(dir.join("journal/sessions")).unwrap().count()
}

fn act(scenario: &Scenario, dir: &Path, host: &dyn HostMut) -> Result<(), ChangeError> {
    let session = journal(dir).begin("test", &dir.to_string_lossy())?;
    let done = (scenario.act)(dir, &session, host);
    session.close(host)?;
    done
}

/// Runs the same test again as a child process that acts or recovers, and is killed at a point.
fn child(scenario: &Scenario, dir: &Path, what: &str, point: Point) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", scenario.name, "--nocapture"])
        .env(STEP, format!("{what} {point}"))
        .env(DIR, dir)
        .env("PATH", path(dir))
        .stdout(Stdio::null())
        .status()
        .unwrap()
}

/// Returns the `PATH` of the child process.
fn path(dir: &Path) -> OsString {
    let mut path = OsString::from(dir.join("bin"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Recovers without being killed.
fn recovered(scenario: &Scenario, dir: &Path) {
    match scenario.tools {
        true => assert!(!killed(child(scenario, dir, "recover", NEVER))),
        false => recover(dir, &Deadly::never().with_locks(dir)),
    }
}

const NEVER: Point = Point {
    call: 0,
    after: false,
    writes: false,
};

/// Returns how many times a change is made and rolled back; more in the complete form.
pub fn rounds() -> u64 {
    assay_testing::attack_factor().min(3)
}

/// Returns the step between two kills: the short form skips calls, the complete form kills at each call.
fn stride() -> usize {
    match assay_testing::attack_factor() {
        1 => 4,
        _ => 1,
    }
}

fn step(scenario: &Scenario, step: &str) {
    let dir = std::env::var_os(DIR).unwrap();
    let dir = Path::new(&dir);
    let (what, point) = step.split_once(' ').unwrap();
    let host = Deadly::new(Point::parse(point)).with_locks(dir);
    match what {
        "act" => act(scenario, dir, &host).unwrap(),
        _ => recover(dir, &host),
    }
}

/// Rolls back the changes that were left, and then the changes that were kept. In both cases the machine must be in its
/// original state.
pub fn recover(dir: &Path, host: &dyn HostMut) {
    let journal = journal(dir);
    let mut all = journal.recover(host, Foreign::Leave).unwrap();
    for kept in journal.kept().unwrap() {
        let back = journal.take_back_kept(&kept.uid, host, Foreign::Leave);
        all.extend(back.unwrap());
    }
    for one in all {
        let fine = matches!(
            one.outcome,
            RecoveryOutcome::Restored(_) | RecoveryOutcome::Removed
        );
        assert!(fine, "{one:?}");
    }
}

pub fn killed(status: ExitStatus) -> bool {
    match status.signal() {
        Some(signal) => {
            assert_eq!(signal, 9);
            true
        }
        None => {
            assert!(status.success());
            false
        }
    }
}

pub fn everywhere(scenario: &Scenario) {
    if let Ok(text) = std::env::var(STEP) {
        return step(scenario, &text);
    }
    let plain = scenario.unprivileged && !root();
    if !plain && !inside(scenario.name) {
        return;
    }
    // In memory, because a thousand small processes that wait for the disk would take minutes.
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let dir = place.path();
    let _device = (scenario.prepare)(dir);
    journal(dir);
    let before = (scenario.look)(dir);

    let (mut kills, mut changed, mut recoveries) = (0, 0, 0);
    for after in [false, true] {
        // The two variants begin at different calls, so that few calls are skipped in both.
        let first = 1 + usize::from(after) * stride() / 2;
        for call in (first..).step_by(stride()) {
            let point = Point {
                call,
                after,
                // A kill after a read has the same state as a kill before it.
                writes: after,
            };
            if !killed(child(scenario, dir, "act", point)) {
                break;
            }
            kills += 1;
            changed += u64::from((scenario.look)(dir) != before);
            // Recovery is killed at its first write, the next recovery at its second, and so on.
            for call in (1..).step_by(stride().min(2)) {
                if after {
                    recovered(scenario, dir);
                    break;
                }
                let point = Point {
                    call,
                    after: call % 2 == 0,
                    writes: true,
                };
                if !killed(child(scenario, dir, "recover", point)) {
                    break;
                }
                recoveries += 1;
            }
            assert_eq!((scenario.look)(dir), before, "after a kill at {point}");
            assert_eq!(left(dir), 0, "the journal is empty after a kill at {point}");
            let locks = LockDirectory::open(&dir.join("journal/locks")).unwrap();
            assert_eq!(locks.left().unwrap(), [], "after a kill at {point}");
        }
        assert_eq!((scenario.look)(dir), before, "after an ordinary end");
        assert_eq!(left(dir), 0);
    }
    eprintln!(
        "{}: {kills} kills, {changed} with something changed, {recoveries} in recovery",
        scenario.name
    );
    let all = |seen: u64| seen * stride() as u64;
    assert!(all(kills) > 10 && all(changed) > 3 && all(recoveries) > 3);
    // Each case was compared above.
    let name = format!("kills while something is changed: {}", scenario.name);
    assay_testing::attacked(&name, changed, changed);

    every_system_call(scenario, dir, &before);

    if scenario.tools {
        return;
    }
    // The same with calls that fail.
    let here = Deadly::never().with_locks(dir);
    for call in (1..).step_by(stride()) {
        let faulty = Faulty::once(&here as &dyn HostMut, call);
        let done = act(scenario, dir, &faulty);
        let reached = faulty.calls() >= call;
        recovered(scenario, dir);
        assert_eq!((scenario.look)(dir), before, "call {call} failed: {done:?}");
        assert_eq!(left(dir), 0, "call {call} failed: {done:?}");
        if !reached {
            done.unwrap();
            break;
        }
    }
}

/// The finest variant: the process is killed at every system call that writes, including those on the journal. If a
/// command that was started reaches this number first, the command is killed; the scenario then fails and rolls back by
/// itself.
fn every_system_call(scenario: &Scenario, dir: &Path, before: &str) {
    if !scenario.traced {
        return;
    }
    if !matches!(Command::new("strace").arg("-V").output(), Ok(out) if out.status.success()) {
        assay_testing::skipped("strace", "needs strace to kill at a system call");
        return;
    }
    let calls = "?write,?fsync,?fdatasync,?openat,?rename,?renameat,?renameat2,?unlink,?unlinkat,\
                 ?mkdir,?mkdirat,?flock,?fallocate,?rmdir,?fchmod,?fchown";
    let (mut kills, mut held) = (0, 0);
    let step = 2 * stride() - 1;
    for call in (1..).step_by(step) {
        let status = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e"])
            .arg(format!("trace={calls}"))
            .arg("-e")
            .arg(format!("inject={calls}:signal=KILL:when={call}"))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", scenario.name, "--nocapture"])
            .env(STEP, "act 0 before all")
            .env(DIR, dir)
            .env("PATH", path(dir))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        if status.success() {
            break;
        }
        kills += 1;
        recovered(scenario, dir);
        let is_back = (scenario.look)(dir) == before && left(dir) == 0;
        held += u64::from(is_back);
        if !is_back {
            eprintln!("{}: killed at system call {call}", scenario.name);
            assert_eq!((scenario.look)(dir), before, "killed at system call {call}");
        }
    }
    assert!(kills * step as u64 > 10);
    let name = format!("kills at system calls: {}", scenario.name);
    assay_testing::attacked(&name, kills, held);
}
