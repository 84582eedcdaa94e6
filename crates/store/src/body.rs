//! A value as it lies in the store: JSON, compressed with zstd.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Read as _;

/// Enough for JSON of repeating keys; higher levels cost time and gain a few percent.
const LEVEL: i32 = 3;
/// No honest record comes near; a crafted one must not fill the memory.
const LARGEST: u64 = 512 << 20;

/// Compresses `value`, and proves that it can be read back: JSON has no NaN and no infinity, and
/// what was measured must not be lost to one.
pub(crate) fn encode<T: Serialize + DeserializeOwned>(value: &T) -> Result<Vec<u8>, String> {
    let json = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    serde_json::from_slice::<T>(&json).map_err(|error| error.to_string())?;
    zstd::bulk::compress(&json, LEVEL).map_err(|error| error.to_string())
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut json = Vec::new();
    zstd::Decoder::with_buffer(bytes)
        .and_then(|decoder| decoder.take(LARGEST).read_to_end(&mut json))
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}
