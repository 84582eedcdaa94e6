//! Finds units of systemd whose settings contradict each other: a second command that systemd refuses, a database that
//! is killed when it stops, a heap above the limit of the memory, and a unit that is ordered after a target that
//! nothing starts (systemd.service(5), systemd.kill(5), systemd.resource-control(5), systemd.special(7)).

use super::super::lines_of_files::{exists, files, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeSet;
use std::path::Path;

const UNITS: &str = "/etc/systemd/system";
const PACKAGE_UNITS: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];
/// Databases that write their memory to the disk when they stop.
const DATABASES: [&str; 8] = [
    "mariadb",
    "mysql",
    "mysqld",
    "postgresql",
    "mongod",
    "redis-server",
    "redis",
    "slapd",
];
/// Services that report failing disks and full pools, with their configuration.
const WATCHERS: [(&str, &str); 6] = [
    ("mdmonitor.service", "/etc/mdadm/mdadm.conf"),
    ("smartmontools.service", "/etc/smartd.conf"),
    ("smartd.service", "/etc/smartmontools/smartd.conf"),
    ("zfs-zed.service", "/etc/zfs/zed.d/zed.rc"),
    ("lvm2-monitor.service", "/etc/lvm/lvm.conf"),
    ("auditd.service", "/etc/audit/auditd.conf"),
];
const ONLINE: &str = "network-online.target";
/// Settings that start a target together with the unit.
const STARTS: [&str; 4] = ["Wants", "Requires", "Requisite", "BindsTo"];

/// A line of a unit.
struct Setting {
    section: String,
    key: String,
    value: String,
    place: FactPlace,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for end in [".service", ".service.d"] {
        let all = files(g, "unit.clash", UNITS, end).into_iter();
        names.extend(all.filter_map(|path| {
            let name = path.rsplit('/').next()?.trim_end_matches(".d");
            Some(name.to_owned())
        }));
    }
    let mut found = Misuses::default();
    for name in names {
        let settings = settings_of(g, &name);
        note_commands(&settings, &mut found);
        note_stop(&name, &settings, &mut found);
        note_heap(&settings, &mut found);
        note_order(&settings, &mut found);
        note_hidden(&settings, &mut found);
    }
    note_mounts(g, &mut found);
    note_masked(g, &mut found);
    found.note(g, "unit.clash");
}

/// Reads a unit with its drop-ins. An instance has the file of its template.
fn settings_of(g: &mut Gather<'_>, name: &str) -> Vec<Setting> {
    let template = name
        .split_once('@')
        .map(|(before, _)| format!("{before}@.service"));
    let mut paths = Vec::new();
    for name in [Some(name.to_owned()), template].into_iter().flatten() {
        for dir in [UNITS].into_iter().chain(PACKAGE_UNITS) {
            paths.push(format!("{dir}/{name}"));
        }
    }
    let main = paths.into_iter().find(|path| exists(g, path));
    let own = format!("{UNITS}/{name}");
    // A link is another name of a unit, or masks it.
    if g.host.link(Path::new(&own)).is_ok() {
        return Vec::new();
    }
    let mut settings = Vec::new();
    let drop_ins = files(g, "unit.clash", &format!("{own}.d"), ".conf");
    for path in main.into_iter().chain(drop_ins) {
        let mut section = String::new();
        for line in read(g, "unit.clash", &path) {
            let text = line.text.trim();
            if text.starts_with('[') {
                section = text.to_owned();
            }
            if let Some((key, value)) = text.split_once('=')
                && !text.starts_with(['#', ';'])
            {
                settings.push(Setting {
                    section: section.clone(),
                    key: key.trim_end().to_owned(),
                    value: value.trim().to_owned(),
                    place: line.place,
                });
            }
        }
    }
    settings
}

fn is_of_admin(place: &FactPlace) -> bool {
    place.to_string().starts_with(UNITS)
}

fn last<'a>(settings: &'a [Setting], key: &str) -> Option<&'a Setting> {
    settings
        .iter()
        .rfind(|one| one.section == "[Service]" && one.key == key)
}

/// Notes a second command. Only a unit of the type oneshot may have several.
fn note_commands(settings: &[Setting], found: &mut Misuses) {
    let mut commands: Vec<&Setting> = Vec::new();
    for one in settings.iter().filter(|one| one.section == "[Service]") {
        match (one.key.as_str(), one.value.is_empty()) {
            ("ExecStart", true) => commands.clear(),
            ("ExecStart", false) => commands.push(one),
            _ => {}
        }
    }
    let oneshot = last(settings, "Type").is_some_and(|one| one.value == "oneshot");
    if let Some(last) = commands.last().filter(|one| is_of_admin(&one.place)) {
        found.add(
            "second_command",
            commands.len() > 1 && !oneshot,
            last.place.clone(),
        );
    }
}

