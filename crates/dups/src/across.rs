//! Finds duplicates across machines whose files do not fit into one table. Each machine exports its contents as Parquet
//! without paths ([`export`]); [`ask`] answers questions about all machines with one merge of the sorted files.
//!
//! Before the export, the machines determine which contents to hash: each machine offers samples ([`offer`]), one
//! machine, the hub, finds samples that several machines have ([`collide`]), and only these contents are hashed
//! ([`wanted`]).
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

/// Keys of a table's metadata.
pub(crate) mod note {
    /// Kind of the table.
    pub const WHAT: &str = "assay";
    /// Version of the format.
    pub const VERSION: &str = "version";
    /// Name of the machine.
    pub const MACHINE: &str = "machine";
    /// Id of the machine, if it has one; distinguishes machines with the same name.
    pub const ID: &str = "id";
    /// Kind of the hash.
    pub const HASH: &str = "hash";
    /// Id of the export to which the file belongs.
    pub const EXPORT: &str = "export";
    /// Number of files in that export.
    pub const FILES: &str = "files";
}

/// Version of all tables that this crate writes.
const VERSION: &str = "1";

/// Machine of an export, and id of the export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Teller {
    /// Name of the machine.
    pub machine: String,
    /// Id of the machine, if it has one; distinguishes machines with the same name.
    pub id: Option<String>,
    /// Unique id of this export.
    pub export: String,
}
