//! Finds files of logrotate that do not keep the logs as intended: a file that logrotate ignores because of its mode, a
//! log in two files, logs that are deleted at once, and a log that its server writes on under the old name
//! (logrotate(8)).

use super::super::file_modes::read_modes;
use super::super::ignored_files::is_aside;
use super::super::lines_of_files::{Line, files, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeSet;

const MAIN: &str = "/etc/logrotate.conf";
const DIR: &str = "/etc/logrotate.d";
/// Logs of the system that an administrator needs after an incident.
const NEEDED: [&str; 7] = [
    "/var/log/auth.log",
    "/var/log/syslog",
    "/var/log/messages",
    "/var/log/secure",
    "/var/log/audit/audit.log",
    "/var/log/wtmp",
    "/var/log/btmp",
];
/// Servers that keep their logs open, as (directory or file of the configuration, ends of its names, keywords of the
/// lines that name a log).
const SERVERS: [(&str, &str, [&str; 2]); 5] = [
    ("/etc/nginx/sites-enabled", "", ["access_log", "error_log"]),
    ("/etc/nginx/conf.d", ".conf", ["access_log", "error_log"]),
    ("/etc/apache2/sites-enabled", "", ["CustomLog", "ErrorLog"]),
    ("/etc/apache2/conf-enabled", "", ["CustomLog", "ErrorLog"]),
    ("/etc/httpd/conf.d", ".conf", ["CustomLog", "ErrorLog"]),
];

/// A block of logrotate: the patterns of its logs, and its lines.
struct Block {
    file: String,
    patterns: Vec<String>,
    place: FactPlace,
    lines: Vec<Line>,
}

impl Block {
    fn has(&self, word: &str) -> bool {
        self.lines
            .iter()
            .any(|line| line.text.split_whitespace().next() == Some(word))
    }
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut paths = vec![MAIN.to_owned()];
    let mut in_dir = files(g, "rotation_file", DIR, "");
    in_dir.retain(|path| !is_aside(&path.to_lowercase()) && !path.ends_with(".rpmnew"));
    paths.extend(in_dir);
    let mut found = Misuses::default();
    note_modes(g, &paths, &mut found);
    let mut blocks = Vec::new();
    for path in paths {
        let lines = read(g, "rotation_file", &path);
        let (of_file, open) = blocks_of(&path, lines);
        if let Some(block) = of_file.last() {
            found.add("broken", open, block.place.clone());
        }
        blocks.extend(of_file);
    }
    for (number, block) in blocks.iter().enumerate() {
        let before = &blocks[..number];
        let twice = before.iter().filter(|other| other.file != block.file);
        let twice = twice
            .flat_map(|other| &other.patterns)
            .any(|other| block.patterns.iter().any(|own| overlap(own, other)));
        found.add("twice", twice, block.place.clone());
        note_kept(block, &mut found);
    }
    note_open_logs(g, &blocks, &mut found);
    found.note(g, "rotation_file");
}

/// Splits a file into its blocks. Scripts end with `endscript`. Also returns whether the last block has no end.
fn blocks_of(path: &str, lines: Vec<Line>) -> (Vec<Block>, bool) {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut patterns, mut place): (Vec<String>, Option<FactPlace>) = (Vec::new(), None);
    let (mut inside, mut script) = (false, false);
    for line in lines {
        let text = line
            .text
            .split('#')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned();
        if text.is_empty() {
            continue;
        }
        if inside {
            script &= text != "endscript";
            if text.starts_with('}') && !script {
                inside = false;
            } else if let Some(block) = blocks.last_mut() {
                script |= matches!(
                    text.as_str(),
                    "postrotate" | "prerotate" | "firstaction" | "lastaction" | "preremove"
                );
                block.lines.push(line);
            }
            continue;
        }
        let (names, opens, closes) = match text.split_once('{') {
            Some((names, rest)) => (names.to_owned(), true, rest.trim_end().ends_with('}')),
            None => (text, false, false),
        };
        let is_list = names.trim_start().starts_with(['/', '"', '\'']) || opens;
        if !is_list {
            patterns.clear();
            continue;
        }
        let words = names.split_whitespace();
        patterns.extend(words.map(|word| word.trim_matches(['"', '\'']).to_owned()));
        let first = place.get_or_insert_with(|| line.place.clone()).clone();
        if opens {
            blocks.push(Block {
                file: path.to_owned(),
                patterns: std::mem::take(&mut patterns),
                place: first,
                lines: Vec::new(),
            });
            (inside, place) = (!closes, None);
        }
    }
    (blocks, inside)
}

/// Notes files that others than root may write: logrotate ignores them.
fn note_modes(g: &Gather<'_>, paths: &[String], found: &mut Misuses) {
    let mut all: BTreeSet<String> = paths.iter().cloned().collect();
    all.insert("/etc".to_owned());
    let (modes, of_tree) = read_modes(g, &all);
    let open = |path: &str| modes.get(path).is_some_and(|mode| mode & 0o022 != 0);
    // A copy may make all files writable for the group.
    let copied =
        of_tree && (open("/etc") || modes.len() < 3 || paths.iter().all(|path| open(path)));
    if copied {
        return;
    }
    for path in paths.iter().filter(|path| modes.contains_key(*path)) {
        found.add("refused", open(path), FactPlace::from(path.as_str()));
    }
}

