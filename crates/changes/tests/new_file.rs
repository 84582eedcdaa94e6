//! Tests settings that create a file: nothing is overwritten, and undo removes only what assay created.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod common;

use assay_changes::{ChangeError, ChangeSession, Foreign, Journal, RecoveryOutcome, Switch};
use assay_host::{Host as _, LiveHost};
use assay_model::change::Setting;
use common::{Deadly, SmallDisk, inside};
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets one test run at a time, because the umask belongs to the process, and a child process holds copies of locks.
static ALONE: Mutex<()> = Mutex::new(());

const TEXT: &str = "# made\nworkers = 8\n";

struct Place {
    dir: tempfile::TempDir,
    journal: Journal,
    host: Deadly,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("etc")).unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        Self {
            host: Deadly::never().with_locks(dir.path()),
            dir,
            journal,
            _alone: alone,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("etc").join(name)
    }

    fn begin(&self) -> ChangeSession {
        self.journal.begin("trial", "service").unwrap()
    }

    fn open<'a>(
        &'a self,
        session: &'a ChangeSession,
        name: &str,
    ) -> Result<Switch<'a>, ChangeError> {
        Switch::open(session, &self.host, &setting(&self.path(name)))
    }

    /// Creates a file that the user keeps. Returns the number of the session.
    fn keep(&self, name: &str) -> String {
        let session = self.begin();
        let switch = self.open(&session, name).unwrap();
        switch.set(Some(TEXT)).unwrap();
        switch.leave();
        session.put_by().unwrap();
        session.uid().to_owned()
    }

    fn undo(&self, uid: &str) -> RecoveryOutcome {
        let back = self
            .journal
            .take_back_kept(uid, &self.host, Foreign::Leave)
            .unwrap();
        assert_eq!(back.len(), 1);
        back[0].outcome.clone()
    }

    fn names(&self, name: &str) -> Vec<String> {
        let names = LiveHost.list(&self.path(name)).unwrap();
        let names = names.iter().map(|name| name.to_string_lossy().into_owned());
        names.collect()
    }
}

