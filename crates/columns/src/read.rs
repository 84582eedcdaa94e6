//! Reading back what [`crate::Writer`] wrote, a batch of rows at a time.

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

/// Rows read at once.
const BATCH: usize = 1024;

/// Values of a column.
#[derive(Debug)]
pub enum Column {
    /// [`Kind::Text`], not checked to be UTF-8.
    Text(Vec<ByteArray>),
    /// [`Kind::Fixed`].
    Fixed(Vec<FixedLenByteArray>),
    /// [`Kind::Int`], [`Kind::Count`] and [`Kind::Time`].
    Int(Vec<i64>),
    /// [`Kind::Float`].
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

    /// A number of a row; `None` where the column or the row is another.
    #[must_use]
    pub fn int(&self, row: usize) -> Option<i64> {
        match self {
            Self::Int(values) => values.get(row).copied(),
            _ => None,
        }
    }

    /// The bytes of a text or of fixed bytes in a row; empty where there are none.
    #[must_use]
    pub fn bytes(&self, row: usize) -> &[u8] {
        match self {
            Self::Text(values) => values.get(row).map_or(&[], ByteArray::data),
            Self::Fixed(values) => values.get(row).map_or(&[], |value| value.data()),
            _ => &[],
        }
    }
}

/// Rows, by column.
#[derive(Debug, Default)]
pub struct Batch {
    /// As many as the table has.
    pub columns: Vec<Column>,
    /// How many rows there are.
    pub rows: usize,
}

/// A column of the group that is being read.
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
    /// The group after the one that is being read.
    next: usize,
    group: Vec<Reading>,
    /// Rows of this group that are still to be read.
    left: usize,
}

impl Reader {
    /// Opens a table of these columns, none of which is optional.
    ///
    /// # Errors
    /// When it is another file, or cannot be read.
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

    /// A note that was kept beside the table.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<&str> {
        let notes = self.metadata.file_metadata().key_value_metadata()?;
        let found = notes.iter().find(|note| note.key == name)?;
        found.value.as_deref()
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// Reads the next rows in place of those in `batch`; none are left when there are none in it.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read.
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

    /// Begins the next group.
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
