//! Collects the durability settings of databases from postgresql.conf of each cluster on Debian, and from the option
//! files of MariaDB and MySQL. All files have one `name = value` pair per line, of which the last applies.

mod atomic_page_writes;

use super::packages;
use crate::gather::{Gather, lossy};
use crate::harmless::is_pattern;
use assay_model::{FactKind, FactPlace, secrets};
use std::path::Path;

/// Debian's directory of PostgreSQL configuration: one directory per version, which contains one directory per cluster.
pub(crate) const POSTGRESQL: &str = "/etc/postgresql";
/// Debian's data directory of PostgreSQL clusters. Each cluster may have a [`ALTERED`] file here.
pub(crate) const DATA: &str = "/var/lib/postgresql";
/// The file that `ALTER SYSTEM` writes. PostgreSQL reads it last.
pub(crate) const ALTERED: &str = "postgresql.auto.conf";
/// Main files of MariaDB and MySQL in reading order (mariadbd --help --verbose).
pub(crate) const OPTIONS: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// Directories of MariaDB's and MySQL's other option files on Debian and Red Hat.
pub(crate) const BELOW: [&str; 2] = ["/etc/mysql/", "/etc/my.cnf.d/"];

/// Settings of PostgreSQL that are noted. All are on by default (postgres --describe-config).
const SWITCHES: [&str; 4] = ["fsync", "full_page_writes", "autovacuum", "track_counts"];
/// Settings of PostgreSQL that hide damage; all are off by default.
const DAMAGE: [&str; 3] = [
    "zero_damaged_pages",
    "ignore_checksum_failure",
    "ignore_invalid_pages",
];
/// Settings of InnoDB that are noted, with their defaults (mariadbd 10.11 --no-defaults --help
/// --verbose).
const INNODB: [(&str, &str); 3] = [
    ("innodb_flush_log_at_trx_commit", "1"),
    ("innodb_doublewrite", "on"),
    ("innodb_force_recovery", "0"),
];
/// Groups of the option files that mariadbd reads. MySQL reads only the first two.
pub(crate) const GROUPS: [&str; 6] = [
    "mysqld",
    "server",
    "mariadb",
    "mariadbd",
    "client-server",
    "galera",
];
/// Groups whose name may end with a version: `mariadb-10.11`.
const VERSIONED: [&str; 3] = ["mysqld", "mariadb", "mariadbd"];
/// Directives of PostgreSQL, MariaDB and MySQL that include files.
const INCLUDES: [&str; 5] = [
    "!include",
    "!includedir",
    "include",
    "include_dir",
    "include_if_exists",
];
/// Prefixes that change the meaning of an option name.
const PREFIXES: [&str; 4] = ["loose_", "skip_", "disable_", "enable_"];
/// Maximum number of files that are read for one server.
const FILES: usize = 200;

/// Directories that packages include from the main files of MariaDB and MySQL, with the servers that include them:
/// whether it is MySQL, and whether it is MariaDB.
const DIRECTORIES: [(&str, bool, bool); 4] = [
    ("/etc/mysql/conf.d", true, true),
    ("/etc/mysql/mariadb.conf.d", false, true),
    ("/etc/mysql/mysql.conf.d", true, false),
    ("/etc/my.cnf.d", true, true),
];

/// Names of the setting for the data directory in PostgreSQL and MariaDB. `MARIADB_DATA` is MariaDB's default.
const DATA_DIRECTORIES: [&str; 2] = ["data_directory", "datadir"];
const MARIADB_DATA: &str = "/var/lib/mysql";
/// Replaces the path of an include, because it may contain private names.
const LEFT_OUT: &str = "(left-out)";

/// A parsed line that is neither blank nor a comment.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    Group(&'a str),
    Include(&'a str, &'a str),
    PlacedSetting(String, Option<&'a str>),
}

/// Whether the server reads a group of an option file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    Yes,
    No,
    /// Unknown: the group applies only to one version, and the version of the server is unknown.
    Perhaps,
}

pub(crate) fn collect(g: &mut Gather<'_>) {
    note_postgresql(g);
    note_mariadb(g);
}

