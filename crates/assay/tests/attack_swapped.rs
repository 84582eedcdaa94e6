//! The owner of the target directory replaces assay's objects by links, pipes, files and directories at any time. The
//! targets of these names are not written, mounted or removed, and all objects of assay are gone in the end.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and attack what it makes"
)]

mod common;

use assay_testing::servers::skip;
use assay_testing::{Stop, attack_factor, attacked};
use common::Home;
use common::guests::{image, image_for_long};
use common::pages::{SETTING, STUDY};
use rustix::fs::{CWD, FileType, Mode};
use rustix::process::{Pid, Signal};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// User `nobody`.
const OWNER: u32 = 65534;
/// Time limit of a run; a run that waits for a pipe exceeds it.
const LIMIT: Duration = Duration::from_secs(240);
const SHORT: [&str; 8] = [
    "--pairs",
    "1",
    "--slot",
    "200ms",
    "--washout",
    "50ms",
    "--size",
    "16MiB",
];

/// A directory of the owner, and files of root elsewhere.
struct Scene {
    all: tempfile::TempDir,
    dir: PathBuf,
    home: Home,
    /// Number of replaced names.
    exchanged: AtomicU64,
}

/// What happens in between.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Nothing,
    Kill,
    Terminate,
}

impl Scene {
    fn new() -> Self {
        let all = tempfile::tempdir_in("/var/tmp").unwrap();
        let owned = all.path().join("owned");
        let dir = owned.join("theirs");
        fs::create_dir(&owned).unwrap();
        chown(&owned, Some(OWNER), Some(OWNER)).unwrap();
        let roots = all.path().join("roots");
        fs::create_dir(&dir).unwrap();
        fs::create_dir(&roots).unwrap();
        for name in [
            "file",
            "image",
            "backing",
            "key",
            "nbd.sock",
            "stdout",
            "server.log",
        ] {
            fs::write(roots.join(name), "precious").unwrap();
        }
        fs::create_dir(roots.join("mnt")).unwrap();
        fs::set_permissions(&roots, fs::Permissions::from_mode(0o700)).unwrap();
        // The owner may enter the parent, but not the directory itself.
        fs::set_permissions(all.path(), fs::Permissions::from_mode(0o755)).unwrap();
        chown(&dir, Some(OWNER), Some(OWNER)).unwrap();
        let own = all.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("service.conf"), "workers = 2\n").unwrap();
        let page = SETTING.replace("FILE", own.join("service.conf").to_str().unwrap());
        fs::write(own.join("workers.md"), page).unwrap();
        fs::write(own.join("bare.toml"), STUDY).unwrap();
        Self {
            dir,
            all,
            home: Home::new(),
            exchanged: AtomicU64::new(0),
        }
    }

    /// Returns the words of a command with their values in this scene.
    fn words(&self, words: &[&str]) -> Vec<String> {
        let own = |name: &str| self.all.path().join("own").join(name);
        let path = |path: PathBuf| path.to_str().unwrap().to_owned();
        let words = words.iter().map(|word| match *word {
            "DIR" => path(self.dir.clone()),
            "PAGE" => path(own("workers.md")),
            "STUDY" => path(own("bare.toml")),
            word => word.replace("=DIR", &format!("={}", self.dir.display())),
        });
        words.collect()
    }

    fn roots(&self) -> PathBuf {
        self.all.path().join("roots")
    }

    fn roots_are_whole(&self) -> bool {
        let mut names: Vec<_> = fs::read_dir(self.roots())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        names.sort();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        names.len() == 8
            && !mounts.contains(self.roots().to_str().unwrap())
            && names.iter().all(|path| match path.is_dir() {
                true => fs::read_dir(path).unwrap().next().is_none(),
                false => fs::read(path).unwrap() == b"precious",
            })
    }

    /// Returns the loop devices on files of this scene.
    fn loops(&self) -> Vec<String> {
        let here = self.all.path().to_str().unwrap();
        let devices = fs::read_dir("/sys/block").unwrap().flatten();
        let files = devices
            .filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
        files.filter(|file| file.contains(here)).collect()
    }

    /// Returns files of root that were left here.
    fn left(&self) -> Vec<PathBuf> {
        left_in(&self.dir)
    }

    /// Whether the setting of the page has its original value.
    fn setting_is_back(&self) -> bool {
        let file = self.all.path().join("own/service.conf");
        fs::read(file).unwrap() == b"workers = 2\n"
    }

    /// Starts assay, replaces its objects, and waits for its end. Returns whether all guarantees
    /// held.
    fn attack(&self, words: &[&str], seed: u64, then: Then) -> bool {
        let recovery = match words[0] {
            "lab" => &["lab", "list"][..],
            _ => &["trial", "--recover"],
        };
        let mut command = self.home.command(&self.words(words));
        let log = fs::File::create(self.all.path().join("log")).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        let child = command.spawn().unwrap();
        let stop = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| self.owner(seed, &stop));
            let _stop = Stop(&stop);
            let ended = self.wait(child, seed, then);
            if then == Then::Kill {
                // Recovery is attacked too.
                let child = self.home.command(recovery);
                let ended = { child }
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn();
                self.wait(ended.unwrap(), seed, Then::Nothing);
            }
            ended
        });
        // Objects that could not be removed while they were moved are removed now.
        let recovered = self.home.assay(recovery);
        let held = ended.is_some() && self.roots_are_whole() && self.left().is_empty();
        let held = held && self.loops().is_empty() && self.setting_is_back();
        if !held {
            let log = fs::read_to_string(self.all.path().join("log")).unwrap();
            eprintln!(
                "{words:?} {seed} {then:?}: {ended:?}, whole {}, left {:?} {:?}\n{log}\n{}{}",
                self.roots_are_whole(),
                self.left(),
                self.loops(),
                recovered.stdout,
                recovered.stderr
            );
        }
        held
    }

    /// Acts with the rights of the owner: this thread becomes the owner.
    fn owner(&self, seed: u64, stop: &AtomicBool) {
        let (dir, roots) = (&self.dir, &self.roots());
        set_thread_groups(&[]).unwrap();
        let group = rustix::process::Gid::from_raw(OWNER);
        set_thread_res_gid(group, group, group).unwrap();
        let user = rustix::process::Uid::from_raw(OWNER);
        set_thread_res_uid(user, user, user).unwrap();
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let ours = entry.metadata().is_ok_and(|found| found.uid() == 0);
                if !ours || !name.starts_with(".assay-") {
                    continue;
                }
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                std::thread::sleep(Duration::from_micros(random % 20_000));
                let (at, moved) = (entry.path(), dir.join(format!("moved-{number}")));
                number += 1;
                if fs::rename(&at, &moved).is_err() {
                    continue;
                }
                let _ = match random % 4 {
                    0 => symlink(roots, &at),
                    1 => symlink(roots.join("file"), &at),
                    2 => rustix::fs::mknodat(CWD, &at, FileType::Fifo, Mode::RWXU, 0)
                        .map_err(Into::into),
                    _ => fs::create_dir(&at)
                        .and_then(|()| symlink(roots.join("file"), at.join("image"))),
                };
                self.exchanged.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(random / 7 % 60_000));
                if random & 64 == 0 {
                    // Moves it back, so that the next attack finds another state.
                    let _ = fs::remove_file(&at);
                    let _ = fs::remove_dir_all(&at);
                    let _ = fs::rename(&moved, &at);
                }
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    fn wait(&self, mut child: Child, seed: u64, then: Then) -> Option<ExitStatus> {
        let begun = Instant::now();
        let mut when = None;
        loop {
            if let Some(ended) = child.try_wait().unwrap() {
                return Some(ended);
            }
            // Waits until there is something that could be left over.
            if when.is_none() && !self.left().is_empty() {
                when = Some(Instant::now() + Duration::from_millis(seed * 97 % 900));
            }
            if then != Then::Nothing && when.is_some_and(|when| Instant::now() > when) {
                let signal = match then {
                    Then::Kill => Signal::KILL,
                    _ => Signal::TERM,
                };
                let _ = rustix::process::kill_process(Pid::from_child(&child), signal);
            }
            if begun.elapsed() > LIMIT {
                child.kill().unwrap();
                child.wait().unwrap();
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns files of root in a directory.
fn left_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().flatten();
    // The owner may be faster than this check.
    let roots = entries.filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == 0));
    roots.map(|entry| entry.path()).collect()
}

