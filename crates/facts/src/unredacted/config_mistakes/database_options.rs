//! Finds mistakes in options of MariaDB, MySQL and PostgreSQL: logs that cannot be used, files and memory without a
//! limit, old password hashes, and client names that the client itself chooses. `collectors::services::databases`
//! collects the durability settings.

use super::super::lines_of_files::{Line, is_loopback, read};
use super::super::postgresql_files::{last_value, read_records, read_settings, split_record};
use super::Misuses;
use crate::collectors::services::databases::{POSTGRESQL, Server, option_files};
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;
use std::collections::BTreeMap;

/// Values of `archive_command` that discard the archived log.
const KEEP_NOTHING: [&str; 5] = ["true", "/bin/true", "/usr/bin/true", ":", "exit 0"];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_mariadb(g);
    note_postgresql(g);
}

fn note_mariadb(g: &mut Gather<'_>) {
    let all = option_files(g, "mariadb.misuse");
    let server = Server::find(g);
    let mut said: BTreeMap<String, (String, FactPlace)> = BTreeMap::new();
    for path in all {
        take_options(read(g, "mariadb.misuse", &path), &server, &mut said);
    }
    let mut found = Misuses::default();
    let is = |key: &str, value: &str| said.get(key).filter(|(said, _)| said == value);
    let no_log = ["skip-log-bin", "disable-log-bin"]
        .iter()
        .any(|key| said.contains_key(*key));
    // MySQL 8 writes the log unless a line turns it off.
    let logs = said.contains_key("log-bin") || server.logs_by_default();
    if logs && !no_log {
        if let Some((value, place)) = said.get("sync-binlog") {
            found.add("binlog_unsynced", value == "0", place.clone());
        }
        let kept = [
            "binlog-expire-logs-seconds",
            "expire-logs-days",
            "max-binlog-total-size",
        ];
        let limited = kept
            .iter()
            .any(|key| said.get(*key).is_some_and(|(value, _)| value != "0"));
        if let Some((_, place)) = kept.iter().find_map(|key| said.get(*key)) {
            found.add("binlogs_forever", !limited, place.clone());
        }
    }
    if let Some((value, place)) = said.get("old-passwords") {
        found.add(
            "old_passwords",
            !matches!(value.as_str(), "0" | "off"),
            place.clone(),
        );
    }
    if let Some((value, place)) = said.get("sql-mode") {
        let strict = ["strict_trans_tables", "strict_all_tables", "traditional"]
            .iter()
            .any(|mode| value.contains(mode));
        // A number and a variable are not judged.
        let named = value
            .chars()
            .all(|letter| letter.is_ascii_alphabetic() || "_, ".contains(letter));
        found.add("values_cut", named && !strict, place.clone());
    }
    if let Some((value, place)) = said.get("innodb-flush-method") {
        // The numbers are those of the list in `mariadbd --help --verbose`.
        let never = ["nosync", "littlesync", "2", "3"].contains(&value.as_str());
        found.add("never_flushed", never, place.clone());
    }
    if let Some((value, place)) = said.get("user") {
        found.add(
            "runs_as_root",
            value == "root" || value == "0",
            place.clone(),
        );
    }
    if let Some((value, place)) = said.get("secure-file-priv") {
        let everywhere = value.is_empty() && is("secure-file-priv", "").is_some();
        found.add("files_everywhere", everywhere, place.clone());
    }
    let memory = g.read("mariadb.misuse", "/proc/meminfo");
    let memory = memory.as_deref().and_then(total_memory);
    if let Some((value, place)) = said.get("innodb-buffer-pool-size")
        && let (Some(pool), Some(memory)) = (parse_size(value), memory)
    {
        found.add("pool_above_memory", pool >= memory, place.clone());
    }
    found.note(g, "mariadb.misuse");
}

