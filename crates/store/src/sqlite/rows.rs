//! SQL rows in SQLite.

use super::Sqlite;
use crate::StoreError;
use crate::database::{Kind, RowStore};
use crate::rows::{PartRow, Rows};
use crate::tables::{self, Table, Value};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, TransactionBehavior, params};

impl RowStore for Sqlite {
    fn without_rows(&self, kind: Kind) -> Result<Vec<i64>, StoreError> {
        let sql = format!(
            "SELECT id FROM {} WHERE tabled IS NULL ORDER BY id",
            kind.table()
        );
        self.all(&sql, &[], |row| row.get(0))
    }

    fn put_rows(&mut self, kind: Kind, id: i64, rows: &Rows) -> Result<(), StoreError> {
        let behavior = TransactionBehavior::Immediate;
        let put = self
            .connection
            .transaction_with_behavior(behavior)
            .and_then(|transaction| {
                put_rows(&transaction, kind, id, rows)?;
                transaction.commit()
            });
        put.map_err(|source| self.fail(source))
    }

    fn table_rows(&self, table: &Table, of: &str) -> Result<Vec<Vec<Value>>, StoreError> {
        let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let sql = format!(
            "SELECT {} FROM {} WHERE {} = ?1 ORDER BY {}",
            names.join(", "),
            table.name,
            table.of,
            table.order
        );
        self.all(&sql, &[&of], |row| {
            let value =
                |(at, column): (usize, &tables::Column)| value(row.get_ref(at)?, column.kind, at);
            table.columns.iter().enumerate().map(value).collect()
        })
    }
}

fn value(value: ValueRef<'_>, kind: tables::Kind, at: usize) -> rusqlite::Result<Value> {
    let wrong = |error: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(at, value.data_type(), error)
    };
    if matches!(value, ValueRef::Null) {
        return Ok(Value::None);
    }
    let text = || value.as_str().map_err(|error| wrong(error.into()));
    let int = || value.as_i64().map_err(|error| wrong(error.into()));
    Ok(match kind {
        tables::Kind::Text => Value::Text(text()?.to_owned()),
        tables::Kind::Int => Value::Int(int()?),
        tables::Kind::Flag => Value::Flag(int()? != 0),
        tables::Kind::Float => Value::Float(value.as_f64().map_err(|error| wrong(error.into()))?),
        tables::Kind::Time => Value::Time(
            text()?
                .parse()
                .map_err(|error: jiff::Error| wrong(error.into()))?,
        ),
    })
}

fn put_rows(connection: &Connection, kind: Kind, id: i64, rows: &Rows) -> rusqlite::Result<()> {
    let table = kind.table();
    let found = match kind {
        Kind::Run => connection.execute(
            "UPDATE run SET tabled = ?2, assay = ?3, kernel = ?4, origin = ?5 WHERE id = ?1",
            params![id, rows.tabled, rows.assay, rows.kernel, rows.origin],
        )?,
        Kind::Trial => connection.execute(
            "UPDATE trial SET tabled = ?2, assay = ?3, kernel = ?4 WHERE id = ?1",
            params![id, rows.tabled, rows.assay, rows.kernel],
        )?,
        Kind::Study | Kind::Tune | Kind::Observation => return Ok(()),
    };
    // Another process removed the record.
    if found == 0 {
        return Ok(());
    }
    connection.execute(
        &format!("DELETE FROM {table}_disk WHERE {table} = ?1"),
        [id],
    )?;
    let sql = format!(
        "INSERT INTO {table}_disk ({table}, at, target, target_kind, fs_type, mount_point, mount_options,
                                   size_bytes, disk, model, rotational, scheduler)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
    );
    for (at, disk) in (0_i64..).zip(&rows.disks) {
        connection.prepare_cached(&sql)?.execute(params![
            id,
            at,
            disk.target,
            disk.target_kind,
            disk.fs_type,
            disk.mount_point,
            disk.mount_options,
            disk.size_bytes,
            disk.disk,
            disk.model,
            disk.rotational,
            disk.scheduler
        ])?;
    }
    if kind == Kind::Trial {
        connection.execute("DELETE FROM verdict WHERE trial = ?1", [id])?;
    }
    if let Some(verdict) = &rows.verdict {
        connection.execute(
            "INSERT INTO verdict (trial, verdict, metric, margin, same_sides, pairs, left_out, ratio, low, high, reason)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                id,
                verdict.verdict,
                verdict.metric,
                verdict.margin,
                verdict.same_sides,
                verdict.pairs,
                verdict.left_out,
                verdict.ratio,
                verdict.low,
                verdict.high,
                verdict.reason
            ],
        )?;
    }
    for part in &rows.parts {
        put_part_row(connection, kind, id, part)?;
    }
    Ok(())
}

/// Writes the columns and figures of an existing part.
pub(super) fn put_part_row(
    connection: &Connection,
    kind: Kind,
    id: i64,
    part: &PartRow,
) -> rusqlite::Result<()> {
    // A run has no sides: `?3` is empty and compared with itself.
    let (update, delete, insert) = match kind {
        Kind::Run => (
            "UPDATE sample SET round = ?5, workload = ?6, target = ?7, started = ?8, wall_ns = ?9, outcome = ?10,
                    validity = ?11, doubts = ?12 WHERE run = ?1 AND slot = ?2 AND ?3 = '' AND ?4 = ?2",
            "DELETE FROM figure WHERE run = ?1 AND slot = ?2 AND ?3 = ''",
            "INSERT INTO figure (run, slot, metric, value) SELECT ?1, ?2, ?4, ?5 WHERE ?3 = ''",
        ),
        Kind::Trial => (
            "UPDATE trial_slot SET slot = ?4, round = ?5, workload = ?6, target = ?7, started = ?8, wall_ns = ?9,
                    outcome = ?10, validity = ?11, doubts = ?12 WHERE trial = ?1 AND pair = ?2 AND side = ?3",
            "DELETE FROM trial_figure WHERE trial = ?1 AND pair = ?2 AND side = ?3",
            "INSERT INTO trial_figure (trial, pair, side, metric, value) VALUES (?1, ?2, ?3, ?4, ?5)",
        ),
        Kind::Study | Kind::Tune | Kind::Observation => return Ok(()),
    };
    let found = connection.prepare_cached(update)?.execute(params![
        id,
        part.at,
        part.side,
        part.slot,
        part.round,
        part.workload,
        part.target,
        part.started,
        part.wall_ns,
        part.outcome,
        part.validity,
        part.doubts
    ])?;
    if found == 0 {
        return Ok(());
    }
    connection
        .prepare_cached(delete)?
        .execute(params![id, part.at, part.side])?;
    for (metric, value) in &part.figures {
        connection
            .prepare_cached(insert)?
            .execute(params![id, part.at, part.side, metric, value])?;
    }
    Ok(())
}