fn note_postgresql(g: &mut Gather<'_>) {
    for version in g.list("postgresql", POSTGRESQL) {
        let version = lossy(&version);
        for cluster in g.list("postgresql", &format!("{POSTGRESQL}/{version}")) {
            let name = format!("{version}/{}", lossy(&cluster));
            let mut all = Lines::new(None);
            all.read_file(g, &format!("{POSTGRESQL}/{name}/postgresql.conf"), None);
            if all.is_absent() {
                continue;
            }
            let usual = format!("{DATA}/{name}");
            let data = all
                .last("data_directory")
                .map_or(usual, |said| said.value.clone());
            all.read_file(
                g,
                &format!("{}/{ALTERED}", data.trim_end_matches('/')),
                None,
            );
            let subject = format!("postgresql.cluster.{name}");
            all.note_missing(g, &subject);
            for key in SWITCHES {
                all.note(g, &subject, key, ("on", "postgres --describe-config"));
            }
            for key in DAMAGE {
                all.note(g, &subject, key, ("off", "postgres --describe-config"));
            }
            if g.facts.str(&format!("{subject}.full_page_writes")) == Some("off") {
                atomic_page_writes::note(g, &subject, &data);
            }
            g.about(["postgresql.cluster", &name]);
        }
    }
}

fn note_mariadb(g: &mut Gather<'_>) {
    let server = Server::find(g);
    let mut all = Lines::new(Some(server));
    for file in OPTIONS {
        all.read_file(g, file, None);
    }
    if all.is_absent() {
        return;
    }
    all.note_missing(g, "mariadb");
    for (key, default) in INNODB {
        all.note(g, "mariadb", key, (default, "mariadbd --help --verbose"));
    }
    if g.facts.str("mariadb.innodb_doublewrite") == Some("off") {
        let data = all.last("datadir").map(|said| said.value.clone());
        let data = data.unwrap_or_else(|| MARIADB_DATA.to_owned());
        atomic_page_writes::note(g, "mariadb", &data);
    }
}

/// The server that reads the option files, according to dpkg.
pub(crate) struct Server {
    /// Major and minor version; `None` if unknown.
    version: Option<(u32, u32)>,
    /// Whether the server is MySQL, not MariaDB.
    mysql: bool,
}

impl Server {
    /// Returns whether the server creates a certificate of its own at its first start, as MySQL does since 5.7.
    pub(crate) fn makes_certificate(&self) -> bool {
        self.mysql && self.version.is_none_or(|version| version >= (5, 7))
    }

    pub(crate) fn find(g: &Gather<'_>) -> Self {
        let servers = packages::PACKAGES.into_iter().filter_map(|name| {
            let mysql = name.starts_with("mysql-");
            (mysql || name.starts_with("mariadb-server")).then_some((name, mysql))
        });
        let found = servers.into_iter().find_map(|(name, mysql)| {
            let (version, _) = packages::find_version(g, name)?;
            let (major, minor, _) = packages::numbers(&version);
            Some(((major, minor), mysql))
        });
        Self {
            version: found.map(|(version, _)| version),
            mysql: found.is_some_and(|(_, mysql)| mysql),
        }
    }

    /// Whether the server writes a binary log without a line that turns it on.
    pub(crate) fn logs_by_default(&self) -> bool {
        self.mysql && self.version.is_some_and(|(major, _)| major >= 8)
    }

    /// Whether the server reads a group; no for a group of one version if its own version is unknown.
    pub(crate) fn reads_surely(&self, group: &str) -> bool {
        matches!(self.reads(group), Read::Yes)
    }

    /// Returns whether the server reads a group (`mariadbd --help --verbose`, "The following groups
    /// are read").
    fn reads(&self, group: &str) -> Read {
        if GROUPS.contains(&group) {
            let of_mariadb = !["mysqld", "server"].contains(&group);
            return if of_mariadb && self.mysql {
                Read::No
            } else {
                Read::Yes
            };
        }
        let Some((name, version)) = group
            .rsplit_once('-')
            .filter(|(name, _)| VERSIONED.contains(name))
        else {
            return Read::No;
        };
        let numbers = version.split_once('.').and_then(|(major, minor)| {
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        });
        match (numbers, self.version) {
            (None, _) => Read::No,
            (Some(_), None) => Read::Perhaps,
            (Some(group), Some(version))
                if group == version && !(self.mysql && name != "mysqld") =>
            {
                Read::Yes
            }
            _ => Read::No,
        }
    }
}

