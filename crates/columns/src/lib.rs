//! Tables as Parquet files, the open format in which assay exports data that is too large for one machine.
//!
//! Any Parquet reader can read the output of [`TableWriter`]. [`Reader`] also reads files of other writers with
//! the expected columns, for example of DuckDB and pyarrow. It accepts less than other readers, because its files
//! come from other machines: no missing values, and only plain and dictionary encodings. It reads one page of each
//! column at a time.

mod pages;
mod read;
mod source;
mod strict;
mod write;

pub use read::{Batch, Column as Values, Reader};
pub use source::TableSource;
pub use write::{CellValue, TableWriter};

/// Maximum bytes of a text, for example of a machine's name.
pub const LONGEST_TEXT: usize = 64 * 1024;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8 text, written with a dictionary.
    Text,
    /// This number of bytes.
    Fixed(usize),
    /// Any number of bytes.
    Bytes,
    /// Signed 64-bit integer.
    Int,
    /// Signed 64-bit integer with few distinct values, written with a dictionary.
    Count,
    /// 64-bit IEEE 754 number.
    Float,
    /// Microseconds since 1970, UTC.
    Time,
    /// Boolean; only for writing.
    Flag,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name: lower-case letters, digits and underscores.
    pub name: &'static str,
    /// Type.
    pub kind: ColumnKind,
    /// A row may have no value in the column.
    pub optional: bool,
}

impl Column {
    /// Creates a column in which every row has a value.
    #[must_use]
    pub const fn new(name: &'static str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            optional: false,
        }
    }

    /// Creates a column in which rows may have no value.
    #[must_use]
    pub const fn optional(name: &'static str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            optional: true,
        }
    }
}

/// Errors of a table; the caller adds the file name.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file has another format, or is damaged.
    #[error("{0}")]
    Foreign(String),
    /// A row does not match the declared columns.
    #[error("a row does not fit the columns of the table")]
    Shape,
}

impl Error {
    fn foreign(what: impl Into<String>) -> Self {
        Self::Foreign(what.into())
    }

    /// Adds the name of the column to a difference.
    fn in_column(self, name: &str) -> Self {
        match self {
            Self::Foreign(what) => Self::Foreign(format!("its column `{name}`: {what}")),
            other => other,
        }
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
            P::General(what) => Self::Foreign(what),
            other => Self::Foreign(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
