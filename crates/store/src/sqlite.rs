//! Stores records in SQLite: tables, rows and transactions.

mod compact;
mod lists;
mod open;
mod rows;
mod spans;

pub(crate) use open::LONGEST_WAIT;

use crate::StoreError;
use crate::database::{Database, Kind, Part, Record};
use assay_model::Machine;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, TransactionBehavior, params};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A store in an SQLite file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    path: PathBuf,
    connection: Connection,
    /// Device and inode of the file when it was opened; `None` if they could not be read.
    file: Option<(u64, u64)>,
}

impl Sqlite {
    /// Opens the database, and creates it if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        open::open(path).map(|connection| Self::of(path, connection))
    }

    /// Opens an existing database.
    pub(crate) fn open_existing(path: &Path) -> Result<Self, StoreError> {
        open::wait_until_filled(path)?;
        open::open_existing(path).map(|connection| Self::of(path, connection))
    }

    fn of(path: &Path, connection: Connection) -> Self {
        Self {
            path: path.to_owned(),
            connection,
            file: identify(path),
        }
    }

    fn fail(&self, source: rusqlite::Error) -> StoreError {
        StoreError::sqlite(&self.path, source)
    }

    fn all<T>(
        &self,
        sql: &str,
        parameters: &[&dyn rusqlite::ToSql],
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let fail = |source| self.fail(source);
        let mut statement = self.connection.prepare_cached(sql).map_err(fail)?;
        let rows = statement.query_map(parameters, read);
        rows.and_then(Iterator::collect).map_err(fail)
    }
}

