//! Who may change what, what a dead session left, and what happens when the journal itself fails.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod common;

use assay_changes::{ChangeError, Foreign, Journal, Made, Outcome, Switch};
use assay_host::{Host as _, HostMut, Live, Recorded, Root};
use assay_model::change::{ConfigLanguage, Setting};
use common::{inside, sh};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

fn sysctl(key: &str) -> Setting {
    Setting::Sysctl { key: key.into() }
}

fn machine() -> Recorded {
    Recorded::new()
        .file(SWAPPINESS, "60\n")
        .file("/proc/sys/vm/laptop_mode", "0\n")
}

fn value(host: &dyn HostMut) -> String {
    host.read_text(Path::new(SWAPPINESS))
        .unwrap()
        .trim()
        .to_owned()
}

/// What somebody else does meanwhile.
fn meddle(host: &dyn HostMut, value: &str) {
    host.write_in_place(Path::new(SWAPPINESS), value.as_bytes())
        .unwrap();
}

/// Leaves a session as `kill -9` does: no destructor runs, and the kernel releases its lock. It
/// has set swappiness to 10 and entered a file.
fn die(journal: &Journal, host: &Recorded, target: &str) {
    let session = Box::leak(Box::new(journal.begin("trial 7", target).unwrap()));
    session.made(&Made::File("/srv".into())).unwrap_err();
    session
        .made(&Made::File(Path::new("/srv").join(session.name("x"))))
        .unwrap();
    let switch = Switch::open(session, host, &sysctl("vm.swappiness")).unwrap();
    assert_eq!(switch.set(Some("10")).unwrap(), "10");
    std::mem::forget(switch);
    let lock = fs::canonicalize(session.dir().join("lock")).unwrap();
    for fd in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        if fs::read_link(fd.path()).is_ok_and(|target| target == lock) {
            let fd: i32 = fd.file_name().to_str().unwrap().parse().unwrap();
            let held = rustix_file(fd);
            rustix::fs::flock(&held, rustix::fs::FlockOperation::Unlock).unwrap();
        }
    }
}

/// The same open file by another number; its lock is the same lock.
fn rustix_file(fd: i32) -> rustix::fd::OwnedFd {
    let pid = rustix::process::getpid();
    let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    rustix::process::pidfd_getfd(&handle, fd, rustix::process::PidfdGetfdFlags::empty()).unwrap()
}

fn journal() -> (tempfile::TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    (dir, journal)
}

fn sessions(dir: &Path) -> Vec<PathBuf> {
    let names = Live.list(&dir.join("sessions")).unwrap();
    names
        .into_iter()
        .map(|name| dir.join("sessions").join(name))
        .collect()
}

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
fn what_a_dead_session_left_is_told_blocks_and_is_taken_back() {
    let (dir, journal) = journal();
    let host = machine();
    die(&journal, &host, "/mnt");
    let pending = journal.pending().unwrap();
    assert_eq!((pending.len(), pending[0].label.as_str()), (1, "trial 7"));
    assert_eq!(pending[0].left[0], "vm.swappiness");
    assert!(pending[0].left[1].starts_with("file /srv/.assay-"));
    let blocked = journal.begin("trial 8", "/mnt").unwrap_err().to_string();
    assert!(
        blocked.contains("--recover") && blocked.contains("trial 7"),
        "{blocked}"
    );
    // Another target, but the same setting.
    let other = journal.begin("trial 8", "/elsewhere").unwrap();
    let blocked = Switch::open(&other, &host, &sysctl("vm.swappiness"))
        .err()
        .unwrap();
    assert!(matches!(blocked, ChangeError::Pending { .. }), "{blocked}");
    Switch::open(&other, &host, &sysctl("vm.laptop_mode")).unwrap();
    drop(other);

    let recovered = journal.recover(&host, Foreign::Leave).unwrap();
    let outcomes: Vec<_> = recovered.iter().map(|one| one.outcome.clone()).collect();
    assert_eq!(outcomes, [Outcome::Restored("60".into()), Outcome::Removed]);
    assert_eq!(value(&host), "60");
    assert_eq!(sessions(dir.path()).len(), 0);
    journal.begin("trial 8", "/mnt").unwrap();
}

#[test]
fn what_somebody_else_changed_is_left_alone_until_the_user_decides() {
    for (foreign, after, stays) in [
        (Foreign::Leave, "33", 1),
        (Foreign::Restore, "60", 0),
        (Foreign::Accept, "33", 0),
    ] {
        let (dir, journal) = journal();
        let host = machine();
        die(&journal, &host, "/mnt");
        meddle(&host, "33");
        let recovered = journal.recover(&host, foreign).unwrap();
        let told = match foreign {
            Foreign::Restore => Outcome::Restored("60".into()),
            _ => Outcome::LeftAlone {
                found: "33".into(),
                original: "60".into(),
                accepted: foreign == Foreign::Accept,
            },
        };
        assert_eq!(recovered[0].outcome, told);
        assert_eq!(value(&host), after);
        assert_eq!(sessions(dir.path()).len(), stays);
        assert_eq!(journal.pending().unwrap().len(), stays);
    }
}

