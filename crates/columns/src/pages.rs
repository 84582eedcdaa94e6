//! Reads and checks the pages of a column. Converts pages of other writers to the form that assay writes, which is
//! uncompressed and without definition levels (marks of missing values). [`crate::strict`] checks the metadata.

use crate::{ColumnKind, LONGEST_TEXT};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use std::io::Read as _;

/// Maximum size of a page in bytes.
const PAGE: usize = 16 << 20;

/// How a column is stored in a file.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// Type of values that the caller expects.
    pub kind: ColumnKind,
    /// Type of the stored values in the file.
    pub physical: Type,
    /// Whether the pages have definition levels, which mark rows without a value.
    pub optional: bool,
    /// Compression of the pages in the file.
    pub compression: Compression,
}

/// Returns whether [`Pages`] can read pages with this compression.
pub fn can_decompress(compression: Compression) -> bool {
    matches!(
        compression,
        Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_)
    )
}

/// Pages of a column, which are checked and decompressed before the library decodes them. The library must not
/// decompress them again.
pub struct Pages<P> {
    inner: P,
    dictionary: bool,
    begun: bool,
    /// Number of values that have not been read.
    left: i64,
    stored: Stored,
}

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(ParquetError::General(what.into()))
}

impl<P: PageReader> Pages<P> {
    /// Creates the pages of a column. `values` is the declared number of values.
    pub fn new(inner: P, values: i64, stored: Stored) -> Self {
        Self {
            inner,
            dictionary: false,
            begun: false,
            left: values,
            stored,
        }
    }

    /// Checks a page, decompresses it, and removes its definition levels.
    fn convert(&mut self, page: Page) -> Result<Page> {
        let page = match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                is_sorted,
            } => {
                let buf = self.decompress(buf)?;
                self.check_dictionary(&buf, num_values, encoding)?;
                Page::DictionaryPage {
                    buf,
                    num_values,
                    encoding,
                    is_sorted,
                }
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => {
                let mut buf = self.decompress(buf)?;
                if self.stored.optional {
                    if def_level_encoding != Encoding::RLE {
                        return wrong(format!("it marks missing values as {def_level_encoding}"));
                    }
                    let marks = buf.split_first_chunk::<4>().and_then(|(length, rest)| {
                        rest.get(..u32::from_le_bytes(*length) as usize)
                    });
                    let Some(marks) = marks else {
                        return wrong("a page is damaged");
                    };
                    check_all_present(marks, num_values as usize)?;
                    let length = 4 + marks.len();
                    buf = buf.slice(length..);
                }
                self.check_values(&buf, num_values, encoding)?;
                Page::DataPage {
                    buf,
                    num_values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding,
                    statistics,
                }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
                ..
            } => {
                if num_nulls > 0 {
                    return wrong(WITHOUT);
                }
                let start = u64::from(def_levels_byte_len) + u64::from(rep_levels_byte_len);
                let Some(start) = usize::try_from(start).ok().filter(|at| *at <= buf.len()) else {
                    return wrong("a page is damaged");
                };
                let values = buf.slice(start..);
                let buf = match is_compressed {
                    true => self.decompress(values)?,
                    false => values,
                };
                self.check_values(&buf, num_values, encoding)?;
                Page::DataPage {
                    buf,
                    num_values,
                    encoding,
                    def_level_encoding: Encoding::RLE,
                    rep_level_encoding: Encoding::RLE,
                    statistics,
                }
            }
        };
        self.begun = true;
        Ok(page)
    }

    /// Decompresses a part of a page. The result has at most [`PAGE`] bytes.
    fn decompress(&self, bytes: Bytes) -> Result<Bytes> {
        let too_large = || wrong("a page is larger than any of assay's");
        if bytes.len() > PAGE {
            return too_large();
        }
        if bytes.is_empty() {
            return Ok(bytes);
        }
        let damaged = |error: String| ParquetError::General(format!("a page is damaged: {error}"));
        match self.stored.compression {
            Compression::UNCOMPRESSED => Ok(bytes),
            Compression::SNAPPY => {
                let length = snap::raw::decompress_len(&bytes);
                if length.map_err(|error| damaged(error.to_string()))? > PAGE {
                    return too_large();
                }
                let done = snap::raw::Decoder::new().decompress_vec(&bytes);
                Ok(done.map_err(|error| damaged(error.to_string()))?.into())
            }
            Compression::ZSTD(_) => {
                let mut done = Vec::new();
                let decoder = zstd::stream::read::Decoder::new(&bytes[..]);
                decoder
                    .and_then(|decoder| decoder.take(PAGE as u64 + 1).read_to_end(&mut done))
                    .map_err(|error| damaged(error.to_string()))?;
                match done.len() > PAGE {
                    true => too_large(),
                    false => Ok(done.into()),
                }
            }
            other => wrong(format!("it is compressed with {other}")),
        }
    }

    /// Returns whether this number of values in plain encoding can fit into a buffer.
    fn fits(&self, values: u32, bytes: &Bytes) -> bool {
        // Minimum bytes of a value.
        let least = match (self.stored.physical, self.stored.kind) {
            (Type::BYTE_ARRAY | Type::INT32, _) => 4,
            (_, ColumnKind::Fixed(width)) => width.max(1),
            _ => 8,
        };
        let needed = (values as usize).checked_mul(least);
        needed.is_some_and(|needed| needed <= bytes.len())
    }

    fn check_dictionary(&mut self, buf: &Bytes, values: u32, encoding: Encoding) -> Result<()> {
        let plain = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
        if self.begun || !plain || !self.fits(values, buf) {
            return wrong("a dictionary is damaged");
        }
        if self.stored.physical == Type::BYTE_ARRAY {
            texts(buf, values as usize)?;
        }
        self.dictionary = true;
        Ok(())
    }

    fn check_values(&mut self, buf: &Bytes, values: u32, encoding: Encoding) -> Result<()> {
        let whole = match encoding {
            Encoding::PLAIN => {
                let fits = self.fits(values, buf);
                if fits && self.stored.physical == Type::BYTE_ARRAY {
                    texts(buf, values as usize)?;
                }
                fits
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                // The first byte is the width of an index, at most 32 bits.
                self.dictionary && buf.first().is_some_and(|width| *width <= 32)
            }
            other => {
                return wrong(format!(
                    "values are encoded as {other}; write the file as Parquet version 1"
                ));
            }
        };
        if !whole {
            return wrong("a page is damaged");
        }
        self.left -= i64::from(values);
        match self.left < 0 {
            true => wrong("a column has more values than it says"),
            false => Ok(()),
        }
    }
}

