use super::*;
use assay_model::finding::Severity;
use assay_model::{FactKind, Subject};

fn entry(findings: &[(&str, Severity)]) -> Entry {
    let told = findings.iter().map(|(name, severity)| Told {
        fingerprint: (*name).to_owned(),
        severity: *severity,
    });
    Entry {
        at: "2026-11-23T00:00:00Z".parse().unwrap(),
        bundle: "00".to_owned(),
        assay: "1".to_owned(),
        findings: told.collect(),
    }
}

fn machine(text: &str) -> Facts {
    let mut facts = Facts::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [key, value, place] = words.as_slice() else {
            panic!("{line}")
        };
        let kind = match place.starts_with("/etc") {
            true => FactKind::Configured,
            false => FactKind::Runtime,
        };
        match value.strip_prefix('?') {
            Some(why) => facts.unknown(*key, why, kind, *place),
            None => facts.known(*key, *value, kind, *place),
        }
    }
    facts
}

fn between(old: &str, new: &str, boots: (i64, i64)) -> Vec<Change> {
    let (old, new) = (machine(old), machine(new));
    let (checked, entry) = (Checked::default(), entry(&[]));
    let then = |facts, booted| Then {
        facts,
        checked: &checked,
        entry: &entry,
        booted: Some(booted),
        packages: None,
    };
    changes(&then(&old, boots.0), &then(&new, boots.1))
}

const MACHINE: &str = "
    kernel.release 6.1.0-17 /proc/sys/kernel/osrelease
    memory.available 1000 /proc/meminfo
    sysctl.vm.swappiness 60 /proc/sys/vm/swappiness
    sysctl.vm.dirty_ratio 20 /proc/sys/vm/dirty_ratio
    sysctl.vm.dirty_ratio.configured 20 /etc/sysctl.d/a.conf:3
    package.nginx.version 1.22.1-9 /var/lib/dpkg/status:7
    tool.nginx nginx/1.22.1 nginx
    cpu.vulnerability.mds Vulnerable /sys/devices/system/cpu
    mount.0.point / /proc/self/mountinfo
    mount.0.options rw /proc/self/mountinfo
    mount.1.point /srv /proc/self/mountinfo
    mount.1.options rw,noatime /proc/self/mountinfo
    sshd.usedns no /etc/ssh/sshd_config:5
";

#[test]
fn nothing_changed_is_nothing() {
    let other = MACHINE.replace("memory.available 1000", "memory.available 7");
    assert_eq!(between(MACHINE, &other, (1000, 1000)), []);
    // The same mounts in another order.
    let turned = other
        .replace("mount.0.", "mount.x.")
        .replace("mount.1.", "mount.0.")
        .replace("mount.x.", "mount.1.");
    assert_eq!(between(MACHINE, &turned, (1000, 1090)), []);
}

/// Cases, each with the replaced value, the expected change and the expected cause.
#[test]
fn each_change_has_its_cause() {
    for (from, to, what, cause) in [
        (
            "swappiness 60",
            "swappiness 10",
            "sysctl.vm.swappiness",
            "it was set while the machine ran",
        ),
        (
            "configured 20 /etc/sysctl.d/a.conf:3",
            "configured 5 /etc/sysctl.d/z.conf:1",
            "sysctl.vm.dirty_ratio.configured",
            "/etc/sysctl.d/z.conf:1 was edited",
        ),
        (
            "1.22.1-9",
            "1.22.1-10",
            "package.nginx.version",
            "the package nginx has another version",
        ),
        (
            "rw,noatime",
            "rw",
            "mount./srv.options",
            "it was mounted anew",
        ),
        (
            "sshd.usedns no /etc/ssh/sshd_config:5",
            "sshd.usedns yes /etc/ssh/sshd_config.d/x.conf:1",
            "sshd.usedns",
            "/etc/ssh/sshd_config.d/x.conf:1 was edited",
        ),
        (
            "sshd.usedns no /etc/ssh/sshd_config:5",
            "",
            "sshd.usedns",
            "what stood in /etc/ssh/sshd_config:5 is gone",
        ),
        (
            "sshd.usedns no",
            "sshd.usedns ?denied",
            "sshd.usedns",
            "it cannot be read any more: denied",
        ),
    ] {
        let found = between(MACHINE, &MACHINE.replace(from, to), (1000, 1000));
        assert_eq!(found.len(), 1, "{from}: {found:#?}");
        assert_eq!(found[0].what, what);
        assert_eq!(found[0].cause.as_deref(), Some(cause), "{found:#?}");
    }
}

#[test]
fn a_new_kernel_explains_what_comes_with_it() {
    let new = MACHINE
        .replace("6.1.0-17", "6.1.0-18")
        .replace("Vulnerable", "Mitigation");
    let found = between(MACHINE, &new, (1000, 90_000));
    let cause = |what: &str| {
        found
            .iter()
            .find(|change| change.what == what)
            .and_then(|change| change.cause.clone())
    };
    assert_eq!(
        cause("kernel.release").unwrap(),
        "the machine was started anew with it"
    );
    assert_eq!(
        cause("cpu.vulnerability.mds").unwrap(),
        "the kernel is 6.1.0-18 now"
    );
    assert_eq!(found.len(), 2);
}

