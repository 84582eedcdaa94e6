//! The body of a record: the JSON of the model, compressed.

use crate::StoreError;
use crate::error::Cause;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// zstd's level: 3 takes the bins of a histogram to a tenth at no noticeable time.
const COMPRESSION: i32 = 3;
/// A body that says it is longer than this is not ours.
const MAX_BODY: u64 = 1 << 30;

/// Packs a value, and proves that it can be read back: JSON has no NaN and no infinity, and what
/// was measured must not be lost to one.
pub(crate) fn pack<T: Serialize + DeserializeOwned>(
    path: &Path,
    what: &str,
    value: &T,
) -> Result<Vec<u8>, StoreError> {
    let fail = |cause: Cause| StoreError::row(path, what, cause);
    let json = serde_json::to_vec(value).map_err(|error| fail(error.into()))?;
    serde_json::from_slice::<T>(&json).map_err(|error| fail(error.into()))?;
    let compress = || {
        let mut compressor = zstd::bulk::Compressor::new(COMPRESSION)?;
        // SQLite does not notice a bit that the disk flipped; the sum does.
        compressor.include_checksum(true)?;
        compressor.compress(&json)
    };
    compress().map_err(|error: std::io::Error| fail(error.into()))
}

/// The value back.
pub(crate) fn unpack<T: DeserializeOwned>(
    path: &Path,
    what: &str,
    body: &[u8],
) -> Result<T, StoreError> {
    let fail = |cause: Cause| StoreError::row(path, what, cause);
    let mut reader = zstd::Decoder::new(body).map_err(|error| fail(error.into()))?;
    let mut json = Vec::new();
    let mut limited = std::io::Read::take(&mut reader, MAX_BODY);
    std::io::Read::read_to_end(&mut limited, &mut json).map_err(|error| fail(error.into()))?;
    serde_json::from_slice(&json).map_err(|error| fail(error.into()))
}
