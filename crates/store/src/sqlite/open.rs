//! Opening: whose file it is, which version, and bringing an old one up to date.

use crate::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

/// First bytes of every SQLite database (SQLite file format, 1.3.1).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// `PRAGMA application_id` of a store: "assa".
const APPLICATION: i64 = 0x6173_7361;
/// Migrations in order; the n-th brings a store to version n.
const MIGRATIONS: [&str; 7] = [
    include_str!("../../migrations/0001.sql"),
    include_str!("../../migrations/0002.sql"),
    include_str!("../../migrations/0003.sql"),
    include_str!("../../migrations/0004.sql"),
    include_str!("../../migrations/0005.sql"),
    include_str!("../../migrations/0006.sql"),
    include_str!("../../migrations/0007.sql"),
];
/// How long a process that makes a store may take until its file has bytes.
const MAKING: Duration = Duration::from_secs(2);
/// How long one process waits for another that is writing.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Opens what is there; makes it first when there is nothing.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
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
    // Made by us so that nobody else can read it, also with a lax umask.
    let made = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(StoreError::file(path, &error))
        }
        _ => open_existing(path),
    }
}

/// Refuses a file without a byte: a store that was lost would look as if nothing had been measured. One that another
/// process makes just now is waited for.
pub(super) fn wait_until_filled(path: &Path) -> Result<(), StoreError> {
    let is_empty = || fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == 0);
    let is_new = || {
        let made = fs::metadata(path).and_then(|meta| meta.modified());
        made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < MAKING))
    };
    while is_empty() {
        if !is_new() {
            return Err(StoreError::Incomplete {
                path: path.to_owned(),
                reason: "the file is empty".to_owned(),
                way_out: "Put a copy of it back, or remove it and begin a new one".to_owned(),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Opens what is there.
pub(super) fn open_existing(path: &Path) -> Result<Connection, StoreError> {
    if look_at_file(path)? {
        look_first(path)?;
    }
    let fail = |source| StoreError::sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(LONGEST_WAIT).map_err(fail)?;
    write_ahead(&connection).map_err(fail)?;
    connection
        .pragma_update(None, "synchronous", "full")
        .map_err(fail)?;
    connection
        .pragma_update(None, "foreign_keys", true)
        .map_err(fail)?;
    // Text in the file cannot call functions with side effects.
    connection
        .pragma_update(None, "trusted_schema", false)
        .map_err(fail)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Readers never wait for a writer, and a commit is one append and one fsync.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let mut left = 100;
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            // SQLite does not always wait by itself for this switch.
            Err(error)
                if left > 0
                    && error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) =>
            {
                left -= 1;
                std::thread::sleep(Duration::from_millis(50));
            }
            result => return result,
        }
    }
}

/// Whether the file holds anything; refuses what is no file or no SQLite database. A pipe is not
/// opened: that would wait for its other end.
fn look_at_file(path: &Path) -> Result<bool, StoreError> {
    let fail = |error: std::io::Error| StoreError::file(path, &error);
    if let Err(error) = assay_host::check_links(path) {
        return Err(foreign(path, error.to_string()));
    }
    let meta = fs::metadata(path).map_err(fail)?;
    if meta.is_dir() {
        return Err(foreign(path, "it is a directory"));
    }
    if !meta.is_file() {
        return Err(foreign(path, "it is not a regular file"));
    }
    let mut start = Vec::new();
    let file = fs::File::open(path).map_err(fail)?;
    file.take(MAGIC.len() as u64)
        .read_to_end(&mut start)
        .map_err(fail)?;
    if !start.is_empty() && start != MAGIC {
        return Err(foreign(path, "it is not a SQLite database"));
    }
    Ok(!start.is_empty())
}

fn foreign(path: &Path, reason: impl Into<String>) -> StoreError {
    StoreError::Foreign {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Looks at an existing file read-only, so that what is refused has not been touched.
fn look_first(path: &Path) -> Result<(), StoreError> {
    let fail = |source| StoreError::sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(LONGEST_WAIT).map_err(fail)?;
    match ours(&connection, path) {
        // A crash left a journal that only a writer can play back; it is looked at again then.
        Err(StoreError::Sqlite { source, .. }) if needs_writer(&source) => Ok(()),
        result => result,
    }
}

fn needs_writer(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_READONLY_RECOVERY, SQLITE_READONLY_ROLLBACK};
    error.sqlite_error().is_some_and(|error| {
        [SQLITE_READONLY_RECOVERY, SQLITE_READONLY_ROLLBACK].contains(&error.extended_code)
    })
}

/// Whether the database is a store of a version that we know, or blank.
fn ours(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    // Kept as it is: `look_first` tells errors apart by their extended code.
    let fail = |source: rusqlite::Error| match needs_writer(&source) {
        true => StoreError::Sqlite {
            path: path.to_owned(),
            source,
        },
        false => StoreError::sqlite(path, source),
    };
    // In this order: another process may make the store just now, in one commit. Whatever is read
    // first from after that commit, the last one is from after it too.
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(fail)?;
    let found = pragma(connection, "user_version").map_err(fail)?;
    let application = pragma(connection, "application_id").map_err(fail)?;
    let blank = application == 0 && found == 0 && tables == 0;
    if application != APPLICATION && !blank {
        return Err(foreign(
            path,
            "it is the SQLite database of another program",
        ));
    }
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    match blank {
        true => Ok(()),
        false => check_tables(connection, path, found),
    }
}

/// Refuses a store whose version is gone, or that has not the tables of its version: a migration would fail on it, or
/// an empty list would look as if nothing had been measured.
fn check_tables(connection: &Connection, path: &Path, version: i64) -> Result<(), StoreError> {
    let fail = |source| StoreError::sqlite(path, source);
    let damaged = |reason: String| {
        Err(StoreError::Incomplete {
            path: path.to_owned(),
            reason,
            way_out: "Put a copy of it back, or move it away and begin a new one; `sqlite3 FILE .dump` shows what it holds"
                .to_owned(),
        })
    };
    if version < 1 {
        return damaged(format!("its version (PRAGMA user_version) is {version}"));
    }
    let found = tables(connection).map_err(fail)?;
    let (own, newest) = (tables_of(version), MIGRATIONS.len() as i64);
    let newest = match version == newest {
        true => own.clone(),
        false => tables_of(newest),
    };
    let missing: Vec<&str> = own.difference(&found).map(String::as_str).collect();
    if !missing.is_empty() {
        return damaged(format!("these tables are missing: {}", missing.join(", ")));
    }
    let later = newest
        .difference(&own)
        .filter(|table| found.contains(*table));
    let later: Vec<&str> = later.map(String::as_str).collect();
    match later.is_empty() {
        true => Ok(()),
        false => damaged(format!(
            "its version is {version}, and these tables are of a later one: {}",
            later.join(", ")
        )),
    }
}

/// Names of the tables in a database.
fn tables(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut all = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    all.query_map([], |row| row.get(0))?.collect()
}

/// Names of the tables that a store of a version has, as its migrations make them.
fn tables_of(version: i64) -> BTreeSet<String> {
    let made = || -> rusqlite::Result<BTreeSet<String>> {
        let connection = Connection::open_in_memory()?;
        for migration in MIGRATIONS
            .iter()
            .take(usize::try_from(version).unwrap_or(0))
        {
            connection.execute_batch(migration)?;
        }
        tables(&connection)
    };
    made().unwrap_or_default()
}

/// All missing migrations in one transaction; a second process waits and then has nothing to do.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |source| StoreError::sqlite(path, source);
    ours(connection, path)?;
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
    ours(&transaction, path)?;
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
