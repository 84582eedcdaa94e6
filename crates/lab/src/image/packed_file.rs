//! Packs a guest image into one file, and installs such a file on a machine that cannot build the image itself.
//!
//! The file is a tar archive, compressed by zstd. It contains a list of the files with their BLAKE3 hashes, followed by
//! the files. Names in the archive are never used as paths.

use super::{BUILDING, Cache, Image};
use crate::error::LabError;
use crate::recipe::{self, Zfs};
use assay_loads::Cancel;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::path::Path;

/// Name of the list of files in the archive.
const LIST: &str = "assay-lab-image.json";
/// Names of the files of an image, in the order of the archive.
const FILES: [&str; 4] = ["root.img", "vmlinux", "initrd.img", "packages"];
/// Maximum length of the list in bytes.
const LONGEST_LIST: u64 = 64 << 10;
/// Maximum length of each file in bytes.
const LONGEST_FILE: u64 = 16 << 30;
/// Number of bytes that are read at once. A block of zeros becomes a hole in the file.
const PIECE: usize = 64 << 10;

/// List of the files in a packed image.
#[derive(Debug, Serialize, Deserialize)]
struct List {
    /// Hash of the recipe that the image was built from.
    image: String,
    /// BLAKE3 hash of each file, by name.
    files: BTreeMap<String, String>,
}

/// Writes the image as one file to `out`. This takes a minute; the file has about a tenth of the image's size.
///
/// # Errors
/// A file cannot be read or written, or the user interrupted.
pub fn pack_image(image: &Image, out: impl Write, cancel: &Cancel) -> Result<(), LabError> {
    let failed = |error: io::Error| match cancel.is_cancelled() {
        true => LabError::Interrupted,
        false => LabError::io(&image.dir)(error),
    };
    let mut files = BTreeMap::new();
    for name in FILES {
        let file = File::open(image.dir.join(name)).map_err(failed)?;
        let hash = copy_and_hash(file, &mut io::sink(), cancel).map_err(failed)?;
        files.insert(name.to_owned(), hash);
    }
    let list = List {
        image: image.hash(),
        files,
    };
    let list = serde_json::to_vec(&list).map_err(|error| failed(error.into()))?;
    let compressor = zstd::stream::Encoder::new(out, 9).map_err(failed)?;
    let mut archive = tar::Builder::new(compressor);
    append(&mut archive, LIST, list.len() as u64, &list[..]).map_err(failed)?;
    for name in FILES {
        let file = File::open(image.dir.join(name)).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        append(&mut archive, name, length, Cancelled(file, cancel)).map_err(failed)?;
    }
    let compressor = archive.into_inner().map_err(failed)?;
    compressor
        .finish()
        .and_then(|mut out| out.flush())
        .map_err(failed)
}

fn append(
    archive: &mut tar::Builder<impl Write>,
    name: &str,
    length: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(length);
    header.set_mode(0o644);
    header.set_mtime(0);
    archive.append_data(&mut header, name, content)
}

impl Cache {
    /// Installs a packed image after checking the hash of each file. The image appears completely or not at all.
    ///
    /// # Errors
    /// The file is no packed image, belongs to another version of assay, is damaged, or there is no space.
    pub fn install(&self, packed: &Path, cancel: &Cancel) -> Result<Image, LabError> {
        super::check_architecture(std::env::consts::ARCH)?;
        super::check_writable(&self.root)?;
        let file = File::open(packed).map_err(LabError::io(packed))?;
        let _lock = self.lock(&mut |_| {}, cancel)?;
        self.sweep();
        let work = self.root.join(format!("{BUILDING}{}", std::process::id()));
        fs::create_dir(&work).map_err(LabError::io(&work))?;
        let unpacked = unpack_into(&work, file, cancel).map_err(|fault| match fault {
            Fault::Packed(reason) => LabError::Packed {
                path: packed.to_owned(),
                reason,
            },
            Fault::Here(error) => LabError::io(&work)(error),
        });
        let installed = unpacked.and_then(|zfs| {
            let cache = self.with(zfs);
            let image = cache.place();
            if cache.find().is_none() {
                cache.check_place()?;
                super::sync(&work).map_err(LabError::io(&work))?;
                fs::rename(&work, &image.dir).map_err(LabError::io(&image.dir))?;
            }
            Ok(image)
        });
        // Gone already if it became the image.
        let _ = fs::remove_dir_all(&work);
        installed.map_err(|error| match cancel.is_cancelled() {
            true => LabError::Interrupted,
            false => error,
        })
    }
}

/// Why a packed image cannot be installed.
enum Fault {
    /// The packed file is damaged or unsuitable.
    Packed(String),
    /// This machine cannot store the image, for example for lack of space.
    Here(io::Error),
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Packed(reason)
    }
}

/// Returns which OpenZFS an image contains, from the hash of its recipe. Fails if no recipe of this version of assay
/// has this hash.
fn find_zfs(hash: &str) -> Result<Zfs, String> {
    Zfs::of(hash).ok_or_else(|| {
        let own = recipe::hash(Zfs::Stable);
        let hash = hash.escape_debug();
        format!("it belongs to another version of assay (recipe {hash}, this one has {own})")
    })
}

