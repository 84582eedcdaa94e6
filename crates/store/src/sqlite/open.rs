//! Opens a store: checks the file and its version, and migrates an old store.

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
/// `PRAGMA application_id` of a store: "assa" in ASCII.
const APPLICATION: i64 = 0x6173_7361;
/// Migrations in order. The n-th migration produces version n.
const MIGRATIONS: [&str; 8] = [
    include_str!("../../migrations/0001.sql"),
    include_str!("../../migrations/0002.sql"),
    include_str!("../../migrations/0003.sql"),
    include_str!("../../migrations/0004.sql"),
    include_str!("../../migrations/0005.sql"),
    include_str!("../../migrations/0006.sql"),
    include_str!("../../migrations/0007.sql"),
    include_str!("../../migrations/0008.sql"),
];
/// Groups of tables, each with the first version that has them and the first version that no longer has them.
const TABLES: [(i64, i64, &[&str]); 8] = [
    (1, i64::MAX, &["run", "sample", "sqlite_sequence"]),
    (2, i64::MAX, &["trial", "trial_slot"]),
    (3, 4, &["study_run"]),
    (4, i64::MAX, &["machine", "study"]),
    (5, i64::MAX, &["host", "kept", "span", "subject", "value"]),
    (
        6,
        i64::MAX,
        &[
            "figure",
            "metric",
            "run_disk",
            "trial_disk",
            "trial_figure",
            "verdict",
        ],
    ),
    (7, i64::MAX, &["tune"]),
    (8, i64::MAX, &["observation"]),
];
/// Time limit for waiting until another process has filled the store which that process is creating.
const MAKING: Duration = Duration::from_secs(2);
/// Time limit for waiting until another process has finished writing.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Opens the database, and creates it if it does not exist.
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
    // Created here, so that only the owner can read it regardless of the umask.
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

/// Refuses an empty file, because a store that lost its content would look like a store without measurements. First
/// waits for a process that is creating the store.
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

/// Opens an existing database.
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
    // Text in the file must not call functions with side effects.
    connection
        .pragma_update(None, "trusted_schema", false)
        .map_err(fail)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Enables write-ahead logging, in which readers never wait for a writer, and a commit is one append and one fsync.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let mut left = 100;
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            // SQLite does not always wait for this switch.
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

/// Returns whether the file has content. Refuses other types of files, and files that are not SQLite databases. A pipe
/// is not opened, because opening would wait for the other end of the pipe.
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

/// Checks an existing file in read-only mode, so that a refused file stays unchanged.
fn look_first(path: &Path) -> Result<(), StoreError> {
    let fail = |source| StoreError::sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(LONGEST_WAIT).map_err(fail)?;
    match ours(&connection, path) {
        // After a crash only a writer can replay the journal. The check is repeated then.
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

/// Checks that the database is empty, or a store of a known version with all its tables.
fn ours(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    // Unchanged, because `look_first` distinguishes errors by their extended code.
    let fail = |source: rusqlite::Error| match needs_writer(&source) {
        true => StoreError::Sqlite {
            path: path.to_owned(),
            source,
        },
        false => StoreError::sqlite(path, source),
    };
    // The order matters: another process may create the store now in one commit. If the first read is after
    // that commit, so is the last.
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

/// Refuses a store that lacks its version or a table. Otherwise a migration would fail, or an empty list would look
/// like a store without measurements.
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
    let missing: Vec<&str> = own
        .iter()
        .copied()
        .filter(|table| !found.contains(*table))
        .collect();
    if !missing.is_empty() {
        return damaged(format!("these tables are missing: {}", missing.join(", ")));
    }
    let later: Vec<&str> = newest
        .difference(&own)
        .copied()
        .filter(|table| found.contains(*table))
        .collect();
    match later.is_empty() {
        true => Ok(()),
        false => damaged(format!(
            "its version is {version}, and these tables are of a later one: {}",
            later.join(", ")
        )),
    }
}

/// Returns the names of all tables in a database.
fn tables(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut all = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    all.query_map([], |row| row.get(0))?.collect()
}

/// Returns the tables that a store of this version has. A test compares them with the result of the migrations. The
/// list exists because running the migrations at each opening would take longer than everything else.
fn tables_of(version: i64) -> BTreeSet<&'static str> {
    let mut all = BTreeSet::new();
    for (since, until, names) in TABLES {
        if version >= since && version < until {
            all.extend(names);
        }
    }
    all
}

/// Runs all missing migrations in one transaction. If a second process does the same, it waits and then has nothing to
/// do.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_each_version_are_those_of_its_migrations() {
        let connection = Connection::open_in_memory().unwrap();
        assert!(tables_of(0).is_empty());
        for (version, migration) in (1..).zip(MIGRATIONS) {
            connection.execute_batch(migration).unwrap();
            let found = tables(&connection).unwrap();
            let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
            assert_eq!(found, tables_of(version), "version {version}");
        }
    }
}