/// All kinds of end.
const ENDS: [Then; 3] = [Then::Nothing, Then::Kill, Then::Terminate];

fn attacks(name: &str, programs: &[&str], words: &[&str]) {
    if !skip(programs, true) {
        attacks_that_end(&ENDS, name, 1, words);
    }
}

fn attacks_that_end(ends: &[Then], name: &str, rounds: u64, words: &[&str]) {
    let (mut tried, mut held, mut exchanged) = (0, 0, 0);
    for round in 0..rounds * attack_factor() {
        for &then in ends {
            let scene = Scene::new();
            tried += 1;
            held += u64::from(scene.attack(words, 3 * round + then as u64 + 1, then));
            exchanged += scene.exchanged.load(Ordering::Relaxed);
        }
    }
    println!("{name}: {exchanged} names given to something else");
    assert!(exchanged >= tried, "{name}: nothing was exchanged");
    attacked(name, tried, held);
}

#[test]
fn attack_disk_images() {
    let words = [
        &["trial", "qcow2-preallocation", "DIR", "--quiet"][..],
        &SHORT,
    ]
    .concat();
    let programs = ["fio", "qemu-img", "qemu-storage-daemon"];
    attacks(
        "images exchanged by the owner of their directory",
        &programs,
        &words,
    );
}

