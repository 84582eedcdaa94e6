//! Replaces folders by links during an action and during undo. Also tests the attributes that a copy must keep.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::act::Action;
use assay_dups::act::execute::Moment;
use assay_dups::act::plan::PlanRules;
use assay_dups::act::undo::{UndoOptions, recover, undo_journal};
use assay_testing::{attack_factor, attacked, skipped};
use common::{Place, noise, put};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const NOBODY: u32 = 65_534;

/// Returns all visible data of a folder: inode, content, ctime.
fn state(folder: &Path) -> BTreeMap<PathBuf, (u64, Vec<u8>, i64, i64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let meta = std::fs::symlink_metadata(&folder).unwrap();
        let of = |meta: &std::fs::Metadata| (meta.ctime(), meta.ctime_nsec());
        let (s, n) = of(&meta);
        found.insert(folder.clone(), (meta.ino(), Vec::new(), s, n));
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path);
                continue;
            }
            let (s, n) = of(&meta);
            let content = std::fs::read(&path).unwrap();
            found.insert(path, (meta.ino(), content, s, n));
        }
    }
    found
}

/// Replaces a folder by a link to the victim, and later restores the folder.
fn swap(folder: &Path, away: &Path, victim: &Path, wait: impl Fn()) {
    if std::fs::rename(folder, away).is_ok() {
        let _ = symlink(victim, folder);
        wait();
        let _ = std::fs::remove_file(folder);
        // Folders created in the meantime are removed.
        let _ = std::fs::remove_dir_all(folder);
        let _ = std::fs::rename(away, folder);
    }
}

/// The owner replaces folders of the tree, and the target folder, by links to a folder with the same names,
/// sizes and contents. No action may change anything in that folder.
#[test]
fn attack_folders_exchanged_for_links() {
    if !rustix::process::geteuid().is_root() {
        return skipped("root", "files of others are acted on");
    }
    const FILES: u64 = 60;
    let (mut tried, mut held) = (0, 0);
    let mut done = 0;
    for round in 0..6 * attack_factor() {
        let place = Place {
            plain: round % 2 == 1,
            ..Place::new()
        };
        let root = place.root();
        let (folder, away) = (root.join("sub"), root.join("away"));
        let (trash, trash_away) = (root.join("trash"), root.join("trash away"));
        let victim = place.dir.path().join("victim");
        for number in 0..FILES {
            let content = noise(number, 3000);
            let name = format!("f{number}");
            for base in [&folder, &root.join("kept"), &victim] {
                put(base.join(&name), &content);
            }
        }
        std::fs::create_dir(&trash).unwrap();
        for path in state(&root).keys() {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        std::fs::set_permissions(place.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let action = match round % 3 {
            0 => Action::Hardlink,
            1 => Action::Delete,
            _ => Action::Move(trash.as_os_str().as_bytes().to_vec()),
        };
        let rules = PlanRules {
            keep_in: vec![root.join("kept")],
            ..PlanRules::default()
        };
        let plan = place.plan(&action, &rules);
        assert_eq!(plan.steps.len() as u64, FILES, "{:?}", plan.refused);
        let before = state(&victim);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stop = assay_testing::Stop(&stop);
            let rival = scope.spawn(|| {
                // SAFETY: the system call itself, unlike the function of libc, changes this thread
                // only; it touches no memory.
                let status = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
                assert_eq!(status, 0);
                let mut turn = round;
                while !stop.load(Ordering::Relaxed) {
                    turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let pause = std::time::Duration::from_micros(turn >> 33 & 0x1ff);
                    let rest = || std::thread::sleep(pause);
                    match turn >> 60 {
                        0..12 => swap(&folder, &away, &victim, rest),
                        _ => swap(&trash, &trash_away, &victim, rest),
                    }
                    rest();
                }
            });
            let (outcome, journal) = place.act(&plan, &|moment, _| {
                if moment == Moment::Compared {
                    std::thread::sleep(std::time::Duration::from_micros(300));
                }
            });
            done += outcome.done;
            for _ in 0..3 {
                let _ = recover(&journal);
                let _ = undo_journal(&journal, &UndoOptions::default());
            }
            stop.store(true, Ordering::Relaxed);
            rival.join().unwrap();
            let _ = std::fs::rename(&away, &folder);
            let _ = std::fs::rename(&trash_away, &trash);
            // Now without interference.
            undo_journal(&journal, &UndoOptions::default()).unwrap();
            tried += FILES;
            let untouched = state(&victim) == before;
            let whole = (0..FILES).filter(|number| {
                let content = noise(*number, 3000);
                let tree = state(&root);
                untouched && tree.values().any(|one| one.1 == content)
            });
            held += whole.count() as u64;
        });
    }
    assert!(done > 0, "the attack must not be all that happens");
    attacked("folders exchanged for links", tried, held);
}