/// Returns the device and the inode of a file.
fn identify(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

impl Database for Sqlite {
    fn path(&self) -> &Path {
        &self.path
    }

    fn insert(
        &mut self,
        kind: Kind,
        record: &Record<'_>,
        machine: Option<&Machine>,
        parts: &[Part],
    ) -> Result<(i64, bool), StoreError> {
        let mut store = || {
            // Take the lock before reading, so that two simultaneous writers store a record once.
            let transaction = self
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let sql = format!("SELECT id FROM {} WHERE uid = ?1", kind.table());
            let known = transaction.query_row(&sql, [record.uid], |row| row.get(0));
            if let Some(id) = known.optional()? {
                return Ok((id, false));
            }
            let machine = machine
                .map(|machine| machine_number(&transaction, machine))
                .transpose()?;
            let sql = format!(
                "INSERT INTO {} (uid, machine, started, ended, state, name, about, slots, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                kind.table()
            );
            transaction.execute(
                &sql,
                params![
                    record.uid,
                    machine,
                    record.started.to_string(),
                    record.ended.map(|at| at.to_string()),
                    record.state,
                    record.name,
                    record.about,
                    i64::try_from(record.planned).unwrap_or(i64::MAX),
                    record.body
                ],
            )?;
            let id = transaction.last_insert_rowid();
            for part in parts {
                put_part(&transaction, kind, id, part)?;
            }
            transaction.commit()?;
            Ok((id, true))
        };
        let stored = store();
        stored.map_err(|source| self.fail(source))
    }

    fn update(&mut self, kind: Kind, record: &Record<'_>) -> Result<bool, StoreError> {
        if self.file.is_some() && identify(&self.path) != self.file {
            // SQLite would write to a file without a name.
            let path = self.path.clone();
            return Err(StoreError::Removed { path });
        }
        let sql = format!(
            "UPDATE {} SET ended = ?2, state = ?3, body = ?4{} WHERE uid = ?1",
            kind.table(),
            kind.without_rows_when_ended("?3")
        );
        let ended = record.ended.map(|at| at.to_string());
        let changed = self
            .connection
            .execute(&sql, params![record.uid, ended, record.state, record.body]);
        changed
            .map(|rows| rows > 0)
            .map_err(|source| self.fail(source))
    }

    fn put_part(&mut self, kind: Kind, id: i64, part: &Part) -> Result<bool, StoreError> {
        let put = self.connection.transaction().and_then(|transaction| {
            put_part(&transaction, kind, id, part)?;
            transaction.commit()
        });
        match put {
            Ok(()) => Ok(true),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Ok(false)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn delete(&mut self, kind: Kind, id: i64) -> Result<bool, StoreError> {
        let sql = format!("DELETE FROM {} WHERE id = ?1", kind.table());
        let changed = self.connection.execute(&sql, [id]);
        changed
            .map(|rows| rows > 0)
            .map_err(|source| self.fail(source))
    }

    fn body(&self, kind: Kind, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = format!("SELECT body FROM {} WHERE id = ?1", kind.table());
        let body = self.connection.query_row(&sql, [id], |row| row.get(0));
        body.optional().map_err(|source| self.fail(source))
    }

    fn number(&self, kind: Kind, uid: &str) -> Result<Option<i64>, StoreError> {
        let sql = format!("SELECT id FROM {} WHERE uid = ?1", kind.table());
        let found = self.connection.query_row(&sql, [uid], |row| row.get(0));
        found.optional().map_err(|source| self.fail(source))
    }

    fn bodies(&self, kind: Kind) -> Result<Vec<(i64, Vec<u8>)>, StoreError> {
        let sql = format!("SELECT id, body FROM {} ORDER BY id DESC", kind.table());
        self.all(&sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn names(&self, kind: Kind) -> Result<Vec<(i64, String, String)>, StoreError> {
        let sql = format!(
            "SELECT id, uid, name FROM {} ORDER BY id DESC",
            kind.table()
        );
        self.all(&sql, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
    }

    fn parts(&self, kind: Kind, id: i64) -> Result<Vec<(i64, Vec<u8>)>, StoreError> {
        let sql = match kind {
            Kind::Run => "SELECT slot, body FROM sample WHERE run = ?1 ORDER BY slot",
            Kind::Trial => "SELECT pair, body FROM trial_slot WHERE trial = ?1 ORDER BY pair, side",
            Kind::Study | Kind::Tune | Kind::Observation => return Ok(Vec::new()),
        };
        self.all(sql, &[&id], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn sizes(&self, kind: Kind) -> Result<Vec<(i64, u64)>, StoreError> {
        let parts = kind.parts_table().map_or("0".to_owned(), |(table, of)| {
            format!("coalesce((SELECT sum(length(body)) FROM {table} WHERE {of} = record.id), 0)")
        });
        let table = kind.table();
        let sql = format!("SELECT id, length(body) + {parts} FROM {table} AS record");
        self.all(&sql, &[], |row| {
            let bytes: i64 = row.get(1)?;
            Ok((row.get(0)?, u64::try_from(bytes).unwrap_or(0)))
        })
    }

    fn delete_many(&mut self, kind: Kind, ids: &[i64]) -> Result<u64, StoreError> {
        let mut delete = || {
            let transaction = self.connection.transaction()?;
            let sql = format!("DELETE FROM {} WHERE id = ?1", kind.table());
            let mut removed = 0;
            for id in ids {
                removed += transaction.prepare_cached(&sql)?.execute([id])?;
            }
            transaction.commit()?;
            Ok(removed as u64)
        };
        delete().map_err(|source| self.fail(source))
    }

    fn compact(&mut self) -> Result<Option<u64>, StoreError> {
        compact::compact(&self.connection).map_err(|source| self.fail(source))
    }

    fn machine(&self, kind: Kind, id: i64) -> Result<Option<Machine>, StoreError> {
        let sql = format!(
            "SELECT machine.uid, machine.name FROM {table} AS record
             JOIN machine ON machine.id = record.machine WHERE record.id = ?1",
            table = kind.table()
        );
        let found = self.connection.query_row(&sql, [id], |row| machine(row, 0));
        let found = found.optional().map_err(|source| self.fail(source))?;
        Ok(found.flatten())
    }
}

/// Reads uid and name of a machine from two neighbouring columns.
fn machine(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Machine>> {
    let id: Option<String> = row.get(at)?;
    let name = row.get(at + 1)?;
    Ok(id.map(|id| Machine { id, name }))
}

/// Returns the number of a machine in this store. If `machine` has a name, it replaces the stored name.
fn machine_number(connection: &Connection, machine: &Machine) -> rusqlite::Result<i64> {
    connection.query_row(
        "INSERT INTO machine (uid, name) VALUES (?1, ?2)
         ON CONFLICT (uid) DO UPDATE SET name = coalesce(excluded.name, machine.name)
         RETURNING id",
        params![machine.id, machine.name],
        |row| row.get(0),
    )
}

fn put_part(connection: &Connection, kind: Kind, id: i64, part: &Part) -> rusqlite::Result<()> {
    // `?4` comes last in both statements, so that both use the same parameters.
    let sql = match kind {
        Kind::Run => {
            "INSERT INTO sample (run, slot, body) VALUES (?1, ?2, ?4)
             ON CONFLICT (run, slot) DO UPDATE SET body = excluded.body"
        }
        Kind::Trial => {
            "INSERT INTO trial_slot (trial, pair, side, body) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (trial, pair, side) DO UPDATE SET body = excluded.body"
        }
        // These are stored whole.
        Kind::Study | Kind::Tune | Kind::Observation => return Ok(()),
    };
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute(params![id, part.at, part.side, part.body])?;
    rows::put_part_row(connection, kind, id, &part.row)
}
