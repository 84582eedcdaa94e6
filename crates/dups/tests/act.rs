//! Acting: what is promised is done, what changed is left alone, nothing is ever lost.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::Index;
use assay_dups::act::Action;
use assay_dups::act::execute::{Moment, Options, Outcome, execute, unfinished};
use assay_dups::act::journal::{Journal, State};
use assay_dups::act::plan::{Plan, Prefer, Rules, plan};
use assay_dups::act::undo::{recover, undo};
use assay_dups::{Scan, ScanOptions};
use common::{free, noise, put, scan_tree};
use std::cell::{Cell, RefCell};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    fn db(&self) -> PathBuf {
        self.dir.path().join("index.db")
    }

    fn scan(&self) -> Scan {
        scan_tree(&self.root(), &ScanOptions::default(), None)
    }

    fn plan(&self, action: &Action, rules: &Rules) -> Plan {
        let scan = self.scan();
        plan(&scan.files, &scan.groups, action, rules).unwrap()
    }

    fn act(
        &self,
        plan: &Plan,
        interfere: &dyn Fn(Moment, &assay_dups::act::Step),
    ) -> (Outcome, PathBuf) {
        let mut journal = Journal::begin(&self.db()).unwrap();
        let options = Options {
            without_lease: false,
            interfere,
        };
        let outcome = free(|control| execute(plan, &mut journal, &options, control)).unwrap();
        (outcome, journal.path().to_path_buf())
    }
}

fn ino(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).unwrap().ino()
}

#[test]
fn hardlinks_and_back() {
    let place = Place::new();
    let a = put(place.root().join("a"), b"content");
    let b = put(place.root().join("sub/b"), b"content");
    let c = put(place.root().join("sub/c"), b"other");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    std::fs::File::options()
        .write(true)
        .open(&b)
        .unwrap()
        .set_modified(old)
        .unwrap();
    let plan = place.plan(&Action::Hardlink, &Rules::default());
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(plan.gain(), 7);
    let (outcome, journal) = place.act(&plan, &|_, _| {});
    assert_eq!(
        (outcome.done, outcome.gain),
        (1, 7),
        "{:?}",
        outcome.refused
    );
    assert_eq!(ino(&a), ino(&b));
    assert_eq!(std::fs::read(&c).unwrap(), b"other");
    assert_eq!(
        std::fs::read_dir(place.root().join("sub")).unwrap().count(),
        2
    );
    let undone = undo(&journal).unwrap();
    assert_eq!(undone.restored, 1, "{:?}", undone.refused);
    assert_ne!(ino(&a), ino(&b));
    assert_eq!(std::fs::read(&b).unwrap(), b"content");
    assert_eq!(std::fs::metadata(&b).unwrap().modified().unwrap(), old);
    assert_eq!(
        undo(&journal).unwrap().restored,
        0,
        "nothing is taken back twice"
    );
}

#[test]
fn deletes_and_back_but_never_the_last_copy() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        put(place.root().join(name), b"content");
    }
    std::fs::hard_link(place.root().join("b"), place.root().join("b2")).unwrap();
    let plan = place.plan(&Action::Delete, &Rules::default());
    assert_eq!(plan.steps.len(), 3, "both names of b, and c");
    assert_eq!(plan.gain(), 14);
    let (outcome, journal) = place.act(&plan, &|_, _| {});
    assert_eq!(outcome.done, 3, "{:?}", outcome.refused);
    assert_eq!(std::fs::read_dir(place.root()).unwrap().count(), 1);
    assert!(
        place
            .plan(&Action::Delete, &Rules::default())
            .steps
            .is_empty()
    );
    assert_eq!(undo(&journal).unwrap().restored, 3);
    assert_eq!(std::fs::read(place.root().join("c")).unwrap(), b"content");
    // The copy that is to stay vanishes in the middle: the others stay.
    let plan = place.plan(&Action::Delete, &Rules::default());
    let kept = plan.steps[0].keep.path.clone();
    let (outcome, _) = place.act(&plan, &|moment, _| {
        if moment == Moment::Exchanged {
            let _ = std::fs::remove_file(std::ffi::OsStr::from_bytes(&kept));
        }
    });
    assert_eq!(outcome.done, 0);
    assert!(!place.scan().files.files.is_empty());
}

