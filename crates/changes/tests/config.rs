//! Tests settings in configuration files, with the services' own checks and with unusual files.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod common;

use assay_changes::{ChangeError, ChangeSession, Foreign, Journal, RecoveryOutcome, Switch};
use assay_host::{Host as _, LiveHost};
use assay_model::change::{ConfigLanguage, Setting};
use common::{Deadly, SmallDisk, inside, sh};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets one test run at a time. A program that another test starts holds a copy of every session's lock until it has
/// called execve(2). An ended session then looks alive.
static ALONE: Mutex<()> = Mutex::new(());

struct Place {
    dir: tempfile::TempDir,
    journal: Journal,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("etc")).unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        Self {
            dir,
            journal,
            _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("etc").join(name)
    }

    fn begin(&self) -> ChangeSession {
        self.journal.begin("trial", "service").unwrap()
    }

    fn names(&self) -> Vec<String> {
        let names = LiveHost.list(&self.dir.path().join("etc")).unwrap();
        names
            .iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

fn setting(file: &Path, language: ConfigLanguage, key: &str) -> Setting {
    Setting::Config {
        file: file.to_str().unwrap().into(),
        language,
        section: Vec::new(),
        key: key.into(),
        validate: Vec::new(),
        reload: Vec::new(),
    }
}

fn with(setting: Setting, check: &[&str], load: &[&str]) -> Setting {
    let words = |words: &[&str]| words.iter().map(|&word| word.into()).collect();
    match setting {
        Setting::Config {
            file,
            language,
            section,
            key,
            ..
        } => Setting::Config {
            file,
            language,
            section,
            key,
            validate: words(check),
            reload: words(load),
        },
        other => other,
    }
}

fn installed(program: &str) -> bool {
    let found = LiveHost.which(OsStr::new(program)).is_some();
    if !found {
        assay_testing::skipped(program, "not installed");
    }
    found
}

#[test]
fn sshd_looks_at_the_candidate_before_it_replaces_the_file() {
    if !installed("sshd") || !installed("ssh-keygen") {
        return;
    }
    // Debian's service creates this directory when it starts; it may be missing.
    let _ = fs::create_dir("/run/sshd");
    let place = Place::new();
    let (file, key) = (place.path("sshd_config"), place.path("key"));
    sh(&[
        "ssh-keygen",
        "-q",
        "-t",
        "ed25519",
        "-N",
        "",
        "-f",
        key.to_str().unwrap(),
    ]);
    let before = format!(
        "# ours\nHostKey {}\nUseDNS no # slow\n\nMatch User bob\n  UseDNS no\n",
        key.display()
    );
    // UseDNS is not allowed in a Match block; sshd reports this, and the original file is refused.
    fs::write(&file, &before).unwrap();
    let setting = setting(&file, ConfigLanguage::Ssh, "UseDNS");
    let setting = with(setting, &["sshd", "-t", "-f", "{file}"], &[]);
    let session = place.begin();
    let told = Switch::open(&session, &LiveHost, &setting).err().unwrap();
    assert!(
        matches!(&told, ChangeError::Command { command, .. } if command.starts_with("sshd -t -f ")),
        "{told:?}"
    );

    let before = before.replace(
        "Match User bob\n  UseDNS no\n",
        "Match User bob\n  X11Forwarding no\n",
    );
    fs::write(&file, &before).unwrap();
    let switch = Switch::open(&session, &LiveHost, &setting).unwrap();
    assert_eq!(switch.original().value.as_deref(), Some("no"));
    assert_eq!(switch.set(Some("yes")).unwrap(), "yes");
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        before.replace("UseDNS no # slow", "UseDNS yes # slow")
    );
    let told = switch.set(Some("perhaps")).unwrap_err();
    assert!(
        matches!(&told, ChangeError::Command { reason, .. } if reason.contains("perhaps")),
        "{told}"
    );
    // The old value is still in force: the candidate never replaced the file.
    assert_eq!(switch.read().unwrap(), "yes");
    assert_eq!(switch.set(None).unwrap(), "no line for it");
    drop(switch);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert_eq!(place.names(), ["key", "key.pub", "sshd_config"]);
    assert_eq!(session.close(&LiveHost).unwrap(), []);
}

