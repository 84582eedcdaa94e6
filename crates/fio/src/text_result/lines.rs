//! Parses single lines of fio's text (fio `stat.c`, `show_thread_status_normal`; releases 2.0 to 3.4x).

use super::LatencyKind;
use super::quantities::{parse_count, parse_size};
use crate::json::DiskUtil;
use assay_model::sample::{Latency, Operation, Operations};
use assay_model::{Bytes, Nanos, secrets};
use std::collections::BTreeMap;

/// Error of a line that cannot be parsed. The text is the expected content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineError(pub String);

fn fail<T>(expected: &str) -> Result<T, LineError> {
    Err(LineError(format!("expected {expected}")))
}

/// Values on the first line of a job's result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JobStart {
    pub name: String,
    pub group: u32,
    pub jobs: u32,
    pub error: i32,
    pub pid: Option<String>,
    /// Local time of the output in milliseconds since 1970. The time zone is interpreted as UTC.
    pub time: Option<i64>,
}

/// Parses `name: (groupid=0, jobs=1): err= 0: pid=10258: Fri Oct 14 17:03:30 2016`.
pub(super) fn parse_job_start(line: &str) -> Option<Result<JobStart, LineError>> {
    let line = line.trim();
    let (name, rest) = line.split_once(": (groupid=")?;
    Some(parse_job_rest(name, rest))
}

fn parse_job_rest(name: &str, rest: &str) -> Result<JobStart, LineError> {
    const EXPECTED: &str = "`(groupid=N, jobs=N): err= N: pid=N`";
    let Some((group, rest)) = rest.split_once(", jobs=") else {
        return fail(EXPECTED);
    };
    let Some((jobs, rest)) = rest.split_once("): err=") else {
        return fail(EXPECTED);
    };
    let (error, rest) = match rest.find(['(', ':']) {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    };
    let (Ok(group), Ok(jobs), Ok(error)) = (
        group.trim().parse(),
        jobs.trim().parse(),
        error.trim().parse(),
    ) else {
        return fail(EXPECTED);
    };
    let after = rest.split_once("pid=").map_or("", |(_, after)| after);
    let (pid, time) = after.split_once(':').unwrap_or((after, ""));
    Ok(JobStart {
        name: secrets::withhold_in_text(name),
        group,
        jobs,
        error,
        pid: (!pid.trim().is_empty()).then(|| pid.trim().to_owned()),
        time: parse_time(time.trim()),
    })
}

/// Parses a time such as `Fri Oct 14 17:03:30 2016`. The text has no time zone, so it is interpreted as UTC.
fn parse_time(text: &str) -> Option<i64> {
    let time = jiff::civil::DateTime::strptime("%a %b %d %H:%M:%S %Y", text).ok()?;
    let zoned = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_millisecond())
}

/// Options of a job by name.
type Options = BTreeMap<String, String>;

/// Parses `name: (g=0): rw=randwrite, bs=…, ioengine=libaio, iodepth=32`.
pub(super) fn parse_header(line: &str) -> Result<Option<(String, Options)>, LineError> {
    let Some((name, rest)) = line.split_once(": (g=") else {
        return Ok(None);
    };
    let Some((_, rest)) = rest.split_once("): ") else {
        return Ok(None);
    };
    let find = |key: &str, ends: &str| {
        let value = rest.split_once(key)?.1;
        Some(
            value
                .split_once(ends)
                .map_or(value, |(value, _)| value)
                .trim(),
        )
    };
    let (Some(rw), Some(blocks), Some(engine), Some(depth)) = (
        find("rw=", ", "),
        find("bs=", ", ioengine"),
        find("ioengine=", ", "),
        find("iodepth=", ", "),
    ) else {
        return fail("`rw=…, bs=…, ioengine=…, iodepth=…`");
    };
    let mut options = Options::new();
    options.insert("rw".to_owned(), rw.to_owned());
    let (key, value) = parse_blocks(blocks)?;
    options.insert(key.to_owned(), value);
    options.insert("ioengine".to_owned(), engine.to_owned());
    options.insert("iodepth".to_owned(), depth.to_owned());
    Ok(Some((secrets::withhold_in_text(name), options)))
}

