//! Parses results of `sysbench fileio` in version 0.4 and 0.5 (`--test=fileio`), 1.0 and 1.1.

use crate::quantities::{from_ms, parse_number, parse_size, split_number, unit_bytes};
use crate::{Figures, ImportError, Line, ResultRow, Tool, ToolResult, find_command};
use assay_model::Nanos;
use assay_model::workload::Pattern;

const TOOL: Tool = Tool::Sysbench;
/// Number of lines above the first line of a result in which the command is searched.
const REACH: usize = 6;

pub(crate) fn parse(lines: &[Line<'_>]) -> Result<Vec<ToolResult>, ImportError> {
    let starts: Vec<usize> = (0..lines.len())
        .filter(|&at| {
            lines[at]
                .text
                .trim()
                .starts_with("Running the test with following options")
        })
        .collect();
    let mut results = Vec::new();
    for (number, &start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(lines.len());
        let before = match number {
            0 => 0,
            _ => starts[number - 1] + 1,
        };
        let near = before.max(start.saturating_sub(REACH));
        let mut test = Test::default();
        for line in &lines[start..end] {
            test.read_line(line.text.trim())
                .map_err(|expected| ImportError::new(TOOL, line, expected))?;
        }
        let Some(mut result) = test.finish() else {
            continue;
        };
        result.command = find_command(lines, near, start, "sysbench");
        let version = lines[near..start].iter().rev().find_map(|line| {
            let rest = line.text.trim().strip_prefix("sysbench ")?;
            let word = rest.split([' ', ':']).next()?;
            word.starts_with(|c: char| c.is_ascii_digit())
                .then(|| word.to_owned())
        });
        result.version = version.unwrap_or_default();
        results.push(result);
    }
    Ok(results)
}

/// Workload and figures of one test.
#[derive(Default)]
struct Test {
    row: Option<ResultRow>,
    threads: u32,
    block: Option<assay_model::Bytes>,
    size: Option<assay_model::Bytes>,
    direct: Option<bool>,
    read_share: Option<f64>,
    read: Figures,
    write: Figures,
    flushes: Option<f64>,
    seconds: Option<f64>,
    min_avg_max: [Option<f64>; 3],
    p95: Option<f64>,
}

impl Test {
    fn read_line(&mut self, text: &str) -> Result<(), &'static str> {
        let number = |text: &str| parse_number(text).ok_or("a number");
        if let Some(rest) = text.strip_prefix("Number of threads:") {
            self.threads = number(rest)? as u32;
        } else if let Some(rest) = text.strip_prefix("Block size ") {
            self.block = Some(parse_size(rest, 1024.0).ok_or("a size such as 16KiB")?);
        } else if let Some(rest) = text.strip_suffix(" total file size") {
            self.size = Some(parse_size(rest, 1024.0).ok_or("a size such as 2GiB")?);
        } else if let Some(rest) = text.strip_prefix("Extra file open flags:") {
            let flags = rest.trim();
            // 0.4 prints the number of O_DIRECT on this architecture: 16384.
            self.direct = Some(flags.contains("direct") || flags == "16384");
        } else if let Some(rest) =
            text.strip_prefix("Read/Write ratio for combined random IO test:")
        {
            let ratio = number(rest)?;
            self.read_share = Some(ratio / (ratio + 1.0));
        } else if let Some(rest) = text.strip_prefix("Doing ") {
            self.row = parse_mode(rest);
        } else {
            self.read_figure(text)?;
        }
        Ok(())
    }

    fn read_figure(&mut self, text: &str) -> Result<(), &'static str> {
        if let Some(rest) = text.strip_prefix("Operations performed:") {
            let counts = parse_counts(rest).ok_or("`N Read, N Write, N Other = N Total`")?;
            (self.read.count, self.write.count) = (Some(counts.0), Some(counts.1));
            return Ok(());
        }
        if text.starts_with("Read ") && text.contains("Total transferred") {
            let bytes =
                parse_transferred(text).ok_or("`Read N  Written N  Total transferred N`")?;
            (self.read.bytes, self.write.bytes) = (Some(bytes.0), Some(bytes.1));
            return Ok(());
        }
        let Some((key, value)) = text.split_once(':') else {
            return Ok(());
        };
        let value = value.trim();
        let plain = || parse_number(value).ok_or("a number after the colon");
        let ms = || parse_number(value.trim_end_matches("ms")).ok_or("a number after the colon");
        match key.trim() {
            "reads/s" => self.read.per_s = Some(plain()?),
            "writes/s" => self.write.per_s = Some(plain()?),
            "fsyncs/s" => self.flushes = Some(plain()?),
            "read, MiB/s" => self.read.bytes_per_s = Some(plain()? * f64::from(1 << 20)),
            "written, MiB/s" => self.write.bytes_per_s = Some(plain()? * f64::from(1 << 20)),
            // 1.1: `read:  IOPS=3253.53 50.84 MiB/s (53.31 MB/s)`.
            "read" if value.starts_with("IOPS=") => set_rates(&mut self.read, value)?,
            "write" if value.starts_with("IOPS=") => set_rates(&mut self.write, value)?,
            "fsync" if value.starts_with("IOPS=") => {
                self.flushes = Some(parse_number(&value[5..]).ok_or("`IOPS=N`")?);
            }
            "total time" | "time elapsed" => {
                let seconds = parse_number(value.trim_end_matches('s'));
                self.seconds = Some(seconds.ok_or("seconds after the colon")?);
            }
            "min" => self.min_avg_max[0] = Some(ms()?),
            "avg" => self.min_avg_max[1] = Some(ms()?),
            "max" => self.min_avg_max[2] = Some(ms()?),
            "95th percentile" | "approx.  95 percentile" => self.p95 = Some(ms()?),
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Option<ToolResult> {
        let mut row = self.row?;
        let mut result = ToolResult::new(TOOL);
        row.block_size = self.block;
        row.threads = self.threads.max(1);
        row.runtime = self.seconds.map(|seconds| Nanos((seconds * 1e9) as u64));
        if row.pattern.mixed() {
            row.read_percent = self.read_share.map(|share| (share * 100.0).round() as u8);
        }
        let settle = |mut figures: Figures| {
            let per_second = |count: f64| self.seconds.map(|seconds| count / seconds);
            let count = figures.count.map(|count| count as f64);
            figures.per_s = figures.per_s.or_else(|| per_second(count?));
            let bytes = figures.bytes.map(|bytes| bytes.0 as f64);
            figures.bytes_per_s = figures.bytes_per_s.or_else(|| per_second(bytes?));
            figures
        };
        let (mut read, mut write) = (settle(self.read), settle(self.write));
        let [_, mean, max] = self.min_avg_max;
        if row.pattern.mixed() || self.flushes.is_some_and(|rate| rate > 0.0) {
            if let (Some(mean), Some(max)) = (mean, max) {
                result.others.push(format!(
                    "latency of all requests together, fsyncs among them: mean {mean} ms, max {max} ms"
                ));
            }
        } else {
            let one = if row.pattern.reads() {
                &mut read
            } else {
                &mut write
            };
            one.mean = mean.map(from_ms);
            one.max = max.map(from_ms);
            one.percentiles = self.p95.map(|ms| (95.0, from_ms(ms))).into_iter().collect();
        }
        row.read = row.pattern.reads().then_some(read);
        row.write = row.pattern.writes().then_some(write);
        if let Some(rate) = self.flushes {
            result.others.push(format!("{rate} fsyncs per second"));
        }
        let figures = row.read.iter().chain(&row.write);
        let measured = figures.into_iter().any(|figures| figures.per_s.is_some());
        result.direct = self.direct;
        result.file_size = self.size;
        result.rows.push(row);
        measured.then_some(result)
    }
}

/// Parses a mode such as `random r/w test` or `sequential write (creation) test`.
fn parse_mode(text: &str) -> Option<ResultRow> {
    let (order, rest) = text.split_once(' ')?;
    let random = match order {
        "random" => true,
        "sequential" => false,
        _ => return None,
    };
    let (name, pattern) = match (random, rest.split(' ').next()?) {
        (false, "read") => ("seqrd", Pattern::Read),
        (false, "write") => ("seqwr", Pattern::Write),
        (false, "rewrite") => ("seqrewr", Pattern::Write),
        (true, "read") => ("rndrd", Pattern::RandRead),
        (true, "write") => ("rndwr", Pattern::RandWrite),
        (true, "r/w") => ("rndrw", Pattern::RandRw),
        _ => return None,
    };
    Some(ResultRow::new(name, pattern, None))
}

/// Parses a line such as `600 Read, 400 Write, 1186 Other = 2186 Total`. Returns the numbers of reads and of writes.
fn parse_counts(text: &str) -> Option<(u64, u64)> {
    let (read, rest) = text.split_once(" Read,")?;
    let (write, _) = rest.split_once(" Write,")?;
    Some((read.trim().parse().ok()?, write.trim().parse().ok()?))
}

/// Parses a line such as `Read 9.375Mb  Written 6.25Mb  Total transferred …`. Returns the bytes read and written. The
/// units are powers of 1024 bytes.
fn parse_transferred(text: &str) -> Option<(assay_model::Bytes, assay_model::Bytes)> {
    let mut words = text.split_whitespace();
    let mut after = |label: &str| {
        words.find(|word| *word == label)?;
        parse_size(words.next()?, 1024.0)
    };
    Some((after("Read")?, after("Written")?))
}

fn set_rates(figures: &mut Figures, value: &str) -> Result<(), &'static str> {
    let parse = || {
        let (iops, rest) = split_number(value.strip_prefix("IOPS=")?)?;
        let (rate, unit) = split_number(rest)?;
        let unit = unit.split_once("/s")?.0;
        Some((iops, rate * unit_bytes(unit, 1000.0)?))
    };
    let (iops, rate) = parse().ok_or("`IOPS=N RATE MiB/s`")?;
    (figures.per_s, figures.bytes_per_s) = (Some(iops), Some(rate));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::parse_results;
    use assay_model::workload::Pattern;

    const NEW: &str = include_str!("../fixtures/sysbench-1.0.20.txt");
    const OLD: &str = include_str!("../fixtures/made-sysbench-0.4.12.txt");

    #[test]
    fn old_and_new_results_are_read() {
        let new = &parse_results(NEW).unwrap()[0];
        assert_eq!((new.version.as_str(), new.direct), ("1.0.20", Some(true)));
        let row = &new.rows[0];
        assert_eq!(
            (row.pattern, row.threads, row.read_percent),
            (Pattern::RandRw, 2, Some(60))
        );
        let old = &parse_results(OLD).unwrap()[0];
        assert_eq!((old.version.as_str(), old.direct), ("0.4.12", Some(false)));
        assert!(old.command.as_deref().unwrap().contains("--max-time=300"));
        for result in [new, old] {
            let row = &result.rows[0];
            for figures in [row.read.as_ref().unwrap(), row.write.as_ref().unwrap()] {
                let size = figures.bytes_per_s.unwrap() / figures.per_s.unwrap();
                assert!((size / 16384.0 - 1.0).abs() < 0.01, "{size}");
            }
        }
        let error = parse_results(&NEW.replace("4881.85", "many")).unwrap_err();
        assert!(error.text.contains("many"), "{error}");
    }
}
