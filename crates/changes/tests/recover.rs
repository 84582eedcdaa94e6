//! What a dead session left, and what becomes of it.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod common;

use assay_changes::{ChangeError, Foreign, Outcome, Switch};
use assay_host::{Live, Recorded};
use assay_model::change::{ConfigLanguage, Setting};
use common::session::{die, journal, machine, meddle, sessions, sysctl, value};
use std::fs;

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
