//! Parses results of `bonnie++` 1.0x, 1.9x and 2.00. Reads the tables; if there is no table, reads the CSV lines.

use crate::quantities::{from_ms, split_number, unit_bytes};
use crate::{Figures, ImportError, Line, ResultRow, Tool, ToolResult, find_command};
use assay_model::workload::Pattern;
use assay_model::{Bytes, Nanos};

const TOOL: Tool = Tool::Bonnie;
/// Size of a block if the text contains none.
const BLOCK: Bytes = Bytes(8 << 10);
/// Percentage of seeks that only read. All other seeks also rewrite the block.
const SEEK_READS: u8 = 90;
/// Number of lines above a table in which the command is searched.
const REACH: usize = 60;
/// Number of figures in a line of the table. Each is followed by its CPU usage.
const FIGURES: usize = 6;
/// Tests to which the figures belong, in order. The tests by characters measure the C library and one CPU.
const NAMES: [&str; FIGURES] = [
    "write by characters",
    "write",
    "rewrite",
    "read by characters",
    "read",
    "seeks",
];

pub(crate) fn parse(lines: &[Line<'_>]) -> Result<Vec<ToolResult>, ImportError> {
    let mut results: Vec<ToolResult> = Vec::new();
    let mut from = 0;
    for (index, line) in lines.iter().enumerate() {
        if !line.text.contains("------Sequential Output------") {
            continue;
        }
        let Some(body) = lines.get(index + 1..) else {
            continue;
        };
        let head = body
            .iter()
            .take(4)
            .position(|line| line.text.matches("%CP").count() == FIGURES);
        let Some((head, row)) = head.and_then(|head| Some((head, body.get(head + 1)?))) else {
            continue;
        };
        let mut result = ToolResult::new(TOOL);
        let mut words = line.text.split_whitespace();
        if words.next() == Some("Version") {
            result.version = words.next().unwrap_or_default().to_owned();
        }
        let latencies = body.get(head + 2).map_or("", |line| line.text);
        read_row(row.text, latencies, &mut result)
            .map_err(|expected| ImportError::new(TOOL, row, expected))?;
        result.command = find_command(
            lines,
            from.max(index.saturating_sub(REACH)),
            index,
            "bonnie++",
        );
        from = index;
        results.push(result);
    }
    if results.is_empty() {
        for line in lines {
            if let Some(result) = parse_csv(line)? {
                results.push(result);
            }
        }
    }
    results.retain(|result| !result.rows.is_empty() || !result.others.is_empty());
    Ok(results)
}

/// Reads a line of the table: `[machine] size`, then rate and CPU usage of six tests.
fn read_row(text: &str, latencies: &str, result: &mut ToolResult) -> Result<(), &'static str> {
    const EXPECTED: &str = "a size and six pairs of figure and %CP";
    let words: Vec<&str> = text.split_whitespace().collect();
    let from = words.len().checked_sub(2 * FIGURES).ok_or(EXPECTED)?;
    if from == 0 {
        return Err(EXPECTED);
    }
    result.file_size = parse_file_size(words[from - 1]);
    let latency: Vec<Option<Nanos>> = match latencies.trim().strip_prefix("Latency") {
        Some(rest) => rest.split_whitespace().map(parse_latency).collect(),
        None => Vec::new(),
    };
    for (index, pair) in words[from..].chunks(2).enumerate() {
        let max = latency.get(index).copied().flatten();
        add_figure(index, pair[0], max, result).ok_or(EXPECTED)?;
    }
    Ok(())
}

/// Parses a file size such as `64M`, `2G` or `4G:8k`. A plain number counts MB.
fn parse_file_size(text: &str) -> Option<Bytes> {
    let size = text.split(':').next()?;
    let (number, unit) = split_number(size)?;
    let unit = if unit.is_empty() { "M" } else { unit };
    Some(Bytes((number * unit_bytes(unit, 1024.0)?) as u64))
}

/// Parses a latency such as `15462us` or `6918ms`.
fn parse_latency(text: &str) -> Option<Nanos> {
    let (number, unit) = split_number(text)?;
    Some(match unit {
        "us" => from_ms(number / 1000.0),
        "ms" => from_ms(number),
        "s" => from_ms(number * 1000.0),
        _ => return None,
    })
}

