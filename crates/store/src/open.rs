//! Opening: whose file it is, which version, and bringing an old one up to date.

use crate::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

/// `PRAGMA application_id` of a store: "assa".
const APPLICATION: i64 = 0x6173_7361;
/// Migrations in order; the n-th brings a store to version n.
const MIGRATIONS: [&str; 1] = [include_str!("../migrations/0001.sql")];
/// How long one process waits for another that is writing.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir);
        made.map_err(|source| StoreError::Directory {
            path: dir.to_owned(),
            source,
        })?;
    }
    if path.is_dir() {
        return Err(foreign(path, "it is a directory"));
    }
    look_first(path)?;
    // Created by us so that nobody else can read it, also with a lax umask.
    let _ = fs::File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    let fail = |source| refused(path, source);
    let mut connection = Connection::open(path).map_err(fail)?;
    connection.busy_timeout(PATIENCE).map_err(fail)?;
    connection
        .pragma_update(None, "journal_mode", "wal")
        .map_err(fail)?;
    connection
        .pragma_update(None, "synchronous", "full")
        .map_err(fail)?;
    connection
        .pragma_update(None, "foreign_keys", true)
        .map_err(fail)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

fn foreign(path: &Path, reason: impl Into<String>) -> StoreError {
    StoreError::Foreign {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

/// SQLite's error, or "not a database" in our words.
fn refused(path: &Path, source: rusqlite::Error) -> StoreError {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => foreign(path, "it is not a SQLite database"),
        _ => StoreError::Sqlite {
            path: path.to_owned(),
            source,
        },
    }
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Looks at an existing file read-only, so that what is refused has not been touched.
fn look_first(path: &Path) -> Result<(), StoreError> {
    if !fs::metadata(path).is_ok_and(|meta| meta.len() > 0) {
        return Ok(());
    }
    let fail = |source| refused(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(PATIENCE).map_err(fail)?;
    let application = pragma(&connection, "application_id").map_err(fail)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(fail)?;
    if application != APPLICATION && tables > 0 {
        return Err(foreign(
            path,
            "it is the SQLite database of another program",
        ));
    }
    let found = pragma(&connection, "user_version").map_err(fail)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    Ok(())
}

/// All missing migrations in one transaction; a second process waits and then has nothing to do.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |source| refused(path, source);
    let current = |connection: &Connection| {
        Ok(usize::try_from(pragma(connection, "user_version")?).unwrap_or(0))
    };
    if current(connection).map_err(fail)? >= MIGRATIONS.len() {
        return Ok(());
    }
    let behavior = rusqlite::TransactionBehavior::Exclusive;
    let transaction = connection
        .transaction_with_behavior(behavior)
        .map_err(fail)?;
    let from = current(&transaction).map_err(fail)?;
    for migration in MIGRATIONS.iter().skip(from) {
        transaction.execute_batch(migration).map_err(fail)?;
    }
    transaction
        .pragma_update(None, "application_id", APPLICATION)
        .map_err(fail)?;
    transaction
        .pragma_update(None, "user_version", MIGRATIONS.len() as i64)
        .map_err(fail)?;
    transaction.commit().map_err(fail)
}
