use super::*;
use std::process::Command;

fn order(scheduler: Scheduler, root: &Path) -> WatchedChange {
    let files = [
        "/etc/ssh/sshd_config".to_owned(),
        "/srv/a b/50%.conf".to_owned(),
    ];
    let what = Unconfirmed {
        session: "0123456789abcdef",
        label: "check --fix ssh-usedns",
        journal: Path::new("/root/.local/state/assay/journal"),
        within: Duration::from_secs(120),
        files: &files,
    };
    let places = Places {
        root: root.to_owned(),
    };
    WatchedChange::of(what, scheduler, &places).unwrap()
}

#[test]
fn what_is_written_for_systemd_is_what_systemd_reads() {
    let root = tempfile::tempdir().unwrap();
    let places = Places {
        root: root.path().to_owned(),
    };
    let order = order(Scheduler::Systemd, root.path());
    order.write(&places).unwrap();
    systemd::write_units(&order, &places).unwrap();
    let units = root.path().join("etc/systemd/system");
    let kinds = ["service", "timer", "-boot.service"].map(|kind| match kind.starts_with('-') {
        true => format!("{}{kind}", order.name()),
        false => format!("{}.{kind}", order.name()),
    });
    let texts = kinds
        .each_ref()
        .map(|name| fs::read_to_string(units.join(name)).unwrap());
    insta::assert_snapshot!(texts.join("\n"));
    for (target, name) in [("timers", &kinds[1]), ("multi-user", &kinds[2])] {
        let link = units.join(format!("{target}.target.wants/{name}"));
        assert_eq!(
            fs::read(&link).unwrap(),
            fs::read(units.join(name)).unwrap()
        );
    }
    // The program that the unit starts, and the files that systemd needs in a root directory.
    let program = order.dir(&places).join(PROGRAM);
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--root"])
        .arg(root.path())
        .args(kinds)
        .output();
    match verified {
        Ok(output) => {
            let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
            let ours: Vec<_> = complaints
                .lines()
                .filter(|line| line.contains("assay-undo"))
                .collect();
            // A root directory without systemd's own units has no targets.
            let ours: Vec<_> = ours
                .into_iter()
                .filter(|line| !line.contains(".target"))
                .collect();
            assert!(ours.is_empty(), "{complaints}");
        }
        Err(_) => assay_testing::skipped("systemd-analyze", "systemd is not installed"),
    }
}

#[test]
fn nothing_is_left_of_what_was_armed() {
    for scheduler in [Scheduler::Systemd, Scheduler::Cron] {
        let root = tempfile::tempdir().unwrap();
        let places = Places {
            root: root.path().to_owned(),
        };
        let others = [
            root.path().join("etc/cron.d"),
            root.path().join("var/lib/assay"),
        ];
        others
            .iter()
            .for_each(|dir| fs::create_dir_all(dir).unwrap());
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&others[1], private).unwrap();
        let list = || {
            let found = Command::new("find").arg(root.path()).output().unwrap();
            let text = String::from_utf8(found.stdout).unwrap();
            let mut all: Vec<_> = text.lines().map(str::to_owned).collect();
            all.sort();
            all
        };
        let before = list();
        let order = order(scheduler, root.path());
        order.write(&places).unwrap();
        assert_eq!(
            WatchedChange::read(&order.dir(&places)).unwrap(),
            Some(order.clone())
        );
        match scheduler {
            Scheduler::Systemd => systemd::write_units(&order, &places).unwrap(),
            _ => cron::write_cron_file(&order, &places).unwrap(),
        }
        assert!(list().len() > before.len() + 2);
        // Twice, as when two checks end at the same time.
        let machine = assay_host::Recorded::new();
        order.remove(&places, &machine).unwrap();
        order.remove(&places, &machine).unwrap();
        assert_eq!(list(), before, "{scheduler:?}");
    }
}

#[test]
fn without_systemd_cron_and_at_nobody_looks_after_a_change() {
    let machine = assay_host::Recorded::new();
    for scheduler in [Scheduler::Systemd, Scheduler::Cron, Scheduler::At] {
        assert!(scheduler.runs(&machine).is_err());
    }
    let what = Unconfirmed {
        session: "0123456789abcdef",
        label: "check --fix ssh-usedns",
        journal: Path::new("/nowhere"),
        within: Duration::from_secs(1),
        files: &[],
    };
    let refused = OutsideUndo::arm(what, &machine).unwrap_err();
    assert!(matches!(refused, OutsideError::Nobody { .. }));
}
