//! Decodes a bundle: marker line, compression, archive. The limits hold whatever sizes a header declares.

use super::Entry;
use crate::MAX_BYTES;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use tar::{Archive, EntryType};

/// Maximum size of a bundle in bytes, both compressed and uncompressed.
pub const MAX_BUNDLE: u64 = 128 << 20;

/// Maximum number of entries in a bundle.
const MAX_ENTRIES: usize = 200_000;

/// Maximum bytes of a name.
const MAX_NAME: usize = 4096;

/// Maximum depth of a path. The deepest paths are in /sys, with about a dozen levels.
const MAX_DEPTH: usize = 64;

/// Maximum number of bytes before a bundle. They may be a login banner or the output of a shell profile.
const MAX_BEFORE: usize = 64 << 10;

/// Start of the marker line before a bundle. The line ends with the name of the compression.
const MARK: &[u8] = b"assay-bundle 1 ";

const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const GZIP: &[u8] = &[0x1f, 0x8b];

/// log₂ of the maximum zstd window, which limits the memory of the decoder.
const WINDOW: u32 = 23;

/// Decodes a bundle and passes each entry to the caller.
pub(super) fn entries(
    from: impl Read,
    mut each: impl FnMut(PathBuf, Entry) -> Result<(), String>,
) -> Result<(), String> {
    let mut from = from.take(MAX_BUNDLE + 1);
    let head = read_head(&mut from).map_err(|error| error.to_string())?;
    let (start, _) = start(&head)?;
    let rest = &head[start..];
    let whole = rest.chain(from);
    let damaged = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "it is cut off".to_owned(),
        _ => format!("not a bundle: {error}"),
    };
    let plain: Box<dyn Read + '_> = if rest.starts_with(ZSTD) {
        let mut decoder = zstd::Decoder::new(whole).map_err(damaged)?;
        decoder.window_log_max(WINDOW).map_err(damaged)?;
        Box::new(decoder)
    } else if rest.starts_with(GZIP) {
        Box::new(flate2::read::GzDecoder::new(whole))
    } else {
        Box::new(whole)
    };
    let mut left = Bounded {
        inner: plain,
        left: MAX_BUNDLE,
    };
    let mut archive = Archive::new(&mut left);
    let mut count = 0;
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        count += 1;
        if count > MAX_ENTRIES {
            return Err(format!("more than {MAX_ENTRIES} names in it"));
        }
        let Some(path) = parse_absolute_path(&entry.path_bytes())? else {
            continue;
        };
        let found = match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let size = entry.size();
                if size > MAX_BYTES as u64 {
                    let name = path.display().to_string();
                    let name = name.escape_debug();
                    return Err(format!(
                        "{name} in it is longer than {} MiB",
                        MAX_BYTES >> 20
                    ));
                }
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(damaged)?;
                if bytes.len() as u64 != size {
                    return Err("it is cut off".to_owned());
                }
                Entry::File(bytes)
            }
            EntryType::Symlink => match entry.link_name_bytes() {
                Some(target) if target.len() <= MAX_NAME => {
                    Entry::Link(PathBuf::from(OsStr::from_bytes(&target)))
                }
                _ => continue,
            },
            EntryType::Directory => Entry::Directory,
            // Devices, pipes and hard links contain no facts.
            _ => continue,
        };
        each(path, found)?;
    }
    match count {
        0 => Err("nothing is in it".to_owned()),
        _ => Ok(()),
    }
}

/// Reads the first bytes, until the marker is found or the limit is reached.
fn read_head(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut buffer = [0; 8 << 10];
    loop {
        // The marker line and the first block of the archive must be complete.
        let enough = find(&head).is_some_and(|at| head.len() >= at + 600);
        let plain = head.starts_with(ZSTD) || head.starts_with(GZIP);
        if enough || plain || head.len() >= MAX_BEFORE {
            return Ok(head);
        }
        match from.read(&mut buffer) {
            Ok(0) => return Ok(head),
            Ok(n) => head.extend(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the position of the marker, which must be at the start of a line.
fn find(head: &[u8]) -> Option<usize> {
    let begins = |at: &usize| *at == 0 || head[*at - 1] == b'\n';
    head.windows(MARK.len())
        .enumerate()
        .filter(|(_, window)| *window == MARK)
        .map(|(at, _)| at)
        .find(begins)
}

/// Returns the position at which the bundle starts, and whether a marker line precedes it.
fn start(head: &[u8]) -> Result<(usize, bool), String> {
    if let Some(at) = find(head) {
        let line = head[at..].iter().position(|&byte| byte == b'\n');
        return match line {
            Some(length) => Ok((at + length + 1, true)),
            None => Err("it is cut off".to_owned()),
        };
    }
    let archive = head.get(257..262) == Some(b"ustar");
    if archive || head.starts_with(ZSTD) || head.starts_with(GZIP) {
        return Ok((0, false));
    }
    if head.is_empty() {
        return Err("it is empty".to_owned());
    }
    let begin = String::from_utf8_lossy(&head[..head.len().min(400)]).into_owned();
    let line = begin.lines().find(|line| !line.trim().is_empty());
    let shown: String = line.unwrap_or_default().chars().take(100).collect();
    let shown = assay_model::secrets::withhold_in_text(&shown);
    Err(format!(
        "no bundle is in it; it begins with `{}`",
        shown.escape_debug()
    ))
}

/// Normalises a path to an absolute path without dots. Returns `None` for the root itself.
fn parse_absolute_path(name: &[u8]) -> Result<Option<PathBuf>, String> {
    let path = Path::new(OsStr::from_bytes(name));
    let mut out = PathBuf::from("/");
    if name.len() > MAX_NAME {
        return Err(format!("a name in it is longer than {MAX_NAME} bytes"));
    }
    for part in path.components() {
        match part {
            Component::Normal(part) => out.push(part),
            Component::ParentDir => {
                let name = path.display().to_string();
                return Err(format!(
                    "a name in it leads upwards: {}",
                    name.escape_debug()
                ));
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    if out.components().count() > MAX_DEPTH {
        return Err(format!(
            "a name in it leads through more than {MAX_DEPTH} directories"
        ));
    }
    Ok((out != Path::new("/")).then_some(out))
}

/// A reader that fails when the input exceeds the limit.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        match self.left.checked_sub(n as u64) {
            Some(left) => {
                self.left = left;
                Ok(n)
            }
            None => Err(io::Error::other(format!(
                "more than {} MiB are in it",
                MAX_BUNDLE >> 20
            ))),
        }
    }
}
