//! Tables as Parquet files: the open form in which assay hands out what one machine has outgrown.
//!
//! Anything that reads Parquet reads what [`Writer`] writes. [`Reader`] reads much less: only files of
//! the very columns that are expected, without compression, and no more of a file at once than a page of each
//! column, because such files come from other machines.

mod read;
mod source;
mod strict;
mod write;

pub use read::{Batch, Column as Values, Reader};
pub use source::TableSource;
pub use write::{CellValue, TableWriter};

/// Most bytes of a text, and so of a machine's name.
pub const LONGEST_TEXT: usize = 64 * 1024;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text, UTF-8; written with a dictionary.
    Text,
    /// So many bytes.
    Fixed(usize),
    /// 64 bits with a sign.
    Int,
    /// The same, where few numbers come again and again; written with a dictionary.
    Count,
    /// 64 bits, IEEE 754.
    Float,
    /// Microseconds since 1970, UTC.
    Time,
    /// Yes or no; written only.
    Flag,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: lower-case letters, digits and underscores.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether a row may have nothing there.
    pub optional: bool,
}

impl Column {
    /// A column in which every row has something.
    #[must_use]
    pub const fn new(name: &'static str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            optional: false,
        }
    }

    /// A column in which a row may have nothing.
    #[must_use]
    pub const fn optional(name: &'static str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            optional: true,
        }
    }
}

/// What is wrong with a table; the caller says which file it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is none of ours, or damaged.
    #[error("{0}")]
    Foreign(String),
    /// A row does not fit the columns that were announced.
    #[error("a row does not fit the columns of the table")]
    Shape,
}

impl Error {
    fn foreign(what: impl Into<String>) -> Self {
        Self::Foreign(what.into())
    }
}

impl From<parquet::errors::ParquetError> for Error {
    fn from(error: parquet::errors::ParquetError) -> Self {
        use parquet::errors::ParquetError as P;
        match error {
            P::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(io) => Self::Io(*io),
                Err(other) => Self::Foreign(other.to_string()),
            },
            other => Self::Foreign(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