#[test]
fn a_live_switch_does_not_overrule_somebody_else_either() {
    let (_dir, journal) = journal();
    let host = machine();
    let session = journal.begin("trial", "/mnt").unwrap();
    let switch = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
    // Before assay has set anything: the side without the change is no longer what it was.
    meddle(&host, "44");
    let told = switch.restore().unwrap_err();
    assert!(matches!(told, ChangeError::Meanwhile { .. }), "{told}");
    meddle(&host, "60");
    switch.set(Some("10")).unwrap();
    meddle(&host, "33");
    for done in [switch.set(Some("10")), switch.restore()] {
        let told = done.unwrap_err().to_string();
        assert!(
            told.contains("somebody else") && told.contains("33"),
            "{told}"
        );
    }
    drop(switch);
    assert_eq!(value(&host), "33");
    let told = session.close(&host).unwrap();
    assert!(
        matches!(told[0].outcome, Outcome::LeftAlone { .. }),
        "{told:?}"
    );
    assert_eq!(journal.pending().unwrap().len(), 1);
}

#[test]
fn what_the_kernel_held_in_memory_went_with_the_boot() {
    let (dir, journal) = journal();
    let host = machine();
    die(&journal, &host, "/mnt");
    let file = sessions(dir.path())[0].join("journal");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(boot.trim(), "another")).unwrap();
    // The machine came up with the value that assay had tried: that is no longer assay's.
    let recovered = journal.recover(&host, Foreign::Leave).unwrap();
    assert_eq!(recovered[0].outcome, Outcome::Rebooted);
    assert_eq!(recovered[1].outcome, Outcome::Removed);
    assert_eq!(value(&host), "10");
}

#[test]
fn what_is_no_longer_there_needs_no_undo_and_what_cannot_be_undone_can_be_forgotten() {
    let (dir, journal) = journal();
    let path = dir.path().join("service.conf");
    fs::write(&path, "workers = 2\n").unwrap();
    let session = journal.begin("trial", "/mnt").unwrap();
    let host = machine();
    let sysctl = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
    let config = Setting::Config {
        file: path.to_str().unwrap().into(),
        language: ConfigLanguage::KeyValue,
        section: Vec::new(),
        key: "workers".into(),
        validate: Vec::new(),
        reload: Vec::new(),
    };
    let config = Switch::open(&session, &Live, &config).unwrap();
    sysctl.set(Some("10")).unwrap();
    config.set(Some("8")).unwrap();
    std::mem::forget((sysctl, config));
    fs::remove_file(&path).unwrap();
    let bare = Recorded::new().file("/proc/sys/vm/laptop_mode", "0\n");
    let closed = session.close(&bare).unwrap();
    assert!(
        matches!(closed[0].outcome, Outcome::Failed(_)),
        "{closed:?}"
    );
    assert_eq!(closed[1].outcome, Outcome::Gone);
    // The file may come back with its disk.
    assert_eq!(journal.pending().unwrap()[0].left.len(), 1);
    let told = journal.recover(&bare, Foreign::Accept).unwrap();
    assert!(matches!(told[0].outcome, Outcome::Failed(_)), "{told:?}");
    assert_eq!(sessions(dir.path()).len(), 0);
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
    assert!(again.to_string().contains("changes it already"), "{again}");
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
    let told = switch.keep(Some("nobarrier")).unwrap_err().to_string();
    assert!(
        told.contains("never kept") && told.contains("power cut"),
        "{told}"
    );
}

#[test]
fn a_journal_of_a_later_assay_is_left_alone_and_blocks() {
    let (dir, journal) = journal();
    let later = dir.path().join("sessions/assay-1");
    fs::create_dir(&later).unwrap();
    fs::write(later.join("lock"), "").unwrap();
    fs::write(later.join("journal"), "{\"assay-journal\":9}\n").unwrap();
    let told = journal.begin("trial", "/mnt").unwrap_err().to_string();
    assert!(
        told.contains("format 9") && told.contains("assay-1"),
        "{told}"
    );
    let recovered = journal.recover(&machine(), Foreign::Accept).unwrap();
    assert!(matches!(&recovered[0].outcome, Outcome::Failed(why) if why.contains("format 9")));
    assert!(later.join("journal").exists());
    // Somebody's own files in there are nobody's sessions.
    fs::remove_dir_all(&later).unwrap();
    fs::write(dir.path().join("sessions/notes"), "x").unwrap();
    journal.begin("trial", "/mnt").unwrap();
}

