//! Tests the removal of created objects while the owner of the parent directory renames and replaces them.
#![allow(
    clippy::disallowed_methods,
    reason = "tests make and look at files behind the crate's back"
)]

use assay_host::held::{Directory, Identity, Removed};
use assay_host::{HostMut as _, KnownFile, LiveHost, loops};
use assay_testing::{attack_factor, attacked, skipped};
use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// A directory of another user that contains a directory of this user, and files that must not be removed.
struct Scene {
    dir: tempfile::TempDir,
    ours: PathBuf,
    known: KnownFile,
}

fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("root", "only root works in the directories of others");
    }
    root
}

fn scene() -> Scene {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let theirs = dir.path().join("theirs");
    let precious = dir.path().join("precious");
    fs::create_dir(&theirs).unwrap();
    fs::create_dir_all(precious.join("below")).unwrap();
    fs::write(precious.join("below/file"), "x").unwrap();
    chown(&theirs, Some(65534), Some(65534)).unwrap();
    let made = Directory::open(&theirs)
        .unwrap()
        .make("ours".as_ref())
        .unwrap();
    let known = KnownFile::of(&made).unwrap();
    fs::create_dir_all(made.through().join("a/b")).unwrap();
    fs::write(made.through().join("a/b/c"), "x").unwrap();
    Scene {
        ours: theirs.join("ours"),
        known,
        dir,
    }
}

impl Scene {
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn precious_is_whole(&self) -> bool {
        fs::read(self.at("precious/below/file")).is_ok_and(|bytes| bytes == b"x")
    }
}

#[test]
fn it_goes_wherever_it_was_moved_and_nothing_else_does() {
    if !root() {
        return;
    }
    for moved in ["theirs/elsewhere", "precious/elsewhere", "up"] {
        let scene = scene();
        fs::rename(&scene.ours, scene.at(moved)).unwrap();
        symlink(scene.at("precious"), &scene.ours).unwrap();
        let removed = LiveHost
            .remove_made(&scene.ours, Some(&scene.known))
            .unwrap();
        assert_eq!(removed, Removed::Gone, "{moved}");
        assert!(!scene.at(moved).exists() && scene.ours.is_symlink());
        assert!(scene.precious_is_whole());
        // Again, as recovery does if it was killed at this moment.
        let removed = LiveHost
            .remove_made(&scene.ours, Some(&scene.known))
            .unwrap();
        assert_eq!(removed, Removed::Absent);
        assert!(scene.precious_is_whole());
    }
}

#[test]
fn without_a_handle_it_is_looked_for_beside_its_name_and_then_told() {
    if !root() {
        return;
    }
    let scene = scene();
    let known = KnownFile::only(scene.known.identity);
    fs::rename(&scene.ours, scene.at("up")).unwrap();
    fs::create_dir(&scene.ours).unwrap();
    fs::write(scene.ours.join("theirs"), "x").unwrap();
    let removed = LiveHost.remove_made(&scene.ours, Some(&known)).unwrap();
    assert_eq!(removed, Removed::Another);
    assert!(scene.ours.join("theirs").exists() && scene.at("up/a/b/c").exists());
    fs::rename(scene.at("up"), scene.at("theirs/other")).unwrap();
    let removed = LiveHost.remove_made(&scene.ours, Some(&known)).unwrap();
    assert_eq!(removed, Removed::Gone);
    assert!(scene.ours.join("theirs").exists() && !scene.at("theirs/other").exists());
}

