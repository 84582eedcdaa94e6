//! Parses results of storage benchmarks other than fio. `assay-fio` parses fio's results, and `assay-judge` finds
//! doubts (reasons to distrust a figure) about results. Performs no I/O.
//!
//! Users copy results into mails and web pages. Therefore other text before, between and after the results is skipped.
//! A line that belongs to a result but cannot be parsed is an error.

mod atto;
mod bonnie;
mod crystal_disk_mark;
mod dd;
mod hd_tune;
mod iozone;
mod pveperf;
mod quantities;
mod run;
mod sysbench;

pub use run::{ResultContext, to_run};

use assay_model::workload::{Durability, Pattern};
use assay_model::{Bytes, Nanos};

/// A benchmark program whose results can be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// CrystalDiskMark on Windows. Since version 5 it uses DiskSpd.
    CrystalDiskMark,
    /// ATTO Disk Benchmark on Windows.
    Atto,
    /// HD Tune on Windows.
    HdTune,
    /// The command `pveperf` of Proxmox VE.
    Pveperf,
    /// The command `dd`.
    Dd,
    /// The command `sysbench fileio`.
    Sysbench,
    /// The command `iozone`.
    Iozone,
    /// The command `bonnie++`.
    Bonnie,
}

impl Tool {
    /// Returns the program's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CrystalDiskMark => "CrystalDiskMark",
            Self::Atto => "ATTO Disk Benchmark",
            Self::HdTune => "HD Tune",
            Self::Pveperf => "pveperf",
            Self::Dd => "dd",
            Self::Sysbench => "sysbench",
            Self::Iozone => "iozone",
            Self::Bonnie => "bonnie++",
        }
    }
}

/// One result that a benchmark program printed.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// Program that printed the result.
    pub tool: Tool,
    /// Version of the program, as printed; empty if unknown.
    pub version: String,
    /// Local time of the result, whose time zone is unknown; `None` if the text contains no time.
    pub time: Option<jiff::civil::DateTime>,
    /// Drive, directory or file that was measured; `None` if unknown.
    pub target: Option<String>,
    /// Size of the test file, or of all test files together; `None` if unknown.
    pub file_size: Option<Bytes>,
    /// Command that ran the program; `None` if the text does not contain it.
    pub command: Option<String>,
    /// Whether the page cache was bypassed; `None` if unknown.
    pub direct: Option<bool>,
    /// Number of repetitions of each test, of which the figure is the best or the mean; `None` if unknown.
    pub repeats: Option<u32>,
    /// Workloads of the result, with their figures.
    pub rows: Vec<ResultRow>,
    /// Lines with further figures that do not describe storage I/O, as printed.
    pub others: Vec<String>,
}

impl ToolResult {
    fn new(tool: Tool) -> Self {
        Self {
            tool,
            version: String::new(),
            time: None,
            target: None,
            file_size: None,
            command: None,
            direct: None,
            repeats: None,
            rows: Vec::new(),
            others: Vec::new(),
        }
    }
}

/// One workload of a result, with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRow {
    /// Name of the workload, as the program prints it.
    pub name: String,
    /// Pattern of reads and writes.
    pub pattern: Pattern,
    /// Size of one I/O in bytes; `None` if unknown.
    pub block_size: Option<Bytes>,
    /// Number of I/Os in flight per thread.
    pub queue_depth: u32,
    /// Number of threads that ran the workload.
    pub threads: u32,
    /// Percentage of reads in a mixed workload.
    pub read_percent: Option<u8>,
    /// Which writes are durable when they complete.
    pub durability: Durability,
    /// Measured time; `None` if unknown.
    pub runtime: Option<Nanos>,
    /// Figures of the reads; `None` if the workload does not read.
    pub read: Option<Figures>,
    /// Figures of the writes; `None` if the workload does not write.
    pub write: Option<Figures>,
}

impl ResultRow {
    fn new(name: &str, pattern: Pattern, block_size: Option<Bytes>) -> Self {
        Self {
            name: name.to_owned(),
            pattern,
            block_size,
            queue_depth: 1,
            threads: 1,
            read_percent: None,
            durability: Durability::None,
            runtime: None,
            read: None,
            write: None,
        }
    }

