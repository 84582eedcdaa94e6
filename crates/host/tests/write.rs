//! Tests write operations on real files, processes and mounts.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

use assay_host::{
    Faulty, FileVersion, Host as _, HostError, HostMut, LiveHost, ProcessId, Recorded, Root, Times,
};
use rustix::fs::XattrFlags;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

/// Returns a POSIX ACL of version 2 (linux/posix_acl_xattr.h): rw- for the owner, r-- for user 7, the group and the
/// mask, --- for others.
fn acl() -> Vec<u8> {
    let none = u32::MAX;
    let entries = [
        (1u16, 6u16, none),
        (2, 4, 7),
        (4, 4, none),
        (16, 4, none),
        (32, 0, none),
    ];
    let mut acl = 2u32.to_le_bytes().to_vec();
    for (tag, access, id) in entries {
        acl.extend(tag.to_le_bytes());
        acl.extend(access.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    acl
}

#[test]
fn a_replaced_file_gets_no_rights_from_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let name = "system.posix_acl_default";
    if rustix::fs::setxattr(dir.path(), name, &acl(), XattrFlags::empty()).is_err() {
        assay_testing::skipped("acl", "this file system has none");
        return;
    }
    let (path, aside) = (dir.path().join("file"), dir.path().join("aside"));
    fs::write(&path, "old").unwrap();
    let access = "system.posix_acl_access";
    rustix::fs::removexattr(&path, access).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    LiveHost.replace_file(&path, &aside, b"new").unwrap();
    let mut value = [0; 256];
    let found = rustix::fs::getxattr(&path, access, &mut value[..]);
    assert_eq!(found, Err(rustix::io::Errno::NODATA));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
}

#[test]
fn a_replaced_file_keeps_owner_mode_and_attributes() {
    let dir = tempfile::tempdir().unwrap();
    // A name that is not UTF-8 and contains characters that are special in a shell.
    let name = OsString::from_vec(b"-a \xff\n'$(b)".to_vec());
    let (path, aside) = (dir.path().join(name), dir.path().join("aside"));
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), Some(54321)).unwrap();
    }
    let attribute = rustix::fs::setxattr(&path, "user.assay", b"x", XattrFlags::empty());
    let acl = acl();
    let name = "system.posix_acl_access";
    let listed = rustix::fs::setxattr(&path, name, &acl, XattrFlags::empty());
    let before = fs::metadata(&path).unwrap();

    LiveHost.replace_file(&path, &aside, b"new").unwrap();

    let after = fs::metadata(&path).unwrap();
    let attributes = |found: &fs::Metadata| (found.mode(), found.uid(), found.gid());
    assert_eq!(attributes(&after), attributes(&before));
    assert_ne!(after.ino(), before.ino(), "replaced, not written over");
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert!(!aside.exists());
    let mut value = [0; 256];
    // Only if the file system of the test supports such attributes.
    if attribute.is_ok() {
        let length = rustix::fs::getxattr(&path, "user.assay", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"x");
    }
    if listed.is_ok() {
        let length = rustix::fs::getxattr(&path, name, &mut value[..]).unwrap();
        assert_eq!(&value[..length], acl);
    }
}

#[test]
fn what_must_not_be_replaced_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("file"), "old").unwrap();
    symlink("file", path("link")).unwrap();
    let told = |from: &str| {
        let told = LiveHost
            .replace_file(&path(from), &path("aside"), b"new")
            .unwrap_err();
        assert!(!path("aside").exists());
        told.to_string()
    };
    insta::assert_snapshot!(assay_testing::normalize_output(told("link"), &[(dir.path(), "DIR")]), @"DIR/link: not a regular file but a link");
    insta::assert_snapshot!(assay_testing::normalize_output(told("none"), &[(dir.path(), "DIR")]), @"DIR/none: no such file or directory");
    fs::hard_link(path("file"), path("other")).unwrap();
    insta::assert_snapshot!(assay_testing::normalize_output(told("file"), &[(dir.path(), "DIR")]), @"DIR/file: it has 2 names (hard links), and replacing it would change only one of them");
    fs::remove_file(path("other")).unwrap();
    fs::write(path("aside"), "somebody's").unwrap();
    LiveHost
        .replace_file(&path("file"), &path("aside"), b"new")
        .unwrap_err();
    assert_eq!(fs::read(path("aside")).unwrap(), b"somebody's");
    assert_eq!(fs::read(path("file")).unwrap(), b"old");
}