#[test]
fn what_was_never_confirmed_goes_only_where_nobody_can_have_exchanged_it() {
    if !root() {
        return;
    }
    let scene = scene();
    // A directory of root, moved to the name by the owner of the parent directory.
    LiveHost.remove_made(&scene.ours, None).unwrap_err();
    assert!(scene.ours.join("a/b/c").exists());
    let empty = scene.at("theirs/empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(LiveHost.remove_made(&empty, None).unwrap(), Removed::Gone);
    let gone = scene.at("theirs/none");
    assert_eq!(LiveHost.remove_made(&gone, None).unwrap(), Removed::Absent);
    symlink(scene.at("precious"), &gone).unwrap();
    chown_link(&gone);
    assert_eq!(LiveHost.remove_made(&gone, None).unwrap(), Removed::Another);
    let own = scene.at("own");
    fs::create_dir_all(own.join("a")).unwrap();
    assert_eq!(LiveHost.remove_made(&own, None).unwrap(), Removed::Gone);
    fs::set_permissions(scene.dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::create_dir_all(own.join("a")).unwrap();
    LiveHost.remove_made(&own, None).unwrap_err();
    assert!(scene.precious_is_whole());
}

fn chown_link(path: &Path) {
    std::os::unix::fs::lchown(path, Some(65534), Some(65534)).unwrap();
}

/// After a file system was unmounted and mounted again, the kernel does not know the name of an object that is opened
/// by its handle.
#[test]
fn after_a_start_of_the_machine_it_is_found_beside_its_name_or_takes_no_space() {
    if !root() {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (image, at) = (dir.path().join("image"), dir.path().join("mnt"));
    File::create(&image).unwrap().set_len(16 << 20).unwrap();
    fs::create_dir(&at).unwrap();
    let done = |program: &str, args: &[&Path]| {
        let mut command = Command::new(program);
        let status = command.args(args).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let mount = || done("mount", &[Path::new("-oloop"), &image, &at]);
    if !done("mkfs.ext4", &[Path::new("-q"), &image]) || !mount() {
        return skipped("mount", "no ext4 file system can be made and mounted here");
    }
    let _mounted = Mounted(&at);
    let home = at.join("dir");
    for (moved, mounted, expected) in [
        ("dir/ours", true, Removed::Gone),
        ("dir/renamed", true, Removed::Gone),
        ("dir/below/renamed", true, Removed::Emptied),
        ("renamed", false, Removed::Another),
    ] {
        fs::create_dir_all(home.join("below")).unwrap();
        let held = Directory::open(&home).unwrap();
        let mut known = None;
        let file = held.create_known("ours".as_ref(), &mut |file| {
            known = Some(KnownFile::of(file.file())?);
            Ok::<(), assay_host::HostError>(())
        });
        file.unwrap().file().set_len(1 << 20).unwrap();
        drop(held);
        fs::rename(home.join("ours"), at.join(moved)).unwrap();
        assert!(done("umount", &[&at]));
        // A directory with that name on another file system.
        fs::create_dir_all(home.join("below")).unwrap();
        assert!(!mounted || mount());
        let removed = LiveHost
            .remove_made(&home.join("ours"), known.as_ref())
            .unwrap();
        assert_eq!(removed, expected, "{moved}");
        let left = fs::metadata(at.join(moved)).map(|left| left.len()).ok();
        let emptied = (expected == Removed::Emptied).then_some(0);
        assert_eq!(left, emptied, "{moved}");
    }
}

/// A mount. Dropping the value unmounts it.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg(self.0)
            .stderr(Stdio::null())
            .status();
    }
}

/// The owner repeatedly exchanges the name with a link, a pipe, a file and a directory of root.
#[test]
fn attack_nothing_but_ours_goes_while_the_names_are_exchanged() {
    if !root() {
        return;
    }
    let (mut tried, mut held) = (0, 0);
    for _ in 0..12 * attack_factor() {
        let scene = scene();
        let theirs = scene.at("theirs");
        let decoys = ["link", "pipe", "file", "folder"].map(|name| theirs.join(name));
        symlink(scene.at("precious"), &decoys[0]).unwrap();
        rustix::fs::mknodat(CWD, &decoys[1], FileType::Fifo, Mode::RUSR, 0).unwrap();
        fs::write(&decoys[2], "x").unwrap();
        fs::create_dir_all(decoys[3].join("of root")).unwrap();
        let stop = AtomicBool::new(false);
        let removed = std::thread::scope(|scope| {
            let _stop = assay_testing::Stop(&stop);
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for decoy in &decoys {
                        let exchange = || {
                            rustix::fs::renameat_with(
                                CWD,
                                &scene.ours,
                                CWD,
                                decoy,
                                RenameFlags::EXCHANGE,
                            )
                        };
                        let _ = exchange();
                        std::thread::yield_now();
                        let _ = exchange();
                    }
                }
            });
            let removed = LiveHost.remove_made(&scene.ours, Some(&scene.known));
            stop.store(true, Ordering::Relaxed);
            removed
        });
        tried += 1;
        // The object is removed or the failure is reported; the other objects and their targets still exist.
        let is_removed = || match scene.known.find(File::open(&theirs).unwrap()) {
            assay_host::Whereabouts::Removed => true,
            assay_host::Whereabouts::Open(_) => false,
            // Without file handles: it is under none of the names that were exchanged.
            assay_host::Whereabouts::Unknown => {
                let is_it = |path: &Path| {
                    let found = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
                    found.is_ok_and(|found| found.st_ino == scene.known.identity.inode)
                };
                !is_it(&scene.ours) && !decoys.iter().any(|decoy| is_it(decoy))
            }
        };
        // A removed object stays removed; a busy kernel may report this with a short delay.
        let ours_is_gone = !matches!(removed, Ok(Removed::Gone))
            || (0..200).any(|_| {
                is_removed() || {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                    false
                }
            });
        let names = fs::read_dir(&theirs).unwrap().flatten();
        let others = names
            .filter(|entry| {
                let found = rustix::fs::statat(CWD, entry.path(), AtFlags::SYMLINK_NOFOLLOW);
                found.is_ok_and(|found| found.st_ino != scene.known.identity.inode)
            })
            .count();
        let folder = fs::read_dir(&theirs).unwrap().flatten();
        let folder = folder
            .filter(|entry| entry.path().join("of root").is_dir())
            .count();
        let precious = scene.precious_is_whole();
        let whole = ours_is_gone && others == 4 && folder == 1 && precious;
        if !whole {
            println!(
                "{removed:?}: gone {ours_is_gone}, others {others}, folder {folder}, precious {precious}"
            );
        }
        held += u64::from(whole);
    }
    attacked("names exchanged while a directory is removed", tried, held);
}

