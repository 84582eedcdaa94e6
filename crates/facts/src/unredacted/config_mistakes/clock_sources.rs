//! Finds time services without a server: systemd-timesyncd (timesyncd.conf(5)) and chrony (chrony.conf(5)).

use super::super::lines_of_files::{files, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;
use std::path::Path;

const TIMESYNCD: &str = "timesyncd.conf";
/// Directories with drop-ins, by rising priority.
const DROP_INS: [&str; 3] = ["/usr/lib/systemd", "/run/systemd", "/etc/systemd"];
/// Links that start timesyncd at boot.
const STARTED: [&str; 2] = [
    "/etc/systemd/system/sysinit.target.wants/systemd-timesyncd.service",
    "/etc/systemd/system/dbus-org.freedesktop.timesync1.service",
];
const NETWORKS: [&str; 2] = ["/etc/systemd/network", "/run/systemd/network"];
const CHRONY: [&str; 2] = ["/etc/chrony/chrony.conf", "/etc/chrony.conf"];
/// Directives of chrony that give it a time.
const SOURCES: [&str; 6] = ["server", "pool", "peer", "refclock", "local", "manual"];
/// Maximum number of chrony's files.
const MOST: usize = 100;

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_timesyncd(g, &mut found);
    for path in CHRONY {
        note_chrony(g, path, &mut found);
    }
    found.note(g, "clock_source");
}

fn note_timesyncd(g: &mut Gather<'_>, found: &mut Misuses) {
    let is_there = |g: &Gather<'_>, path: &str| {
        g.host.link(Path::new(path)).is_ok() || super::super::lines_of_files::exists(g, path)
    };
    // networkd may get servers from DHCP.
    let from_network = NETWORKS
        .iter()
        .any(|dir| !files(g, "clock_source", dir, ".network").is_empty());
    if from_network || !STARTED.iter().any(|path| is_there(g, path)) {
        return;
    }
    // A drop-in replaces one of the same name in a directory of lower priority.
    let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
    for dir in DROP_INS {
        for path in files(g, "clock_source", &format!("{dir}/{TIMESYNCD}.d"), ".conf") {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            drop_ins.insert(name, path);
        }
    }
    let main = format!("/etc/systemd/{TIMESYNCD}");
    let mut last: BTreeMap<String, (String, FactPlace)> = BTreeMap::new();
    for path in [main].into_iter().chain(drop_ins.into_values()) {
        for line in read(g, "clock_source", &path) {
            let Some((key, value)) = line.text.trim().split_once('=') else {
                continue;
            };
            let (key, value) = (key.trim().to_owned(), value.trim());
            if value.is_empty() || !last.contains_key(&key) {
                last.insert(key, (value.to_owned(), line.place));
            } else if let Some((known, _)) = last.get_mut(&key) {
                known.push_str(value);
            }
        }
    }
    // Without a line, Debian's servers apply.
    if let Some((value, place)) = last.get("FallbackNTP") {
        let servers = last.get("NTP").map_or("", |(value, _)| value.as_str());
        let missing = value.is_empty() && servers.is_empty();
        found.add("missing", missing, place.clone());
    }
}

fn note_chrony(g: &mut Gather<'_>, main: &str, found: &mut Misuses) {
    let mut all = vec![main.to_owned()];
    let (mut at, mut first, mut has_source, mut unsure) = (0, None, false, false);
    while let Some(path) = all.get(at).cloned().filter(|_| at < MOST) {
        at += 1;
        for line in read(g, "clock_source", &path) {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            let Some(key) = words.first().map(|word| word.to_lowercase()) else {
                continue;
            };
            if key.starts_with(['#', '!', ';', '%']) {
                continue;
            }
            first.get_or_insert_with(|| line.place.clone());
            has_source |= SOURCES.contains(&key.as_str());
            let end = match key.as_str() {
                "confdir" => ".conf",
                "sourcedir" => ".sources",
                "include" => {
                    unsure = true;
                    continue;
                }
                _ => continue,
            };
            for dir in &words[1..] {
                all.extend(files(g, "clock_source", dir, end));
            }
        }
    }
    if let Some(place) = first.filter(|_| has_source || !unsure) {
        found.add("missing", !has_source, place);
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn timesyncd_with_and_without_servers() {
        let main = "/etc/systemd/timesyncd.conf";
        let started = (STARTED[0], "");
        for (text, expected) in [
            ("[Time]\nNTP=\nFallbackNTP=\n", "missing=true"),
            ("[Time]\nNTP=a.example\nFallbackNTP=\n", "missing=false"),
            ("[Time]\n#FallbackNTP=a\n", ""),
        ] {
            assert_eq!(
                found(&[(main, text), started], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let empty = (main, "[Time]\nFallbackNTP=\n");
        assert!(found(&[empty], collect).is_empty());
        let drop_in = (
            "/run/systemd/timesyncd.conf.d/01-dhclient.conf",
            "[Time]\nNTP=10.0.0.1\n",
        );
        assert_eq!(
            found(&[empty, started, drop_in], collect),
            ["missing=false"]
        );
    }

    #[test]
    fn chrony_with_and_without_servers() {
        let main = "driftfile /d\nsourcedir /etc/chrony/sources.d\n#pool a iburst\n";
        let own = ("/etc/chrony/sources.d/a.sources", "server a iburst\n");
        assert_eq!(found(&[(CHRONY[0], main)], collect), ["missing=true"]);
        assert_eq!(found(&[(CHRONY[0], main), own], collect), ["missing=false"]);
        assert_eq!(
            found(&[(CHRONY[0], "local stratum 8\n")], collect),
            ["missing=false"]
        );
        assert!(found(&[(CHRONY[0], "include /x\n")], collect).is_empty());
    }
}
