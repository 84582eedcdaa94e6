//! Stands in for PostgreSQL in a build without it.

use crate::StoreError;
use crate::database::Database;
use crate::store_url::shown;
use std::path::Path;

/// Fails: this build has no PostgreSQL.
pub(crate) fn open(url: &Path) -> Result<Box<dyn Database>, StoreError> {
    Err(StoreError::NotBuilt { path: shown(url) })
}

/// Fails: this build has no PostgreSQL.
pub(crate) fn open_existing(url: &Path) -> Result<Option<Box<dyn Database>>, StoreError> {
    Err(StoreError::NotBuilt { path: shown(url) })
}