/// Parses the block sizes of reads and writes: `(R) 4096B-4096B, (W) …, (T) …`, or `4K-4K/4K-4K/4K-4K` (fio 2).
fn parse_blocks(text: &str) -> Result<(&'static str, String), LineError> {
    let parts: Vec<&str> = if text.contains("(R)") {
        text.split(['(', ','])
            .filter_map(|part| Some(part.split_once(')')?.1))
            .collect()
    } else {
        text.split(['/', ',']).collect()
    };
    let range = |part: &str| {
        let (low, high) = part.trim().split_once('-')?;
        Some((parse_size(low)?, parse_size(high)?))
    };
    let ranges: Option<Vec<(u64, u64)>> = parts.iter().take(2).map(|part| range(part)).collect();
    match ranges.as_deref() {
        Some([read] | [read, ..]) if read.0 != read.1 => {
            Ok(("bsrange", format!("{}-{}", read.0, read.1)))
        }
        Some([read, write, ..]) if read != write => Ok(("bs", format!("{},{}", read.0, write.0))),
        Some([read, ..]) => Ok(("bs", read.0.to_string())),
        _ => fail("block sizes such as `4096B-4096B` after bs="),
    }
}

/// Returns whether a line contains only fio's version: `fio-3.33`, `2.0.8`, `fio 2.0.7`.
pub(super) fn is_version(line: &str) -> bool {
    let number = line
        .strip_prefix("fio-")
        .or(line.strip_prefix("fio "))
        .unwrap_or(line);
    let mut parts = number.split('.');
    let digits = |part: Option<&str>| {
        part.is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    line.len() < 40
        && number.chars().all(plain)
        && digits(parts.next())
        && digits(parts.next())
        && (number.len() < line.len() || number.matches('.').count() == 2)
}

/// Parses the line with the rates of a direction: `read: IOPS=28.4k, BW=111MiB/s (116MB/s)(222MiB/2003msec)`, or
/// `write: io=6266.4MB, bw=213877KB/s, iops=53469, runt= 30002msec` (fio 2).
pub(super) fn parse_direction(line: &str) -> Result<Option<(Operation, Operations)>, LineError> {
    let Some((word, rest)) = line.split_once(':') else {
        return Ok(None);
    };
    let kind = match word.trim() {
        "read" | "mixed" => Operation::Read,
        "write" => Operation::Write,
        "trim" => Operation::Trim,
        _ => return Ok(None),
    };
    let rest = rest.trim();
    let parsed = if rest.starts_with("IOPS=") {
        parse_direction_3(rest)
    } else if rest.starts_with("io=") {
        parse_direction_2(rest)
    } else {
        return Ok(None);
    };
    match parsed {
        Some(operations) => Ok(Some((kind, operations))),
        None => fail("`IOPS=…, BW=… (…)(SIZE/TIMEmsec)` or `io=…, bw=…, iops=…, runt=…msec`"),
    }
}

fn parse_direction_3(rest: &str) -> Option<Operations> {
    let iops = parse_count(rest.strip_prefix("IOPS=")?.split(',').next()?)?;
    let rate = rest.split_once("BW=")?.1;
    let bytes_per_s = parse_size(rate.split_once("/s")?.0)?;
    let (size, time) = rate
        .split_once(")(")?
        .1
        .split_once(')')?
        .0
        .split_once('/')?;
    let ms: u64 = time.strip_suffix("msec")?.trim().parse().ok()?;
    Some(build_operations(iops, bytes_per_s, parse_size(size)?, ms))
}

fn parse_direction_2(rest: &str) -> Option<Operations> {
    let find = |key: &str| {
        let part = rest
            .split(',')
            .find_map(|part| part.trim().strip_prefix(key))?;
        Some(part.trim())
    };
    let bytes = parse_size(find("io=")?)?;
    let bytes_per_s = parse_size(find("bw=")?.strip_suffix("/s")?)?;
    let iops = parse_count(find("iops=")?)?;
    let time = find("runt=")?;
    let ms: u64 = time.strip_suffix("msec")?.trim().parse().ok()?;
    Some(build_operations(iops, bytes_per_s, bytes, ms))
}

fn build_operations(per_s: f64, bytes_per_s: u64, bytes: u64, ms: u64) -> Operations {
    let runtime = Nanos(ms.saturating_mul(1_000_000));
    let rate = bytes as f64 / runtime.as_secs_f64();
    Operations {
        count: (per_s * runtime.as_secs_f64()).round() as u64,
        bytes: Bytes(bytes),
        runtime,
        per_s,
        bytes_per_s: if rate.is_finite() && rate > 0.0 {
            rate
        } else {
            bytes_per_s as f64
        },
        ..Operations::default()
    }
}

/// Parses a line such as `clat (usec): min=45, max=60520, avg=595.59, stdev=1185.38`. Returns the kind, the latency,
/// and the printed unit in nanoseconds.
pub(super) fn parse_latency(line: &str) -> Result<Option<(LatencyKind, Latency, f64)>, LineError> {
    let Some((kind, unit, rest)) = split_latency_title(line) else {
        return Ok(None);
    };
    if !rest.trim_start().starts_with("min=") {
        return Ok(None);
    }
    let find = |key: &str| {
        let part = rest
            .split(',')
            .find_map(|part| part.trim().strip_prefix(key))?;
        Some(parse_count(part)? * unit)
    };
    let figures = (find("min="), find("max="), find("avg="), find("stdev="));
    let (Some(min), Some(max), Some(mean), Some(stddev)) = figures else {
        return fail("`min=…, max=…, avg=…, stdev=…`");
    };
    let latency = Latency {
        min: min.round() as u64,
        max: max.round() as u64,
        mean,
        stddev,
        ..Latency::default()
    };
    Ok(Some((kind, latency, unit)))
}

/// Splits `clat (usec): …` into the kind, the unit in nanoseconds, and the rest of the line.
fn split_latency_title(line: &str) -> Option<(LatencyKind, f64, &str)> {
    let (title, rest) = line.split_once(':')?;
    let (word, unit) = title.trim().strip_suffix(')')?.split_once('(')?;
    let kind = match word.split_whitespace().next()? {
        "slat" => LatencyKind::Slat,
        "clat" => LatencyKind::Clat,
        "lat" => LatencyKind::Lat,
        "sync" => LatencyKind::Sync,
        _ => return None,
    };
    let unit = match unit.trim() {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        "sec" => 1e9,
        _ => return None,
    };
    Some((kind, unit, rest))
}

/// Parses `clat percentiles (usec):`.
pub(super) fn parse_percentiles_title(line: &str) -> Option<(LatencyKind, f64)> {
    let (kind, unit, rest) = split_latency_title(line)?;
    (line.contains("percentiles") && rest.trim().is_empty()).then_some((kind, unit))
}

/// Parses ` 1.00th=[  123],  5.00th=[  322],` into pairs of percentage and nanoseconds.
pub(super) fn parse_percentiles(line: &str, unit: f64) -> Result<Vec<(f64, u64)>, LineError> {
    let parts = line
        .split(']')
        .map(|part| part.trim_matches([' ', ',', '\t']));
    let pair = |part: &str| {
        let (percent, value) = part.split_once("th=[")?;
        let percent: f64 = percent.trim().parse().ok()?;
        Some((percent, (parse_count(value)? * unit).round() as u64))
    };
    let pairs: Option<Vec<_>> = parts.filter(|part| !part.is_empty()).map(pair).collect();
    match pairs {
        Some(pairs) => Ok(pairs),
        None => fail("percentiles such as `99.00th=[ 1640]`"),
    }
}

/// Parses `cpu : usr=4.00%, sys=34.47%, ctx=18976, …`. Returns user time and system time in percent, and the number of
/// context switches.
pub(super) fn parse_cpu(line: &str) -> Result<Option<(f64, f64, u64)>, LineError> {
    let Some(rest) = strip_label(line, "cpu") else {
        return Ok(None);
    };
    let find = |key: &str| {
        let part = rest
            .split(',')
            .find_map(|part| part.trim().strip_prefix(key))?;
        part.trim_end_matches('%').trim().parse::<f64>().ok()
    };
    match (find("usr="), find("sys="), find("ctx=")) {
        (Some(usr), Some(sys), Some(ctx)) => Ok(Some((usr, sys, ctx as u64))),
        _ => fail("`usr=…%, sys=…%, ctx=…`"),
    }
}

fn strip_label<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    line.strip_prefix(label)?.trim_start().strip_prefix(':')
}

