//! Parses results of `pveperf` of Proxmox VE, which contain the fsyncs per second, buffered reads and seek time of a
//! directory.

use crate::quantities::{from_ms, parse_number, parse_rate};
use crate::{Figures, ImportError, Line, ResultRow, Tool, ToolResult, find_command};
use assay_model::Bytes;
use assay_model::workload::{Durability, Pattern};

const TOOL: Tool = Tool::Pveperf;
/// Number of lines above the first line of a result in which the command is searched.
const REACH: usize = 3;
/// Number of bytes that pveperf writes before each fsync (`AAAA`).
const WRITTEN: Bytes = Bytes(4);

pub(crate) fn parse(lines: &[Line<'_>]) -> Result<Vec<ToolResult>, ImportError> {
    let mut results: Vec<ToolResult> = Vec::new();
    let mut open = false;
    for (index, line) in lines.iter().enumerate() {
        let text = line.text.trim();
        let Some((key, value)) = text.split_once(':') else {
            open &= !text.is_empty() || results.last().is_some_and(|one| one.rows.is_empty());
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if key == "CPU BOGOMIPS" || (!open && ["HD SIZE", "FSYNCS/SECOND"].contains(&key)) {
            let mut result = ToolResult::new(TOOL);
            result.direct = Some(false);
            result.command = find_command(lines, index.saturating_sub(REACH), index, "pveperf");
            results.push(result);
            open = true;
        }
        let Some(result) = results.last_mut().filter(|_| open) else {
            continue;
        };
        read_value(key, value, result)
            .map_err(|expected| ImportError::new(TOOL, line, expected))?;
    }
    results.retain(|result| !result.rows.is_empty());
    Ok(results)
}

fn read_value(key: &str, value: &str, result: &mut ToolResult) -> Result<(), &'static str> {
    match key {
        "CPU BOGOMIPS" | "REGEX/SECOND" | "DNS EXT" | "DNS INT" => {
            result.others.push(format!("{key}: {value}"));
        }
        "HD SIZE" => {
            let source = value
                .split_once('(')
                .and_then(|(_, rest)| rest.strip_suffix(')'));
            result.target = source.map(str::to_owned);
        }
        "BUFFERED READS" => {
            let rate = parse_rate(value, 1024.0).ok_or("`N MB/sec`")?;
            let row = ResultRow::new("buffered reads", Pattern::Read, None);
            result.rows.push(row.with(Figures::of_rate(rate)));
        }
        "AVERAGE SEEK TIME" => {
            let ms = value
                .strip_suffix("ms")
                .and_then(parse_number)
                .filter(|ms| *ms >= 0.0);
            let ms = ms.ok_or("`N ms`")?;
            let row = ResultRow::new("seek", Pattern::RandRead, None);
            // 0.00 ms is what is left of a few microseconds.
            let per_s = (ms > 0.0).then(|| 1000.0 / ms);
            let mean = Some(from_ms(ms)).filter(|_| ms > 0.0);
            let figures = Figures {
                per_s,
                mean,
                ..Figures::default()
            };
            result.rows.push(row.with(figures));
        }
        "FSYNCS/SECOND" => {
            let rate = parse_number(value)
                .filter(|rate| *rate > 0.0)
                .ok_or("a number")?;
            let mut row = ResultRow::new("fsyncs", Pattern::Write, Some(WRITTEN));
            row.durability = Durability::Fsync;
            result.rows.push(row.with(Figures {
                per_s: Some(rate),
                mean: Some(from_ms(1000.0 / rate)),
                ..Figures::of_rate(rate * WRITTEN.0 as f64)
            }));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::parse_results;

    const TEXT: &str = "root@pve:~# pveperf /var/lib/vz\nCPU BOGOMIPS:      57470.00\nREGEX/SECOND:      3824400\n\
                        HD SIZE:           64.27 GB (/dev/mapper/pve-root)\nBUFFERED READS:    239.90 MB/sec\n\
                        AVERAGE SEEK TIME: 0.24 ms\nFSYNCS/SECOND:     691.50\nDNS EXT:           54.79 ms\n";

    #[test]
    fn results_with_and_without_reads_are_read() {
        let result = &parse_results(TEXT).unwrap()[0];
        let names: Vec<&str> = result.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["buffered reads", "seek", "fsyncs"]);
        assert_eq!(result.target.as_deref(), Some("/dev/mapper/pve-root"));
        assert_eq!(result.command.as_deref(), Some("pveperf /var/lib/vz"));
        assert_eq!(result.others.len(), 3);
        let zfs = TEXT.replace("BUFFERED READS:    239.90 MB/sec\n", "");
        assert_eq!(parse_results(&zfs).unwrap()[0].rows.len(), 2);
        let error = parse_results(&TEXT.replace("691.50", "many")).unwrap_err();
        assert_eq!(error.line, 7, "{error}");
    }
}
