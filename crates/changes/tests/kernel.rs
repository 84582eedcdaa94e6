//! Tests kernel attributes that do not simply accept a value. Observed with Linux 6.18: `echo 0 > dirty_bytes` fails
//! with "Invalid argument", `echo 0 > overcommit_kbytes` leaves the ratio at 0, and setting one sysctl of a pair zeroes
//! the other.

mod common;

use assay_changes::{ChangeError, Journal, Switch};
use assay_host::{Host as _, HostError, HostMut as _, Recorded};
use assay_model::change::Setting;
use common::{Twist, Twisted};
use std::path::Path;

struct Kernel;

impl Twist for Kernel {
    fn write(&self, rest: &Recorded, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        let (name, text) = (path.to_str().unwrap(), std::str::from_utf8(bytes).unwrap());
        let refuse = || HostError::Path {
            path: path.to_owned(),
            errno: Some(22),
            reason: "Invalid argument".into(),
        };
        let zero = |other: &str| rest.write_in_place(Path::new(other), b"0\n");
        match name {
            "/proc/sys/vm/dirty_bytes" if text.trim() == "0" => return Err(refuse()),
            "/proc/sys/vm/dirty_bytes" => zero("/proc/sys/vm/dirty_ratio")?,
            "/proc/sys/vm/dirty_ratio" => zero("/proc/sys/vm/dirty_bytes")?,
            // A module parameter that accepts any value without an effect.
            "/sys/module/zfs/parameters/zfs_quiet" => return Ok(()),
            // A switch that is written as a word and read as a letter.
            "/sys/module/zfs/parameters/zfs_switch" => {
                let letter: &[u8] = if text.trim() == "1" { b"Y\n" } else { b"N\n" };
                return rest.write_in_place(path, letter);
            }
            _ => {}
        }
        rest.write_in_place(path, bytes)
    }
}

fn machine(bytes: &str, ratio: &str) -> Twisted<Kernel> {
    Twisted {
        twist: Kernel,
        rest: Recorded::new()
            .file("/proc/sys/vm/dirty_bytes", bytes)
            .file("/proc/sys/vm/dirty_ratio", ratio)
            .file("/sys/module/zfs/parameters/zfs_quiet", "1\n")
            .file("/sys/module/zfs/parameters/zfs_switch", "N\n"),
    }
}

fn sysctl(key: &str) -> Setting {
    Setting::Sysctl { key: key.into() }
}

fn parameter(name: &str) -> Setting {
    Setting::ModuleParameter {
        module: "zfs".into(),
        name: name.into(),
    }
}

#[test]
fn of_two_sysctls_that_exclude_each_other_the_one_that_was_in_force_is_restored() {
    for (key, value) in [("vm.dirty_bytes", "1000000"), ("vm.dirty_ratio", "30")] {
        for (bytes, ratio) in [("0\n", "20\n"), ("16777216\n", "0\n")] {
            let dir = tempfile::tempdir().unwrap();
            let journal = Journal::open(dir.path()).unwrap();
            let host = machine(bytes, ratio);
            let session = journal.begin("trial", "/mnt").unwrap();
            let switch = Switch::open(&session, &host, &sysctl(key)).unwrap();
            let other = ["vm.dirty_bytes", "vm.dirty_ratio"]
                .iter()
                .find(|one| **one != key);
            let told = Switch::open(&session, &host, &sysctl(other.unwrap())).err();
            assert!(
                matches!(told, Some(ChangeError::Refused { .. })),
                "{told:?}"
            );
            for _ in 0..2 {
                assert_eq!(switch.set(Some(value)).unwrap(), value);
                switch.restore().unwrap();
                let read = |name| host.read_text(Path::new(name)).unwrap();
                assert_eq!(read("/proc/sys/vm/dirty_bytes"), bytes);
                assert_eq!(read("/proc/sys/vm/dirty_ratio"), ratio);
            }
        }
    }
}