/// Returns the option files that the server reads, in this order: the main files, each followed by what it includes. A
/// directory that no main file includes may be left from another server. Without a main file, the usual directories of
/// the installed server count.
pub(crate) fn option_files(g: &mut Gather<'_>, key: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut any = false;
    for main in OPTIONS {
        let text = g.read(key, main);
        any |= text.is_some();
        all.push(main.to_owned());
        let lines = text.as_deref().unwrap_or_default().lines();
        for line in lines.map(parse_line) {
            match line {
                Some(Line::Include("!includedir", dir)) => {
                    all.extend(cnf_files(g, key, dir.trim_end_matches('/')));
                }
                Some(Line::Include("!include", file)) => all.push(file.to_owned()),
                _ => {}
            }
        }
    }
    let server = Server::find(g);
    let known = server.version.is_some();
    for (dir, of_mysql, of_mariadb) in DIRECTORIES {
        let belongs = !known || if server.mysql { of_mysql } else { of_mariadb };
        if !any && belongs {
            all.extend(cnf_files(g, key, dir));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|path| seen.insert(path.clone()));
    all.truncate(FILES);
    all
}

fn cnf_files(g: &mut Gather<'_>, key: &str, dir: &str) -> Vec<String> {
    let mut names: Vec<String> = g.list(key, dir).iter().map(|name| lossy(name)).collect();
    names.retain(|name| name.ends_with(".cnf"));
    names.sort();
    names.iter().map(|name| format!("{dir}/{name}")).collect()
}

/// A setting with its file and line.
struct PlacedSetting {
    name: String,
    value: String,
    place: FactPlace,
    /// Whether it is unknown if this setting applies, because its group is for one version and the version of the
    /// server is unknown.
    perhaps: bool,
}

/// Settings of all configuration files in reading order.
struct Lines {
    /// Whether at least one file exists.
    any: bool,
    files: usize,
    said: Vec<PlacedSetting>,
    /// Files that could not be read. Each has the number of settings read before it, the reason, and the place of the
    /// directive that includes it.
    missing: Vec<(usize, String, FactPlace)>,
    /// Whether the server rejects the configuration because a required file is missing. In this case the settings of
    /// the running server are unknown.
    refused: bool,
    /// The server that reads the option files; `None` for PostgreSQL, whose files have no groups.
    server: Option<Server>,
}

impl Lines {
    fn new(server: Option<Server>) -> Self {
        Self {
            any: false,
            files: 0,
            said: Vec::new(),
            missing: Vec::new(),
            refused: false,
            server,
        }
    }

    /// Returns whether the program seems not to be installed. An unreadable file counts as installed, because it may
    /// belong to the program.
    fn is_absent(&self) -> bool {
        !self.any && self.missing.is_empty()
    }

    /// Returns the last setting of a key.
    fn last(&self, key: &str) -> Option<&PlacedSetting> {
        self.said
            .iter()
            .rev()
            .find(|said| said.name == key && !said.perhaps)
    }

    /// Reads a file and its includes. `from` is the line that includes the file; `None` for a main file. A missing main
    /// file counts as empty. If an included file is missing, the server may have settings that assay does not see.
    fn read_file(&mut self, g: &Gather<'_>, path: &str, from: Option<&FactPlace>) {
        self.files += 1;
        if self.files > FILES {
            return self.lacks(path, "more files than one server has", from);
        }
        let text = match g.host.read_text(Path::new(path)) {
            Ok(text) => text,
            Err(error) if error.is_absent() && from.is_none() => return,
            Err(error) => return self.lacks(path, &error.reason(), from),
        };
        self.any = true;
        // Groups exist in option files of MariaDB only; a line without a group belongs to
        // PostgreSQL.
        let mut reads = Read::Yes;
        for (number, line) in text.lines().enumerate() {
            match parse_line(line) {
                Some(Line::Group(name)) => {
                    reads = self
                        .server
                        .as_ref()
                        .map_or(Read::No, |server| server.reads(name));
                }
                Some(Line::Include(how, target)) => {
                    let at = super::setting_lines::place(path, number, line);
                    self.read_included(g, path, (how, target), &at);
                }
                Some(Line::PlacedSetting(name, value)) if reads != Read::No => {
                    let (name, value) = normalize_option(&name, value);
                    self.said.push(PlacedSetting {
                        name,
                        value,
                        place: super::setting_lines::place(path, number, line),
                        perhaps: reads == Read::Perhaps,
                    });
                }
                _ => {}
            }
        }
    }

    fn read_included(
        &mut self,
        g: &Gather<'_>,
        from: &str,
        (how, target): (&str, &str),
        at: &FactPlace,
    ) {
        if target == LEFT_OUT || (how.starts_with('!') && !target.starts_with('/')) {
            let why = "a name that is not followed here";
            return self.lacks(target, why, Some(at));
        }
        let beside = Path::new(from).parent().unwrap_or(Path::new("/"));
        let target = beside.join(target);
        let target = target.to_string_lossy();
        let end = match how {
            "include_dir" => ".conf",
            "!includedir" => ".cnf",
            // PostgreSQL logs the missing file and continues.
            "include_if_exists" if g.host.exists(Path::new(&*target)).is_ok_and(|is| !is) => return,
            _ => {
                let there = g.host.exists(Path::new(&*target));
                self.refused |= how != "!include" && there.is_ok_and(|is| !is);
                return self.read_file(g, &target, Some(at));
            }
        };
        let mut names = match g.host.list(Path::new(&*target)) {
            Ok(names) => names.iter().map(|name| lossy(name)).collect::<Vec<_>>(),
            // Directories of the distribution are initially empty and are missing in copies of a
            // machine.
            Err(error) if error.is_absent() && is_usual(from, &target) => return,
            Err(error) => {
                self.refused |= error.is_absent();
                return self.lacks(&target, &error.reason(), Some(at));
            }
        };
        // MariaDB also reads files whose names begin with a dot.
        names.retain(|name| name.ends_with(end) && (end == ".cnf" || !name.starts_with('.')));
        names.sort();
        for name in names {
            self.read_file(
                g,
                &format!("{}/{name}", target.trim_end_matches('/')),
                Some(at),
            );
        }
    }

    fn lacks(&mut self, path: &str, reason: &str, from: Option<&FactPlace>) {
        let place = from.cloned().unwrap_or_else(|| FactPlace::from(path));
        let why = match from {
            Some(_) => format!("what it includes, {path}, cannot be read: {reason}"),
            None => reason.to_owned(),
        };
        self.missing.push((self.said.len(), why, place));
    }

    /// Notes that some files were not read. Settings that no other file contains are then unknown.
    fn note_missing(&self, g: &mut Gather<'_>, subject: &str) {
        if let Some((_, why, place)) = self.missing.first() {
            g.facts
                .unknown(subject, why, FactKind::Configured, place.clone());
        }
    }

    /// Notes the last setting of a key. The fact is unknown if an unread file may set the key and no later line sets
    /// it.
    fn note(&self, g: &mut Gather<'_>, subject: &str, key: &str, (default, told): (&str, &str)) {
        let fact = format!("{subject}.{key}");
        let last = self
            .said
            .iter()
            .rposition(|said| said.name == key && !said.perhaps);
        let hidden = self
            .missing
            .iter()
            .any(|(before, ..)| last.is_none_or(|last| *before > last));
        let found = last.map(|at| &self.said[at]);
        // While the server rejects the configuration, a safe value proves nothing, but an unsafe
        // value is reported.
        let right = found.is_some_and(|said| said.value == default);
        if hidden || (self.refused && right) {
            return;
        }
        let value = found.map_or(default, |said| said.value.as_str());
        let later = self.said.iter().skip(last.map_or(0, |at| at + 1));
        let mut perhaps = later.filter(|said| said.name == key && said.value != value);
        let unknown = match (perhaps.next(), found) {
            (Some(said), _) => Some((
                "its group counts for one version, and that of the server is not known",
                said,
            )),
            (None, Some(said)) if value.contains('(') => {
                Some(("no value that is understood here", said))
            }
            _ => None,
        };
        match (unknown, found) {
            (Some((why, said)), _) => {
                g.facts
                    .unknown(fact, why, FactKind::Configured, said.place.clone());
            }
            (None, Some(said)) => {
                g.facts
                    .known(fact, value, FactKind::Configured, said.place.clone());
            }
            (None, None) => {
                let place = FactPlace::Words(told.to_owned());
                g.facts.known(fact, default, FactKind::Default, place);
            }
        }
    }
}

/// Returns whether a package of Debian or Red Hat creates the directory for the administrator's own files. `from` is
/// the file that includes the directory.
fn is_usual(from: &str, dir: &str) -> bool {
    let dir = dir.trim_end_matches('/');
    let of_cluster = Path::new(from)
        .parent()
        .is_some_and(|beside| Path::new(dir) == beside.join("conf.d"));
    let usual = [
        "/etc/my.cnf.d",
        "/etc/mysql/conf.d",
        "/etc/mysql/mariadb.conf.d",
        "/etc/mysql/mysql.conf.d",
    ];
    of_cluster || usual.contains(&dir)
}

/// Parses a line. The `=` is optional (PostgreSQL), dashes in names equal underscores (MariaDB), and names are
/// case-insensitive.
fn parse_line(line: &str) -> Option<Line<'_>> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix('[') {
        return Some(Line::Group(rest.split_once(']')?.0.trim_end()));
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
    let lower = name.to_ascii_lowercase();
    match (INCLUDES.iter().find(|known| **known == lower), value) {
        _ if name.is_empty() => None,
        (Some(name), value) => value.map(|target| Line::Include(name, target)),
        _ => Some(Line::PlacedSetting(
            name.to_ascii_lowercase().replace('-', "_"),
            value,
        )),
    }
}

/// Removes the prefix of a name and normalises the value: `on`, `off`, or the word itself.
fn normalize_option(name: &str, value: Option<&str>) -> (String, String) {
    let (mut name, mut turned) = (name, false);
    while let Some(prefix) = PREFIXES.iter().find(|prefix| name.starts_with(*prefix)) {
        turned ^= matches!(*prefix, "skip_" | "disable_");
        name = &name[prefix.len()..];
    }
    let number = name == "innodb_flush_log_at_trx_commit";
    if DATA_DIRECTORIES.contains(&name) {
        return (name.to_owned(), value.unwrap_or_default().to_owned());
    }
    let value = value.unwrap_or("1").to_ascii_lowercase();
    // PostgreSQL accepts unique prefixes of the words (parse_bool_with_len).
    let begins = |words: &[&str]| words.iter().any(|word| word.starts_with(&*value));
    let truth = match value.as_str() {
        "" | "o" => None,
        "1" => Some(true),
        "0" => Some(false),
        _ if begins(&["on", "true", "yes"]) => Some(true),
        _ if begins(&["off", "false", "no"]) => Some(false),
        _ => None,
    };
    let value = match truth {
        Some(truth) if !number => ["off", "on"][usize::from(truth != turned)].to_owned(),
        _ => value,
    };
    (name.to_owned(), value)
}

/// Returns the names of all settings that are noted.
pub(crate) fn names() -> Vec<&'static str> {
    let innodb = INNODB.iter().map(|(key, _)| *key);
    SWITCHES
        .into_iter()
        .chain(DAMAGE)
        .chain(innodb)
        .chain(DATA_DIRECTORIES)
        .collect()
}

