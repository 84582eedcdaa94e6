//! Groups for other programs: JSON, CSV, and the formats of fdupes and fclones.

use crate::group::{Group, Groups};
use crate::name::{for_json, hex, lossless, push_hex};
use crate::read::Cost;
use crate::skip::Skipped;
use crate::table::{FileId, Files};
use std::io::{self, Write};

/// A format of the list of groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A list of groups, as in [`document`].
    Json,
    /// One object; see [`document`].
    Document,
    /// `size,hash,count,files…`, one line a group, as fclones writes it.
    Csv,
    /// Paths, an empty line after each group.
    Fdupes,
    /// fclones' default: a line `hash, size B (…) * count:`, then indented paths.
    Fclones,
    /// Paths ended by a zero byte, a second zero byte after each group: exact for any name.
    Nul,
}

/// Writes groups.
///
/// # Errors
/// When the output cannot be written.
pub fn plain(
    out: &mut dyn Write,
    format: Format,
    files: &Files,
    groups: &Groups,
) -> io::Result<()> {
    match format {
        Format::Json => {
            json(out, files, groups)?;
            out.write_all(b"\n")
        }
        Format::Document => document(out, files, groups, None),
        Format::Csv => csv(out, files, groups),
        Format::Fdupes => {
            for group in groups.iter() {
                for file in group.files {
                    out.write_all(&files.path(*file))?;
                    out.write_all(b"\n")?;
                }
                out.write_all(b"\n")?;
            }
            Ok(())
        }
        Format::Nul => {
            for group in groups.iter() {
                for file in group.files {
                    out.write_all(&files.path(*file))?;
                    out.write_all(b"\0")?;
                }
                out.write_all(b"\0")?;
            }
            Ok(())
        }
        Format::Fclones => fclones(out, files, groups),
    }
}

