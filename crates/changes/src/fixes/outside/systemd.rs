//! systemd: installs two services. A timer starts one of them while the machine runs; the other starts at boot before
//! sshd. They are separate, because a service that sshd waits for could not reload a running sshd. All units are plain
//! files in /etc, so they survive a reboot. No `daemon-reload` is needed, because systemd reads an unknown unit when
//! the unit's name is first used.

use super::{OutsideError, Places, WatchedChange, sync_dir, write_file};
use assay_host::{HostMut, Limits};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

const UNITS: &str = "/etc/systemd/system";
const LIMIT: Duration = Duration::from_secs(30);

/// Checks whether systemd is process 1 (sd_booted(3)).
pub(super) fn check_running(host: &dyn HostMut) -> Result<(), String> {
    match host.exists(Path::new("/run/systemd/system")) {
        Ok(true) => Ok(()),
        _ => Err("systemd does not run".to_owned()),
    }
}

/// A unit, and the target that starts the unit at boot, if any.
struct Unit {
    name: String,
    target: Option<&'static str>,
    text: String,
}

impl Unit {
    fn path(&self) -> String {
        format!("{UNITS}/{}", self.name)
    }

    fn link(&self) -> Option<String> {
        let target = self.target?;
        Some(format!("{UNITS}/{target}.wants/{}", self.name))
    }
}

fn list_units(order: &WatchedChange) -> [Unit; 3] {
    let name = order.name();
    [
        Unit {
            name: format!("{name}.service"),
            target: None,
            text: service_unit(order, false),
        },
        Unit {
            name: format!("{name}.timer"),
            target: Some("timers.target"),
            text: timer_unit(order),
        },
        Unit {
            name: format!("{name}-boot.service"),
            target: Some("multi-user.target"),
            text: service_unit(order, true),
        },
    ]
}

/// Returns the paths of the units and of the symbolic links that start them at boot.
pub(super) fn list_paths(order: &WatchedChange) -> Vec<String> {
    let units = list_units(order);
    let links = units.iter().filter_map(Unit::link);
    units.iter().map(Unit::path).chain(links).collect()
}

pub(super) fn arm_timer(
    order: &WatchedChange,
    places: &Places,
    host: &dyn HostMut,
) -> Result<(), OutsideError> {
    write_units(order, places)?;
    let name = order.name();
    // Runs the first check now, so that an obstacle to starting the copy (noexec, SELinux, a mount that
    // fails) is known before anything is changed.
    for unit in [format!("{name}.service"), format!("{name}.timer")] {
        run_systemctl(host, &["start", &unit]).map_err(|reason| {
            let reason = format!("systemctl start {unit}: {reason}");
            OutsideError::file(Path::new(UNITS))(io::Error::other(reason))
        })?;
    }
    Ok(())
}

/// Writes the units and the symbolic links.
pub(super) fn write_units(order: &WatchedChange, places: &Places) -> Result<(), OutsideError> {
    for unit in list_units(order) {
        let path = places.at(&unit.path());
        make_above(&path)
            .and_then(|_| write_file(&path, unit.text.as_bytes(), 0o644))
            .map_err(OutsideError::file(&path))?;
        let Some(link) = unit.link().map(|link| places.at(&link)) else {
            continue;
        };
        make_above(&link)
            .and_then(|above| {
                std::os::unix::fs::symlink(format!("../{}", unit.name), &link)?;
                sync_dir(above)
            })
            .map_err(OutsideError::file(&link))?;
    }
    Ok(())
}

fn make_above(path: &Path) -> io::Result<&Path> {
    let above = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(above)?;
    Ok(above)
}

fn service_unit(order: &WatchedChange, at_boot: bool) -> String {
    let WatchedChange { session, label, .. } = order;
    let journal = order.journal.to_string_lossy();
    let files = order.files.iter().map(String::as_str);
    let mounts: Vec<_> = [super::HOME, &*journal]
        .into_iter()
        .chain(files)
        .map(|path| quote_path(&format!("/{}", path.trim_start_matches('/'))))
        .collect();
    let (mounts, command) = (mounts.join(" "), order.command());
    let label = label.replace('%', "%%").replace(['\n', '\\'], " ");
    // Ordering before a socket that starts sshd is impossible, because sockets start before this service's
    // own dependencies.
    let (before, install) = match at_boot {
        true => (
            "Before=ssh.service sshd.service\n",
            "\n[Install]\nWantedBy=multi-user.target\n",
        ),
        false => ("", ""),
    };
    format!(
        "# Made by assay for a change that waits for its confirmation; it goes with the change.\n\
         [Unit]\n\
         Description=Undo change {session} of assay unless it is confirmed ({label})\n\
         RequiresMountsFor={mounts}\n\
         After=local-fs.target\n\
         {before}\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={command}\n\
         TimeoutStartSec=15min\n\
         {install}"
    )
}

fn timer_unit(order: &WatchedChange) -> String {
    let (session, seconds) = (&order.session, order.interval().as_secs().max(1));
    format!(
        "# Made by assay for a change that waits for its confirmation; it goes with the change.\n\
         [Unit]\n\
         Description=Look after change {session} of assay until it is confirmed\n\
         \n\
         [Timer]\n\
         OnActiveSec={seconds}s\n\
         OnUnitInactiveSec={seconds}s\n\
         AccuracySec=1s\n\
         \n\
         [Install]\n\
         WantedBy=timers.target\n"
    )
}

/// Quotes a path for use as one word in a unit file (systemd.syntax(7)).
fn quote_path(path: &str) -> String {
    let text = path
        .replace('%', "%%")
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    match text.contains([' ', '\'', '"', '\t']) {
        true => format!("\"{text}\""),
        false => text,
    }
}

/// Stops the timer. The service is not stopped, because it may be the caller.
pub(super) fn stop_timer(order: &WatchedChange, host: &dyn HostMut) {
    let _ = run_systemctl(
        host,
        &["stop", "--no-block", &format!("{}.timer", order.name())],
    );
}

/// Resets the failed state of a service.
pub(super) fn forget_failures(order: &WatchedChange, host: &dyn HostMut) {
    for service in list_units(order)
        .iter()
        .filter(|unit| unit.name.ends_with(".service"))
    {
        let _ = run_systemctl(host, &["reset-failed", &service.name]);
    }
}

fn run_systemctl(host: &dyn HostMut, words: &[&str]) -> Result<(), String> {
    let argv: Vec<&OsStr> = std::iter::once("systemctl")
        .chain(words.iter().copied())
        .map(OsStr::new)
        .collect();
    match host.run(&argv, Limits { timeout: LIMIT }) {
        Ok(output) if output.success() => Ok(()),
        Ok(output) => Err(output.complaint()),
        Err(error) => Err(error.to_string()),
    }
}