/// ext4's magic number (statfs(2)).
const EXT4: i64 = 0xEF53;

#[test]
fn attack_file_systems() {
    if rustix::fs::statfs("/var/tmp").unwrap().f_type != EXT4 {
        return assay_testing::skipped("ext4", "the advice applies only where /var/tmp is on ext4");
    }
    let words = [
        &["trial", "ext4-data-writeback", "DIR", "--quiet"][..],
        &SHORT,
    ]
    .concat();
    let programs = ["fio", "mkfs.ext4", "mount"];
    attacks(
        "file systems exchanged by the owner of their directory",
        &programs,
        &words,
    );
}

#[test]
fn attack_rungs_of_a_stack() {
    let words = [
        "stack",
        "DIR",
        "--measure",
        "--yes",
        "--quiet",
        "--runtime",
        "300ms",
        "--ramp",
        "50ms",
        "--size",
        "16M",
        "--rw",
        "randread",
        "--layers",
        "image",
    ];
    let programs = ["fio", "qemu-img", "qemu-storage-daemon"];
    attacks(
        "rungs exchanged by the owner of their directory",
        &programs,
        &words,
    );
}

/// The load writes to a scratch file, while a setting of the user is changed repeatedly.
#[test]
fn attack_scratch_file_of_a_trial() {
    let words = [&["trial", "PAGE", "DIR", "--yes", "--quiet"][..], &SHORT].concat();
    attacks(
        "scratch files of a trial exchanged by the owner of their directory",
        &["fio"],
        &words,
    );
}

/// Disks of a guest, created before QEMU starts, one of them slowly.
const DISKS: [&str; 6] = [
    "lab",
    "run",
    "--disk",
    "16M,dir=DIR",
    "--disk",
    "64M,format=luks,dir=DIR",
];