    /// Sets the figures of the only direction that the pattern has.
    fn with(mut self, figures: Figures) -> Self {
        match self.pattern.reads() {
            true => self.read = Some(figures),
            false => self.write = Some(figures),
        }
        self
    }
}

/// Figures of one direction. A figure that was not printed is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Rate in bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Rate in I/Os per second.
    pub per_s: Option<f64>,
    /// Number of I/Os that were completed.
    pub count: Option<u64>,
    /// Number of bytes transferred.
    pub bytes: Option<Bytes>,
    /// Mean latency of the I/Os.
    pub mean: Option<Nanos>,
    /// Maximum latency of the I/Os.
    pub max: Option<Nanos>,
    /// Percentiles of the latency, each as percentage and latency.
    pub percentiles: Vec<(f64, Nanos)>,
}

impl Figures {
    fn of_rate(bytes_per_s: f64) -> Self {
        Self {
            bytes_per_s: Some(bytes_per_s),
            ..Self::default()
        }
    }
}

/// Error: a line belongs to a result but cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: cannot read `{text}` as a line of {tool}: expected {expected}", tool = tool.name())]
pub struct ImportError {
    /// Program that seems to have printed the line.
    pub tool: Tool,
    /// Number of the line, from 1.
    pub line: usize,
    /// Start of the line, without control characters.
    pub text: String,
    /// Description of the expected content.
    pub expected: &'static str,
}

impl ImportError {
    fn new(tool: Tool, line: &Line<'_>, expected: &'static str) -> Self {
        const SHOWN: usize = 60;
        let clean = line.text.trim().chars().filter(|c| !c.is_control());
        let mut text: String = clean.take(SHOWN).collect();
        if text.len() < line.text.trim().len() {
            text.push('…');
        }
        Self {
            tool,
            line: line.number,
            text,
            expected,
        }
    }
}

/// A line of the text, without the quotation marks of mails such as `> `.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    /// Number of the line, from 1.
    number: usize,
    text: &'a str,
}

fn split_lines(text: &str) -> Vec<Line<'_>> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| {
            let line = line.trim_end();
            let mut text = line;
            for mark in ["> ", "// ", "* - ", "| "] {
                text = line.trim_start().strip_prefix(mark).unwrap_or(text);
            }
            Line { number, text }
        })
        .collect()
}

type Parser = fn(&[Line<'_>]) -> Result<Vec<ToolResult>, ImportError>;

/// Parsers of all programs. Each returns nothing if the text contains no result of its program.
const PARSERS: [Parser; 8] = [
    crystal_disk_mark::parse,
    atto::parse,
    hd_tune::parse,
    pveperf::parse,
    dd::parse,
    sysbench::parse,
    iozone::parse,
    bonnie::parse,
];

/// Parses every result in the text, program by program.
///
/// # Errors
/// A line that belongs to a result cannot be read.
pub fn parse_results(text: &str) -> Result<Vec<ToolResult>, ImportError> {
    // Pages contain no-break spaces for alignment.
    let text = text.replace('\u{a0}', " ");
    let lines = split_lines(&text);
    let mut all = Vec::new();
    for parse in PARSERS {
        all.extend(parse(&lines)?);
    }
    Ok(all)
}

/// Finds the last command of `program` in the lines from index `from` to index `at`.
fn find_command(lines: &[Line<'_>], from: usize, at: usize, program: &str) -> Option<String> {
    lines.get(from..=at)?.iter().rev().find_map(|line| {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let start = words.iter().position(|word| {
            let name = word.rsplit('/').next().unwrap_or(word);
            name == program
        })?;
        // Only a prompt or sudo may precede: a sentence is no command.
        let wrapper = |word: &&&str| **word == "sudo" || **word == "time";
        let prompt = words[..start].iter().rev().find(|word| !wrapper(word));
        let prompted = prompt.is_none_or(|word| word.ends_with(['#', '$', '>', '%']));
        let version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        let called = words.get(start + 1).is_some_and(|word| !version(word));
        (prompted && called).then(|| words[start..].join(" "))
    })
}