#[test]
fn a_running_nginx_reads_what_is_set_and_what_is_put_back() {
    if !installed("nginx") {
        return;
    }
    let place = Place::new();
    let at = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let text = format!(
        "pid {};\nerror_log {};\nworker_processes 1; # one\nevents {{}}\nhttp {{ access_log off; }}\n",
        at("pid"),
        at("error.log")
    );
    let file = place.path("nginx.conf");
    fs::write(&file, &text).unwrap();
    sh(&["nginx", "-c", &at("nginx.conf")]);
    let pid = fs::read_to_string(place.path("pid"))
        .unwrap()
        .trim()
        .to_owned();
    let workers = |count: usize| {
        let children = format!("/proc/{pid}/task/{pid}/children");
        (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let now = fs::read_to_string(&children).unwrap();
            now.split_whitespace().count() == count
        })
    };
    let setting = setting(&file, ConfigLanguage::Nginx, "worker_processes");
    let setting = with(
        setting,
        &["nginx", "-t", "-c", "{file}"],
        &["nginx", "-c", &at("nginx.conf"), "-s", "reload"],
    );
    let session = place.begin();
    let mut seen = Vec::new();
    {
        let switch = Switch::open(&session, &LiveHost, &setting).unwrap();
        switch.set(Some("3")).unwrap();
        seen.push(workers(3));
        let told = switch.set(Some("many")).unwrap_err().to_string();
        seen.push(told.contains("invalid"));
        switch.restore().unwrap();
        seen.push(workers(1));
    }
    sh(&["nginx", "-c", &at("nginx.conf"), "-s", "stop"]);
    assert_eq!(seen, [true; 3]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn lines_that_somebody_else_edits_meanwhile_survive() {
    let place = Place::new();
    let file = place.path("a b.conf");
    fs::write(&file, "workers = 2\nother = x\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    let session = place.begin();
    let switch = Switch::open(
        &session,
        &LiveHost,
        &setting(&file, ConfigLanguage::KeyValue, "workers"),
    )
    .unwrap();
    switch.set(Some("8")).unwrap();
    fs::write(&file, "workers = 8\nother = y\nmore = z\n").unwrap();
    assert_eq!(switch.restore().unwrap(), "2");
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "workers = 2\nother = y\nmore = z\n"
    );
    switch.set(Some("8")).unwrap();
    fs::write(&file, "workers = 5\n").unwrap();
    let told = switch.restore().unwrap_err();
    assert!(matches!(told, ChangeError::Meanwhile { .. }), "{told}");
    drop(switch);
    drop(session);
    let told = place.journal.recover(&LiveHost, Foreign::Restore).unwrap();
    assert_eq!(told[0].outcome, RecoveryOutcome::Restored("2".into()));
    assert_eq!(fs::read_to_string(&file).unwrap(), "workers = 2\n");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(
        (mode & 0o777, place.names()),
        (0o604, vec!["a b.conf".to_owned()])
    );
}

/// The reload command plays the part of an administrator who edits the line before it is read back.
#[test]
fn a_value_that_another_program_writes_before_the_read_back_stays() {
    let place = Place::new();
    let file = place.path("a.conf");
    fs::write(&file, "workers = 2\n").unwrap();
    let edit = format!("sed -i 's/= 8/= 5/' '{}'", file.display());
    let setting = with(
        setting(&file, ConfigLanguage::KeyValue, "workers"),
        &[],
        &["sh", "-c", &edit],
    );
    let session = place.begin();
    let switch = Switch::open(&session, &LiveHost, &setting).unwrap();
    let error = switch.set(Some("8")).unwrap_err();
    assert!(matches!(error, ChangeError::Meanwhile { .. }), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "workers = 5\n");
    drop(switch);
    drop(session);
    assert_eq!(fs::read_to_string(&file).unwrap(), "workers = 5\n");
    let left = place.journal.recover(&LiveHost, Foreign::Leave).unwrap();
    assert!(
        matches!(left[0].outcome, RecoveryOutcome::LeftAlone { .. }),
        "{:?}",
        left[0].outcome
    );
    let back = place.journal.recover(&LiveHost, Foreign::Restore).unwrap();
    assert_eq!(back[0].outcome, RecoveryOutcome::Restored("2".into()));
    assert_eq!(fs::read_to_string(&file).unwrap(), "workers = 2\n");
}

#[test]
fn links_lead_to_the_file_and_stay_links() {
    let place = Place::new();
    fs::write(place.path("real.conf"), "workers = 2\n").unwrap();
    symlink("real.conf", place.path("link.conf")).unwrap();
    let session = place.begin();
    let link = setting(
        &place.path("link.conf"),
        ConfigLanguage::KeyValue,
        "workers",
    );
    let switch = Switch::open(&session, &LiveHost, &link).unwrap();
    switch.set(Some("8")).unwrap();
    assert_eq!(fs::read(place.path("real.conf")).unwrap(), b"workers = 8\n");
    assert!(place.path("link.conf").is_symlink());
    // The same file under its real name is the same setting.
    let real = setting(&place.path("real.conf"), ConfigLanguage::KeyValue, "other");
    assert!(Switch::open(&session, &LiveHost, &real).is_err());
    drop(switch);
    assert_eq!(fs::read(place.path("real.conf")).unwrap(), b"workers = 2\n");

    fs::hard_link(place.path("real.conf"), place.path("hard.conf")).unwrap();
    let switch = Switch::open(&session, &LiveHost, &real).unwrap();
    let told = switch.set(Some("x")).unwrap_err();
    insta::assert_snapshot!(assay_testing::normalize_output(told, &[(place.path(""), "DIR/")]), @"DIR/real.conf: it has 2 names (hard links), and replacing it would change only one of them");
}

#[test]
fn a_service_that_cannot_reload_gets_its_old_file_and_the_failure_is_told_first() {
    let place = Place::new();
    let host = Deadly::never().with_locks(place.dir.path());
    let file = place.path("service.conf");
    fs::write(&file, "workers = 2\n").unwrap();
    let plain = setting(&file, ConfigLanguage::KeyValue, "workers");
    // The reload fails with the new file and with the old one.
    let broken = with(
        plain.clone(),
        &[],
        &["sh", "-c", "echo no: reload >&2; exit 3"],
    );
    let session = place.begin();
    let switch = Switch::open(&session, &host, &broken).unwrap();
    let told = switch.set(Some("8")).unwrap_err();
    assert!(matches!(told, ChangeError::Twice { .. }), "{told}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "workers = 2\n");
    drop(switch);
    let left = session.close(&host).unwrap();
    assert!(
        matches!(&left[0].outcome, RecoveryOutcome::Failed(why) if why.contains("no: reload")),
        "{left:?}"
    );
    assert_eq!(
        place.journal.pending().unwrap().len(),
        1,
        "the service may still run with 8"
    );
    drop(place);

    // Without {file} the check can only run in place; it runs before the reload.
    let place = Place::new();
    fs::write(place.path("service.conf"), "workers = 2\n").unwrap();
    let path = place.path("service.conf").to_str().unwrap().to_owned();
    let log = place.path("log").to_str().unwrap().to_owned();
    let setting = with(
        setting(Path::new(&path), ConfigLanguage::KeyValue, "workers"),
        &["sh", "-c", "! grep -q bad \"$1\"", "sh", &path],
        &["sh", "-c", "cat \"$1\" >>\"$2\"", "sh", &path, &log],
    );
    let session = place.begin();
    let switch = Switch::open(&session, &LiveHost, &setting).unwrap();
    assert!(switch.set(Some("bad")).is_err());
    drop(switch);
    assert_eq!(fs::read_to_string(&path).unwrap(), "workers = 2\n");
    assert_eq!(
        fs::read_to_string(&log).unwrap(),
        "workers = 2\n",
        "the bad one was never read"
    );
}

#[test]
fn a_full_disk_under_the_file_touches_nothing() {
    if !inside("a_full_disk_under_the_file_touches_nothing") {
        return;
    }
    let place = Place::new();
    let _small = SmallDisk::new(&place.path(""), "64k");
    let file = place.path("service.conf");
    let text = format!("workers = 2\n# {}\n", "x".repeat(20_000));
    fs::write(&file, &text).unwrap();
    let setting = setting(&file, ConfigLanguage::KeyValue, "workers");
    let session = place.begin();
    let switch = Switch::open(&session, &LiveHost, &setting).unwrap();
    fs::write(place.path("filler"), vec![1; 1 << 20]).unwrap_err();
    let told = switch.set(Some("8")).unwrap_err().to_string();
    assert!(told.contains("No space left"), "{told}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(place.names(), ["filler", "service.conf"]);
    // The disk fills while the change is in force: the change stays in the journal until there is space.
    fs::remove_file(place.path("filler")).unwrap();
    switch.set(Some("8")).unwrap();
    fs::write(place.path("filler"), vec![1; 1 << 20]).unwrap_err();
    assert!(
        switch
            .restore()
            .unwrap_err()
            .to_string()
            .contains("No space left")
    );
    drop(switch);
    drop(session);
    let left = place.journal.recover(&LiveHost, Foreign::Leave).unwrap();
    assert!(matches!(left[0].outcome, RecoveryOutcome::Failed(_)));
    fs::remove_file(place.path("filler")).unwrap();
    let left = place.journal.recover(&LiveHost, Foreign::Leave).unwrap();
    assert_eq!(left[0].outcome, RecoveryOutcome::Restored("2".into()));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(place.names(), ["service.conf"]);
}

/// The saved copy is damaged and other lines were edited: the original contents cannot be determined.
#[test]
fn a_damaged_copy_is_never_put_in_place_of_a_file() {
    for damage in [Some("workers = 9\n"), None] {
        let place = Place::new();
        let host = Deadly::never().with_locks(place.dir.path());
        let file = place.path("service.conf");
        fs::write(&file, "workers = 2\nother = x\n").unwrap();
        let session = place.begin();
        let setting = setting(&file, ConfigLanguage::KeyValue, "workers");
        let switch = Switch::open(&session, &host, &setting).unwrap();
        switch.set(Some("8")).unwrap();
        std::mem::forget(switch);
        let saved = session.dir().join("0.saved");
        drop(session);
        match damage {
            Some(text) => fs::write(&saved, text).unwrap(),
            None => fs::remove_file(&saved).unwrap(),
        }
        // Reverting assay's own line gives the original file.
        let exact = fs::read(&file).unwrap();
        fs::write(&file, "workers = 8\nother = y\n").unwrap();
        for _ in 0..2 {
            let told = place.journal.recover(&host, Foreign::Leave).unwrap();
            let path = saved.display().to_string();
            assert!(
                matches!(&told[0].outcome, RecoveryOutcome::Failed(why) if why.contains(&path)),
                "{told:?}"
            );
            assert_eq!(fs::read(&file).unwrap(), b"workers = 8\nother = y\n");
            assert_eq!(place.journal.pending().unwrap().len(), 1);
        }
        fs::write(&file, exact).unwrap();
        let told = place.journal.recover(&host, Foreign::Leave).unwrap();
        assert_eq!(told[0].outcome, RecoveryOutcome::Restored("2".into()));
        assert_eq!(fs::read(&file).unwrap(), b"workers = 2\nother = x\n");
        assert_eq!(place.journal.pending().unwrap().len(), 0);
    }
}

/// Other lines differ from the original: recovery reports this until the user accepts it.
#[test]
fn a_file_that_is_neither_the_original_nor_ours_is_told() {
    let place = Place::new();
    let host = Deadly::never().with_locks(place.dir.path());
    let file = place.path("service.conf");
    fs::write(&file, "workers = 2\nother = x\n").unwrap();
    let session = place.begin();
    let setting = setting(&file, ConfigLanguage::KeyValue, "workers");
    let switch = Switch::open(&session, &host, &setting).unwrap();
    switch.set(Some("8")).unwrap();
    std::mem::forget(switch);
    drop(session);
    fs::write(&file, "workers = 8\nother = y\n").unwrap();
    for _ in 0..2 {
        let told = place.journal.recover(&host, Foreign::Leave).unwrap();
        let doubtful = |outcome: &RecoveryOutcome| matches!(outcome, RecoveryOutcome::Doubtful(why) if why.contains("0.saved"));
        assert!(doubtful(&told[0].outcome), "{told:?}");
        assert_eq!(fs::read(&file).unwrap(), b"workers = 2\nother = y\n");
    }
    place.journal.recover(&host, Foreign::Accept).unwrap();
    assert_eq!(place.journal.pending().unwrap().len(), 0);
}

/// In every kind of rollback, the file gets its original times back.
#[test]
fn times_are_put_back() {
    let place = Place::new();
    let host = Deadly::never().with_locks(place.dir.path());
    let file = place.path("service.conf");
    fs::write(&file, "workers = 2\n").unwrap();
    let time = |seconds| std::time::UNIX_EPOCH + std::time::Duration::new(seconds, 123_456_789);
    let (read, written) = (time(1_000_000_000), time(900_000_000));
    let times = fs::FileTimes::new()
        .set_accessed(read)
        .set_modified(written);
    let opened = fs::File::options().write(true).open(&file).unwrap();
    opened.set_times(times).unwrap();
    drop(opened);
    let setting = setting(&file, ConfigLanguage::KeyValue, "workers");
    for killed in [false, true] {
        let session = place.begin();
        let switch = Switch::open(&session, &host, &setting).unwrap();
        switch.set(Some("8")).unwrap();
        assert_ne!(fs::metadata(&file).unwrap().modified().unwrap(), written);
        match killed {
            true => std::mem::forget(switch),
            false => drop(switch),
        }
        drop(session);
        place.journal.recover(&host, Foreign::Leave).unwrap();
        let found = fs::metadata(&file).unwrap();
        assert_eq!(found.modified().unwrap(), written);
        assert_eq!(found.accessed().unwrap(), read);
    }
}

/// Ways in which another program changes the other line: by a new file that replaces the old one, or by writing in
/// place.
const WRITERS: [fn(&Path, &str); 3] = [
    |file, text| {
        let new = file.with_file_name("theirs");
        fs::write(&new, text).unwrap();
        fs::rename(new, file).unwrap();
    },
    |file, text| fs::write(file, text).unwrap(),
    |file, text| {
        use std::os::unix::fs::FileExt as _;
        let open = fs::File::options().write(true).open(file).unwrap();
        open.write_all_at(text.as_bytes(), 0).unwrap();
        open.set_len(text.len() as u64).unwrap();
    },
];

/// An administrator edits another line at any moment while a setting is set and rolled back.
#[test]
fn attack_edits_of_other_lines_while_a_setting_changes() {
    let rounds = 40 * assay_testing::attack_factor();
    let (mut tried, mut held) = (0, 0);
    for round in 0..rounds {
        for writer in WRITERS {
            let place = Place::new();
            let file = place.path("service.conf");
            fs::write(&file, "workers = 2\nother = 0\n").unwrap();
            let session = place.begin();
            let setting = setting(&file, ConfigLanguage::KeyValue, "workers");
            let switch = Switch::open(&session, &LiveHost, &setting).unwrap();
            let edit = format!("other = {}", round + 1);
            std::thread::scope(|scope| {
                let (file, edit) = (&file, &edit);
                scope.spawn(move || {
                    std::thread::sleep(std::time::Duration::from_micros(700 * (round % 40)));
                    let text = fs::read_to_string(file).unwrap();
                    writer(file, &text.replace("other = 0", edit));
                });
                let _ = switch.set(Some("8"));
                let _ = switch.restore();
            });
            drop(switch);
            drop(session);
            let text = fs::read_to_string(&file).unwrap();
            tried += 1;
            held += u64::from(text.contains(&edit) && place.names().len() == 1);
        }
    }
    assay_testing::attacked("edits of other lines while a setting changes", tried, held);
}
