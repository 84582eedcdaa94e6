//! Acts while other programs change the same files, and after a kill: no content is lost.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::act::Action;
use assay_dups::act::execute::{Moment, find_unfinished_journals};
use assay_dups::act::journal::{Journal, StepState};
use assay_dups::act::plan::PlanRules;
use assay_dups::act::undo::{UndoOptions, recover, undo_journal};
use common::{Place, noise, put};
use std::cell::{Cell, RefCell};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// A change that another program makes while a step runs.
#[derive(Clone, Copy, Debug)]
enum Race {
    /// Writes to the file by its name; waits for the lease if necessary.
    Write,
    /// As `Write`, and sets the file's time back.
    WriteQuietly,
    /// Writes through a descriptor that was opened before.
    WriteOpen,
    /// Saves as editors do: renames a new file over the old one.
    Replace,
    /// Appends to the copy that stays.
    WriteKept,
    /// Removes the copy that stays.
    RemoveKept,
    /// Truncates the file.
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

/// A thousand edits at all moments of a step: each must exist afterwards under the edited name.
#[test]
fn no_edit_is_lost_in_a_thousand_races() {
    race(1000, false, None);
}

/// As above, with renames without the flags of renameat2.
#[test]
fn no_edit_is_lost_by_plain_renames() {
    race(336, true, None);
}

/// As above, while files are moved to a file system in memory, if there is one.
#[test]
fn no_edit_is_lost_on_the_way_to_another_file_system() {
    let far = tempfile::tempdir_in("/dev/shm").unwrap();
    race(336, false, Some(far.path()));
}

fn race(turns: usize, plain: bool, far: Option<&Path>) {
    let place = Place {
        plain,
        ..Place::new()
    };
    let root = place.root();
    let mut put_back = 0;
    let mut done = 0;
    for turn in 0..turns {
        let race = RACES[turn % RACES.len()];
        let moment = MOMENTS[turn / RACES.len() % MOMENTS.len()];
        let action = match (far, turn / 42 % 2) {
            (Some(far), _) => Action::Move(far.as_os_str().as_bytes().to_vec()),
            (None, 0) => Action::Hardlink,
            (None, _) => Action::Delete,
        };
        let _ = std::fs::remove_dir_all(&root);
        let keep = put(root.join("a"), b"the content");
        let other = put(root.join("bb"), b"the content");
        let plan = place.plan(&action, &PlanRules::default());
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
                    // Time to reach the lease.
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
        let moved = far.map(|far| far.join(other.strip_prefix("/").unwrap()));
        let names = [&keep, &other].into_iter().chain(&moved);
        let contents: Vec<Vec<u8>> = names.filter_map(|path| std::fs::read(path).ok()).collect();
        if edited {
            assert!(
                contents.iter().any(|content| content.starts_with(&edit)),
                "lost edit {about}"
            );
        } else if !(matches!(race, Race::RemoveKept) && moment == Moment::Done) {
            // A program that removes the kept copy after the first was removed destroys the content
            // deliberately.
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
        if let Some(moved) = &moved {
            assert_eq!(moved.exists(), outcome.done == 1, "{about}");
            let _ = std::fs::remove_file(moved);
            let left = std::fs::read_dir(moved.parent().unwrap());
            assert_eq!(left.map_or(0, Iterator::count), 0, "{about}");
        }
        match outcome.done {
            0 => put_back += 1,
            _ => done += 1,
        }
    }
    // Both orders of the race occurred.
    assert!(
        put_back * 10 > turns * 3 && done * 10 > turns,
        "{put_back} put back, {done} done"
    );
}

/// Killed at any moment of any step: recovery leaves every content under its name.
#[test]
fn a_kill_at_any_moment_is_recovered() {
    kill("trash", false);
}

#[test]
fn a_kill_between_plain_renames_is_recovered() {
    kill("trash", true);
}

/// The target folder is on another file system, in memory if possible.
#[test]
fn a_kill_while_moving_far_is_recovered() {
    let far = tempfile::tempdir_in("/dev/shm").unwrap();
    kill(far.path().to_str().unwrap(), false);
}

fn kill(trash: &str, plain: bool) {
    for action in [Action::Hardlink, Action::Delete, Action::Move(Vec::new())] {
        for moment in MOMENTS {
            let place = Place {
                plain,
                ..Place::new()
            };
            let trash = place.dir.path().join(trash);
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
                Action::Move(_) => Action::Move(trash.as_os_str().as_bytes().to_vec()),
                other => other.clone(),
            };
            let plan = place.plan(&action, &PlanRules::default());
            assert_eq!(plan.steps.len(), 5);
            // A panic in the middle leaves the names as a kill would, without any cleanup.
            let third = plan.steps[2].clone();
            let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                place.act(&plan, &|now, step| {
                    if now == moment && *step == third {
                        std::panic::resume_unwind(Box::new("killed"));
                    }
                });
            }));
            assert!(killed.is_err());
            let journals = find_unfinished_journals(&place.db()).unwrap();
            assert_eq!(journals.len(), 1);
            let recovered = recover(&journals[0]).unwrap();
            assert!(
                recovered.refused.is_empty(),
                "{action:?} {moment:?} {recovered:?}"
            );
            assert!(find_unfinished_journals(&place.db()).unwrap().is_empty());
            let entries = Journal::load(&journals[0]).unwrap().entries;
            for (number, step) in plan.steps.iter().enumerate() {
                let path = Path::new(std::ffi::OsStr::from_bytes(&step.remove.path));
                let kept = Path::new(std::ffi::OsStr::from_bytes(&step.keep.path));
                let content = std::fs::read(kept).unwrap();
                match (entries[&(number as u64)].state, &action) {
                    (StepState::Untouched, _) | (_, Action::Hardlink) => {
                        assert_eq!(std::fs::read(path).unwrap(), content);
                    }
                    (StepState::Done, Action::Delete) => assert!(!path.exists()),
                    (StepState::Done, Action::Move(_)) => {
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
            undo_journal(&journals[0], &UndoOptions::default()).unwrap();
            assert_eq!(place.scan().groups.len(), 5, "{action:?} {moment:?}");
        }
    }
}
