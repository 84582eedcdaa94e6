//! Collects whether periodic tasks are scheduled: scrubs of pools and TRIM, by cron or systemd timers. A mount with
//! `discard` trims continuously and needs no task.

use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use std::path::Path;

/// Directory with the symlinks of enabled timers (`systemctl enable`), which start at boot.
pub(crate) const WANTED: &str = "/etc/systemd/system/timers.target.wants";
pub(crate) const CRONTAB: &str = "/etc/crontab";
/// Directories of cron, and root's crontab. The first directory contains files with crontab lines, the other
/// directories contain programs.
pub(crate) const CRON: [&str; 5] = [
    "/etc/cron.d",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/var/spool/cron/crontabs",
];

/// Tasks, as (name of the fact, prefixes of timer names, words to search in script lines).
const TASKS: [(&str, &[&str], &[&str]); 2] = [
    (
        "schedule.zfs_scrub",
        &["zfs-scrub-", "zpool-scrub@", "zpool-scrub-"],
        &["zpool scrub", "zfs-linux/scrub"],
    ),
    (
        "schedule.trim",
        &["fstrim.", "zfs-trim-"],
        &["fstrim", "zpool trim", "zfs-linux/trim"],
    ),
];

/// Returns the words to search in script lines, for the shell collector.
pub(crate) fn words() -> Vec<&'static str> {
    let words = TASKS.iter().flat_map(|(_, _, words)| words.iter().copied());
    words.collect()
}

/// Index of the TRIM task in `TASKS`.
const TRIM: usize = 1;

pub(crate) fn collect(g: &mut Gather<'_>) {
    let mut unread: Option<(String, String)> = None;
    let mut note = |path: &str, why: String| {
        unread.get_or_insert((path.to_owned(), why));
    };
    let mut found: [Option<(&str, FactPlace)>; TASKS.len()] = [None, None];
    match g.host.list(Path::new(WANTED)) {
        Ok(names) => {
            for name in names.iter().map(|name| lossy(name)) {
                for (at, (_, timers, _)) in TASKS.iter().enumerate() {
                    if timers.iter().any(|timer| name.starts_with(timer)) {
                        let place = FactPlace::from(format!("{WANTED}/{name}"));
                        found[at].get_or_insert(("timer", place));
                    }
                }
            }
        }
        Err(error) if error.is_absent() => {}
        Err(error) => note(WANTED, error.reason()),
    }
    let mut files = vec![CRONTAB.to_owned()];
    for dir in CRON {
        match g.host.list(Path::new(dir)) {
            Ok(names) => files.extend(names.iter().map(|name| format!("{dir}/{}", lossy(name)))),
            Err(error) if error.is_absent() => {}
            Err(error) => note(dir, error.reason()),
        }
    }
    for file in files {
        let text = match g.host.read_text(Path::new(&file)) {
            Ok(text) => text,
            Err(error) => {
                if !error.is_absent() {
                    note(&file, error.reason());
                }
                continue;
            }
        };
        for (number, line) in text.lines().enumerate() {
            for (at, (_, _, words)) in TASKS.iter().enumerate() {
                if runs_one_of(line, words) {
                    let place = FactPlace::from(format!("{file}:{}", number + 1));
                    found[at].get_or_insert(("cron", place));
                }
            }
        }
    }
    if found[TRIM].is_none() && is_any_mount_trimming(g) {
        found[TRIM] = Some(("mount", FactPlace::from(crate::mountinfo::MOUNTINFO)));
    }
    for ((key, ..), found) in TASKS.iter().zip(found) {
        match (found, &unread) {
            (Some((by, place)), _) => g.facts.known(*key, by, FactKind::Configured, place),
            (None, Some((path, why))) => {
                g.facts
                    .unknown(*key, why.as_str(), FactKind::Configured, path.as_str());
            }
            (None, None) => g.facts.known(*key, "none", FactKind::Configured, WANTED),
        }
    }
}

/// Returns whether a file system is mounted with continuous TRIM.
fn is_any_mount_trimming(g: &Gather<'_>) -> bool {
    let mounts = g.host.read_text(Path::new(crate::mountinfo::MOUNTINFO));
    let options = |line: &str| {
        let last = line.rsplit(' ').next().unwrap_or_default().to_owned();
        last.split(',')
            .any(|option| option == "discard" || option.starts_with("discard="))
    };
    mounts.is_ok_and(|text| text.lines().any(options))
}

/// Returns whether a script line runs one of the commands. Comments do not count.
fn runs_one_of(line: &str, words: &[&str]) -> bool {
    let line = line.trim_start();
    !line.starts_with('#') && words.iter().any(|word| line.contains(word))
}

/// Redacts a line of cron: keeps the names of the tasks that the line runs.
pub(crate) fn redact(line: &str) -> String {
    let known = TASKS.iter().flat_map(|(_, _, words)| words.iter());
    let done: Vec<&str> = known
        .filter(|word| runs_one_of(line, &[word]))
        .copied()
        .collect();
    done.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    /// Text of /etc/cron.d/zfsutils-linux of zfsutils-linux 2.1.11 (Debian 12).
    const ZFSUTILS: &str = "\
PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin

# TRIM the first Sunday of every month.
24 0 1-7 * * root if [ $(date +\\%w) -eq 0 ] && [ -x /usr/lib/zfs-linux/trim ]; then /usr/lib/zfs-linux/trim; fi

# Scrub the second Sunday of every month.
24 0 8-14 * * root if [ $(date +\\%w) -eq 0 ] && [ -x /usr/lib/zfs-linux/scrub ]; then /usr/lib/zfs-linux/scrub; fi
";

    fn facts(host: &Recorded) -> assay_model::Facts {
        let mut g = Gather::new(host);
        collect(&mut g);
        g.facts
    }

    #[test]
    fn cron_as_debian_ships_it() {
        let host = |text: &str| Recorded::new().file("/etc/cron.d/zfsutils-linux", text);
        let found = facts(&host(ZFSUTILS));
        assert_eq!(found.str("schedule.zfs_scrub"), Some("cron"));
        assert_eq!(found.str("schedule.trim"), Some("cron"));
        let place = found.map["schedule.zfs_scrub"].place.to_string();
        assert!(place.ends_with("zfsutils-linux:7"), "{place}");
        let kept: Vec<String> = ZFSUTILS.split('\n').map(redact).collect();
        assert_eq!(facts(&host(&kept.join("\n"))), found);
        let commented = facts(&host("# zpool scrub tank\n"));
        assert_eq!(commented.str("schedule.zfs_scrub"), Some("none"));
    }
}
