//! Module parameters as configured in modprobe.d(5).

use crate::gather::{Gather, lossy, scalar};
use assay_model::{FactKind, Place};
use std::collections::BTreeMap;

const DIRS: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    for file in config_files(g, "module", &DIRS) {
        let Some(text) = g.read(&format!("module.{file}"), &file) else {
            continue;
        };
        for (module, parameter, value, line) in parse(&text) {
            let key = format!("module.{module}.{parameter}.configured");
            g.facts.known(
                key,
                scalar(&value),
                FactKind::Configured,
                Place::File {
                    path: file.clone(),
                    line: Some(line),
                    span: None,
                },
            );
        }
    }
}

/// The `*.conf` files of directories that are given in order of precedence, in the order in which
/// they are read: by name, and of each name only the first.
pub(crate) fn config_files(g: &mut Gather<'_>, key: &str, dirs: &[&str]) -> Vec<String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for dir in dirs {
        for name in g.list(&format!("{key}.{dir}"), dir) {
            let name = lossy(&name);
            if name.ends_with(".conf") {
                files
                    .entry(name.clone())
                    .or_insert_with(|| format!("{dir}/{name}"));
            }
        }
    }
    files.into_values().collect()
}

/// `options MODULE name=value …` lines: module, parameter, value, line number. A backslash at its
/// end continues a line; hyphens in module names count as underscores.
fn parse(text: &str) -> Vec<(String, String, String, usize)> {
    let mut found = Vec::new();
    let (mut joined, mut start) = (String::new(), 0);
    for (at, line) in text.lines().enumerate() {
        if joined.is_empty() {
            start = at + 1;
        }
        if let Some(part) = line.strip_suffix('\\') {
            joined.push_str(part);
            joined.push(' ');
            continue;
        }
        joined.push_str(line);
        let line = std::mem::take(&mut joined);
        let mut words = line.split_whitespace();
        if words.next() != Some("options") {
            continue;
        }
        let Some(module) = words.next() else { continue };
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, "1"));
            found.push((
                module.replace('-', "_"),
                name.to_owned(),
                value.to_owned(),
                start,
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_with_their_lines() {
        let text = "# zfs\noptions zfs zfs_arc_max=8589934592 zfs_txg_timeout=10\nblacklist floppy\noptions kvm-intel \\\n  nested=Y\n";
        let found = parse(text);
        assert_eq!(
            found[0],
            ("zfs".into(), "zfs_arc_max".into(), "8589934592".into(), 2)
        );
        assert_eq!(found[1].1, "zfs_txg_timeout");
        assert_eq!(
            found[2],
            ("kvm_intel".into(), "nested".into(), "Y".into(), 4)
        );
        assert_eq!(found.len(), 3);
    }
}
