//! SQL rows in PostgreSQL. They are sent as arrays, so that one statement writes the rows of all parts of a record.

use super::{Failed, Postgres};
use crate::StoreError;
use crate::database::{Kind, RowStore};
use crate::rows::{PartRow, Rows};
use crate::tables::{self, Table, Value};
use ::postgres::{GenericClient, Row};
use jiff::Timestamp;

/// Removes NUL characters, which PostgreSQL does not permit in text.
fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn some(value: Option<&String>) -> Option<String> {
    value.map(|value| text(value))
}

impl RowStore for Postgres {
    fn without_rows(&self, kind: Kind) -> Result<Vec<i64>, StoreError> {
        let sql = format!(
            "SELECT id FROM assay.{} WHERE tabled IS NULL ORDER BY id",
            kind.table()
        );
        self.all(&sql, &[], |row| row.get(0))
    }

    fn put_rows(&mut self, kind: Kind, id: i64, rows: &Rows) -> Result<(), StoreError> {
        self.done(|client| {
            let mut transaction = client.transaction()?;
            put_rows(&mut transaction, kind, id, rows)?;
            transaction.commit()
        })
    }

    fn table_rows(&self, table: &Table, of: &str) -> Result<Vec<Vec<Value>>, StoreError> {
        let column = |column: &tables::Column| match column.kind {
            tables::Kind::Time => {
                format!("(extract(epoch FROM {}) * 1000000)::bigint", column.name)
            }
            _ => column.name.to_owned(),
        };
        let columns: Vec<String> = table.columns.iter().map(column).collect();
        let sql = format!(
            "SELECT {} FROM assay.{} WHERE {} = $1 ORDER BY {}",
            columns.join(", "),
            table.name,
            table.of,
            table.order
        );
        self.all(&sql, &[&of], |row| {
            let columns = table.columns.iter().enumerate();
            columns
                .map(|(at, column)| value(row, at, column.kind))
                .collect()
        })
    }
}

fn value(row: &Row, at: usize, kind: tables::Kind) -> Value {
    let found = match kind {
        tables::Kind::Text => row.get::<_, Option<String>>(at).map(Value::Text),
        tables::Kind::Int => row.get::<_, Option<i64>>(at).map(Value::Int),
        tables::Kind::Float => row.get::<_, Option<f64>>(at).map(Value::Float),
        tables::Kind::Flag => row.get::<_, Option<bool>>(at).map(Value::Flag),
        tables::Kind::Time => row
            .get::<_, Option<i64>>(at)
            .and_then(|microsecond| Timestamp::from_microsecond(microsecond).ok())
            .map(Value::Time),
    };
    found.unwrap_or(Value::None)
}

fn put_rows(
    client: &mut impl GenericClient,
    kind: Kind,
    id: i64,
    rows: &Rows,
) -> Result<(), Failed> {
    let table = kind.table();
    let (assay, kernel) = (some(rows.assay.as_ref()), some(rows.kernel.as_ref()));
    let found = match kind {
        Kind::Run => client.execute(
            "UPDATE assay.run SET tabled = $2, assay = $3, kernel = $4, origin = $5 WHERE id = $1",
            &[&id, &rows.tabled, &assay, &kernel, &rows.origin],
        )?,
        Kind::Trial => client.execute(
            "UPDATE assay.trial SET tabled = $2, assay = $3, kernel = $4 WHERE id = $1",
            &[&id, &rows.tabled, &assay, &kernel],
        )?,
        Kind::Study | Kind::Tune | Kind::Observation => return Ok(()),
    };
    // Another process removed the record.
    if found == 0 {
        return Ok(());
    }
    client.execute(
        &format!("DELETE FROM assay.{table}_disk WHERE {table} = $1"),
        &[&id],
    )?;
    let sql = format!(
        "INSERT INTO assay.{table}_disk ({table}, at, target, target_kind, fs_type, mount_point, mount_options,
                                         size_bytes, disk, model, rotational, scheduler)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
    );
    for (at, disk) in (0_i64..).zip(&rows.disks) {
        client.execute(
            &sql,
            &[
                &id,
                &at,
                &text(&disk.target),
                &disk.target_kind,
                &some(disk.fs_type.as_ref()),
                &some(disk.mount_point.as_ref()),
                &some(disk.mount_options.as_ref()),
                &disk.size_bytes,
                &some(disk.disk.as_ref()),
                &some(disk.model.as_ref()),
                &disk.rotational,
                &some(disk.scheduler.as_ref()),
            ],
        )?;
    }
    if kind == Kind::Trial {
        client.execute("DELETE FROM assay.verdict WHERE trial = $1", &[&id])?;
    }
    if let Some(verdict) = &rows.verdict {
        client.execute(
            "INSERT INTO assay.verdict (trial, verdict, metric, margin, same_sides, pairs, left_out, ratio, low,
                                        high, reason)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            &[
                &id,
                &verdict.verdict,
                &verdict.metric,
                &verdict.margin,
                &verdict.same_sides,
                &verdict.pairs,
                &verdict.left_out,
                &verdict.ratio,
                &verdict.low,
                &verdict.high,
                &text(&verdict.reason),
            ],
        )?;
    }
    put_part_rows(client, kind, id, &rows.parts.iter().collect::<Vec<_>>())
}

