//! What databases are told of durability: postgresql.conf of each cluster, as Debian lays them out, and the
//! option files of MariaDB and MySQL. Both are lines of a name and a value; the last one counts.

use crate::gather::{Gather, lossy};
use crate::harmless::is_pattern;
use assay_host::HostError;
use assay_model::{FactKind, Place, secrets};
use std::path::Path;

/// One directory for each version, in it one for each cluster.
pub(crate) const POSTGRESQL: &str = "/etc/postgresql";
/// Where Debian keeps the data of a cluster, and so what ALTER SYSTEM said.
pub(crate) const DATA: &str = "/var/lib/postgresql";
/// What ALTER SYSTEM writes; it is read last.
pub(crate) const ALTERED: &str = "postgresql.auto.conf";
/// Main files of MariaDB and MySQL, in the order in which they are read (mariadbd --help --verbose).
pub(crate) const OPTIONS: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// Directories in which their other files lie: Debian's, and Red Hat's.
pub(crate) const BELOW: [&str; 2] = ["/etc/mysql/", "/etc/my.cnf.d/"];

/// What is asked of PostgreSQL. Both are on unless something else is said (postgres --describe-config).
const SWITCHES: [&str; 2] = ["fsync", "full_page_writes"];
/// What is asked of InnoDB, and its default (mariadbd 10.11 --no-defaults --help --verbose).
const INNODB: [(&str, &str); 2] = [
    ("innodb_flush_log_at_trx_commit", "1"),
    ("innodb_doublewrite", "on"),
];
/// Groups of which mariadbd reads the options; each may carry a version: `mariadb-10.11`.
pub(crate) const GROUPS: [&str; 6] = [
    "mysqld",
    "server",
    "mariadb",
    "mariadbd",
    "client-server",
    "galera",
];
/// Words before the name of an option that say how it is meant.
const PREFIXES: [&str; 4] = ["loose_", "skip_", "disable_", "enable_"];
/// How many files one may include, all in all.
const FILES: usize = 200;

/// A line that says something.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    Group(&'a str),
    Include(&'a str, &'a str),
    Said(String, Option<&'a str>),
}

pub(crate) fn collect(g: &mut Gather<'_>) {
    postgresql(g);
    mariadb(g);
}

fn postgresql(g: &mut Gather<'_>) {
    for version in g.list("postgresql", POSTGRESQL) {
        let version = lossy(&version);
        for cluster in g.list("postgresql", &format!("{POSTGRESQL}/{version}")) {
            let name = format!("{version}/{}", lossy(&cluster));
            let mut all = Read::default();
            all.file(g, &format!("{POSTGRESQL}/{name}/postgresql.conf"));
            if all.is_absent() {
                continue;
            }
            all.file(g, &format!("{DATA}/{name}/{ALTERED}"));
            let subject = format!("postgresql.cluster.{name}");
            for key in SWITCHES {
                all.note(g, &subject, key, ("on", "postgres --describe-config"));
            }
            g.about(["postgresql.cluster", &name]);
        }
    }
}

fn mariadb(g: &mut Gather<'_>) {
    let mut all = Read::default();
    for file in OPTIONS {
        all.file(g, file);
    }
    if !all.is_absent() {
        for (key, default) in INNODB {
            all.note(g, "mariadb", key, (default, "mariadbd --help --verbose"));
        }
    }
}

/// What files say, read in their order.
#[derive(Default)]
struct Read {
    /// Whether a file was there.
    any: bool,
    files: usize,
    said: Vec<(String, String, Place)>,
    /// The first file that could not be read, and why.
    missing: Option<(String, String)>,
}

impl Read {
    /// Whether there is no such program here, as far as can be told: what may not be read may be its file.
    fn is_absent(&self) -> bool {
        !self.any && self.missing.is_none()
    }

    /// Reads a file and those that it includes. One that does not exist says nothing.
    fn file(&mut self, g: &Gather<'_>, path: &str) {
        self.files += 1;
        if self.files > FILES {
            return self.lacks(path, "more files than one server has");
        }
        let text = match g.host.read_text(Path::new(path)) {
            Ok(text) => text,
            Err(error) => return self.fault(path, &error),
        };
        self.any = true;
        // Groups are MariaDB's alone; without one a line is PostgreSQL's.
        let mut counts = true;
        for (number, line) in text.lines().enumerate() {
            match understood(line) {
                Some(Line::Group(name)) => counts = is_ours(name),
                Some(Line::Include(how, target)) => self.included(g, path, how, target),
                Some(Line::Said(name, value)) if counts => {
                    let (name, value) = plainly(&name, value);
                    let at = super::lines::place(path, number, line);
                    self.said.push((name, value, at));
                }
                _ => {}
            }
        }
    }