#[test]
fn a_run_time_value_that_follows_a_file_names_the_file() {
    let new = MACHINE
        .replace("dirty_ratio 20 /proc", "dirty_ratio 5 /proc")
        .replace(
            "configured 20 /etc/sysctl.d/a.conf:3",
            "configured 5 /etc/sysctl.d/a.conf:3",
        );
    let found = between(MACHINE, &new, (1000, 1000));
    assert_eq!(found.len(), 2);
    for change in found {
        assert_eq!(
            change.cause.as_deref(),
            Some("/etc/sysctl.d/a.conf:3 was edited")
        );
    }
}

#[test]
fn a_thing_that_came_is_one_line() {
    let mut new = machine(MACHINE);
    for name in ["size", "model", "scheduler"] {
        new.known(
            format!("disk.vdb.{name}"),
            "x",
            FactKind::Runtime,
            "/sys/block/vdb",
        );
    }
    new.about(&Subject::new(["disk", "vdb"]));
    let (old, checked, entry) = (machine(MACHINE), Checked::default(), entry(&[]));
    let then = |facts| Then {
        facts,
        checked: &checked,
        entry: &entry,
        booted: None,
        packages: None,
    };
    let found = changes(&then(&old), &then(&new));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].after.as_deref(), Some("3 facts"));
    let found = changes(&then(&new), &then(&old));
    assert_eq!(
        (found.len(), found[0].before.as_deref()),
        (1, Some("3 facts"))
    );
}

#[test]
fn another_catalogue_is_told_from_another_machine() {
    let facts = machine(MACHINE);
    let checked = Checked::default();
    let (old, new) = (entry(&[("some-rule", Severity::High)]), entry(&[]));
    let then = |entry| Then {
        facts: &facts,
        checked: &checked,
        entry,
        booted: None,
        packages: None,
    };
    let found = changes(&then(&old), &then(&new));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, Kind::FindingGone);
    insta::assert_snapshot!(found[0].cause.as_deref().unwrap(), @"the catalogue of advice changed, not the machine");
}

/// A machine can report any boot time and any number of subjects. The comparison must stay fast: comparing each subject
/// with each other subject took hours.
#[test]
fn attack_a_machine_with_more_things_than_anybody_compares() {
    let many = |name: &str| {
        let mut facts = Facts::default();
        for number in 0..60_000 {
            let thing = Subject::new(["site", &format!("{name}{number:05}")]);
            let key = format!("{thing}.x");
            facts.known(key, number, FactKind::Configured, "/etc/x:1");
            facts.about(&thing);
        }
        facts
    };
    let (old, new) = (many("a"), many("b"));
    let (checked, entry) = (Checked::default(), entry(&[]));
    let then = |facts, booted| Then {
        facts,
        checked: &checked,
        entry: &entry,
        booted: Some(booted),
        packages: None,
    };
    let all = changes(&then(&old, i64::MAX), &then(&new, i64::MIN));
    assert_eq!(all.len(), 120_000);
}

#[test]
fn all_packages_are_compared_and_counted() {
    let list = |of: &[(&str, &str)]| -> Packages {
        let own = |(name, version): &(&str, &str)| ((*name).to_owned(), (*version).to_owned());
        of.iter().map(own).collect()
    };
    let old = list(&[
        ("bash", "5.1"),
        ("nginx", "1.22"),
        ("zsh", "5.9"),
        ("vim", "9.0"),
    ]);
    let new = list(&[
        ("bash", "5.2"),
        ("nginx", "1.24"),
        ("vim", "9.0"),
        ("curl", "8.1"),
    ]);
    // Its fact is already among the changes.
    let differ = ["package.nginx.version".to_owned()].into();
    let found = packages::changes(Some(&old), Some(&new), &differ);
    let shown: Vec<_> = found
        .iter()
        .map(|one| {
            (
                one.what.as_str(),
                one.before.as_deref(),
                one.after.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        shown[..3],
        [
            ("package.bash.version", Some("5.1"), Some("5.2")),
            ("package.curl.version", None, Some("8.1")),
            ("package.zsh.version", Some("5.9"), None),
        ]
    );
    assert_eq!((shown.len(), shown[3].0), (4, "packages"));
    assert!(
        shown[3]
            .2
            .is_some_and(|text| text.starts_with("4 changed: 2 "))
    );
    assert!(packages::changes(Some(&old), Some(&old), &differ).is_empty());
    // The bundle of an older version contains only the packages of its rules, which is no change.
    let cut = list(&[("nginx", "1.22")]);
    assert!(packages::changes(Some(&cut), Some(&new), &differ).is_empty());
    // Many packages are only counted.
    let many: Packages = (0..3000)
        .map(|at| (format!("p{at}"), "1".to_owned()))
        .collect();
    let all = packages::changes(Some(&old), Some(&many), &Default::default());
    assert!(
        all.len() < 120
            && all
                .last()
                .unwrap()
                .after
                .as_ref()
                .unwrap()
                .starts_with("3004 ")
    );
}
