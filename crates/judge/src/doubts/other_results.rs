//! Finds doubts about results of tools other than fio. [`super::other_tools`] explains the commands of these tools.

use super::other_tools::{explain_command, explain_crystal_disk_mark};
use crate::doubts::{
    compressible_data, depth_not_reached, page_cache_read, page_cache_write, small_target,
    sparse_file, suspect_doubt, too_short,
};
use assay_imports::{Figures, ResultRow, Tool, ToolResult};
use assay_model::workload::Durability;
use assay_model::{Bytes, Doubt, Nanos};

/// What a result of another tool measures, and the doubts about the result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgedTool {
    /// Sentence that describes what the tool measures; `None` if the text does not contain the command.
    pub measures: Option<String>,
    /// Doubts about the figures of the result.
    pub doubts: Vec<Doubt>,
}

/// Minimum duration of a test; a shorter one may measure only a burst.
const LEAST: Nanos = Nanos(10_000_000_000);
/// A test file up to this size may fit into the cache of a drive or into RAM.
const SMALL: Bytes = Bytes(1 << 30);
/// Fraction of the requested queue depth below which rate × latency contradicts this depth.
const REACHED: f64 = 0.5;

/// Finds the doubts about a result.
#[must_use]
pub fn judge_tool_result(result: &ToolResult) -> JudgedTool {
    let words: Vec<String> = match &result.command {
        // What follows a pipe is another command.
        Some(command) => command
            .split_whitespace()
            .take_while(|word| *word != "|")
            .map(str::to_owned)
            .collect(),
        None => Vec::new(),
    };
    let explained = match result.tool {
        Tool::CrystalDiskMark => {
            let explained = explain_crystal_disk_mark("CrystalDiskMark");
            explained.map(|mut explained| {
                explained.measures = describe_crystal_disk_mark(result);
                explained
            })
        }
        _ => explain_command(&words),
    };
    let mut judged = match explained {
        Some(explained) => JudgedTool {
            measures: Some(explained.measures),
            doubts: explained.doubts,
        },
        None => JudgedTool {
            measures: None,
            doubts: find_cache_doubts(result),
        },
    };
    let further = find_short_runs(result)
        .into_iter()
        .chain(find_small_file(result))
        .chain(find_tool_doubts(result.tool))
        .chain(result.rows.iter().filter_map(find_missed_depth));
    for doubt in further {
        if !judged.doubts.iter().any(|known| known.code == doubt.code) {
            judged.doubts.push(doubt);
        }
    }
    judged
}

/// Describes the test of CrystalDiskMark, which calls DiskSpd since version 5.
fn describe_crystal_disk_mark(result: &ToolResult) -> String {
    let major = result
        .version
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    let engine = match major {
        Some(major) if major < 5 => "a loop of its own",
        Some(_) => "DiskSpd",
        None => "its tests",
    };
    let size = match result.file_size {
        Some(size) => format!("a file of {size}"),
        None => "a file".to_owned(),
    };
    let best = match result.repeats {
        Some(1) => String::new(),
        Some(repeats) => format!("; each figure is the best of {repeats}"),
        None => "; each figure is the best of several".to_owned(),
    };
    format!("{engine} on {size} without the system's cache{best}")
}

/// Finds doubts if the page cache was not bypassed, or may not have been.
fn find_cache_doubts(result: &ToolResult) -> Vec<Doubt> {
    let seen = match result.direct {
        Some(true) => return Vec::new(),
        Some(false) => "it works through the page cache",
        None => "the text does not contain whether the page cache was bypassed",
    };
    let mut doubts = Vec::new();
    if result.rows.iter().any(|row| row.pattern.reads()) {
        doubts.push(suspect_doubt(
            page_cache_read::CODE,
            format!("{seen}: what was read or written before comes from RAM"),
            "Measure with direct I/O, or with files of several times the RAM.",
        ));
    }
    let unflushed = |row: &ResultRow| row.pattern.writes() && row.durability == Durability::None;
    if result.rows.iter().any(unflushed) {
        doubts.push(suspect_doubt(
            page_cache_write::CODE,
            format!("{seen}: a write returns when it is in RAM"),
            "Measure with direct I/O, or with files of several times the RAM.",
        ));
    }
    doubts
}

