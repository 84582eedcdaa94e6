//! Parses results of `iozone`: the table of automatic mode, and the sums of throughput mode (`-t`).

use crate::quantities::parse_number;
use crate::{Figures, ImportError, Line, ResultRow, Tool, ToolResult, find_command};
use assay_model::Bytes;
use assay_model::workload::Pattern;

const TOOL: Tool = Tool::Iozone;
/// Width of a column of figures, in characters.
const WIDTH: usize = 9;
/// Columns of the table that follow size and record length, in order.
const COLUMNS: [(&str, Option<Pattern>); 13] = [
    ("write", Some(Pattern::Write)),
    ("rewrite", Some(Pattern::Write)),
    ("read", Some(Pattern::Read)),
    ("reread", Some(Pattern::Read)),
    ("random read", Some(Pattern::RandRead)),
    ("random write", Some(Pattern::RandWrite)),
    ("backward read", None),
    ("record rewrite", None),
    ("stride read", None),
    ("fwrite", None),
    ("frewrite", None),
    ("fread", None),
    ("freread", None),
];

pub(crate) fn parse(lines: &[Line<'_>]) -> Result<Vec<ToolResult>, ImportError> {
    let mut results: Vec<ToolResult> = Vec::new();
    let mut current = ToolResult::new(TOOL);
    let mut table = false;
    let mut operations = false;
    let mut record = None;
    for (index, line) in lines.iter().enumerate() {
        let text = line.text.trim();
        if text.starts_with("Iozone: Performance Test of File I/O") {
            end_result(&mut current, &mut results);
            (table, operations, record) = (false, false, None);
        } else if let Some(version) = text.strip_prefix("Version $Revision: ") {
            current.version = version.trim_end_matches(['$', ' ']).to_owned();
        } else if let Some(time) = text.strip_prefix("Run began: ") {
            current.time = jiff::civil::DateTime::strptime("%a %b %d %H:%M:%S %Y", time).ok();
        } else if text == "O_DIRECT feature enabled" {
            current.direct = Some(true);
        } else if let Some(command) = text.strip_prefix("Command line used: ") {
            current.command = Some(command.to_owned());
            current.direct.get_or_insert(false);
        } else if text.starts_with("Output is in ") {
            operations = text.contains("ops/sec");
        } else if is_heading(text) {
            // Tables are pasted without what stands above them.
            if current.command.is_none() {
                let near = index.saturating_sub(4);
                let command = find_command(lines, near, index, "iozone");
                current.direct = command.as_ref().map(|words| words.contains(" -I"));
                current.command = command;
            }
            table = true;
        } else if table && text.starts_with(|c: char| c.is_ascii_digit()) {
            read_row(line.text, operations, &mut current)
                .map_err(|expected| ImportError::new(TOOL, line, expected))?;
        } else if let Some(rest) = text.strip_prefix("Children see throughput for") {
            read_sum(rest, record, &mut current)
                .map_err(|expected| ImportError::new(TOOL, line, expected))?;
        } else if text.starts_with("Each process writes a ") {
            record = text.rsplit(" in ").next().and_then(parse_record);
        } else {
            table &= text.is_empty();
        }
    }
    end_result(&mut current, &mut results);
    Ok(results)
}

fn end_result(current: &mut ToolResult, results: &mut Vec<ToolResult>) {
    let result = std::mem::replace(current, ToolResult::new(TOOL));
    if !result.rows.is_empty() {
        results.push(result);
    }
}

fn is_heading(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let size = words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("kb"));
    size && words.next() == Some("reclen")
}

/// Parses a record length such as `4 kByte records` to bytes.
fn parse_record(text: &str) -> Option<Bytes> {
    let kib: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(Bytes(kib.checked_mul(1024)?))
}

