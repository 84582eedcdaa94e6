//! Writes the formats of fclones 0.35 (`fclones/src/report.rs`): its default report and its CSV.

use super::hash;
use crate::group::{DuplicateGroup, Groups};
use crate::name::encode_stfu8;
use crate::table::{FileId, Files};
use std::io::{self, Write};

/// Version of fclones whose format is reproduced.
const VERSION: &str = "0.35.0";

/// Writes the default report of fclones, which fclones commands read.
pub(super) fn report(out: &mut dyn Write, files: &Files, groups: &Groups) -> io::Result<()> {
    let copies = || groups.iter().map(|group| group.files.len() as u64);
    let bytes = |of: fn(u64) -> u64| -> u64 {
        let each = groups
            .iter()
            .map(|group| (group.size, group.files.len() as u64));
        each.map(|(size, count)| size.saturating_mul(of(count)))
            .fold(0, u64::saturating_add)
    };
    let (total, redundant) = (bytes(|count| count), bytes(|count| count - 1));
    let all: u64 = copies().sum();
    let number = groups.len() as u64;
    // fclones parses this command line again to learn the roots.
    writeln!(out, "# Report by fclones {VERSION}")?;
    writeln!(out, "# Timestamp: {}", format_timestamp(files, groups))?;
    writeln!(out, "# Command: fclones group /")?;
    writeln!(out, "# Base dir: /")?;
    writeln!(
        out,
        "# Total: {total} B ({total} B) in {all} files in {number} groups"
    )?;
    writeln!(
        out,
        "# Redundant: {redundant} B ({redundant} B) in {} files",
        all - number
    )?;
    writeln!(out, "# Missing: 0 B (0 B) in 0 files")?;
    for group in groups.iter() {
        let (size, count) = (group.size, group.files.len());
        writeln!(
            out,
            "{}, {size} B ({size} B) * {count}:",
            hash(files, group)
        )?;
        for file in group.files {
            writeln!(out, "    {}", encode_stfu8(&files.path(*file)))?;
        }
    }
    Ok(())
}

/// Returns the latest modification time of the listed files, for the header of the report. fclones ignores files that
/// were modified after the time in the header. Milliseconds are rounded up to include the latest file.
fn format_timestamp(files: &Files, groups: &Groups) -> String {
    let ctime = |group: DuplicateGroup<'_>| {
        let each = group
            .files
            .iter()
            .map(|id: &FileId| files.file(*id).id.ctime);
        each.max().unwrap_or(0)
    };
    let last = groups.iter().map(ctime).max().unwrap_or(0);
    let milliseconds = last.div_euclid(1_000_000).saturating_add(1);
    let time =
        jiff::Timestamp::from_millisecond(milliseconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%d %H:%M:%S.%3f +0000").to_string()
}

/// Writes the CSV format, one line per group.
pub(super) fn write_csv(out: &mut dyn Write, files: &Files, groups: &Groups) -> io::Result<()> {
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
            let path = encode_stfu8(&files.path(*file));
            if path.contains([',', '"']) {
                write!(out, ",\"{}\"", path.replace('"', "\"\""))?;
            } else {
                write!(out, ",{path}")?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}
