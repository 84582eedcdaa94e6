//! Collects libraries that running programs still use although their files were deleted, for example by an update
//! without a restart (`/proc/PID/maps`, proc_pid_maps(5)).

use crate::gather::{Gather, lossy};
use assay_host::HostError;
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Suffix that the kernel appends to the path of a deleted file.
const GONE: &str = " (deleted)";
/// Error number of a read from /proc after the process has ended (ESRCH).
const ESRCH: i32 = 3;

pub(crate) fn collect(g: &mut Gather<'_>) {
    // Deleted libraries for each unit whose processes use them.
    let mut units: BTreeMap<String, (BTreeSet<String>, Vec<String>)> = BTreeMap::new();
    let mut closed: Vec<HostError> = Vec::new();
    for entry in g.list("mapped", "/proc") {
        let pid = lossy(&entry);
        if pid.is_empty() || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        // Processes may end at any time; an ended process uses no library.
        let maps = match g.host.read_text(Path::new(&format!("/proc/{pid}/maps"))) {
            Ok(maps) => maps,
            Err(error) => {
                closed.extend(error_unless_ended(error));
                continue;
            }
        };
        let libraries: BTreeSet<String> = maps
            .lines()
            .filter_map(find_deleted_library)
            .map(name_of)
            .collect();
        if libraries.is_empty() {
            continue;
        }
        let group = g.host.read_text(Path::new(&format!("/proc/{pid}/cgroup")));
        let unit = match group {
            Ok(text) => parse_unit(&text),
            Err(error) => {
                closed.extend(error_unless_ended(error));
                None
            }
        };
        let unit = unit.unwrap_or_else(|| OTHERS.to_owned());
        let (all, pids) = units.entry(unit).or_default();
        all.extend(libraries);
        pids.push(pid);
    }
    if let Some(first) = closed.first() {
        let why = self::describe_unreadable(closed.len(), first);
        g.facts
            .unknown("mapped", why, FactKind::Runtime, "/proc/PID/maps");
    }
    for (unit, (libraries, pids)) in units {
        let subject = ["mapped", &unit];
        let key = |name: &str| format!("mapped.{unit}.{name}");
        let place = FactPlace::from(format!("/proc/{}/maps", pids[0]));
        let libraries: Vec<Value> = libraries.into_iter().map(Value::from).collect();
        g.facts
            .known(key("gone"), libraries, FactKind::Runtime, place.clone());
        g.facts
            .known(key("processes"), pids.len(), FactKind::Runtime, place);
        if let Some(service) = find_restartable(&unit) {
            let place = FactPlace::from(format!("/proc/{}/cgroup", pids[0]));
            g.facts
                .known(key("service"), service, FactKind::Runtime, place);
        }
        g.about(subject);
    }
}

/// Returns the service that must be restarted; `None` for user sessions. Also returns `None` for services whose restart
/// disrupts the machine, its network or its sessions (needrestart 3.6, /etc/needrestart/needrestart.conf:
/// `override_rc`).
fn find_restartable(unit: &str) -> Option<&str> {
    const NOT: [&str; 43] = [
        "dbus",
        "gdm",
        "kdm",
        "nodm",
        "sddm",
        "wdm",
        "xdm",
        "lightdm",
        "slim",
        "lxdm",
        "bird",
        "network",
        "NetworkManager",
        "ModemManager",
        "wpa_supplicant",
        "openvpn",
        "quagga",
        "frr",
        "tinc",
        "openswan",
        "freeswan",
        "libreswan",
        "strongswan",
        "bluetooth",
        "getty@",
        "serial-getty@",
        "user@",
        "zfs-fuse",
        "mythtv-backend",
        "xendomains",
        "lxcfs",
        "libvirt",
        "virtlogd",
        "virtlockd",
        "docker",
        "emergency.service",
        "rescue.service",
        "elogind",
        "apt-daily",
        "unattended-upgrades",
        "cron-",
        "rc-local",
        "systemd-logind",
    ];
    let is_service = unit.ends_with(".service");
    (is_service && !NOT.iter().any(|name| unit.starts_with(name))).then_some(unit)
}

/// Describes processes that could not be read by their number and the error of the first one.
pub(crate) fn describe_unreadable(count: usize, first: &HostError) -> String {
    let why = first.reason();
    format!("processes that cannot be looked into: {count} ({why})")
}