/// Notes blocks that delete logs of the system instead of keeping old ones.
fn note_kept(block: &Block, found: &mut Misuses) {
    let needed = block
        .patterns
        .iter()
        .any(|pattern| NEEDED.contains(&pattern.as_str()));
    let count = block.lines.iter().rev().find_map(|line| {
        let mut words = line.text.split_whitespace();
        let value = words
            .next()
            .filter(|word| *word == "rotate")
            .and(words.next())?;
        Some((value.parse::<i64>().ok()?, line.place.clone()))
    });
    if let (true, Some((count, place))) = (needed, count) {
        found.add("keeps_nothing", count == 0, place);
    }
}

/// Notes blocks with the log of a server that gets no request to open its new log.
fn note_open_logs(g: &mut Gather<'_>, blocks: &[Block], found: &mut Misuses) {
    let mut logs: Vec<String> = Vec::new();
    for (dir, end, keys) in SERVERS {
        for path in files(g, "rotation_file", dir, end) {
            for line in read(g, "rotation_file", &path) {
                let mut words = line.text.split_whitespace();
                if words.next().is_some_and(|word| keys.contains(&word)) {
                    let log = words.next().unwrap_or_default();
                    logs.push(log.trim_matches(['"', '\'', ';']).to_owned());
                }
            }
        }
    }
    logs.retain(|log| log.starts_with('/') && !log.starts_with("/dev/"));
    for block in blocks {
        let of_server = block
            .patterns
            .iter()
            .any(|pattern| logs.iter().any(|log| overlap(pattern, log)));
        if of_server {
            let reopens = ["copytruncate", "copy", "postrotate", "lastaction"]
                .iter()
                .any(|word| block.has(word));
            found.add("written_on", !reopens, block.place.clone());
        }
    }
}

/// Returns whether two patterns have a log in common, of which at most one is no plain path.
fn overlap(one: &str, other: &str) -> bool {
    one == other
        || matches(one.as_bytes(), other.as_bytes())
        || matches(other.as_bytes(), one.as_bytes())
}

/// Returns whether a path matches a pattern with `*` and `?`. A pattern in the path matches nothing but itself.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    if path.contains(&b'*') || path.contains(&b'?') {
        return false;
    }
    let mut states = vec![false; path.len() + 1];
    states[0] = true;
    for letter in pattern {
        let mut next = vec![false; path.len() + 1];
        for at in 0..=path.len() {
            match letter {
                b'*' => next[at] = states[at] || (at > 0 && next[at - 1] && path[at - 1] != b'/'),
                b'?' => next[at] = at > 0 && states[at - 1] && path[at - 1] != b'/',
                other => next[at] = at > 0 && states[at - 1] && path[at - 1] == *other,
            }
        }
        states = next;
    }
    states[path.len()]
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn logs_of_two_files() {
        let app = (
            "/etc/logrotate.d/app",
            "/var/log/app/*.log {\n rotate 4\n}\n",
        );
        for (text, twice) in [
            ("/var/log/app/audit.log {\n}\n", true),
            ("\"/var/log/app/audit.log\"\n{\n}\n", true),
            ("/var/log/app/*.log {\n}\n", true),
            ("/var/log/app/old/audit.log {\n}\n", false),
            (
                "/var/log/app-audit.log {\n postrotate\n  x {}\n endscript\n}\n",
                false,
            ),
        ] {
            let own = ("/etc/logrotate.d/own", text);
            let facts = found(&[app, own], collect).join(" ");
            assert_eq!(facts.contains("twice=true"), twice, "{text}");
        }
    }

    #[test]
    fn logs_that_are_not_kept() {
        let path = "/etc/logrotate.d/rsyslog";
        for (text, expected) in [
            (
                "/var/log/syslog\n/var/log/auth.log\n{\n rotate 0\n}\n",
                "broken=false twice=false keeps_nothing=true",
            ),
            (
                "/var/log/auth.log {\n rotate 4\n}\n",
                "broken=false twice=false keeps_nothing=false",
            ),
            (
                "/var/log/debug.log {\n rotate 0\n}\n",
                "broken=false twice=false",
            ),
            (
                "/var/log/debug.log {\n rotate 1\n",
                "broken=true twice=false",
            ),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn logs_that_stay_open() {
        let site = (
            "/etc/nginx/sites-enabled/a",
            "server {\n access_log /srv/a/logs/a.log combined;\n}\n",
        );
        for (text, expected) in [
            (
                "/srv/*/logs/*.log {\n create\n}\n",
                "broken=false twice=false written_on=true",
            ),
            (
                "/srv/*/logs/*.log {\n copytruncate\n}\n",
                "broken=false twice=false written_on=false",
            ),
            (
                "/srv/*/logs/*.log {\n postrotate\n  nginx -s reopen\n endscript\n}\n",
                "broken=false twice=false written_on=false",
            ),
            ("/srv/*/*.log {\n create\n}\n", "broken=false twice=false"),
        ] {
            let own = ("/etc/logrotate.d/own", text);
            assert_eq!(found(&[site, own], collect).join(" "), expected, "{text}");
        }
    }
}
