//! Gives the Parquet library access to parts of a table by position.

use crate::TableSource;
use bytes::{Buf as _, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

impl Length for TableSource {
    fn len(&self) -> u64 {
        match self {
            Self::File(_, length) => *length,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }
}

/// Number of bytes that are read for the header of a page. The rest of the page is read afterwards.
const HEADER: usize = 256;

impl ChunkReader for TableSource {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        match self {
            Self::File(file, _) => {
                let at = At(file.clone(), start);
                Ok(Box::new(std::io::BufReader::with_capacity(HEADER, at)))
            }
            Self::Memory(bytes) => {
                let start = usize::try_from(start)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                Ok(Box::new(bytes.slice(start..).reader()))
            }
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64);
        // Checked before an allocation, because the length comes from the file.
        if end.is_none_or(|end| end > self.len()) {
            return Err(ParquetError::EOF("it ends too early".into()));
        }
        match self {
            Self::File(file, _) => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, start)?;
                Ok(bytes.into())
            }
            Self::Memory(bytes) => {
                let start = start as usize;
                Ok(bytes.slice(start..start + length))
            }
        }
    }
}

/// Reader of a file that starts at a position.
struct At(Arc<File>, u64);

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read_at(buffer, self.1)?;
        self.1 = self.1.saturating_add(count as u64);
        Ok(count)
    }
}
