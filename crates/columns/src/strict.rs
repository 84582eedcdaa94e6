//! Checks files before the Parquet library reads them: it trusts counts and offsets so much that it panics or
//! allocates too much memory.

use crate::{Column, ColumnKind, Error, LONGEST_TEXT, TableSource};
use parquet::basic::{Compression, Encoding, Repetition, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader as _, Length as _};

/// Maximum bytes of the metadata at the end of a file; a group of 100,000 rows needs 500 bytes.
const METADATA: u64 = 32 << 20;
/// Maximum bytes of a page.
const PAGE: usize = 16 << 20;
/// Maximum rows of a group.
const GROUP: i64 = 1 << 24;

/// Checks the end of a file: that it is Parquet, and the length of the metadata.
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

/// Describes the first difference between a file's columns and the expected ones.
fn difference(metadata: &ParquetMetaData, expected: &[Column]) -> Option<String> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let found: Vec<String> = columns.iter().map(|one| one.path().string()).collect();
    let wanted: Vec<&str> = expected.iter().map(|column| column.name).collect();
    if found != wanted {
        let found: Vec<String> = found
            .iter()
            .map(|name| name.escape_debug().to_string())
            .collect();
        return Some(format!(
            "it has other columns than expected: {} instead of {}",
            match found.is_empty() {
                true => "none".to_owned(),
                false => shorten(&found.join(", ")),
            },
            wanted.join(", ")
        ));
    }
    columns.iter().zip(expected).find_map(|(found, wanted)| {
        let (physical, width) = match wanted.kind {
            ColumnKind::Text => (Type::BYTE_ARRAY, None),
            ColumnKind::Fixed(width) => (Type::FIXED_LEN_BYTE_ARRAY, Some(width)),
            ColumnKind::Int | ColumnKind::Count | ColumnKind::Time => (Type::INT64, None),
            ColumnKind::Float => (Type::DOUBLE, None),
            ColumnKind::Flag => (Type::BOOLEAN, None),
        };
        let typed = |kind: Type, width: Option<usize>| match width {
            Some(width) => format!("{kind}({width})"),
            None => kind.to_string(),
        };
        let has = match found.physical_type() {
            Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(found.type_length()).ok(),
            _ => None,
        };
        if found.physical_type() != physical || has != width {
            return Some(format!(
                "its column `{}` is {}, expected {}",
                wanted.name,
                typed(found.physical_type(), has),
                typed(physical, width)
            ));
        }
        let is_plain = found.max_def_level() == 0
            && found.max_rep_level() == 0
            && found.self_type().get_basic_info().repetition() == Repetition::REQUIRED;
        if !is_plain || wanted.optional {
            return Some(format!(
                "its column `{}` may have rows without a value; expected REQUIRED",
                wanted.name
            ));
        }
        None
    })
}

/// Shortens a list of names that may be very long.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Checks that a file has the expected columns and refers only to its own bytes.
pub fn check_metadata(
    metadata: &ParquetMetaData,
    expected: &[Column],
    length: u64,
) -> std::result::Result<(), Error> {
    if let Some(difference) = difference(metadata, expected) {
        return Err(Error::foreign(difference));
    }
    let mut rows = 0_i64;
    for group in metadata.row_groups() {
        let count = group.num_rows();
        if !(0..=GROUP).contains(&count) || group.num_columns() != expected.len() {
            return Err(Error::foreign(
                "a group of rows is larger than any of assay's",
            ));
        }
        rows = rows.saturating_add(count);
        for column in group.columns() {
            check_chunk(column, count, length)?;
        }
    }
    match rows == metadata.file_metadata().num_rows() {
        true => Ok(()),
        false => Err(Error::foreign("its groups have other rows than it says")),
    }
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
    if column.compression() != Compression::UNCOMPRESSED {
        return Err(Error::foreign(format!(
            "it is compressed with {}, which no table of assay is; write it without compression",
            column.compression()
        )));
    }
    let within = end.is_some_and(|end| end <= length) && column.data_page_offset() >= start;
    match within && column.num_values() == rows && column.file_path().is_none() {
        true => Ok(()),
        false => Err(Error::foreign("a column lies outside the file")),
    }
}

/// Pages of a column, checked before decoding.
pub struct Pages<P> {
    inner: P,
    dictionary: bool,
    begun: bool,
    /// Number of remaining values.
    left: i64,
    kind: ColumnKind,
}

impl<P: PageReader> Pages<P> {
    /// Creates the pages of a column with the declared number of values.
    pub fn new(inner: P, values: i64, kind: ColumnKind) -> Self {
        Self {
            inner,
            dictionary: false,
            begun: false,
            left: values,
            kind,
        }
    }

    fn look(&mut self, page: &Page) -> Result<()> {
        let wrong = |what: &str| Err(ParquetError::General(what.to_owned()));
        let values = page.num_values() as usize;
        // Minimum bytes of an encoded value.
        let least = match self.kind {
            ColumnKind::Text => 4,
            ColumnKind::Fixed(width) => width.max(1),
            ColumnKind::Int
            | ColumnKind::Count
            | ColumnKind::Time
            | ColumnKind::Float
            | ColumnKind::Flag => 8,
        };
        let fits = |bytes: usize| {
            values
                .checked_mul(least)
                .is_some_and(|least| least <= bytes)
        };
        if page.buffer().len() > PAGE {
            return wrong("a page is larger than any of assay's");
        }
        match page {
            Page::DictionaryPage { buf, encoding, .. } => {
                let plain = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
                let has_one = matches!(self.kind, ColumnKind::Text | ColumnKind::Count);
                if self.begun || !has_one || !plain || !fits(buf.len()) {
                    return wrong("a dictionary is damaged");
                }
                if self.kind == ColumnKind::Text {
                    texts(buf, values)?;
                }
                self.dictionary = true;
            }
            Page::DataPage { buf, encoding, .. } => {
                let known = match encoding {
                    Encoding::PLAIN => {
                        if fits(buf.len()) && self.kind == ColumnKind::Text {
                            texts(buf, values)?;
                        }
                        fits(buf.len())
                    }
                    Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                        // The first byte is the width of an index, at most 32 bits.
                        self.dictionary && buf.first().is_some_and(|width| *width <= 32)
                    }
                    _ => false,
                };
                if !known {
                    return wrong("a page is written in a way in which assay writes none");
                }
                self.left -= values as i64;
                if self.left < 0 {
                    return wrong("a column has more values than it says");
                }
            }
            Page::DataPageV2 { .. } => return wrong("a page of a kind that assay does not write"),
        }
        self.begun = true;
        Ok(())
    }
}

/// Checks plain encoded texts.
fn texts(mut bytes: &[u8], count: usize) -> Result<()> {
    for _ in 0..count {
        let rest = bytes.split_first_chunk::<4>().and_then(|(length, rest)| {
            let length = u32::from_le_bytes(*length) as usize;
            rest.get(length..).filter(|_| length <= LONGEST_TEXT)
        });
        bytes = rest.ok_or_else(|| ParquetError::General("a text is damaged".into()))?;
    }
    Ok(())
}

impl<P: PageReader> Iterator for Pages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for Pages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            self.look(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}