/// Parses a line of the table. Skipped tests leave their columns blank, so the position of a figure in the line
/// determines its test.
fn read_row(text: &str, operations: bool, result: &mut ToolResult) -> Result<(), &'static str> {
    const EXPECTED: &str = "file size, record size and figures in columns of 9 characters";
    let words = split_words(text);
    let number = |word: &str| parse_number(word).ok_or(EXPECTED);
    let [(_, size), (base, record), figures @ ..] = words.as_slice() else {
        return Err(EXPECTED);
    };
    let (size, record) = (number(size)?, number(record)?);
    let (size, record) = (
        Bytes((size * 1024.0) as u64),
        Bytes((record * 1024.0) as u64),
    );
    result.file_size = result.file_size.max(Some(size));
    let placed = |end: usize| {
        let offset = end - base;
        (offset.is_multiple_of(WIDTH) && offset > 0).then(|| offset / WIDTH - 1)
    };
    let all_placed = figures.iter().all(|(end, _)| placed(*end).is_some());
    if !all_placed && figures.len() != COLUMNS.len() && figures.len() != 6 {
        return Err(EXPECTED);
    }
    for (index, (end, figure)) in figures.iter().enumerate() {
        let column = if all_placed {
            placed(*end).unwrap_or(index)
        } else {
            index
        };
        let (name, pattern) = COLUMNS.get(column).ok_or(EXPECTED)?;
        let value = number(figure)?;
        let unit = if operations { "operations/s" } else { "KiB/s" };
        let full = format!("{name} {} of {}", record.short(), size.short());
        let Some(pattern) = pattern else {
            result.others.push(format!("{full}: {value} {unit}"));
            continue;
        };
        let rate = match operations {
            true => value * record.0 as f64,
            false => value * 1024.0,
        };
        result
            .rows
            .push(ResultRow::new(&full, *pattern, Some(record)).with(Figures {
                per_s: Some(rate / record.0.max(1) as f64),
                ..Figures::of_rate(rate)
            }));
    }
    Ok(())
}

/// Splits a line into words. Each word is returned with the column after its end.
fn split_words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_whitespace(), start) {
            (false, None) => start = Some(at),
            (true, Some(from)) => {
                words.push((at, &text[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// Parses a sum of throughput mode, such as ` 4 initial writers = 123456.78 kB/sec`.
fn read_sum(
    text: &str,
    record: Option<Bytes>,
    result: &mut ToolResult,
) -> Result<(), &'static str> {
    const EXPECTED: &str = "`Children see throughput for N KIND = RATE kB/sec`";
    let (what, rate) = text.split_once('=').ok_or(EXPECTED)?;
    let (threads, kind) = what.trim().split_once(' ').ok_or(EXPECTED)?;
    let threads: u32 = threads.parse().map_err(|_| EXPECTED)?;
    let value = rate
        .split_whitespace()
        .next()
        .and_then(parse_number)
        .ok_or(EXPECTED)?;
    let kib = rate.to_ascii_lowercase().contains("kb");
    let kind = kind.trim();
    let pattern = match kind {
        "initial writers" | "rewriters" => Pattern::Write,
        "readers" | "re-readers" => Pattern::Read,
        "random readers" => Pattern::RandRead,
        "random writers" => Pattern::RandWrite,
        _ => {
            result
                .others
                .push(format!("{threads} {kind}: {}", rate.trim()));
            return Ok(());
        }
    };
    if !kib {
        result
            .others
            .push(format!("{threads} {kind}: {}", rate.trim()));
        return Ok(());
    }
    let mut row = ResultRow::new(kind, pattern, record);
    row.threads = threads.max(1);
    result.rows.push(row.with(Figures {
        per_s: record.map(|record| value * 1024.0 / record.0.max(1) as f64),
        ..Figures::of_rate(value * 1024.0)
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::parse_results;
    use assay_model::workload::Pattern;

    const TABLE: &str = include_str!("../fixtures/made-iozone.txt");

    #[test]
    fn blank_columns_are_skipped_tests() {
        let result = &parse_results(TABLE).unwrap()[0];
        assert_eq!(
            (result.version.as_str(), result.direct),
            ("3.492", Some(true))
        );
        let names: Vec<&str> = result.rows.iter().map(|row| row.name.as_str()).collect();
        let wanted = [
            "write 1M of 100M",
            "rewrite 1M of 100M",
            "random read 1M of 100M",
            "random write 1M of 100M",
        ];
        assert_eq!(names, wanted);
        assert_eq!(result.rows[2].pattern, Pattern::RandRead);
        let rate = result.rows[2].read.as_ref().unwrap().bytes_per_s.unwrap();
        assert!((rate - 289_900.0 * 1024.0).abs() < 1.0);
    }

    #[test]
    fn throughput_mode_and_a_wrong_figure() {
        let text = "Iozone: Performance Test of File I/O\n  Each process writes a 102400 kByte file in 4 kByte \
                    records\n\
                    Children see throughput for  4 initial writers  =  123456.78 kB/sec\n\
                    Children see throughput for 4 mixed workload = 99.00 kB/sec\n";
        let result = &parse_results(text).unwrap()[0];
        assert_eq!(
            (
                result.rows.len(),
                result.rows[0].threads,
                result.others.len()
            ),
            (1, 4, 1)
        );
        let error = parse_results(&TABLE.replace("289900", "28x900")).unwrap_err();
        assert!(error.text.contains("28x900"), "{error}");
    }
}
