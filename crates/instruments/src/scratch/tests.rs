use super::*;
use assay_host::held::Identity;
use std::os::unix::fs::symlink;

const UID: &str = "0123456789abcdef0123456789abcdef";

fn held(dir: &tempfile::TempDir) -> Arc<Directory> {
    Arc::new(Directory::open(dir.path()).unwrap())
}

/// As kill -9 leaves it: descriptors closed, no destructor run.
fn killed(scratch: Scratch, session: Session) {
    let (scratch, session) = (
        &*Box::leak(Box::new(scratch)),
        &*Box::leak(Box::new(session)),
    );
    for file in [scratch.held.file(), &session._lock] {
        flock(file, FlockOperation::Unlock).unwrap();
    }
}

#[test]
fn a_session_takes_its_files_with_it() {
    let (state, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let state = State::open(state.path()).unwrap();
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
        let state = State::open(state_dir.path()).unwrap();
        let session = state.begin(UID).unwrap();
        let scratch = session.scratch(&held(&target)).unwrap();
        let path = scratch.shown().to_owned();
        killed(scratch, session);
        fs::write(target.path().join("mine.scratch"), "x").unwrap();
        let swept = if lose_state {
            sweep_directory(&held(&target))
        } else {
            State::existing(state_dir.path()).unwrap().sweep()
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
    let state = State::open(state_dir.path()).unwrap();
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
    let session = State::open(state.path()).unwrap().begin(UID).unwrap();
    let directory = held(&target);
    let path = target.path().to_owned();
    drop(target);
    let error = session.scratch(&directory).unwrap_err();
    assert!(matches!(error, ScratchError::Create { .. }), "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()));
    assert!(!path.exists());
}

/// Everything that the owner of the directory can put in place of a scratch file.
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
        let session = State::open(state.path()).unwrap().begin(UID).unwrap();
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
        assert_eq!((astray.path, astray.end), (at.clone(), End::Unlinked));
        assert_eq!(fs::read(&victim).unwrap(), b"precious", "{how}");
        assert_eq!(at.symlink_metadata().is_ok(), how != "nothing", "{how}");
    }
    let tried = SWAPS.len() as u64;
    assay_testing::attacked("names of scratch files taken", tried, tried);
}

#[test]
fn a_file_that_was_renamed_is_found_and_one_that_was_taken_away_is_emptied() {
    let (state, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let session = State::open(state.path()).unwrap().begin(UID).unwrap();
    let directory = held(&target);
    let renamed = target.path().join("renamed");
    let scratch = session.scratch(&directory).unwrap();
    fs::rename(scratch.shown(), &renamed).unwrap();
    assert_eq!(scratch.remove().unwrap().end, End::Renamed(renamed.clone()));
    assert!(!renamed.exists());

    let below = target.path().join("below");
    fs::create_dir(&below).unwrap();
    let scratch = session.scratch(&directory).unwrap();
    scratch.held().file().set_len(4096).unwrap();
    fs::rename(scratch.shown(), below.join("taken")).unwrap();
    let end = scratch.remove().unwrap().end;
    assert_eq!(end, End::Elsewhere(Some(below.join("taken"))));
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
    let session = State::open(state.path()).unwrap().begin(UID).unwrap();
    let directory = Arc::new(Directory::open(&dir).unwrap());
    fs::rename(&dir, &moved).unwrap();
    symlink(&victim, &dir).unwrap();
    let scratch = session.scratch(&directory).unwrap();
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 1);
    assert_eq!(scratch.remove(), None);
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 0);
}

#[test]
fn attack_what_a_sweep_finds_in_place_of_a_file_is_left_alone() {
    for how in SWAPS {
        for noted in [true, false] {
            let (state_dir, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let victim = state_dir.path().join("victim");
            fs::write(&victim, "precious").unwrap();
            let state = State::open(state_dir.path()).unwrap();
            let session = state.begin(UID).unwrap();
            let scratch = session.scratch(&held(&target)).unwrap();
            let at = scratch.shown().to_owned();
            swap(how, &at, &victim);
            if !noted {
                let list = session.dir().join(list::NAME);
                fs::write(list, [at.as_os_str().as_encoded_bytes(), b"\0"].concat()).unwrap();
            }
            killed(scratch, session);
            // One of this user's own under the very name cannot be told from one that a kill left
            // before it was noted.
            let taken = how == "file" && !noted;
            if how != "file" {
                assert_eq!(sweep_directory(&held(&target)), [], "{how}");
            }
            let swept = state.sweep();
            let failed = swept.iter().all(|one| one.error.is_some());
            assert_eq!(swept.len(), usize::from(how != "nothing"), "{how}");
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
    let state = State::open(state_dir.path()).unwrap();
    let dir = state.root.join(UID);
    fs::create_dir(&dir).unwrap();
    put("pipe", &dir.join(LOCK), Path::new(""));
    assert_eq!(state.sweep(), []);
    assert!(state.begin(UID).is_err());
}

#[test]
fn a_noted_file_is_known_by_its_inode() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    let held = directory.create("file".as_ref()).unwrap();
    let Identity { device, inode } = held.identity();
    let noted = |device, inode| Some(Identity { device, inode });
    assert!(sweep::made_by_us(&held, noted(device + 1, inode)).unwrap());
    assert!(!sweep::made_by_us(&held, noted(device, inode + 1)).unwrap());
    assert!(sweep::made_by_us(&held, None).unwrap());
    fs::hard_link(dir.path().join("file"), dir.path().join("link")).unwrap();
    assert!(!sweep::made_by_us(&held, None).unwrap());
}
