//! Read-only access to the store for requests. A few connections stay open, and are opened again if the file is
//! replaced.

use assay_store::{Store, StoreError, is_url};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of connections that stay open between requests.
const MOST_IDLE: usize = 4;

/// Device and inode of the store's file; `None` if the store is a URL.
type FileIdentity = Option<(u64, u64)>;

/// A mark of the store's content. Two equal marks mean equal content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentMark {
    /// Number of the connection that returned the mark, because marks of different connections cannot be compared.
    connection: u64,
    /// Mark from this connection; `None` without a store.
    mark: Option<String>,
}

/// The connection from which marks are read.
#[derive(Debug)]
struct MarkConnection {
    number: u64,
    identity: FileIdentity,
    store: Store,
}

/// Access to the store, which is opened when a request needs it for the first time.
#[derive(Debug)]
pub(crate) struct StoreAccess {
    path: PathBuf,
    idle: Mutex<Vec<(FileIdentity, Store)>>,
    marks: Mutex<Option<MarkConnection>>,
    /// Number of connections that were opened for marks.
    opened: AtomicU64,
}

impl StoreAccess {
    /// Sets the location of the store without opening it.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Mutex::new(Vec::new()),
            marks: Mutex::new(None),
            opened: AtomicU64::new(0),
        }
    }

    /// Returns a mark of the content, which costs much less than reading records.
    ///
    /// # Errors
    /// The store is locked or damaged, or belongs to a newer version or to another program.
    pub(crate) fn mark(&self) -> Result<ContentMark, StoreError> {
        let identity = identify(&self.path);
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        // After an error the connection may be broken, so it is put back only at the end.
        let known = marks.take().filter(|known| known.identity == identity);
        let known = match known {
            Some(known) => known,
            None => match Store::open_existing(&self.path)? {
                Some(store) => MarkConnection {
                    number: self.opened.fetch_add(1, Ordering::Relaxed) + 1,
                    identity,
                    store,
                },
                None => {
                    return Ok(ContentMark {
                        connection: 0,
                        mark: None,
                    });
                }
            },
        };
        let mark = ContentMark {
            connection: known.number,
            mark: Some(known.store.content_mark()?),
        };
        *marks = Some(known);
        Ok(mark)
    }

    /// Returns the location of the store: a path, or a URL without its password.
    pub(crate) fn shown(&self) -> String {
        let path: PathBuf = assay_store::shown(&self.path);
        path.to_string_lossy().into_owned()
    }

    /// Runs `read` on the store. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// The store is locked or damaged, or belongs to a newer version or to another program; or `read` failed.
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
