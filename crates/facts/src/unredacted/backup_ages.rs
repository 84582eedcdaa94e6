//! Collects the age of the newest snapshot or archive, as far as files show it. Covers rsnapshot, restic, borg and
//! Proxmox Backup Server on this machine, and ZFS snapshots by their names. `backup_schedules` checks whether backups
//! are started at all.

use super::lines_of_files::{files, note, read};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::daemons::nested::read_yaml;
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::path::Path;

const RSNAPSHOT: &str = "/etc/rsnapshot.conf";
const BORGMATIC: &str = "/etc/borgmatic/config.yaml";
const PBS: &str = "/etc/proxmox-backup/datastore.cfg";
const MOUNTS: &str = "/proc/self/mounts";
const SANOID: &str = "/etc/sanoid/sanoid.conf";
/// Files that may contain the path of a restic or borg repository, as (directory, file name ending).
const JOBS: [(&str, &str); 6] = [
    ("/etc/systemd/system", ".service"),
    ("/etc/cron.d", ""),
    ("/etc/cron.daily", ""),
    ("/etc/restic", ""),
    ("/etc/default", ""),
    ("/etc/borgmatic.d", ".yaml"),
];
/// Files that change while a machine runs. The newest modification time of these files serves as the current time,
/// because a copied tree may be older than today.
const CLOCKS: [&str; 9] = [
    "/proc/self",
    "/run",
    "/tmp",
    "/var/tmp",
    "/var/log",
    "/var/lib/dpkg",
    "/etc",
    "/etc/os-release",
    "/etc/hostname",
];
/// Maximum number of directory entries that are read.
const MOST: usize = 500;
const DAY: i64 = 86400;

/// Newest copy that a backup program made, with its time in seconds since 1970.
struct NewestBackup {
    program: &'static str,
    newest: i64,
    place: FactPlace,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut all = rsnapshot(g);
    all.extend(repositories(g));
    all.extend(proxmox_backup(g));
    all.extend(zfs_snapshots(g));
    let clocks = CLOCKS
        .iter()
        .filter_map(|path| g.host.modified(Path::new(path)));
    let logs = g.host.list(Path::new("/var/log")).unwrap_or_default();
    let logs = logs
        .iter()
        .take(MOST)
        .filter_map(|name| g.host.modified(&Path::new("/var/log").join(name)));
    let now = clocks
        .chain(logs)
        .chain(all.iter().map(|kept| kept.newest))
        .max();
    let Some(now) = now else { return };
    for (number, kept) in all.into_iter().enumerate() {
        let days = now.saturating_sub(kept.newest) / DAY;
        let properties = [("days", days.into()), ("program", kept.program.into())];
        note(
            g,
            "backup_age",
            &(number + 1).to_string(),
            &kept.place,
            &properties,
        );
    }
}

/// Returns the newest modification time in seconds since 1970 of the directory entries for whose name `fits` returns
/// true.
fn newest_in(g: &Gather<'_>, dir: &str, fits: impl Fn(&str) -> bool) -> Option<i64> {
    let names = g.host.list(Path::new(dir)).ok()?;
    let names = names
        .iter()
        .map(|name| lossy(name))
        .filter(|name| fits(name));
    names
        .take(MOST)
        .filter_map(|name| g.host.modified(Path::new(&format!("{dir}/{name}"))))
        .max()
}

/// Returns the newest rsnapshot snapshot of each interval. rsnapshot gives this snapshot the number 0 and sets its
/// modification time.
fn rsnapshot(g: &mut Gather<'_>) -> Vec<NewestBackup> {
    let lines = read(g, "backup_age", RSNAPSHOT);
    let root = lines.iter().find_map(|line| {
        let root = line.text.strip_prefix("snapshot_root")?.trim();
        Some((root.trim_end_matches('/').to_owned(), line.place.clone()))
    });
    let Some((root, place)) = root else {
        return Vec::new();
    };
    let newest = newest_in(g, &root, |name| name.ends_with(".0"));
    newest
        .map(|newest| NewestBackup {
            program: "rsnapshot",
            newest,
            place,
        })
        .into_iter()
        .collect()
}

/// Returns the newest archive of each restic or borg repository on this machine.
fn repositories(g: &mut Gather<'_>) -> Vec<NewestBackup> {
    let mut named: Vec<(String, FactPlace)> = Vec::new();
    let mut take = |path: &str, place: &FactPlace| {
        let path = path
            .trim_matches(['"', '\''])
            .trim_start_matches("local:")
            .trim_start_matches("file://");
        let path = path
            .split("::")
            .next()
            .unwrap_or_default()
            .trim_end_matches('/')
            .to_owned();
        if path.starts_with('/') && path.len() > 1 && !named.iter().any(|(known, _)| *known == path)
        {
            named.push((path, place.clone()));
        }
    };
    if let Some(text) = g.read("backup_age", BORGMATIC) {
        for one in read_yaml(&text) {
            let place = at_line(BORGMATIC, one.line);
            if ["repositories", "repositories.path", "location.repositories"]
                .contains(&one.path.as_str())
            {
                // Names of paths may hold capitals.
                let line = text.lines().nth(one.line - 1).unwrap_or_default();
                let path = line
                    .split(['-', ' '])
                    .find(|word| word.trim_matches(['"', '\'']).starts_with('/'));
                take(path.unwrap_or_default(), &place);
            }
        }
    }
    for (dir, end) in JOBS {
        for path in files(g, "backup_age", dir, end) {
            for line in read(g, "backup_age", &path) {
                let text = line.text.trim();
                if text.starts_with('#')
                    || !["restic", "RESTIC", "borg", "BORG"]
                        .iter()
                        .any(|word| text.contains(word))
                {
                    continue;
                }
                for name in ["RESTIC_REPOSITORY=", "BORG_REPO="] {
                    if let Some((_, rest)) = text.split_once(name) {
                        let rest = rest.trim_start_matches(['"', '\'']);
                        take(
                            rest.split([' ', '"', '\'']).next().unwrap_or_default(),
                            &line.place,
                        );
                    }
                }
                let words: Vec<&str> = text.split_whitespace().collect();
                for pair in words.windows(2) {
                    if matches!(pair[0], "-r" | "--repo") {
                        take(pair[1], &line.place);
                    }
                }
                words
                    .iter()
                    .filter(|word| word.contains("::"))
                    .for_each(|word| take(word, &line.place));
            }
        }
    }
    let mut all = Vec::new();
    for (path, place) in named {
        let restic = newest_in(g, &format!("{path}/snapshots"), |_| true);
        // Borg writes its index and hints anew with each archive.
        let borg = newest_in(g, &path, |name| {
            ["index.", "hints.", "integrity."]
                .iter()
                .any(|begin| name.starts_with(begin))
        });
        let found = restic
            .map(|newest| ("restic", newest))
            .or(borg.map(|newest| ("borg", newest)));
        all.extend(found.map(|(program, newest)| NewestBackup {
            program,
            newest,
            place,
        }));
    }
    all
}

