//! Duplicates across machines, where one table of all files is too large: what each machine knows of its
//! contents as Parquet without any path ([`export`]), questions to all of them by one merge of sorted
//! files ([`ask`]), and how machines find out which contents are worth hashing at all: each offers samples
//! ([`offer`]), the hub says which of them another machine has ([`collide`]), and only those are hashed ([`wanted`]).
//!
//! Memory does not grow with the number of files anywhere here: what has to be sorted lies in runs in
//! files without a name ([`sort`]), and what is read is read a page at a time.

pub mod collide;
pub mod export;
pub mod export_queries;
mod export_rows;
mod machines;
pub mod offer;
mod publish;
pub mod requested_hashes;
mod sort;

pub use export_rows::count_rows;

use assay_columns::{Column, ColumnKind};

/// The columns of an export, of hashes that have so many bytes. In order of hash and size; a row for each content
/// that a machine has.
#[must_use]
pub const fn export_columns(hash: usize) -> [Column; 4] {
    [
        Column::new("machine", ColumnKind::Text),
        Column::new("hash", ColumnKind::Fixed(hash)),
        Column::new("size", ColumnKind::Int),
        Column::new("count", ColumnKind::Count),
    ]
}

/// What stands beside a table, by name.
pub(crate) mod note {
    /// Which of our tables it is.
    pub const WHAT: &str = "assay";
    /// Its version.
    pub const VERSION: &str = "version";
    /// The machine.
    pub const MACHINE: &str = "machine";
    /// Which machine of that name: its id, where it has one.
    pub const ID: &str = "id";
    /// Which hash.
    pub const HASH: &str = "hash";
    /// Which export it is part of.
    pub const EXPORT: &str = "export";
    /// How many files that export has.
    pub const FILES: &str = "files";
}

/// The version of all tables that are written here.
const VERSION: &str = "1";

/// Which machine something is told of, and which telling it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Teller {
    /// How the machine is called.
    pub machine: String,
    /// Its id, where it has one: two machines of one name are told apart by it.
    pub id: Option<String>,
    /// A name for this telling that no other has.
    pub export: String,
}
