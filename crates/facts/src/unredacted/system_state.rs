//! Collects the state of the whole system: a pending reboot, failed units, time synchronisation, mounts that delay the
//! boot, system files that everyone may write, and running programs for which the catalogue has no rule.

use super::file_modes::read_modes;
use super::lines_of_files::{exists, files, note, read, read_readable};
use crate::collectors::fstab::FSTAB;
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeSet;
use std::path::Path;

/// Files that packages of Debian and Ubuntu write if an upgrade of the kernel or of common libraries requires a reboot.
const REBOOT: [&str; 2] = ["/run/reboot-required", "/var/run/reboot-required"];
const FAILED: [&str; 5] = [
    "systemctl",
    "list-units",
    "--failed",
    "--plain",
    "--no-legend",
];
/// Programs that synchronise the clock, by their name in `/proc/PID/comm` (at most 15 characters).
const CLOCKS: [&str; 9] = [
    "chronyd",
    "ntpd",
    "systemd-timesyn",
    "ptp4l",
    "phc2sys",
    "timemaster",
    "openntpd",
    "vmtoolsd",
    "VBoxService",
];
/// Types of network file systems.
const NETWORK: [&str; 9] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "sshfs",
    "fuse.sshfs",
    "glusterfs",
    "ceph",
    "9p",
];
/// File system types of SMB. `NO_WAIT` are the mount options that let the boot continue if the server is not reachable.
const SMB: [&str; 2] = ["cifs", "smb3"];
const NO_WAIT: [&str; 3] = ["nofail", "noauto", "x-systemd.automount"];
/// Directories from which root runs programs, and files that control access. Only root should be able to write to them.
const GUARDED: [&str; 26] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/etc",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/sudoers",
    "/etc/crontab",
    "/etc/cron.d",
    "/etc/systemd/system",
    "/etc/ld.so.preload",
    "/etc/group",
    "/etc/gshadow",
    "/etc/fstab",
    "/etc/profile",
    "/etc/environment",
    "/etc/cron.allow",
    "/etc/at.allow",
    "/etc/doas.conf",
    "/etc/exports",
    "/etc/hosts.allow",
    "/etc/ssh/sshd_config",
    "/etc/logrotate.conf",
    "/etc/security/access.conf",
    "/etc/rc.local",
];
const UNITS: &str = "/etc/systemd/system";
const SCRIPTS: [&str; 9] = [
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/etc/sudoers.d",
    "/etc/pam.d",
    "/etc/profile.d",
    "/etc/logrotate.d",
];

/// Server programs for which the catalogue has no rule, as (process name of at most 15 characters, description).
const WITHOUT_RULES: [(&str, &str); 19] = [
    ("master.cyrus", "mail server"),
    ("varnishd", "web cache"),
    ("caddy", "web server"),
    ("traefik", "web proxy"),
    ("envoy", "web proxy"),
    ("asterisk", "telephony server"),
    ("containerd", "container runtime"),
    ("consul", "service registry"),
    ("zabbix_server", "monitoring server"),
    ("beam.smp", "Erlang virtual machine (RabbitMQ, ejabberd)"),
    ("avahi-daemon", "mDNS responder"),
    ("xrdp", "remote desktop server"),
    ("tailscaled", "VPN"),
    ("zerotier-one", "VPN"),
    ("minio", "object storage"),
    ("glusterd", "cluster file system"),
    ("ceph-osd", "cluster storage"),
    ("ceph-mon", "cluster storage"),
    ("java", "Java virtual machine"),
];

pub(super) fn collect(g: &mut Gather<'_>) {
    if let Some(path) = REBOOT.into_iter().find(|path| exists(g, path)) {
        g.facts
            .known("system.reboot_required", true, FactKind::Runtime, path);
    }
    failed_units(g);
    note_processes(g);
    network_mounts(g);
    note_writable(g);
}

fn failed_units(g: &mut Gather<'_>) {
    if !exists(g, "/run/systemd/system") {
        return;
    }
    if let Ok(output) = g.try_ask(&FAILED)
        && output.success()
    {
        let text = output.text();
        let count = text.lines().filter(|line| !line.trim().is_empty()).count();
        g.facts.known(
            "system.failed_units",
            count,
            FactKind::Runtime,
            FactPlace::command(FAILED),
        );
    }
}

