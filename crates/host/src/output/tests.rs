use super::*;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{chown, symlink};
use std::sync::atomic::AtomicBool;

/// User id of the account `nobody`, which plays another user in the tests.
const OTHER: u32 = 65534;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_file_appears_whole_and_a_dropped_one_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("file");
    let count = || fs::read_dir(dir.path()).unwrap().count();
    for text in ["first", "second"] {
        let mut output = OutputFile::create(&to).unwrap();
        output.write_bytes(text.as_bytes()).unwrap();
        assert_ne!(fs::read_to_string(&to).ok().as_deref(), Some(text));
        output.publish().unwrap();
        assert_eq!(read(&to), text);
        assert_eq!(count(), 1);
    }
    let mut dropped = OutputFile::create(&to).unwrap();
    dropped.write_bytes(b"third").unwrap();
    drop(dropped);
    assert_eq!((read(&to).as_str(), count()), ("second", 1));
}

#[test]
fn modes_are_kept_and_secrets_are_new_and_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o7777;
    fs::write(path("old"), "old").unwrap();
    fs::set_permissions(path("old"), fs::Permissions::from_mode(0o4640)).unwrap();
    write_output(&path("old"), b"new").unwrap();
    assert_eq!((read(&path("old")).as_str(), mode("old")), ("new", 0o640));
    OutputFile::create_private(&path("old"))
        .unwrap()
        .publish()
        .unwrap();
    assert_eq!(mode("old"), 0o600);
    OutputFile::create_secret(&path("secret"))
        .unwrap()
        .publish()
        .unwrap();
    assert_eq!(mode("secret"), 0o600);
    assert!(OutputFile::create_secret(&path("secret")).is_err());
    // A file that appeared while the secret was written stays.
    let mut late = OutputFile::create_secret(&path("late")).unwrap();
    late.write_bytes(b"secret").unwrap();
    fs::write(path("late"), "theirs").unwrap();
    assert!(late.publish().is_err());
    assert_eq!(read(&path("late")), "theirs");
}

#[test]
fn descriptors_and_null_are_written_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    write_output(Path::new("/dev/null"), b"nothing").unwrap();
    assert!(write_output(Path::new("/dev/full"), b"nothing").is_err());
    // A descriptor that this process opened was not inherited.
    let own = File::create(dir.path().join("own")).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&own);
    for name in [
        format!("/dev/fd/{number}"),
        format!("/proc/self/fd/{number}"),
        "/dev/fd/99999".to_owned(),
    ] {
        assert!(write_output(Path::new(&name), b"x").is_err(), "{name}");
    }
    rustix::io::fcntl_setfd(&own, rustix::io::FdFlags::empty()).unwrap();
    write_output(Path::new(&format!("/dev/fd/{number}")), b"given").unwrap();
    assert_eq!(read(&dir.path().join("own")), "given");
}

#[test]
fn attack_links_and_special_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("victim"), "precious").unwrap();
    symlink(path("victim"), path("link")).unwrap();
    symlink("victim", path("relative")).unwrap();
    symlink(path("nowhere"), path("dangling")).unwrap();
    symlink("loop", path("loop")).unwrap();
    symlink("/dev/null", path("null")).unwrap();
    fs::create_dir(path("directory")).unwrap();
    let fifo = std::ffi::CString::new(path("fifo").as_os_str().as_bytes()).unwrap();
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    let names = [
        "link",
        "relative",
        "dangling",
        "loop",
        "null",
        "directory",
        "directory/",
        "fifo",
        "socket",
        "new/",
        "victim/below",
        "missing/file",
        "directory/..",
    ];
    let before = fs::read_dir(dir.path()).unwrap().count();
    let mut held = 0;
    for name in names {
        let refused = write_output(&path(name), b"x").is_err();
        let untouched = read(&path("victim")) == "precious" && !path("nowhere").exists();
        held += u64::from(refused && untouched);
        assert!(refused, "{name}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), before);
    assay_testing::attacked(
        "links and special files as output",
        names.len() as u64,
        held,
    );
}

#[test]
fn attack_another_name_of_a_file_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("victim"), "precious").unwrap();
    fs::hard_link(path("victim"), path("report")).unwrap();
    write_output(&path("report"), b"report").unwrap();
    assert_eq!(read(&path("victim")), "precious");
    assert_eq!(read(&path("report")), "report");
    assay_testing::attacked("a hard link as output", 1, 1);
}

