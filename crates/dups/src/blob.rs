//! Encodes the files of a folder for the index, as one block of bytes per folder.
//!
//! One row per file would make the first scan (214,000 inserts) and every rescan slow. The block of a folder is written
//! once and compared entry by entry during the walk.
//!
//! Layout, all numbers little-endian: `fsid` i64 of the folder; then for each file: length of the name u8, name, flags
//! u8, inode u64, size u64, mtime i64 ns, ctime i64 ns, generation u32; then `fsid` i64 if flag 16 is set, bytes on
//! disk u64 if flag 2 is set, hash of 16 bytes if flag 1 is set or of 32 if flag 4 is set, fingerprint of the extents
//! u64 if flag 32 is set.

use crate::table::{Files, Hash, Identity};

const HASHED: u8 = 1;
const SPARSE: u8 = 2;
const WIDE: u8 = 4;
const FRESH: u8 = 8;
const FOREIGN: u8 = 16;
const SHARED: u8 = 32;

/// Length of a short hash in bytes. The remaining bytes of a `Hash` are zero.
const SHORT: usize = 16;

/// Mean length in bytes of an entry with a hash and a name of 20 bytes, which is typical for system folders. The number
/// of entries of a block is estimated from it.
pub const MEAN: usize = 74;

/// State of a file at its last examination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobEntry<'a> {
    /// Name of the file within its folder.
    pub name: &'a [u8],
    /// Inode number, size and times of the file.
    pub id: Identity,
    /// Identity of the file system that contains the file.
    pub fsid: i64,
    /// Scan that compared the file, see [`crate::table::File::generation`].
    pub generation: u32,
    /// Bytes on disk, if fewer than the size.
    pub allocated: Option<u64>,
    /// Whether the file had just changed, see [`crate::table::File::is_fresh`].
    pub fresh: bool,
    /// Hash of the content, when known.
    pub hash: Option<Hash>,
    /// Fingerprint of the extents, see [`Files::share`].
    pub share: Option<u64>,
}

/// Encodes the files of a folder as a block.
pub fn encode(fsid: i64, entries: &[BlobEntry<'_>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + entries.len() * 96);
    out.extend_from_slice(&fsid.to_le_bytes());
    for entry in entries {
        let length = u8::try_from(entry.name.len()).unwrap_or(u8::MAX);
        let wide = |hash: &Hash| hash[SHORT..].iter().any(|byte| *byte != 0);
        out.push(length);
        out.extend_from_slice(&entry.name[..usize::from(length)]);
        let mut flags = 0;
        for (set, flag) in [
            (entry.hash.is_some_and(|hash| !wide(&hash)), HASHED),
            (entry.hash.is_some_and(|hash| wide(&hash)), WIDE),
            (entry.allocated.is_some(), SPARSE),
            (entry.fresh, FRESH),
            (entry.fsid != fsid, FOREIGN),
            (entry.share.is_some(), SHARED),
        ] {
            if set {
                flags |= flag;
            }
        }
        out.push(flags);
        out.extend_from_slice(&entry.id.ino.to_le_bytes());
        out.extend_from_slice(&entry.id.size.to_le_bytes());
        out.extend_from_slice(&entry.id.mtime.to_le_bytes());
        out.extend_from_slice(&entry.id.ctime.to_le_bytes());
        out.extend_from_slice(&entry.generation.to_le_bytes());
        if entry.fsid != fsid {
            out.extend_from_slice(&entry.fsid.to_le_bytes());
        }
        if let Some(bytes) = entry.allocated {
            out.extend_from_slice(&bytes.to_le_bytes());
        }
        if let Some(hash) = entry.hash {
            let length = if wide(&hash) { hash.len() } else { SHORT };
            out.extend_from_slice(&hash[..length]);
        }
        if let Some(share) = entry.share {
            out.extend_from_slice(&share.to_le_bytes());
        }
    }
    out
}

/// Encodes the block of a folder in the table.
pub fn encode_dir(files: &Files, dir: u32) -> Vec<u8> {
    let fsid = files.filesystems[usize::from(files.dirs[dir as usize].fs)].fsid;
    let entries: Vec<BlobEntry<'_>> = files
        .dir_files(dir)
        .map(|id| {
            let file = files.file(id);
            BlobEntry {
                name: files.name(id),
                id: file.id,
                fsid: files.filesystems[usize::from(file.fs)].fsid,
                generation: if file.is_fresh() { 0 } else { file.generation },
                allocated: file.is_sparse().then(|| files.allocated(id)),
                fresh: file.is_fresh(),
                hash: files.hash(id).copied(),
                share: files.share(id),
            }
        })
        .collect();
    encode(fsid, &entries)
}

/// Iterates over the files of a block. If the block is truncated, the last item is an `Err`.
pub struct BlobDecoder<'a> {
    fsid: i64,
    rest: &'a [u8],
}

