use super::*;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, symlink};

fn tree() -> (tempfile::TempDir, Directory) {
    let dir = tempfile::tempdir().unwrap();
    let held = Directory::open(dir.path()).unwrap();
    (dir, held)
}

#[test]
fn a_file_stays_itself_whatever_takes_its_name() {
    let (dir, held) = tree();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    let scratch = held.create("scratch".as_ref()).unwrap();
    std::fs::remove_file(dir.path().join("scratch")).unwrap();
    symlink(&victim, dir.path().join("scratch")).unwrap();
    let mut again = scratch.reopen(OFlags::WRONLY).unwrap();
    again.write_all(b"noise").unwrap();
    std::fs::write(scratch.through(), "NOISE").unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    assert_eq!(scratch.file().metadata().unwrap().len(), 5);
    let removed = held.remove("scratch".as_ref(), scratch.identity()).unwrap();
    assert_eq!(removed, Removed::Another);
    assert!(victim.exists() && dir.path().join("scratch").is_symlink());
}

#[test]
fn only_regular_files_are_opened_and_no_link() {
    let (dir, held) = tree();
    std::fs::write(dir.path().join("file"), "x").unwrap();
    symlink("file", dir.path().join("link")).unwrap();
    std::fs::create_dir(dir.path().join("dir")).unwrap();
    let fifo = dir.path().join("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert!(held.file("file".as_ref(), Access::ReadWrite).is_ok());
    for name in ["link", "dir", "fifo", "gone", "../file", "..", ""] {
        for access in [Access::Read, Access::ReadWrite] {
            assert!(held.file(name.as_ref(), access).is_err(), "{name}");
            assert!(
                Held::open(&dir.path().join(name), access).is_err(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_directory_is_made_for_us_alone_and_found_by_its_descriptor() {
    let (dir, held) = tree();
    let made = held.make("room".as_ref()).unwrap();
    assert!(held.make("room".as_ref()).is_err());
    std::fs::rename(dir.path().join("room"), dir.path().join("away")).unwrap();
    std::fs::write(made.through().join("inside"), "x").unwrap();
    assert_eq!(made.list().unwrap(), ["inside"]);
    let meant = made.identity().unwrap();
    let removed = held.remove_directory("room".as_ref(), meant).unwrap();
    assert_eq!(removed, Removed::Absent);
    std::fs::remove_file(dir.path().join("away/inside")).unwrap();
    let removed = held.remove_directory("away".as_ref(), meant).unwrap();
    assert_eq!(removed, Removed::Gone);
}

#[test]
fn no_link_on_the_way_down() {
    let (dir, held) = tree();
    std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
    symlink("a", dir.path().join("link")).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    for (path, fine) in [
        ("a/b", true),
        ("a", true),
        (".", true),
        ("link", false),
        ("link/b", false),
        ("..", false),
        ("a/../..", false),
        ("/", false),
        ("gone", false),
    ] {
        let path = Path::new(path);
        assert_eq!(held.below(path).is_ok(), fine, "{}", path.display());
        let stepped = step_by_step(held.as_fd(), path, flags | OFlags::NOFOLLOW);
        assert_eq!(stepped.is_ok(), fine, "{}", path.display());
    }
}

#[test]
fn a_file_is_known_before_it_has_its_name() {
    let (dir, held) = tree();
    let mut told = Vec::new();
    let nameless = held.unnamed().unwrap().is_some();
    let made = held
        .create_known::<HostError>("file".as_ref(), &mut |file| {
            told.push((file.identity(), held.list().unwrap().len()));
            assert_eq!(file.shown(), dir.path().join("file"));
            Ok(())
        })
        .unwrap();
    assert_eq!(told, [(made.identity(), usize::from(!nameless))]);
    assert_eq!(held.look("file".as_ref()).unwrap(), Some(made.identity()));
    let mode = made.file().metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode, made.names().unwrap()), (0o600, 1));
    std::fs::rename(dir.path().join("file"), dir.path().join("moved")).unwrap();
    assert_eq!(made.whereabouts(), Some(dir.path().join("moved")));
    std::fs::rename(dir.path().join("moved"), dir.path().join("file")).unwrap();
    // An existing file is never replaced, and a failed attempt leaves nothing.
    let error = held.create_known::<HostError>("file".as_ref(), &mut |_| Ok(()));
    assert_eq!(
        error.unwrap_err().errno(),
        Some(Errno::EXIST.raw_os_error())
    );
    assert_eq!(held.list().unwrap(), ["file"]);
    assert_eq!(held.look("file".as_ref()).unwrap(), Some(made.identity()));
    // A file that was not recorded gets no name.
    let refused = held.create_known("other".as_ref(), &mut |file| {
        Err(HostError::path(file.shown(), "the journal is full"))
    });
    refused.unwrap_err();
    if nameless {
        assert_eq!(held.list().unwrap(), ["file"]);
    }
    for name in ["", ".", "..", "a/b"] {
        let made = held.create_known::<HostError>(name.as_ref(), &mut |_| Ok(()));
        made.unwrap_err();
    }
}

/// The process is killed before `known` returns, and the owner of the parent directory renames the object. The next
/// assay process still finds the object.
#[test]
fn attack_what_was_renamed_before_it_was_entered_is_found_by_its_mark() {
    let killed = |shown: &Path| Err(HostError::path(shown, "killed"));
    let (mut tried, mut held_out) = (0, 0);
    for directory in [true, false] {
        let (dir, held) = tree();
        let at = |name: &str| dir.path().join(name);
        let own = std::ffi::OsStr::new(".assay-1-own");
        let made = match directory {
            true => held
                .make_known(own, &mut |made| killed(made.shown()))
                .map(drop),
            false => held
                .create_marked(own, &mut |made| killed(made.shown()))
                .map(drop),
        };
        made.unwrap_err();
        std::fs::rename(at(".assay-1-own"), at("moved")).unwrap();
        // Similar objects that are not ours: recorded, another assay's, not empty, with a second name, with
        // another mode, a link.
        held.make("entered".as_ref()).unwrap();
        held.create_known::<HostError>("known".as_ref(), &mut |_| Ok(()))
            .unwrap();
        for other in [".assay-2-file", "full", "linked"] {
            let file = held.create_marked(other.as_ref(), &mut |made| killed(made.shown()));
            file.unwrap_err();
        }
        std::fs::hard_link(at("linked"), at("link")).unwrap();
        std::fs::write(at("full"), "x").unwrap();
        let inside = held.make_known(".assay-2-room".as_ref(), &mut |made| killed(made.shown()));
        inside.unwrap_err();
        let inside = held.make_known("room".as_ref(), &mut |made| killed(made.shown()));
        inside.unwrap_err();
        std::fs::write(at("room/file"), "x").unwrap();
        std::fs::create_dir(at("theirs")).unwrap();
        symlink("theirs", at("symlink")).unwrap();
        let before = held.list().unwrap();
        let found = held.remove_unentered(own).unwrap();
        let mut expected = before;
        expected.retain(|name| name != "moved");
        tried += 1;
        held_out += u64::from(found && held.list().unwrap() == expected);
        assert!(!held.remove_unentered(own).unwrap());
    }
    assay_testing::attacked("names taken before an entry", tried, held_out);
}