#[test]
fn moves_and_back() {
    let place = Place::new();
    put(place.root().join("a"), b"content");
    let b = put(place.root().join("deep/er/b"), b"content");
    let target = place.dir.path().join("trash");
    let action = Action::Move(target.as_os_str().as_bytes().to_vec());
    let plan = place.plan(&action, &Rules::default());
    let (outcome, journal) = place.act(&plan, &|_, _| {});
    assert_eq!(outcome.done, 1, "{:?}", outcome.refused);
    let moved = target.join(b.strip_prefix("/").unwrap());
    assert_eq!(std::fs::read(&moved).unwrap(), b"content");
    assert!(!b.exists());
    std::fs::remove_dir_all(place.root().join("deep")).unwrap();
    assert_eq!(undo(&journal).unwrap().restored, 1);
    assert_eq!(std::fs::read(&b).unwrap(), b"content");
}

#[test]
fn rules_say_which_copy_stays() {
    let place = Place::new();
    for (name, age) in [("x/long name", 1), ("y/b", 3), ("z/c.orig", 2)] {
        let path = put(place.root().join(name), b"content");
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age);
        std::fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let kept = |rules: Rules| {
        let plan = place.plan(&Action::Delete, &rules);
        let name = plan.steps[0].keep.path.clone();
        let removed = plan.steps.len();
        (
            String::from_utf8(name)
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned(),
            removed,
        )
    };
    let rules = Rules::default();
    assert_eq!(kept(rules.clone()), ("b".into(), 2));
    assert_eq!(
        kept(Rules {
            prefer: Prefer::Oldest,
            ..rules.clone()
        }),
        ("long name".into(), 2)
    );
    assert_eq!(
        kept(Rules {
            prefer: Prefer::Newest,
            ..rules.clone()
        }),
        ("b".into(), 2)
    );
    assert_eq!(
        kept(Rules {
            keep_matching: vec!["*.orig".into()],
            ..rules.clone()
        }),
        ("c.orig".into(), 2)
    );
    let root = place.root();
    assert_eq!(
        kept(Rules {
            keep_in: vec![root.join("x")],
            ..rules.clone()
        }),
        ("long name".into(), 2)
    );
    assert_eq!(
        kept(Rules {
            scope: vec![root.join("y")],
            ..rules.clone()
        })
        .1,
        1
    );
    assert_eq!(
        kept(Rules {
            protect: vec![root.join("z")],
            ..rules
        }),
        ("c.orig".into(), 2)
    );
}

#[test]
fn what_would_change_meaning_is_refused() {
    let place = Place::new();
    put(place.root().join("a"), b"content");
    let b = put(place.root().join("bb"), b"content");
    std::fs::set_permissions(&b, std::fs::Permissions::from_mode(0o755)).unwrap();
    let plan = place.plan(&Action::Hardlink, &Rules::default());
    assert!(plan.steps.is_empty());
    assert!(
        plan.refused[0].why.contains("permissions"),
        "{:?}",
        plan.refused
    );
    std::fs::set_permissions(&b, std::fs::Permissions::from_mode(0o644)).unwrap();
    // Open for writing somewhere.
    let plan = place.plan(&Action::Hardlink, &Rules::default());
    let writer = std::fs::File::options().write(true).open(&b).unwrap();
    let (outcome, _) = place.act(&plan, &|_, _| {});
    assert!(
        outcome.refused[0].why.contains("open for writing"),
        "{:?}",
        outcome.refused
    );
    drop(writer);
    // Replaced by a link to the copy that stays.
    let plan = place.plan(&Action::Delete, &Rules::default());
    std::fs::remove_file(&b).unwrap();
    std::os::unix::fs::symlink(place.root().join("a"), &b).unwrap();
    let (outcome, _) = place.act(&plan, &|_, _| {});
    assert_eq!(outcome.done, 0);
    assert!(
        outcome.refused[0].why.contains("symbolic link"),
        "{:?}",
        outcome.refused
    );
}