#[test]
fn a_loop_device_is_known_by_its_file_whatever_its_name() {
    if !root() {
        return;
    }
    if !Path::new("/dev/loop-control").exists() {
        skipped("loop", "no loop devices here");
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let held = Directory::open(dir.path()).unwrap();
    let file = held.create("backing".as_ref()).unwrap();
    file.file().set_len(1 << 20).unwrap();
    let node = loops::attach(file.file(), true).unwrap();
    fs::rename(dir.path().join("backing"), dir.path().join("other")).unwrap();
    fs::write(dir.path().join("backing"), [0; 4096]).unwrap();
    assert_eq!(
        loops::find_loop_devices(file.identity()).unwrap(),
        std::slice::from_ref(&node)
    );
    let other = assay_host::held::read_identity(&dir.path().join("backing")).unwrap();
    assert_eq!(loops::find_loop_devices(other).unwrap(), [] as [PathBuf; 0]);
    loops::detach(&node, other).unwrap();
    let wrong = Identity {
        inode: other.inode,
        ..file.identity()
    };
    loops::detach(&node, wrong).unwrap();
    assert_eq!(
        loops::find_loop_devices(file.identity()).unwrap(),
        std::slice::from_ref(&node)
    );
    loops::detach(&node, file.identity()).unwrap();
    // udev may have the device open for a moment.
    for _ in 0..100 {
        if loops::find_loop_devices(file.identity())
            .unwrap()
            .is_empty()
        {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{} is still there", node.display());
}

/// A file is repeatedly renamed, with and without another file under its name, on file systems with and without access
/// by handle. If the file is reported as removed, it must be removed. If it remains, it must be found after the
/// renaming has stopped.
#[test]
fn attack_a_file_that_is_renamed_while_it_is_looked_for() {
    if !root() {
        return;
    }
    let (mut tried, mut held_out) = (0, 0);
    for round in 0..12 * attack_factor() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| dir.path().join(name);
        let above = Directory::open(dir.path()).unwrap();
        let file = above.create("ours".as_ref()).unwrap();
        let mut entry = serde_json::to_value(KnownFile::of(file.file()).unwrap()).unwrap();
        if round % 4 != 0 {
            entry.as_object_mut().unwrap().remove("handle");
        }
        let known: KnownFile = serde_json::from_value(entry).unwrap();
        let (begin, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let told = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    let (one, other) = (at("ours"), at(&format!("moved-{number}")));
                    let _ = fs::rename(&one, &other);
                    if round % 2 == 0 {
                        let _ = symlink("/etc/hostname", &one);
                    }
                    begin.store(true, Ordering::Relaxed);
                    std::thread::sleep(std::time::Duration::from_micros(7 * (round % 30)));
                    number += 1;
                    let next = at(&format!("moved-{number}"));
                    let _ = fs::rename(&other, &next);
                    let _ = fs::remove_file(&one);
                    let _ = fs::rename(&next, &one);
                }
            });
            while !begin.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            let told = LiveHost.remove_made(&at("ours"), Some(&known));
            stop.store(true, Ordering::Relaxed);
            told
        });
        let gone = || file.names().unwrap() == 0;
        let honest = match told {
            Ok(Removed::Gone | Removed::Absent) => gone(),
            Ok(Removed::Another | Removed::Emptied) | Err(_) => true,
        };
        let after = LiveHost.remove_made(&at("ours"), Some(&known));
        tried += 1;
        held_out += u64::from(honest && after.is_ok() && gone());
    }
    attacked("files renamed while they are looked for", tried, held_out);
}
