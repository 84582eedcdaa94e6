//! Reads tables from [`crate::TableWriter`] and from other writers, one batch of rows at a time.

use crate::pages::{Pages, Stored};
use crate::strict::{self, Leaf};
use crate::{Column as Described, ColumnKind, Error, TableSource};
use parquet::basic::{Compression, Type};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    Int32Type, Int64Type,
};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::Length as _;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type as SchemaType};
use std::sync::Arc;

/// Maximum number of rows in a batch.
const BATCH: usize = 1024;

/// Values of a column in a batch.
#[derive(Debug)]
pub enum Column {
    /// Values of [`crate::ColumnKind::Text`], not checked for valid UTF-8, or of [`crate::ColumnKind::Bytes`].
    Text(Vec<ByteArray>),
    /// Values of [`crate::ColumnKind::Fixed`].
    Fixed(Vec<FixedLenByteArray>),
    /// Values of [`crate::ColumnKind::Int`], [`crate::ColumnKind::Count`] or [`crate::ColumnKind::Time`].
    Int(Vec<i64>),
    /// Values of [`crate::ColumnKind::Float`].
    Float(Vec<f64>),
}

impl Column {
    fn of(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Text | ColumnKind::Bytes => Self::Text(Vec::new()),
            ColumnKind::Fixed(_) => Self::Fixed(Vec::new()),
            ColumnKind::Int | ColumnKind::Count | ColumnKind::Time => Self::Int(Vec::new()),
            ColumnKind::Float => Self::Float(Vec::new()),
            // Refused when a table is opened.
            ColumnKind::Flag => Self::Int(Vec::new()),
        }
    }

    /// Returns the number in a row. Returns `None` if the column does not contain numbers, or if the row does not
    /// exist.
    #[must_use]
    pub fn int(&self, row: usize) -> Option<i64> {
        match self {
            Self::Int(values) => values.get(row).copied(),
            _ => None,
        }
    }

    /// Returns the bytes of a text or fixed value in a row; empty if the row has none.
    #[must_use]
    pub fn bytes(&self, row: usize) -> &[u8] {
        match self {
            Self::Text(values) => values.get(row).map_or(&[], ByteArray::data),
            Self::Fixed(values) => values.get(row).map_or(&[], |value| value.data()),
            _ => &[],
        }
    }
}

/// Several rows of a table, stored by column.
#[derive(Debug, Default)]
pub struct Batch {
    /// Values of each column of the table.
    pub columns: Vec<Column>,
    /// Number of rows in the batch.
    pub rows: usize,
}

/// State of reading a column of the current row group.
enum Reading {
    Text(ColumnReaderImpl<ByteArrayType>),
    Fixed(ColumnReaderImpl<FixedLenByteArrayType>),
    Int(ColumnReaderImpl<Int64Type>),
    Narrow(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Float(ColumnReaderImpl<DoubleType>),
}

/// Reader of a table.
pub struct Reader {
    source: Arc<TableSource>,
    metadata: ParquetMetaData,
    /// Expected columns, each with its position in the file.
    columns: Vec<(Described, Leaf)>,
    /// Index of the next row group.
    next: usize,
    group: Vec<Reading>,
    /// Number of rows of the current group that have not been read.
    left: usize,
}

impl Reader {
    /// Opens a table with these columns, none of which may be optional. Skips other columns of the file.
    ///
    /// # Errors
    /// The file does not have these columns, or cannot be read.
    pub fn open(source: TableSource, columns: &[Described]) -> Result<Self, Error> {
        strict::check_tail(&source)?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&source)?;
        let leaves = strict::find_columns(&metadata, columns)?;
        strict::check_groups(&metadata, &leaves, source.len())?;
        Ok(Self {
            source: Arc::new(source),
            metadata,
            columns: columns.iter().copied().zip(leaves).collect(),
            next: 0,
            group: Vec::new(),
            left: 0,
        })
    }

