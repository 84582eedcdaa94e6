//! Stores records in PostgreSQL: tables, rows and transactions. Each operation is one transaction and can be repeated.
//! If the server restarts during an operation, the operation is repeated.

mod connect;
mod encryption;
mod guard;
mod lists;
mod migrate;
mod rows;
mod spans;
mod tls_pump;

use crate::StoreError;
use crate::database::{Database, Kind, Part, Record};
use ::postgres::error::SqlState;
use ::postgres::types::ToSql;
use ::postgres::{Client, GenericClient, Row};
use assay_model::Machine;
use connect::Address;
use guard::Guard;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for waiting until a server has restarted.
const LONGEST_RESTART: Duration = Duration::from_secs(30);

/// A store in a PostgreSQL database.
struct Postgres {
    address: Address,
    /// Connection to the server, and the guard that limits its answers.
    client: Mutex<(Client, Guard)>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Postgres")
            .field(&self.address.shown)
            .finish()
    }
}

/// Error of the server or the connection.
type Failed = ::postgres::Error;

/// Opens the database and creates the tables if necessary.
pub(crate) fn open(url: &Path) -> Result<Box<dyn Database>, StoreError> {
    let address = Address::read(url)?;
    let (mut client, guard) = address.connect()?;
    migrate::up(&address, &mut client, &guard)?;
    Ok(Box::new(Postgres::of(address, client, guard)))
}

/// Opens the database; returns `None` if it contains no store.
pub(crate) fn open_existing(url: &Path) -> Result<Option<Box<dyn Database>>, StoreError> {
    let address = Address::read(url)?;
    let (mut client, guard) = address.connect()?;
    if !migrate::is_there(&address, &mut client, &guard)? {
        return Ok(None);
    }
    migrate::up(&address, &mut client, &guard)?;
    Ok(Some(Box::new(Postgres::of(address, client, guard))))
}

impl Postgres {
    fn of(address: Address, client: Client, guard: Guard) -> Self {
        Self {
            address,
            client: Mutex::new((client, guard)),
        }
    }

    /// Runs a repeatable operation. If the connection is lost, reconnects and repeats the operation once.
    fn done<T>(
        &self,
        mut what: impl FnMut(&mut Client) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        let mut held = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let (client, guard) = &mut *held;
        let failed = match what(client) {
            Ok(done) => return Ok(done),
            Err(failed) if guard.reason().is_some() || !is_lost(client, &failed) => {
                return Err(self.address.guarded_error(&failed, guard));
            }
            Err(failed) => failed,
        };
        let begun = Instant::now();
        loop {
            match self.address.connect() {
                Ok(new) => {
                    *held = new;
                    let (client, guard) = &mut *held;
                    let done = what(client);
                    return done.map_err(|failed| self.address.guarded_error(&failed, guard));
                }
                Err(_) if begun.elapsed() < LONGEST_RESTART => {
                    std::thread::sleep(Duration::from_millis(250));
                }
                Err(_) => return Err(self.address.error(&failed)),
            }
        }
    }

    fn all<T>(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
        read: impl Fn(&Row) -> T,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.done(|client| client.query(sql, parameters))?;
        Ok(rows.iter().map(read).collect())
    }

    fn one<T>(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
        read: impl Fn(&Row) -> T,
    ) -> Result<Option<T>, StoreError> {
        let row = self.done(|client| client.query_opt(sql, parameters))?;
        Ok(row.as_ref().map(read))
    }
}

/// Returns whether the server has gone or is shutting down.
fn is_lost(client: &Client, failed: &Failed) -> bool {
    let ends = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
    ];
    client.is_closed() || failed.code().is_some_and(|code| ends.contains(code))
}

impl Database for Postgres {
    fn path(&self) -> &Path {
        &self.address.shown
    }