/// Returns the newest backups of Proxmox Backup Server. The path of a backup is below `TYPE/ID` or `ns/NAME/TYPE/ID`,
/// and its name contains the time.
fn proxmox_backup(g: &mut Gather<'_>) -> Vec<NewestBackup> {
    let mut all = Vec::new();
    for line in read(g, "backup_age", PBS) {
        let Some(path) = line.text.trim().strip_prefix("path ") else {
            continue;
        };
        let path = path.trim().trim_end_matches('/');
        let mut roots = vec![path.to_owned()];
        let spaces = g
            .host
            .list(Path::new(&format!("{path}/ns")))
            .unwrap_or_default();
        roots.extend(
            spaces
                .iter()
                .take(MOST)
                .map(|name| format!("{path}/ns/{}", lossy(name))),
        );
        let mut newest = None;
        for dir in roots
            .iter()
            .flat_map(|root| ["vm", "ct", "host"].map(|kind| format!("{root}/{kind}")))
        {
            let groups = g.host.list(Path::new(&dir)).unwrap_or_default();
            for group in groups.iter().take(MOST).map(|name| lossy(name)) {
                let backups = g
                    .host
                    .list(Path::new(&format!("{dir}/{group}")))
                    .unwrap_or_default();
                newest = backups
                    .iter()
                    .filter_map(|name| time_in(&lossy(name)))
                    .max()
                    .max(newest);
            }
        }
        all.extend(newest.map(|newest| NewestBackup {
            program: "Proxmox Backup Server",
            newest,
            place: line.place.clone(),
        }));
    }
    all
}

/// Returns the newest snapshot of each dataset that sanoid or zfs-auto-snapshot made. Datasets without such a snapshot
/// are left out.
fn zfs_snapshots(g: &mut Gather<'_>) -> Vec<NewestBackup> {
    let mut points: Vec<(String, FactPlace)> = Vec::new();
    for line in read(g, "backup_age", SANOID) {
        let name = line
            .text
            .trim()
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(name) = name.filter(|name| !name.starts_with("template_")) {
            points.push((format!("/{name}"), line.place));
        }
    }
    for line in read(g, "backup_age", MOUNTS) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let [source, point, "zfs", ..] = words[..] {
            match points
                .iter_mut()
                .find(|(known, _)| *known == format!("/{source}"))
            {
                Some(known) => known.0 = point.to_owned(),
                None => points.push((point.to_owned(), line.place)),
            }
        }
    }
    let mut all = Vec::new();
    for (point, place) in points.into_iter().take(MOST) {
        let dir = format!("{}/.zfs/snapshot", point.trim_end_matches('/'));
        let names = g.host.list(Path::new(&dir)).unwrap_or_default();
        let names: Vec<String> = names.iter().map(|name| lossy(name)).collect();
        for (program, begin) in [
            ("sanoid", "autosnap_"),
            ("zfs-auto-snapshot", "zfs-auto-snap_"),
        ] {
            let times = names
                .iter()
                .filter(|name| name.starts_with(begin))
                .filter_map(|name| time_in(name));
            all.extend(times.max().map(|newest| NewestBackup {
                program,
                newest,
                place: place.clone(),
            }));
        }
    }
    all
}

/// Parses a date in a name, such as `2026-11-03`, and returns the end of that day in seconds since 1970. The end is
/// used so that a copy never appears older than it is.
fn time_in(name: &str) -> Option<i64> {
    let bytes = name.as_bytes();
    let at = bytes.windows(10).position(|part| {
        part.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    })?;
    let day: Date = name.get(at..at + 10)?.parse().ok()?;
    let end = day.tomorrow().ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(end.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_names() {
        assert_eq!(time_in("1970-01-01T00:00:00Z"), Some(DAY));
        assert_eq!(
            time_in("autosnap_2026-11-27_00:00:01_daily"),
            Some(1_795_737_600 + DAY)
        );
        assert_eq!(
            time_in("zfs-auto-snap_daily-2024-02-29-0425"),
            Some(1_709_164_800 + DAY)
        );
        for name in ["manual", "2026-13-01", "2026-02-30", "a-b-c", "20261127"] {
            assert_eq!(time_in(name), None, "{name}");
        }
    }
}
