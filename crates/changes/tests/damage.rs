//! A session was killed while it had changed something, and its journal is damaged: truncated at every byte,
//! with a flipped bit in every byte, or with missing files. After recovery either the original state is
//! restored, or recovery reports the difference and keeps its data.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod common;

use assay_changes::{Foreign, Journal, Made, RecoveryOutcome, Switch};
use assay_model::change::{ConfigLanguage, Setting};
use common::Deadly;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

const DIR: &str = "ASSAY_TEST_DIR";

const FILES: [(&str, &str); 2] = [
    ("a.conf", "# by hand\nworkers = 2\nother = x\n"),
    ("b.conf", "workers = 3\n"),
];

fn setting(file: &Path) -> Setting {
    Setting::Config {
        file: file.to_str().unwrap().into(),
        language: ConfigLanguage::KeyValue,
        section: Vec::new(),
        key: "workers".into(),
        validate: Vec::new(),
        reload: Vec::new(),
    }
}

/// Changes two files, creates a directory, and is killed.
#[test]
fn victim() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let dir = Path::new(&dir);
    let host = Deadly::never().with_locks(dir);
    let journal = Journal::open(&dir.join("journal")).unwrap();
    let session = journal.begin("t", "x").unwrap();
    let made = dir.join("etc").join(session.name("d"));
    session.made(&Made::Directory(made.clone())).unwrap();
    fs::create_dir(made).unwrap();
    let open = |name: &str| {
        let file = dir.join("etc").join(name);
        Switch::open(&session, &host, &setting(&file)).unwrap()
    };
    let (a, b) = (open("a.conf"), open("b.conf"));
    a.set(Some("8")).unwrap();
    b.set(Some("9")).unwrap();
    b.restore().unwrap();
    b.set(Some("7")).unwrap();
    let pid = rustix::process::getpid();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    std::thread::park();
}

/// One test at a time: until a process started by another test has called execve(2), it holds this test's
/// locks too.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the step between damaged bytes; the short form skips some.
fn step() -> usize {
    match assay_testing::attack_factor() {
        1 => 7,
        _ => 1,
    }
}

