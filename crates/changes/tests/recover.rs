//! Tests the changes that an ended session left, and the result of recovery.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod common;

use assay_changes::{ChangeError, Foreign, Made, Recovered, RecoveryOutcome, SessionState, Switch};
use assay_host::held::Directory;
use assay_host::{Faulty, HostError, HostMut, LiveHost, Recorded};
use assay_model::change::{ConfigLanguage, Setting};
use common::Deadly;
use common::session::{
    bury, die, journal, machine, meddle, reseal, sealed, sessions, sysctl, value,
};
use std::fs;
use std::os::unix::fs::{chown, lchown, symlink};
use std::path::Path;

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
    // Another target with the same setting.
    let other = journal.begin("trial 8", "/elsewhere").unwrap();
    let blocked = Switch::open(&other, &host, &sysctl("vm.swappiness"))
        .err()
        .unwrap();
    assert!(matches!(blocked, ChangeError::Pending { .. }), "{blocked}");
    Switch::open(&other, &host, &sysctl("vm.laptop_mode")).unwrap();
    drop(other);

    let recovered = journal.recover(&host, Foreign::Leave).unwrap();
    let outcomes: Vec<_> = recovered.iter().map(|one| one.outcome.clone()).collect();
    assert_eq!(
        outcomes,
        [
            RecoveryOutcome::Restored("60".into()),
            RecoveryOutcome::Removed
        ]
    );
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
            Foreign::Restore => RecoveryOutcome::Restored("60".into()),
            _ => RecoveryOutcome::LeftAlone {
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
    fs::write(&file, reseal(&text, boot.trim(), "another")).unwrap();
    // The machine booted with the value that assay had tried, so the value no longer belongs to assay.
    let recovered = journal.recover(&host, Foreign::Leave).unwrap();
    assert_eq!(recovered[0].outcome, RecoveryOutcome::Rebooted);
    assert_eq!(recovered[1].outcome, RecoveryOutcome::Removed);
    assert_eq!(value(&host), "10");
}

