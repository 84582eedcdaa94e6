//! Parses results of CrystalDiskMark 3 to 8 that were copied as text ("Copy"). The format changed in version 5 (queues
//! and threads) and version 7 (sections `[Read]`, `[Write]`, `[Mix]`).

use crate::quantities::{parse_number, parse_size, split_number};
use crate::{Figures, ImportError, Line, ResultRow, Tool, ToolResult};
use assay_model::workload::Pattern;
use assay_model::{Bytes, Nanos};

const TOOL: Tool = Tool::CrystalDiskMark;

/// Section in a result of versions 7 and 8.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Read,
    Write,
    Mix(u8),
}

pub(crate) fn parse(lines: &[Line<'_>]) -> Result<Vec<ToolResult>, ImportError> {
    let mut results: Vec<ToolResult> = Vec::new();
    let mut current = ToolResult::new(TOOL);
    let mut section = None;
    for line in lines {
        let text = line.text.trim();
        if let Some(version) = parse_title(text) {
            end_result(&mut current, &mut results);
            current.version = version;
        } else if let Some(named) = parse_section(text) {
            section = Some(named);
        } else if let Some(title) = find_row_title(text) {
            let row = parse_row(title, text, section)
                .ok_or_else(|| ImportError::new(TOOL, line, "`TEST : RATE MB/s`"))?;
            // Without a title, a repeated test begins the next result.
            if current.rows.iter().any(|known| known.name == row.name) {
                end_result(&mut current, &mut results);
            }
            current.rows.push(row);
        } else if !current.rows.is_empty() {
            parse_setting(text, &mut current);
        }
    }
    end_result(&mut current, &mut results);
    Ok(results)
}

fn end_result(current: &mut ToolResult, results: &mut Vec<ToolResult>) {
    let mut result = std::mem::replace(current, ToolResult::new(TOOL));
    if result.rows.is_empty() {
        return;
    }
    // It opens its file with FILE_FLAG_NO_BUFFERING.
    result.direct = Some(true);
    results.push(result);
}

/// Parses a title such as `CrystalDiskMark 8.0.4 x64 (C) 2007-2021 hiyohiyo`, and returns the version.
fn parse_title(text: &str) -> Option<String> {
    let rest = text.strip_prefix("CrystalDiskMark ")?;
    let version = rest.split_whitespace().next()?;
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| version.to_owned())
}

fn parse_section(text: &str) -> Option<Section> {
    if text == "[Read]" {
        return Some(Section::Read);
    }
    if text == "[Write]" {
        return Some(Section::Write);
    }
    let share = text.strip_prefix("[Mix] Read ")?.split('%').next()?;
    Some(Section::Mix(
        share.trim().parse().ok().filter(|share| *share <= 100)?,
    ))
}

/// Returns the title of a test, which is the text before the colon.
fn find_row_title(text: &str) -> Option<&str> {
    let (title, rate) = text.rsplit_once(": ").or_else(|| text.rsplit_once(':'))?;
    let title = title.trim();
    let test = ["Sequential ", "Random ", "SEQ ", "RND "];
    let named = test.iter().any(|start| title.starts_with(start));
    (named && rate.contains("MB/s")).then_some(title)
}

fn parse_row(title: &str, text: &str, section: Option<Section>) -> Option<ResultRow> {
    let figures = text.strip_prefix(title)?.trim_start().strip_prefix(':')?;
    let (rate, unit) = split_number(figures)?;
    unit.strip_prefix("MB/s")?;
    let words: Vec<&str> = title.split_whitespace().collect();
    let random = title.starts_with("Random") || title.starts_with("RND");
    // Before version 7, the direction is the second word.
    let section = match (words.get(1), section) {
        (Some(&"Read"), _) => Section::Read,
        (Some(&"Write"), _) => Section::Write,
        (_, section) => section?,
    };
    let pattern = match (section, random) {
        (Section::Read, false) => Pattern::Read,
        (Section::Read, true) => Pattern::RandRead,
        (Section::Write, false) => Pattern::Write,
        (Section::Write, true) => Pattern::RandWrite,
        (Section::Mix(_), false) => Pattern::Rw,
        (Section::Mix(_), true) => Pattern::RandRw,
    };
    // 512KB and 4KB of version 3 are powers of two, too.
    let size = words.iter().find_map(|word| {
        let digit = word.starts_with(|c: char| c.is_ascii_digit());
        digit.then(|| parse_size(word, 1024.0)).flatten()
    });
    let option = |key: &str| {
        let value = title.split_once(key)?.1;
        let end = value.find([',', ')']).unwrap_or(value.len());
        value[..end].trim().parse::<u32>().ok()
    };
    let mark = match section {
        Section::Read => "read ",
        Section::Write => "write ",
        Section::Mix(_) => "mix ",
    };
    let joined = words.join(" ");
    let name = match words.get(1) {
        Some(&("Read" | "Write")) => joined,
        _ => format!("{mark}{joined}"),
    };
    // Without a size the sequential test of versions 3 to 6 has 1 MiB (128 KiB in 5 and 6 with queues).
    let queued = option("Q=").is_some();
    let block_size = size.unwrap_or(match (random, queued) {
        (false, true) => Bytes(128 << 10),
        _ => Bytes(1 << 20),
    });
    let mut row = ResultRow::new(&name, pattern, Some(block_size));
    row.queue_depth = option("QD=").or_else(|| option("Q=")).unwrap_or(1).max(1);
    row.threads = option("T=").unwrap_or(1).max(1);
    let bytes_per_s = rate * 1e6;
    let printed = |open: &str, close: &str| {
        let value = figures.split_once(open)?.1.split_once(close)?.0;
        parse_number(value)
    };
    let per_s = printed("[", "IOPS").unwrap_or(bytes_per_s / block_size.0 as f64);
    let mean = printed("<", "us").map(|us| Nanos((us * 1000.0).round() as u64));
    let figures = |share: f64| Figures {
        bytes_per_s: Some(bytes_per_s * share),
        per_s: Some(per_s * share),
        mean,
        ..Figures::default()
    };
    match section {
        Section::Read => row.read = Some(figures(1.0)),
        Section::Write => row.write = Some(figures(1.0)),
        Section::Mix(share) => {
            row.read_percent = Some(share);
            let share = f64::from(share) / 100.0;
            row.read = (share > 0.0).then(|| figures(share));
            row.write = (share < 1.0).then(|| figures(1.0 - share));
        }
    }
    Some(row)
}

