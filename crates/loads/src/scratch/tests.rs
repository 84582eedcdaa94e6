use super::*;
use std::os::unix::fs::symlink;

const UID: &str = "0123456789abcdef0123456789abcdef";

fn held(dir: &tempfile::TempDir) -> Arc<Directory> {
    Arc::new(Directory::open(dir.path()).unwrap())
}

/// Simulates kill -9 by closing the descriptors without running a destructor.
fn killed(scratch: Scratch, session: ScratchSession) {
    let (scratch, session) = (
        &*Box::leak(Box::new(scratch)),
        &*Box::leak(Box::new(session)),
    );
    for file in [scratch.held.file(), &session.entry._lock] {
        flock(file, FlockOperation::Unlock).unwrap();
    }
}

#[test]
fn a_session_takes_its_files_with_it() {
    let (state, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let state = ScratchRegistry::open(state.path()).unwrap();
    let session = state.begin(UID).unwrap();
    let scratch = session.scratch(&held(&target)).unwrap();
    assert!(scratch.shown().exists());
    assert!(matches!(state.begin(UID), Err(ScratchError::Busy)));
    assert_eq!(state.sweep(), [], "a live session is left alone");
    assert_eq!(sweep_directory(&held(&target)), []);
    drop((scratch, session));
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&state.root).unwrap().count(), 0);
}