/// One way in which another program gets between.
#[derive(Clone, Copy, Debug)]
enum Race {
    /// Writes to the file by its name; waits for the lease if need be.
    Write,
    /// The same, then sets the time back.
    WriteQuietly,
    /// Writes through a descriptor opened before.
    WriteOpen,
    /// Saves as editors do: a new file renamed over the old.
    Replace,
    /// Appends to the copy that stays.
    WriteKept,
    /// Removes the copy that stays.
    RemoveKept,
    /// Makes it shorter.
    Truncate,
}

const RACES: [Race; 7] = [
    Race::Write,
    Race::WriteQuietly,
    Race::WriteOpen,
    Race::Replace,
    Race::WriteKept,
    Race::RemoveKept,
    Race::Truncate,
];
const MOMENTS: [Moment; 6] = [
    Moment::Intended,
    Moment::Opened,
    Moment::Compared,
    Moment::Exchanged,
    Moment::Finishing,
    Moment::Done,
];

/// A thousand edits at every moment of a step: each must be found afterwards where it was made.
#[test]
fn no_edit_is_lost_in_a_thousand_races() {
    let place = Place::new();
    let root = place.root();
    let mut put_back = 0;
    let mut done = 0;
    for turn in 0..1000_usize {
        let race = RACES[turn % RACES.len()];
        let moment = MOMENTS[turn / RACES.len() % MOMENTS.len()];
        let action = match turn / 42 % 2 {
            0 => Action::Hardlink,
            _ => Action::Delete,
        };
        let _ = std::fs::remove_dir_all(&root);
        let keep = put(root.join("a"), b"the content");
        let other = put(root.join("bb"), b"the content");
        let plan = place.plan(&action, &Rules::default());
        assert_eq!(plan.steps.len(), 1, "{:?}", plan.refused);
        let edit = format!("edit {turn:06}").into_bytes();
        let early = matches!(race, Race::WriteOpen)
            .then(|| std::fs::File::options().write(true).open(&other).unwrap());
        let mtime = std::fs::metadata(&other).unwrap().modified().unwrap();
        let editor: RefCell<Option<std::thread::JoinHandle<bool>>> = RefCell::new(None);
        let edited_at_once = Cell::new(false);
        let (outcome, _) = place.act(&plan, &|now, _| {
            if now != moment {
                return;
            }
            match race {
                Race::Write | Race::WriteQuietly | Race::WriteKept | Race::Truncate => {
                    let path = if matches!(race, Race::WriteKept) {
                        keep.clone()
                    } else {
                        other.clone()
                    };
                    let edit = edit.clone();
                    let handle = std::thread::spawn(move || {
                        let mut how = std::fs::File::options();
                        how.write(true)
                            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
                        let Ok(file) = how.open(&path) else {
                            return false;
                        };
                        file.write_all_at(&edit, 0).unwrap();
                        if matches!(race, Race::WriteQuietly) {
                            file.set_modified(mtime).unwrap();
                        }
                        if matches!(race, Race::Truncate) {
                            file.set_len(11).unwrap();
                        }
                        true
                    });
                    // Time to arrive at the lease.
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    *editor.borrow_mut() = Some(handle);
                }
                Race::WriteOpen => {
                    early.as_ref().unwrap().write_all_at(&edit, 0).unwrap();
                    edited_at_once.set(true);
                }
                Race::Replace => {
                    let temporary = put(root.join("editor.tmp"), &edit);
                    std::fs::rename(temporary, &other).unwrap();
                    edited_at_once.set(true);
                }
                Race::RemoveKept => {
                    let _ = std::fs::remove_file(&keep);
                }
            }
        });
        let edited = editor
            .into_inner()
            .map_or(edited_at_once.get(), |one| one.join().unwrap());
        let about = format!("{turn}: {race:?} at {moment:?}, {action:?}: {outcome:?}");
        let names = [&keep, &other];
        let contents: Vec<Vec<u8>> = names
            .iter()
            .filter_map(|path| std::fs::read(path).ok())
            .collect();
        if edited {
            assert!(
                contents.iter().any(|content| content.starts_with(&edit)),
                "lost edit {about}"
            );
        } else if !(matches!(race, Race::RemoveKept) && moment == Moment::Done) {
            // Who removes the other copy once the first is gone wants it so.
            assert!(
                contents.contains(&b"the content".to_vec()),
                "lost content {about}"
            );
        }
        let left: Vec<_> = std::fs::read_dir(&root)
            .unwrap()
            .map(|one| one.unwrap().file_name())
            .collect();
        assert!(
            left.iter()
                .all(|name| !name.as_bytes().starts_with(b".assay")),
            "{left:?} {about}"
        );
        match outcome.done {
            0 => put_back += 1,
            _ => done += 1,
        }
    }
    // Both ends of the road were taken.
    assert!(
        put_back > 300 && done > 100,
        "{put_back} put back, {done} done"
    );
}