#[test]
fn a_write_in_place_follows_no_link_and_makes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("file"), "old").unwrap();
    symlink("file", path("link")).unwrap();
    LiveHost.write_in_place(&path("link"), b"new").unwrap_err();
    assert!(
        LiveHost
            .write_in_place(&path("none"), b"new")
            .unwrap_err()
            .is_absent()
    );
    assert!(!path("none").exists());
    LiveHost.write_in_place(&path("file"), b"new").unwrap();
    assert_eq!(fs::read(path("file")).unwrap(), b"new");
    let read_only = Path::new("/proc/sys/kernel/random/boot_id");
    assert_eq!(
        LiveHost.check_writable(read_only).unwrap_err().reason(),
        "read-only"
    );
}

#[test]
fn a_tree_is_removed_without_following_links() {
    let dir = tempfile::tempdir().unwrap();
    let (tree, precious) = (dir.path().join("tree"), dir.path().join("precious"));
    fs::create_dir_all(tree.join("a/b")).unwrap();
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("x"), "").unwrap();
    symlink(&precious, tree.join("a/link")).unwrap();
    symlink(&tree, dir.path().join("to tree")).unwrap();
    assert!(LiveHost.remove_tree(&dir.path().join("to tree")).is_err());
    LiveHost.remove_tree(&tree).unwrap();
    assert!(!tree.exists() && precious.join("x").exists());
    assert!(LiveHost.remove_tree(&tree).unwrap_err().is_absent());
}

#[test]
fn what_is_mounted_in_a_tree_is_not_removed() {
    if !rustix::process::geteuid().is_root() {
        assay_testing::skipped("root", "mounts need root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    fs::write(tree.join("a/file"), "").unwrap();
    let mountpoint = tree.join("a/b");
    let run = |argv: &[&std::ffi::OsStr]| {
        assert!(
            Command::new(argv[0])
                .args(&argv[1..])
                .status()
                .unwrap()
                .success()
        );
    };
    run(&[
        "mount".as_ref(),
        "-t".as_ref(),
        "tmpfs".as_ref(),
        "none".as_ref(),
        mountpoint.as_ref(),
    ]);
    let told = LiveHost.remove_tree(&tree).unwrap_err().to_string();
    run(&["umount".as_ref(), mountpoint.as_ref()]);
    insta::assert_snapshot!(assay_testing::normalize_output(told, &[(dir.path(), "DIR")]), @"DIR/tree/a/b: something is mounted here: not removed");
    assert!(tree.join("a/file").exists(), "nothing was removed");
}

#[test]
fn only_the_very_process_is_killed() {
    let mut child = Command::new("sleep").arg("66").spawn().unwrap();
    let process = ProcessId::of(child.id()).unwrap();
    // The same process id with another start time.
    let other = ProcessId {
        start: process.start + 1,
        ..process
    };
    LiveHost.kill(other).unwrap();
    assert!(child.try_wait().unwrap().is_none());
    LiveHost.kill(process).unwrap();
    assert!(!child.wait().unwrap().success());
    LiveHost.kill(process).unwrap();
    assert_eq!(ProcessId::of(child.id()), None);
}

#[test]
fn captured_machines_refuse_and_recorded_ones_remember() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "old").unwrap();
    let (root, path) = (Root::open(dir.path()).unwrap(), Path::new("/file"));
    let process = ProcessId { pid: 1, start: 1 };
    let mut reasons = Vec::new();
    for refused in [
        root.check_writable(path),
        root.write_in_place(path, b"new"),
        root.replace_file(path, Path::new("/aside"), b"new"),
        root.exchange(Path::new("/other"), &FileVersion::plain(path)),
        root.remove_file(path),
        root.remove_tree(Path::new("/")),
        root.kill(process),
    ] {
        reasons.push(refused.unwrap_err().reason());
    }
    reasons.dedup();
    insta::assert_debug_snapshot!(reasons, @r#"
    [
        "a captured machine cannot be changed: run this on the machine itself",
    ]
    "#);
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"old");

    let recorded = Recorded::new().file("/a/file", "old");
    let path = Path::new("/a/file");
    let faulty = Faulty::once(&recorded, 2);
    faulty.write_in_place(path, b"new").unwrap();
    let failed = faulty.write_in_place(path, b"newer").unwrap_err();
    assert!(matches!(failed, HostError::Path { .. }));
    assert_eq!(recorded.read(path).unwrap(), b"new");
    recorded
        .replace_file(path, Path::new("/a/aside"), b"newest")
        .unwrap();
    assert_eq!(recorded.list(Path::new("/a")).unwrap(), ["file"]);
    assert_eq!(recorded.read(path).unwrap(), b"newest");
    recorded.remove_file(path).unwrap();
    assert!(recorded.write_in_place(path, b"x").unwrap_err().is_absent());
}