    fn included(&mut self, g: &Gather<'_>, from: &str, how: &str, target: &str) {
        let beside = Path::new(from).parent().unwrap_or(Path::new("/"));
        let target = beside.join(target);
        let target = target.to_string_lossy();
        let end = match how {
            "include_dir" => ".conf",
            "!includedir" => ".cnf",
            _ => return self.file(g, &target),
        };
        let mut names = match g.host.list(Path::new(&*target)) {
            Ok(names) => names.iter().map(|name| lossy(name)).collect::<Vec<_>>(),
            Err(error) => return self.fault(&target, &error),
        };
        names.retain(|name| name.ends_with(end) && !name.starts_with('.'));
        names.sort();
        for name in names {
            self.file(g, &format!("{}/{name}", target.trim_end_matches('/')));
        }
    }

    fn fault(&mut self, path: &str, error: &HostError) {
        if !error.is_absent() {
            self.lacks(path, &error.reason());
        }
    }

    fn lacks(&mut self, path: &str, reason: &str) {
        let missing = (path.to_owned(), reason.to_owned());
        self.missing.get_or_insert(missing);
    }

    /// Notes the last word on a key. What could stand in a file that was not read is not known.
    fn note(&self, g: &mut Gather<'_>, subject: &str, key: &str, (default, told): (&str, &str)) {
        let fact = format!("{subject}.{key}");
        let last = self.said.iter().rev().find(|(name, ..)| name == key);
        match (&self.missing, last) {
            (Some((path, reason)), _) => {
                let place = Place::from(path.as_str());
                g.facts.unknown(fact, reason, FactKind::Configured, place);
            }
            (None, Some((_, value, place))) if !value.contains('(') => {
                g.facts
                    .known(fact, value.as_str(), FactKind::Configured, place.clone());
            }
            (None, Some((.., place))) => g.facts.unknown(
                fact,
                "no value that is understood here",
                FactKind::Configured,
                place.clone(),
            ),
            (None, None) => {
                let place = Place::Words(told.to_owned());
                g.facts.known(fact, default, FactKind::Default, place);
            }
        }
    }
}

/// What a line says. The sign between name and value may be missing (PostgreSQL), dashes stand for
/// underscores (MariaDB), capitals mean nothing in names.
fn understood(line: &str) -> Option<Line<'_>> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix('[') {
        return Some(Line::Group(rest.split_once(']')?.0.trim()));
    }
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.!".contains(&byte);
    let end = line.bytes().position(|byte| !word(byte));
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.chars().next() {
        Some(quote @ ('\'' | '"')) => rest[1..].split(quote).next(),
        _ => rest.split([' ', '\t', '#', ';']).next(),
    };
    let value = value.filter(|value| !value.is_empty());
    match (name, value) {
        ("", _) => None,
        ("!include" | "!includedir" | "include" | "include_dir" | "include_if_exists", value) => {
            value.map(|target| Line::Include(name, target))
        }
        _ => Some(Line::Said(
            name.to_ascii_lowercase().replace('-', "_"),
            value,
        )),
    }
}

/// A name without what says how it is meant, and its value: `on`, `off`, or the word itself.
fn plainly(name: &str, value: Option<&str>) -> (String, String) {
    let (mut name, mut turned) = (name, false);
    while let Some(prefix) = PREFIXES.iter().find(|prefix| name.starts_with(*prefix)) {
        turned ^= matches!(*prefix, "skip_" | "disable_");
        name = &name[prefix.len()..];
    }
    let number = name == "innodb_flush_log_at_trx_commit";
    let value = value.unwrap_or("1").to_ascii_lowercase();
    let truth = match value.as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    };
    let value = match truth {
        Some(truth) if !number => ["off", "on"][usize::from(truth != turned)].to_owned(),
        _ => value,
    };
    (name.to_owned(), value)
}

/// Whether mariadbd reads a group.
fn is_ours(group: &str) -> bool {
    let version = |rest: &str| {
        let digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        rest.is_empty()
            || rest
                .strip_prefix('-')
                .is_some_and(|rest| rest.bytes().all(digit))
    };
    (GROUPS.iter()).any(|known| group.strip_prefix(known).is_some_and(version))
}

/// The names that are asked for.
pub(crate) fn names() -> Vec<&'static str> {
    let innodb = INNODB.iter().map(|(key, _)| *key);
    SWITCHES.into_iter().chain(innodb).collect()
}

/// Whether a file is one of those that are read.
pub(crate) fn may_be(path: &str) -> bool {
    let cluster = path.starts_with(&format!("{POSTGRESQL}/")) && path.ends_with(".conf");
    let altered = path.starts_with(&format!("{DATA}/")) && path.ends_with(ALTERED);
    let options = BELOW.iter().any(|dir| path.starts_with(dir)) && path.ends_with(".cnf");
    cluster || altered || options || OPTIONS.contains(&path)
}

/// Whether the names in a directory may be seen; it ends with a slash.
pub(crate) fn may_be_listed(dir: &str) -> bool {
    dir.starts_with(&format!("{POSTGRESQL}/")) || BELOW.iter().any(|below| dir.starts_with(below))
}

