//! Lineage of snapshots and clones: what is shared, what is held hostage, what goes with what.

mod graph;
mod record;
mod report;

pub use graph::{Destroy, Graph, Node, Recursion};
pub use record::{PROPERTIES, Record, parse_zfs_get};
pub use report::{CloneReport, CopyOut, HostageReport, LineageReport, Promote, report};
