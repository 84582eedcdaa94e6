//! What was made for one arm, taken away in the opposite order.

use crate::{ArmError, Place};
use assay_host::Host;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The arm's directory and everything in it.
pub(crate) struct Things<'a> {
    pub host: &'a dyn Host,
    dir: PathBuf,
}

impl<'a> Things<'a> {
    /// Makes the arm's directory, for this user alone.
    pub fn new(host: &'a dyn Host, place: &Place) -> Result<Self, ArmError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if place.name.is_empty() || place.name.starts_with("..") || !place.name.chars().all(plain) {
            return Err(ArmError::Refused {
                what: place.name.escape_debug().to_string(),
                reason: "the name of an arm consists of letters, digits, `-`, `_` and `.`"
                    .to_owned(),
            });
        }
        // Absolute and without links: /proc/mounts and losetup name things so.
        let parent = fs::canonicalize(&place.dir).map_err(ArmError::io(&place.dir))?;
        let dir = parent.join(&place.name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(ArmError::io(&dir))?;
        Ok(Self { host, dir })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Differs between arms, and is the same for the same arm.
    pub fn seed(&self) -> u64 {
        // FNV-1a.
        let bytes = self.dir.as_os_str().as_encoded_bytes();
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Drop for Things<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
