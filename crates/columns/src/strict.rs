//! Checks files before the Parquet library reads them. The library trusts counts and offsets. Therefore a damaged file
//! could make it panic or allocate too much memory.

use crate::pages::can_decompress;
use crate::{Column, ColumnKind, Error, TableSource};
use parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader as _, Length as _};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

/// Maximum size of the metadata at the end of a file, in bytes. For comparison: a group of 100,000 rows needs 500
/// bytes.
const METADATA: u64 = 32 << 20;
/// Maximum number of rows in a row group.
const GROUP: i64 = 1 << 24;

/// Checks the end of a file: whether the file is Parquet, and how long the metadata is.
pub fn check_tail(source: &TableSource) -> std::result::Result<(), Error> {
    let length = source.len();
    let none = || Error::foreign("this is no Parquet file, or its end is missing");
    if length < 12 {
        return Err(none());
    }
    let tail = source.get_bytes(length - 8, 8)?;
    let (size, magic) = tail.split_at(4);
    let size = u64::from(u32::from_le_bytes(size.try_into().map_err(|_| none())?));
    if magic != b"PAR1" || size > length - 12 {
        return Err(none());
    }
    match size <= METADATA {
        true => Ok(()),
        false => Err(Error::foreign(format!(
            "its description takes {size} bytes, more than any table of assay"
        ))),
    }
}

/// Position and type of an expected column in a file.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Number of the column in the file.
    pub at: usize,
    /// Type of the stored values in the file.
    pub physical: Type,
    /// Whether the pages have definition levels, which mark rows without a value.
    pub optional: bool,
}

/// Finds the expected columns in a file by their names. Other columns and the order of columns do not matter.
///
/// # Errors
/// The first column that is not as expected.
pub fn find_columns(
    metadata: &ParquetMetaData,
    expected: &[Column],
) -> std::result::Result<Vec<Leaf>, Error> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let find = |wanted: &Column| {
        let named = |one: &ColumnDescPtr| one.path().parts() == [wanted.name];
        let mut found = columns.iter().enumerate().filter(|(_, one)| named(one));
        match (found.next(), found.next()) {
            (Some((at, one)), None) => check_column(one, wanted).map(|()| Leaf {
                at,
                physical: one.physical_type(),
                optional: one.max_def_level() > 0,
            }),
            (Some(_), Some(_)) => Err(format!("it has two columns `{}`", wanted.name)),
            (None, _) => {
                let names = columns.iter().map(|one| one.path().string());
                let names: Vec<String> = names.map(|one| one.escape_debug().to_string()).collect();
                let wanted: Vec<&str> = expected.iter().map(|column| column.name).collect();
                Err(format!(
                    "it has other columns than expected: {} instead of {}",
                    match names.is_empty() {
                        true => "none".to_owned(),
                        false => shorten(&names.join(", ")),
                    },
                    wanted.join(", ")
                ))
            }
        }
    };
    let found = expected.iter().map(find).collect::<Result<_, _>>();
    found.map_err(Error::foreign)
}