/// As above at every moment of a step: each replaced folder stays replaced until the step has ended.
#[test]
fn attack_a_link_at_every_moment() {
    const MOMENTS: [Moment; 5] = [
        Moment::Intended,
        Moment::Opened,
        Moment::Compared,
        Moment::Exchanged,
        Moment::Finishing,
    ];
    let (mut tried, mut held) = (0, 0);
    for _ in 0..attack_factor() {
        for action in ["link", "delete", "move", "move far"] {
            for moment in MOMENTS {
                for which in ["sub", "kept", "trash"] {
                    let place = Place::new();
                    let root = place.root();
                    let victim = place.dir.path().join("victim");
                    let far = tempfile::tempdir_in("/dev/shm").unwrap();
                    for base in [&root.join("sub"), &root.join("kept"), &victim] {
                        put(base.join("file"), b"content");
                    }
                    std::fs::create_dir(root.join("trash")).unwrap();
                    let to = |path: &Path| Action::Move(path.as_os_str().as_bytes().to_vec());
                    let action = match action {
                        "link" => Action::Hardlink,
                        "delete" => Action::Delete,
                        "move" => to(&root.join("trash")),
                        _ => to(far.path()),
                    };
                    let rules = PlanRules {
                        keep_in: vec![root.join("kept")],
                        ..PlanRules::default()
                    };
                    let plan = place.plan(&action, &rules);
                    let before = state(&victim);
                    let (folder, away) = (root.join(which), root.join("away"));
                    let (_, journal) = place.act(&plan, &|now, _| {
                        if now == moment {
                            std::fs::rename(&folder, &away).unwrap();
                            symlink(&victim, &folder).unwrap();
                        }
                    });
                    // First with the link still there, then without it.
                    let _ = recover(&journal);
                    let _ = undo_journal(&journal, &UndoOptions::default());
                    tried += 1;
                    let untouched = state(&victim) == before;
                    std::fs::remove_file(&folder).unwrap();
                    std::fs::rename(&away, &folder).unwrap();
                    undo_journal(&journal, &UndoOptions::default()).unwrap();
                    let back = ["sub", "kept"].iter().all(|one| {
                        std::fs::read(root.join(one).join("file"))
                            .is_ok_and(|one| one == b"content")
                    });
                    match untouched && back {
                        true => held += 1,
                        false => eprintln!("{action:?} {moment:?} {which}: {untouched} {back}"),
                    }
                }
            }
        }
    }
    attacked("a link at every moment", tried, held);
}

/// A journal that belongs to another user, or that another user may write to, is not executed.
#[test]
fn attack_journals_of_others() {
    if !rustix::process::geteuid().is_root() {
        return skipped("root", "files are given to others");
    }
    let (mut tried, mut held) = (0, 0);
    let spoilers: [fn(&Path); 5] = [
        |journal| chown(journal, Some(NOBODY), None).unwrap(),
        |journal| chown(journal.parent().unwrap(), Some(NOBODY), None).unwrap(),
        |journal| {
            std::fs::set_permissions(journal, std::fs::Permissions::from_mode(0o666)).unwrap()
        },
        |journal| {
            let folder = journal.parent().unwrap();
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        },
        |journal| {
            let real = journal.with_extension("real");
            std::fs::rename(journal, &real).unwrap();
            symlink(&real, journal).unwrap();
        },
    ];
    for spoil in spoilers {
        let place = Place::new();
        put(place.root().join("a"), b"content");
        let gone = put(place.root().join("bb"), b"content");
        let (outcome, journal) = place.act(
            &place.plan(&Action::Delete, &PlanRules::default()),
            &|_, _| {},
        );
        assert_eq!(outcome.done, 1);
        spoil(&journal);
        tried += 1;
        held += u64::from(
            undo_journal(&journal, &UndoOptions::default()).is_err()
                && recover(&journal).is_err()
                && !gone.exists(),
        );
    }
    attacked("journals of others", tried, held);
}