/// Creates a directory that belongs to `OTHER` and contains a link to a directory of root. Returns `None` if the test
/// does not run as root.
fn theirs() -> Option<(tempfile::TempDir, PathBuf, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        assay_testing::skipped("root", "only root has something to lose here");
        return None;
    }
    let all = tempfile::tempdir().unwrap();
    let (theirs, roots) = (all.path().join("theirs"), all.path().join("roots"));
    for dir in [&theirs, &roots] {
        fs::create_dir(dir).unwrap();
    }
    fs::write(roots.join("file"), "precious").unwrap();
    chown(&theirs, Some(OTHER), None).unwrap();
    fs::set_permissions(all.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&roots, fs::Permissions::from_mode(0o700)).unwrap();
    Some((all, theirs, roots))
}

#[test]
fn attack_links_of_others_on_the_way_are_refused() {
    let Some((all, theirs, roots)) = theirs() else {
        return;
    };
    let planted = |target: &Path, name: &str| {
        symlink(target, theirs.join(name)).unwrap();
        std::os::unix::fs::lchown(theirs.join(name), Some(OTHER), None).unwrap();
    };
    planted(&roots, "way");
    planted(Path::new("../roots"), "relative");
    planted(Path::new("way"), "twice");
    // A link of root is followed.
    symlink("theirs/way", all.path().join("own")).unwrap();
    symlink("roots", all.path().join("fine")).unwrap();
    let mut held = 0;
    let ways = [
        theirs.join("way/file"),
        theirs.join("relative/file"),
        theirs.join("twice/file"),
        theirs.join("way/../roots/file"),
        all.path().join("own/file"),
    ];
    for way in &ways {
        let refused = write_output(way, b"x").is_err();
        held += u64::from(refused && read(&roots.join("file")) == "precious");
        assert!(refused, "{}", way.display());
        assert!(check_links(way).is_err());
        assert!(OutputFolder::create(&way.with_file_name("folder")).is_err());
        assert!(open_own_directory(&way.with_file_name("captured")).is_err());
    }
    check_links(&all.path().join("fine/file")).unwrap();
    symlink("file", theirs.join("rooted")).unwrap();
    symlink("../theirs/out", roots.join("on")).unwrap();
    planted(&roots.join("file"), "out");
    assert!(check_links(&theirs.join("out")).is_err());
    assert!(check_links(&roots.join("on")).is_err());
    check_links(&theirs.join("rooted")).unwrap();
    check_links(&theirs.join("nothing")).unwrap();
    write_output(&all.path().join("fine/file"), b"own way").unwrap();
    assert_eq!(read(&roots.join("file")), "own way");
    assay_testing::attacked(
        "links of others on the way to an output",
        ways.len() as u64,
        held,
    );
}

#[test]
fn a_directory_of_others_is_written_to_but_not_filled() {
    let Some((_all, theirs, _)) = theirs() else {
        return;
    };
    write_output(&theirs.join("report"), b"x").unwrap();
    assert!(open_own_directory(&theirs).is_err());
    let folder = OutputFolder::create(&theirs.join("folder")).unwrap();
    fs::write(folder.path().join("part"), "x").unwrap();
    folder.publish().unwrap();
    assert_eq!(read(&theirs.join("folder/part")), "x");
    assert!(OutputFolder::create(&theirs.join("folder")).is_err());
    let dropped = OutputFolder::create(&theirs.join("other")).unwrap();
    fs::write(dropped.path().join("part"), "x").unwrap();
    drop(dropped);
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 2);
}