/// Checks the type of a column. The error describes the difference.
fn check_column(found: &ColumnDescriptor, wanted: &Column) -> Result<(), String> {
    let differs = |has: String, expected: &str| {
        Err(format!(
            "its column `{}` is {has}, expected {expected}",
            wanted.name
        ))
    };
    if found.max_rep_level() > 0 || found.max_def_level() > 1 {
        return differs("a list or a group".to_owned(), "one value in each row");
    }
    let (physical, converted) = (found.physical_type(), found.converted_type());
    let annotated = match (found.logical_type_ref(), converted) {
        (None, ConvertedType::NONE) => None,
        (Some(logical), ConvertedType::NONE) => {
            let text = format!("{logical:?}");
            Some(text.split(['(', ' ']).next().unwrap_or_default().to_owned())
        }
        (_, converted) => Some(converted.to_string()),
    };
    let is_integer = matches!(found.logical_type_ref(), Some(LogicalType::Integer(..)))
        || matches!(
            converted,
            ConvertedType::INT_64
                | ConvertedType::UINT_64
                | ConvertedType::INT_32
                | ConvertedType::UINT_32
                | ConvertedType::INT_16
                | ConvertedType::UINT_16
                | ConvertedType::INT_8
                | ConvertedType::UINT_8
        );
    let is_time = match found.logical_type_ref() {
        Some(LogicalType::Timestamp(time)) => time.unit == TimeUnit::MICROS,
        Some(_) => false,
        None => converted == ConvertedType::TIMESTAMP_MICROS,
    };
    let is_text =
        converted == ConvertedType::UTF8 || found.logical_type_ref() == Some(&LogicalType::String);
    let plain = annotated.is_none();
    let (fits, expected) = match wanted.kind {
        ColumnKind::Text => (
            physical == Type::BYTE_ARRAY && (plain || is_text),
            "BYTE_ARRAY (String)".to_owned(),
        ),
        ColumnKind::Fixed(width) => {
            let fixed = physical == Type::FIXED_LEN_BYTE_ARRAY
                && usize::try_from(found.type_length()) == Ok(width);
            (plain && fixed, format!("FIXED_LEN_BYTE_ARRAY({width})"))
        }
        ColumnKind::Bytes => (
            plain && physical == Type::BYTE_ARRAY,
            "BYTE_ARRAY".to_owned(),
        ),
        ColumnKind::Int | ColumnKind::Count => (
            matches!(physical, Type::INT64 | Type::INT32) && (plain || is_integer),
            "INT64".to_owned(),
        ),
        ColumnKind::Time => (
            physical == Type::INT64 && (plain || is_time),
            "INT64 (TIMESTAMP, microseconds)".to_owned(),
        ),
        ColumnKind::Float => (physical == Type::DOUBLE, "DOUBLE".to_owned()),
        ColumnKind::Flag => (physical == Type::BOOLEAN, "BOOLEAN".to_owned()),
    };
    if fits && !wanted.optional {
        return Ok(());
    }
    let mut has = match physical {
        Type::FIXED_LEN_BYTE_ARRAY => format!("{physical}({})", found.type_length()),
        _ => physical.to_string(),
    };
    if let Some(annotated) = annotated {
        has = format!("{has} ({annotated})");
    }
    differs(has, &expected)
}

/// Shortens a list of names, which may be very long.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Checks that a file refers only to its own bytes. `leaves` contains the columns that are read.
pub fn check_groups(
    metadata: &ParquetMetaData,
    leaves: &[Leaf],
    length: u64,
) -> std::result::Result<(), Error> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let mut rows = 0_i64;
    for group in metadata.row_groups() {
        let count = group.num_rows();
        if !(0..=GROUP).contains(&count) || group.num_columns() != columns {
            return Err(Error::foreign(
                "a group of rows is larger than any of assay's",
            ));
        }
        rows = rows.saturating_add(count);
        // pyarrow writes a group without rows for an empty table, and its columns have no place in the file.
        for leaf in leaves.iter().filter(|_| count > 0) {
            check_chunk(group.column(leaf.at), count, length)?;
        }
    }
    match rows == metadata.file_metadata().num_rows() {
        true => Ok(()),
        false => Err(Error::foreign("its groups have other rows than it says")),
    }
}

/// Returns the name of a compression without its level.
fn name_compression(compression: Compression) -> String {
    let text = compression.to_string();
    text.split('(').next().unwrap_or_default().to_owned()
}

fn check_chunk(
    column: &ColumnChunkMetaData,
    rows: i64,
    length: u64,
) -> std::result::Result<(), Error> {
    let start = column
        .dictionary_page_offset()
        .unwrap_or_else(|| column.data_page_offset());
    let end = u64::try_from(start)
        .ok()
        .zip(u64::try_from(column.compressed_size()).ok())
        .and_then(|(start, size)| start.checked_add(size));
    if !can_decompress(column.compression()) {
        return Err(Error::foreign(format!(
            "it is compressed with {}; write it with Snappy, Zstandard or without compression",
            name_compression(column.compression())
        )));
    }
    let within = end.is_some_and(|end| end <= length) && column.data_page_offset() >= start;
    match within && column.num_values() == rows && column.file_path().is_none() {
        true => Ok(()),
        false => Err(Error::foreign("a column lies outside the file")),
    }
}
