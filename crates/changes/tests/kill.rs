//! A process is killed at every single call to the machine while it changes real things and takes
//! them back. Whatever the moment, recovery leaves the machine as it was, also when recovery is
//! itself killed at every step.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod common;

use assay_changes::{ChangeError, Foreign, Journal, Made, Outcome, Session, Switch};
use assay_host::{Faulty, Host as _, HostMut, Limits, Live, ProcessId};
use assay_model::change::{ConfigLanguage, Setting};
use common::{Deadly, LoopDevice, Point, image, inside, processes_with, root, sh};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// What is changed, on things that the driver prepares in a directory.
struct Scenario {
    /// Name of the test.
    name: &'static str,
    /// Prepares real things; what it returns is kept alive.
    prepare: fn(&Path) -> Option<LoopDevice>,
    /// What must be the same afterwards.
    look: fn(&Path) -> String,
    /// Needs no root.
    unprivileged: bool,
    /// Also killed at every system call; slower, and with no news where the kernel does the work.
    traced: bool,
    /// Changes things and takes them back.
    act: fn(&Path, &Session, &dyn HostMut) -> Result<(), ChangeError>,
}

const STEP: &str = "ASSAY_TEST_STEP";
const DIR: &str = "ASSAY_TEST_DIR";

fn journal(dir: &Path) -> Journal {
    Journal::open(&dir.join("journal")).unwrap()
}

fn left(dir: &Path) -> usize {
    fs::read_dir(dir.join("journal/sessions")).unwrap().count()
}

fn act(scenario: &Scenario, dir: &Path, host: &dyn HostMut) -> Result<(), ChangeError> {
    let session = journal(dir).begin("test", &dir.to_string_lossy())?;
    let done = (scenario.act)(dir, &session, host);
    session.close(host)?;
    done
}

/// Runs this very test again as a child that acts or recovers, and is killed at a point.
fn child(scenario: &Scenario, dir: &Path, what: &str, point: Point) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", scenario.name, "--nocapture"])
        .env(STEP, format!("{what} {point}"))
        .env(DIR, dir)
        .stdout(Stdio::null())
        .status()
        .unwrap()
}

fn step(scenario: &Scenario, step: &str) {
    let dir = std::env::var_os(DIR).unwrap();
    let dir = Path::new(&dir);
    let (what, point) = step.split_once(' ').unwrap();
    let host = Deadly::new(Point::parse(point));
    match what {
        "act" => act(scenario, dir, &host).unwrap(),
        _ => recover(dir, &host),
    }
}

fn recover(dir: &Path, host: &dyn HostMut) {
    for one in journal(dir).recover(host, Foreign::Leave).unwrap() {
        let fine = matches!(one.outcome, Outcome::Restored(_) | Outcome::Removed);
        assert!(fine, "{one:?}");
    }
}