/// Killed at any moment of any step: recovery leaves every content under its name.
#[test]
fn a_kill_at_any_moment_is_recovered() {
    for action in [Action::Hardlink, Action::Delete, Action::Move(Vec::new())] {
        for moment in MOMENTS {
            let place = Place::new();
            for number in 0..5 {
                put(
                    place.root().join(format!("a{number}")),
                    &noise(number, 5000),
                );
                put(
                    place.root().join(format!("copy of a{number}")),
                    &noise(number, 5000),
                );
            }
            let action = match &action {
                Action::Move(_) => Action::Move(
                    place
                        .dir
                        .path()
                        .join("trash")
                        .as_os_str()
                        .as_bytes()
                        .to_vec(),
                ),
                other => other.clone(),
            };
            let plan = place.plan(&action, &Rules::default());
            assert_eq!(plan.steps.len(), 5);
            // A panic in the middle leaves the names as a kill would: nothing is tidied up.
            let third = plan.steps[2].clone();
            let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                place.act(&plan, &|now, step| {
                    if now == moment && *step == third {
                        std::panic::resume_unwind(Box::new("killed"));
                    }
                });
            }));
            assert!(killed.is_err());
            let journals = unfinished(&place.db()).unwrap();
            assert_eq!(journals.len(), 1);
            let recovered = recover(&journals[0]).unwrap();
            assert!(
                recovered.refused.is_empty(),
                "{action:?} {moment:?} {recovered:?}"
            );
            assert!(unfinished(&place.db()).unwrap().is_empty());
            let entries = Journal::load(&journals[0]).unwrap();
            let trash = place.dir.path().join("trash");
            for (number, step) in plan.steps.iter().enumerate() {
                let path = Path::new(std::ffi::OsStr::from_bytes(&step.remove.path));
                let kept = Path::new(std::ffi::OsStr::from_bytes(&step.keep.path));
                let content = std::fs::read(kept).unwrap();
                match (entries[&(number as u64)].state, &action) {
                    (State::Untouched, _) | (_, Action::Hardlink) => {
                        assert_eq!(std::fs::read(path).unwrap(), content);
                    }
                    (State::Done, Action::Delete) => assert!(!path.exists()),
                    (State::Done, Action::Move(_)) => {
                        let moved = trash.join(path.strip_prefix("/").unwrap());
                        assert_eq!(std::fs::read(moved).unwrap(), content);
                    }
                    (state, _) => panic!("{state:?}"),
                }
            }
            let names = std::fs::read_dir(place.root()).unwrap();
            assert!(
                names
                    .flatten()
                    .all(|name| !name.file_name().as_bytes().starts_with(b".assay"))
            );
            undo(&journals[0]).unwrap();
            assert_eq!(place.scan().groups.len(), 5, "{action:?} {moment:?}");
        }
    }
}

#[test]
fn a_torn_line_in_the_journal_harms_nothing() {
    let place = Place::new();
    put(place.root().join("a"), b"content");
    put(place.root().join("bb"), b"content");
    let plan = place.plan(&Action::Hardlink, &Rules::default());
    let (_, journal) = place.act(&plan, &|_, _| {});
    let text = std::fs::read(&journal).unwrap();
    for cut in 0..text.len() {
        std::fs::write(&journal, &text[..cut]).unwrap();
        let undone = recover(&journal).unwrap();
        assert!(undone.refused.is_empty());
    }
}