fn find_short_runs(result: &ToolResult) -> Option<Doubt> {
    let shortest = result.rows.iter().filter_map(|row| row.runtime).min()?;
    (shortest < LEAST).then(|| {
        suspect_doubt(
            too_short::CODE,
            format!("it ran for {shortest}"),
            "Run it for a minute or more, and several times.",
        )
    })
}

fn find_small_file(result: &ToolResult) -> Option<Doubt> {
    let size = result
        .file_size
        .filter(|size| size.0 > 0 && *size <= SMALL)?;
    // pveperf prints the size of the file system, not of its files.
    (result.tool != Tool::Pveperf).then(|| {
        suspect_doubt(
            small_target::CODE,
            format!("the test file has {size}, which fits into RAM or the fast part of a drive"),
            "Use a file of several GiB, larger than every cache below.",
        )
    })
}

/// Returns the doubts that apply to every result of a tool.
fn find_tool_doubts(tool: Tool) -> Vec<Doubt> {
    match tool {
        Tool::Atto => vec![suspect_doubt(
            compressible_data::CODE,
            "ATTO writes one pattern again and again, which compressing drives and file systems shrink".to_owned(),
            "Compare with a tool that writes random data, such as `assay run`.",
        )],
        Tool::HdTune => vec![suspect_doubt(
            sparse_file::CODE,
            "HD Tune reads the whole disk, also what was never written: an SSD answers such reads without its flash"
                .to_owned(),
            "Measure a file that was written before, as `assay run` does.",
        )],
        Tool::Pveperf => vec![
            suspect_doubt(
                too_short::CODE,
                "pveperf writes 4 bytes and calls fsync, for three seconds".to_owned(),
                "`assay run DIRECTORY` measures durable writes of 4 KiB with their latencies.",
            ),
            suspect_doubt(
                compressible_data::CODE,
                "pveperf writes the same four letters into each file".to_owned(),
                "Compare with a tool that writes random data, such as `assay run`.",
            ),
        ],
        _ => Vec::new(),
    }
}

/// Compares the requested queue depth with rate × mean latency (Little's law).
fn find_missed_depth(row: &ResultRow) -> Option<Doubt> {
    let asked = f64::from(row.queue_depth.saturating_mul(row.threads));
    let in_flight = |figures: &Figures| Some(figures.per_s? * figures.mean?.as_secs_f64());
    let parts = [row.read.as_ref(), row.write.as_ref()];
    let sums: Option<Vec<f64>> = parts.into_iter().flatten().map(in_flight).collect();
    let reached: f64 = sums?.iter().sum();
    (asked > 1.0 && reached > 0.0 && reached < REACHED * asked).then(|| {
        suspect_doubt(
            depth_not_reached::CODE,
            format!(
                "`{}` asks for {asked} I/Os in flight, but its rate and latency mean {reached:.1}",
                crate::doubts::clean_text(&row.name)
            ),
            "Compare this figure only with results of the depth that was reached.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_imports::parse_results;

    fn codes(text: &str) -> Vec<String> {
        let results = parse_results(text).unwrap();
        assert_eq!(results.len(), 1, "{text}");
        let judged = judge_tool_result(&results[0]);
        judged.doubts.into_iter().map(|doubt| doubt.code).collect()
    }

    #[test]
    fn each_tool_has_its_doubts() {
        for (text, wanted) in [
            (
                "$ dd if=/dev/zero of=/srv/f bs=1M count=64\n67108864 bytes (67 MB, 64 MiB) copied, 0.06 s, 1 GB/s",
                &[
                    "page-cache-write",
                    "unflushed-write",
                    "compressible-data",
                    "too-short",
                    "small-target",
                ][..],
            ),
            (
                "CPU BOGOMIPS: 1\nBUFFERED READS: 239.90 MB/sec\nFSYNCS/SECOND: 691.50\n",
                &["page-cache-read", "too-short", "compressible-data"],
            ),
            (
                "HD Tune: DISK Benchmark\nTransfer Rate Average : 308.1 MB/sec\n",
                &["sparse-file"],
            ),
            (
                "[Read]\nRND    4KiB (Q= 32, T= 1):   836.974 MB/s [ 204339.4 IOPS] <    60.86 us>\n",
                &["too-short", "depth-not-reached"],
            ),
        ] {
            assert_eq!(codes(text), wanted, "{text}");
        }
    }
}