fn killed(status: ExitStatus) -> bool {
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

fn everywhere(scenario: &Scenario) {
    if let Ok(text) = std::env::var(STEP) {
        return step(scenario, &text);
    }
    let plain = scenario.unprivileged && !root();
    if !plain && !inside(scenario.name) {
        return;
    }
    // In memory: a thousand small processes that each wait for the disk would take minutes.
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let dir = place.path();
    let _device = (scenario.prepare)(dir);
    journal(dir);
    let before = (scenario.look)(dir);

    let (mut kills, mut changed, mut recoveries) = (0, 0, 0);
    for after in [false, true] {
        for call in 1.. {
            let point = Point {
                call,
                after,
                // After reading the machine is as before it.
                writes: after,
            };
            if !killed(child(scenario, dir, "act", point)) {
                break;
            }
            kills += 1;
            changed += usize::from((scenario.look)(dir) != before);
            // Recovery is killed at its first write, what is left of it at its second, and so on.
            for call in 1.. {
                if after {
                    recover(dir, &Live);
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
        }
        assert_eq!((scenario.look)(dir), before, "after an ordinary end");
        assert_eq!(left(dir), 0);
    }
    eprintln!(
        "{}: {kills} kills, {changed} with something changed, {recoveries} in recovery",
        scenario.name
    );
    assert!(kills > 10 && changed > 3 && recoveries > 3);

    every_system_call(scenario, dir, &before);

    // The same with calls that fail.
    for call in 1.. {
        let faulty = Faulty::once(&Live as &dyn HostMut, call);
        let done = act(scenario, dir, &faulty);
        let reached = faulty.calls() >= call;
        recover(dir, &Live);
        assert_eq!((scenario.look)(dir), before, "call {call} failed: {done:?}");
        assert_eq!(left(dir), 0, "call {call} failed: {done:?}");
        if !reached {
            done.unwrap();
            break;
        }
    }
}

/// The finest grain: killed at every system call that writes, those on the journal among them.
/// Where a command that was started reaches that number first, it is killed in its middle, and the
/// scenario fails and takes back by itself what it did.
fn every_system_call(scenario: &Scenario, dir: &Path, before: &str) {
    if !scenario.traced
        || !matches!(Command::new("strace").arg("-V").output(), Ok(out) if out.status.success())
    {
        return;
    }
    let calls = "?write,?fsync,?fdatasync,?openat,?rename,?renameat,?renameat2,?unlink,?unlinkat,\
                 ?mkdir,?mkdirat,?flock,?fallocate,?rmdir,?fchmod,?fchown";
    let mut kills = 0;
    for call in 1.. {
        let status = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e"])
            .arg(format!("trace={calls}"))
            .arg("-e")
            .arg(format!("inject={calls}:signal=KILL:when={call}"))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", scenario.name, "--nocapture"])
            .env(STEP, "act 0 before all")
            .env(DIR, dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        if status.success() {
            break;
        }
        kills += usize::from(status.signal() == Some(9));
        recover(dir, &Live);
        assert_eq!((scenario.look)(dir), before, "killed at system call {call}");
        assert_eq!(left(dir), 0, "killed at system call {call}");
    }
    eprintln!("{}: {kills} kills at system calls", scenario.name);
    assert!(kills > 10);
}

/// Back and forth, as a trial does.
fn toggle(switch: &Switch<'_>, value: &str) -> Result<(), ChangeError> {
    assert_eq!(switch.set(Some(value))?, value);
    switch.restore()?;
    assert_eq!(switch.set(Some(value))?, value);
    assert_eq!(switch.read()?, value);
    Ok(())
}

#[test]
fn queue() {
    fn device(dir: &Path) -> String {
        fs::read_to_string(dir.join("device")).unwrap()
    }
    everywhere(&Scenario {
        name: "queue",
        unprivileged: false,
        traced: false,
        prepare: |dir| {
            image(&dir.join("image"));
            let device = LoopDevice::new(&dir.join("image"));
            fs::write(dir.join("device"), &device.0).unwrap();
            let queue = format!("/sys/block/{}/queue", device.name());
            // A scheduler with a setting of its own that is not the default.
            fs::write(format!("{queue}/scheduler"), "mq-deadline").unwrap();
            fs::write(format!("{queue}/iosched/fifo_batch"), "7").unwrap();
            fs::write(format!("{queue}/nr_requests"), "33").unwrap();
            Some(device)
        },
        look: |dir| {
            let device = device(dir);
            let queue = format!("/sys/block/{}/queue", &device["/dev/".len()..]);
            let names = [
                "scheduler",
                "read_ahead_kb",
                "nr_requests",
                "iosched/fifo_batch",
            ];
            let read = |name: &str| fs::read_to_string(format!("{queue}/{name}"));
            names
                .map(|name| format!("{name}={:?}", read(name).ok()))
                .join("\n")
        },
        act: |dir, session, host| {
            let setting = |attribute: &str| Setting::Queue {
                device: device(dir),
                attribute: attribute.into(),
            };
            let scheduler = Switch::open(session, host, &setting("scheduler"))?;
            toggle(&scheduler, "none")?;
            let read_ahead = Switch::open(session, host, &setting("read_ahead_kb"))?;
            toggle(&read_ahead, "512")?;
            drop(read_ahead);
            // The kernel rounds down to pages.
            let read_ahead = Switch::open(session, host, &setting("read_ahead_kb"))?;
            match read_ahead.set(Some("1030")) {
                Err(ChangeError::ReadBack { found, .. }) => {
                    assert!(found.parse::<u64>().unwrap() < 1030)
                }
                Err(other) => return Err(other),
                Ok(read) => panic!("{read}"),
            }
            Ok(())
        },
    });
}

#[test]
fn sysctl() {
    everywhere(&Scenario {
        name: "sysctl",
        unprivileged: false,
        traced: true,
        prepare: |_| None,
        look: |_| {
            let read = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
            format!("{:?} {:?}", read("tcp_rmem"), read("ip_forward"))
        },
        act: |_, session, host| {
            let setting = |key: &str| Setting::Sysctl { key: key.into() };
            let forward = Switch::open(session, host, &setting("net.ipv4.ip_forward"))?;
            toggle(&forward, "1")?;
            let memory = Switch::open(session, host, &setting("net/ipv4/tcp_rmem"))?;
            // Read back with tabs.
            memory.set(Some("4096 65536 1048576"))?;
            Ok(())
        },
    });
}

#[test]
fn config() {
    everywhere(&Scenario {
        name: "config",
        unprivileged: true,
        traced: true,
        prepare: |dir| {
            fs::write(
                dir.join("service.conf"),
                "# by hand\nworkers = 2 # two\nother = x\n",
            )
            .unwrap();
            fs::copy(dir.join("service.conf"), dir.join("running")).unwrap();
            None
        },
        look: |dir| {
            let mut names: Vec<_> = Live.list(dir).unwrap();
            names.retain(|name| name != "journal");
            let read = |name: &OsStr| fs::read_to_string(dir.join(name)).unwrap();
            names
                .iter()
                .map(|name| format!("{name:?}: {}", read(name)))
                .collect()
        },
        act: |dir, session, host| {
            let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
            let words = |words: &[&str]| {
                words
                    .iter()
                    .map(|&word| word.into())
                    .collect::<Vec<String>>()
            };
            let switch = Switch::open(
                session,
                host,
                &Setting::Config {
                    file: path("service.conf"),
                    language: ConfigLanguage::KeyValue,
                    section: Vec::new(),
                    key: "workers".into(),
                    validate: words(&["sh", "-c", "! grep -q bad \"$1\"", "sh", "{file}"]),
                    // The service "reads" its file, and cannot start with 13 workers.
                    reload: words(&[
                        "sh",
                        "-c",
                        "! grep -q 13 \"$1\" && cp \"$1\" \"$2\"",
                        "sh",
                        &path("service.conf"),
                        &path("running"),
                    ]),
                },
            )?;
            toggle(&switch, "8")?;
            for value in ["bad", "13"] {
                match switch.set(Some(value)) {
                    Err(ChangeError::Command { .. }) => {}
                    Err(other) => return Err(other),
                    Ok(read) => panic!("{read}"),
                }
            }
            switch.set(None)?;
            Ok(())
        },
    });
}

#[test]
fn mount() {
    everywhere(&Scenario {
        name: "mount",
        unprivileged: false,
        traced: false,
        prepare: |dir| {
            image(&dir.join("image"));
            let device = LoopDevice::new(&dir.join("image"));
            fs::create_dir(dir.join("a b")).unwrap();
            let mountpoint = dir.join("a b");
            let options = "nosuid,noatime,commit=7";
            sh(&[
                "mount",
                "-o",
                options,
                &device.0,
                mountpoint.to_str().unwrap(),
            ]);
            Some(device)
        },
        look: |_| {
            let table = fs::read_to_string("/proc/self/mounts").unwrap();
            let mut lines = table.lines().filter(|line| line.contains("a\\040b"));
            lines.next().unwrap().to_owned()
        },
        act: |dir, session, host| {
            let switch = Switch::open(
                session,
                host,
                &Setting::MountOption {
                    mountpoint: dir.join("a b").to_str().unwrap().into(),
                    choices: ["relatime", "noatime", ""].map(str::to_owned).to_vec(),
                },
            )?;
            toggle(&switch, "relatime")?;
            assert_eq!(switch.set(Some(""))?, "strictatime");
            Ok(())
        },
    });
}

#[test]
fn commands() {
    everywhere(&Scenario {
        name: "commands",
        unprivileged: true,
        traced: true,
        prepare: |dir| {
            fs::write(dir.join("value"), "old").unwrap();
            None
        },
        look: |dir| fs::read_to_string(dir.join("value")).unwrap(),
        act: |dir, session, host| {
            let file = dir.join("value").to_str().unwrap().to_owned();
            let words = |words: &[&str]| {
                words
                    .iter()
                    .map(|&word| word.into())
                    .collect::<Vec<String>>()
            };
            // Cut off in the middle it leaves something that was neither before nor wanted.
            let write = "echo half >\"$2\"; printf %s \"$1\" >\"$2\"";
            let switch = Switch::open(
                session,
                host,
                &Setting::Command {
                    read: words(&["cat", &file]),
                    apply: words(&["sh", "-c", write, "sh", "{value}", &file]),
                    undo: words(&["sh", "-c", write, "sh", "{value}", &file]),
                },
            )?;
            toggle(&switch, "new $(value)")
        },
    });
}

#[test]
fn made() {
    everywhere(&Scenario {
        name: "made",
        unprivileged: false,
        traced: false,
        prepare: |dir| {
            image(&dir.join("template"));
            None
        },
        look: |dir| {
            let text = dir.to_str().unwrap();
            let mut names = Live.list(dir).unwrap();
            names.retain(|name| name != "journal");
            let loops = sh(&["losetup", "--list", "--noheadings", "--output", "BACK-FILE"]);
            let loops = loops.lines().filter(|line| line.contains(text)).count();
            let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
            let mounts = mounts.lines().filter(|line| line.contains(text)).count();
            let spaces = Live.list(Path::new("/run/netns")).unwrap_or_default();
            let tail = format!("{text}/template");
            format!(
                "{names:?} {loops} {mounts} {:?} {}",
                spaces
                    .iter()
                    .filter(|name| name.to_string_lossy().contains("assay-"))
                    .count(),
                processes_with(&tail)
            )
        },
        act: |dir, session, host| {
            let template = dir.join("template");
            let run = |argv: &[&OsStr]| {
                let output = host.run(argv, Limits::default())?;
                assert!(output.success(), "{argv:?}: {}", output.complaint());
                Ok::<_, ChangeError>(())
            };
            let folder = dir.join(session.name("folder"));
            session.made(&Made::Directory(folder.clone()))?;
            run(&["mkdir".as_ref(), folder.as_ref()])?;

            let file = dir.join(session.name("image with a blank"));
            session.made(&Made::File(file.clone()))?;
            run(&["cp".as_ref(), template.as_ref(), file.as_ref()])?;

            let backing = file.clone();
            session.made(&Made::Loop { backing })?;
            run(&["losetup".as_ref(), "--find".as_ref(), file.as_ref()])?;
            let device = sh(&["losetup", "--associated", file.to_str().unwrap()]);
            let device = device.split(':').next().unwrap();

            let mountpoint = folder.join("on it");
            run(&["mkdir".as_ref(), mountpoint.as_ref()])?;
            let mount = session.made(&Made::Mount {
                mountpoint: mountpoint.clone(),
            })?;
            run(&["mount".as_ref(), device.as_ref(), mountpoint.as_ref()])?;

            let name = format!("{}-net", session.tag());
            session.made(&Made::Netns { name: name.clone() })?;
            run(&[
                "ip".as_ref(),
                "netns".as_ref(),
                "add".as_ref(),
                name.as_ref(),
            ])?;

            // Sits in the mount, so that it cannot be unmounted before this is gone.

            let mut tail = Command::new("tail");
            tail.arg("-f").arg(&template).current_dir(&mountpoint);
            let mut tail = tail.stdout(Stdio::null()).spawn().unwrap();
            let process = ProcessId::of(tail.id()).unwrap();
            let reaper = std::thread::spawn(move || tail.wait());
            session.made(&Made::from(process))?;

            // Some things are taken back on the way, the others at the end.
            let other = dir.join(session.name("other"));
            let other_id = session.made(&Made::File(other.clone()))?;
            run(&["touch".as_ref(), other.as_ref()])?;
            session.unmake(host, other_id)?;
            host.kill(process)?;
            reaper.join().unwrap().unwrap();
            session.unmake(host, mount)
        },
    });
}

/// A command of the user's that is cut off in the middle, with assay: it must not go on behind
/// the back of a recovery.
#[test]
fn in_the_middle_of_a_command() {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|&word| word.into())
            .collect::<Vec<String>>()
    };
    let dir = match std::env::var_os(DIR) {
        Some(dir) if std::env::var_os("ASSAY_TEST_MIDDLE").is_some() => dir,
        _ => {
            let place = tempfile::tempdir().unwrap();
            let file = place.path().join("value");
            fs::write(&file, "old").unwrap();
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "in_the_middle_of_a_command", "--nocapture"])
                .env("ASSAY_TEST_MIDDLE", "1")
                .env(DIR, place.path())
                .stdout(Stdio::null())
                .status();
            assert!(killed(status.unwrap()));
            assert_eq!(fs::read_to_string(&file).unwrap(), "half");
            recover(place.path(), &Live);
            // Time enough for a command that lived on.
            std::thread::sleep(std::time::Duration::from_millis(400));
            assert_eq!(fs::read_to_string(&file).unwrap(), "old");
            assert_eq!(left(place.path()), 0);
            return;
        }
    };
    let dir = Path::new(&dir);
    let file = dir.join("value").to_str().unwrap().to_owned();
    let fatal = "printf half >\"$2\"; kill -9 $PPID; sleep 0.2; printf %s \"$1\" >\"$2\"";
    let session = journal(dir).begin("test", "x").unwrap();
    let setting = Setting::Command {
        read: words(&["cat", &file]),
        apply: words(&["sh", "-c", fatal, "sh", "{value}", &file]),
        undo: words(&[
            "sh",
            "-c",
            "printf %s \"$1\" >\"$2\"",
            "sh",
            "{value}",
            &file,
        ]),
    };
    let switch = Switch::open(&session, &Live, &setting).unwrap();
    switch.set(Some("new")).unwrap();
}