/// An index, or a file next to it, that is a link or belongs to another user is not written.
#[test]
fn attack_indexes_of_others() {
    use assay_dups::Index;
    let (mut tried, mut held) = (0, 0);
    let ours = rustix::process::geteuid().is_root();
    let whats = [
        "index.db",
        "index.db-lock",
        "index.db-journal",
        "given away",
        "open to all",
        "folder given away",
    ];
    for what in whats {
        let place = Place::new();
        put(place.root().join("a"), b"content");
        let victim = put(place.dir.path().join("victim"), b"precious");
        drop(Index::open(&place.db()).unwrap());
        let name = place.dir.path().join(what);
        let given_away = what.ends_with("given away");
        if given_away && !ours {
            continue;
        } else if given_away {
            let folder = what.starts_with("folder");
            let what = if folder {
                place.dir.path().to_owned()
            } else {
                place.db()
            };
            chown(what, Some(NOBODY), None).unwrap();
        } else if what == "open to all" {
            let all = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(place.dir.path(), all).unwrap();
        } else {
            let _ = std::fs::remove_file(&name);
            symlink(&victim, &name).unwrap();
        }
        let opened = Index::open(&place.db()).map(|mut index| {
            let options = assay_dups::ScanOptions::default();
            let found = common::scan_tree(&place.root(), &options, Some(&mut index));
            assert!(found.index_error.is_some(), "{what}");
        });
        tried += 1;
        let refused = opened.is_err() || what == "index.db-journal";
        held += u64::from(refused && std::fs::read(&victim).unwrap() == b"precious");
    }
    attacked("indexes of others", tried, held);
}

/// `VFS_CAP_REVISION_2` with cap_net_raw, effective (linux/capability.h).
const CAPABILITY: [u8; 20] = [
    1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

fn adorn(path: &Path) -> bool {
    use rustix::fs::{IFlags, XattrFlags};
    chown(path, Some(1000), Some(1001)).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o4751)).unwrap();
    let set = |name: &str, value: &[u8]| {
        rustix::fs::setxattr(path, name, value, XattrFlags::empty()).is_ok()
    };
    let file = std::fs::File::open(path).unwrap();
    let done = set("security.capability", &CAPABILITY) && set("trusted.mine", b"\0\xff");
    let _ = rustix::fs::ioctl_setflags(&file, {
        rustix::fs::ioctl_getflags(&file).unwrap_or(IFlags::empty()) | IFlags::NODUMP
    });
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1_000_000_007);
    file.set_modified(old).unwrap();
    done
}

type Adorned = (u32, u32, u32, i64, i64, Vec<u8>, Vec<u8>, u32, Vec<u8>);

fn adorned(path: &Path) -> Adorned {
    let meta = std::fs::symlink_metadata(path).unwrap();
    let get = |name: &str| {
        let mut value = vec![0; 100];
        let length = rustix::fs::getxattr(path, name, &mut value[..]).unwrap_or(0);
        value.truncate(length);
        value
    };
    let file = std::fs::File::open(path).unwrap();
    let flags = rustix::fs::ioctl_getflags(&file).map_or(0, |flags| flags.bits() & 0x40);
    (
        meta.mode(),
        meta.uid(),
        meta.gid(),
        meta.mtime(),
        meta.mtime_nsec(),
        get("security.capability"),
        get("trusted.mine"),
        flags,
        std::fs::read(path).unwrap(),
    )
}

/// Files are moved to another file system, deleted and linked. All attributes of a file are restored, although the copy
/// that stayed has none of them.
#[test]
fn capabilities_and_all_the_rest_are_kept() {
    if !rustix::process::geteuid().is_root() {
        return skipped("root", "capabilities are given");
    }
    let far = tempfile::tempdir_in("/dev/shm").unwrap();
    for target in [Some(far.path()), None] {
        let place = Place::new();
        put(place.root().join("a"), b"content");
        let b = put(place.root().join("sub/bb"), b"content");
        if !adorn(&b) {
            return skipped("xattr", "no capabilities can be given here");
        }
        let before = adorned(&b);
        assert_eq!(before.5, CAPABILITY);
        let action = match target {
            Some(far) => Action::Move(far.as_os_str().as_bytes().to_vec()),
            None => Action::Delete,
        };
        let (outcome, journal) = place.act(&place.plan(&action, &PlanRules::default()), &|_, _| {});
        assert_eq!(outcome.done, 1, "{:?}", outcome.refused);
        if let Some(far) = target {
            let moved = far.join(b.strip_prefix("/").unwrap());
            assert_eq!(adorned(&moved), before);
        }
        assert!(!b.exists());
        let undone = undo_journal(&journal, &UndoOptions::default()).unwrap();
        assert_eq!(undone.restored, 1, "{:?}", undone.refused);
        assert_eq!(adorned(&b), before);
    }
}

