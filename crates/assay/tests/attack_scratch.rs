//! The owner of a directory replaces assay's scratch file, and the directory itself, while root measures in it: no
//! file of root is written, and assay ends.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, fio, ran, root};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const NOBODY: u32 = 65534;
/// Time limit under attack.
const LONGEST: Duration = Duration::from_secs(120);

/// The object that replaces the scratch file.
#[derive(Clone, Copy, Debug)]
enum Swap {
    Link,
    HardLink,
    Pipe,
    Directory,
    File,
    /// The file is renamed in its directory and replaced by a link.
    Renamed,
    /// The file is moved to another directory and replaced by a link.
    TakenAway,
    /// The directory is replaced by a link to another one.
    Parent,
}

const SWAPS: [Swap; 8] = [
    Swap::Link,
    Swap::HardLink,
    Swap::Pipe,
    Swap::Directory,
    Swap::File,
    Swap::Renamed,
    Swap::TakenAway,
    Swap::Parent,
];

/// A directory of an unprivileged user, beside files of root.
struct Ground {
    base: tempfile::TempDir,
    dir: PathBuf,
    away: PathBuf,
    victim: PathBuf,
    content: Vec<u8>,
}

impl Ground {
    fn new() -> Self {
        let base = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let [theirs, ours] = ["theirs", "ours"].map(|name| base.path().join(name));
        let (dir, away) = (theirs.join("dir"), theirs.join("away"));
        for path in [&theirs, &dir, &away] {
            fs::create_dir(path).unwrap();
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(&ours).unwrap();
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o700)).unwrap();
        let victim = ours.join("victim");
        // Larger than the test file: fio unlinks a smaller file before it resizes it.
        let content: Vec<u8> = (0..10u32 << 20).flat_map(u32::to_le_bytes).collect();
        fs::write(&victim, &content).unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
        Self {
            base,
            dir,
            away,
            victim,
            content,
        }
    }

    /// Returns non-empty files of root other than the victim.
    fn left(&self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        let victim = fs::metadata(&self.victim).unwrap().ino();
        let mut todo = vec![self.base.path().to_owned()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let found = entry.path().symlink_metadata().unwrap();
                if found.is_dir() {
                    todo.push(entry.path());
                } else if found.is_file() && found.uid() == 0 && found.ino() != victim {
                    left.push(entry.path());
                }
            }
        }
        left
    }
}