#[test]
fn attack_disks_of_a_guest_that_is_killed() {
    if skip(&["qemu-img", "qemu-system-x86_64"], true) {
        return;
    }
    let Some(_one) = image() else { return };
    let words = [&DISKS[..], &["--", "sleep", "600"]].concat();
    let name = "disks of killed guests exchanged by the owner of their directory";
    attacks_that_end(&[Then::Kill, Then::Terminate], name, 3, &words);
}

/// The same while the guest writes to them until its end.
#[test]
fn attack_disks_of_a_guest_that_writes() {
    let Some(_one) = image_for_long() else { return };
    let writes = "--,dd,if=/dev/zero,of=/dev/vdb,bs=1M,count=16,oflag=direct";
    let words = [&DISKS[..], &writes.split(',').collect::<Vec<_>>()].concat();
    let name = "disks of guests exchanged by the owner of their directory";
    attacks_that_end(&[Then::Nothing], name, 1, &words);
}

#[test]
fn attack_things_of_a_study() {
    attacks(
        "things of a study exchanged by the owner of their directory",
        &["fio", "mkfs.ext4", "mount"],
        &["study", "STUDY", "DIR", "--quiet"],
    );
}

/// When the plan is shown, the directory itself is replaced by a link to a directory of root.
#[test]
fn attack_a_directory_exchanged_after_the_plan() {
    let programs = [
        "fio",
        "mkfs.ext4",
        "mount",
        "qemu-img",
        "qemu-storage-daemon",
    ];
    if skip(&programs, true) {
        return;
    }
    let place = fs::File::open("/var/tmp").unwrap();
    let known = assay_host::KnownFile::of(&place).unwrap();
    if matches!(known.find(&place), assay_host::Whereabouts::Unknown) {
        return assay_testing::skipped(
            "file-handles",
            "objects in a directory that is moved as a whole are found by file handles only",
        );
    }
    let stack = [
        "stack",
        "DIR",
        "--measure",
        "--yes",
        "--runtime",
        "300ms",
        "--ramp",
        "50ms",
        "--size",
        "16M",
        "--rw",
        "randread",
        "--layers",
        "image",
    ];
    let commands: [&[&str]; 4] = [
        &[&["trial", "PAGE", "DIR", "--yes"][..], &SHORT].concat(),
        &[&["trial", "qcow2-preallocation", "DIR"][..], &SHORT].concat(),
        &stack,
        &["study", "STUDY", "DIR"],
    ];
    let (mut tried, mut held) = (0, 0);
    for round in 0..attack_factor() {
        for words in commands {
            tried += 1;
            let late = Duration::from_millis(round * 97 % 1500);
            match exchanged_after_the_plan(&Scene::new(), words, late) {
                Ok(()) => held += 1,
                Err(why) => eprintln!("{words:?} after {late:?}: {why}"),
            }
        }
    }
    attacked("directory exchanged after the plan is shown", tried, held);
}

fn exchanged_after_the_plan(scene: &Scene, words: &[&str], late: Duration) -> Result<(), String> {
    let mut command = scene.home.command(&scene.words(words));
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    said.read_line(&mut text).unwrap();
    std::thread::sleep(late);
    let moved = scene.dir.with_file_name("moved");
    fs::rename(&scene.dir, &moved).unwrap();
    symlink(scene.roots(), &scene.dir).unwrap();
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        let _ = said.read_to_string(&mut rest);
        rest
    });
    let ended = scene.wait(child, 0, Then::Nothing);
    text += &rest.join().unwrap();
    let whole = scene.roots_are_whole() && scene.setting_is_back() && scene.loops().is_empty();
    let left = left_in(&moved);
    // A measured object existed the whole time.
    let measured = ended.is_some_and(|ended| matches!(ended.code(), Some(0 | 1)));
    match whole && left.is_empty() && measured {
        true => Ok(()),
        false => Err(format!("{ended:?}, whole {whole}, left {left:?}\n{text}")),
    }
}
