//! Access to the store for requests: a few open connections, replaced when the file is replaced. Nothing is written.

use assay_store::{Store, StoreError, is_url};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Open connections that are kept between requests.
const MOST_IDLE: usize = 4;

/// Device and inode of the store's file; `None` for a URL.
type FileIdentity = Option<(u64, u64)>;

/// The store, opened when a request needs it.
#[derive(Debug)]
pub(crate) struct StoreAccess {
    path: PathBuf,
    idle: Mutex<Vec<(FileIdentity, Store)>>,
}

impl StoreAccess {
    /// Names the store. Nothing is opened yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Returns the path or URL, without a password.
    pub(crate) fn shown(&self) -> String {
        let path: PathBuf = assay_store::shown(&self.path);
        path.to_string_lossy().into_owned()
    }

    /// Runs `read` on the store. Returns `None` when there is no such file.
    ///
    /// # Errors
    /// The store is locked, newer, damaged, or of another program; or `read` failed.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let identity = identify(&self.path);
        let Some(store) = self.take(identity)? else {
            return Ok(None);
        };
        let result = read(&store)?;
        // After an error the connection may be broken, so it is dropped.
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push((identity, store));
        }
        Ok(Some(result))
    }

    fn take(&self, identity: FileIdentity) -> Result<Option<Store>, StoreError> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // A store that was moved or replaced is not read through its old file.
        idle.retain(|(known, _)| *known == identity);
        if let Some((_, store)) = idle.pop() {
            return Ok(Some(store));
        }
        drop(idle);
        Store::open_existing(&self.path)
    }
}

fn identify(path: &Path) -> FileIdentity {
    if is_url(path) {
        return None;
    }
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}
