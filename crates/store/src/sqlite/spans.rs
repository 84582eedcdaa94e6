//! History of machines in SQLite.

use super::Sqlite;
use crate::StoreError;
use crate::database::Timeline;
use crate::spans::listing::{Dialect, Found, counts, sql, values, way};
use crate::spans::{About, Ask, Changes, Host, Row, Span};
use rusqlite::{OptionalExtension as _, ToSql, Transaction, TransactionBehavior, params};

const DIALECT: Dialect = Dialect {
    schema: "",
    hashed: false,
    lateral: false,
};

const HOST: &str = "SELECT name, first, last, scope, scoped, digest FROM host";

fn host(row: &rusqlite::Row<'_>) -> rusqlite::Result<Host> {
    Ok(Host {
        name: row.get(0)?,
        first: row.get(1)?,
        last: row.get(2)?,
        scope: row.get(3)?,
        scoped: row.get(4)?,
        digest: row.get(5)?,
    })
}

impl Timeline for Sqlite {
    fn host(&self, name: &str) -> Result<Option<Host>, StoreError> {
        let found = self.all(&format!("{HOST} WHERE name = ?1"), &[&name], host)?;
        Ok(found.into_iter().next())
    }

    fn hosts(&self) -> Result<Vec<Host>, StoreError> {
        self.all(&format!("{HOST} ORDER BY name"), &[], host)
    }

    fn rows(&self, name: &str, newest: bool) -> Result<Vec<Row>, StoreError> {
        let newest = match newest {
            true => {
                "AND NOT EXISTS (SELECT 1 FROM span AS next WHERE next.host = span.host
                 AND next.subject = span.subject AND next.since > span.since)"
            }
            false => "",
        };
        let sql = format!(
            "SELECT subject.kind, subject.key, span.since, span.seen, value.text
             FROM span JOIN host ON host.id = span.host JOIN subject ON subject.id = span.subject
             LEFT JOIN value ON value.id = span.value
             WHERE host.name = ?1 {newest} ORDER BY 1, 2, 3"
        );
        self.all(&sql, &[&name], |row| {
            Ok(Row {
                key: (About::of(row.get(0)?), row.get(1)?),
                since: row.get(2)?,
                seen: row.get(3)?,
                value: row.get(4)?,
            })
        })
    }

    fn write(&mut self, changes: &Changes<'_>) -> Result<bool, StoreError> {
        let behavior = TransactionBehavior::Immediate;
        let written = self
            .connection
            .transaction_with_behavior(behavior)
            .and_then(|transaction| match write(&transaction, changes)? {
                true => transaction.commit().map(|()| true),
                false => Ok(false),
            });
        written.map_err(|source| self.fail(source))
    }

    fn spans(&self, ask: &Ask<'_>) -> Result<Vec<Span>, StoreError> {
        let key = ask.key.unwrap_or_default();
        let counted = counts(ask, DIALECT.schema).replace('$', "?");
        let counted = self.all(&counted, &[&key], |row| {
            Ok([row.get(0)?, row.get(1)?, row.get(2)?])
        })?;
        let way = way(ask, counted.into_iter().next().unwrap_or_default());
        let values = values(ask);
        let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
        let found = self.all(&sql(ask, way, DIALECT).replace('$', "?"), &values, |row| {
            Ok(Found {
                host: row.get(0)?,
                kind: row.get(1)?,
                key: row.get(2)?,
                since: row.get(3)?,
                seen: row.get(4)?,
                value: row.get(5)?,
                last: row.get(6)?,
                until: row.get(7)?,
                before_since: row.get(8)?,
                before_seen: row.get(9)?,
                before: row.get(10)?,
            })
        })?;
        Ok(found.into_iter().map(Found::span).collect())
    }

    fn forget_host(&mut self, name: &str) -> Result<bool, StoreError> {
        let gone = self
            .connection
            .execute("DELETE FROM host WHERE name = ?1", [name]);
        gone.map(|rows| rows > 0)
            .map_err(|source| self.fail(source))
    }

    fn days(&self) -> Result<Option<u32>, StoreError> {
        let found = self
            .connection
            .query_row("SELECT days FROM kept", [], |row| row.get(0));
        found.optional().map_err(|source| self.fail(source))
    }

    fn keep_days(&mut self, days: u32) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO kept (number, days) VALUES (1, ?1)";
        let done = self.connection.execute(sql, [days]);
        done.map(|_| ()).map_err(|source| self.fail(source))
    }
}

fn write(transaction: &Transaction<'_>, changes: &Changes<'_>) -> rusqlite::Result<bool> {
    let new = changes.host;
    let known = transaction
        .query_row(&format!("{HOST} WHERE name = ?1"), [&new.name], host)
        .optional()?;
    if known.as_ref() != changes.expected {
        return Ok(false);
    }
    let id: i64 = transaction.query_row(
        "INSERT INTO host (name, first, last, scope, scoped, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (name) DO UPDATE SET first = excluded.first, last = excluded.last,
            scope = excluded.scope, scoped = excluded.scoped, digest = excluded.digest
         RETURNING id",
        params![new.name, new.first, new.last, new.scope, new.scoped, new.digest],
        |row| row.get(0),
    )?;
    if changes.instead {
        transaction.execute("DELETE FROM span WHERE host = ?1", [id])?;
    }
    for row in changes.rows {
        let (about, key) = (row.key.0.number(), &row.key.1);
        let mut subject = transaction
            .prepare_cached("INSERT OR IGNORE INTO subject (kind, key) VALUES (?1, ?2)")?;
        subject.execute(params![about, key])?;
        if let Some(text) = &row.value {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO value (text) VALUES (?1)")?
                .execute([text])?;
        }
        let mut span = transaction.prepare_cached(
            "INSERT OR REPLACE INTO span (host, subject, since, seen, value) VALUES (?1,
                (SELECT id FROM subject WHERE kind = ?2 AND key = ?3), ?4, ?5,
                (SELECT id FROM value WHERE text = ?6))",
        )?;
        span.execute(params![id, about, key, row.since, row.seen, row.value])?;
    }
    if !changes.rows.is_empty() {
        transaction.execute(
            "DELETE FROM span WHERE host = ?1 AND seen < ?2 AND EXISTS (SELECT 1 FROM span AS next
             WHERE next.host = span.host AND next.subject = span.subject AND next.since > span.since)",
            [id, changes.before],
        )?;
    }
    Ok(true)
}