fn csv(out: &mut dyn Write, files: &Files, groups: &Groups) -> io::Result<()> {
    writeln!(out, "size,hash,count,files")?;
    for group in groups.iter() {
        write!(
            out,
            "{},{},{}",
            group.size,
            hash(files, group),
            group.files.len()
        )?;
        for file in group.files {
            let path = files.path(*file);
            let path = crate::name::readable(&path);
            if path.contains([',', '"', ' ']) {
                write!(out, ",\"{}\"", path.replace('"', "\"\""))?;
            } else {
                write!(out, ",{path}")?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn fclones(out: &mut dyn Write, files: &Files, groups: &Groups) -> io::Result<()> {
    writeln!(out, "# Report by assay {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "# Total: {} groups", groups.len())?;
    for group in groups.iter() {
        writeln!(
            out,
            "{}, {} B * {}:",
            hash(files, group),
            group.size,
            group.files.len()
        )?;
        for file in group.files {
            writeln!(out, "    {}", crate::name::readable(&files.path(*file)))?;
        }
    }
    Ok(())
}

fn hash(files: &Files, group: Group<'_>) -> String {
    files
        .hash(group.files[0])
        .map_or_else(String::new, |hash| hex(&hash[..files.kind.length()]))
}

/// What a scan can say beside its groups.
pub struct Around<'a> {
    /// What was left out.
    pub skipped: &'a Skipped,
    /// What reading cost.
    pub cost: Cost,
    /// Whether it was stopped before the end.
    pub interrupted: bool,
}

/// Writes one JSON object: `groups`, a list, each with `size` (bytes), `hash` (of the content; which one says `hash` at the top),
/// `files` (paths, one per inode), and, where there are any, `links` (further names of the same
/// inodes: object from path to list of paths), `machines` (one per file, in merged indexes) and
/// `bytes` (object from the position in `files` to the exact bytes of a path that is not UTF-8, in
/// hexadecimal; the path in `files` then has these bytes escaped as `\xNN`). Beside it `summary`,
/// and after a scan `skipped` (counts by reason), `problems` (each with `path`, `reason`,
/// `detail`), `cost` and `interrupted`.
///
/// # Errors
/// When the output cannot be written.
pub fn document(
    out: &mut dyn Write,
    files: &Files,
    groups: &Groups,
    around: Option<&Around<'_>>,
) -> io::Result<()> {
    write!(
        out,
        "{{\n\"schema\": 1,\n\"hash\": \"{}\",\n\"groups\": ",
        files.kind.name()
    )?;
    json(out, files, groups)?;
    let gain: u64 = groups.iter().map(|group| group.gain()).sum();
    let copies: usize = groups.iter().map(|group| group.files.len() - 1).sum();
    write!(
        out,
        ",\n\"summary\": {{\"files\": {}, \"groups\": {}, \"redundant_files\": {copies}, \"redundant_bytes\": {gain}}}",
        files.files.len(),
        groups.len(),
    )?;
    if let Some(around) = around {
        let counts: serde_json::Map<String, serde_json::Value> = around
            .skipped
            .counts()
            .map(|(reason, count)| (slug(reason), count.into()))
            .collect();
        out.write_all(b",\n\"skipped\": ")?;
        serde_json::to_writer(&mut *out, &counts)?;
        let problems: Vec<serde_json::Value> = around
            .skipped
            .details
            .iter()
            .map(|skip| {
                let mut problem = serde_json::json!({
                    "path": for_json(&skip.path),
                    "reason": skip.reason,
                    "detail": skip.detail,
                });
                if let Some(bytes) = lossless(&skip.path) {
                    problem["bytes"] = bytes.into();
                }
                problem
            })
            .collect();
        out.write_all(b",\n\"problems\": ")?;
        serde_json::to_writer(&mut *out, &problems)?;
        out.write_all(b",\n\"cost\": ")?;
        serde_json::to_writer(&mut *out, &around.cost)?;
        write!(out, ",\n\"interrupted\": {}", around.interrupted)?;
    }
    out.write_all(b"\n}\n")
}

/// The list of groups.
fn json(out: &mut dyn Write, files: &Files, groups: &Groups) -> io::Result<()> {
    out.write_all(b"[")?;
    let machines = files.filesystems.iter().any(|fs| !fs.machine.is_empty());
    // A line at a time: most of it is copied bytes, which many small writes would double.
    let mut line = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        line.clear();
        line.extend_from_slice(if number == 0 { b"\n" } else { b",\n" });
        write!(line, "{{\"size\": {}, \"hash\": \"", group.size)?;
        if let Some(hash) = files.hash(group.files[0]) {
            push_hex(&mut line, &hash[..files.kind.length()]);
        }
        line.extend_from_slice(b"\", \"files\": [");
        let mut exact = serde_json::Map::new();
        for (position, file) in group.files.iter().enumerate() {
            line.extend_from_slice(if position == 0 { b"\"" } else { b", \"" });
            let begin = line.len();
            files.push_path(*file, &mut line);
            line.push(b'"');
            if line[begin..line.len() - 1]
                .iter()
                .all(|byte| is_plain(*byte))
            {
                continue;
            }
            line.truncate(begin - 1);
            let path = files.path(*file);
            if let Some(bytes) = lossless(&path) {
                exact.insert(position.to_string(), bytes.into());
            }
            serde_json::to_writer(&mut line, for_json(&path).as_ref())?;
        }
        out.write_all(&line)?;
        out.write_all(b"]")?;
        if !exact.is_empty() {
            out.write_all(b", \"bytes\": ")?;
            serde_json::to_writer(&mut *out, &exact)?;
        }
        if !group.links.is_empty() {
            out.write_all(b", \"links\": ")?;
            serde_json::to_writer(&mut *out, &links(files, group.links))?;
        }
        if machines {
            let names: Vec<&str> = group
                .files
                .iter()
                .map(|file| files.machine(*file))
                .collect();
            out.write_all(b", \"machines\": ")?;
            serde_json::to_writer(&mut *out, &names)?;
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"\n]")
}

/// Bytes that stand for themselves in a JSON string (RFC 8259, section 7), among ASCII.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn slug(reason: crate::Reason) -> String {
    match serde_json::to_value(reason) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

fn links(files: &Files, links: &[(FileId, FileId)]) -> serde_json::Map<String, serde_json::Value> {
    let mut map = serde_json::Map::new();
    for (name, first) in links {
        let key = for_json(&files.path(*first)).into_owned();
        let list = map.entry(key).or_insert_with(|| serde_json::json!([]));
        if let serde_json::Value::Array(list) = list {
            list.push(for_json(&files.path(*name)).as_ref().into());
        }
    }
    map
}
