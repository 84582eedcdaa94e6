//! Writes tables. Collects the rows by column and writes them in groups.

use crate::{CellValue, Column, ColumnKind, Error};
use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, TimeUnit, Type,
};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, Int64Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type as SchemaType, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// Number of rows per group. A group is in memory until it is written.
const GROUP: usize = 1 << 17;
/// Size of a page in bytes. A reader has one page of each column in memory, for each file that it merges.
const PAGE: usize = 32 * 1024;

/// Values of one column that are not written yet.
enum Gathered {
    Text(Vec<ByteArray>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>, usize),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Flag(Vec<bool>),
}

struct Part {
    values: Gathered,
    /// For each row, whether it has a value; `None` for a column that is not optional.
    present: Option<Vec<i16>>,
}

/// Writer of a table.
pub struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    parts: Vec<Part>,
    rows: usize,
}

impl<W: Write + Send> TableWriter<W> {
    /// Starts a table. `notes` contains names and values that are stored as metadata.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn new(out: W, columns: &[Column], notes: &[(&str, String)]) -> Result<Self, Error> {
        let notes = notes
            .iter()
            .map(|(name, value)| KeyValue::new((*name).to_owned(), value.clone()));
        let mut properties = WriterProperties::builder()
            // Hashes do not compress, and the other columns are small.
            .set_compression(Compression::UNCOMPRESSED)
            .set_encoding(Encoding::PLAIN)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_data_page_size_limit(PAGE)
            .set_max_row_group_row_count(Some(GROUP))
            .set_created_by("assay".to_owned())
            .set_key_value_metadata(Some(notes.collect()));
        for column in columns
            .iter()
            .filter(|one| matches!(one.kind, ColumnKind::Text | ColumnKind::Count))
        {
            properties =
                properties.set_column_dictionary_enabled(ColumnPath::from(column.name), true);
        }
        let parts = columns.iter().map(|column| Part {
            values: match column.kind {
                ColumnKind::Text => Gathered::Text(Vec::new()),
                ColumnKind::Bytes => Gathered::Bytes(Vec::new()),
                ColumnKind::Fixed(length) => Gathered::Fixed(Vec::new(), length),
                ColumnKind::Int | ColumnKind::Count | ColumnKind::Time => Gathered::Int(Vec::new()),
                ColumnKind::Float => Gathered::Float(Vec::new()),
                ColumnKind::Flag => Gathered::Flag(Vec::new()),
            },
            present: column.optional.then(Vec::new),
        });
        Ok(Self {
            parts: parts.collect(),
            rows: 0,
            file: SerializedFileWriter::new(
                out,
                build_schema(columns)?,
                Arc::new(properties.build()),
            )?,
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The row does not have the declared columns, or cannot be written.
    pub fn row(&mut self, cells: &[CellValue<'_>]) -> Result<(), Error> {
        if cells.len() != self.parts.len() {
            return Err(Error::Shape);
        }
        for (part, cell) in self.parts.iter_mut().zip(cells) {
            let there = !matches!(cell, CellValue::None);
            match &mut part.present {
                Some(present) => present.push(i16::from(there)),
                None if !there => return Err(Error::Shape),
                None => {}
            }
            match (&mut part.values, cell) {
                (_, CellValue::None) => {}
                (Gathered::Text(values), CellValue::Text(text)) => {
                    values.push(ByteArray::from(*text))
                }
                (Gathered::Bytes(values), CellValue::Fixed(bytes)) => {
                    values.push(ByteArray::from(bytes.to_vec()));
                }
                (Gathered::Fixed(values, length), CellValue::Fixed(bytes))
                    if bytes.len() == *length =>
                {
                    values.push(ByteArray::from(bytes.to_vec()).into());
                }
                (Gathered::Int(values), CellValue::Int(value)) => values.push(*value),
                (Gathered::Float(values), CellValue::Float(value)) => values.push(*value),
                (Gathered::Flag(values), CellValue::Flag(value)) => values.push(*value),
                _ => return Err(Error::Shape),
            }
        }
        self.rows += 1;
        if self.rows == GROUP {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let mut group = self.file.next_row_group()?;
        for part in &mut self.parts {
            let present = part.present.as_deref();
            match &mut part.values {
                Gathered::Text(values) | Gathered::Bytes(values) => {
                    put::<ByteArrayType, W>(&mut group, values, present)?
                }
                Gathered::Fixed(values, _) => {
                    put::<FixedLenByteArrayType, W>(&mut group, values, present)?;
                }
                Gathered::Int(values) => put::<Int64Type, W>(&mut group, values, present)?,
                Gathered::Float(values) => put::<DoubleType, W>(&mut group, values, present)?,
                Gathered::Flag(values) => put::<BoolType, W>(&mut group, values, present)?,
            }
            if let Some(present) = &mut part.present {
                present.clear();
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Ends the table and returns its output.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn finish(mut self) -> Result<W, Error> {
        if self.rows > 0 {
            self.flush()?;
        }
        Ok(self.file.into_inner()?)
    }
}

/// Writes the collected values of the next column and clears them.
fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<T::T>,
    present: Option<&[i16]>,
) -> Result<(), Error> {
    let mut column = group.next_column()?.ok_or(Error::Shape)?;
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()?;
    values.clear();
    Ok(())
}

/// Returns the Parquet schema of the columns.
pub(crate) fn build_schema(columns: &[Column]) -> Result<TypePtr, Error> {
    let one =
        |column: &Column| -> Result<TypePtr, Error> {
            let physical = match column.kind {
                ColumnKind::Text | ColumnKind::Bytes => Type::BYTE_ARRAY,
                ColumnKind::Fixed(_) => Type::FIXED_LEN_BYTE_ARRAY,
                ColumnKind::Int | ColumnKind::Count | ColumnKind::Time => Type::INT64,
                ColumnKind::Float => Type::DOUBLE,
                ColumnKind::Flag => Type::BOOLEAN,
            };
            let mut built = SchemaType::primitive_type_builder(column.name, physical)
                .with_repetition(match column.optional {
                    true => Repetition::OPTIONAL,
                    false => Repetition::REQUIRED,
                });
            built = match column.kind {
                ColumnKind::Text => built.with_converted_type(ConvertedType::UTF8),
                ColumnKind::Fixed(length) => {
                    built.with_length(i32::try_from(length).unwrap_or(i32::MAX))
                }
                ColumnKind::Time => {
                    built.with_logical_type(Some(LogicalType::timestamp(true, TimeUnit::MICROS)))
                }
                ColumnKind::Bytes
                | ColumnKind::Int
                | ColumnKind::Count
                | ColumnKind::Float
                | ColumnKind::Flag => built,
            };
            Ok(Arc::new(built.build()?))
        };
    let fields = columns.iter().map(one).collect::<Result<_, _>>()?;
    let group = SchemaType::group_type_builder("assay").with_fields(fields);
    Ok(Arc::new(group.build()?))
}
