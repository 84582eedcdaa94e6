//! Checks whether a timer or cron job starts the configured programs for snapshots and backups.

use super::lines_of_files::{exists, files, note, read};
use crate::gather::{Gather, lossy};

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