/// Adds the figure with this index. The unit is KiB per second; the last figure is in seeks per second. bonnie++ prints
/// `+++++` if a test was too short to measure.
fn add_figure(index: usize, text: &str, max: Option<Nanos>, result: &mut ToolResult) -> Option<()> {
    let name = NAMES[index];
    if text.starts_with('+') || text.is_empty() {
        result
            .others
            .push(format!("{name}: too fast for bonnie++ to time"));
        return Some(());
    }
    let (number, unit) = split_number(text)?;
    // Version 2 prints 385k, 1.2m for KiB and MiB per second.
    let rate = number * unit_bytes(if unit.is_empty() { "k" } else { unit }, 1024.0)?;
    let figures = |rate: f64| Figures {
        per_s: Some(rate / BLOCK.0 as f64),
        max,
        ..Figures::of_rate(rate)
    };
    let row = match index {
        0 | 3 => {
            let kib = rate / 1024.0;
            result.others.push(format!("{name}: {kib} KiB/s"));
            return Some(());
        }
        1 => ResultRow::new(name, Pattern::Write, Some(BLOCK)).with(figures(rate)),
        2 => {
            // Each block is read and written.
            let mut row = ResultRow::new(name, Pattern::Rw, Some(BLOCK));
            row.read_percent = Some(50);
            (row.read, row.write) = (Some(figures(rate)), Some(figures(rate)));
            row
        }
        4 => ResultRow::new(name, Pattern::Read, Some(BLOCK)).with(figures(rate)),
        _ => {
            let seeks = match unit.to_ascii_lowercase().as_str() {
                "" => number,
                "k" => number * 1000.0,
                _ => return None,
            };
            let mut row = ResultRow::new(name, Pattern::RandRw, Some(BLOCK));
            row.read_percent = Some(SEEK_READS);
            let reads = f64::from(SEEK_READS) / 100.0;
            let figures = |per_s: f64| Figures {
                per_s: Some(per_s),
                max,
                ..Figures::of_rate(per_s * BLOCK.0 as f64)
            };
            row.read = Some(figures(seeks * reads));
            row.write = Some(figures(seeks * (1.0 - reads)));
            row
        }
    };
    result.rows.push(row);
    Some(())
}

/// Parses a CSV line. In version 1.03 the line starts with the machine's name, in 1.96 and later with the version of
/// the format.
fn parse_csv(line: &Line<'_>) -> Result<Option<ToolResult>, ImportError> {
    let fields: Vec<&str> = line.text.trim().split(',').collect();
    let versioned = |text: &str| text.starts_with("1.9") && text.len() == 4;
    let (first, size, version) = match fields.as_slice() {
        ["1.98", version, ..] if fields.len() > 40 => (9, 5, *version),
        [format, version, ..] if versioned(format) && fields.len() > 36 => (7, 5, *version),
        [_, size, ..] if fields.len() == 27 && parse_file_size(size).is_some() => (2, 1, "1.03"),
        _ => return Ok(None),
    };
    let mut result = ToolResult::new(TOOL);
    result.version = version.to_owned();
    result.file_size = parse_file_size(fields[size]);
    for index in 0..FIGURES {
        let added = fields
            .get(first + 2 * index)
            .and_then(|text| add_figure(index, text, None, &mut result));
        if added.is_none() {
            return Err(ImportError::new(TOOL, line, "figures of bonnie++ as CSV"));
        }
    }
    Ok(Some(result))
}

#[cfg(test)]
mod tests {
    use crate::parse_results;

    const TWO: &str = include_str!("../fixtures/bonnie-2.00a.txt");
    const OLD: &str = include_str!("../fixtures/made-bonnie-1.96.txt");

    fn names(text: &str) -> Vec<String> {
        let results = parse_results(text).unwrap();
        assert_eq!(results.len(), 1);
        results[0].rows.iter().map(|row| row.name.clone()).collect()
    }

    #[test]
    fn tables_and_csv_are_read() {
        assert_eq!(names(OLD), ["write", "rewrite", "read", "seeks"]);
        let table = &parse_results(OLD).unwrap()[0];
        assert_eq!(table.version, "1.96");
        let (_, csv) = OLD.trim_end().rsplit_once('\n').unwrap();
        let line = &parse_results(csv).unwrap()[0];
        assert_eq!(line.file_size, table.file_size);
        for (a, b) in table.rows.iter().zip(&line.rows) {
            let rate = |row: &crate::ResultRow| {
                row.read
                    .as_ref()
                    .or(row.write.as_ref())
                    .and_then(|one| one.bytes_per_s)
            };
            assert_eq!(rate(a), rate(b), "{}", a.name);
        }
        // 64 MiB in RAM are too fast for it.
        let two = &parse_results(TWO).unwrap()[0];
        assert!(two.rows.is_empty() && two.others.len() == 6);
        let error = parse_results(&OLD.replace("28900", "28x")).unwrap_err();
        assert!(error.text.contains("28x"), "{error}");
    }
}