#[test]
fn the_index_learns_what_was_done() {
    let place = Place::new();
    put(place.root().join("a"), b"content");
    put(place.root().join("sub/bb"), b"content");
    put(place.root().join("sub/c"), b"content");
    let mut index = Index::open(&place.db()).unwrap();
    scan_tree(&place.root(), &ScanOptions::default(), Some(&mut index));
    let rules = Rules {
        scope: vec![place.root().join("sub/bb")],
        ..Rules::default()
    };
    let (outcome, _) = place.act(&place.plan(&Action::Delete, &rules), &|_, _| {});
    index.amend(&outcome.changes).unwrap();
    let files = index.load(&[]).unwrap();
    let groups = assay_dups::group::by_hash(&files);
    assert_eq!(groups.at(0).files.len(), 2);
    assert_eq!(files.files.len(), 2);
}

/// On btrfs and XFS made in a file, where that is possible (root, loop devices, mkfs).
#[test]
fn reflinks_are_made_and_recognised() {
    for (kind, arguments) in [("btrfs", &["-q"][..]), ("xfs", &["-q"][..])] {
        let dir = tempfile::tempdir().unwrap();
        let Some(mount) = Mount::new(dir.path(), kind, arguments) else {
            continue;
        };
        let root = mount.0.join("tree");
        let content = noise(5, 1_000_000);
        let a = put(root.join("a"), &content);
        let b = put(root.join("bb"), &content);
        for path in [&a, &b] {
            std::fs::File::open(path).unwrap().sync_all().unwrap();
        }
        let before = std::fs::metadata(&b).unwrap();
        let db = dir.path().join("index.db");
        let mut index = Index::open(&db).unwrap();
        let scan = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
        assert_eq!(scan.groups.at(0).gain(), 1_000_000, "{kind}");
        let plan = plan(
            &scan.files,
            &scan.groups,
            &Action::Reflink,
            &Rules::default(),
        )
        .unwrap();
        let mut journal = Journal::begin(&db).unwrap();
        let outcome =
            free(|control| execute(&plan, &mut journal, &Options::default(), control)).unwrap();
        assert_eq!(outcome.done, 1, "{kind} {:?}", outcome.refused);
        let after = std::fs::metadata(&b).unwrap();
        assert_eq!(
            (before.ino(), before.mtime_nsec()),
            (after.ino(), after.mtime_nsec())
        );
        assert_eq!(std::fs::read(&b).unwrap(), content);
        let again = scan_tree(&root, &ScanOptions::default(), None);
        assert_eq!(again.groups.len(), 1);
        assert_eq!(
            again.groups.at(0).gain(),
            0,
            "{kind}: what is shared is not promised again"
        );
    }
}

struct Mount(PathBuf);

impl Mount {
    fn new(dir: &Path, kind: &str, arguments: &[&str]) -> Option<Self> {
        let image = dir.join(format!("{kind}.img"));
        std::fs::File::create(&image)
            .unwrap()
            .set_len(512 << 20)
            .unwrap();
        let point = dir.join(kind);
        std::fs::create_dir(&point).unwrap();
        let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
            std::process::Command::new(program)
                .args(arguments)
                .output()
                .is_ok_and(|done| done.status.success())
        };
        let mut mkfs: Vec<&std::ffi::OsStr> = arguments.iter().map(|one| (*one).as_ref()).collect();
        mkfs.push(image.as_os_str());
        let options = [
            "-o".as_ref(),
            "loop".as_ref(),
            image.as_os_str(),
            point.as_os_str(),
        ];
        if !run(&format!("mkfs.{kind}"), &mkfs) || !run("mount", &options) {
            eprintln!(
                "skipped: no {kind} can be made and mounted here (needs root, loop devices and mkfs.{kind})"
            );
            return None;
        }
        Some(Self(point))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}