    fn insert(
        &mut self,
        kind: Kind,
        record: &Record<'_>,
        machine: Option<&Machine>,
        parts: &[Part],
    ) -> Result<(i64, bool), StoreError> {
        let ended = record.ended.map(|at| at.to_string());
        let planned = i64::try_from(record.planned).unwrap_or(i64::MAX);
        let sql = format!(
            "INSERT INTO assay.{} (uid, machine, started, ended, state, name, about, slots, body)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (uid) DO NOTHING RETURNING id",
            kind.table()
        );
        self.done(|client| {
            let mut transaction = client.transaction()?;
            let machine = machine
                .map(|machine| machine_number(&mut transaction, machine))
                .transpose()?;
            let row = transaction.query_opt(
                &sql,
                &[
                    &record.uid,
                    &machine,
                    &record.started.to_string(),
                    &ended,
                    &record.state,
                    &record.name,
                    &record.about,
                    &planned,
                    &record.body,
                ],
            )?;
            let Some(row) = row else {
                let sql = format!("SELECT id FROM assay.{} WHERE uid = $1", kind.table());
                let known = transaction.query_one(&sql, &[&record.uid])?;
                return Ok((known.get(0), false));
            };
            let id = row.get(0);
            for part in parts {
                put_part(&mut transaction, kind, id, part)?;
            }
            let all: Vec<_> = parts.iter().map(|part| &part.row).collect();
            rows::put_part_rows(&mut transaction, kind, id, &all)?;
            transaction.commit()?;
            Ok((id, true))
        })
    }

    fn update(&mut self, kind: Kind, record: &Record<'_>) -> Result<bool, StoreError> {
        let sql = format!(
            "UPDATE assay.{} SET ended = $2, state = $3, body = $4{} WHERE uid = $1",
            kind.table(),
            kind.without_rows_when_ended("$3")
        );
        let ended = record.ended.map(|at| at.to_string());
        let rows = self.done(|client| {
            client.execute(&sql, &[&record.uid, &ended, &record.state, &record.body])
        })?;
        Ok(rows > 0)
    }