/// Notes running programs that no rule covers, and whether a program that synchronises the clock is running.
fn note_processes(g: &mut Gather<'_>) {
    let mut clock = None;
    let mut first = None;
    for entry in g.list("system.processes", "/proc") {
        let pid = lossy(&entry);
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let path = format!("/proc/{pid}/comm");
        // Processes may end at any time.
        let Ok(name) = g.host.read_text(Path::new(&path)) else {
            continue;
        };
        let name = name.trim();
        if pid == "1" {
            first = Some(name.to_owned());
        }
        if CLOCKS.contains(&name) {
            clock.get_or_insert(path.clone());
        }
        if let Some((name, what)) = WITHOUT_RULES.iter().find(|(known, _)| *known == name) {
            g.facts
                .known(format!("running.{name}"), *what, FactKind::Runtime, &*path);
        }
    }
    // A container has the clock of its host, and no init of a whole system.
    let contained = exists(g, "/run/systemd/container");
    if matches!(first.as_deref(), Some("systemd" | "init")) && !contained {
        let place = clock.clone().unwrap_or_else(|| "/proc".to_owned());
        g.facts.known(
            "system.clock_kept",
            clock.is_some(),
            FactKind::Runtime,
            &*place,
        );
    }
}

fn network_mounts(g: &mut Gather<'_>) {
    let lines = read(g, "network_mount", FSTAB);
    for (number, line) in lines.iter().enumerate() {
        let fields: Vec<&str> = line.text.split_whitespace().collect();
        let [source, _, kind, options, ..] = fields[..] else {
            continue;
        };
        if source.starts_with('#') || !NETWORK.contains(&kind) {
            continue;
        }
        let has = |wanted: &[&str]| options.split(',').any(|option| wanted.contains(&option));
        // Of options that exclude each other, the last applies.
        let last = |wanted: &[&str]| {
            let mut all = options.split(',').rev();
            all.find(|option| wanted.contains(option))
        };
        let version = options
            .split(',')
            .rev()
            .find_map(|one| one.strip_prefix("vers="));
        let (is_nfs, is_smb) = (kind.starts_with("nfs"), SMB.contains(&kind));
        let soft = last(&["soft", "softerr", "hard"]).is_some_and(|one| one != "hard");
        let soft_writes = is_nfs && soft && last(&["ro", "rw"]) != Some("ro");
        let password = is_smb && options.split(',').any(holds_password);
        note(
            g,
            "network_mount",
            &(number + 1).to_string(),
            &line.place,
            &[
                ("waits", (!has(&NO_WAIT)).into()),
                ("soft_writes", soft_writes.into()),
                ("smb_1", (is_smb && version == Some("1.0")).into()),
                ("password", password.into()),
            ],
        );
    }
}

/// Returns whether an option of mount.cifs(8) contains a password: `password=`, or `user=NAME%PASSWORD`.
fn holds_password(option: &str) -> bool {
    let Some((name, value)) = option.split_once('=') else {
        return false;
    };
    match name {
        "password" | "pass" | "password2" => !value.is_empty(),
        "user" | "username" => value
            .split_once('%')
            .is_some_and(|(_, password)| !password.is_empty()),
        _ => false,
    }
}

/// Notes system files and directories that everyone may write.
fn note_writable(g: &mut Gather<'_>) {
    let mut all: Vec<String> = GUARDED
        .into_iter()
        .filter(|path| exists(g, path))
        .map(str::to_owned)
        .collect();
    for dir in SCRIPTS {
        all.extend(files(g, "system.guarded", dir, ""));
    }
    all.extend(files_of_sshd(g));
    if all.is_empty() {
        return;
    }
    all.extend(own_units(g));
    let all: BTreeSet<String> = all.into_iter().collect();
    let (modes, of_tree) = read_modes(g, &all);
    // Each tree has this directory, also one without any of the files.
    if of_tree && modes.keys().all(|path| path.as_str() == "/etc") {
        return;
    }
    // A copy may make all files writable.
    let kept = modes.get("/etc").is_none_or(|mode| mode & 0o002 == 0);
    if of_tree && !kept {
        return;
    }
    for (number, (path, mode)) in modes.iter().enumerate() {
        let properties = [("by_all", (mode & 0o002 != 0).into())];
        note(
            g,
            "system.guarded",
            &(number + 1).to_string(),
            &FactPlace::from(path.as_str()),
            &properties,
        );
    }
}

/// Returns the files of sshd in /etc, and those that name keys, authorities and principals.
fn files_of_sshd(g: &mut Gather<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let sshd = std::iter::once("/etc/ssh/sshd_config".to_owned());
    let sshd: Vec<String> = sshd
        .chain(files(
            g,
            "system.guarded",
            "/etc/ssh/sshd_config.d",
            ".conf",
        ))
        .collect();
    for path in sshd {
        for line in read_readable(g, &path) {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            let [keyword, paths @ ..] = &words[..] else {
                continue;
            };
            let keyword = keyword.to_ascii_lowercase();
            let known = [
                "trustedusercakeys",
                "authorizedprincipalsfile",
                "authorizedkeysfile",
                "revokedkeys",
            ];
            if !known.contains(&keyword.as_str()) {
                continue;
            }
            for path in paths.iter().map(|path| path.trim_matches('"')) {
                match path.split_once("/%") {
                    Some((dir, _)) if dir.starts_with("/etc/") => {
                        all.extend(files(g, "system.guarded", dir, ""));
                    }
                    None if path.starts_with("/etc/") => all.push(path.to_owned()),
                    _ => {}
                }
            }
        }
        all.push(path);
    }
    all.retain(|path| exists(g, path));
    all
}

