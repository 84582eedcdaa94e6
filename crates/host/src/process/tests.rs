use super::*;
use crate::{HostMut as _, LiveHost, ProcessId};
use std::io::{BufRead as _, BufReader, Read as _};

const KEEP: Keep = Keep {
    stdout: 1 << 20,
    stderr: 1 << 20,
    leftovers: Leftovers::Kill,
};

fn command(argv: &[&str]) -> Command {
    let mut command = Command::new(argv[0]);
    command
        .args(&argv[1..])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn sh(script: &str) -> Command {
    command(&["sh", "-c", script])
}

/// Returns the running process whose number is on the first line of the output.
fn names(output: impl io::Read) -> ProcessId {
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).unwrap();
    ProcessId::of(line.trim().parse().unwrap()).expect("it was started")
}

fn lives(process: ProcessId) -> bool {
    ProcessId::of(process.pid.unsigned_abs()) == Some(process)
}

/// Waits until a process is gone, because the kernel kills processes with a delay.
fn ends(process: ProcessId) -> bool {
    let patience = Instant::now() + Duration::from_secs(20);
    while lives(process) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    !lives(process)
}

const WAYS: [(&str, Dies); 4] = [
    ("thread", Dies::WithThread),
    ("assay", Dies::WithAssay),
    ("asked", Dies::Asked),
    ("own", Dies::OnItsOwn),
];

/// Plays the role of assay in the next test: starts a program, prints its process number, and waits to be killed.
#[test]
fn holder() {
    let Ok(way) = std::env::var("ASSAY_TEST_HOLDER") else {
        return;
    };
    let (_, dies) = WAYS.into_iter().find(|(name, _)| *name == way).unwrap();
    let running = Running::start(command(&["sleep", "1000"]), dies).unwrap();
    eprintln!("{}", running.pid());
    std::thread::sleep(Duration::from_secs(1000));
}

#[test]
fn a_program_dies_with_the_assay_that_is_killed() {
    for (way, dies) in WAYS {
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::tests::holder", "--nocapture"])
            .env("ASSAY_TEST_HOLDER", way)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let program = names(holder.stderr.take().unwrap());
        holder.kill().unwrap();
        holder.wait().unwrap();
        if dies == Dies::OnItsOwn {
            assert!(lives(program));
            LiveHost.kill(program).unwrap();
        } else {
            assert!(ends(program), "{way}");
        }
    }
}

#[test]
fn only_what_says_so_dies_with_its_thread() {
    let start = |dies| {
        let start = move || Running::start(command(&["sleep", "1000"]), dies).unwrap();
        std::thread::spawn(start).join().unwrap()
    };
    let mut with_thread = start(Dies::WithThread);
    let ended = with_thread.reap().unwrap();
    assert_eq!((ended.to_string(), ended.code()), ("signal 9".into(), 137));
    let mut with_assay = start(Dies::WithAssay);
    assert!(!with_assay.wait(Duration::from_millis(100)).unwrap());
    assert_eq!(with_assay.ended().unwrap(), None);
    drop(with_assay);
}

#[test]
fn dropping_it_ends_what_it_started_too() {
    for dies in [Dies::WithThread, Dies::WithAssay, Dies::Asked] {
        let mut running = Running::start(sh("sleep 1000 & echo $!; wait"), dies).unwrap();
        let inner = names(running.child.stdout.take().unwrap());
        let outer = ProcessId::of(running.pid()).unwrap();
        drop(running);
        assert!(!lives(outer) && ends(inner), "{dies:?}");
    }
}

#[test]
fn one_that_is_asked_may_tidy_up() {
    let script = "trap 'echo tidied; exit' TERM; echo $$; while :; do sleep 0.01; done";
    let mut running = Running::start(sh(script), Dies::Asked).unwrap();
    let mut output = running.child.stdout.take().unwrap();
    let mut number = [0; 1];
    output.read_exact(&mut number).unwrap();
    drop(running);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("tidied\n"), "{rest}");
}

#[test]
fn much_output_on_both_pipes_does_not_block() {
    let script = "head -c 900000 /dev/zero & head -c 3000000 /dev/zero >&2; wait";
    let running = Running::start(sh(script), Dies::WithThread).unwrap();
    let found = running.collect(KEEP, |_| false).unwrap();
    assert!(found.ended.success() && !found.stopped);
    let lengths = (found.stdout.len(), found.stderr.len(), found.overfull);
    assert_eq!(lengths, (900_000, 1 << 20, true));
}

#[test]
fn what_hangs_is_killed_with_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("sleep 1000 & echo $! > '{}'; wait", pid.display());
    let begin = Instant::now();
    let running = Running::start(sh(&script), Dies::WithThread).unwrap();
    let stop = |look: StopQuery| pid.exists() && look.now - begin > Duration::from_millis(200);
    let found = running.collect(KEEP, stop).unwrap();
    assert!(found.stopped);
    let inner: u32 = std::fs::read_to_string(&pid)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(ProcessId::of(inner).is_none_or(ends));
}

#[test]
fn what_it_leaves_goes_or_stays_and_is_not_waited_for() {
    for leftovers in [Leftovers::Kill, Leftovers::Leave] {
        let keep = Keep { leftovers, ..KEEP };
        // It holds both pipes.
        let running = Running::start(sh("sleep 1000 & echo $!"), Dies::WithThread).unwrap();
        let found = running.collect(keep, |_| false).unwrap();
        let pid = String::from_utf8(found.stdout).unwrap();
        let left = ProcessId::of(pid.trim().parse().unwrap());
        match leftovers {
            Leftovers::Kill => assert!(left.is_none_or(ends)),
            Leftovers::Leave => LiveHost.kill(left.expect("it stays")).unwrap(),
        }
    }
}

#[test]
fn a_kernel_without_handles_of_processes_will_do() {
    let mut running = Running::start(sh("sleep 0.1; echo late; exit 3"), Dies::WithThread).unwrap();
    running.handle = None;
    let found = running.collect(KEEP, |_| false).unwrap();
    assert_eq!(found.stdout, b"late\n");
    assert_eq!(found.ended.to_string(), "exit status 3");
}

#[test]
fn its_cpu_time_is_known_and_its_end_is_taken_once() {
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let mut running = Running::start(sh(script), Dies::WithThread).unwrap();
    let ended = running.reap().unwrap();
    assert!(ended.success() && ended.cpu > Duration::ZERO);
    assert_eq!(running.ended().unwrap(), Some(ended));
    // The number may be reused, so no process receives the signal.
    running.signal(Signal::KILL);
    assert_eq!(running.kill().unwrap(), ended);
}

#[test]
fn files_are_handed_over() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = sh("ls -l /proc/self/fd/");
    hand_over(&mut command, vec![file.reopen().unwrap()]);
    let running = Running::start(command, Dies::WithThread).unwrap();
    let found = running.collect(KEEP, |_| false).unwrap();
    let listed = String::from_utf8(found.stdout).unwrap();
    assert!(listed.contains(file.path().to_str().unwrap()), "{listed}");
}

#[test]
fn what_cannot_be_started_says_so() {
    for (_, dies) in WAYS {
        let error = Running::start(command(&["/no/such/program"]), dies).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
