use super::super::{create_like, read};
use super::*;
use std::fs;
use std::io::Write as _;
use std::sync::Barrier;

const ALL: [Means; 3] = [Means::Exchange, Means::Links, Means::Rename];

/// A directory with a file and its replacement, for one test. `seen` is the state of the file.
struct Bench {
    dir: tempfile::TempDir,
    seen: FileVersion,
}

impl Bench {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), text).unwrap();
        let (bytes, seen) = read(&dir.path().join("file")).unwrap();
        let ours = [&bytes[..], b"ours\n"].concat();
        create_like(&dir.path().join("aside"), &seen, &ours, None).unwrap();
        Self { dir, seen }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn exchange(&self, means: Means) -> Result<(), HostError> {
        exchange_by(&self.path("aside"), &self.seen, means)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("file")).unwrap()
    }

    fn names(&self) -> usize {
        fs::read_dir(self.dir.path()).unwrap().count()
    }
}

#[test]
fn a_file_that_nobody_touches_is_replaced_and_nothing_is_left() {
    for means in ALL {
        let bench = Bench::new("text\n");
        bench.exchange(means).unwrap();
        assert_eq!(bench.text(), "text\nours\n", "{means:?}");
        assert_eq!(bench.names(), 1, "{means:?}");
    }
}

/// An edit by an editor, by `sed -i` with restored times, by `cp -p` or by `rsync` is detected, although size and time
/// stay the same.
#[test]
fn an_edit_that_only_the_bytes_show_is_not_replaced() {
    for means in ALL {
        let bench = Bench::new("text\n");
        let times = fs::metadata(bench.path("file"))
            .unwrap()
            .modified()
            .unwrap();
        fs::write(bench.path("file"), "edit\n").unwrap();
        let file = fs::File::options()
            .write(true)
            .open(bench.path("file"))
            .unwrap();
        file.set_times(fs::FileTimes::new().set_modified(times))
            .unwrap();
        drop(file);
        let refused = bench.exchange(means).unwrap_err();
        assert!(refused.is_meanwhile(), "{means:?}: {refused}");
        assert_eq!(bench.text(), "edit\n", "{means:?}");
    }
}

#[test]
fn a_file_that_somebody_is_about_to_write_keeps_its_place() {
    for means in [Means::Exchange, Means::Links] {
        let bench = Bench::new("text\n");
        let mut writer = fs::File::options()
            .append(true)
            .open(bench.path("file"))
            .unwrap();
        let held = super::open(
            &super::open_parent(&bench.seen.path).unwrap().0,
            "file".as_ref(),
        )
        .unwrap();
        if Lease::take(&held.0) == Granted::Unknown {
            return assay_testing::skipped("leases", "this file system grants none");
        }
        let refused = bench.exchange(means).unwrap_err();
        assert!(refused.is_meanwhile(), "{means:?}: {refused}");
        writer.write_all(b"edit\n").unwrap();
        assert_eq!(bench.text(), "text\nedit\n", "{means:?}");
        assert_eq!(bench.names(), 1, "{means:?}");
        // Undo does not wait for ever, and still loses nothing that was written.
        let bench = Bench::new("text\n");
        let seen = FileVersion {
            despite_writers: true,
            ..bench.seen.clone()
        };
        let mut writer = fs::File::options()
            .append(true)
            .open(bench.path("file"))
            .unwrap();
        exchange_by(&bench.path("aside"), &seen, means).unwrap();
        assert_eq!(bench.text(), "text\nours\n", "{means:?}");
        let bench = Bench::new("text\n");
        let mut other = fs::File::options()
            .append(true)
            .open(bench.path("file"))
            .unwrap();
        other.write_all(b"edit\n").unwrap();
        writer.write_all(b"lost\n").unwrap();
        let seen = FileVersion {
            despite_writers: true,
            ..bench.seen.clone()
        };
        assert!(exchange_by(&bench.path("aside"), &seen, means).is_err());
        assert_eq!(bench.text(), "text\nedit\n", "{means:?}");
    }
}

/// If the old object is a link, a directory or a pipe, it is put back.
#[test]
fn what_is_no_file_by_now_stays() {
    for means in ALL {
        for kind in ["link", "directory", "gone"] {
            let bench = Bench::new("text\n");
            let path = bench.path("file");
            fs::remove_file(&path).unwrap();
            match kind {
                "link" => std::os::unix::fs::symlink("elsewhere", &path).unwrap(),
                "directory" => fs::create_dir(&path).unwrap(),
                _ => {}
            }
            assert!(bench.exchange(means).is_err(), "{means:?} {kind}");
            let found = fs::symlink_metadata(&path).map(|found| found.file_type());
            match kind {
                "link" => assert!(found.unwrap().is_symlink()),
                "directory" => assert!(found.unwrap().is_dir()),
                _ => assert!(found.is_err()),
            }
        }
    }
}

/// Ways in which another process may write to the file.
const WRITERS: [fn(&Path); 4] = [
    // Like vim, sed -i and dpkg: a new file takes the name.
    |path| {
        let new = path.with_file_name("theirs");
        fs::write(&new, "edit\n").unwrap();
        fs::rename(new, path).unwrap();
    },
    // Like `echo > file` and cp: the file is truncated and written.
    |path| fs::write(path, "edit\n").unwrap(),
    // Like `echo >> file`.
    |path| {
        let mut file = fs::File::options().append(true).open(path).unwrap();
        file.write_all(b"edit\n").unwrap();
    },
    // Like nano and dd conv=notrunc: bytes are overwritten, and the size stays.
    |path| {
        let mut file = fs::File::options().write(true).open(path).unwrap();
        file.write_all(b"edit\n").unwrap();
    },
];

/// Replaces a file while another process writes to it once. Returns whether the edit of that process exists afterwards.
fn raced(means: Means, writer: fn(&Path), delay: u64) -> bool {
    let bench = Bench::new("text\n");
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        let (path, start) = (bench.path("file"), &start);
        scope.spawn(move || {
            start.wait();
            std::thread::sleep(Duration::from_micros(delay));
            writer(&path);
        });
        start.wait();
        let _ = bench.exchange(means);
    });
    assert!(!bench.path("aside").exists() || means == Means::Rename || !bench.text().is_empty());
    bench.text().contains("edit\n")
}

#[test]
fn attack_an_edit_at_the_moment_of_the_exchange_is_not_lost() {
    let rounds = 60 * assay_testing::attack_factor();
    let (mut tried, mut held) = (0, 0);
    for round in 0..rounds {
        for writer in WRITERS {
            tried += 1;
            held += u64::from(raced(Means::Exchange, writer, round % 100));
        }
    }
    // Without the exchange an edit in place is kept as well; a renamed file may be lost.
    for round in 0..rounds {
        for writer in &WRITERS[1..] {
            tried += 1;
            held += u64::from(raced(Means::Links, *writer, round % 100));
        }
    }
    assay_testing::attacked("edits while a file is replaced", tried, held);
}