/// Returns the error unless the process has ended. An ended process uses no library, so its error does not matter.
pub(crate) fn error_unless_ended(error: HostError) -> Option<HostError> {
    let gone = error.is_absent() || error.errno() == Some(ESRCH);
    (!gone).then_some(error)
}

/// Label of processes that no system service started.
const OTHERS: &str = "sessions and others";

/// Returns the path of the deleted library in a line of /proc/PID/maps, if it is a system library.
fn find_deleted_library(line: &str) -> Option<&str> {
    let path = line.strip_suffix(GONE)?;
    let path = &path[path.find('/')?..];
    let dirs = [
        "/usr/lib/",
        "/lib/",
        "/usr/lib64/",
        "/lib64/",
        "/usr/local/lib/",
    ];
    let library = path.ends_with(".so") || path.contains(".so.");
    (library && dirs.iter().any(|dir| path.starts_with(dir)) && is_plain_path(path)).then_some(path)
}

fn is_plain_path(path: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte);
    path.len() <= 200 && path.bytes().all(known)
}

fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Returns the system service of a line such as `0::/system.slice/nginx.service`.
fn parse_unit(cgroup: &str) -> Option<String> {
    let line = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let unit = line.strip_prefix("/system.slice/")?;
    let unit = unit.split('/').rfind(|part| part.ends_with(".service"))?;
    is_plain_path(&unit.replace('@', "-")).then(|| unit.to_owned())
}

/// Redacts a line of /proc/PID/maps: keeps the names of deleted libraries.
pub(crate) fn redact(line: &str) -> String {
    find_deleted_library(line).map_or_else(String::new, |path| format!("{path}{GONE}"))
}

/// Redacts the control group of a process: keeps only the name of a system service.
pub(crate) fn redact_group(line: &str) -> String {
    parse_unit(line).map_or_else(String::new, |unit| format!("0::/system.slice/{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of /proc/PID/maps of Linux 6.1.
    const LINES: [&str; 5] = [
        "7f1c0a200000-7f1c0a2a1000 r-xp 00000000 08:01 1441832   /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)",
        "7f1c0a400000-7f1c0a401000 r--p 00000000 08:01 1441833   /usr/lib/x86_64-linux-gnu/libz.so.1.2.13",
        "7f1c0a500000-7f1c0a501000 rw-s 00000000 00:01 4242      /memfd:secret.so (deleted)",
        "7f1c0a600000-7f1c0a601000 rw-s 00000000 00:01 4243      /dev/zero (deleted)",
        "7f1c0a700000-7f1c0a701000 r-xp 00000000 08:01 99        /home/someone/lib.so (deleted)",
    ];

    #[test]
    fn libraries_of_the_system_that_are_gone() {
        let found: Vec<&str> = LINES
            .iter()
            .filter_map(|line| find_deleted_library(line))
            .collect();
        assert_eq!(found, ["/usr/lib/x86_64-linux-gnu/libssl.so.3"]);
        for line in LINES {
            let kept = redact(line);
            assert_eq!(redact(&kept), kept);
            assert_eq!(find_deleted_library(&kept), find_deleted_library(line));
        }
    }

    #[test]
    fn only_what_is_a_service_can_be_restarted() {
        for unit in [
            "nginx.service",
            "postfix@-.service",
            "postgresql@15-main.service",
        ] {
            assert_eq!(find_restartable(unit), Some(unit));
        }
        for unit in [
            OTHERS,
            "dbus.service",
            "dbus-broker.service",
            "gdm3.service",
            "getty@tty1.service",
            "user@1000.service",
            "NetworkManager.service",
        ] {
            assert_eq!(find_restartable(unit), None);
        }
    }

    #[test]
    fn services_are_named_and_users_are_not() {
        let named = "0::/system.slice/nginx.service";
        assert_eq!(parse_unit(named).as_deref(), Some("nginx.service"));
        let template = "0::/system.slice/system-openvpn.slice/openvpn-server@office.service";
        assert_eq!(
            parse_unit(template).as_deref(),
            Some("openvpn-server@office.service")
        );
        let user = "0::/user.slice/user-1000.slice/session-2.scope";
        assert_eq!(
            (parse_unit(user), redact_group(user)),
            (None, String::new())
        );
        assert_eq!(
            redact_group(&redact_group(template)),
            redact_group(template)
        );
    }
}
