//! Reads the files of a PostgreSQL cluster in the order in which the server reads them: settings with their includes
//! and those of ALTER SYSTEM, and records of pg_hba.conf with theirs.

use super::lines_of_files::{Line, exists, files, read};
use crate::gather::Gather;

/// Maximum depth of includes; the server stops at 10 (`CONF_FILE_MAX_DEPTH`).
const DEPTH: usize = 10;

/// Returns the name and the value of a setting. The equals sign is optional, and quotation marks are removed.
pub(super) fn parse_setting(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_.".contains(letter);
    let end = text.find(|letter: char| !is_name(letter))?;
    let (name, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next().unwrap_or_default(),
        None => rest.split(['#', ' ', '\t']).next().unwrap_or_default(),
    };
    (!name.is_empty()).then_some((name, value))
}

/// Returns the last value of a setting, with its line.
pub(super) fn last_value<'a>(lines: &'a [Line], name: &str) -> Option<(&'a str, &'a Line)> {
    lines.iter().rev().find_map(|line| {
        let (key, value) = parse_setting(&line.text)?;
        key.eq_ignore_ascii_case(name).then_some((value, line))
    })
}

/// Reads the settings of a cluster: its main file with all includes, and the settings of ALTER SYSTEM.
pub(super) fn read_settings(g: &mut Gather<'_>, key: &str, main: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    follow(g, key, main, &mut lines, DEPTH, &settings_include);
    let dir = main.rsplit_once('/').map_or("", |(dir, _)| dir);
    let usual = dir
        .strip_prefix("/etc/")
        .map(|cluster| format!("/var/lib/{cluster}"));
    let data = last_value(&lines, "data_directory").map(|(value, _)| value.to_owned());
    if let Some(data) = data.or(usual) {
        let path = format!("{}/postgresql.auto.conf", data.trim_end_matches('/'));
        lines.extend(read(g, key, &path));
    }
    lines
}

/// Reads the records of pg_hba.conf. Since version 16 the file may include others.
pub(super) fn read_records(g: &mut Gather<'_>, key: &str, main: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    follow(g, key, main, &mut lines, DEPTH, &records_include);
    lines
}

fn settings_include(text: &str) -> Option<(String, String)> {
    let (name, value) = parse_setting(text)?;
    Some((name.to_ascii_lowercase(), value.to_owned()))
}

fn records_include(text: &str) -> Option<(String, String)> {
    let words = split_record(text);
    match &words[..] {
        [name, value] => Some((name.clone(), value.clone())),
        _ => None,
    }
}

type Include = dyn Fn(&str) -> Option<(String, String)>;

fn follow(
    g: &mut Gather<'_>,
    key: &str,
    path: &str,
    lines: &mut Vec<Line>,
    depth: usize,
    include: &Include,
) {
    if depth == 0 {
        return;
    }
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    for line in read(g, key, path) {
        let Some((how, target)) = include(&line.text) else {
            lines.push(line);
            continue;
        };
        let target = match target.starts_with('/') {
            true => target,
            false => format!("{dir}/{target}"),
        };
        match how.as_str() {
            "include" | "include_if_exists" if exists(g, &target) => {
                follow(g, key, &target, lines, depth - 1, include);
            }
            "include_dir" => {
                for one in files(g, key, target.trim_end_matches('/'), ".conf") {
                    follow(g, key, &one, lines, depth - 1, include);
                }
            }
            _ => lines.push(line),
        }
    }
}

/// Splits a record of pg_hba.conf into its fields, without quotation marks and comments.
pub(super) fn split_record(text: &str) -> Vec<String> {
    let (mut fields, mut quoted, mut open) = (vec![String::new()], false, false);
    for letter in text.chars() {
        match letter {
            '"' => {
                quoted = !quoted;
                open = true;
            }
            '#' if !quoted => break,
            letter if letter.is_whitespace() && !quoted => {
                if open {
                    fields.push(String::new());
                }
                open = false;
            }
            letter => {
                open = true;
                if let Some(field) = fields.last_mut() {
                    field.push(letter);
                }
            }
        }
    }
    if !open {
        fields.pop();
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn fields_and_settings() {
        let fields = split_record("hostnossl \"all\" +app,r  0.0.0.0\t0.0.0.0 \"trust\" # x");
        assert_eq!(
            fields,
            ["hostnossl", "all", "+app,r", "0.0.0.0", "0.0.0.0", "trust"]
        );
        assert!(split_record("# none").is_empty());
        assert_eq!(parse_setting("FSYNC off"), Some(("FSYNC", "off")));
        assert_eq!(parse_setting(" a.b='c d' # e"), Some(("a.b", "c d")));
    }

    #[test]
    fn includes_and_altered_settings() {
        let host = Recorded::new()
            .file(
                "/etc/postgresql/15/main/postgresql.conf",
                "a = 1\ninclude_dir 'conf.d'\nb = 1\n",
            )
            .file("/etc/postgresql/15/main/conf.d/10.conf", "a = 2\nb = 2\n")
            .file(
                "/var/lib/postgresql/15/main/postgresql.auto.conf",
                "c = '3'\n",
            );
        let mut g = Gather::new(&host);
        let lines = read_settings(&mut g, "k", "/etc/postgresql/15/main/postgresql.conf");
        let value = |name: &str| last_value(&lines, name).map(|(value, _)| value);
        assert_eq!(
            (value("a"), value("b"), value("c")),
            (Some("2"), Some("1"), Some("3"))
        );
    }
}
