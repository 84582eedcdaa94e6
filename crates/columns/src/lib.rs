//! Tables as Parquet files. Parquet is the open format in which assay exports data that is too large for one machine.
//!
//! Any Parquet reader can read the output of [`TableWriter`]. [`Reader`] also reads files of other writers that have
//! the expected columns, for example of DuckDB and pyarrow. It accepts less than other Parquet readers, because its
//! files come from other machines: no missing values, and only plain and dictionary encodings. It reads one page of
//! each column at a time.
//!
//! Without the feature `parquet`, opening and creating a table fails with [`Error::NotBuilt`].

#[cfg(feature = "parquet")]
mod chunks;
#[cfg(not(feature = "parquet"))]
mod not_built;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod read;
mod source;
#[cfg(feature = "parquet")]
mod strict;
#[cfg(feature = "parquet")]
mod write;

#[cfg(not(feature = "parquet"))]
pub use not_built::{Batch, Reader, TableWriter, Values};
#[cfg(feature = "parquet")]
pub use read::{Batch, Column as Values, Reader};
pub use source::TableSource;
#[cfg(feature = "parquet")]
pub use write::TableWriter;

/// Maximum length of a text in bytes, for example of a machine's name.
pub const LONGEST_TEXT: usize = 64 * 1024;

/// Type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8 text, written with a dictionary.
    Text,
    /// Byte strings of this fixed length.
    Fixed(usize),
    /// Byte strings of any length.
    Bytes,
    /// Signed 64-bit integer.
    Int,
    /// Signed 64-bit integer with few distinct values, written with a dictionary.
    Count,
    /// 64-bit IEEE 754 number.
    Float,
    /// Time in microseconds since 1970, UTC.
    Time,
    /// Boolean, which can only be written.
    Flag,
}

/// Name and type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column, which consists of lower-case letters, digits and underscores.
    pub name: &'static str,
    /// Type of the values.
    pub kind: ColumnKind,
    /// Whether a row may have no value in this column.
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

/// Checks that this build can read and write tables.
///
/// # Errors
/// [`Error::NotBuilt`] without the feature `parquet`.
pub fn check_built() -> Result<(), Error> {
    match cfg!(feature = "parquet") {
        true => Ok(()),
        false => Err(Error::NotBuilt),
    }
}

/// Value of one row in one column.
#[derive(Clone, Copy, Debug)]
pub enum CellValue<'a> {
    /// The row has no value in the column.
    None,
    /// Text, for a column of [`ColumnKind::Text`].
    Text(&'a str),
    /// Value of [`ColumnKind::Fixed`] or [`ColumnKind::Bytes`].
    Fixed(&'a [u8]),
    /// Value of [`ColumnKind::Int`], [`ColumnKind::Count`] and [`ColumnKind::Time`].
    Int(i64),
    /// Number, for a column of [`ColumnKind::Float`].
    Float(f64),
    /// Boolean, for a column of [`ColumnKind::Flag`].
    Flag(bool),
}

/// Error of a table, without the file name, which the caller adds.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file has another format, or is damaged. Contains a description.
    #[error("{0}")]
    Foreign(String),
    /// A row does not have the declared columns.
    #[error("a row does not fit the columns of the table")]
    Shape,
    /// The feature `parquet` is not part of this build.
    #[error(
        "this build of assay has no Parquet: use a package, or build it with \
         `cargo build --release --package assay --features parquet`"
    )]
    NotBuilt,
}

#[cfg(feature = "parquet")]
impl Error {
    fn foreign(what: impl Into<String>) -> Self {
        Self::Foreign(what.into())
    }

    /// Adds the name of the column to an error about a column that is not as expected.
    fn in_column(self, name: &str) -> Self {
        match self {
            Self::Foreign(what) => Self::Foreign(format!("its column `{name}`: {what}")),
            other => other,
        }
    }
}

#[cfg(feature = "parquet")]
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

#[cfg(all(test, feature = "parquet"))]
mod tests;