    fn put_part(&mut self, kind: Kind, id: i64, part: &Part) -> Result<bool, StoreError> {
        self.done(|client| {
            let mut transaction = client.transaction()?;
            match put_part(&mut transaction, kind, id, part) {
                Err(error) if error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION) => {
                    return Ok(false);
                }
                other => other?,
            }
            rows::put_part_rows(&mut transaction, kind, id, &[&part.row])?;
            transaction.commit().map(|()| true)
        })
    }

    fn delete(&mut self, kind: Kind, id: i64) -> Result<bool, StoreError> {
        let sql = format!("DELETE FROM assay.{} WHERE id = $1", kind.table());
        let rows = self.done(|client| client.execute(&sql, &[&id]))?;
        Ok(rows > 0)
    }

    fn body(&self, kind: Kind, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = format!("SELECT body FROM assay.{} WHERE id = $1", kind.table());
        self.one(&sql, &[&id], |row| row.get(0))
    }

    fn number(&self, kind: Kind, uid: &str) -> Result<Option<i64>, StoreError> {
        let sql = format!("SELECT id FROM assay.{} WHERE uid = $1", kind.table());
        self.one(&sql, &[&uid], |row| row.get(0))
    }

    fn bodies(&self, kind: Kind) -> Result<Vec<(i64, Vec<u8>)>, StoreError> {
        let sql = format!(
            "SELECT id, body FROM assay.{} ORDER BY id DESC",
            kind.table()
        );
        self.all(&sql, &[], |row| (row.get(0), row.get(1)))
    }

    fn names(&self, kind: Kind) -> Result<Vec<(i64, String, String)>, StoreError> {
        let sql = format!(
            "SELECT id, uid, name FROM assay.{} ORDER BY id DESC",
            kind.table()
        );
        self.all(&sql, &[], |row| (row.get(0), row.get(1), row.get(2)))
    }

    fn parts(&self, kind: Kind, id: i64) -> Result<Vec<(i64, Vec<u8>)>, StoreError> {
        let sql = match kind {
            Kind::Run => "SELECT slot, body FROM assay.sample WHERE run = $1 ORDER BY slot",
            Kind::Trial => {
                "SELECT pair, body FROM assay.trial_slot WHERE trial = $1 ORDER BY pair, side COLLATE \"C\""
            }
            Kind::Study | Kind::Tune | Kind::Observation => return Ok(Vec::new()),
        };
        self.all(sql, &[&id], |row| (row.get(0), row.get(1)))
    }

    fn sizes(&self, kind: Kind) -> Result<Vec<(i64, u64)>, StoreError> {
        let (parts, sums) = match kind.parts_table() {
            None => ("0::bigint", String::new()),
            // Summed by one query for all records, not one query each.
            Some((table, of)) => (
                "coalesce(parts.bytes, 0)::bigint",
                format!(
                    "LEFT JOIN (SELECT {of} AS id, sum(length(body)) AS bytes FROM assay.{table} GROUP BY {of})
                     AS parts ON parts.id = record.id"
                ),
            ),
        };
        let sql = format!(
            "SELECT record.id, length(record.body) + {parts} FROM assay.{} AS record {sums}",
            kind.table()
        );
        self.all(&sql, &[], |row| {
            let bytes: i64 = row.get(1);
            (row.get(0), u64::try_from(bytes).unwrap_or(0))
        })
    }

    fn delete_many(&mut self, kind: Kind, ids: &[i64]) -> Result<u64, StoreError> {
        let sql = format!("DELETE FROM assay.{} WHERE id = ANY($1)", kind.table());
        self.done(|client| client.execute(&sql, &[&ids]))
    }

    fn compact(&mut self) -> Result<Option<u64>, StoreError> {
        // The server's autovacuum frees the space of removed rows for new ones.
        Ok(None)
    }

    fn machine(&self, kind: Kind, id: i64) -> Result<Option<Machine>, StoreError> {
        let sql = format!(
            "SELECT machine.uid, machine.name FROM assay.{} AS record
             JOIN assay.machine ON machine.id = record.machine WHERE record.id = $1",
            kind.table()
        );
        Ok(self.one(&sql, &[&id], |row| machine(row, 0))?.flatten())
    }
}

/// Reads uid and name of a machine from two neighbouring columns.
fn machine(row: &Row, at: usize) -> Option<Machine> {
    let id: Option<String> = row.get(at);
    let name = row.get(at + 1);
    id.map(|id| Machine { id, name })
}

/// Returns the number of a machine in this store. If `machine` has a name, it replaces the stored name.
fn machine_number(client: &mut impl GenericClient, machine: &Machine) -> Result<i64, Failed> {
    let row = client.query_one(
        "INSERT INTO assay.machine (uid, name) VALUES ($1, $2)
         ON CONFLICT (uid) DO UPDATE SET name = coalesce(excluded.name, machine.name)
         RETURNING id",
        &[&machine.id, &machine.name],
    )?;
    Ok(row.get(0))
}

fn put_part(
    client: &mut impl GenericClient,
    kind: Kind,
    id: i64,
    part: &Part,
) -> Result<(), Failed> {
    let at = i64::from(part.at);
    match kind {
        Kind::Run => client.execute(
            "INSERT INTO assay.sample (run, slot, body) VALUES ($1, $2, $3)
             ON CONFLICT (run, slot) DO UPDATE SET body = excluded.body",
            &[&id, &at, &part.body],
        )?,
        Kind::Trial => client.execute(
            "INSERT INTO assay.trial_slot (trial, pair, side, body) VALUES ($1, $2, $3, $4)
             ON CONFLICT (trial, pair, side) DO UPDATE SET body = excluded.body",
            &[&id, &at, &part.side, &part.body],
        )?,
        // These are stored whole.
        Kind::Study | Kind::Tune | Kind::Observation => return Ok(()),
    };
    Ok(())
}