/// Returns the units and drop-ins of an administrator. A link is another name of a unit of a package.
fn own_units(g: &mut Gather<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for end in [".service", ".timer", ".socket"] {
        all.extend(files(g, "system.guarded", UNITS, end));
    }
    for dir in files(g, "system.guarded", UNITS, ".service.d") {
        all.extend(files(g, "system.guarded", &dir, ".conf"));
    }
    all.retain(|path| g.host.link(Path::new(path)).is_err());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "trees of files with their modes")]
    fn a_tree_without_files_says_nothing_about_rights() {
        for (file, expected) in [(None, 0), (Some("cron.d"), 2)] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("etc")).unwrap();
            if let Some(name) = file {
                std::fs::create_dir(dir.path().join("etc").join(name)).unwrap();
            }
            let host = assay_host::Root::open(dir.path()).unwrap();
            let mut g = Gather::new(&host);
            note_writable(&mut g);
            let all = g.facts.map.keys();
            assert_eq!(all.filter(|key| key.ends_with(".by_all")).count(), expected);
        }
    }

    #[test]
    fn programs_and_the_clock() {
        let host = Recorded::new()
            .file("/proc/1/comm", "systemd\n")
            .file("/proc/7/comm", "varnishd\n")
            .file("/proc/8/comm", "secret-agent\n");
        let mut g = Gather::new(&host);
        note_processes(&mut g);
        assert_eq!(g.facts.get("system.clock_kept"), Some(&false.into()));
        assert_eq!(g.facts.str("running.varnishd"), Some("web cache"));
        assert_eq!(g.facts.map.len(), 2);
        let host = host.file("/proc/9/comm", "systemd-timesyn\n");
        let mut g = Gather::new(&host);
        note_processes(&mut g);
        assert_eq!(g.facts.get("system.clock_kept"), Some(&true.into()));
    }

    #[test]
    fn network_mounts_and_their_near_misses() {
        for (line, expected) in [
            ("h:/a /a nfs defaults 0 0", vec!["waits"]),
            ("h:/b /b nfs4 rw,nofail 0 0", vec![]),
            ("//h/c /c cifs noauto 0 0", vec![]),
            ("/dev/sda1 / ext4 defaults 0 1", vec![]),
            ("h:/a /a nfs4 softerr,nofail 0 0", vec!["soft_writes"]),
            ("h:/a /a nfs ro,soft,nofail 0 0", vec![]),
            ("h:/a /a nfs4 soft,hard,nofail 0 0", vec![]),
            ("//h/c /c cifs vers=1.0,nofail 0 0", vec!["smb_1"]),
            ("//h/c /c cifs vers=1.0,vers=3.0,nofail 0 0", vec![]),
            ("//h/c /c cifs user=me%secret,nofail 0 0", vec!["password"]),
            ("//h/c /c smb3 guest,password=,nofail 0 0", vec![]),
        ] {
            let host = Recorded::new().file(FSTAB, format!("{line}\n"));
            let mut g = Gather::new(&host);
            network_mounts(&mut g);
            let holds = g
                .facts
                .map
                .iter()
                .filter(|(_, fact)| fact.value == assay_model::FactValue::Known(true.into()));
            let names: Vec<&str> = holds
                .filter_map(|(key, _)| key.rsplit('.').next())
                .collect();
            assert_eq!(names, expected, "{line}");
        }
    }

    #[test]
    fn files_of_sshd_and_its_keys() {
        let config =
            "TrustedUserCAKeys /etc/ssh/trusted/ca.pub\nAuthorizedPrincipalsFile /etc/ssh/p/%u\n";
        let host = Recorded::new()
            .file("/etc/ssh/sshd_config", config)
            .file("/etc/ssh/trusted/ca.pub", "ssh-ed25519 AAAA\n")
            .file("/etc/ssh/p/alice", "alice\n");
        let mut g = Gather::new(&host);
        let all = files_of_sshd(&mut g);
        for path in ["/etc/ssh/trusted/ca.pub", "/etc/ssh/p/alice"] {
            assert!(all.iter().any(|one| one == path), "{all:?}");
        }
    }
}
