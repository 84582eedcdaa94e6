//! Parses results of ATTO Disk Benchmark, which are tables of rates by I/O size that users copied as text. ATTO itself
//! exports only pictures and a binary format.

use crate::quantities::{split_number, split_size, unit_bytes};
use crate::{Figures, ImportError, Line, ResultRow, Tool, ToolResult};
use assay_model::Bytes;
use assay_model::workload::Pattern;

const TOOL: Tool = Tool::Atto;
/// Queue depth that is assumed if the text contains none.
const DEFAULT_DEPTH: u32 = 4;

pub(crate) fn parse(lines: &[Line<'_>]) -> Result<Vec<ToolResult>, ImportError> {
    let mut results: Vec<ToolResult> = Vec::new();
    let mut seen_name = false;
    let mut depth = DEFAULT_DEPTH;
    let mut unit = None;
    let mut in_table = false;
    for line in lines {
        let text = line.text.trim();
        let lower = text.to_ascii_lowercase();
        if lower.contains("atto disk benchmark") {
            seen_name = true;
            depth = DEFAULT_DEPTH;
            in_table = false;
        } else if !seen_name {
            continue;
        } else if let Some(rest) = lower.strip_prefix("queue depth") {
            let number = rest.trim_start_matches([':', ' ', '=']).parse();
            depth = number.map_err(|_| ImportError::new(TOOL, line, "`Queue Depth: N`"))?;
        } else if lower.contains("write") && lower.contains("read") && !in_table {
            // The unit of the columns, unless each figure has its own.
            unit = ["kb/s", "mb/s", "gb/s", "kib/s", "mib/s", "gib/s"]
                .into_iter()
                .find(|unit| lower.contains(unit));
            in_table = true;
            let mut result = ToolResult::new(TOOL);
            result.direct = lines
                .iter()
                .any(|line| line.text.contains("Direct I/O"))
                .then_some(true);
            results.push(result);
        } else if in_table {
            let Some((size, rates)) = split_size(text, 1024.0) else {
                in_table = text.is_empty() && results.last().is_some_and(|one| one.rows.is_empty());
                continue;
            };
            let rates = rates.trim_start_matches([':', ' ', '\t', '|']);
            let rates = parse_rates(rates, unit).ok_or_else(|| {
                ImportError::new(TOOL, line, "`SIZE WRITE READ`, with units here or above")
            })?;
            if let Some(result) = results.last_mut() {
                add_rows(result, size, rates, depth);
            }
        }
    }
    results.retain(|result| !result.rows.is_empty());
    Ok(results)
}

/// Parses the rates of writes and of reads. Returns them in bytes per second.
fn parse_rates(text: &str, unit: Option<&str>) -> Option<[f64; 2]> {
    let (write, rest) = split_number(text)?;
    let rate = |number: f64, own: &str| {
        let unit = if own.contains("/s") { own } else { unit? };
        let unit = unit.split("/s").next()?;
        Some(number * unit_bytes(unit.trim(), 1000.0)?)
    };
    let next = rest.find(|c: char| c.is_ascii_digit())?;
    let (own, rest) = rest.split_at(next);
    let (read, own_read) = split_number(rest)?;
    Some([rate(write, own)?, rate(read, own_read)?])
}

fn add_rows(result: &mut ToolResult, size: Bytes, [write, read]: [f64; 2], depth: u32) {
    for (pattern, rate) in [(Pattern::Write, write), (Pattern::Read, read)] {
        let name = format!("{} {}", pattern.fio(), size.short());
        let mut row = ResultRow::new(&name, pattern, Some(size));
        row.queue_depth = depth.max(1);
        result.rows.push(row.with(Figures {
            per_s: Some(rate / size.0.max(1) as f64),
            ..Figures::of_rate(rate)
        }));
    }
}

#[cfg(test)]
mod tests {
    use crate::parse_results;
    use assay_model::Bytes;

    #[test]
    fn tables_with_units_above_and_in_each_cell_are_read() {
        let above = "ATTO Disk Benchmark 3.05\nQueue Depth: 10\nTransfer Size (KB)  Write kB/s  Read kB/s\n\
                     0.5 KB 10120 12310\n4 KB 80120 91230\n8192 KB 489120 541030\n";
        let cells = "ATTO Disk Benchmark 4.01\n\nI/O Size   Write   Read\n512 B  10.12 MB/s  12.31 MB/s\n\
                     4 KB  80.12 MB/s  91.23 MB/s\n";
        for (text, rows, depth) in [(above, 6, 10), (cells, 4, 4)] {
            let result = &parse_results(text).unwrap()[0];
            assert_eq!(result.rows.len(), rows);
            let row = &result.rows[3];
            assert_eq!(
                (row.block_size, row.queue_depth),
                (Some(Bytes(4096)), depth)
            );
            let rate = row.read.as_ref().unwrap().bytes_per_s.unwrap();
            assert!((rate / 91.23e6 - 1.0).abs() < 1e-6, "{rate}");
        }
        let error = parse_results(&above.replace("80120", "fast")).unwrap_err();
        assert_eq!(error.line, 5, "{error}");
        assert!(
            parse_results("I saw ATTO Disk Benchmark once.")
                .unwrap()
                .is_empty()
        );
    }
}