/// Writes the columns and figures of existing parts.
pub(super) fn put_part_rows(
    client: &mut impl GenericClient,
    kind: Kind,
    id: i64,
    parts: &[&PartRow],
) -> Result<(), Failed> {
    let (update, delete, insert) = match kind {
        Kind::Run => (
            "UPDATE assay.sample AS part SET round = new.round, workload = new.workload, target = new.target,
                    started = new.started::timestamptz, wall_ns = new.wall_ns, outcome = new.outcome,
                    validity = new.validity, doubts = new.doubts
             FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
                         $9::bigint[], $10::text[], $11::text[], $12::text[])
                  AS new (at, side, slot, round, workload, target, started, wall_ns, outcome, validity, doubts)
             WHERE part.run = $1 AND part.slot = new.at",
            "DELETE FROM assay.figure AS old USING unnest($2::bigint[], $3::text[]) AS new (at, side)
             WHERE old.run = $1 AND old.slot = new.at",
            "INSERT INTO assay.figure (run, slot, metric, value)
             SELECT part.run, part.slot, new.metric, new.value
             FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::float8[]) AS new (at, side, metric, value)
             JOIN assay.sample AS part ON part.run = $1 AND part.slot = new.at",
        ),
        Kind::Trial => (
            "UPDATE assay.trial_slot AS part SET slot = new.slot, round = new.round, workload = new.workload,
                    target = new.target, started = new.started::timestamptz, wall_ns = new.wall_ns,
                    outcome = new.outcome, validity = new.validity, doubts = new.doubts
             FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
                         $9::bigint[], $10::text[], $11::text[], $12::text[])
                  AS new (at, side, slot, round, workload, target, started, wall_ns, outcome, validity, doubts)
             WHERE part.trial = $1 AND part.pair = new.at AND part.side = new.side",
            "DELETE FROM assay.trial_figure AS old USING unnest($2::bigint[], $3::text[]) AS new (at, side)
             WHERE old.trial = $1 AND old.pair = new.at AND old.side = new.side",
            "INSERT INTO assay.trial_figure (trial, pair, side, metric, value)
             SELECT part.trial, part.pair, part.side, new.metric, new.value
             FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::float8[]) AS new (at, side, metric, value)
             JOIN assay.trial_slot AS part ON part.trial = $1 AND part.pair = new.at AND part.side = new.side",
        ),
        Kind::Study | Kind::Tune | Kind::Observation => return Ok(()),
    };
    if parts.is_empty() {
        return Ok(());
    }
    let number = |of: fn(&PartRow) -> i64| parts.iter().map(|part| of(part)).collect::<Vec<i64>>();
    let word = |of: fn(&PartRow) -> &str| {
        parts
            .iter()
            .map(|part| text(of(part)))
            .collect::<Vec<String>>()
    };
    let maybe = |of: fn(&PartRow) -> Option<&String>| {
        let all = parts.iter().map(|part| some(of(part)));
        all.collect::<Vec<Option<String>>>()
    };
    let (at, side) = (number(|part| part.at), word(|part| &part.side));
    client.execute(
        update,
        &[
            &id,
            &at,
            &side,
            &number(|part| part.slot),
            &number(|part| part.round),
            &word(|part| &part.workload),
            &word(|part| &part.target),
            &word(|part| &part.started),
            &number(|part| part.wall_ns),
            &word(|part| part.outcome),
            &maybe(|part| part.validity.as_ref()),
            &maybe(|part| part.doubts.as_ref()),
        ],
    )?;
    client.execute(delete, &[&id, &at, &side])?;
    let (mut at, mut side, mut metrics, mut values) = (vec![], vec![], vec![], vec![]);
    for part in parts {
        for (metric, value) in &part.figures {
            at.push(part.at);
            side.push(part.side.as_str());
            metrics.push(*metric);
            values.push(*value);
        }
    }
    client.execute(insert, &[&id, &at, &side, &metrics, &values])?;
    Ok(())
}
