//! Source of the bytes of a table.

use bytes::Bytes;
use std::fs::File;
use std::sync::Arc;

/// Source of the bytes of a table: a file, or received bytes.
#[derive(Clone, Debug)]
pub enum TableSource {
    /// An open regular file and its length. The file is read by position, so that its offset does not matter.
    File(Arc<File>, u64),
    /// Bytes in memory, for example received ones.
    Memory(Bytes),
}

impl TableSource {
    /// Uses an open file as the source.
    ///
    /// # Errors
    /// The length of the file cannot be read.
    pub fn file(file: File) -> std::io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self::File(Arc::new(file), length))
    }

    /// Uses bytes in memory as the source.
    #[must_use]
    pub fn memory(bytes: Vec<u8>) -> Self {
        Self::Memory(bytes.into())
    }
}
