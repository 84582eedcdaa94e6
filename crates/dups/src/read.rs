//! Reading one file: opened once, read without mapping, and checked afterwards to be still the
//! file that was walked over.

use crate::hash::{HashKind, Hasher};
use crate::skip::Reason;
use crate::sys;
use crate::table::{File, Hash};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Files up to this many bytes are read whole at once; longer ones are probed first.
pub const SMALL: u64 = 64 * 1024;
/// Bytes compared or hashed at once at the beginning of a file, at least [`SMALL`].
pub const CHUNK: usize = 64 * 1024;
/// Most bytes compared or hashed at once. Measured with pairs of files of 4 to 20 MB in the page
/// cache (Zen 4, 1 MiB of second-level cache): reading and comparing ran at 8.5 GB/s with 64 KiB and
/// at 10.9 with 512 KiB.
pub const LONG_CHUNK: usize = 512 * 1024;
/// Bytes of each probe.
pub const PROBE: usize = 4096;

/// Why a file was not read, and what happened.
#[derive(Debug)]
pub struct Trouble {
    /// Unreadable or changed.
    pub reason: Reason,
    /// What the kernel said or what changed.
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

/// Memory to read into, at the beginning of a cache line: the kernel's copy into one that begins in
/// the middle took 1.3 times as long with 64 KiB at once and 1.6 times with 512 KiB (Zen 4).
pub struct Buffer {
    bytes: Box<[u8]>,
    begin: usize,
}

/// Bytes of a cache line.
pub const LINE: usize = 64;

impl Buffer {
    /// Zeros; their pages take memory when they are first used.
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

/// What reading cost, for the report and the benchmark.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Cost {
    /// Files opened.
    pub opens: u64,
    /// Bytes read.
    pub bytes: u64,
}

impl Cost {
    /// Fills `buffer` from `offset`; ending early means the file has shrunk.
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

    /// First, middle and last block, into a buffer of three blocks.
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

    /// Hashes a whole file, skipping holes.
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

/// Checks that an open file is still in the state in which it was walked over.
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

/// Where a sparse file has holes.
#[derive(Clone, Copy)]
pub struct Holes {
    sparse: bool,
    /// Known to be data up to here.
    data_until: u64,
    /// Known to be a hole up to here.
    hole_until: u64,
}

impl Holes {
    /// `sparse`: whether holes are to be looked for at all.
    pub fn new(sparse: bool) -> Self {
        Self {
            sparse,
            data_until: 0,
            hole_until: 0,
        }
    }

    /// The end of the hole that `offset` lies in, or `offset` itself when there is data.
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
            // No data after `offset` at all.
            Err(Errno::NXIO) => self.hole_until = size,
            Err(_) => {
                self.sparse = false;
                self.hole_until = offset;
            }
        }
        self.hole_until
    }
}

/// Feeds a hole to a hash.
pub fn zeros(hasher: &mut Hasher, mut length: u64) {
    static ZEROS: [u8; CHUNK] = [0; CHUNK];
    while length > 0 {
        let now = length.min(CHUNK as u64) as usize;
        hasher.update(&ZEROS[..now]);
        length -= now as u64;
    }
}
