//! Writes groups for other programs: JSON, CSV, and the formats of fdupes and fclones.

mod fclones;

use crate::group::{DuplicateGroup, Groups};
use crate::name::{encode_hex, encode_lossless, for_json, push_hex};
use crate::read::Cost;
use crate::skip::Skipped;
use crate::table::{FileId, Files};
use std::io::{self, Write};

/// Format in which groups are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupFormat {
    /// JSON list of groups, as in [`write_document`].
    Json,
    /// JSON object with the groups and a summary, see [`write_document`].
    Document,
    /// `size,hash,count,files…`, one line per group as in fclones, with names in STFU-8.
    Csv,
    /// Paths, an empty line after each group.
    Fdupes,
    /// Default report of fclones, input of `fclones link`, `remove` and `dedupe`: a header, then for each
    /// group a line `hash, size B (…) * count:` and indented paths in STFU-8.
    Fclones,
    /// Each path ends with a zero byte, each group with a second zero byte: exact for any name.
    Nul,
}

/// Writes groups.
///
/// # Errors
/// The output cannot be written.
pub fn write_groups(
    out: &mut dyn Write,
    format: GroupFormat,
    files: &Files,
    groups: &Groups,
) -> io::Result<()> {
    match format {
        GroupFormat::Json => {
            write_json_groups(out, files, groups)?;
            out.write_all(b"\n")
        }
        GroupFormat::Document => write_document(out, files, groups, None),
        GroupFormat::Csv => fclones::write_csv(out, files, groups),
        GroupFormat::Fdupes => in_pieces(out, groups, &|_, group, text| {
            paths(files, group, b'\n', text);
            Ok(())
        }),
        GroupFormat::Nul => in_pieces(out, groups, &|_, group, text| {
            paths(files, group, b'\0', text);
            Ok(())
        }),
        GroupFormat::Fclones => fclones::report(out, files, groups),
    }
}

/// Writes the paths of a group, each followed by `end`, and a final `end`.
fn paths(files: &Files, group: DuplicateGroup<'_>, end: u8, text: &mut Vec<u8>) {
    for file in group.files {
        files.push_path(*file, text);
        text.push(end);
    }
    text.push(end);
}

/// Number of groups that are formatted at once.
const PIECE: usize = 1024;