#[test]
fn what_is_no_longer_there_needs_no_undo_and_what_cannot_be_undone_can_be_forgotten() {
    let (dir, journal) = journal();
    let path = dir.path().join("service.conf");
    fs::write(&path, "workers = 2\n").unwrap();
    let session = journal.begin("trial", "/mnt").unwrap();
    let host = machine();
    let here = Deadly::never().with_locks(dir.path());
    let sysctl = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
    let config = Setting::Config {
        file: path.to_str().unwrap().into(),
        language: ConfigLanguage::KeyValue,
        section: Vec::new(),
        key: "workers".into(),
        validate: Vec::new(),
        reload: Vec::new(),
    };
    let config = Switch::open(&session, &here, &config).unwrap();
    sysctl.set(Some("10")).unwrap();
    config.set(Some("8")).unwrap();
    std::mem::forget((sysctl, config));
    fs::remove_file(&path).unwrap();
    let bare = Recorded::new().file("/proc/sys/vm/laptop_mode", "0\n");
    let closed = session.close(&bare).unwrap();
    assert!(
        matches!(closed[0].outcome, RecoveryOutcome::LeftAlone { .. }),
        "{closed:?}"
    );
    assert_eq!(closed[1].outcome, RecoveryOutcome::Gone);
    // The file may become available again with its disk.
    assert_eq!(journal.pending().unwrap()[0].left.len(), 1);
    let told = journal.recover(&bare, Foreign::Accept).unwrap();
    assert!(
        matches!(told[0].outcome, RecoveryOutcome::Failed(_)),
        "{told:?}"
    );
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
    assert!(
        matches!(&recovered[0].outcome, RecoveryOutcome::Failed(why) if why.contains("format 9"))
    );
    assert!(later.join("journal").exists());
    // Other files in the directory do not belong to any session.
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
    assert_eq!(recovered[0].outcome, RecoveryOutcome::Restored("60".into()));
    // The damaged line is known from the second record.
    assert_eq!(recovered[1].outcome, RecoveryOutcome::Removed);
    let doubtful = |one: &Recovered| {
        let place = format!("{}:2: ", file.display());
        matches!(&one.outcome, RecoveryOutcome::Doubtful(why) if why.contains(&place))
    };
    assert!(doubtful(&recovered[2]), "{recovered:?}");
    // It is reported until the user accepts it, and blocks the target for others.
    for _ in 0..2 {
        let again = journal.recover(&host, Foreign::Leave).unwrap();
        assert!(again.len() == 1 && doubtful(&again[0]), "{again:?}");
        assert_eq!(journal.pending().unwrap().len(), 1);
        let blocked = journal.begin("trial 8", "/mnt").unwrap_err();
        assert!(matches!(blocked, ChangeError::Pending { .. }), "{blocked}");
    }
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
        ("assay-5", &[("lock", ""), ("0.new", "{\"n\":0,\"assay")]),
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
fn a_saved_file_without_its_journal_is_told_and_kept() {
    for journal_file in [None, Some(&b""[..]), Some(&[0; 512])] {
        let (dir, journal) = journal();
        let session = dir.path().join("sessions/assay-5");
        fs::create_dir(&session).unwrap();
        fs::write(session.join("0.saved"), "workers = 2\n").unwrap();
        if let Some(bytes) = journal_file {
            fs::write(session.join("journal"), bytes).unwrap();
        }
        for _ in 0..2 {
            assert_eq!(journal.pending().unwrap().len(), 1);
            let told = journal.recover(&machine(), Foreign::Leave).unwrap();
            let saved = session.join("0.saved").display().to_string();
            let telling = |one: &Recovered| matches!(&one.outcome, RecoveryOutcome::Doubtful(why) if why.contains(&saved));
            assert!(told.iter().any(telling), "{told:?}");
            assert!(session.join("0.saved").exists());
        }
        journal.recover(&machine(), Foreign::Accept).unwrap();
        assert_eq!(sessions(dir.path()).len(), 0);
    }
}

/// A session that assay 0.1 left when it was killed: its journal has neither numbers nor checksums.
#[test]
fn a_journal_of_the_first_format_is_taken_back() {
    let (dir, journal) = journal();
    let etc = tempfile::tempdir().unwrap();
    let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format-1");
    let session = dir.path().join("sessions/assay-257f2641d2c99736");
    fs::create_dir(&session).unwrap();
    fs::write(session.join("lock"), "").unwrap();
    fs::copy(at.join("2.saved"), session.join("2.saved")).unwrap();
    let text = fs::read_to_string(at.join("journal")).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = text
        .replace("@DIR@", etc.path().to_str().unwrap())
        .replace("1f1d65d1-6500-4f6c-989c-385b069582c4", boot.trim());
    // The kernel is in memory; its sysctl is the file of this test.
    let sysctl = etc.path().join("swappiness");
    let text = text.replace(
        "\"place\":\"/proc/sys/vm/swappiness\"",
        &format!("\"place\":{sysctl:?}"),
    );
    fs::write(session.join("journal"), &text).unwrap();
    fs::write(&sysctl, "10\n").unwrap();
    let file = etc.path().join("service.conf");
    fs::copy(at.join("service.conf"), &file).unwrap();
    let work = etc.path().join(".assay-257f2641d2c99736-work");
    fs::create_dir(&work).unwrap();

    let blocked = journal.begin("trial", "/mnt/data").unwrap_err();
    assert!(matches!(blocked, ChangeError::Pending { .. }), "{blocked}");
    // Recovery is interrupted once: it continues the old format.
    let faulty = Faulty::once(&LiveHost as &dyn HostMut, 8);
    journal.recover(&faulty, Foreign::Leave).unwrap();
    for one in journal.recover(&LiveHost, Foreign::Leave).unwrap() {
        assert!(
            matches!(
                one.outcome,
                RecoveryOutcome::Restored(_) | RecoveryOutcome::Removed
            ),
            "{one:?}"
        );
    }
    assert_eq!(
        fs::read(&file).unwrap(),
        fs::read(at.join("2.saved")).unwrap()
    );
    assert_eq!(fs::read_to_string(&sysctl).unwrap(), "60\n");
    assert!(!work.exists());
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
        format!("\"made\":{{\"id\":90,\"thing\":{{\"directory\":{precious:?}}}}}"),
        // A path that leaves a directory whose name contains the tag.
        format!(
            "\"made\":{{\"id\":91,\"thing\":{{\"directory\":\"{}/{tag}/../precious\"}}}}",
            dir.path().display()
        ),
        "\"made\":{\"id\":92,\"thing\":{\"netns\":{\"name\":\"default\"}}}".to_owned(),
    ];
    let first = text.lines().count();
    let forged = forged.iter().enumerate();
    let forged: String = forged
        .map(|(index, line)| sealed(first + index, line))
        .collect();
    fs::write(session.join("journal"), text + &forged).unwrap();
    let recovered = journal.recover(&LiveHost, Foreign::Leave).unwrap();
    let failed = |outcome: &RecoveryOutcome| matches!(outcome, RecoveryOutcome::Failed(_));
    assert!(
        recovered[..3].iter().all(|one| failed(&one.outcome)),
        "{recovered:?}"
    );
    assert!(precious.exists());
}

