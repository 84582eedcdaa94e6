//! Replaces the PostgreSQL module in a build without PostgreSQL.

use crate::StoreError;
use crate::database::Database;
use crate::store_url::shown;
use std::path::Path;

/// Returns an error, because this build does not support PostgreSQL.
pub(crate) fn open(url: &Path) -> Result<Box<dyn Database>, StoreError> {
    Err(StoreError::NotBuilt { path: shown(url) })
}

/// Returns an error, because this build does not support PostgreSQL.
pub(crate) fn open_existing(url: &Path) -> Result<Option<Box<dyn Database>>, StoreError> {
    Err(StoreError::NotBuilt { path: shown(url) })
}