/// Formats groups on all CPUs and writes them in order. `say` formats the group with the given number.
fn in_pieces(
    out: &mut dyn Write,
    groups: &Groups,
    say: &(impl Fn(usize, DuplicateGroup<'_>, &mut Vec<u8>) -> io::Result<()> + Sync),
) -> io::Result<()> {
    let piece = |begin: usize, text: &mut Vec<u8>| -> io::Result<()> {
        text.clear();
        let end = groups.len().min(begin + PIECE);
        (begin..end).try_for_each(|number| say(number, groups.at(number), text))
    };
    let pieces = groups.len().div_ceil(PIECE);
    let threads = crate::pool::count_processors().min(pieces);
    if threads < 2 {
        let mut text = Vec::new();
        for begin in (0..groups.len()).step_by(PIECE) {
            piece(begin, &mut text)?;
            out.write_all(&text)?;
        }
        return Ok(());
    }
    std::thread::scope(|scope| {
        // For each thread: a channel for formatted text, and a channel that returns buffers.
        let speakers: Vec<_> = (0..threads)
            .map(|first| {
                let (said, hear) = std::sync::mpsc::sync_channel(1);
                let (give_back, empty) = std::sync::mpsc::sync_channel::<Vec<u8>>(2);
                let piece = &piece;
                scope.spawn(move || {
                    for number in (first..pieces).step_by(threads) {
                        let mut text = empty.try_recv().unwrap_or_default();
                        let result = piece(number * PIECE, &mut text);
                        if said.send(result.map(|()| text)).is_err() {
                            return; // The output failed.
                        }
                    }
                });
                (hear, give_back)
            })
            .collect();
        for number in 0..pieces {
            let (hear, give_back) = &speakers[number % threads];
            // Receiving fails only after a panic, which the scope passes on.
            let Ok(text) = hear.recv() else { break };
            let text = text?;
            out.write_all(&text)?;
            let _ = give_back.try_send(text);
        }
        Ok(())
    })
}

fn hash(files: &Files, group: DuplicateGroup<'_>) -> String {
    files
        .hash(group.files[0])
        .map_or_else(String::new, |hash| encode_hex(&hash[..files.kind.length()]))
}

/// Results of a scan that a JSON document contains in addition to the groups.
pub struct Around<'a> {
    /// Files that the scan skipped, with reasons.
    pub skipped: &'a Skipped,
    /// How much the scan read.
    pub cost: Cost,
    /// Whether the scan was interrupted.
    pub interrupted: bool,
}

/// Schema of the document that [`write_document`] writes. The document is written in pieces, because the list of groups
/// may not fit into memory.
#[derive(schemars::JsonSchema)]
#[allow(dead_code, reason = "it stands for what is written without it")]
#[schemars(rename = "Document")]
pub struct GroupDocument {
    schema: u32,
    /// Kind of the hash, such as `blake3`.
    hash: String,
    groups: Vec<GroupSeen>,
    summary: Summary,
    /// Number of skipped files by reason. This field and all fields below are present only after a scan.
    #[schemars(skip_serializing_if = "absent")]
    skipped: std::collections::BTreeMap<String, u64>,
    #[schemars(skip_serializing_if = "absent")]
    problems: Vec<Problem>,
    #[schemars(skip_serializing_if = "absent")]
    cost: Cost,
    /// Whether the scan was interrupted.
    #[schemars(skip_serializing_if = "absent")]
    interrupted: bool,
}

/// A group of files with equal content.
#[derive(schemars::JsonSchema)]
#[allow(dead_code, reason = "it stands for what is written without it")]
struct GroupSeen {
    /// Size of each file in bytes.
    size: u64,
    /// Hash of the content, in hexadecimal.
    hash: String,
    /// Paths of the files, one per inode.
    files: Vec<String>,
    /// Exact bytes of paths that are not UTF-8, in hexadecimal, by index in `files`.
    #[schemars(skip_serializing_if = "absent")]
    bytes: std::collections::BTreeMap<String, String>,
    /// Further hard links of the same inodes.
    #[schemars(skip_serializing_if = "absent")]
    links: std::collections::BTreeMap<String, Vec<String>>,
    /// Number of files in this group that may be the same file as another file of the group.
    #[schemars(skip_serializing_if = "absent")]
    doubtful: u64,
    /// Machine of each file, in the order of `files`; only in merged indexes.
    #[schemars(skip_serializing_if = "absent")]
    machines: Vec<String>,
}

#[derive(schemars::JsonSchema)]
#[allow(dead_code, reason = "it stands for what is written without it")]
struct Summary {
    files: u64,
    groups: u64,
    redundant_files: u64,
    redundant_bytes: u64,
    #[schemars(skip_serializing_if = "absent")]
    doubtful_files: u64,
    /// Part of `redundant_bytes` that hard links cannot free, because the copies are on several file systems or
    /// subvolumes.
    #[schemars(skip_serializing_if = "absent")]
    bytes_across_filesystems: u64,
}

/// A file that could not be examined.
#[derive(schemars::JsonSchema)]
#[allow(dead_code, reason = "it stands for what is written without it")]
struct Problem {
    path: String,
    reason: crate::Reason,
    detail: String,
    /// Exact bytes of a path that is not UTF-8, in hexadecimal.
    #[schemars(skip_serializing_if = "absent")]
    bytes: String,
}

/// Writes one JSON object. `groups` is a list; each group has `size` (bytes), `hash` (of the content; the top-level
/// `hash` is the name of the hash function) and `files` (one path per inode). A group may also have `links` (additional
/// hard links: object from path to list of paths), `doubtful` (number of files that may be the same as another file,
/// see [`DuplicateGroup::doubtful`]), `machines` (one per file, in merged indexes) and `bytes` (object from the index
/// in `files` to the exact bytes of a path that is not UTF-8, in hexadecimal; in `files` these bytes are escaped as
/// `\xNN`). The object also contains `summary`, and after a scan `skipped` (counts by reason), `problems` (each with
/// `path`, `reason`, `detail`), `cost` and `interrupted`.
///
/// # Errors
/// The output cannot be written.
pub fn write_document(
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
    write_json_groups(out, files, groups)?;
    let gain: u64 = groups.iter().map(|group| group.gain()).sum();
    let copies: u64 = groups.iter().map(|group| group.redundant()).sum();
    let doubtful: u64 = groups.iter().map(|group| group.doubtful).sum();
    let across: u64 = groups.iter().map(|group| group.gain_across(files)).sum();
    let across = match across {
        0 => String::new(),
        some => format!(", \"bytes_across_filesystems\": {some}"),
    };
    let doubt = match doubtful {
        0 => String::new(),
        some => format!(", \"doubtful_files\": {some}"),
    };
    write!(
        out,
        ",\n\"summary\": {{\"files\": {}, \"groups\": {}, \"redundant_files\": {copies}, \"redundant_bytes\": {gain}{doubt}{across}}}",
        files.files.len(),
        groups.len(),
    )?;
    if let Some(around) = around {
        let counts: serde_json::Map<String, serde_json::Value> = around
            .skipped
            .counts()
            .map(|(reason, count)| (reason_slug(reason), count.into()))
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
                if let Some(bytes) = encode_lossless(&skip.path) {
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

/// Writes the groups as a JSON list.
fn write_json_groups(out: &mut dyn Write, files: &Files, groups: &Groups) -> io::Result<()> {
    out.write_all(b"[")?;
    let machines = files.filesystems.iter().any(|fs| !fs.machine.is_empty());
    in_pieces(out, groups, &|number, group, text| {
        text.extend_from_slice(if number == 0 { b"\n" } else { b",\n" });
        json_group(text, files, group, machines)
    })?;
    out.write_all(b"\n]")
}

/// Writes one group. With `machines`, also writes the machine of each file.
fn json_group(
    text: &mut Vec<u8>,
    files: &Files,
    group: DuplicateGroup<'_>,
    machines: bool,
) -> io::Result<()> {
    write!(text, "{{\"size\": {}, \"hash\": \"", group.size)?;
    if let Some(hash) = files.hash(group.files[0]) {
        push_hex(text, &hash[..files.kind.length()]);
    }
    text.extend_from_slice(b"\", \"files\": [");
    let mut exact = serde_json::Map::new();
    for (position, file) in group.files.iter().enumerate() {
        text.extend_from_slice(if position == 0 { b"\"" } else { b", \"" });
        let begin = text.len();
        files.push_path(*file, text);
        text.push(b'"');
        if is_plain(&text[begin..text.len() - 1]) {
            continue;
        }
        text.truncate(begin - 1);
        let path = files.path(*file);
        if let Some(bytes) = encode_lossless(&path) {
            exact.insert(position.to_string(), bytes.into());
        }
        serde_json::to_writer(&mut *text, for_json(&path).as_ref())?;
    }
    text.push(b']');
    if !exact.is_empty() {
        text.extend_from_slice(b", \"bytes\": ");
        serde_json::to_writer(&mut *text, &exact)?;
    }
    if !group.links.is_empty() {
        text.extend_from_slice(b", \"links\": ");
        serde_json::to_writer(&mut *text, &links_to_json(files, group.links))?;
    }
    if group.doubtful > 0 {
        write!(text, ", \"doubtful\": {}", group.doubtful)?;
    }
    if machines {
        let names: Vec<&str> = group
            .files
            .iter()
            .map(|file| files.machine(*file))
            .collect();
        text.extend_from_slice(b", \"machines\": ");
        serde_json::to_writer(&mut *text, &names)?;
    }
    text.push(b'}');
    Ok(())
}

/// Returns whether all bytes are ASCII and need no escape in a JSON string (RFC 8259 section 7). The loop has
/// no early exit, so that compilers vectorise it.
fn is_plain(text: &[u8]) -> bool {
    let strange = |byte: u8| byte.wrapping_sub(b' ') > b'~' - b' ' || byte == b'"' || byte == b'\\';
    !text.iter().fold(false, |any, byte| any | strange(*byte))
}

fn reason_slug(reason: crate::Reason) -> String {
    match serde_json::to_value(reason) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

fn links_to_json(
    files: &Files,
    links: &[(FileId, FileId)],
) -> serde_json::Map<String, serde_json::Value> {
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