/// Parses `IO depths : 1=0.1%, 2=0.1%, …, >=64=0.0%`.
pub(super) fn parse_depths(line: &str) -> Result<Option<BTreeMap<String, f64>>, LineError> {
    let Some(rest) = strip_label(line, "IO depths") else {
        return Ok(None);
    };
    let pair = |part: &str| {
        let (depth, share) = part.trim().rsplit_once('=')?;
        Some((depth.to_owned(), share.trim_end_matches('%').parse().ok()?))
    };
    match rest.split(',').map(pair).collect() {
        Some(levels) => Ok(Some(levels)),
        None => fail("depths such as `1=100.0%, 2=0.0%`"),
    }
}

/// Numbers of issued reads, writes, trims and syncs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Issued {
    pub total: Vec<u64>,
    pub short: Vec<u64>,
}

/// Parses `issued rwts: total=5,2,0,0 short=0,0,0,0 dropped=0,0,0,0`, or
/// `issued : total=r=5/w=2/d=0, short=r=0/w=0/d=0, …` (fio 2).
pub(super) fn parse_issued(line: &str) -> Result<Option<Issued>, LineError> {
    if !line.starts_with("issued") {
        return Ok(None);
    }
    let counts = |key: &str| {
        let rest = line.split_once(key)?.1.trim_start();
        let end = rest.find([' ', '\t']).unwrap_or(rest.len());
        let numbers = rest[..end].trim_end_matches(',').split(['/', ',']);
        let counts: Option<Vec<u64>> = numbers
            .map(|part| part.rsplit('=').next()?.parse().ok())
            .collect();
        counts.filter(|counts| counts.len() >= 3)
    };
    match (counts("total="), counts("short=")) {
        (Some(total), Some(short)) => Ok(Some(Issued { total, short })),
        _ => fail("`total=R,W,T` and `short=R,W,T`"),
    }
}

/// Parses `sda: ios=9/9, merge=0/0, ticks=9/9, in_queue=9, util=98.60%`.
pub(super) fn parse_disk(line: &str) -> Result<Option<DiskUtil>, LineError> {
    let Some((name, rest)) = line.split_once(": ios=") else {
        return Ok(None);
    };
    let parse = || {
        let (reads, rest) = rest.split_once('/')?;
        let writes = rest.split(',').next()?;
        let find = |key: &str| Some(rest.split_once(key)?.1.split([',', ' ']).next()?.trim());
        let (read_ms, write_ms) = find("ticks=")?.split_once('/')?;
        Some(DiskUtil {
            name: name.trim().to_owned(),
            read_ios: reads.trim().parse().ok()?,
            write_ios: writes.trim().parse().ok()?,
            read_ms: read_ms.parse().ok()?,
            write_ms: write_ms.parse().ok()?,
            in_queue_ms: find("in_queue=")?.parse().ok()?,
            util: find("util=")?.trim_end_matches('%').parse().ok()?,
        })
    };
    match parse() {
        Some(disk) => Ok(Some(disk)),
        None => fail("`ios=R/W, …, ticks=R/W, in_queue=…, util=…%`"),
    }
}