    /// Returns the metadata of the table with this name; `None` if there is none.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<&str> {
        let notes = self.metadata.file_metadata().key_value_metadata()?;
        let found = notes.iter().find(|note| note.key == name)?;
        found.value.as_deref()
    }

    /// Returns the number of rows in the table.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// Replaces the content of `batch` by the next rows. An empty batch means the end of the table.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn read(&mut self, batch: &mut Batch) -> Result<(), Error> {
        batch.rows = 0;
        if batch.columns.len() != self.columns.len() {
            let of = |(column, _): &(Described, Leaf)| Column::of(column.kind);
            batch.columns = self.columns.iter().map(of).collect();
        }
        while self.left == 0 {
            if self.next == self.metadata.num_row_groups() {
                return Ok(());
            }
            self.begin()?;
        }
        let wanted = self.left.min(BATCH);
        let columns = self.group.iter_mut().zip(&mut batch.columns);
        for ((reading, column), (described, _)) in columns.zip(&self.columns) {
            let read = match (reading, column) {
                (Reading::Text(from), Column::Text(into)) => take(from, into, wanted),
                (Reading::Fixed(from), Column::Fixed(into)) => take(from, into, wanted),
                (Reading::Int(from), Column::Int(into)) => take(from, into, wanted),
                (Reading::Float(from), Column::Float(into)) => take(from, into, wanted),
                (Reading::Narrow(from, narrow), Column::Int(into)) => {
                    let read = take(from, narrow, wanted);
                    into.clear();
                    into.extend(narrow.iter().copied().map(i64::from));
                    read
                }
                _ => return Err(Error::Shape),
            };
            let read = read.map_err(|error| error.in_column(described.name))?;
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
        if self.left == 0 {
            return Ok(());
        }
        let column = |(column, leaf): &(Described, Leaf)| -> Result<Reading, Error> {
            let (kind, chunk) = (column.kind, group.column(leaf.at));
            let stored = Stored {
                kind,
                physical: leaf.physical,
                optional: leaf.optional,
                compression: chunk.compression(),
            };
            // The pages decompress themselves, within bounds.
            let raw = chunk.clone().into_builder();
            let raw = raw.set_compression(Compression::UNCOMPRESSED).build()?;
            let inner = SerializedPageReader::new(self.source.clone(), &raw, self.left, None)?;
            let pages = Box::new(Pages::new(inner, chunk.num_values(), stored));
            let description = describe_without_marks(chunk.column_descr())?;
            Ok(match (leaf.physical, kind) {
                (_, ColumnKind::Flag) => return Err(Error::Shape),
                (Type::BYTE_ARRAY, _) => Reading::Text(ColumnReaderImpl::new(description, pages)),
                (Type::FIXED_LEN_BYTE_ARRAY, _) => {
                    Reading::Fixed(ColumnReaderImpl::new(description, pages))
                }
                (Type::INT64, _) => Reading::Int(ColumnReaderImpl::new(description, pages)),
                (Type::INT32, _) => {
                    Reading::Narrow(ColumnReaderImpl::new(description, pages), Vec::new())
                }
                (Type::DOUBLE, _) => Reading::Float(ColumnReaderImpl::new(description, pages)),
                _ => return Err(Error::Shape),
            })
        };
        self.group = self.columns.iter().map(column).collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// Returns the descriptor of a column as if it had no definition levels, because [`Pages`] removes the levels.
fn describe_without_marks(column: &ColumnDescriptor) -> Result<Arc<ColumnDescriptor>, Error> {
    let length = match column.physical_type() {
        Type::FIXED_LEN_BYTE_ARRAY => column.type_length(),
        _ => -1,
    };
    let plain = SchemaType::primitive_type_builder(column.name(), column.physical_type())
        .with_length(length)
        .build()?;
    let path = ColumnPath::new(vec![column.name().to_owned()]);
    Ok(Arc::new(ColumnDescriptor::new(Arc::new(plain), 0, 0, path)))
}

fn take<T: DataType>(
    from: &mut ColumnReaderImpl<T>,
    into: &mut Vec<T::T>,
    wanted: usize,
) -> Result<usize, Error> {
    into.clear();
    Ok(from.read_records(wanted, None, None, into)?.1)
}
