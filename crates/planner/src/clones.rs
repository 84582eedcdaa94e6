//! Analyses snapshots and clones: the data that they share, snapshots that cannot be destroyed, and the effects of a
//! destroy.

mod graph;
mod record;
mod report;

pub use graph::{Destroy, Graph, Node, Recursion};
pub use record::{PROPERTIES, Record, parse_zfs_get};
pub use report::{CloneReport, CopyOut, HostageReport, LineageReport, Promote, report};
