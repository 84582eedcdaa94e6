//! Notes which units of systemd are enabled where they decide about a setting: a syslog daemon beside the journal, the
//! timer that checks md arrays, and the mode of libvirt's socket.

use super::lines_of_files::{exists, files, holds_enabled_units, read};
use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};
use std::path::Path;

const ENABLED: &str = "/etc/systemd/system";
/// Alias that each syslog daemon of Debian has, and the daemons themselves.
const SYSLOG: [&str; 4] = [
    "syslog.service",
    "multi-user.target.wants/rsyslog.service",
    "multi-user.target.wants/syslog-ng.service",
    "multi-user.target.wants/busybox-syslogd.service",
];
/// The timer belongs to the monitor of mdadm (mdcheck_start.timer, WantedBy).
const CHECK: [&str; 2] = [
    "mdmonitor.service.wants/mdcheck_start.timer",
    "timers.target.wants/mdcheck_start.timer",
];
const TIMER: &str = "mdcheck_start.timer";
const PACKAGE_UNITS: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];
/// Job of Debian 12; the package of Debian 13 has only the timer.
const MD_JOB: &str = "/etc/cron.d/mdadm";
const SOCKET: &str = "libvirtd.socket";
const LIBVIRTD: &str = "/etc/libvirt/libvirtd.conf";

pub(super) fn collect(g: &mut Gather<'_>) {
    // Without systemd, no unit is enabled.
    if exists(g, "/etc/systemd/journald.conf") || holds_enabled_units(g) {
        note_enabled(g, "units.syslog_daemon", &SYSLOG);
    }
    if exists(g, "/etc/default/mdadm") {
        note_enabled(g, "units.md_check", &CHECK);
    }
    note_md_timer(g);
    note_libvirt(g);
}

/// Notes whether the timer that checks md arrays is off on a system without the job of Debian 12.
fn note_md_timer(g: &mut Gather<'_>) {
    let is_there = PACKAGE_UNITS
        .iter()
        .find(|dir| exists(g, &format!("{dir}/{TIMER}")));
    let Some(dir) = is_there else { return };
    if exists(g, MD_JOB) || !holds_enabled_units(g) {
        return;
    }
    let own = format!("{ENABLED}/{TIMER}");
    let masked = g.host.link(Path::new(&own));
    let masked = masked.is_ok_and(|target| target == Path::new("/dev/null"));
    let linked = |unit: &&str| {
        let path = format!("{ENABLED}/{unit}");
        exists(g, &path) || g.host.link(Path::new(&path)).is_ok()
    };
    let off = masked || !CHECK.iter().any(linked);
    let place = match masked {
        true => own,
        false => format!("{dir}/{TIMER}"),
    };
    g.facts.known(
        "units.md_timer_off",
        off,
        FactKind::Configured,
        FactPlace::from(place),
    );
}

fn note_enabled(g: &mut Gather<'_>, fact: &str, units: &[&str]) {
    let found = units
        .iter()
        .map(|unit| format!("{ENABLED}/{unit}"))
        .find(|path| exists(g, path));
    let place = FactPlace::from(found.clone().unwrap_or_else(|| ENABLED.to_owned()));
    g.facts
        .known(fact, found.is_some(), FactKind::Configured, place);
}

/// Notes whether everybody may connect to libvirt's socket. If systemd opens the socket, the mode of the unit applies,
/// and `unix_sock_rw_perms` has no effect (libvirtd.conf).
fn note_libvirt(g: &mut Gather<'_>) {
    if !exists(g, LIBVIRTD) {
        return;
    }
    let wanted = format!("{ENABLED}/sockets.target.wants/{SOCKET}");
    let (bits, place) = match exists(g, &wanted) {
        true => mode_of_unit(g, wanted),
        false => mode_of_daemon(g),
    };
    g.facts.known(
        "units.libvirt_socket_open",
        bits & 0o002 != 0,
        FactKind::Configured,
        place,
    );
}

/// Returns the mode that libvirtd gives to its socket. The default is 0777 (libvirtd.conf).
fn mode_of_daemon(g: &mut Gather<'_>) -> (u32, FactPlace) {
    let mut mode = (0o777, FactPlace::from(LIBVIRTD.to_owned()));
    for line in read(g, "libvirtd", LIBVIRTD) {
        let Some((key, value)) = line.text.split_once('=') else {
            continue;
        };
        let bits = u32::from_str_radix(value.trim().trim_matches('"'), 8);
        if let ("unix_sock_rw_perms", Ok(bits)) = (key.trim(), bits) {
            mode = (bits, line.place);
        }
    }
    mode
}

/// Returns the mode of the socket unit and its drop-ins.
fn mode_of_unit(g: &mut Gather<'_>, wanted: String) -> (u32, FactPlace) {
    let unit = [ENABLED, "/usr/lib/systemd/system", "/lib/systemd/system"]
        .into_iter()
        .map(|dir| format!("{dir}/{SOCKET}"))
        .find(|path| exists(g, path));
    let mut all: Vec<String> = unit.into_iter().collect();
    all.extend(files(
        g,
        "libvirtd",
        &format!("{ENABLED}/{SOCKET}.d"),
        ".conf",
    ));
    // Without a line the mode is 0666 (systemd.socket(5)).
    let mut mode = (0o666, FactPlace::from(wanted));
    for path in all {
        for line in read(g, "libvirtd", &path) {
            let value = line.text.trim().strip_prefix("SocketMode=");
            let value = value.and_then(|value| u32::from_str_radix(value.trim(), 8).ok());
            if let Some(value) = value {
                mode = (value, line.place);
            }
        }
    }
    mode
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn get(files: &[(&str, &str)], key: &str) -> Option<bool> {
        let host = files
            .iter()
            .fold(Recorded::new(), |host, (path, text)| host.file(path, *text));
        let mut g = Gather::new(&host);
        collect(&mut g);
        g.facts.get(key).and_then(serde_json::Value::as_bool)
    }

    #[test]
    fn the_last_mode_of_the_socket_counts() {
        let conf = ("/etc/libvirt/libvirtd.conf", "auth_unix_rw = \"none\"\n");
        let link = (
            "/etc/systemd/system/sockets.target.wants/libvirtd.socket",
            "",
        );
        let unit = (
            "/lib/systemd/system/libvirtd.socket",
            "[Socket]\nSocketMode=0666\n",
        );
        let own = (
            "/etc/systemd/system/libvirtd.socket.d/a.conf",
            "[Socket]\nSocketMode=0660\n",
        );
        let key = "units.libvirt_socket_open";
        assert_eq!(get(&[conf, link, unit], key), Some(true));
        assert_eq!(get(&[conf, link, unit, own], key), Some(false));
        assert_eq!(get(&[conf, unit], key), Some(true));
        let group = (
            "/etc/libvirt/libvirtd.conf",
            "auth_unix_rw = \"none\"\nunix_sock_rw_perms = \"0770\"\n",
        );
        assert_eq!(get(&[group, unit], key), Some(false));
        assert_eq!(get(&[group, link, unit], key), Some(true));
    }

    #[test]
    fn enabled_daemons_and_timers() {
        let conf = ("/etc/systemd/journald.conf", "[Journal]\nStorage=none\n");
        let other = (
            "/etc/systemd/system/multi-user.target.wants/cron.service",
            "",
        );
        let key = "units.syslog_daemon";
        assert_eq!(get(&[conf, other], key), Some(false));
        let daemon = ("/etc/systemd/system/syslog.service", "");
        assert_eq!(get(&[conf, daemon], key), Some(true));
    }
}