/// Notes databases that systemd kills, at once or after a few seconds.
fn note_stop(name: &str, settings: &[Setting], found: &mut Misuses) {
    let base = name.split(['@', '.']).next().unwrap_or_default();
    if !DATABASES.contains(&base) {
        return;
    }
    if let Some(signal) = last(settings, "KillSignal").filter(|one| is_of_admin(&one.place)) {
        let kills = matches!(signal.value.as_str(), "SIGKILL" | "KILL" | "9");
        found.add("kills_database", kills, signal.place.clone());
    }
    let stop = ["TimeoutStopSec", "TimeoutSec"]
        .iter()
        .find_map(|key| last(settings, key));
    if let Some(stop) = stop.filter(|one| is_of_admin(&one.place))
        && let Some(seconds) = seconds(&stop.value)
    {
        let kills = seconds > 0 && seconds < 10;
        found.add("kills_database", kills, stop.place.clone());
    }
}

/// Returns a time in whole seconds, if it has at most one unit.
fn seconds(text: &str) -> Option<u64> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().ok()?;
    match unit.trim() {
        "" | "s" | "sec" | "second" | "seconds" => Some(number),
        "m" | "min" | "minute" | "minutes" => number.checked_mul(60),
        "h" | "hr" | "hour" | "hours" => number.checked_mul(3600),
        _ => None,
    }
}

/// Notes a heap of Java that is at least as large as the memory of the unit.
fn note_heap(settings: &[Setting], found: &mut Misuses) {
    let limit = ["MemoryMax", "MemoryLimit"]
        .iter()
        .find_map(|key| last(settings, key));
    let Some((limit, bytes)) = limit.and_then(|one| Some((one, bytes(&one.value)?))) else {
        return;
    };
    let heap = settings
        .iter()
        .filter(|one| one.key == "ExecStart" || one.key == "Environment")
        .flat_map(|one| {
            one.value
                .split(|letter: char| letter.is_whitespace() || letter == '"')
        })
        .filter_map(|word| {
            let at = word.rfind("-Xmx")?;
            self::bytes(&word[at + 4..])
        })
        .next_back();
    if let Some(heap) = heap.filter(|_| is_of_admin(&limit.place)) {
        found.add("heap_above_limit", heap >= bytes, limit.place.clone());
    }
}

fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.find(|letter: char| !letter.is_ascii_digit()) {
        Some(end) => text.split_at(end),
        None => (text, ""),
    };
    let power = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << power)
}

/// Notes units that are ordered after `network-online.target`, but do not start it.
fn note_order(settings: &[Setting], found: &mut Misuses) {
    let names = |one: &Setting| {
        one.section == "[Unit]" && one.value.split_whitespace().any(|name| name == ONLINE)
    };
    let after = settings
        .iter()
        .find(|one| one.key == "After" && names(one) && is_of_admin(&one.place));
    if let Some(after) = after {
        let starts = settings
            .iter()
            .any(|one| STARTS.contains(&one.key.as_str()) && names(one));
        found.add("online_not_started", !starts, after.place.clone());
    }
}

/// Notes services whose program or directory lies in /home, which ProtectHome hides from them.
fn note_hidden(settings: &[Setting], found: &mut Misuses) {
    let Some(protect) = last(settings, "ProtectHome").filter(|one| is_of_admin(&one.place)) else {
        return;
    };
    let hides = matches!(
        protect.value.as_str(),
        "yes" | "true" | "on" | "1" | "tmpfs"
    );
    let in_home = ["ExecStart", "WorkingDirectory"].iter().any(|key| {
        last(settings, key).is_some_and(|one| {
            let path = one.value.trim_start_matches(['-', '@', ':', '+', '!']);
            ["/home/", "/root/"]
                .iter()
                .any(|home| path.starts_with(home))
        })
    });
    let bound = ["BindPaths", "BindReadOnlyPaths"]
        .iter()
        .any(|key| last(settings, key).is_some());
    found.add(
        "hides_program",
        hides && in_home && !bound,
        protect.place.clone(),
    );
}

