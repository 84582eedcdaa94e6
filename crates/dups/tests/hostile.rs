//! Scans trees that are hostile: with removed permissions, or with kernel file systems.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::{Reason, ScanOptions};
use common::{Mount, groups_of, noise, oracle, put, scan_tree};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const NOBODY: u32 = 65_534;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs `work` on a thread without root's permissions, as do threads that it starts. Returns `None` if the test does
/// not run as root.
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    if !rustix::process::geteuid().is_root() {
        assay_testing::skipped("root", "to become somebody else");
        return None;
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: the system call itself, unlike the function of libc, changes this thread only;
            // it touches no memory.
            let status = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            assert_eq!(status, 0);
            work()
        });
        Some(thread.join().unwrap())
    })
}

/// Scans while a third of the tree becomes unreadable and readable again, folders included: all reported
/// groups are correct, and every unreadable file is listed.
#[test]
fn permission_lost_half_way() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    for number in 0..240_u64 {
        let path = root.join(format!("d{}/f{number}", number % 6));
        put(path, &noise(number / 2, 70_000));
    }
    let wanted = oracle(&root);
    let own = |path: &Path| std::os::unix::fs::chown(path, Some(NOBODY), None);
    set_mode(dir.path(), 0o755);
    for entry in std::fs::read_dir(&root).unwrap().flatten() {
        if own(&entry.path()).is_err() {
            return assay_testing::skipped("root", "to give files away");
        }
        for file in std::fs::read_dir(entry.path()).unwrap().flatten() {
            own(&file.path()).unwrap();
        }
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        let _stop = assay_testing::Stop(&stop);
        scope.spawn(|| {
            for turn in 0_u64.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                let number = turn * 7 % 240;
                let folder = root.join(format!("d{}", number % 6));
                let file = folder.join(format!("f{number}"));
                let folder_mode = if turn % 5 == 0 { 0 } else { 0o755 };
                set_mode(&file, if turn % 3 == 0 { 0 } else { 0o644 });
                set_mode(&folder, folder_mode);
            }
        });
        let ended = as_nobody(|| {
            for _ in 0..10 {
                let found = scan_tree(&root, &ScanOptions::default(), None);
                for group in groups_of(&found) {
                    assert!(
                        wanted
                            .iter()
                            .any(|whole| group.iter().all(|one| whole.contains(one))),
                        "{group:?}"
                    );
                }
                let told = Reason::ALL.iter().filter(|one| one.is_trouble());
                let told: u64 = told.map(|reason| found.skipped.count(*reason)).sum();
                assert_eq!(told, found.skipped.details.len() as u64, "a line for each");
            }
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        ended
    });
    if ended.is_none() {
        return;
    }
    // Permanently: every second file, and a folder.
    for number in 0..240 {
        let folder = root.join(format!("d{}", number % 6));
        set_mode(&folder, 0o755);
        let mode = if number % 2 == 0 { 0o644 } else { 0 };
        set_mode(&folder.join(format!("f{number}")), mode);
    }
    let gone = root.join("d4");
    set_mode(&gone, 0);
    let found = as_nobody(|| scan_tree(&root, &ScanOptions::default(), None)).unwrap();
    assert_eq!(found.groups.len(), 0, "one of each pair is unreadable");
    assert_eq!(found.skipped.count(Reason::UnreadableFolder), 1);
    assert!(found.skipped.count(Reason::Unreadable) > 80);
    assert!(
        found
            .skipped
            .details
            .iter()
            .any(|one| one.path.ends_with(b"/d4"))
    );
}

/// The scan does not enter kernel file systems below the root, even if it enters others.
#[test]
fn kernel_file_systems_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut mounts = Vec::new();
    for kind in ["proc", "sysfs", "tmpfs"] {
        let point = dir.path().join(kind);
        std::fs::create_dir(&point).unwrap();
        let Some(mount) = Mount::plain(&point, kind, "ro") else {
            return;
        };
        mounts.push(mount);
    }
    put(dir.path().join("a"), b"same");
    put(dir.path().join("b"), b"same");
    for other_filesystems in [false, true] {
        let mut options = ScanOptions::default();
        options.walk.other_filesystems = other_filesystems;
        let found = scan_tree(dir.path(), &options, None);
        assert_eq!(found.groups.len(), 1);
        assert_eq!(found.files.files.len(), 2);
        let entered = u64::from(other_filesystems);
        assert_eq!(found.skipped.count(Reason::Pseudo), 2 * entered);
        assert_eq!(
            found.skipped.count(Reason::OtherFilesystem),
            3 * (1 - entered)
        );
    }
}

/// A tree mounted inside itself, and a folder mounted next to itself: each folder counts once, the scan ends,
/// and no file is a copy of itself.
#[test]
fn bind_mounts_that_lead_back() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    put(root.join("sub/a"), b"same");
    put(root.join("b"), b"same");
    let mut mounts = Vec::new();
    for (from, to) in [(root.clone(), "sub/loop"), (root.join("sub"), "beside")] {
        std::fs::create_dir_all(root.join(to)).unwrap();
        let Some(mount) = Mount::bind(&from, &root.join(to)) else {
            return;
        };
        mounts.push(mount);
    }
    let mut options = ScanOptions::default();
    options.walk.other_filesystems = true;
    let found = scan_tree(&root, &options, None);
    assert_eq!(found.groups.len(), 1);
    assert_eq!(found.files.files.len(), 2);
    // The file system determines which view comes first; the scan does not continue below the other.
    let again = found.skipped.count(Reason::SeenAlready);
    assert!((1..=2).contains(&again), "{again}");
}

/// Files whose size differs from their readable length, like some in `/proc` and `/sys`: sysfs files report
/// 4096 bytes. On an unrecognised file system they are skipped and listed.
#[test]
fn files_shorter_than_they_say() {
    let size = std::fs::metadata("/sys/kernel/uevent_seqnum").map(|meta| meta.len());
    let text = std::fs::read("/sys/kernel/uevent_seqnum").map(|text| text.len() as u64);
    let (Ok(size), Ok(text)) = (size, text) else {
        return assay_testing::skipped("sysfs", "no /sys here");
    };
    assert!(text < size);
    let fd = open("/sys/kernel/uevent_seqnum");
    let mut cost = assay_dups::read::Cost::default();
    let trouble = cost.fill(&fd, &mut vec![0; size as usize], 0).unwrap_err();
    assert_eq!(trouble.reason, Reason::Changed);
    assert_eq!(trouble.detail, "shorter than its size says");
}

fn open(path: &str) -> std::os::fd::OwnedFd {
    std::fs::File::open(path).unwrap().into()
}

/// Ignore files that are pipes or links: the scan does not wait, and reads no other file.
#[test]
fn ignore_files_that_are_none() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    for name in ["pipe/a", "link/a", "file/a"] {
        put(root.join(name), b"same");
    }
    let rules = put(dir.path().join("rules"), b"a\n");
    let made = std::process::Command::new("mkfifo")
        .arg(root.join("pipe/.gitignore"))
        .status();
    assert!(made.unwrap().success());
    std::os::unix::fs::symlink(&rules, root.join("link/.ignore")).unwrap();
    std::fs::copy(&rules, root.join("file/.ignore")).unwrap();
    let mut options = ScanOptions::default();
    options.walk.filter.ignore_files = true;
    let found = scan_tree(&root, &options, None);
    assert_eq!(found.skipped.count(Reason::Ignored), 1);
    assert_eq!(found.groups.at(0).files.len(), 2);
}
