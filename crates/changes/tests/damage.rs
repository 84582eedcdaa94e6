//! A session was killed after it had changed something, and its journal is damaged: truncated at every byte, with a
//! flipped bit in every byte, or with missing files. Recovery must either restore the original state, or report the
//! difference and keep its data.
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

/// Lets one test run at a time. A process that another test starts holds this test's locks too, until it has called
/// execve(2).
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the distance between damaged bytes. The short form of the test skips some bytes.
fn step() -> usize {
    match assay_testing::attack_factor() {
        1 => 7,
        _ => 1,
    }
}

/// Number of scenes that are attacked at once. Most of a recovery is waiting: for a program that still writes to a file
/// that was exchanged, and for the owner of a directory.
const AT_ONCE: usize = 12;

/// State that the killed process left: every file of its session, and every changed file.
struct Scene {
    /// Which attacks are made on this scene: each [`AT_ONCE`]th attack, beginning with this number.
    share: usize,
    place: tempfile::TempDir,
    left: BTreeMap<PathBuf, Vec<u8>>,
    session: PathBuf,
    made: PathBuf,
    tried: u64,
    held: u64,
}

impl Scene {
    fn new(share: usize) -> Self {
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
            share,
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

    /// Whether recovery reports that something did not return to its original state.
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
        for at in self.positions(&whole) {
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

    /// Returns this scene's share of the bytes to damage.
    fn positions(&self, bytes: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let first = self.share * step();
        (first..bytes.len()).step_by(step() * AT_ONCE)
    }
}

/// Runs every scene in its own thread. Prints how many attacks were made and how many of them assay withstood.
fn attack_scenes(name: &str, attack: impl Fn(&mut Scene) + Sync) {
    let _alone = alone();
    let mut scenes: Vec<Scene> = (0..AT_ONCE).map(Scene::new).collect();
    std::thread::scope(|scope| {
        for scene in &mut scenes {
            scope.spawn(|| attack(scene));
        }
    });
    let sum = |count: fn(&Scene) -> u64| scenes.iter().map(count).sum();
    assay_testing::attacked(name, sum(|scene| scene.tried), sum(|scene| scene.held));
}

#[test]
fn attack_every_byte_of_a_journal() {
    attack_scenes("journals cut and flipped at every byte", |scene| {
        scene.attack("untouched", &[]);
        scene.every_byte("journal");
    });
}

#[test]
fn attack_every_byte_of_what_lies_beside_a_journal() {
    attack_scenes(
        "saved files and entries cut and flipped at every byte",
        |scene| {
            for name in ["1.saved", "2.saved", "1.entry"] {
                scene.every_byte(name);
            }
        },
    );
}

#[test]
fn attack_files_of_a_journal_are_gone() {
    attack_scenes("journals with files gone or zeros at the end", |scene| {
        let names: Vec<String> = scene
            .left
            .keys()
            .filter(|path| path.starts_with(&scene.session))
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert!(names.len() >= 7, "{names:?}");
        // Any combination of missing files that leaves one file with the change.
        for set in (scene.share..1 << names.len()).step_by(AT_ONCE) {
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
        for at in scene.positions(&journal) {
            let mut zeros = journal.clone();
            zeros[at..].fill(0);
            scene.attack(&format!("zeros from {at}"), &[("journal", Some(&zeros))]);
        }
    });
}