/// Notes mount units whose name is not that of their directory: systemd refuses them (systemd.mount(5)).
fn note_mounts(g: &mut Gather<'_>, found: &mut Misuses) {
    for path in files(g, "unit.clash", UNITS, ".mount") {
        if g.host.link(Path::new(&path)).is_ok() {
            continue;
        }
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let place = read(g, "unit.clash", &path).into_iter().find_map(|line| {
            let point = line.text.trim().strip_prefix("Where=")?.trim().to_owned();
            Some((point, line.place))
        });
        let Some((point, place)) = place else {
            continue;
        };
        // Other letters are escaped, which this comparison leaves out.
        let plain = point
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/_.".contains(&byte));
        if plain && !point.contains("/.") && !name.contains('\\') {
            let expected = point.trim_matches('/').replace('/', "-");
            found.add("other_name", name != format!("{expected}.mount"), place);
        }
    }
}

/// Notes masked services that report a failing disk, although they are configured.
fn note_masked(g: &mut Gather<'_>, found: &mut Misuses) {
    for (unit, config) in WATCHERS {
        let path = format!("{UNITS}/{unit}");
        let target = g.host.link(Path::new(&path));
        if exists(g, config) && target.is_ok_and(|target| target == Path::new("/dev/null")) {
            found.add("watcher_masked", true, FactPlace::from(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_and_their_near_misses() {
        let path = "/etc/systemd/system/a.service";
        for (text, expected) in [
            (
                "[Service]\nExecStart=/a\nExecStart=/b\n",
                "second_command=true",
            ),
            (
                "[Service]\nType=oneshot\nExecStart=/a\nExecStart=/b\n",
                "second_command=false",
            ),
            (
                "[Service]\nExecStart=/usr/bin/java -Xmx4g -jar /a\nMemoryMax=2G\n",
                "heap_above_limit=true second_command=false",
            ),
            (
                "[Service]\nEnvironment=\"JAVA_OPTS=-Xms1g -Xmx1g\"\nMemoryMax=2G\n",
                "heap_above_limit=false",
            ),
            ("[Service]\nEnvironment=A=-Xmx1g\nMemoryMax=50%\n", ""),
            (
                "[Unit]\nAfter=network-online.target\n",
                "online_not_started=true",
            ),
            (
                "[Unit]\nAfter=network-online.target\nWants=a.service network-online.target\n",
                "online_not_started=false",
            ),
            ("[Unit]\nAfter=network.target\n", ""),
            ("[Service]\nKillSignal=SIGKILL\n", ""),
            (
                "[Service]\nProtectHome=yes\nExecStart=/home/bob/run\n",
                "hides_program=true second_command=false",
            ),
            (
                "[Service]\nProtectHome=read-only\nExecStart=/home/bob/run\n",
                "hides_program=false second_command=false",
            ),
        ] {
            let mut facts = found(&[(path, text)], collect);
            facts.sort();
            assert_eq!(facts.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn names_of_mounts_and_masked_watchers() {
        let mount = "/etc/systemd/system/srv-data.mount";
        for (text, expected) in [
            ("[Mount]\nWhere=/srv/backup\n", "other_name=true"),
            ("[Mount]\nWhere=/srv/data\n", "other_name=false"),
            ("[Mount]\nWhere=/srv/my-data\n", ""),
        ] {
            assert_eq!(
                found(&[(mount, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let host = assay_host::Recorded::new()
            .file("/etc/mdadm/mdadm.conf", "MAILADDR root\n")
            .linked("/etc/systemd/system/mdmonitor.service", "/dev/null")
            .linked("/etc/systemd/system/zfs-zed.service", "/dev/null");
        let mut g = Gather::new(&host);
        collect(&mut g);
        let mut masked = g.facts.map.keys();
        assert!(masked.any(|key| key.ends_with(".watcher_masked")));
        assert_eq!(g.facts.map.len(), 1);
    }

    #[test]
    fn drop_ins_of_packages_and_templates() {
        let main = (
            "/usr/lib/systemd/system/postgresql@.service",
            "[Service]\nType=forking\nExecStart=/a\n",
        );
        let path = "/etc/systemd/system/postgresql@15-main.service.d/a.conf";
        for (text, expected) in [
            ("[Service]\nKillSignal=SIGKILL\n", "kills_database=true"),
            ("[Service]\nKillSignal=SIGINT\n", "kills_database=false"),
            ("[Service]\nTimeoutStopSec=2s\n", "kills_database=true"),
            ("[Service]\nTimeoutStopSec=5min\n", "kills_database=false"),
            ("[Service]\nExecStart=/b\n", "second_command=true"),
            (
                "[Service]\nExecStart=\nExecStart=/b\n",
                "second_command=false",
            ),
        ] {
            assert_eq!(
                found(&[main, (path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
