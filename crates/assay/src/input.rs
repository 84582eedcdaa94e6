//! Reads files and standard input with a size limit, so that a device or an endless pipe does not fill the memory.

use crate::status::Unreadable;
use anyhow::bail;
use assay_model::Bytes;
use std::io::Read as _;
use std::path::Path;

/// Reads a file, or standard input if the path is `-`. `what` describes the expected content.
///
/// # Errors
/// [`Unreadable`] if the file cannot be read; another error if it has more than `longest` bytes.
#[allow(
    clippy::disallowed_methods,
    reason = "the user named this file on the command line"
)]
pub fn bytes(path: &Path, longest: u64, what: &str) -> anyhow::Result<Vec<u8>> {
    let stdin = path == Path::new("-");
    let shown = match stdin {
        true => "standard input".to_owned(),
        false => path.to_string_lossy().escape_debug().to_string(),
    };
    let mut bytes = Vec::new();
    let read = match stdin {
        true => (std::io::stdin().lock())
            .take(longest + 1)
            .read_to_end(&mut bytes),
        false => std::fs::File::open(path)
            .and_then(|file| file.take(longest + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| Unreadable(format!("cannot read {shown}: {error}; expected {what}")))?;
    if bytes.len() as u64 > longest {
        bail!(
            "cannot read {shown}: it is longer than {}, so it is not {what}",
            Bytes(longest)
        );
    }
    Ok(bytes)
}

/// Reads text in UTF-8, or in UTF-16 with a byte order mark as Windows writes it.
///
/// # Errors
/// As [`bytes`]; also if the content is not text.
pub fn text(path: &Path, longest: u64, what: &str) -> anyhow::Result<String> {
    let bytes = bytes(path, longest, what)?;
    match assay_fio::options::decode(bytes) {
        Some(text) => Ok(text),
        None => bail!(
            "cannot read {}: it is not text; expected {what}",
            path.to_string_lossy().escape_debug()
        ),
    }
}
