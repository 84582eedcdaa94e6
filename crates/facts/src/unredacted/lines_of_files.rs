//! Reads small configuration files line by line. Other modules interpret the lines.

use crate::collectors::services::setting_lines::place;
use crate::gather::{Gather, lossy};
use assay_host::FileKind;
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::path::Path;

/// Maximum number of files that are read in one directory.
const MOST: usize = 1000;

/// A line of a file with its place.
pub(super) struct Line {
    pub(super) text: String,
    pub(super) place: FactPlace,
}

/// Reads the lines of a file, and joins lines that end with a backslash. A missing file gives no lines. Any other error
/// is noted under `key`.
pub(super) fn read(g: &mut Gather<'_>, key: &str, path: &str) -> Vec<Line> {
    let text = g.read(key, path);
    text.map_or_else(Vec::new, |text| join(path, &text))
}

/// As [`read`], but a file that cannot be read gives no lines: another question is about this file.
pub(super) fn read_readable(g: &Gather<'_>, path: &str) -> Vec<Line> {
    let text = g.host.read_text(Path::new(path));
    text.map_or_else(|_| Vec::new(), |text| join(path, &text))
}

fn join(path: &str, text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut goes_on = false;
    for (number, line) in text.lines().enumerate() {
        let (body, more) = match line.strip_suffix('\\') {
            Some(body) => (body, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => {
                last.text.push(' ');
                last.text.push_str(body);
            }
            None => lines.push(Line {
                text: body.to_owned(),
                place: place(path, number, line),
            }),
        }
        goes_on = more;
    }
    lines
}

/// Returns the sorted paths of the files in a directory whose names end with `end`. If `end` is empty, omits
/// directories.
pub(super) fn files(g: &mut Gather<'_>, key: &str, dir: &str, end: &str) -> Vec<String> {
    let mut names: Vec<String> = g.list(key, dir).iter().map(|name| lossy(name)).collect();
    names.retain(|name| name.ends_with(end) && !name.starts_with('.'));
    names.sort();
    names.truncate(MOST);
    let paths = names.into_iter().map(|name| format!("{dir}/{name}"));
    let is_directory = |path: &String| {
        let stat = g.host.stat(Path::new(path));
        stat.is_ok_and(|stat| stat.kind == FileKind::Directory)
    };
    match end.is_empty() {
        true => paths.filter(|path| !is_directory(path)).collect(),
        false => paths.collect(),
    }
}

/// Returns whether a path exists.
pub(super) fn exists(g: &Gather<'_>, path: &str) -> bool {
    g.host.exists(Path::new(path)).unwrap_or(false)
}

/// Returns whether a tree contains the links of enabled units. A copy of single files lacks them, and says nothing
/// about what starts.
pub(super) fn holds_enabled_units(g: &Gather<'_>) -> bool {
    const UNITS: &str = "/etc/systemd/system";
    let dirs = g.host.list(Path::new(UNITS)).unwrap_or_default();
    let mut dirs = dirs.iter().map(|dir| lossy(dir));
    dirs.any(|dir| {
        let names = g.host.list(Path::new(&format!("{UNITS}/{dir}")));
        dir.ends_with(".wants") && names.is_ok_and(|names| !names.is_empty())
    })
}

/// Notes several properties of one subject, all with the same place in a file.
pub(super) fn note(
    g: &mut Gather<'_>,
    kind: &str,
    which: &str,
    place: &FactPlace,
    properties: &[(&str, Value)],
) {
    for (name, value) in properties {
        let fact = format!("{kind}.{which}.{name}");
        g.facts
            .known(fact, value.clone(), FactKind::Configured, place.clone());
    }
    g.about([kind, which]);
}

/// Returns whether an address, with or without a port, belongs to the loopback interface.
pub(super) fn is_loopback(address: &str) -> bool {
    let bare = address.trim_matches(['"', '\'']);
    bare.starts_with("127.")
        || bare.starts_with("localhost")
        || bare.starts_with("[::1]")
        || bare.starts_with("::1")
        || bare.starts_with("unix:")
        || bare.starts_with('/')
}
