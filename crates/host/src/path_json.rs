//! Paths in JSON, for `#[serde(with = …)]`: text, or a list of bytes where a name is not UTF-8.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

/// Writes a path.
///
/// # Errors
/// Those of the writer.
pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(to),
        None => path.as_os_str().as_bytes().serialize(to),
    }
}

/// Reads a path.
///
/// # Errors
/// It is neither text nor a list of bytes.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(match Name::deserialize(from)? {
        Name::Text(text) => text.into(),
        Name::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}