/// State that the killed process left: every file of its session, and every changed file.
struct Scene {
    place: tempfile::TempDir,
    left: BTreeMap<PathBuf, Vec<u8>>,
    session: PathBuf,
    made: PathBuf,
    tried: u64,
    held: u64,
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let etc = place.path().join("etc");
        fs::create_dir(&etc).unwrap();
        for (name, text) in FILES {
            fs::write(etc.join(name), text).unwrap();
        }
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim", "--nocapture"])
            .env(DIR, place.path())
            .output()
            .unwrap();
        assert!(!status.status.success());
        let sessions = place.path().join("journal/sessions");
        let one = |dir: &Path| fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
        let session = one(&sessions);
        let files = |dir: &Path| -> Vec<PathBuf> {
            let all = fs::read_dir(dir).unwrap().map(|one| one.unwrap().path());
            all.filter(|path| path.is_file()).collect()
        };
        let left = files(&session).into_iter().chain(files(&etc));
        let left = left
            .map(|path| (path.clone(), fs::read(&path).unwrap()))
            .collect();
        let mut made = fs::read_dir(&etc).unwrap().map(|one| one.unwrap().path());
        let made = made.find(|path| path.is_dir()).unwrap();
        Self {
            place,
            left,
            session,
            made,
            tried: 0,
            held: 0,
        }
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        self.left[&self.session.join(name)].clone()
    }

    /// Recovers with some files damaged or missing, and checks the result.
    fn attack(&mut self, what: &str, damage: &[(&str, Option<&[u8]>)]) {
        let _ = fs::remove_dir_all(&self.session);
        fs::create_dir(&self.session).unwrap();
        fs::create_dir_all(&self.made).unwrap();
        for (path, bytes) in &self.left {
            fs::write(path, bytes).unwrap();
        }
        for (name, bytes) in damage {
            let path = self.session.join(name);
            match bytes {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }
        let host = Deadly::never().with_locks(self.place.path());
        let journal = Journal::open(&self.place.path().join("journal")).unwrap();
        let told = journal.pending();
        let warned = told.as_ref().map_or(true, |pending| !pending.is_empty());
        // Twice: a first look must not remove the remaining entries.
        let first = self.remains(&journal, &host);
        let second = self.remains(&journal, &host);
        let etc = self.place.path().join("etc");
        let as_it_was = FILES
            .iter()
            .all(|(name, text)| fs::read(etc.join(name)).unwrap() == text.as_bytes())
            && !self.made.exists();
        let held = warned && (as_it_was || first && second && self.session.exists());
        if !held {
            eprintln!(
                "{what}: warned {warned}, as it was {as_it_was}, told {first} and {second}, kept {}",
                self.session.exists()
            );
        }
        self.tried += 1;
        self.held += u64::from(held);
    }

    /// Whether recovery reports that something is not in its original state.
    fn remains(&self, journal: &Journal, host: &Deadly) -> bool {
        let Ok(told) = journal.recover(host, Foreign::Leave) else {
            return true;
        };
        let remains = |outcome: &RecoveryOutcome| {
            matches!(
                outcome,
                RecoveryOutcome::LeftAlone { .. }
                    | RecoveryOutcome::Doubtful(_)
                    | RecoveryOutcome::Failed(_)
            )
        };
        told.iter().any(|one| remains(&one.outcome))
    }

    fn every_byte(&mut self, name: &str) {
        let whole = self.bytes(name);
        let bits = match assay_testing::attack_factor() {
            1 => 1,
            _ => 8,
        };
        for at in (0..whole.len()).step_by(step()) {
            self.attack(
                &format!("{name} cut at {at}"),
                &[(name, Some(&whole[..at]))],
            );
            for bit in 0..bits {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << ((at + bit) % 8);
                self.attack(
                    &format!("{name} flipped at {at} {bit}"),
                    &[(name, Some(&flipped))],
                );
            }
        }
    }

    fn done(self, name: &str) {
        assay_testing::attacked(name, self.tried, self.held);
    }
}

#[test]
fn attack_every_byte_of_a_journal() {
    let _alone = alone();
    let mut scene = Scene::new();
    scene.attack("untouched", &[]);
    scene.every_byte("journal");
    scene.done("journals cut and flipped at every byte");
}

#[test]
fn attack_every_byte_of_what_lies_beside_a_journal() {
    let _alone = alone();
    let mut scene = Scene::new();
    for name in ["1.saved", "2.saved", "1.entry"] {
        scene.every_byte(name);
    }
    scene.done("saved files and entries cut and flipped at every byte");
}

#[test]
fn attack_files_of_a_journal_are_gone() {
    let _alone = alone();
    let mut scene = Scene::new();
    let names: Vec<String> = scene
        .left
        .keys()
        .filter(|path| path.starts_with(&scene.session))
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert!(names.len() >= 7, "{names:?}");
    // Any combination of missing files that leaves one file with the change.
    for set in 0..1u32 << names.len() {
        let gone = |index: usize| set & 1 << index != 0;
        let missing: Vec<&str> = (0..names.len())
            .filter(|index| gone(*index))
            .map(|index| names[index].as_str())
            .collect();
        let tells = |id: &str| {
            let files = [format!("{id}.entry"), format!("{id}.saved")];
            files.iter().any(|file| !missing.contains(&file.as_str()))
        };
        let journal = !missing.contains(&"journal");
        let all = tells("1") && tells("2") && !missing.contains(&"0.entry");
        if !journal && !all {
            continue;
        }
        let damage: Vec<_> = missing.iter().map(|name| (*name, None)).collect();
        scene.attack(&format!("without {missing:?}"), &damage);
    }
    // Zero bytes, as a power cut leaves them.
    let journal = scene.bytes("journal");
    for at in (0..journal.len()).step_by(step()) {
        let mut zeros = journal.clone();
        zeros[at..].fill(0);
        scene.attack(&format!("zeros from {at}"), &[("journal", Some(&zeros))]);
    }
    scene.done("journals with files gone or zeros at the end");
}
