//! Answers of the planner in pictures, for a terminal and as a page.

mod answers;
mod bars;
pub mod bill;
pub mod clones;
mod growth;
pub mod layout;
mod lineage;
mod sheet;

pub use answers::{caches, capacity, distribution, durability};
pub use bars::{bars, legend};
pub use growth::growth;
pub use layout::{layouts, step};
pub use lineage::lineage;
pub use sheet::{Line, Part, Section, sheet, sheet_of, terminal};

use assay_planner::layout::{Content, Segment};

/// Colours of what lies on disks, in light and dark.
const STYLE: &str = include_str!("plan/plan.css");

/// Equal neighbours drawn once.
struct Row<'a> {
    /// How many disks look like this.
    times: usize,
    /// What lies on them.
    segments: &'a [Segment],
    /// Bytes of one.
    size: u64,
}

/// Disks, with runs of equal ones joined.
fn rows(disks: &[Vec<Segment>]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for disk in disks {
        match rows.last_mut() {
            Some(last) if last.segments == disk.as_slice() => last.times += 1,
            _ => rows.push(Row {
                times: 1,
                segments: disk,
                size: disk.iter().map(|s| s.bytes).sum(),
            }),
        }
    }
    rows
}

/// What lies on some disks, each content once, in a fixed order.
fn contents<'a>(disks: impl Iterator<Item = &'a Vec<Segment>>) -> Vec<Content> {
    let mut seen: Vec<Content> = Vec::new();
    for segment in disks.flatten() {
        if !seen.contains(&segment.content) {
            seen.push(segment.content);
        }
    }
    seen.sort_by_key(|content| *content as u8);
    seen
}

/// Name of a content, which is also its colour.
fn name(content: Content) -> &'static str {
    match content {
        Content::Data => "data",
        Content::Copy => "copy",
        Content::Parity => "parity",
        Content::Metadata => "metadata",
        Content::Spare => "spare",
        Content::Special => "special",
        Content::Idle => "idle",
    }
}