const WITHOUT: &str = "a row has no value";

/// Checks that all definition levels are 1, so that no value is missing. The levels are encoded as runs and as groups
/// of eight bits (Parquet's RLE/bit-packing hybrid).
fn check_all_present(mut bytes: &[u8], values: usize) -> Result<()> {
    let damaged = || wrong("a page is damaged");
    let mut left = values;
    while left > 0 {
        let Some((header, rest)) = read_varint(bytes) else {
            return damaged();
        };
        let count = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        let is_packed = header & 1 == 1;
        let covered = match is_packed {
            true => count.saturating_mul(8),
            false => count,
        };
        let covered = covered.min(left);
        let length = match is_packed {
            true => covered.div_ceil(8),
            false => 1,
        };
        let Some(marks) = rest.get(..length).filter(|_| covered > 0) else {
            return damaged();
        };
        let (whole, rest_bits) = (covered / 8, covered % 8);
        let present = match is_packed {
            true => {
                let last = (1_u8 << rest_bits) - 1;
                marks[..whole].iter().all(|byte| *byte == 0xff)
                    && marks[whole..].iter().all(|byte| byte & last == last)
            }
            false => marks == [1],
        };
        if !present {
            return wrong(WITHOUT);
        }
        bytes = rest
            .get(if is_packed { count } else { 1 }..)
            .unwrap_or_default();
        left -= covered;
    }
    Ok(())
}

/// Reads a number that is encoded with 7 bits per byte, the least significant first. Also returns the remaining bytes.
fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[at + 1..]));
        }
    }
    None
}

/// Checks the lengths of texts in plain encoding.
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
        page.map(|page| self.convert(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::{check_all_present, read_varint};

    #[test]
    fn marks_of_missing_values_are_found() {
        // A run, groups of eight, and both.
        for (bytes, values, present) in [
            (&[20, 1][..], 10, true),
            (&[20, 0][..], 10, false),
            (&[20, 1][..], 11, false),
            (&[3, 0xff][..], 8, true),
            (&[3, 0x03][..], 2, true),
            (&[3, 0x02][..], 2, false),
            (&[3, 0xfe][..], 8, false),
            (&[5, 0xff, 0x01][..], 9, true),
            (&[5, 0xff, 0x02][..], 9, false),
            (&[5, 0xff][..], 9, false),
            (&[3, 0xff, 4, 1][..], 10, true),
            (&[3, 0xff, 4, 0][..], 10, false),
            (&[0, 1][..], 3, false),
            (&[1][..], 3, false),
            (&[][..], 1, false),
            (&[][..], 0, true),
        ] {
            let found = check_all_present(bytes, values).is_ok();
            assert_eq!(found, present, "{bytes:?} of {values}");
        }
        assert_eq!(read_varint(&[0x80, 1, 7]), Some((128, &[7][..])));
        assert_eq!(read_varint(&[0x80; 9]), None);
    }
}