/// Unpacks the archive, and returns which OpenZFS the image contains.
fn unpack_into(work: &Path, packed: File, cancel: &Cancel) -> Result<Zfs, Fault> {
    let no_image = |error: io::Error| format!("it is no packed guest image, or damaged: {error}");
    let reader = zstd::stream::Decoder::new(packed).map_err(no_image)?;
    let mut archive = tar::Archive::new(reader);
    let mut entries = archive.entries().map_err(no_image)?;
    let mut next = || match entries.next() {
        Some(entry) => entry.map_err(no_image),
        None => Err("it is not whole".to_owned()),
    };
    let mut first = next()?;
    if first.path_bytes().as_ref() != LIST.as_bytes() || first.size() > LONGEST_LIST {
        return Err("it is no packed guest image".to_owned().into());
    }
    let mut text = Vec::new();
    first.read_to_end(&mut text).map_err(no_image)?;
    let list: List = serde_json::from_slice(&text).map_err(|error| no_image(error.into()))?;
    let zfs = find_zfs(&list.image)?;
    for name in FILES {
        let entry = next()?;
        if entry.path_bytes().as_ref() != name.as_bytes() || entry.size() > LONGEST_FILE {
            return Err(format!("it is damaged: {name} is not where it should be").into());
        }
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Fault::Here(error),
            _ => Fault::Packed(format!("cannot unpack {name}: {error}")),
        };
        let length = entry.size();
        let mut file = File::create_new(work.join(name)).map_err(failed)?;
        file.set_len(length).map_err(failed)?;
        let hash = copy_and_hash(entry, &mut Sparse(&mut file), cancel).map_err(failed)?;
        if list.files.get(name) != Some(&hash) {
            return Err(format!("it is damaged: the hash of {name} differs").into());
        }
    }
    Ok(zfs)
}

/// Copies all data and returns its BLAKE3 hash.
fn copy_and_hash(from: impl Read, to: &mut impl Write, cancel: &Cancel) -> io::Result<String> {
    let mut from = Cancelled(from, cancel);
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        let mut filled = 0;
        while filled < PIECE {
            match from.read(&mut piece[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        if filled == 0 {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        hasher.update(&piece[..filled]);
        to.write_all(&piece[..filled])?;
    }
}

/// A reader that fails after the user interrupted.
struct Cancelled<'a, R>(R, &'a Cancel);

impl<R: Read> Read for Cancelled<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.is_cancelled() {
            return Err(io::Error::other("interrupted"));
        }
        self.0.read(buffer)
    }
}

/// A writer to a file of zeros. It skips blocks of zeros, so that they stay holes.
struct Sparse<'a>(&'a mut File);

impl Write for Sparse<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match bytes.iter().all(|byte| *byte == 0) {
            true => {
                let count = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
                self.0.seek(SeekFrom::Current(count))?;
            }
            false => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    /// Creates an image of the current recipe from small test files.
    fn image(dir: &Path) -> Image {
        let image = Cache::new(dir).place();
        fs::create_dir(&image.dir).unwrap();
        let root = File::create(image.root()).unwrap();
        root.set_len(8 << 20).unwrap();
        (&root).write_all(b"super block").unwrap();
        for name in &FILES[1..] {
            fs::write(image.dir.join(name), name).unwrap();
        }
        image
    }

    fn packed(image: &Image) -> Vec<u8> {
        let mut out = Vec::new();
        pack_image(image, &mut out, &Cancel::default()).unwrap();
        out
    }

    fn install(bytes: &[u8]) -> (tempfile::TempDir, Result<Image, LabError>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("packed");
        fs::write(&file, bytes).unwrap();
        let installed = Cache::new(&dir.path().join("cache")).install(&file, &Cancel::default());
        (dir, installed)
    }

    #[test]
    fn an_image_arrives_whole_and_sparse() {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path());
        let bytes = packed(&image);
        assert!(bytes.len() < 64 << 10);
        let (_dir, installed) = install(&bytes);
        let installed = installed.unwrap();
        assert_eq!(installed.hash(), image.hash());
        for name in FILES {
            let read = |image: &Image| fs::read(image.dir.join(name)).unwrap();
            assert_eq!(read(&installed), read(&image), "{name}");
        }
        assert!(fs::metadata(installed.root()).unwrap().blocks() * 512 < 1 << 20);
        // Once more: the image that is there stays.
        assert_eq!(packed(&installed), bytes);
    }

    #[test]
    fn what_is_left_of_an_image_is_named_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("packed");
        fs::write(&file, packed(&image(dir.path()))).unwrap();
        let cache = Cache::new(&dir.path().join("cache"));
        let part = cache.place().dir;
        fs::create_dir_all(&part).unwrap();
        fs::write(part.join("vmlinux"), "x").unwrap();
        let installed = cache.install(&file, &Cancel::default());
        let Err(LabError::Damaged { path, .. }) = &installed else {
            panic!("{installed:?}");
        };
        assert_eq!(path, &part);
        assert_eq!(fs::read(part.join("vmlinux")).unwrap(), b"x");
    }

    #[test]
    fn a_damaged_file_installs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let whole = image(dir.path());
        let bytes = packed(&whole);
        let mut flipped = zstd::decode_all(&bytes[..]).unwrap();
        let at = flipped
            .windows(11)
            .position(|part| part == b"super block")
            .unwrap();
        flipped[at] ^= 1;
        let flipped = zstd::encode_all(&flipped[..], 1).unwrap();
        fs::rename(&whole.dir, dir.path().join("0123456789abcdef")).unwrap();
        let foreign = packed(&Image {
            dir: dir.path().join("0123456789abcdef"),
        });
        for (what, bytes) in [
            ("cut", &bytes[..bytes.len() / 2]),
            ("flipped", &flipped),
            ("foreign", &foreign),
            ("text", b"no image"),
            ("empty", b""),
        ] {
            let (dir, installed) = install(bytes);
            assert!(
                matches!(installed, Err(LabError::Packed { .. })),
                "{what}: {installed:?}"
            );
            let left: Vec<_> = fs::read_dir(dir.path().join("cache"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .filter(|name| name != super::super::LOCK)
                .collect();
            assert!(left.is_empty(), "{what}: {left:?}");
        }
    }
}