/// Adds the options of the server to `said`. The last value of each option applies.
fn take_options(
    lines: Vec<Line>,
    server: &Server,
    said: &mut BTreeMap<String, (String, FactPlace)>,
) {
    let mut counts = false;
    for line in lines {
        let text = line.text.trim();
        if let Some(group) = text.strip_prefix('[') {
            let name = group.split(']').next().unwrap_or_default();
            counts = server.reads_surely(name);
            continue;
        }
        if !counts || text.is_empty() || text.starts_with(['#', ';']) {
            continue;
        }
        let (name, value) = text.split_once('=').unwrap_or((text, "1"));
        let name = name.trim().to_ascii_lowercase().replace('_', "-");
        let name = name.strip_prefix("loose-").unwrap_or(&name).to_owned();
        let value = value
            .split('#')
            .next()
            .unwrap_or_default()
            .trim()
            .trim_matches(['"', '\'']);
        said.insert(name, (value.to_ascii_lowercase(), line.place));
    }
}

/// Parses a number with an optional unit K, M, G or T, in bytes.
fn parse_size(text: &str) -> Option<u64> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let factor = match &text[end..] {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(factor)
}

/// Returns `MemTotal` of /proc/meminfo in bytes.
fn total_memory(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace()
        .next()?
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

fn note_postgresql(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    for version in g.list("postgresql.misuse", POSTGRESQL) {
        let dir = format!("{POSTGRESQL}/{}", lossy(&version));
        for cluster in g.list("postgresql.misuse", &dir) {
            let dir = format!("{dir}/{}", lossy(&cluster));
            let main = format!("{dir}/postgresql.conf");
            let settings = read_settings(g, "postgresql.misuse", &main);
            note_cluster(&settings, lossy(&version).parse().ok(), &mut found);
            let mut maps = Vec::new();
            for line in read_records(g, "postgresql.misuse", &format!("{dir}/pg_hba.conf")) {
                let record = split_record(&line.text);
                let words: Vec<&str> = record.iter().map(String::as_str).collect();
                let named = words.iter().filter_map(|word| word.strip_prefix("map="));
                maps.extend(named.map(str::to_owned));
                let [kind, _, _, address, rest @ ..] = &words[..] else {
                    continue;
                };
                if !kind.starts_with("host") {
                    continue;
                }
                let ident = rest.iter().take(2).any(|word| *word == "ident");
                let far = !is_loopback(address) && *address != "samehost";
                found.add("name_of_client", ident && far, line.place);
            }
            for line in read_records(g, "postgresql.misuse", &format!("{dir}/pg_ident.conf")) {
                if let [map, name, role] = &split_record(&line.text)[..]
                    && maps.contains(map)
                {
                    let all = fits_all(name) && !role.contains("\\1");
                    found.add("map_admits_all", all, line.place);
                }
            }
        }
    }
    found.note(g, "postgresql.misuse");
}

/// Whether the system user of a line in pg_ident.conf is an expression that every name fits.
fn fits_all(name: &str) -> bool {
    let expression = name.strip_prefix('/');
    expression.is_some_and(|text| {
        let bare: String = text
            .chars()
            .filter(|letter| !"^$()".contains(*letter))
            .collect();
        [".*", ".+"].contains(&bare.as_str())
    })
}

fn note_cluster(lines: &[Line], version: Option<f64>, found: &mut Misuses) {
    let last = |name: &str| last_value(lines, name);
    let on = last("archive_mode").is_some_and(|(value, _)| {
        let value = value.to_ascii_lowercase();
        value == "always" || is_true(&value)
    });
    // Where a library archives, the command is not used.
    let by_library = last("archive_library").is_some_and(|(value, _)| !value.is_empty());
    if let Some((command, line)) = last("archive_command").filter(|_| on && !by_library) {
        found.add(
            "archive_keeps_nothing",
            KEEP_NOTHING.contains(&command.trim()),
            line.place.clone(),
        );
    }
    if let Some((hash, line)) = last("password_encryption") {
        let hash = hash.to_ascii_lowercase();
        // Up to 13, `on` stands for md5; later versions do not start with the word.
        let old = hash == "md5" || (version.is_none_or(|version| version < 14.0) && is_true(&hash));
        found.add("old_hash", old, line.place.clone());
    }
}

/// Whether a word is true for PostgreSQL, which accepts unique prefixes (parse_bool).
fn is_true(word: &str) -> bool {
    let begins = |whole: &str| !word.is_empty() && whole.starts_with(word);
    word == "on" || word == "1" || begins("true") || begins("yes")
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn options_and_their_near_misses() {
        let memory = ("/proc/meminfo", "MemTotal:       8000000 kB\n");
        let server = (
            "/var/lib/dpkg/status",
            "Package: mariadb-server\nStatus: install ok installed\nVersion: 1:10.11.14-0+deb12u2\n",
        );
        for (text, expected) in [
            (
                "[mysqld]\nlog_bin=b\nsync_binlog=0\n",
                "binlog_unsynced=true",
            ),
            ("[mysqld]\nsync_binlog=0\n", ""),
            (
                "[mysqld]\nlog-bin\nexpire_logs_days=0\n",
                "binlogs_forever=true",
            ),
            (
                "[mysqld]\nlog-bin\nexpire_logs_days=0\nbinlog_expire_logs_seconds=864000\n",
                "binlogs_forever=false",
            ),
            ("[mysqld]\nlog-bin\n", ""),
            (
                "[mysqld]\nsql-mode=NO_ENGINE_SUBSTITUTION\n",
                "values_cut=true",
            ),
            ("[mysqld]\nsql_mode=TRADITIONAL\n", "values_cut=false"),
            ("[mysqld]\nsql_mode=\"\"\n", "values_cut=true"),
            ("[server]\ninnodb_flush_method=3\n", "never_flushed=true"),
            (
                "[server]\ninnodb_flush_method=O_DIRECT\n",
                "never_flushed=false",
            ),
            ("[mariadb]\nuser = \"root\"\n", "runs_as_root=true"),
            ("[mysqldump]\nuser = root\n", ""),
            ("[mysqld]\nold_passwords=1\n", "old_passwords=true"),
            ("[mariadb-10.11]\nold_passwords=1\n", "old_passwords=true"),
            ("[mariadb-10.5]\nold_passwords=1\n", ""),
            ("[client]\nold_passwords=1\n", ""),
            ("[mysqld]\nsecure_file_priv=\n", "files_everywhere=true"),
            (
                "[mysqld]\nsecure_file_priv=/srv/in\n",
                "files_everywhere=false",
            ),
            (
                "[mysqld]\ninnodb_buffer_pool_size=64G\n",
                "pool_above_memory=true",
            ),
            (
                "[mysqld]\ninnodb_buffer_pool_size = 4G\n",
                "pool_above_memory=false",
            ),
        ] {
            let all = [("/etc/mysql/my.cnf", text), memory, server];
            assert_eq!(found(&all, collect).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn clusters_and_their_near_misses() {
        for (name, text, expected) in [
            (
                "pg_hba.conf",
                "host all all 10.0.0.0/8 ident\n",
                "name_of_client=true",
            ),
            (
                "pg_hba.conf",
                "host all all 127.0.0.1/32 ident\n",
                "name_of_client=false",
            ),
            ("pg_hba.conf", "local all all peer\n", ""),
            (
                "postgresql.conf",
                "archive_mode = on\narchive_command = '/bin/true'\n",
                "archive_keeps_nothing=true",
            ),
            (
                "postgresql.conf",
                "archive_mode = off\narchive_command = '/bin/true'\n",
                "",
            ),
            (
                "postgresql.conf",
                "archive_mode on\narchive_command 'cp %p /a/%f'\n",
                "archive_keeps_nothing=false",
            ),
            (
                "postgresql.conf",
                "archive_mode on\narchive_command = 'true'\narchive_library = 'basic_archive'\n",
                "",
            ),
            (
                "postgresql.conf",
                "archive_mode = always\narchive_command = 'exit 0'\n",
                "archive_keeps_nothing=true",
            ),
            (
                "postgresql.conf",
                "password_encryption = md5\t# old\n",
                "old_hash=true",
            ),
            (
                "postgresql.conf",
                "password_encryption = 'scram-sha-256'\n",
                "old_hash=false",
            ),
        ] {
            let path = format!("/etc/postgresql/15/main/{name}");
            assert_eq!(
                found(&[(&path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