/// The owner of the parent directory renames the created object, before or after the journal records its identity, and
/// puts another object under its name. Then assay is killed.
#[test]
fn attack_directories_renamed_at_the_moment_of_a_kill() {
    if !common::root() {
        return assay_testing::skipped("root", "only root works in the directories of others");
    }
    let (mut tried, mut held) = (0, 0);
    for entered in [false, true] {
        for decoy in ["nothing", "link", "directory", "file"] {
            let (_state, journal) = journal();
            let place = tempfile::tempdir_in("/var/tmp").unwrap();
            let theirs = place.path().join("theirs");
            let precious = place.path().join("precious");
            fs::create_dir(&theirs).unwrap();
            fs::create_dir(&precious).unwrap();
            fs::write(precious.join("file"), "x").unwrap();
            chown(&theirs, Some(65534), Some(65534)).unwrap();
            let session = Box::leak(Box::new(journal.begin("trial 7", "/mnt").unwrap()));
            let name = session.name("now");
            let shown = theirs.join(&name);
            if entered {
                let own = session.own_directory(&LiveHost, &theirs, "now").unwrap();
                fs::write(own.through().join("image"), "x").unwrap();
                std::mem::forget(own);
            } else {
                session.made(&Made::Directory(shown.clone())).unwrap();
                let killed = |made: &Directory| {
                    Err(HostError::NotFound {
                        path: made.shown().to_owned(),
                    })
                };
                let above = Directory::open(&theirs).unwrap();
                above.make_known(&name, &mut { killed }).unwrap_err();
            }
            fs::rename(&shown, theirs.join("moved")).unwrap();
            match decoy {
                "link" => symlink(&precious, &shown).unwrap(),
                "directory" => fs::create_dir(&shown).unwrap(),
                "file" => fs::write(&shown, "x").unwrap(),
                _ => {}
            }
            if decoy != "nothing" {
                lchown(&shown, Some(65534), Some(65534)).unwrap();
            }
            bury(session);
            let recovered = journal.recover(&LiveHost, Foreign::Leave).unwrap();
            let removed = recovered
                .iter()
                .all(|one| one.outcome == RecoveryOutcome::Removed);
            let left = fs::read_dir(&theirs).unwrap().count();
            let ours_is_gone = removed && left == usize::from(decoy != "nothing");
            tried += 1;
            held += u64::from(ours_is_gone && precious.join("file").exists());
            if !ours_is_gone {
                eprintln!("{entered} {decoy}: {recovered:?}");
            }
        }
    }
    assay_testing::attacked("directories renamed when assay is killed", tried, held);
}

/// A fix that waited for its confirmation when its process ended stays open until it is rolled back.
#[test]
fn what_was_never_confirmed_is_pending() {
    let (_dir, journal) = journal();
    let host = machine();
    let begun = journal.begin("check --fix ssh-usedns", "the configuration of sshd");
    let session = Box::leak(Box::new(begun.unwrap()));
    let switch = Switch::open(session, &host, &sysctl("vm.swappiness")).unwrap();
    switch.set(Some("10")).unwrap();
    session.wait_for_confirmation().unwrap();
    let uid = session.uid().to_owned();
    let live = journal.standing(&uid).unwrap();
    assert!(
        matches!(live, SessionState::Live { holder: Some(_) }),
        "{live:?}"
    );
    assert_eq!(journal.pending().unwrap().len(), 0, "it is alive");
    switch.leave();
    bury(session);
    let pending = journal.pending().unwrap();
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].label, "check --fix ssh-usedns");
    assert_eq!(journal.standing(&uid).unwrap(), SessionState::Left);
    journal.recover(&host, Foreign::Leave).unwrap();
    assert_eq!(journal.standing(&uid).unwrap(), SessionState::Gone);
    assert_eq!(journal.pending().unwrap(), []);
}

/// A session that is read while its process removes it must be either complete or missing.
#[test]
fn attack_looks_at_sessions_that_end() {
    let (dir, journal) = journal();
    let host = machine();
    let rounds = 60 * assay_testing::attack_factor();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut looks = 0u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                journal.pending().unwrap();
                journal.recovering().unwrap();
                journal.recover(&machine(), Foreign::Leave).unwrap();
                for uid in journal.sessions_there().unwrap() {
                    journal.is_left(&uid).unwrap();
                    journal.recover_session(&uid, &machine()).unwrap();
                }
                looks += 1;
            }
            looks
        });
        for round in 0..rounds {
            let session = journal.begin("trial 9", &format!("/mnt{round}")).unwrap();
            let switch = Switch::open(&session, &host, &sysctl("vm.swappiness")).unwrap();
            switch.set(Some("10")).unwrap();
            drop(switch);
            session.close(&host).unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        looker.join().unwrap()
    });
    assert!(looks > 0);
    assert_eq!(sessions(dir.path()).len(), 0);
    assay_testing::attacked("looks at sessions that end", rounds, rounds);
}