fn setting(file: &Path) -> Setting {
    Setting::NewFile {
        file: file.to_str().unwrap().into(),
        validate: Vec::new(),
        reload: Vec::new(),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn owner_and_mode_do_not_depend_on_the_umask() {
    let place = Place::new();
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let uid = place.keep("a.d/b.d/new.conf");
    rustix::process::umask(before);
    let file = place.path("a.d/b.d/new.conf");
    assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);
    assert_eq!(mode(&file), 0o644);
    assert_eq!(mode(&place.path("a.d")), 0o755);
    let found = fs::metadata(&file).unwrap();
    let us = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    assert_eq!((found.uid(), found.gid()), us);
    assert!(matches!(place.undo(&uid), RecoveryOutcome::Restored(_)));
    assert_eq!(place.names(""), Vec::<String>::new());
}

#[test]
fn nothing_that_exists_is_overwritten() {
    let place = Place::new();
    fs::write(place.path("there"), "theirs\n").unwrap();
    symlink("nowhere", place.path("dangling")).unwrap();
    symlink("nowhere", place.path("way")).unwrap();
    fs::create_dir(place.path("directory")).unwrap();
    let session = place.begin();
    for name in ["there", "dangling", "directory", "way/x", "there/x"] {
        assert!(place.open(&session, name).is_err(), "{name}");
    }
    // Somebody creates the file between the record and the change.
    let switch = place.open(&session, "late").unwrap();
    fs::write(place.path("late"), "theirs\n").unwrap();
    assert!(switch.set(Some(TEXT)).is_err());
    drop(switch);
    assert!(place.open(&session, "x\0y").is_err());
    let switch = place.open(&session, "cut").unwrap();
    assert!(switch.set(Some("no line end")).is_err());
    drop(switch);
    assert_eq!(fs::read_to_string(place.path("late")).unwrap(), "theirs\n");
    assert_eq!(
        place.names(""),
        ["dangling", "directory", "late", "there", "way"]
    );
}

/// A session and another one, or a setting of the file, never work on the same file.
#[test]
fn a_file_has_one_change_at_a_time() {
    let place = Place::new();
    let session = place.begin();
    let _first = place.open(&session, "new").unwrap();
    assert!(place.open(&session, "new").is_err());
    symlink(".", place.path("here")).unwrap();
    assert!(place.open(&session, "here/new").is_err());
}

#[test]
fn a_file_that_somebody_changed_stays() {
    for edit in ["more\n", "", "# made\nworkers = 9\n"] {
        let place = Place::new();
        let uid = place.keep("a.d/new.conf");
        let file = place.path("a.d/new.conf");
        fs::write(&file, edit).unwrap();
        let left = place.undo(&uid);
        assert!(
            matches!(left, RecoveryOutcome::LeftAlone { .. }),
            "{left:?}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), edit);
        assert_eq!(place.names("a.d"), ["new.conf"]);
        let back = place
            .journal
            .recover(&place.host, Foreign::Restore)
            .unwrap();
        assert!(matches!(back[0].outcome, RecoveryOutcome::Restored(_)));
        assert_eq!(place.names(""), Vec::<String>::new());
    }
}

#[test]
fn what_others_put_beside_it_stays() {
    let place = Place::new();
    let uid = place.keep("a.d/b.d/new.conf");
    fs::write(place.path("a.d/theirs"), "").unwrap();
    assert!(matches!(place.undo(&uid), RecoveryOutcome::Restored(_)));
    assert_eq!(place.names("a.d"), ["theirs"]);

    // A directory that was there before stays, also if it is empty.
    fs::create_dir(place.path("old.d")).unwrap();
    let uid = place.keep("old.d/new.conf");
    assert!(matches!(place.undo(&uid), RecoveryOutcome::Restored(_)));
    assert_eq!(place.names("old.d"), Vec::<String>::new());

    // A directory that somebody created again is not the one of assay.
    let uid = place.keep("again.d/new.conf");
    fs::rename(place.path("again.d"), place.path("moved.d")).unwrap();
    fs::create_dir(place.path("again.d")).unwrap();
    assert!(matches!(place.undo(&uid), RecoveryOutcome::Restored(_)));
    assert_eq!(place.names("again.d"), Vec::<String>::new());
    assert_eq!(place.names("moved.d"), ["new.conf"]);
}

#[test]
fn a_file_that_is_gone_is_in_its_original_state() {
    let place = Place::new();
    let uid = place.keep("a.d/new.conf");
    fs::remove_file(place.path("a.d/new.conf")).unwrap();
    assert!(matches!(place.undo(&uid), RecoveryOutcome::Restored(_)));
    assert_eq!(place.names(""), Vec::<String>::new());
}

#[test]
fn a_link_in_the_place_of_the_file_is_not_followed() {
    let place = Place::new();
    fs::write(place.path("theirs"), TEXT).unwrap();
    let uid = place.keep("new.conf");
    fs::remove_file(place.path("new.conf")).unwrap();
    symlink("theirs", place.path("new.conf")).unwrap();
    let left = place.undo(&uid);
    assert!(matches!(left, RecoveryOutcome::Failed(_)), "{left:?}");
    assert_eq!(fs::read_to_string(place.path("theirs")).unwrap(), TEXT);
    assert!(place.path("new.conf").is_symlink());
}

#[test]
fn directories_of_others_are_refused() {
    let place = Place::new();
    let session = place.begin();
    let dir = place.path("shared.d");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(place.open(&session, "shared.d/new").is_err());
    assert!(place.open(&session, "shared.d/more.d/new").is_err());
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    if common::root() {
        std::os::unix::fs::chown(&dir, Some(12345), None).unwrap();
        assert!(place.open(&session, "shared.d/new").is_err());
    }
}

/// The check of the candidate comes before the file, the check of the whole configuration after it.
#[test]
fn a_service_that_refuses_the_file_never_keeps_it() {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let place = Place::new();
    let etc = place.path("").to_str().unwrap().to_owned();
    let whole = format!("! grep -rq bad '{etc}'");
    let candidate: Vec<String> = words(&["sh", "-c", "! grep -q bad \"$1\"", "sh", "{file}"]);
    for validate in [candidate, words(&["sh", "-c", &whole])] {
        let session = place.begin();
        let setting = Setting::NewFile {
            file: place.path("a.d/new").to_str().unwrap().into(),
            validate,
            reload: Vec::new(),
        };
        let switch = Switch::open(&session, &place.host, &setting).unwrap();
        assert!(switch.set(Some("bad\n")).is_err());
        assert_eq!(place.names(""), Vec::<String>::new());
        switch.set(Some(TEXT)).unwrap();
        drop(switch);
        assert_eq!(session.close(&place.host).unwrap(), []);
        assert_eq!(place.names(""), Vec::<String>::new());
    }
    // A configuration that was invalid before is not changed.
    fs::write(place.path("other"), "bad\n").unwrap();
    let session = place.begin();
    let setting = Setting::NewFile {
        file: place.path("a.d/new").to_str().unwrap().into(),
        validate: words(&["sh", "-c", &whole]),
        reload: Vec::new(),
    };
    assert!(Switch::open(&session, &place.host, &setting).is_err());
}

#[test]
fn a_full_disk_leaves_nothing() {
    if !inside("a_full_disk_leaves_nothing") {
        return;
    }
    let place = Place::new();
    let _small = SmallDisk::new(&place.path(""), "64k");
    fs::write(place.path("filler"), vec![1; 1 << 20]).unwrap_err();
    let session = place.begin();
    let switch = place.open(&session, "a.d/new").unwrap();
    assert!(switch.set(Some(&"x\n".repeat(20_000))).is_err());
    assert_eq!(place.names(""), ["filler"]);
    drop(switch);
    assert_eq!(session.close(&place.host).unwrap(), []);
}

#[test]
fn a_text_is_not_exchanged_for_another() {
    let place = Place::new();
    let session = place.begin();
    let switch = place.open(&session, "new").unwrap();
    switch.set(Some(TEXT)).unwrap();
    assert!(switch.set(Some("other\n")).is_err());
    assert_eq!(fs::read_to_string(place.path("new")).unwrap(), TEXT);
    switch.restore().unwrap();
    switch.set(Some("other\n")).unwrap();
    drop(switch);
    assert_eq!(place.names(""), Vec::<String>::new());
}

/// A process that was killed after a rename or a write leaves a session, which recovery rolls back.
#[test]
fn recovery_removes_the_file() {
    let place = Place::new();
    let session = place.begin();
    let switch = place.open(&session, "a.d/new").unwrap();
    switch.set(Some(TEXT)).unwrap();
    std::mem::forget(switch);
    drop(session);
    assert_eq!(place.journal.left_changed().unwrap().len(), 1);
    let told = place.journal.recover(&place.host, Foreign::Leave).unwrap();
    assert!(matches!(told[0].outcome, RecoveryOutcome::Restored(_)));
    assert_eq!(place.names(""), Vec::<String>::new());
    assert_eq!(place.journal.pending().unwrap().len(), 0);
}

/// An administrator writes the file at any moment while it is created and removed: the edit is never lost.
#[test]
fn attack_edits_while_a_file_comes_and_goes() {
    let rounds = 40 * assay_testing::attack_factor();
    let (mut tried, mut held) = (0, 0);
    for round in 0..rounds {
        let place = Place::new();
        let session = place.begin();
        let switch = place.open(&session, "a.d/new").unwrap();
        let (file, edit) = (place.path("a.d/new"), format!("theirs {round}\n"));
        let mut wrote = false;
        std::thread::scope(|scope| {
            let (file, edit, wrote) = (&file, &edit, &mut wrote);
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(500 * (round % 40)));
                let aside = file.with_file_name("theirs");
                *wrote = fs::write(&aside, edit).is_ok() && fs::rename(&aside, file).is_ok();
            });
            let _ = switch.set(Some(TEXT));
            let _ = switch.restore();
        });
        drop(switch);
        drop(session);
        tried += 1;
        let now = fs::read_to_string(&file).ok();
        let whole = match wrote {
            true => now.as_ref() == Some(&edit),
            false => now.is_none_or(|now| now == edit),
        };
        held += u64::from(whole);
    }
    assay_testing::attacked("edits while a file comes and goes", tried, held);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever texts are set and however deep the directories are, everything is as before afterwards.
    #[test]
    fn a_tree_is_the_same_after_a_restore(
        depth in 0usize..4,
        texts in prop::collection::vec("([a-z #=\u{e4}]{0,9}\n){1,3}", 1..4),
        killed in any::<bool>(),
    ) {
        let place = Place::new();
        fs::write(place.path("theirs"), "x\n").unwrap();
        let name = format!("{}new", "d/".repeat(depth));
        let session = place.begin();
        let switch = place.open(&session, &name).unwrap();
        for text in &texts {
            switch.set(Some(text)).unwrap();
            prop_assert_eq!(&fs::read_to_string(place.path(&name)).unwrap(), text);
            switch.restore().unwrap();
            prop_assert_eq!(place.names(""), ["theirs"]);
            switch.set(Some(text)).unwrap();
            switch.set(None).unwrap();
            prop_assert_eq!(place.names(""), ["theirs"]);
        }
        switch.set(Some(&texts[0])).unwrap();
        match killed {
            true => std::mem::forget(switch),
            false => drop(switch),
        }
        drop(session);
        place.journal.recover(&place.host, Foreign::Leave).unwrap();
        prop_assert_eq!(place.names(""), ["theirs"]);
    }
}
