//! Pictures: disks as bars with what lies on them, for a terminal and as a page.

mod bars;
mod page;

pub use bars::{bars, legend};
pub use page::page;

use crate::layout::{Content, Segment};

/// Equal neighbours drawn once.
pub(crate) struct Row<'a> {
    /// How many disks look like this.
    pub times: usize,
    /// What lies on them.
    pub segments: &'a [Segment],
    /// Bytes of one.
    pub size: u64,
}

/// Disks, with runs of equal ones joined.
pub(crate) fn rows(disks: &[Vec<Segment>]) -> Vec<Row<'_>> {
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

/// Name of a content.
pub(crate) fn name(content: Content) -> &'static str {
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
