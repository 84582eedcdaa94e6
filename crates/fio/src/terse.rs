//! Parses fio's terse output (`--output-format=terse`, `--minimal`), versions 2 to 5 of the format.
//!
//! The fields are described in fio's HOWTO, section "Terse output", and in `show_thread_status_terse_all` of `stat.c`.
//! Terse output contains no options, so the pattern, queue depth and `direct` of a job are unknown.

use crate::json::{DiskUtil, FioDocument};
use crate::text_result::{TextError, strip_quote};
use assay_model::sample::{FioJob, Latency, Operation, Operations, Worker};
use assay_model::{Bytes, Nanos, secrets};

/// Number of fields with distributions of latencies, between the queue depths and the disks.
const DISTRIBUTION: usize = 10 + 12;
/// Number of percentile fields of one direction.
const PERCENTILES: usize = 20;
/// Keys of the distribution of queue depths (I/Os in flight).
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];

/// Returns whether the text contains at least one line of terse output.
#[must_use]
pub fn is_terse(text: &str) -> bool {
    text.lines().any(|line| is_terse_line(strip_quote(line)))
}

fn is_terse_line(line: &str) -> bool {
    let mut fields = line.trim().split(';');
    match fields.next() {
        Some("2") => line.matches(';').count() > 100,
        Some("3" | "4" | "5") => fields.next().is_some_and(|field| field.starts_with("fio-")),
        _ => false,
    }
}

/// Parses all lines of terse output as one document. Other lines are skipped.
///
/// # Errors
/// A line ends too early, or a field is not a number; the error contains the line.
pub fn parse_terse(text: &str) -> Result<FioDocument, TextError> {
    let mut document = FioDocument::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line = strip_quote(line).trim();
        if is_terse_line(line) {
            parse_line(line, &mut document)
                .map_err(|message| TextError::new(number, line, message))?;
        }
    }
    Ok(document)
}

/// The fields of a line, from left to right.
struct Fields<'a> {
    rest: std::str::Split<'a, char>,
    /// Number of the field that was read last, counted from 1.
    at: usize,
}

impl<'a> Fields<'a> {
    fn text(&mut self) -> Result<&'a str, String> {
        self.at += 1;
        let field = self.rest.next();
        field.ok_or_else(|| format!("the line ends after field {}", self.at - 1))
    }

    fn number(&mut self) -> Result<f64, String> {
        let text = self.text()?;
        let number = text.trim_end_matches('%').parse();
        number.map_err(|_| format!("field {} is `{text}`, expected a number", self.at))
    }

    fn whole(&mut self) -> Result<u64, String> {
        self.number().map(|number| number as u64)
    }
}

fn parse_line(line: &str, document: &mut FioDocument) -> Result<(), String> {
    let mut fields = Fields {
        rest: line.split(';'),
        at: 0,
    };
    let format = fields.whole()?;
    if format > 2 {
        document.fio_version = fields.text()?.to_owned();
    }
    let name = secrets::withhold_in_text(fields.text()?);
    let group = fields.whole()? as u32;
    let error = fields.whole()? as i32;
    let mut job = Worker {
        name,
        fio: FioJob {
            error,
            group,
            open: true,
            ..FioJob::default()
        },
        ..Worker::default()
    };
    let kinds: &[Operation] = match format {
        3 => &[Operation::Read, Operation::Write],
        _ => &[Operation::Read, Operation::Write, Operation::Trim],
    };
    for &kind in kinds {
        let operations = parse_direction(&mut fields, format)?;
        if operations.runtime.0 > 0 {
            job.runtime = job.runtime.max(operations.runtime);
            job.operations.insert(kind, operations);
        }
    }
    job.usr_cpu = fields.number()?;
    job.sys_cpu = fields.number()?;
    job.fio.ctx = fields.whole()?;
    for _ in 0..2 {
        fields.number()?;
    }
    for depth in DEPTHS {
        let share = fields.number()?;
        job.fio.iodepth_level.insert(depth.to_owned(), share);
    }
    for _ in 0..DISTRIBUTION {
        fields.number()?;
    }
    while let Ok(name) = fields.text() {
        match parse_disk(name, &mut fields) {
            Ok(disk) if !document.disks.iter().any(|one| one.name == disk.name) => {
                document.disks.push(disk);
            }
            Ok(_) => {}
            // The description of the job may follow.
            Err(_) => break,
        }
    }
    document.jobs.push(job);
    Ok(())
}

