//! Checks whether a timer or cron job starts the configured programs for snapshots and backups.

use super::lines_of_files::{exists, files, holds_enabled_units, note, read};
use crate::gather::{Gather, lossy};
use std::path::Path;

/// Programs that copy or archive data.
const COPIERS: [&str; 8] = [
    "borg",
    "borgmatic",
    "restic",
    "rsnapshot",
    "duplicity",
    "kopia",
    "proxmox-backup-client",
    "rdiff-backup",
];
const UNITS: &str = "/etc/systemd/system";
/// Jobs of Proxmox VE.
const PVE_JOBS: &str = "/etc/pve/jobs.cfg";

/// A program, its configuration file, and a function that returns whether a line of this file means that the program is
/// configured.
type Program = (&'static str, &'static str, fn(&str) -> bool);

const PROGRAMS: [Program; 3] = [
    ("sanoid", "/etc/sanoid/sanoid.conf", |line| {
        line.starts_with('[') && !line.starts_with("[template_")
    }),
    ("rsnapshot", "/etc/rsnapshot.conf", |line| {
        // The file of the package has its snapshots below /var/cache.
        line.starts_with("snapshot_root") && !line.contains("/var/cache/")
    }),
    ("borgmatic", "/etc/borgmatic/config.yaml", |line| {
        line.trim_start().starts_with("repositories:")
    }),
];
const TIMERS: [&str; 2] = [
    "/etc/systemd/system/timers.target.wants",
    "/etc/systemd/system/multi-user.target.wants",
];
const JOBS: [&str; 6] = [
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/var/spool/cron/crontabs",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    for (program, path, is_set_up) in PROGRAMS {
        if !exists(g, path) {
            continue;
        }
        let lines = read(g, "backup", path);
        let Some(line) = lines.iter().find(|line| is_set_up(&line.text)) else {
            continue;
        };
        let started = is_started(g, program);
        note(
            g,
            "backup",
            program,
            &line.place,
            &[("started", started.into())],
        );
    }
    note_timers(g);
    note_proxmox(g);
}

/// Notes timers of an administrator that start a backup.
fn note_timers(g: &mut Gather<'_>) {
    if !holds_enabled_units(g) {
        return;
    }
    for path in files(g, "backup", UNITS, ".timer") {
        if g.host.link(Path::new(&path)).is_ok() {
            continue;
        }
        let lines = read(g, "backup", &path);
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let value = |key: &str| {
            let mut values = lines
                .iter()
                .filter_map(|line| line.text.trim().strip_prefix(key));
            values.next().map(|value| value.trim().to_owned())
        };
        let own = format!("{}.service", name.trim_end_matches(".timer"));
        let unit = value("Unit=").unwrap_or(own);
        let copies = read(g, "backup", &format!("{UNITS}/{unit}"))
            .iter()
            .any(|line| {
                let command = line
                    .text
                    .trim()
                    .strip_prefix("ExecStart=")
                    .unwrap_or_default();
                let program = command.trim_start_matches(['-', '@', ':', '+', '!']);
                let program = program.split_whitespace().next().unwrap_or_default();
                COPIERS.contains(&program.rsplit('/').next().unwrap_or_default())
            });
        let (Some(first), true) = (lines.first(), copies) else {
            continue;
        };
        let started = is_wanted(g, &name) || is_started(g, &unit);
        let which = name.replace('.', "-");
        note(
            g,
            "backup",
            &which,
            &first.place,
            &[("started", started.into())],
        );
    }
}

/// Returns whether a target starts a unit.
pub(super) fn is_wanted(g: &mut Gather<'_>, unit: &str) -> bool {
    let dirs = g.list("backup", UNITS);
    let mut wants = dirs.iter().map(|dir| lossy(dir));
    wants.any(|dir| {
        let is_list = dir.ends_with(".wants") || dir.ends_with(".requires");
        let names = g.host.list(Path::new(&format!("{UNITS}/{dir}")));
        is_list && names.is_ok_and(|names| names.iter().any(|name| lossy(name) == unit))
    })
}

/// Notes whether one of the backup jobs of Proxmox VE is on.
fn note_proxmox(g: &mut Gather<'_>) {
    let lines = read(g, "backup", PVE_JOBS);
    let mut jobs: Vec<bool> = Vec::new();
    for line in &lines {
        let text = line.text.trim();
        if !line.text.starts_with(char::is_whitespace) && text.starts_with("vzdump:") {
            jobs.push(true);
        } else if let (Some(on), Some(("enabled", value))) =
            (jobs.last_mut(), text.split_once(char::is_whitespace))
        {
            *on = value.trim() != "0";
        }
    }
    let first = lines
        .iter()
        .find(|line| line.text.trim() == "enabled 0")
        .or(lines.first());
    if let (Some(first), false) = (first, jobs.is_empty()) {
        let started = jobs.contains(&true) || is_started(g, "vzdump");
        note(
            g,
            "backup",
            "vzdump",
            &first.place,
            &[("started", started.into())],
        );
    }
}

fn is_started(g: &mut Gather<'_>, program: &str) -> bool {
    let names: Vec<String> = TIMERS
        .iter()
        .flat_map(|dir| g.host.list(std::path::Path::new(dir)).unwrap_or_default())
        .map(|name| lossy(&name))
        .collect();
    if names.iter().any(|name| name.contains(program)) {
        return true;
    }
    let mut jobs = vec!["/etc/crontab".to_owned()];
    for dir in JOBS {
        jobs.extend(files(g, "backup", dir, ""));
    }
    // A timer with another name may start a unit that runs the program.
    jobs.extend(files(g, "backup", "/etc/systemd/system", ".service"));
    jobs.iter().any(|path| {
        let lines = read(g, "backup", path);
        lines
            .iter()
            .any(|line| !line.text.trim_start().starts_with('#') && line.text.contains(program))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn what_starts_them() {
        let set_up =
            || Recorded::new().file("/etc/rsnapshot.conf", "# x\nsnapshot_root\t/srv/backup/\n");
        for (host, started) in [
            (set_up(), Some(false)),
            (
                set_up().file(
                    "/etc/cron.d/rsnapshot",
                    "# 0 4 * * * root rsnapshot daily\n",
                ),
                Some(false),
            ),
            (
                set_up().file("/etc/cron.d/rsnapshot", "0 4 * * * root rsnapshot daily\n"),
                Some(true),
            ),
            (
                Recorded::new().file(
                    "/etc/rsnapshot.conf",
                    "snapshot_root\t/var/cache/rsnapshot/\n",
                ),
                None,
            ),
        ] {
            let mut g = Gather::new(&host);
            collect(&mut g);
            let found = g
                .facts
                .get("backup.rsnapshot.started")
                .and_then(serde_json::Value::as_bool);
            assert_eq!(found, started);
        }
    }
}
