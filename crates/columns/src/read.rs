//! Reads tables of [`crate::TableWriter`], one batch of rows at a time.

use crate::{Column as Described, ColumnKind, Error, TableSource, strict};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    Int64Type,
};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::Length as _;
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// Rows per batch.
const BATCH: usize = 1024;

/// Values of a column.
#[derive(Debug)]
pub enum Column {
    /// [`crate::ColumnKind::Text`], not checked for valid UTF-8.
    Text(Vec<ByteArray>),
    /// [`crate::ColumnKind::Fixed`].
    Fixed(Vec<FixedLenByteArray>),
    /// [`crate::ColumnKind::Int`], [`crate::ColumnKind::Count`] and [`crate::ColumnKind::Time`].
    Int(Vec<i64>),
    /// [`crate::ColumnKind::Float`].
    Float(Vec<f64>),
}

impl Column {
    fn of(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Text => Self::Text(Vec::new()),
            ColumnKind::Fixed(_) => Self::Fixed(Vec::new()),
            ColumnKind::Int | ColumnKind::Count | ColumnKind::Time => Self::Int(Vec::new()),
            ColumnKind::Float => Self::Float(Vec::new()),
            // Refused when a table is opened.
            ColumnKind::Flag => Self::Int(Vec::new()),
        }
    }

    /// Returns the number in a row; `None` if the column has another type or the row does not exist.
    #[must_use]
    pub fn int(&self, row: usize) -> Option<i64> {
        match self {
            Self::Int(values) => values.get(row).copied(),
            _ => None,
        }
    }

    /// Returns the bytes of a text or fixed value in a row; empty if there are none.
    #[must_use]
    pub fn bytes(&self, row: usize) -> &[u8] {
        match self {
            Self::Text(values) => values.get(row).map_or(&[], ByteArray::data),
            Self::Fixed(values) => values.get(row).map_or(&[], |value| value.data()),
            _ => &[],
        }
    }
}

/// A batch of rows, by column.
#[derive(Debug, Default)]
pub struct Batch {
    /// All columns of the table.
    pub columns: Vec<Column>,
    /// Number of rows.
    pub rows: usize,
}

/// A column of the current row group.
enum Reading {
    Text(ColumnReaderImpl<ByteArrayType>),
    Fixed(ColumnReaderImpl<FixedLenByteArrayType>),
    Int(ColumnReaderImpl<Int64Type>),
    Float(ColumnReaderImpl<DoubleType>),
}

/// Reads a table.
pub struct Reader {
    source: Arc<TableSource>,
    metadata: ParquetMetaData,
    kinds: Vec<ColumnKind>,
    /// Index of the next row group.
    next: usize,
    group: Vec<Reading>,
    /// Unread rows of the current group.
    left: usize,
}

impl Reader {
    /// Opens a table with these columns, none of which is optional.
    ///
    /// # Errors
    /// The file is another one, or cannot be read.
    pub fn open(source: TableSource, columns: &[Described]) -> Result<Self, Error> {
        strict::check_tail(&source)?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&source)?;
        strict::check_metadata(&metadata, columns, source.len())?;
        Ok(Self {
            source: Arc::new(source),
            metadata,
            kinds: columns.iter().map(|column| column.kind).collect(),
            next: 0,
            group: Vec::new(),
            left: 0,
        })
    }

    /// Returns a metadata entry of the table.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<&str> {
        let notes = self.metadata.file_metadata().key_value_metadata()?;
        let found = notes.iter().find(|note| note.key == name)?;
        found.value.as_deref()
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// Replaces the rows in `batch` by the next ones; an empty batch means the end.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn read(&mut self, batch: &mut Batch) -> Result<(), Error> {
        batch.rows = 0;
        if batch.columns.len() != self.kinds.len() {
            batch.columns = self.kinds.iter().copied().map(Column::of).collect();
        }
        while self.left == 0 {
            if self.next == self.metadata.num_row_groups() {
                return Ok(());
            }
            self.begin()?;
        }
        let wanted = self.left.min(BATCH);
        for (reading, column) in self.group.iter_mut().zip(&mut batch.columns) {
            let read = match (reading, column) {
                (Reading::Text(from), Column::Text(into)) => take(from, into, wanted)?,
                (Reading::Fixed(from), Column::Fixed(into)) => take(from, into, wanted)?,
                (Reading::Int(from), Column::Int(into)) => take(from, into, wanted)?,
                (Reading::Float(from), Column::Float(into)) => take(from, into, wanted)?,
                _ => return Err(Error::Shape),
            };
            if read != wanted {
                return Err(Error::foreign("a column has fewer values than it says"));
            }
        }
        self.left -= wanted;
        batch.rows = wanted;
        Ok(())
    }

    /// Starts the next row group.
    fn begin(&mut self) -> Result<(), Error> {
        let group = self.metadata.row_group(self.next);
        self.next += 1;
        self.left = usize::try_from(group.num_rows()).unwrap_or(0);
        let column = |at: usize| -> Result<Reading, Error> {
            let (chunk, kind) = (group.column(at), self.kinds[at]);
            let inner = SerializedPageReader::new(self.source.clone(), chunk, self.left, None)?;
            let pages = Box::new(strict::Pages::new(inner, chunk.num_values(), kind));
            let description = chunk.column_descr_ptr();
            Ok(match kind {
                ColumnKind::Text => Reading::Text(ColumnReaderImpl::new(description, pages)),
                ColumnKind::Fixed(_) => Reading::Fixed(ColumnReaderImpl::new(description, pages)),
                ColumnKind::Int | ColumnKind::Count | ColumnKind::Time => {
                    Reading::Int(ColumnReaderImpl::new(description, pages))
                }
                ColumnKind::Float => Reading::Float(ColumnReaderImpl::new(description, pages)),
                ColumnKind::Flag => return Err(Error::Shape),
            })
        };
        self.group = (0..self.kinds.len())
            .map(column)
            .collect::<Result<_, _>>()?;
        Ok(())
    }
}

fn take<T: DataType>(
    from: &mut ColumnReaderImpl<T>,
    into: &mut Vec<T::T>,
    wanted: usize,
) -> Result<usize, Error> {
    into.clear();
    Ok(from.read_records(wanted, None, None, into)?.1)
}