/// Returns whether a path may be a file of these databases.
pub(crate) fn may_be(path: &str) -> bool {
    let cluster = path.starts_with(&format!("{POSTGRESQL}/")) && path.ends_with(".conf");
    // Only databases have a file of this name, wherever their data lie.
    let altered = path.ends_with(&format!("/{ALTERED}"));
    let options = BELOW.iter().any(|dir| path.starts_with(dir)) && path.ends_with(".cnf");
    cluster || altered || options || OPTIONS.contains(&path)
}

/// Returns whether the names in a directory may be listed; the path ends with a slash.
pub(crate) fn may_be_listed(dir: &str) -> bool {
    dir.starts_with(&format!("{POSTGRESQL}/")) || BELOW.iter().any(|below| dir.starts_with(below))
}

/// Returns whether the server may read a group.
fn is_of_server(group: &str) -> bool {
    let version = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let name = group
        .rsplit_once('-')
        .filter(|(_, rest)| rest.bytes().all(version));
    GROUPS.contains(&name.map_or(group, |(name, _)| name)) || GROUPS.contains(&group)
}

/// Redacts a line: keeps the relevant groups, the includes, and the settings that are noted.
pub(crate) fn redact(line: &str) -> String {
    match parse_line(line) {
        Some(Line::Group(name)) if is_of_server(name) => format!("[{name}]"),
        Some(Line::Group(_)) => "[left-out]".to_owned(),
        Some(Line::Include(how, target)) if is_pattern(target) => format!("{how} {target}"),
        Some(Line::Include(how, _)) => format!("{how} {LEFT_OUT}"),
        Some(Line::PlacedSetting(name, value))
            if names().contains(&normalize_option(&name, None).0.as_str()) =>
        {
            let plain = |value: &str| {
                if DATA_DIRECTORIES.contains(&&*name) {
                    return secrets::is_plain(value);
                }
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
mod tests;