/// Parses the fields of one direction.
fn parse_direction(fields: &mut Fields<'_>, format: u64) -> Result<Operations, String> {
    let kib = fields.number()?;
    let kib_per_s = fields.number()?;
    let per_s = fields.number()?;
    let runtime = Nanos(fields.whole()?.saturating_mul(1_000_000));
    let slat = parse_latency(fields)?;
    let mut clat = parse_latency(fields)?;
    for _ in 0..PERCENTILES {
        let pair = fields.text()?;
        let parsed = pair.split_once("%=").and_then(|(percent, value)| {
            Some((percent.parse::<f64>().ok()?, value.parse::<u64>().ok()?))
        });
        let Some((percent, us)) = parsed else {
            return Err(format!(
                "field {} is `{pair}`, expected a percentile",
                fields.at
            ));
        };
        if percent > 0.0 {
            clat.percentiles.push((percent, us.saturating_mul(1000)));
        }
    }
    let lat = parse_latency(fields)?;
    // Bandwidth: minimum, maximum, share, mean, deviation; from version 5 on samples and the same of IOPS.
    for _ in 0..if format >= 5 { 11 } else { 5 } {
        fields.number()?;
    }
    let seconds = runtime.as_secs_f64();
    let exact = kib * 1024.0 / seconds;
    Ok(Operations {
        count: (per_s * seconds).round() as u64,
        bytes: Bytes((kib * 1024.0) as u64),
        runtime,
        per_s,
        bytes_per_s: if exact.is_finite() {
            exact
        } else {
            kib_per_s * 1024.0
        },
        slat,
        clat,
        lat,
        ..Operations::default()
    })
}

/// Parses minimum, maximum, mean and standard deviation in microseconds.
fn parse_latency(fields: &mut Fields<'_>) -> Result<Latency, String> {
    Ok(Latency {
        min: fields.whole()?.saturating_mul(1000),
        max: fields.whole()?.saturating_mul(1000),
        mean: fields.number()? * 1000.0,
        stddev: fields.number()? * 1000.0,
        ..Latency::default()
    })
}

fn parse_disk(name: &str, fields: &mut Fields<'_>) -> Result<DiskUtil, String> {
    let (read_ios, write_ios) = (fields.whole()?, fields.whole()?);
    for _ in 0..2 {
        fields.number()?;
    }
    Ok(DiskUtil {
        name: name.to_owned(),
        read_ios,
        write_ios,
        read_ms: fields.whole()?,
        write_ms: fields.whole()?,
        in_queue_ms: fields.whole()?,
        util: fields.number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that fio 3.33 printed for the same job in each version of the format.
    const REAL: [(u64, &str); 4] = [
        (2, include_str!("../fixtures/fio-3.33-terse-2.txt")),
        (3, include_str!("../fixtures/fio-3.33-terse-3.txt")),
        (4, include_str!("../fixtures/fio-3.33-terse-4.txt")),
        (5, include_str!("../fixtures/fio-3.33-terse-5.txt")),
    ];

    #[test]
    fn every_version_of_the_format_has_the_same_fields() {
        for (version, text) in REAL {
            assert!(is_terse(text), "{version}");
            let document = parse_terse(text).unwrap();
            let [job] = document.jobs.as_slice() else {
                panic!("{version}");
            };
            let read = job.read().unwrap();
            assert!(job.write().is_none() && job.fio.open, "{version}");
            let size = read.bytes_per_s / read.per_s;
            assert!((size - 4096.0).abs() < 41.0, "{version}: {size}");
            assert!(job.fio.iodepth_level["8"] > 99.0, "{version}");
            let in_flight = read.per_s * read.lat.mean / 1e9;
            assert!((7.0..8.5).contains(&in_flight), "{version}: {in_flight}");
            // Format 2 has no disks.
            assert_eq!(document.disks.len(), usize::from(version > 2), "{version}");
        }
    }

    #[test]
    fn a_cut_line_and_a_wrong_field_are_named() {
        let (_, text) = REAL[1];
        let cut = format!("first\n{}", &text[..200]);
        let error = parse_terse(&cut).unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.message.contains("field"), "{error}");
        let wrong = text.replacen("26.", "x", 1).replacen(";0;0;", ";0;e;", 1);
        assert_eq!(parse_terse(&wrong).unwrap_err().line, 1);
    }
}