/// What a capture keeps of a line: the groups that count, what is included, and the settings above.
pub(crate) fn redact(line: &str) -> String {
    match understood(line) {
        Some(Line::Group(name)) if is_ours(name) => format!("[{name}]"),
        Some(Line::Group(_)) => "[left-out]".to_owned(),
        Some(Line::Include(how, target)) if is_pattern(target) => format!("{how} {target}"),
        Some(Line::Said(name, value)) if names().contains(&plainly(&name, None).0.as_str()) => {
            let plain = |value: &str| {
                let byte = |byte: u8| byte.is_ascii_alphanumeric();
                value.len() <= 12 && value.bytes().all(byte) && secrets::is_plain(value)
            };
            match value {
                None => name,
                Some(value) if plain(value) => format!("{name} = {value}"),
                Some(_) => format!("{name} = (withheld)"),
            }
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn facts(host: &Recorded) -> assay_model::Facts {
        let mut g = Gather::new(host);
        collect(&mut g);
        g.facts
    }

    #[test]
    fn the_last_word_of_a_cluster_counts_and_is_named() {
        let conf = "/etc/postgresql/15/main/postgresql.conf";
        let host = Recorded::new()
            .file(
                conf,
                "#fsync = off\nfsync 'on' # x\ninclude_dir = 'conf.d'\nFull_Page_Writes=no\n",
            )
            .file(
                "/etc/postgresql/15/main/conf.d/a.conf",
                "fsync = off\nport=1\n",
            )
            .file("/etc/postgresql/15/main/conf.d/b.conf.old", "fsync = on\n");
        let found = facts(&host);
        let key = "postgresql.cluster.15/main.fsync";
        assert_eq!(found.str(key), Some("off"));
        assert_eq!(
            found.map[key].place.to_string(),
            "/etc/postgresql/15/main/conf.d/a.conf:1"
        );
        let full = "postgresql.cluster.15/main.full_page_writes";
        assert_eq!(found.str(full), Some("off"));
        // ALTER SYSTEM has the last word; where it cannot be read nothing is known.
        let altered = "/var/lib/postgresql/15/main/postgresql.auto.conf";
        let host = host.file(altered, "# Do not edit\nfsync = 'on'\n");
        assert_eq!(facts(&host).str(key), Some("on"));
        let found = facts(&host.denied(altered));
        assert!(found.get(key).is_none() && found.map.contains_key(key));
    }

    #[test]
    fn groups_prefixes_and_dashes_of_mariadb() {
        let text = "[client]\ninnodb_doublewrite=0\n!includedir /etc/mysql/mariadb.conf.d/\n";
        let host = Recorded::new().file("/etc/mysql/my.cnf", text).file(
            "/etc/mysql/mariadb.conf.d/50-server.cnf",
            "[mariadb-10.11]\nskip-innodb-doublewrite\n[mysqldump]\nskip_innodb_doublewrite=0\n\
             [mysqld]\nloose-innodb_flush_log_at_trx_commit = 2 # fast\n",
        );
        let found = facts(&host);
        assert_eq!(found.str("mariadb.innodb_doublewrite"), Some("off"));
        assert_eq!(
            found.str("mariadb.innodb_flush_log_at_trx_commit"),
            Some("2")
        );
        let bare = facts(&Recorded::new().file("/etc/my.cnf", "[mysqld]\n"));
        assert_eq!(bare.str("mariadb.innodb_doublewrite"), Some("on"));
        assert!(facts(&Recorded::new()).map.is_empty());
    }

    #[test]
    fn a_capture_says_the_same_and_nothing_else() {
        let text = "[client-server]\npassword = hunter2\n[mysqld]\nskip-innodb-doublewrite # hunter2\n\
                    innodb_flush_log_at_trx_commit='2' # hunter2\nbind-address = 10.0.0.1\n\
                    !includedir /etc/mysql/conf.d/\n!include /home/a b\n";
        let kept: Vec<String> = text.lines().map(redact).collect();
        let again: Vec<String> = kept.iter().map(|line| redact(line)).collect();
        assert_eq!(again, kept);
        let kept = kept.join("\n");
        assert!(
            !kept.contains("hunter2") && !kept.contains("10.0"),
            "{kept}"
        );
        let (one, other) = (
            Recorded::new().file("/etc/my.cnf", text),
            Recorded::new().file("/etc/my.cnf", kept),
        );
        let (one, other) = (facts(&one), facts(&other));
        assert_eq!(one.map.len(), 2);
        for (key, fact) in &one.map {
            assert_eq!(fact.value, other.map[key].value, "{key}");
            let line = |fact: &assay_model::Fact| fact.place.to_string();
            assert_eq!(line(fact), line(&other.map[key]), "{key}");
        }
        assert_eq!(
            redact("fsync = a-secret-that-is-long"),
            "fsync = (withheld)"
        );
    }
}