#[test]
fn a_damaged_journal_is_used_as_far_as_it_goes_and_not_thrown_away() {
    let (dir, journal) = journal();
    let host = machine();
    die(&journal, &host, "/mnt");
    let file = sessions(dir.path())[0].join("journal");
    let text = fs::read_to_string(&file).unwrap();
    let broken: Vec<_> = text
        .lines()
        .map(|line| if line.contains("made") { "#" } else { line })
        .collect();
    fs::write(&file, broken.join("\n") + "\n").unwrap();
    let recovered = journal.recover(&host, Foreign::Leave).unwrap();
    assert_eq!(recovered[0].outcome, Outcome::Restored("60".into()));
    assert!(matches!(&recovered[1].outcome, Outcome::Failed(why) if why.contains("line 2")));
    assert_eq!(sessions(dir.path()).len(), 1);
    journal.recover(&host, Foreign::Accept).unwrap();
    assert_eq!(sessions(dir.path()).len(), 0);
}

#[test]
fn sessions_killed_while_they_began_or_ended_are_nothing() {
    let (dir, journal) = journal();
    let begun = "{\"assay-journal\":1,\"uid\":\"3\",\"lab";
    for (name, files) in [
        ("assay-1", &[][..]),
        ("assay-2", &[("lock", "")]),
        ("assay-3", &[("lock", ""), ("journal", "")]),
        ("assay-4", &[("lock", ""), ("journal", begun)]),
        ("assay-5", &[("lock", ""), ("0.saved", "workers = 2\n")]),
        ("assay-6", &[("0.saved", "workers = 2\n")]),
    ] {
        let session = dir.path().join("sessions").join(name);
        fs::create_dir(&session).unwrap();
        for (file, text) in files {
            fs::write(session.join(file), text).unwrap();
        }
    }
    assert_eq!(journal.pending().unwrap(), []);
    journal.begin("trial", "/mnt").unwrap();
    assert_eq!(journal.recover(&machine(), Foreign::Leave).unwrap(), []);
    assert_eq!(sessions(dir.path()).len(), 0);
}

#[test]
fn a_forged_journal_removes_nothing_of_anybody_else() {
    let (dir, journal) = journal();
    let precious = dir.path().join("precious");
    fs::create_dir(&precious).unwrap();
    die(&journal, &machine(), "/mnt");
    let session = sessions(dir.path())[0].clone();
    let tag = session.file_name().unwrap().to_str().unwrap();
    let text = fs::read_to_string(session.join("journal")).unwrap();
    let forged = [
        format!(
            "{{\"made\":{{\"id\":90,\"thing\":{{\"directory\":{:?}}}}}}}",
            precious
        ),
        // Climbs out of a name that has the tag.
        format!(
            "{{\"made\":{{\"id\":91,\"thing\":{{\"directory\":\"{}/{tag}/../precious\"}}}}}}",
            dir.path().display()
        ),
        "{\"made\":{\"id\":92,\"thing\":{\"netns\":{\"name\":\"default\"}}}}".to_owned(),
    ];
    fs::write(session.join("journal"), text + &forged.join("\n") + "\n").unwrap();
    let recovered = journal.recover(&Live, Foreign::Leave).unwrap();
    let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
    assert!(
        recovered[..3].iter().all(|one| failed(&one.outcome)),
        "{recovered:?}"
    );
    assert!(precious.exists());
}

#[test]
fn a_journal_that_others_may_write_is_not_used() {
    let (dir, _journal) = journal();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let told = Journal::open(dir.path()).unwrap_err().to_string();
    assert!(told.contains("others may write"), "{told}");
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
    assert!(told.to_string().contains("captured machine"), "{told}");
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
    let path = dir.path().to_str().unwrap();
    let host = machine();
    // Too small for a session at all.
    sh(&[
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=64k,mode=700",
        "none",
        path,
    ]);
    let journal = Journal::open(dir.path()).unwrap();
    let told = journal.begin("trial", "/mnt").unwrap_err().to_string();
    assert!(told.contains("No space left"), "{told}");
    assert_eq!(sessions(dir.path()).len(), 0);
    sh(&["umount", path]);

    // Full once the session has begun: it has room for its lines, but not for a big file.
    sh(&[
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=512k,mode=700",
        "none",
        path,
    ]);
    let journal = Journal::open(dir.path()).unwrap();
    let session = journal.begin("trial", "/mnt").unwrap();
    let filler = fs::write(dir.path().join("filler"), vec![1; 1 << 20]);
    assert!(filler.is_err());
    let switch = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
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
    let told = Switch::open(&session, &Live, &setting)
        .err()
        .unwrap()
        .to_string();
    assert!(told.contains("No space left"), "{told}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);

    // Until the room for its lines is used up as well.
    let told = loop {
        if let Err(told) = switch.set(Some("10")).and_then(|_| switch.restore()) {
            break told.to_string();
        }
    };
    assert!(told.contains("No space left"), "{told}");
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
