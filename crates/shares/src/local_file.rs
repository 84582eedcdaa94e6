//! The local test file. Its data does not compress, it is written with an fsync, and it is removed at the end.

use crate::ShareError;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Number of bytes that are written at once.
const CHUNK: usize = 1 << 20;

/// Returns `TMPDIR`; without this variable, `/var/tmp`. `/tmp` is not used, because it is often in memory and therefore
/// not comparable with a disk.
fn choose_directory() -> PathBuf {
    match std::env::var_os("TMPDIR") {
        Some(chosen) => PathBuf::from(chosen),
        None => PathBuf::from("/var/tmp"),
    }
}

/// A local file that is removed when it is dropped.
pub(crate) struct LocalFile {
    file: tempfile::NamedTempFile,
}

impl LocalFile {
    /// Writes a file of random bytes. Returns the file and the write rate in bytes per second. The time to generate the
    /// data is not counted.
    pub(crate) fn create(
        bytes: u64,
        seed: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Self, f64), ShareError> {
        let directory = choose_directory();
        let fail = |source| ShareError::File {
            path: directory.clone(),
            source,
        };
        let mut file = tempfile::Builder::new()
            .prefix(crate::FILE_PREFIX)
            .tempfile_in(&directory)
            .map_err(fail)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut chunk = vec![0; CHUNK];
        let mut left = bytes;
        let mut took = Duration::ZERO;
        while left > 0 {
            if stop() {
                return Err(ShareError::Stopped);
            }
            rng.fill_bytes(&mut chunk);
            let part = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let start = Instant::now();
            file.write_all(&chunk[..part]).map_err(fail)?;
            took += start.elapsed();
            left -= part as u64;
        }
        let start = Instant::now();
        file.as_file().sync_all().map_err(fail)?;
        took += start.elapsed();
        Ok((Self { file }, bytes as f64 / took.as_secs_f64()))
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn directory(&self) -> PathBuf {
        let parent = self.file.path().parent();
        parent.unwrap_or(Path::new("/")).to_owned()
    }
}
