//! Finds duplicates across machines whose files do not fit into one table. Each machine exports a list of its contents
//! as Parquet, without paths ([`export`]). [`ask`] answers questions about all machines with one merge of the sorted
//! files.
//!
//! Only some contents need a hash. Before the export, each machine offers the size and a short sample of every file
//! ([`offer`]). One machine, the hub, finds the samples that several machines have ([`collide`]). Each machine then
//! hashes only the contents with these samples ([`wanted`]).
//!
//! Memory use does not depend on the number of files: data is sorted in runs in unnamed files ([`sort`]) and read page
//! by page.

pub mod collide;
pub mod export;
pub mod export_queries;
mod export_rows;
mod machines;
pub mod offer;
mod other_writers;
mod publish;
pub mod requested_hashes;
mod sort;

pub use export_rows::count_rows;

use assay_columns::{Column, ColumnKind};

/// Returns the columns of an export for hashes of `hash` bytes. The rows, one for each content of the machine,
/// are ordered by hash and size.
#[must_use]
pub const fn export_columns(hash: usize) -> [Column; 4] {
    [
        Column::new("machine", ColumnKind::Text),
        Column::new("hash", ColumnKind::Fixed(hash)),
        Column::new("size", ColumnKind::Int),
        Column::new("count", ColumnKind::Count),
    ]
}

/// Keys in the metadata of a table that assay writes.
pub(crate) mod note {
    /// Kind of the table, such as `dups` for an export.
    pub const WHAT: &str = "assay";
    /// Version of the table format.
    pub const VERSION: &str = "version";
    /// Name of the machine that wrote the table.
    pub const MACHINE: &str = "machine";
    /// Id of the machine, if the machine has an id; distinguishes machines with the same name.
    pub const ID: &str = "id";
    /// Name of the hash function.
    pub const HASH: &str = "hash";
    /// Id of the export that the file is part of.
    pub const EXPORT: &str = "export";
    /// Number of files that the export consists of.
    pub const FILES: &str = "files";
}

/// Version of all tables that this crate writes.
const VERSION: &str = "1";

/// Which machine wrote an export, and which export it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Teller {
    /// Name of the machine that wrote the export.
    pub machine: String,
    /// Id of the machine, if the machine has an id; distinguishes machines with the same name.
    pub id: Option<String>,
    /// Unique id of this export.
    pub export: String,
}
