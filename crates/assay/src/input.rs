//! What the user names to be read: files and standard input, each with an end, so that a device or an
//! endless pipe does not take all memory.

use crate::status::Unreadable;
use anyhow::bail;
use assay_model::Bytes;
use std::io::Read as _;
use std::path::Path;

/// A file, or standard input when its name is `-`.
///
/// # Errors
/// [`Unreadable`] when it cannot be read; another one when it is longer than `longest` bytes. `what` says
/// what was expected.
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

/// The same as text: UTF-8, or UTF-16 with its mark, as Windows writes it.
///
/// # Errors
/// As [`bytes`]; and what is no text.
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