#[test]
fn attack_a_full_disk_leaves_the_old_file() {
    if !rustix::process::geteuid().is_root() {
        assay_testing::skipped("root", "only root mounts");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let mount = |words: &[&str]| {
        std::process::Command::new(words[0])
            .args(&words[1..])
            .status()
    };
    let made = mount(&["mount", "-t", "tmpfs", "-o", "size=256k", "none", at]);
    if !made.is_ok_and(|status| status.success()) {
        assay_testing::skipped("mount", "nothing can be mounted here");
        return;
    }
    let to = dir.path().join("report");
    write_output(&to, b"old").unwrap();
    let mut held = 0;
    for size in [512 << 10, 1 << 20, 300 << 10] {
        let refused = write_output(&to, &vec![b'x'; size]).is_err();
        let alone = fs::read_dir(dir.path()).unwrap().count() == 1;
        held += u64::from(refused && alone && read(&to) == "old");
    }
    mount(&["umount", at]).unwrap();
    assay_testing::attacked("outputs on a full disk", 3, held);
}

#[test]
fn attack_what_a_killed_one_left_goes_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let left = path(".assay-4711-file");
    let lives = path(".assay-4712-file");
    for name in [
        ".assay-4711-file",
        ".assay-4712-file",
        ".assay-4713-other",
        ".assay-x-file",
    ] {
        fs::write(path(name), "part").unwrap();
    }
    fs::write(path("victim"), "precious").unwrap();
    symlink(path("victim"), path(".assay-1-file")).unwrap();
    fs::hard_link(path("victim"), path(".assay-2-file")).unwrap();
    let other = fs::File::open(&lives).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    write_output(&path("file"), b"").unwrap();
    assert!(!left.exists());
    assert!(lives.exists() && path(".assay-4713-other").exists());
    assert!(path(".assay-x-file").exists() && path(".assay-2-file").exists());
    assert!(path(".assay-1-file").is_symlink());
    assert_eq!(read(&path("victim")), "precious");
    assay_testing::attacked("names that a killed output may have left", 6, 6);
}

/// The owner of the directory turns every name in it into a link to root's file, a pipe, or a hard link of the file.
#[test]
fn attack_outputs_in_a_directory_of_others() {
    let Some((_all, theirs, roots)) = theirs() else {
        return;
    };
    let over = AtomicBool::new(false);
    let rounds = 500 * assay_testing::attack_factor();
    let mut held = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let nobody = rustix::process::Uid::from_raw(OTHER);
            rustix::thread::set_thread_uid(nobody).unwrap();
            let mut turn = 0u32;
            while !over.load(Ordering::Relaxed) {
                for entry in fs::read_dir(&theirs).into_iter().flatten().flatten() {
                    turn = turn.wrapping_add(1);
                    let _ = fs::remove_file(entry.path());
                    let _ = match turn % 3 {
                        0 => symlink(roots.join("file"), entry.path()),
                        1 => fs::create_dir(entry.path()),
                        _ => rustix::fs::mknodat(CWD, entry.path(), FileType::Fifo, Mode::RUSR, 0)
                            .map_err(Into::into),
                    };
                    let _ = fs::remove_dir(entry.path());
                }
            }
        });
        for round in 0..rounds {
            let to = theirs.join(format!("file{}", round % 3));
            let _ = write_output(&to, b"report");
            held += u64::from(read(&roots.join("file")) == "precious");
        }
        over.store(true, Ordering::Relaxed);
    });
    assay_testing::attacked("outputs in a directory of others", rounds, held);
}

#[test]
fn streams_are_not_read_back() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&writer);
    write_output(Path::new(&format!("/proc/self/fd/{number}")), b"through").unwrap();
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through");
}

#[test]
fn a_directory_that_may_not_be_listed_is_written_to() {
    if !rustix::process::geteuid().is_root() {
        assay_testing::skipped("root", "only root becomes another user");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    chown(dir.path(), Some(OTHER), None).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o300)).unwrap();
    let to = dir.path().join("report");
    let written = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let nobody = rustix::process::Uid::from_raw(OTHER);
            rustix::thread::set_thread_uid(nobody).unwrap();
            write_output(&to, b"report").and_then(|()| write_output(&to, b"again"))
        });
        other.join().unwrap()
    });
    written.unwrap();
    assert_eq!(read(&to), "again");
}
