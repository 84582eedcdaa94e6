//! Serialises paths for `#[serde(with = …)]`: as text, or as a list of bytes if the path is not UTF-8.

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

/// Serialises a path.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(to),
        None => path.as_os_str().as_bytes().serialize(to),
    }
}

/// Deserialises a path.
///
/// # Errors
/// The value is neither text nor a list of bytes.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(match Name::deserialize(from)? {
        Name::Text(text) => text.into(),
        Name::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}