#[test]
fn a_parameter_that_takes_anything_and_does_nothing_is_found_out() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let host = machine("0\n", "20\n");
    let session = journal.begin("trial", "/mnt").unwrap();
    let quiet = Switch::open(&session, &host, &parameter("zfs_quiet")).unwrap();
    let told = quiet.set(Some("5")).unwrap_err();
    assert!(matches!(told, ChangeError::NoEffect { .. }), "{told}");
    let switch = Switch::open(&session, &host, &parameter("zfs_switch")).unwrap();
    assert_eq!(switch.set(Some("1")).unwrap(), "Y");
    assert_eq!(switch.restore().unwrap(), "N");
}

#[test]
fn values_and_names_that_are_traps_are_refused_before_anything_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let session = journal.begin("trial \"x\"\n", "/mnt/\u{1}\n").unwrap();
    let host = Recorded::new()
        .file("/proc/sys/vm/swappiness", "60\n")
        .file("/proc/sys/vm/dirty_ratio", "20\n")
        .file("/proc/sys/vm/dirty_bytes", "0\n")
        .file("/proc/sys/net/ipv4/conf/eth0.100/forwarding", "0\n")
        .file(
            "/sys/class/block/vda/queue/scheduler",
            "[none] mq-deadline\n",
        );
    for key in [
        "",
        "vm..swappiness",
        "vm.",
        "../vm/x",
        "a/../../b",
        "vm.swappiness\n",
    ] {
        let error = Switch::open(&session, &host, &sysctl(key)).err();
        assert!(
            matches!(error, Some(ChangeError::Refused { .. })),
            "{key:?}: {error:?}"
        );
    }
    // A dot in a name, as sysctl(8) writes it.
    Switch::open(
        &session,
        &host,
        &sysctl("net.ipv4.conf.eth0/100.forwarding"),
    )
    .unwrap();
    let refuse = |setting: &Setting, value: Option<&str>| {
        let switch = Switch::open(&session, &host, setting).unwrap();
        let told = switch.set(value).unwrap_err();
        assert!(matches!(told, ChangeError::Refused { .. }), "{told}");
        told.to_string()
    };
    for value in [None, Some(""), Some("1\n2"), Some("1\0")] {
        refuse(&sysctl("vm.swappiness"), value);
    }
    let told = refuse(&sysctl("vm.dirty_bytes"), Some("0"));
    assert!(told.contains("counterpart"), "{told}");
    let scheduler = Setting::Queue {
        device: "vda".into(),
        attribute: "scheduler".into(),
    };
    let told = refuse(&scheduler, Some("bfq"));
    assert!(told.contains("none mq-deadline"), "{told}");
    let gone = Switch::open(&session, &host, &sysctl("vm.no_such"))
        .err()
        .unwrap();
    assert!(matches!(gone, ChangeError::Gone { .. }), "{gone}");
}

#[test]
fn attributes_of_the_kernel_show_their_choices_and_others_kinds_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let session = journal.begin("trial", "/mnt").unwrap();
    let pages = "/sys/kernel/mm/transparent_hugepage/enabled";
    let host = Recorded::new()
        .file(pages, "always [madvise] never\n")
        .file("/sys/devices/x/block/vda/queue/scheduler", "[none]\n")
        .file("/sys/module/zfs/parameters/zfs_nocacheflush", "0\n");
    let sysfs = |attribute: &str| Setting::Sysfs {
        attribute: attribute.into(),
    };
    let choice = sysfs("kernel/mm/transparent_hugepage/enabled");
    let switch = Switch::open(&session, &host, &choice).unwrap();
    assert_eq!(switch.original().value.as_deref(), Some("madvise"));
    let told = switch.set(Some("sometimes")).unwrap_err();
    insta::assert_snapshot!(told.to_string(), @r#"/sys/kernel/mm/transparent_hugepage/enabled: "sometimes" is not offered here; there is: always madvise never"#);
    for (trap, why) in [
        ("../proc/sys/vm/swappiness", "not a name"),
        ("kernel//mm", "not a name"),
        ("devices/x/block/vda/queue/scheduler", "kind queue"),
        ("module/zfs/parameters/zfs_nocacheflush", "module-parameter"),
        ("kernel/no_such", "this machine does not have it"),
    ] {
        let told = Switch::open(&session, &host, &sysfs(trap)).err().unwrap();
        assert!(told.to_string().contains(why), "{trap}: {told}");
    }
}
