//! The planner's answers as charts, for a terminal and as a page. The answers are computed in
//! `assay-planner`.

mod answer_sections;
pub mod capacity_bill;
pub mod clones_text;
mod disk_bars;
mod growth_chart;
pub mod layout;
mod lineage_section;
mod planner_page;

pub use answer_sections::{
    build_cache_sections, build_capacity_section, build_distribution_section,
    build_durability_section,
};
pub use disk_bars::{draw_bars, format_legend};
pub use growth_chart::build_growth_section;
pub use layout::{describe_growth_step, render_layouts_page};
pub use lineage_section::build_lineage_section;
pub use planner_page::{
    BarLine, BarPart, PlanSection, format_section, render_page_of_verb, render_planner_page,
};

use assay_planner::layout::{Content, Segment};

/// CSS with the colours of disk contents, for light and dark mode.
const STYLE: &str = include_str!("plan/plan.css");

/// Equal neighbouring disks, which a chart shows once.
struct DiskRow<'a> {
    /// Number of equal disks in the row.
    times: usize,
    /// Contents of each of these disks.
    segments: &'a [Segment],
    /// Size of each disk in bytes.
    size: u64,
}

/// Groups neighbouring disks with equal contents.
fn join_equal_disks(disks: &[Vec<Segment>]) -> Vec<DiskRow<'_>> {
    let mut rows: Vec<DiskRow<'_>> = Vec::new();
    for disk in disks {
        match rows.last_mut() {
            Some(last) if last.segments == disk.as_slice() => last.times += 1,
            _ => rows.push(DiskRow {
                times: 1,
                segments: disk,
                size: disk.iter().map(|s| s.bytes).sum(),
            }),
        }
    }
    rows
}

/// Lists the kinds of content that the disks have, each once and in a fixed order.
fn list_contents<'a>(disks: impl Iterator<Item = &'a Vec<Segment>>) -> Vec<Content> {
    let mut seen: Vec<Content> = Vec::new();
    for segment in disks.flatten() {
        if !seen.contains(&segment.content) {
            seen.push(segment.content);
        }
    }
    seen.sort_by_key(|content| *content as u8);
    seen
}

/// Returns the name of a content, which is also its CSS class.
fn content_name(content: Content) -> &'static str {
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