/// Parses a setting such as `Test : 1000 MB [C: 33.0% (39.3/119.1 GB)] (x5)` or `Date : 2012/02/15 20:39:27`.
fn parse_setting(text: &str, result: &mut ToolResult) {
    let Some((key, value)) = text.split_once(':') else {
        return;
    };
    let value = value.trim();
    match key.trim() {
        "Test" => {
            let (size, rest) = value.split_once('[').unwrap_or((value, ""));
            let size = size.split('(').next().unwrap_or(size);
            // "1000 MB" of version 3 is 1000 × 1024 × 1024 bytes.
            result.file_size = parse_size(size, 1024.0);
            let drive = rest.split_once(' ').map(|(drive, _)| drive.trim());
            result.target = drive.filter(|drive| !drive.is_empty()).map(str::to_owned);
            let repeats = value
                .split_once("(x")
                .and_then(|(_, rest)| rest.split_once(')'));
            result.repeats = repeats.and_then(|(count, _)| count.parse().ok());
        }
        "Date" => {
            result.time = jiff::civil::DateTime::strptime("%Y/%m/%d %H:%M:%S", value).ok();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::parse_results;
    use assay_model::Bytes;
    use assay_model::workload::Pattern;

    const THREE: &str = include_str!("../fixtures/made-crystaldiskmark-3.txt");
    const SIX: &str = include_str!("../fixtures/made-crystaldiskmark-6.txt");
    const EIGHT: &str = include_str!("../fixtures/made-crystaldiskmark-8.txt");

    #[test]
    fn the_three_formats_are_read() {
        let shapes = |text: &str| {
            let results = parse_results(text).unwrap();
            assert_eq!(results.len(), 1);
            let rows = results[0].rows.iter();
            let shape = |row: &crate::ResultRow| {
                let size = row.block_size.unwrap_or_default();
                (row.pattern, size.0, row.queue_depth, row.threads)
            };
            rows.map(shape).collect::<Vec<_>>()
        };
        let three = shapes(THREE);
        assert_eq!(three.len(), 8);
        assert_eq!(three[0], (Pattern::Read, 1 << 20, 1, 1));
        assert_eq!(three[2], (Pattern::RandRead, 512 << 10, 1, 1));
        assert_eq!(three[7], (Pattern::RandWrite, 4096, 32, 1));
        let six = shapes(SIX);
        assert_eq!(six[0], (Pattern::Read, 128 << 10, 32, 1));
        assert_eq!(six[2], (Pattern::RandRead, 4096, 8, 8));
        let eight = shapes(EIGHT);
        assert_eq!(eight[0], (Pattern::Read, 1 << 20, 8, 1));
        assert_eq!(eight[6], (Pattern::RandWrite, 4096, 32, 16));
        assert_eq!(eight[11], (Pattern::RandRw, 4096, 1, 1));
    }

    #[test]
    fn settings_and_figures_are_read() {
        let three = &parse_results(THREE).unwrap()[0];
        assert_eq!((three.version.as_str(), three.repeats), ("3.0.1", Some(5)));
        assert_eq!(three.file_size, Some(Bytes(1000 << 20)));
        assert_eq!(three.target.as_deref(), Some("C:"));
        assert!(three.time.is_some());
        let eight = &parse_results(EIGHT).unwrap()[0];
        let row = &eight.rows[3];
        let read = row.read.as_ref().unwrap();
        let in_flight = read.per_s.unwrap() * read.mean.unwrap().as_secs_f64();
        assert!((0.9..1.1).contains(&in_flight), "{in_flight}");
        assert_eq!(eight.rows[8].read_percent, Some(70));
    }

    #[test]
    fn several_results_and_quotations_are_read() {
        let quoted: String = EIGHT.lines().map(|line| format!("> {line}\n")).collect();
        let results = parse_results(&format!("My new disk:\n{THREE}\n{quoted}")).unwrap();
        assert_eq!(results.len(), 2);
        let error = parse_results(&THREE.replace("505.825", "fast")).unwrap_err();
        assert!(error.line > 5 && error.text.contains("fast"), "{error}");
    }
}
