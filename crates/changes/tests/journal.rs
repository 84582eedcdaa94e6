//! Tests the locks between sessions, and failures of the journal itself.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod common;

use assay_changes::{ChangeError, Foreign, Journal, RecoveryOutcome, Switch};
use assay_host::{LiveHost, Recorded, Root};
use assay_model::change::{ConfigLanguage, Setting};
use common::session::{journal, machine, meddle, sessions, sysctl, value};
use common::{SmallDisk, inside};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

#[test]
fn an_ordinary_session_leaves_nothing() {
    let (dir, journal) = journal();
    let host = machine();
    let session = journal.begin("trial", "/mnt").unwrap();
    let mode = fs::metadata(session.dir()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    {
        let switch = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
        assert_eq!(switch.original().value.as_deref(), Some("60"));
        assert_eq!(switch.set(Some("1")).unwrap(), "1");
        assert_eq!(switch.restore().unwrap(), "60");
        assert_eq!(switch.set(Some("2")).unwrap(), "2");
        assert_eq!(switch.set(Some("3")).unwrap(), "3");
        assert_eq!(value(&host), "3");
    }
    assert_eq!(value(&host), "60");
    assert_eq!(session.close(&host).unwrap(), []);
    assert_eq!(sessions(dir.path()).len(), 0);
    assert_eq!(journal.recover(&host, Foreign::Leave).unwrap(), []);
}

#[test]
fn a_live_switch_does_not_overrule_somebody_else_either() {
    let (_dir, journal) = journal();
    let host = machine();
    let session = journal.begin("trial", "/mnt").unwrap();
    let switch = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
    // Before assay has set a value: the baseline has changed.
    meddle(&host, "44");
    let told = switch.restore().unwrap_err();
    assert!(matches!(told, ChangeError::Meanwhile { .. }), "{told}");
    meddle(&host, "60");
    switch.set(Some("10")).unwrap();
    meddle(&host, "33");
    for done in [switch.set(Some("10")), switch.restore()] {
        let told = done.unwrap_err();
        assert!(
            matches!(&told, ChangeError::Meanwhile { found, .. } if found == "33"),
            "{told}"
        );
    }
    drop(switch);
    assert_eq!(value(&host), "33");
    let told = session.close(&host).unwrap();
    assert!(
        matches!(told[0].outcome, RecoveryOutcome::LeftAlone { .. }),
        "{told:?}"
    );
    assert_eq!(journal.pending().unwrap().len(), 1);
}

#[test]
fn one_setting_is_changed_once_at_a_time() {
    let (_dir, journal) = journal();
    let host = machine();
    let session = journal.begin("trial", "/mnt").unwrap();
    let switch = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
    let again = Switch::open(&session, &host, &sysctl("vm/swappiness"))
        .err()
        .unwrap();
    insta::assert_snapshot!(again, @"vm/swappiness: it is being changed already");
    drop(switch);
    Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
}

#[test]
fn a_kept_value_stays_unless_it_is_never_kept() {
    let (dir, journal) = journal();
    let host = machine();
    let session = journal.begin("trial", "/mnt").unwrap();
    let switch = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
    assert_eq!(switch.keep(Some("10")).unwrap(), "10");
    session.close(&host).unwrap();
    assert_eq!(
        (value(&host).as_str(), sessions(dir.path()).len()),
        ("10", 0)
    );

    let table = "/dev/vdb /mnt ext4 rw,relatime 0 0\n";
    let host = Recorded::new()
        .file("/proc/self/mounts", table)
        .file("/mnt/x", "");
    let session = journal.begin("trial", "/mnt").unwrap();
    let setting = Setting::MountOption {
        mountpoint: "/mnt".into(),
        choices: vec!["nobarrier".into(), String::new()],
    };
    let switch = Switch::open(&session, &host, &setting).unwrap();
    insta::assert_snapshot!(switch.keep(Some("nobarrier")).unwrap_err(), @"nobarrier of /mnt: nobarrier is never kept: writes that were acknowledged as durable would be lost in a power cut");
}

#[test]
fn a_journal_that_others_may_write_is_not_used() {
    let (dir, _journal) = journal();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let told = Journal::open(dir.path()).unwrap_err();
    let told = assay_testing::normalize_output(told, &[(dir.path(), "DIR")]);
    insta::assert_snapshot!(assay_testing::without_figures(told), @"DIR: everybody may write here; assay runs as user # what it finds in its journal: set ASSAY_STATE to a directory that is yours alone");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    Journal::open(dir.path()).unwrap();
    if common::root() {
        std::os::unix::fs::chown(dir.path(), Some(4242), None).unwrap();
        let told = Journal::open(dir.path()).unwrap_err().to_string();
        assert!(told.contains("user 4242"), "{told}");
    }
}

#[test]
fn a_captured_machine_is_not_changed() {
    let (_dir, journal) = journal();
    let captured = tempfile::tempdir().unwrap();
    fs::create_dir_all(captured.path().join("proc/sys/vm")).unwrap();
    fs::write(captured.path().join("proc/sys/vm/swappiness"), "60\n").unwrap();
    let host = Root::open(captured.path()).unwrap();
    let session = journal.begin("trial", "/mnt").unwrap();
    let told = Switch::open(&session, &host, &sysctl("vm.swappiness"))
        .err()
        .unwrap();
    insta::assert_snapshot!(told, @"vm.swappiness: cannot be changed while the system runs (a captured machine cannot be changed: run this on the machine itself)");
}

/// Holds a session until it is killed.
#[test]
fn holder() {
    let Some(dir) = std::env::var_os("ASSAY_TEST_HOLD") else {
        return;
    };
    let journal = Journal::open(Path::new(&dir)).unwrap();
    let host = machine();
    let session = journal.begin("trial 1", "/mnt").unwrap();
    let _switch = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
    println!("held");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

fn hold(dir: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder", "--nocapture"])
        .env("ASSAY_TEST_HOLD", dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines
            .map_while(Result::ok)
            .any(|line| line.contains("held"))
    );
    child
}

#[test]
fn two_processes_do_not_meet_on_one_target_or_setting() {
    let (dir, journal) = journal();
    let host = machine();
    let mut other = hold(dir.path());
    match journal.begin("trial 2", "/mnt") {
        Err(ChangeError::Busy { pid, label, .. }) => {
            assert_eq!((pid, label.as_str()), (other.id(), "trial 1"));
        }
        found => panic!("{found:?}"),
    }
    let session = journal.begin("trial 2", "/other").unwrap();
    let busy = Switch::open(&session, &host, &sysctl("vm.swappiness"))
        .err()
        .unwrap();
    assert!(matches!(busy, ChangeError::Busy { .. }), "{busy}");
    assert_eq!(
        journal.recover(&host, Foreign::Leave).unwrap(),
        [],
        "it lives"
    );
    assert_eq!(journal.pending().unwrap(), []);
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(journal.pending().unwrap().len(), 1);
    assert_eq!(journal.recover(&host, Foreign::Leave).unwrap().len(), 1);
    Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
}

/// Whether the error is caused by a full disk below the journal.
fn no_room(told: &ChangeError) -> bool {
    matches!(told, ChangeError::Journal { source, .. }
        if source.kind() == std::io::ErrorKind::StorageFull)
}

#[test]
fn a_journal_that_cannot_be_written_stops_everything_before_it_begins() {
    let told = Journal::open(Path::new("/proc/assay"))
        .unwrap_err()
        .to_string();
    assert!(
        told.contains("/proc/assay") && told.contains("ASSAY_STATE"),
        "{told}"
    );
    if !inside("a_journal_that_cannot_be_written_stops_everything_before_it_begins") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let host = machine();
    // Too small for any session.
    let small = SmallDisk::new(dir.path(), "64k");
    let journal = Journal::open(dir.path()).unwrap();
    let told = journal.begin("trial", "/mnt").unwrap_err();
    assert!(no_room(&told), "{told}");
    assert_eq!(sessions(dir.path()).len(), 0);
    drop(small);

    // Full after the session has begun: there is space for its lines, but not for a large file.
    let _small = SmallDisk::new(dir.path(), "512k");
    let journal = Journal::open(dir.path()).unwrap();
    let session = journal.begin("trial", "/mnt").unwrap();
    let switch = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
    let filler = fs::write(dir.path().join("filler"), vec![1; 1 << 20]);
    assert!(filler.is_err());
    // No action begins that cannot be recorded twice.
    let told = Switch::open(&session, &host, &sysctl("vm.laptop_mode"))
        .err()
        .unwrap();
    assert!(no_room(&told), "{told}");
    for _ in 0..20 {
        switch.set(Some("10")).unwrap();
        switch.restore().unwrap();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("service.conf");
    fs::write(&file, format!("workers = 2\n# {}\n", "x".repeat(100_000))).unwrap();
    let setting = Setting::Config {
        file: file.to_str().unwrap().into(),
        language: ConfigLanguage::KeyValue,
        section: Vec::new(),
        key: "workers".into(),
        validate: Vec::new(),
        reload: Vec::new(),
    };
    let told = Switch::open(&session, &LiveHost, &setting).err().unwrap();
    assert!(no_room(&told), "{told}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);

    // Until the space for its lines is used up too.
    let told = loop {
        if let Err(told) = switch.set(Some("10")).and_then(|_| switch.restore()) {
            break told;
        }
    };
    assert!(no_room(&told), "{told}");
    fs::remove_file(dir.path().join("filler")).unwrap();
    assert_eq!(
        switch.set(Some("11")).unwrap(),
        "11",
        "it goes on behind the torn line"
    );
    drop(switch);
    assert_eq!(value(&host), "60");
    assert_eq!(session.close(&host).unwrap(), []);
    assert_eq!(sessions(dir.path()).len(), 0);
}

/// Changes a sysctl of a network namespace, prints the change, and waits to be killed.
#[test]
fn changer() {
    let Some(dir) = std::env::var_os("ASSAY_TEST_CHANGE") else {
        return;
    };
    let journal = Journal::open(&Path::new(&dir).join("journal")).unwrap();
    let session = journal.begin("trial 1", "/mnt").unwrap();
    let forward = sysctl("net.ipv4.ip_forward");
    let switch = Switch::open(&session, &LiveHost, &forward).unwrap();
    switch.set(Some("1")).unwrap();
    println!("changed");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// Two state directories on one machine.
#[test]
fn a_setting_of_the_machine_is_changed_once_whatever_the_state_directory() {
    if !inside("a_setting_of_the_machine_is_changed_once_whatever_the_state_directory") {
        return;
    }
    let read = || fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
    let forward = sysctl("net.ipv4.ip_forward");
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "changer", "--nocapture"])
        .env("ASSAY_TEST_CHANGE", first.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let changed = |line: String| line.contains("changed");
    assert!(lines.map_while(Result::ok).any(changed));
    assert_eq!(read(), "1\n");

    let journal = Journal::open(&second.path().join("journal")).unwrap();
    let session = journal.begin("trial 2", "/mnt").unwrap();
    let refused = || Switch::open(&session, &LiveHost, &forward).err().unwrap();
    match refused() {
        ChangeError::Busy { pid, label, .. } => {
            assert_eq!((pid, label.as_str()), (other.id(), "trial 1"));
        }
        other => panic!("{other}"),
    }
    let elsewhere = || {
        let mut all = journal.elsewhere(&LiveHost).unwrap();
        all.retain(|one| one.what == "net.ipv4.ip_forward" && one.state.starts_with(first.path()));
        all
    };
    assert_eq!(elsewhere(), [], "it lives");
    other.kill().unwrap();
    other.wait().unwrap();
    // The value 1 of the killed process is not taken for the original.
    match refused() {
        ChangeError::Pending { place, .. } => {
            assert_eq!(place, Some(first.path().canonicalize().unwrap()));
        }
        other => panic!("{other}"),
    }
    let told = elsewhere();
    assert_eq!((told.len(), told[0].original.as_str()), (1, "0"));
    assert_eq!(told[0].note, None);
    // Also without its journal.
    let away = first.path().join("away");
    fs::rename(first.path().join("journal"), &away).unwrap();
    match refused() {
        ChangeError::Orphan(orphan) => {
            assert_eq!(
                (orphan.original.as_str(), orphan.found.as_str()),
                ("0", "1")
            );
        }
        other => panic!("{other}"),
    }
    assert!(elsewhere()[0].note.is_some());
    fs::rename(&away, first.path().join("journal")).unwrap();
    let theirs = Journal::open(&first.path().join("journal")).unwrap();
    theirs.recover(&LiveHost, Foreign::Leave).unwrap();
    assert_eq!(read(), "0\n");
    let switch = Switch::open(&session, &LiveHost, &forward).unwrap();
    assert_eq!(switch.original().value.as_deref(), Some("0"));
    drop(switch);
    assert_eq!(elsewhere(), []);
}
