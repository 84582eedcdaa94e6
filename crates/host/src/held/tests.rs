use super::*;
use std::io::Write as _;
use std::os::unix::fs::symlink;

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
