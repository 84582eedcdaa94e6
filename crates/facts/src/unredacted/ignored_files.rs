//! Finds files that programs skip because of their names: cron jobs, sudo rules, kernel settings, drop-ins of systemd,
//! and limits. Names that mark a
//! backup or a disabled file are ignored.

use super::lines_of_files::{exists, note, read};
use crate::gather::{Gather, lossy};
use assay_host::FileKind;
use assay_model::FactPlace;
use std::path::Path;

/// Directories of which cron and run-parts read only files whose names consist of letters, digits, `_` and `-`.
const CRON: [&str; 5] = [
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
];
const UNITS: &str = "/etc/systemd/system";
/// Ends of the names of directories with drop-ins.
const UNIT_DIRS: [&str; 5] = [
    ".service.d",
    ".socket.d",
    ".timer.d",
    ".mount.d",
    ".slice.d",
];
/// File name endings of files that an administrator probably disabled on purpose.
const ASIDE: [&str; 20] = [
    "~",
    ".bak",
    ".old",
    ".off",
    ".disabled",
    ".orig",
    ".save",
    ".dpkg-old",
    ".dpkg-dist",
    ".dpkg-new",
    ".ucf-dist",
    ".ucf-old",
    ".rpmnew",
    ".rpmsave",
    ".rpmorig",
    ".pacnew",
    ".pacsave",
    ".backup",
    ".swp",
    ".example",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let debian =
        exists(g, "/etc/debian_version") || exists(g, "/var/lib/dpkg/status") || is_like_debian(g);
    if debian {
        for dir in CRON {
            note_all(g, "cron", dir, |name| {
                let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
                name.bytes().all(known)
            });
        }
    }
    note_all(g, "sudo", "/etc/sudoers.d", |name| !name.contains('.'));
    note_all(g, "kernel", "/etc/sysctl.d", |name| name.ends_with(".conf"));
    note_settings(g);
    if !reads_all_names(g) {
        note_all(g, "kernel", "/etc/modprobe.d", |name| {
            name.ends_with(".conf")
        });
    }
}

/// Notes drop-ins of systemd and of PAM, of which only files with an ending are read.
fn note_settings(g: &mut Gather<'_>) {
    let mut dirs = vec!["/etc/security/limits.d".to_owned()];
    for name in [
        "journald",
        "logind",
        "resolved",
        "timesyncd",
        "system",
        "user",
    ] {
        dirs.push(format!("/etc/systemd/{name}.conf.d"));
    }
    let units = g.list("ignored_file", UNITS);
    let mut units: Vec<String> = units.iter().map(|name| lossy(name)).collect();
    units.retain(|name| UNIT_DIRS.iter().any(|end| name.ends_with(end)));
    units.sort();
    dirs.extend(units.iter().map(|name| format!("{UNITS}/{name}")));
    for dir in dirs {
        note_all(g, "settings", &dir, |name| name.ends_with(".conf"));
    }
}

/// Returns whether this Debian uses module-init-tools (before Debian 7), which reads files of any name.
fn reads_all_names(g: &mut Gather<'_>) -> bool {
    let lines = read(g, "ignored_file", "/etc/debian_version");
    let version = lines
        .first()
        .and_then(|line| line.text.trim().split('.').next());
    version
        .and_then(|major| major.parse::<u32>().ok())
        .is_some_and(|major| major < 7)
}

/// Returns whether a name indicates that the file was disabled on purpose.
pub(super) fn is_aside(name: &str) -> bool {
    let ending = name.split_once('.').map_or("", |(_, ending)| ending);
    ASIDE.iter().any(|end| name.ends_with(end))
        || ending.starts_with("no_")
        || ending.starts_with("no-")
}

/// Returns whether os-release(5) contains Debian or a derived system.
pub(super) fn is_like_debian(g: &mut Gather<'_>) -> bool {
    read(g, "ignored_file", "/etc/os-release")
        .iter()
        .any(|line| {
            let (name, value) = line.text.split_once('=').unwrap_or_default();
            let value = value.trim_matches(['"', '\'']);
            matches!(name, "ID" | "ID_LIKE")
                && value
                    .split(' ')
                    .any(|one| one == "debian" || one == "ubuntu")
        })
}

fn note_all(g: &mut Gather<'_>, reader: &str, dir: &str, is_read: fn(&str) -> bool) {
    let mut names: Vec<String> = g
        .list("ignored_file", dir)
        .iter()
        .map(|name| lossy(name))
        .collect();
    names.sort();
    for name in names.iter().take(1000) {
        let low = name.to_lowercase();
        if name.starts_with('.') || low.starts_with("readme") || is_aside(&low) {
            continue;
        }
        let stat = g.host.stat(Path::new(&format!("{dir}/{name}")));
        if stat.is_ok_and(|stat| stat.kind == FileKind::Directory) {
            continue;
        }
        let place = FactPlace::from(format!("{dir}/{name}"));
        let kind = format!("ignored_file.{reader}");
        let which = format!("{}/{name}", dir.rsplit('/').next().unwrap_or_default());
        note(
            g,
            &kind,
            &which.replace('.', "-"),
            &place,
            &[("ignored", (!is_read(name)).into())],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn names_that_are_skipped() {
        let host = Recorded::new()
            .file("/etc/debian_version", "12.5\n")
            .file("/etc/cron.daily/backup.sh", "#!/bin/sh\n")
            .file("/etc/cron.daily/backup.sh.bak", "#!/bin/sh\n")
            .file("/etc/cron.daily/man-db", "#!/bin/sh\n")
            .file("/etc/sudoers.d/README", "#\n")
            .file("/etc/sudoers.d/bob.smith", "bob ALL=(ALL) ALL\n")
            .file("/etc/sysctl.d/90-own", "vm.swappiness=1\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        let ignored = g.facts.map.iter().filter(|(key, fact)| {
            key.ends_with(".ignored") && fact.value == assay_model::FactValue::Known(true.into())
        });
        assert_eq!(ignored.count(), 3, "{:?}", g.facts.map.keys());
    }

    #[test]
    fn names_that_are_read_or_skipped_on_purpose() {
        let ignored = |version: &str| {
            let host = Recorded::new()
                .file("/etc/debian_version", version)
                .file("/etc/cron.daily/find.no_run_on_bootcd", "#!/bin/sh\n")
                .file("/etc/modprobe.d/aliases", "alias a b\n")
                .file("/etc/modprobe.d/arch/i386", "alias a b\n");
            let mut g = Gather::new(&host);
            collect(&mut g);
            let ignored =
                |fact: &assay_model::Fact| fact.value == assay_model::FactValue::Known(true.into());
            g.facts.map.values().filter(|fact| ignored(fact)).count()
        };
        assert_eq!(ignored("12.5\n"), 1);
        assert_eq!(ignored("trixie/sid\n"), 1);
        assert_eq!(ignored("4.0\n"), 0);
    }
}