/// A file with attributes that the other file system cannot store is not moved there.
#[test]
fn without_equality_no_move() {
    let far = tempfile::tempdir_in("/dev/shm").unwrap();
    let place = Place::new();
    put(place.root().join("a"), b"content");
    let b = put(place.root().join("bb"), b"content");
    let file = std::fs::File::open(&b).unwrap();
    // A file system in memory does not support this flag.
    let flags = rustix::fs::ioctl_getflags(&file).map(|flags| flags | rustix::fs::IFlags::SYNC);
    if flags
        .and_then(|flags| rustix::fs::ioctl_setflags(&file, flags))
        .is_err()
    {
        return skipped("chattr", "the file system has no flags");
    }
    let action = Action::Move(far.path().as_os_str().as_bytes().to_vec());
    let (outcome, _) = place.act(&place.plan(&action, &PlanRules::default()), &|_, _| {});
    assert_eq!((outcome.done, outcome.refused.len()), (0, 1));
    assert!(b.exists());
    assert!(!state(far.path()).values().any(|one| one.1 == b"content"));
}

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).output().ok()?;
    let told = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    done.status.success().then_some(told)
}

/// Unmounts if the test fails.
struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-q").arg(&self.0).status();
    }
}

/// The file system is mounted again with another device number, nothing is cached, and the index is missing:
/// undo needs none of them.
#[test]
fn undo_after_the_disk_was_mounted_again() {
    for (name, over) in [("disk", false), ("overlay", true)] {
        let dir = tempfile::tempdir().unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (image, other) = (dir.path().join("image"), dir.path().join("other"));
        for file in [&image, &other] {
            std::fs::File::create(file)
                .unwrap()
                .set_len(64 << 20)
                .unwrap();
        }
        let disk = dir.path().join("disk");
        let merged = disk.join("merged");
        let root = if over { merged.clone() } else { disk.clone() }.join("tree");
        std::fs::create_dir(&disk).unwrap();
        let attach = || run("losetup", &["-f", "--show", &text(&image)]);
        let lay = || {
            let part = |name: &str| {
                let path = disk.join(name);
                std::fs::create_dir_all(&path).unwrap();
                text(&path)
            };
            let (lower, upper, work) = (part("lower"), part("upper"), part("work"));
            let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
            let merged = part("merged");
            let made = ["-t", "overlay", "-o", &options, "overlay", &merged];
            run("mount", &made).is_some()
        };
        let first = run("mkfs.ext4", &["-q", &text(&image)]).and_then(|_| attach());
        let Some(first) = first else {
            return skipped("loop", "no disk can be made in a file");
        };
        let put_on = |device: &str| run("mount", &[device, &text(&disk)]).is_some();
        let (_below, _above) = (Unmount(disk.clone()), Unmount(merged.clone()));
        if !put_on(&first) || over && !lay() {
            let _ = run("losetup", &["-d", &first]);
            return skipped("loop", format!("no {name} can be mounted here"));
        }
        let place = Place::new();
        put(root.join("a"), b"content");
        let b = put(root.join("sub/bb"), b"content");
        let c = put(root.join("sub/ccc"), b"content");
        adorn(&b);
        let before = adorned(&b);
        let found = common::scan_tree(&root, &assay_dups::ScanOptions::default(), None);
        let plan = assay_dups::act::plan::plan(
            &found.files,
            &found.groups,
            &Action::Delete,
            &PlanRules::default(),
        )
        .unwrap();
        drop(found);
        let (outcome, journal) = place.act(&plan, &|_, _| {});
        assert_eq!(outcome.done, 2, "{name}: {:?}", outcome.refused);
        let device = std::fs::metadata(&disk).unwrap().dev();
        if over {
            assert!(run("umount", &[&text(&merged)]).is_some());
        }
        assert!(run("umount", &[&text(&disk)]).is_some());
        // In the meantime another disk uses the device.
        run("losetup", &["-d", &first]).unwrap();
        let rival = run("losetup", &["-f", "--show", &text(&other)]).unwrap();
        let second = attach().unwrap();
        let _ = std::fs::write("/proc/sys/vm/drop_caches", "3");
        // The folder below the mount point is another one.
        assert_eq!(
            undo_journal(&journal, &UndoOptions::default())
                .unwrap()
                .restored,
            0,
            "{name}"
        );
        assert!(!root.exists());
        assert!(put_on(&second) && (!over || lay()));
        let moved = std::fs::metadata(&disk).unwrap().dev() != device;
        let undone = undo_journal(&journal, &UndoOptions::default()).unwrap();
        assert_eq!(undone.restored, 2, "{name}: {:?}", undone.refused);
        assert_eq!(adorned(&b), before, "{name}");
        assert_eq!(std::fs::read(&c).unwrap(), b"content");
        if over {
            run("umount", &[&text(&merged)]).unwrap();
        }
        run("umount", &[&text(&disk)]).unwrap();
        for device in [&second, &rival] {
            run("losetup", &["-d", device]).unwrap();
        }
        eprintln!("{name}: another device number: {moved}");
    }
}