/// Waits for the scratch file and replaces it as the directory's owner; returns whether this
/// succeeded.
fn attack(
    swap: Swap,
    dir: &Path,
    away: &Path,
    victim: &Path,
    delay: Duration,
    over: &AtomicBool,
) -> bool {
    let scratch = loop {
        let found = fs::read_dir(dir).into_iter().flatten().flatten();
        let mut names = found.map(|entry| entry.path());
        if let Some(path) = names.find(|path| path.to_string_lossy().ends_with(".scratch")) {
            break path;
        }
        if over.load(Ordering::SeqCst) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    std::thread::sleep(delay);
    let moved = |to: PathBuf| fs::rename(&scratch, to).is_ok();
    match swap {
        Swap::Renamed => moved(dir.join("renamed")) && symlink(victim, &scratch).is_ok(),
        Swap::TakenAway => moved(away.join("taken")) && symlink(victim, &scratch).is_ok(),
        Swap::Parent => {
            let aside = dir.with_extension("aside");
            let target = victim.parent().unwrap();
            fs::rename(dir, aside).is_ok() && symlink(target, dir).is_ok()
        }
        _ if fs::remove_file(&scratch).is_err() => false,
        Swap::Link => symlink(victim, &scratch).is_ok(),
        // The kernel may forbid hard links (fs.protected_hardlinks); the missing file is an attack
        // too.
        Swap::HardLink => {
            let _ = fs::hard_link(victim, &scratch);
            true
        }
        Swap::Pipe => {
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            mknodat(CWD, &scratch, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).is_ok()
        }
        Swap::Directory => fs::create_dir(&scratch).is_ok(),
        Swap::File => fs::write(&scratch, "theirs").is_ok(),
    }
}

#[test]
fn attack_scratch_files_and_their_directory_exchanged() {
    if !root() || !fio() {
        return;
    }
    let (mut tried, mut held) = (0, 0);
    for round in 0..assay_testing::attack_factor() {
        for (index, swap) in SWAPS.into_iter().enumerate() {
            // Different times within layout and fio, the same in every repetition.
            let delay = Duration::from_millis((round * 8 + index as u64) * 211 % 900);
            if let Some(words) = one(swap, delay) {
                tried += 1;
                match words {
                    Ok(()) => held += 1,
                    Err(words) => eprintln!("{swap:?} after {delay:?}: {words}"),
                }
            }
        }
    }
    assay_testing::attacked("scratch files exchanged", tried, held);
}

/// Runs one attack; `None` if assay was faster.
fn one(swap: Swap, delay: Duration) -> Option<Result<(), String>> {
    let (home, ground) = (Home::new(), Ground::new());
    let over = Arc::new(AtomicBool::new(false));
    let attacker = std::thread::spawn({
        let (dir, away, victim) = (
            ground.dir.clone(),
            ground.away.clone(),
            ground.victim.clone(),
        );
        let over = over.clone();
        move || {
            // Only this thread drops root rights.
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).unwrap();
            attack(swap, &dir, &away, &victim, delay, &over)
        }
    });
    let words = [
        "run",
        ground.dir.to_str().unwrap(),
        "--rw=randrw",
        "--size=32M",
        "--rounds=2",
        "--runtime=300ms",
        "--ramp=50ms",
        "--quiet",
    ];
    let mut command = home.command(&words);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let mut late = false;
    while child.try_wait().unwrap().is_none() {
        if !late && start.elapsed() > LONGEST {
            late = true;
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let out = ran(child.wait_with_output().unwrap());
    over.store(true, Ordering::SeqCst);
    if !attacker.join().unwrap() {
        return None;
    }
    Some(judge(&ground, &out, late))
}

fn judge(ground: &Ground, out: &common::Ran, late: bool) -> Result<(), String> {
    let stderr = &out.stderr;
    if late {
        return Err(format!("it did not end: {stderr}"));
    }
    if fs::read(&ground.victim).unwrap() != ground.content {
        return Err("the victim was written".to_owned());
    }
    if !matches!(out.code, Some(0..=2)) {
        return Err(format!("exit status {:?}: {stderr}", out.code));
    }
    // Files of assay are removed, or empty and reported.
    for path in ground.left() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let size = fs::metadata(&path).unwrap().len();
        if size > 0 || !stderr.contains(&name) {
            return Err(format!(
                "{} is left ({size} bytes): {stderr}",
                path.display()
            ));
        }
    }
    Ok(())
}

/// A signal ends assay, whatever replaced its file.
#[test]
fn attack_a_pipe_in_place_of_the_file_and_a_signal() {
    if !root() || !fio() {
        return;
    }
    let (home, ground) = (Home::new(), Ground::new());
    let words = [
        "run",
        ground.dir.to_str().unwrap(),
        "--rw=randwrite",
        "--size=32M",
    ];
    let words = [&words[..], &["--runtime=60s", "--quiet"]].concat();
    let mut command = home.command(&words);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let never = AtomicBool::new(false);
    let at_once = Duration::ZERO;
    assert!(attack(
        Swap::Pipe,
        &ground.dir,
        &ground.away,
        &ground.victim,
        at_once,
        &never
    ));
    std::thread::sleep(Duration::from_millis(500));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let start = Instant::now();
    let out = ran(child.wait_with_output().unwrap());
    assert!(start.elapsed() < Duration::from_secs(60), "{}", out.stderr);
    assert_eq!(out.code, Some(130), "{}", out.stderr);
    assert_eq!(ground.left(), [] as [&Path; 0]);
    assay_testing::attacked("a signal while a pipe is in place of the file", 1, 1);
}

/// Every start removes the files of a killed process and reports it.
#[test]
fn every_start_sweeps() {
    if !fio() {
        return;
    }
    for verb in [
        &[][..],
        &["trial", "--recover"],
        &["facts"],
        &["stack", "/var/tmp"],
    ] {
        let home = Home::new();
        let target = home.target();
        let words = [
            "run",
            target.path().to_str().unwrap(),
            "--rw=randread",
            "--size=16M",
        ];
        let words = [&words[..], &["--runtime=60s", "--quiet"]].concat();
        let child = home
            .command(&words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.unwrap();
        while common::entries(target.path()).is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(common::entries(target.path()).len(), 1);
        let out = home.assay(verb);
        let line = out.stderr.lines().find(|line| line.contains(".scratch"));
        let (_, told) = line.and_then(|line| line.split_once(".scratch")).unwrap();
        insta::allow_duplicates! {
            insta::assert_snapshot!(told, @", left by an assay that was killed");
        }
        assert_eq!(common::entries(target.path()), [] as [&str; 0], "{verb:?}");
    }
}
