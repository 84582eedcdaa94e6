//! Parses results of HD Tune and HD Tune Pro, from the text of "copy info to clipboard" for the benchmark and for
//! random access.

use crate::quantities::{from_ms, parse_number, parse_rate, split_number, split_size};
use crate::{Figures, ImportError, Line, ResultRow, Tool, ToolResult};
use assay_model::Bytes;
use assay_model::workload::Pattern;

const TOOL: Tool = Tool::HdTune;
/// Block size of the benchmark if the text contains none.
const BLOCK: Bytes = Bytes(64 << 10);

pub(crate) fn parse(lines: &[Line<'_>]) -> Result<Vec<ToolResult>, ImportError> {
    let mut results: Vec<ToolResult> = Vec::new();
    let mut current: Option<ToolResult> = None;
    let mut writes = false;
    for line in lines {
        let text = line.text.trim();
        if let Some(name) = parse_title(text) {
            results.extend(current.take());
            let mut result = ToolResult::new(TOOL);
            // It opens the disk itself, which Windows does not cache.
            result.direct = Some(true);
            result.target = Some(name.to_owned());
            current = Some(result);
            writes = false;
            continue;
        }
        let Some(result) = &mut current else { continue };
        let lower = text.to_ascii_lowercase();
        if lower == "write transfer rate" || lower.starts_with("random access write") {
            writes = true;
        } else if lower == "read transfer rate" || lower.starts_with("random access read") {
            writes = false;
        }
        read_line(text, writes, result)
            .map_err(|expected| ImportError::new(TOOL, line, expected))?;
    }
    results.extend(current);
    results.retain(|result| !result.rows.is_empty());
    Ok(results)
}

/// Parses a title such as `HD Tune: NAME Benchmark` or `HD Tune Pro: NAME Random Access`, and returns the name of the
/// drive.
fn parse_title(text: &str) -> Option<&str> {
    let rest = text
        .strip_prefix("HD Tune: ")
        .or_else(|| text.strip_prefix("HD Tune Pro: "))?;
    let kinds = [
        " Benchmark",
        " Random Access",
        " Write Benchmark",
        " Read Benchmark",
    ];
    kinds.iter().find_map(|kind| rest.strip_suffix(kind))
}

fn read_line(text: &str, writes: bool, result: &mut ToolResult) -> Result<(), &'static str> {
    if text.contains(" IOPS ") {
        let row = parse_random(text, writes).ok_or("`SIZE N IOPS N ms N ms N MB/s`")?;
        result.rows.push(row);
        return Ok(());
    }
    let Some((key, value)) = text.split_once(':') else {
        return Ok(());
    };
    let (key, value) = (key.trim(), value.trim());
    match key {
        "Transfer Rate Average" => {
            let rate = parse_rate(value, 1000.0).ok_or("`N MB/sec`")?;
            let (name, pattern) = match writes {
                true => ("write", Pattern::Write),
                false => ("read", Pattern::Read),
            };
            let row = ResultRow::new(name, pattern, Some(BLOCK));
            result.rows.push(row.with(Figures {
                per_s: Some(rate / BLOCK.0 as f64),
                ..Figures::of_rate(rate)
            }));
        }
        "Access Time" => {
            let ms = value
                .strip_suffix("ms")
                .and_then(parse_number)
                .ok_or("`N ms`")?;
            let (name, pattern) = match writes {
                true => ("write access", Pattern::RandWrite),
                false => ("access", Pattern::RandRead),
            };
            let figures = Figures {
                per_s: (ms > 0.0).then(|| 1000.0 / ms),
                mean: (ms > 0.0).then(|| from_ms(ms)),
                ..Figures::default()
            };
            result
                .rows
                .push(ResultRow::new(name, pattern, None).with(figures));
        }
        "Transfer Rate Minimum" | "Transfer Rate Maximum" | "Burst Rate" | "CPU Usage" => {
            result.others.push(format!("{key}: {value}"));
        }
        _ => {}
    }
    Ok(())
}

/// Parses a line such as `4 KB  4512 IOPS  0.221 ms  3.712 ms  17.626 MB/s`, in which the size may also be `Random`.
fn parse_random(text: &str, writes: bool) -> Option<ResultRow> {
    let (size, rest) = match text.strip_prefix("Random") {
        Some(rest) => (None, rest),
        None => {
            let (size, rest) = split_size(text, 1024.0)?;
            (Some(size), rest)
        }
    };
    let (iops, rest) = split_number(rest)?;
    let (mean, rest) = split_number(rest.strip_prefix("IOPS")?)?;
    let (max, rest) = split_number(rest.strip_prefix("ms")?)?;
    let rate = parse_rate(rest.strip_prefix("ms")?, 1000.0)?;
    let pattern = if writes {
        Pattern::RandWrite
    } else {
        Pattern::RandRead
    };
    let name = match size {
        Some(size) => format!("{} {}", pattern.fio(), size.short()),
        None => format!("{} of random sizes", pattern.fio()),
    };
    Some(ResultRow::new(&name, pattern, size).with(Figures {
        per_s: Some(iops),
        mean: Some(from_ms(mean)),
        max: Some(from_ms(max)),
        ..Figures::of_rate(rate)
    }))
}

#[cfg(test)]
mod tests {
    use crate::parse_results;
    use assay_model::Bytes;

    #[test]
    fn a_benchmark_and_random_access_are_read() {
        let text = "    HD Tune: Samsung SSD 840 EVO 120G Benchmark\n    Transfer Rate Minimum : 1.0 MB/sec\n    \
                    Transfer Rate Maximum : 449.1 MB/sec\n    Transfer Rate Average : 308.1 MB/sec\n    \
                    Access Time           : 0.4 ms\n    Burst Rate            : 196.7 MB/sec\n    \
                    CPU Usage             : 27.2%\n\nHD Tune Pro: DISK Random Access\n\
                    512 bytes 5041 IOPS 0.198 ms 2.132 ms 2.462 MB/s\n  4  KB  4512 IOPS 0.221 ms 3.712 ms 17.626 MB/s\n";
        let results = parse_results(text).unwrap();
        assert_eq!(results.len(), 2);
        assert_eq!((results[0].rows.len(), results[0].others.len()), (2, 4));
        let sizes: Vec<_> = results[1].rows.iter().map(|row| row.block_size).collect();
        assert_eq!(sizes, [Some(Bytes(512)), Some(Bytes(4096))]);
        let error = parse_results(&text.replace("308.1", "?")).unwrap_err();
        assert_eq!(error.line, 4, "{error}");
    }
}
