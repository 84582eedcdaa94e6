//! Pictures of every answer, for a terminal and as a page.

mod answers;
mod bars;
mod growth;
mod lineage;
mod page;
mod sheet;
mod shell;

pub use answers::{caches, capacity, distribution, durability};
pub use bars::{bars, legend};
pub use growth::growth;
pub use lineage::lineage;
pub use page::page;
pub use sheet::{Part, Row as Line, Section, sheet, terminal};

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

#[cfg(test)]
pub(crate) mod tests {
    /// No request, no script, every tag closed in order.
    pub fn stands_alone(page: &str) {
        assert!(page.starts_with("<!DOCTYPE html>"));
        for outside in ["http:", "https:", "<script", "@import", "url(", "src="] {
            assert!(!page.contains(outside), "{outside}");
        }
        let mut open: Vec<&str> = Vec::new();
        for tag in page.split('<').skip(1) {
            let tag = tag.split('>').next().unwrap_or("");
            let name = tag.split([' ', '/']).next().unwrap_or("");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "closed");
            } else if !tag.ends_with('/') && !["!DOCTYPE", "meta"].contains(&name) {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}