/// The block is damaged and cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub struct Damaged;

impl<'a> BlobDecoder<'a> {
    /// Creates a decoder for a block. Fails if the block is too short for its header.
    pub fn new(block: &'a [u8]) -> Result<Self, Damaged> {
        let mut rest = block;
        let fsid = i64::from_le_bytes(take(&mut rest)?);
        Ok(Self { fsid, rest })
    }

    /// Returns the id of the file system that contains the folder.
    pub fn fsid(&self) -> i64 {
        self.fsid
    }

    fn entry(&mut self) -> Result<BlobEntry<'a>, Damaged> {
        let rest = &mut self.rest;
        let [length] = take(rest)?;
        let (name, after) = rest.split_at_checked(usize::from(length)).ok_or(Damaged)?;
        *rest = after;
        let [flags] = take(rest)?;
        let id = Identity {
            ino: u64::from_le_bytes(take(rest)?),
            size: u64::from_le_bytes(take(rest)?),
            mtime: i64::from_le_bytes(take(rest)?),
            ctime: i64::from_le_bytes(take(rest)?),
        };
        let generation = u32::from_le_bytes(take(rest)?);
        let fsid = match flags & FOREIGN {
            0 => self.fsid,
            _ => i64::from_le_bytes(take(rest)?),
        };
        let allocated = match flags & SPARSE {
            0 => None,
            _ => Some(u64::from_le_bytes(take(rest)?)),
        };
        let hash = match flags & (HASHED | WIDE) {
            0 => None,
            HASHED => {
                let mut hash = Hash::default();
                hash[..SHORT].copy_from_slice(&take::<SHORT>(rest)?);
                Some(hash)
            }
            _ => Some(take(rest)?),
        };
        let share = match flags & SHARED {
            0 => None,
            _ => Some(u64::from_le_bytes(take(rest)?)),
        };
        Ok(BlobEntry {
            name,
            id,
            fsid,
            generation,
            allocated,
            fresh: flags & FRESH != 0,
            hash,
            share,
        })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Damaged> {
    let (head, after) = rest.split_first_chunk::<N>().ok_or(Damaged)?;
    *rest = after;
    Ok(*head)
}

impl<'a> Iterator for BlobDecoder<'a> {
    type Item = Result<BlobEntry<'a>, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.rest = &[];
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            names in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..8),
            number: u64, time: i64, hashed: bool, flags: [bool; 3],
        ) {
            let entries: Vec<_> = names.iter().enumerate().map(|(i, name)| BlobEntry {
                name,
                id: Identity { ino: number, size: number / 3, mtime: time, ctime: time / 2 },
                fsid: if flags[2] && i % 2 == 0 { 8 } else { 7 },
                generation: 3,
                allocated: flags[0].then_some(number / 7),
                fresh: flags[1],
                hash: hashed.then(|| match i % 2 {
                    0 => [9; 32],
                    _ => crate::hash::HashKind::Xxh3.of(name),
                }),
                share: flags[0].then_some(number),
            }).collect();
            let block = encode(7, &entries);
            let read: Result<Vec<_>, _> = BlobDecoder::new(&block).unwrap().collect();
            prop_assert_eq!(read.unwrap(), entries);
        }

        #[test]
        fn noise_is_damaged_not_fatal(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(decoder) = BlobDecoder::new(&noise) {
                let _ = decoder.count();
            }
        }
    }
}