#[test]
fn a_replacement_takes_the_times_it_is_given_and_reading_leaves_none() {
    let dir = tempfile::tempdir().unwrap();
    let (path, aside) = (dir.path().join("file"), dir.path().join("aside"));
    fs::write(&path, "old").unwrap();
    let (_, seen) = LiveHost.read_plain(&path).unwrap();
    let old = Times {
        accessed: (1_000_000_000, 123_456_789),
        modified: (900_000_000, 987_654_321),
    };
    LiveHost
        .create_like(&aside, &seen, b"new", Some(old))
        .unwrap();
    LiveHost.exchange(&aside, &seen).unwrap();
    let (bytes, now) = LiveHost.read_plain(&path).unwrap();
    assert_eq!((&bytes[..], now.times), (&b"new"[..], Some(old)));
    let (_, again) = LiveHost.read_plain(&path).unwrap();
    assert_eq!(again, now, "reading left a trace");
}

#[test]
fn what_was_written_or_replaced_since_it_was_read_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("file"), "old").unwrap();
    let (_, seen) = LiveHost.read_plain(&path("file")).unwrap();
    LiveHost
        .create_like(&path("aside"), &seen, b"ours", None)
        .unwrap();
    fs::write(path("theirs"), "theirs").unwrap();
    fs::rename(path("theirs"), path("file")).unwrap();
    assert!(LiveHost.exchange(&path("aside"), &seen).is_err());
    assert!(
        LiveHost
            .create_like(&path("more"), &seen, b"ours", None)
            .is_err()
    );
    assert_eq!(fs::read(path("file")).unwrap(), b"theirs");
    assert!(!path("more").exists());
}

/// The owner of a directory replaces the directory and its contents while root replaces a file in it.
#[test]
fn attack_no_exchange_of_names_leads_a_replacement_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for name in ["theirs", "victim"] {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("file"), "precious").unwrap();
    }
    fs::write(path("victim/secret"), "secret").unwrap();
    let (stop, held) = (
        std::sync::atomic::AtomicBool::new(false),
        std::sync::atomic::AtomicU64::new(0),
    );
    let rounds = 2000 * assay_testing::attack_factor();
    std::thread::scope(|scope| {
        let _stop = assay_testing::Stop(&stop);
        scope.spawn(|| {
            let (file, away) = (path("theirs/file"), path("theirs/away"));
            let mut turn = 0;
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                turn += 1;
                let swapped = match turn % 4 {
                    0 => {
                        let moved = fs::rename(path("theirs"), path("aside"));
                        let _ = symlink(path("victim"), path("theirs"));
                        std::thread::yield_now();
                        let _ = fs::remove_file(path("theirs"));
                        let _ = fs::rename(path("aside"), path("theirs"));
                        moved
                    }
                    1 => {
                        let _ = fs::rename(&file, &away);
                        symlink(path("victim/file"), &file)
                    }
                    2 => {
                        let _ = fs::rename(&file, &away);
                        fs::hard_link(path("victim/secret"), &file)
                    }
                    _ => {
                        let _ = fs::rename(&file, &away);
                        Command::new("mkfifo").arg(&file).status().map(drop)
                    }
                };
                std::thread::yield_now();
                if swapped.is_ok() && turn % 4 != 0 {
                    let _ = fs::remove_file(&file);
                    let _ = fs::rename(&away, &file);
                }
                if !file.exists() {
                    let _ = fs::write(&file, "theirs");
                }
            }
        });
        for round in 0..rounds {
            let aside = path("theirs").join(format!(".assay-{round}"));
            let _ = LiveHost.replace_file(&path("theirs/file"), &aside, b"root was here");
            let whole = fs::read(path("victim/file")).unwrap() == b"precious"
                && fs::read(path("victim/secret")).unwrap() == b"secret"
                && fs::read_dir(path("victim")).unwrap().count() == 2;
            held.fetch_add(u64::from(whole), std::sync::atomic::Ordering::SeqCst);
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    let held = held.load(std::sync::atomic::Ordering::SeqCst);
    assay_testing::attacked("files replaced among exchanged names", rounds, held);
}
