//! Reads a file: opens it once, reads it without mapping, and then checks that it is still the file that the
//! walk found.

use crate::hash::{HashKind, Hasher};
use crate::skip::Reason;
use crate::sys;
use crate::table::{File, Hash};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Maximum size in bytes of a file that is read completely at once. Longer files are probed first.
pub const SMALL: u64 = 64 * 1024;
/// Bytes compared or hashed at once at the beginning of a file; at least [`SMALL`].
pub const CHUNK: usize = 64 * 1024;
/// Maximum bytes compared or hashed at once. With pairs of files of 4 to 20 MB in the page cache (Zen 4, 1 MiB
/// L2 cache), reading and comparing reached 8.5 GB/s with 64 KiB and 10.9 GB/s with 512 KiB.
pub const LONG_CHUNK: usize = 512 * 1024;
/// Number of bytes in each of the three probed blocks.
pub const PROBE: usize = 4096;

/// Why a file could not be read completely.
#[derive(Debug)]
pub struct Trouble {
    /// Kind of the reason: unreadable or changed.
    pub reason: Reason,
    /// Kernel error, or description of the change.
    pub detail: String,
}

impl Trouble {
    pub(crate) fn io(errno: Errno) -> Self {
        let reason = match errno {
            Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::STALE => {
                Reason::Changed
            }
            _ => Reason::Unreadable,
        };
        Self {
            reason,
            detail: sys::describe_errno(errno),
        }
    }

    fn changed(detail: &str) -> Self {
        Self {
            reason: Reason::Changed,
            detail: detail.to_owned(),
        }
    }
}

/// A read buffer aligned to a cache line. The kernel's copy into an unaligned buffer took 1.3 times as long
/// with 64 KiB and 1.6 times with 512 KiB (Zen 4).
pub struct Buffer {
    bytes: Box<[u8]>,
    begin: usize,
}

/// Size of a cache line in bytes.
pub const LINE: usize = 64;

impl Buffer {
    /// Allocates a buffer of zeros. Its pages use memory only after their first use.
    pub fn new(length: usize) -> Self {
        let bytes = vec![0; length + LINE].into_boxed_slice();
        let begin = bytes.as_ptr().align_offset(LINE).min(LINE);
        Self { bytes, begin }
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.begin..self.bytes.len() - LINE + self.begin]
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let end = self.bytes.len() - LINE + self.begin;
        &mut self.bytes[self.begin..end]
    }
}

/// Cost of reading, for the report and the benchmark.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Cost {
    /// Number of files that were opened.
    pub opens: u64,
    /// Number of bytes that were read.
    pub bytes: u64,
}

impl Cost {
    /// Fills `buffer` with the bytes from `offset`. Fails if the file ends earlier, because the file has then shrunk.
    pub fn fill(&mut self, fd: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<(), Trouble> {
        let mut done = 0;
        while done < buffer.len() {
            match rustix::io::pread(fd, &mut buffer[done..], offset + done as u64) {
                Ok(0) => return Err(Trouble::changed("shorter than its size says")),
                Ok(count) => {
                    self.bytes += count as u64;
                    done += count;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Trouble::io(errno)),
            }
        }
        Ok(())
    }

    /// Reads the first, middle and last block into a buffer of three blocks.
    pub fn probe(
        &mut self,
        fd: &OwnedFd,
        size: u64,
        into: &mut [u8; 3 * PROBE],
    ) -> Result<(), Trouble> {
        let last = size - PROBE as u64;
        let middle = (size / 2).saturating_sub(PROBE as u64 / 2);
        for (number, offset) in [0, last, middle].into_iter().enumerate() {
            self.fill(fd, &mut into[number * PROBE..][..PROBE], offset)?;
        }
        Ok(())
    }

    /// Hashes a whole file. Holes are not read but hashed as zeros.
    pub fn hash(
        &mut self,
        fd: &OwnedFd,
        file: &File,
        kind: HashKind,
        buffer: &mut [u8],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Hash>, Trouble> {
        let mut hasher = kind.hasher();
        let mut holes = Holes::new(file.is_sparse());
        let mut offset = 0;
        while offset < file.id.size {
            if stop() {
                return Ok(None);
            }
            let hole = holes.at(fd, offset, file.id.size);
            if hole > offset {
                zeros(&mut hasher, hole - offset);
                offset = hole;
                continue;
            }
            let length = buffer.len().min((file.id.size - offset) as usize);
            self.fill(fd, &mut buffer[..length], offset)?;
            hasher.update(&buffer[..length]);
            offset += length as u64;
        }
        unchanged(fd, file)?;
        Ok(Some(hasher.finish()))
    }
}

/// Checks that an open file still has the state that the walk found.
pub fn unchanged(fd: &OwnedFd, file: &File) -> Result<(), Trouble> {
    let now = sys::identity_now(fd).map_err(Trouble::io)?;
    if now == file.id {
        return Ok(());
    }
    Err(Trouble::changed(if now.ino != file.id.ino {
        "another file took its place"
    } else if now.size != file.id.size {
        "its size changed"
    } else {
        "its times changed"
    }))
}

/// Finds the holes of a sparse file.
#[derive(Clone, Copy)]
pub struct Holes {
    sparse: bool,
    /// Offset at which the current data range ends.
    data_until: u64,
    /// Offset at which the current hole ends.
    hole_until: u64,
}

impl Holes {
    /// Creates a search for holes. With `sparse` = false, the search finds none.
    pub fn new(sparse: bool) -> Self {
        Self {
            sparse,
            data_until: 0,
            hole_until: 0,
        }
    }

    /// Returns the end of the hole at `offset`, or `offset` itself if it is not in a hole.
    pub fn at(&mut self, fd: &OwnedFd, offset: u64, size: u64) -> u64 {
        use rustix::fs::{SeekFrom, seek};
        if !self.sparse || offset < self.data_until {
            return offset;
        }
        if offset < self.hole_until {
            return self.hole_until;
        }
        match seek(fd, SeekFrom::Data(offset)) {
            Ok(data) if data > offset => self.hole_until = data.min(size),
            Ok(_) => {
                self.data_until = seek(fd, SeekFrom::Hole(offset)).unwrap_or(size);
                self.hole_until = offset;
            }
            // There is no data after `offset`.
            Err(Errno::NXIO) => self.hole_until = size,
            Err(_) => {
                self.sparse = false;
                self.hole_until = offset;
            }
        }
        self.hole_until
    }
}

/// Hashes the zeros of a hole.
pub fn zeros(hasher: &mut Hasher, mut length: u64) {
    static ZEROS: [u8; CHUNK] = [0; CHUNK];
    while length > 0 {
        let now = length.min(CHUNK as u64) as usize;
        hasher.update(&ZEROS[..now]);
        length -= now as u64;
    }
}
