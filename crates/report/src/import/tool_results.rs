//! Reports imported results of other tools. fio's results are reported in the parent module.

use assay_imports::{Figures, ResultRow, ToolResult};
use assay_judge::doubts::other_results::JudgedTool;
use assay_model::units::{format_significant, mb_per_s};
use assay_model::{Run, Sample};
use assay_render::text::{escape_line, format_paragraph, measure_width, pad_left, pad_right};

/// An imported result of another tool.
#[derive(Debug)]
pub struct ImportedTool {
    /// Name of the file, with control characters escaped.
    pub file: String,
    /// The result as parsed from the file.
    pub result: ToolResult,
    /// What the tool measures, and the doubts about the result.
    pub judged: JudgedTool,
    /// The run as it is stored.
    pub run: Run,
    /// Samples that belong to the run.
    pub samples: Vec<Sample>,
    /// Whether the store did not contain the run before.
    pub new: bool,
}

/// A workload in a result of another tool.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct ToolRow<'a> {
    /// Name of the workload as the tool prints it.
    name: &'a str,
    pattern: assay_model::workload::Pattern,
    /// Size of one I/O in bytes; null if unknown.
    block_size: Option<u64>,
    /// Number of I/Os in flight per thread.
    queue_depth: u32,
    threads: u32,
    read: Option<ToolFigures>,
    write: Option<ToolFigures>,
}

/// Figures of a direction. A figure that the tool does not print is null.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct ToolFigures {
    iops: Option<f64>,
    bytes_per_s: Option<f64>,
    mean_ns: Option<u64>,
    max_ns: Option<u64>,
}

impl<'a> ToolRow<'a> {
    pub(super) fn of(row: &'a ResultRow) -> Self {
        let figures = |figures: &Option<Figures>| {
            figures.as_ref().map(|figures| ToolFigures {
                iops: figures.per_s,
                bytes_per_s: figures.bytes_per_s,
                mean_ns: figures.mean.map(|time| time.0),
                max_ns: figures.max.map(|time| time.0),
            })
        };
        Self {
            name: &row.name,
            pattern: row.pattern,
            block_size: row.block_size.map(|size| size.0),
            queue_depth: row.queue_depth,
            threads: row.threads,
            read: figures(&row.read),
            write: figures(&row.write),
        }
    }
}

/// Returns the name of the tool with its version.
pub(super) fn name_tool(result: &ToolResult) -> String {
    format!("{} {}", result.tool.name(), escape_line(&result.version))
        .trim_end()
        .to_owned()
}

/// Formats the figures as a table. The caller adds the doubts and the number of the run.
pub(super) fn format_tool_result(imported: &ImportedTool, columns: usize) -> String {
    let result = &imported.result;
    let time = match result.time {
        Some(time) => format!(
            "{} in an unknown time zone",
            time.strftime("%Y-%m-%d %H:%M")
        ),
        None => "time unknown".to_owned(),
    };
    let title = format!("{}: {}, {time}", imported.file, name_tool(result));
    let mut out = format_paragraph(&title, 0, columns);
    if let Some(measures) = &imported.judged.measures {
        out.push_str(&format_paragraph(
            &format!("it measures {}", escape_line(measures)),
            2,
            columns,
        ));
    }
    out.push('\n');
    out.push_str(&format_table(&result.rows));
    for other in &result.others {
        out.push_str(&format_paragraph(
            &format!("also: {}", escape_line(other)),
            2,
            columns,
        ));
    }
    out
}

fn format_table(rows: &[ResultRow]) -> String {
    let heads = ["", "block", "depth", "IOPS", "MB/s", "mean", "max"].map(str::to_owned);
    let mut lines = vec![heads];
    for row in rows {
        for (what, figures) in [("read", &row.read), ("write", &row.write)] {
            let Some(figures) = figures else { continue };
            let name = match row.pattern.mixed() {
                true => format!("{}, {what}", row.name),
                false => row.name.clone(),
            };
            let depth = match row.threads {
                1 => row.queue_depth.to_string(),
                threads => format!("{} × {threads}", row.queue_depth),
            };
            let dash = || "–".to_owned();
            lines.push([
                escape_line(&name),
                row.block_size.map_or_else(dash, |size| size.to_string()),
                depth,
                figures.per_s.map_or_else(dash, format_significant),
                figures.bytes_per_s.map_or_else(dash, mb_per_s),
                figures.mean.map_or_else(dash, |time| time.to_string()),
                figures.max.map_or_else(dash, |time| time.to_string()),
            ]);
        }
    }
    // A column that no figure fills is left out.
    let filled =
        |column: &usize| *column == 0 || lines.iter().skip(1).any(|line| line[*column] != "–");
    let shown: Vec<usize> = (0..7).filter(filled).collect();
    let width = |column: usize| {
        let widths = lines.iter().map(|line| measure_width(&line[column]));
        widths.max().unwrap_or(0)
    };
    let mut out = String::new();
    for line in &lines {
        let mut text = format!("  {}", pad_right(&line[0], width(0)));
        for &column in shown.iter().skip(1) {
            text.push_str(&format!("  {}", pad_left(&line[column], width(column))));
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}