#[test]
fn what_a_kill_left_is_found_from_both_sides() {
    for lose_state in [false, true] {
        let (state_dir, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let state = ScratchRegistry::open(state_dir.path()).unwrap();
        let session = state.begin(UID).unwrap();
        let scratch = session.scratch(&held(&target)).unwrap();
        let path = scratch.shown().to_owned();
        killed(scratch, session);
        fs::write(target.path().join("mine.scratch"), "x").unwrap();
        let swept = if lose_state {
            sweep_directory(&held(&target))
        } else {
            ScratchRegistry::existing(state_dir.path()).unwrap().sweep()
        };
        assert_eq!(swept, [Swept { path, error: None }]);
        assert_eq!(
            fs::read_dir(target.path()).unwrap().count(),
            1,
            "nobody else's file"
        );
    }
}

#[test]
fn a_forged_list_removes_nothing_else() {
    let (state_dir, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let state = ScratchRegistry::open(state_dir.path()).unwrap();
    let precious = target.path().join("precious");
    fs::write(&precious, "x").unwrap();
    let dir = state.root.join(UID);
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(LOCK), "").unwrap();
    fs::write(
        dir.join(list::NAME),
        precious.as_os_str().as_encoded_bytes(),
    )
    .unwrap();
    assert_eq!(state.sweep(), []);
    assert!(precious.exists());
}

#[test]
fn a_directory_that_goes_away_is_not_created_again() {
    let (state, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let session = ScratchRegistry::open(state.path())
        .unwrap()
        .begin(UID)
        .unwrap();
    let directory = held(&target);
    let path = target.path().to_owned();
    drop(target);
    let error = session.scratch(&directory).unwrap_err();
    assert!(matches!(error, ScratchError::Create { .. }), "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()));
    assert!(!path.exists());
}

/// Objects that the owner of the directory can put in place of a scratch file.
const SWAPS: [&str; 6] = ["link", "hard link", "pipe", "directory", "file", "nothing"];

fn swap(how: &str, at: &Path, victim: &Path) {
    let aside = at.with_extension("aside");
    fs::rename(at, &aside).unwrap();
    fs::remove_file(&aside).unwrap();
    put(how, at, victim);
}

fn put(how: &str, at: &Path, victim: &Path) {
    match how {
        "link" => symlink(victim, at).unwrap(),
        "hard link" => fs::hard_link(victim, at).unwrap(),
        "directory" => fs::create_dir(at).unwrap(),
        "file" => fs::write(at, "theirs").unwrap(),
        "pipe" => rustix::fs::mknodat(
            rustix::fs::CWD,
            at,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap(),
        _ => {}
    }
}

#[test]
fn attack_what_takes_the_name_is_neither_written_nor_removed() {
    for how in SWAPS {
        let (state, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = state.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let session = ScratchRegistry::open(state.path())
            .unwrap()
            .begin(UID)
            .unwrap();
        let scratch = session.scratch(&held(&target)).unwrap();
        let at = scratch.shown().to_owned();
        swap(how, &at, &victim);
        crate::layout::fill(
            scratch.held(),
            assay_model::Bytes(1 << 20),
            1,
            &crate::Cancel::default(),
            &mut |_, _| {},
        )
        .unwrap();
        let astray = scratch.remove().unwrap();
        assert_eq!(
            (astray.path, astray.end),
            (at.clone(), MovedFileEnd::Unlinked)
        );
        assert_eq!(fs::read(&victim).unwrap(), b"precious", "{how}");
        assert_eq!(at.symlink_metadata().is_ok(), how != "nothing", "{how}");
    }
    let tried = SWAPS.len() as u64;
    assay_testing::attacked("names of scratch files taken", tried, tried);
}

#[test]
fn a_file_that_was_renamed_is_found_and_one_that_was_taken_away_is_emptied() {
    let (state, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let session = ScratchRegistry::open(state.path())
        .unwrap()
        .begin(UID)
        .unwrap();
    let directory = held(&target);
    let renamed = target.path().join("renamed");
    let scratch = session.scratch(&directory).unwrap();
    fs::rename(scratch.shown(), &renamed).unwrap();
    assert_eq!(
        scratch.remove().unwrap().end,
        MovedFileEnd::Renamed(renamed.clone())
    );
    assert!(!renamed.exists());

    let below = target.path().join("below");
    fs::create_dir(&below).unwrap();
    let scratch = session.scratch(&directory).unwrap();
    scratch.held().file().set_len(4096).unwrap();
    fs::rename(scratch.shown(), below.join("taken")).unwrap();
    let end = scratch.remove().unwrap().end;
    assert_eq!(end, MovedFileEnd::Elsewhere(Some(below.join("taken"))));
    assert_eq!(fs::metadata(below.join("taken")).unwrap().len(), 0);
}

#[test]
fn a_swap_of_the_directory_leads_nowhere() {
    let (state, base) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (dir, moved, victim) = (
        base.path().join("dir"),
        base.path().join("moved"),
        base.path().join("victim"),
    );
    fs::create_dir(&dir).unwrap();
    fs::create_dir(&victim).unwrap();
    let session = ScratchRegistry::open(state.path())
        .unwrap()
        .begin(UID)
        .unwrap();
    let directory = Arc::new(Directory::open(&dir).unwrap());
    fs::rename(&dir, &moved).unwrap();
    symlink(&victim, &dir).unwrap();
    let scratch = session.scratch(&directory).unwrap();
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 1);
    assert_eq!(scratch.remove(), None);
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 0);
}

/// Simulates that assay was killed before it recorded the identity of a file.
fn forget_which(session: &ScratchSession, at: &Path) {
    fs::remove_file(session.dir().join(list::NAME)).unwrap();
    let path = at.to_owned();
    let entry = Entry { path, known: None };
    List::open(&session.dir).unwrap().enter(&entry).unwrap();
}

#[test]
fn attack_what_a_sweep_finds_in_place_of_a_file_is_left_alone() {
    for how in SWAPS {
        for known in [true, false] {
            let (state_dir, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let victim = state_dir.path().join("victim");
            fs::write(&victim, "precious").unwrap();
            let state = ScratchRegistry::open(state_dir.path()).unwrap();
            let session = state.begin(UID).unwrap();
            let scratch = session.scratch(&held(&target)).unwrap();
            let at = scratch.shown().to_owned();
            swap(how, &at, &victim);
            if !known {
                forget_which(&session, &at);
            }
            killed(scratch, session);
            // A file of this user with exactly this name looks like one of a session that was killed before
            // its identity was recorded.
            let taken = how == "file" && !known;
            if how != "file" {
                assert_eq!(sweep_directory(&held(&target)), [], "{how}");
            }
            let swept = state.sweep();
            let failed = swept.iter().all(|one| one.error.is_some());
            if !known {
                assert_eq!(swept.len(), usize::from(how != "nothing"), "{how}");
            }
            assert_eq!(failed, !taken, "{how}: {swept:?}");
            assert_eq!(at.symlink_metadata().is_ok(), !taken && how != "nothing");
            assert_eq!(fs::read(&victim).unwrap(), b"precious", "{how}");
            assert_eq!(state.sweep(), [], "said once");
        }
    }
    let tried = 2 * SWAPS.len() as u64;
    assay_testing::attacked("names taken before a sweep", tried, tried);
}

#[test]
fn a_pipe_in_the_state_directory_is_not_waited_for() {
    let state_dir = tempfile::tempdir().unwrap();
    let state = ScratchRegistry::open(state_dir.path()).unwrap();
    let dir = state.root.join(UID);
    fs::create_dir(&dir).unwrap();
    put("pipe", &dir.join(LOCK), Path::new(""));
    assert_eq!(state.sweep(), []);
    assert!(state.begin(UID).is_err());
}

/// The owner of the directory moves the file to several places before assay is killed, and puts other objects in its
/// place.
#[test]
fn attack_a_file_that_was_moved_before_the_kill_is_found_and_nothing_else_goes() {
    if !rustix::process::geteuid().is_root() {
        return assay_testing::skipped("root", "only root opens files by their handles");
    }
    let (mut tried, mut held_out) = (0, 0);
    for moved in ["dir/renamed", "dir/below/renamed", "other/renamed"] {
        for how in SWAPS {
            for gone in [false, true] {
                let (state_dir, base) = (tempfile::tempdir().unwrap(), tempdir());
                let dir = base.path().join("dir");
                fs::create_dir_all(dir.join("below")).unwrap();
                fs::create_dir(base.path().join("other")).unwrap();
                let victim = base.path().join("victim");
                fs::write(&victim, "precious").unwrap();
                let state = ScratchRegistry::open(state_dir.path()).unwrap();
                let session = state.begin(UID).unwrap();
                let directory = Arc::new(Directory::open(&dir).unwrap());
                let scratch = session.scratch(&directory).unwrap();
                let (at, moved) = (scratch.shown().to_owned(), base.path().join(moved));
                fs::rename(&at, &moved).unwrap();
                put(how, &at, &victim);
                // The directory itself was moved as well.
                if gone && !moved.starts_with(&dir) {
                    fs::rename(&dir, base.path().join("away")).unwrap();
                }
                killed(scratch, session);
                let swept = state.sweep();
                let whole = fs::read(&victim).unwrap() == b"precious";
                let left = moved.exists();
                tried += 1;
                held_out += u64::from(
                    !left
                        && whole
                        && swept
                            == [Swept {
                                path: at,
                                error: None,
                            }],
                );
            }
        }
    }
    assay_testing::attacked("scratch files moved before a kill", tried, held_out);
}

/// Creates a directory on a disk, because the file handles of file systems in memory may be of another kind.
fn tempdir() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

#[test]
fn a_file_with_two_names_loses_both() {
    if !rustix::process::geteuid().is_root() {
        return assay_testing::skipped("root", "only root opens files by their handles");
    }
    let (state_dir, target) = (tempfile::tempdir().unwrap(), tempdir());
    let state = ScratchRegistry::open(state_dir.path()).unwrap();
    let session = state.begin(UID).unwrap();
    let scratch = session.scratch(&held(&target)).unwrap();
    scratch.held().file().set_len(4096).unwrap();
    fs::create_dir(target.path().join("below")).unwrap();
    let links = ["link", "below/link"].map(|name| target.path().join(name));
    for link in &links {
        fs::hard_link(scratch.shown(), link).unwrap();
    }
    killed(scratch, session);
    let swept = state.sweep();
    assert_eq!(swept.len(), 1);
    // A link that cannot be found uses no space.
    let left = links.iter().filter_map(|link| fs::metadata(link).ok());
    assert_eq!(left.map(|left| left.len()).sum::<u64>(), 0);
}

fn run(argv: &[&str]) -> bool {
    std::process::Command::new(argv[0])
        .args(&argv[1..])
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A separate file system, which is unmounted when the value is dropped.
struct Mounted {
    dir: tempfile::TempDir,
    image: tempfile::TempDir,
}

impl Mounted {
    fn new() -> Option<Self> {
        let (dir, image) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = image.path().join("image");
        File::create(&file).unwrap().set_len(16 << 20).unwrap();
        let mounted = Self { dir, image };
        let made = run(&["mkfs.ext4", "-q", file.to_str().unwrap()]) && mounted.mount();
        made.then_some(mounted)
    }

    fn mount(&self) -> bool {
        let (file, at) = (self.image.path().join("image"), self.dir.path());
        run(&[
            "mount",
            "-o",
            "loop",
            file.to_str().unwrap(),
            at.to_str().unwrap(),
        ])
    }

    fn unmount(&self) -> bool {
        run(&["umount", self.dir.path().to_str().unwrap()])
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// Something that prevents the removal of a scratch file: its name, a function that sets it up, and a function that
/// ends it.
type Hindrance = (&'static str, fn(&Path) -> bool, fn(&Path) -> bool);

const HINDRANCES: [Hindrance; 5] = [
    (
        "an immutable file",
        |file| run(&["chattr", "+i", file.to_str().unwrap()]),
        |file| run(&["chattr", "-i", file.to_str().unwrap()]),
    ),
    (
        "an append-only file",
        |file| run(&["chattr", "+a", file.to_str().unwrap()]),
        |file| run(&["chattr", "-a", file.to_str().unwrap()]),
    ),
    (
        "an immutable directory",
        |file| run(&["chattr", "+i", file.parent().unwrap().to_str().unwrap()]),
        |file| run(&["chattr", "-i", file.parent().unwrap().to_str().unwrap()]),
    ),
    (
        "a read-only file system",
        |file| {
            run(&["sync"]);
            run(&[
                "mount",
                "-o",
                "remount,ro",
                file.parent().unwrap().to_str().unwrap(),
            ])
        },
        |file| {
            run(&[
                "mount",
                "-o",
                "remount,rw",
                file.parent().unwrap().to_str().unwrap(),
            ])
        },
    ),
    (
        "a mount on the file",
        |file| run(&["mount", "--bind", "/etc/hostname", file.to_str().unwrap()]),
        |file| run(&["umount", file.to_str().unwrap()]),
    ),
];

#[test]
fn what_could_not_be_removed_stays_entered_and_is_named_until_it_is_gone() {
    for (what, hinder, help) in HINDRANCES {
        for kill in [false, true] {
            let Some(target) = Mounted::new() else {
                return assay_testing::skipped("mount", "needs root and a loop device");
            };
            let state_dir = tempfile::tempdir().unwrap();
            let state = ScratchRegistry::open(state_dir.path()).unwrap();
            let session = state.begin(UID).unwrap();
            let scratch = session.scratch(&held(&target.dir)).unwrap();
            let path = scratch.shown().to_owned();
            if what == "a read-only file system" && !kill {
                // A file open for writing keeps the file system writable.
                continue;
            }
            if kill {
                left_by_a_kill(scratch, session);
                assert!(hinder(&path), "{what}");
            } else {
                assert!(hinder(&path), "{what}");
                drop(scratch);
                drop(session);
            }
            for _ in 0..2 {
                let swept = state.sweep();
                assert_eq!(swept.len(), 1, "{what}, killed: {kill}");
                assert!(swept[0].error.is_some(), "{what}, killed: {kill}");
            }
            assert!(help(&path), "{what}");
            let swept = state.sweep();
            assert_eq!(
                swept,
                [Swept { path, error: None }],
                "{what}, killed: {kill}"
            );
            assert_eq!(state.sweep(), [], "{what}");
        }
    }
}

/// Simulates kill -9 by closing everything without removing a file. Returns the path of the remaining file.
fn left_by_a_kill(scratch: Scratch, session: ScratchSession) -> PathBuf {
    let (path, dir) = (scratch.shown().to_owned(), session.path.clone());
    let list = fs::read(dir.join(list::NAME)).unwrap();
    // The destructor searches only the same directory for other names.
    let elsewhere = path.parent().unwrap().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::hard_link(&path, elsewhere.join("kept")).unwrap();
    drop(scratch);
    drop(session);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(LOCK), "").unwrap();
    fs::write(dir.join(list::NAME), list).unwrap();
    fs::rename(elsewhere.join("kept"), &path).unwrap();
    fs::remove_dir(elsewhere).unwrap();
    path
}

#[test]
fn a_scratch_file_of_a_file_system_that_is_not_mounted_is_not_forgotten() {
    let Some(target) = Mounted::new() else {
        return assay_testing::skipped("mount", "needs root and a loop device");
    };
    let below = target.dir.path().join("below");
    for at in [target.dir.path(), &below] {
        fs::create_dir_all(at).unwrap();
        let state_dir = tempfile::tempdir().unwrap();
        let state = ScratchRegistry::open(state_dir.path()).unwrap();
        let session = state.begin(UID).unwrap();
        let scratch = session
            .scratch(&Arc::new(Directory::open(at).unwrap()))
            .unwrap();
        let path = scratch.shown().to_owned();
        let left = left_by_a_kill(scratch, session);
        assert_eq!(left, path);
        assert!(target.unmount());
        for _ in 0..2 {
            let swept = state.sweep();
            assert!(swept.len() == 1 && swept[0].error.is_some(), "{swept:?}");
        }
        assert!(target.mount());
        assert_eq!(state.sweep(), [Swept { path, error: None }]);
        assert_eq!(state.sweep(), []);
    }
}
