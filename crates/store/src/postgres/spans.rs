//! History of machines in PostgreSQL. Rows are sent as arrays, so that one statement writes a survey.

use super::{Failed, Postgres};
use crate::StoreError;
use crate::database::Timeline;
use crate::spans::listing::{Dialect, Found, counts, sql, values, way};
use crate::spans::{About, Ask, Changes, Host, Row, Span};
use ::postgres::types::ToSql;
use ::postgres::{Client, GenericClient};

const DIALECT: Dialect = Dialect {
    schema: "assay.",
    hashed: true,
    lateral: true,
};

const HOST: &str = "SELECT name, first, last, scope, scoped, digest FROM assay.host";

fn host(row: &::postgres::Row) -> Host {
    Host {
        name: row.get(0),
        first: row.get(1),
        last: row.get(2),
        scope: row.get(3),
        scoped: row.get(4),
        digest: row.get(5),
    }
}

/// Removes NUL characters, which PostgreSQL does not permit in text.
fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

impl Timeline for Postgres {
    fn host(&self, name: &str) -> Result<Option<Host>, StoreError> {
        self.one(&format!("{HOST} WHERE name = $1"), &[&name], host)
    }

    fn hosts(&self) -> Result<Vec<Host>, StoreError> {
        self.all(&format!("{HOST} ORDER BY name COLLATE \"C\""), &[], host)
    }

    fn rows(&self, name: &str, newest: bool) -> Result<Vec<Row>, StoreError> {
        let newest = if newest {
            "DISTINCT ON (span.subject)"
        } else {
            ""
        };
        let sql = format!(
            "SELECT {newest} subject.kind, subject.key, span.since, span.seen, value.text
             FROM assay.span JOIN assay.host ON host.id = span.host
             JOIN assay.subject ON subject.id = span.subject
             LEFT JOIN assay.value ON value.id = span.value
             WHERE host.name = $1 ORDER BY span.subject, span.since DESC"
        );
        let mut rows = self.all(&sql, &[&name], |row| Row {
            key: (About::of(row.get(0)), row.get(1)),
            since: row.get(2),
            seen: row.get(3),
            value: row.get(4),
        })?;
        rows.sort();
        Ok(rows)
    }

    fn write(&mut self, changes: &Changes<'_>) -> Result<bool, StoreError> {
        self.done(|client| write(client, changes))
    }

    fn spans(&self, ask: &Ask<'_>) -> Result<Vec<Span>, StoreError> {
        let key = ask.key.unwrap_or_default();
        let counted = counts(ask, DIALECT.schema);
        let counted = self.one(&counted, &[&key], |row| {
            [row.get(0), row.get(1), row.get(2)]
        })?;
        let way = way(ask, counted.unwrap_or_default());
        let values = values(ask);
        let values: Vec<&(dyn ToSql + Sync)> = values
            .iter()
            .map(|value| value as &(dyn ToSql + Sync))
            .collect();
        let found = self.all(&sql(ask, way, DIALECT), &values, |row| Found {
            host: row.get(0),
            kind: row.get(1),
            key: row.get(2),
            since: row.get(3),
            seen: row.get(4),
            value: row.get(5),
            last: row.get(6),
            until: row.get(7),
            before_since: row.get(8),
            before_seen: row.get(9),
            before: row.get(10),
        })?;
        Ok(found.into_iter().map(Found::span).collect())
    }

    fn forget_host(&mut self, name: &str) -> Result<bool, StoreError> {
        let sql = "DELETE FROM assay.host WHERE name = $1";
        Ok(self.done(|client| client.execute(sql, &[&name]))? > 0)
    }

    fn days(&self) -> Result<Option<u32>, StoreError> {
        let days = self.one("SELECT days FROM assay.kept", &[], |row| {
            row.get::<_, i64>(0)
        })?;
        Ok(days.and_then(|days| u32::try_from(days).ok()))
    }

    fn keep_days(&mut self, days: u32) -> Result<(), StoreError> {
        let sql = "INSERT INTO assay.kept (number, days) VALUES (1, $1)
                   ON CONFLICT (number) DO UPDATE SET days = excluded.days";
        self.done(|client| client.execute(sql, &[&i64::from(days)]))?;
        Ok(())
    }
}

fn write(client: &mut Client, changes: &Changes<'_>) -> Result<bool, Failed> {
    let new = changes.host;
    let mut transaction = client.transaction()?;
    // Waits for another process that creates the same machine, and then sees it.
    if changes.expected.is_none() {
        let sql = "INSERT INTO assay.host (name, first, last, scope, scoped, digest)
                   VALUES ($1, 0, 0, '', 0, '') ON CONFLICT (name) DO NOTHING";
        if transaction.execute(sql, &[&new.name])? == 0 {
            return Ok(false);
        }
    } else {
        let known =
            transaction.query_opt(&format!("{HOST} WHERE name = $1 FOR UPDATE"), &[&new.name])?;
        if known.as_ref().map(host).as_ref() != changes.expected {
            return Ok(false);
        }
    }
    let row = transaction.query_one(
        "UPDATE assay.host SET first = $2, last = $3, scope = $4, scoped = $5, digest = $6
         WHERE name = $1 RETURNING id",
        &[
            &new.name,
            &new.first,
            &new.last,
            &new.scope,
            &new.scoped,
            &new.digest,
        ],
    )?;
    let id: i64 = row.get(0);
    if changes.instead {
        transaction.execute("DELETE FROM assay.span WHERE host = $1", &[&id])?;
    }
    if !changes.rows.is_empty() {
        rows(&mut transaction, id, changes.rows)?;
        transaction.execute(
            "DELETE FROM assay.span WHERE host = $1 AND seen < $2 AND EXISTS (
                SELECT 1 FROM assay.span AS next WHERE next.host = span.host
                AND next.subject = span.subject AND next.since > span.since)",
            &[&id, &changes.before],
        )?;
    }
    transaction.commit()?;
    Ok(true)
}

fn rows(client: &mut impl GenericClient, host: i64, rows: &[Row]) -> Result<(), Failed> {
    let kinds: Vec<i64> = rows.iter().map(|row| row.key.0.number()).collect();
    let keys: Vec<String> = rows.iter().map(|row| text(&row.key.1)).collect();
    let since: Vec<i64> = rows.iter().map(|row| row.since).collect();
    let seen: Vec<Option<i64>> = rows.iter().map(|row| row.seen).collect();
    let values: Vec<Option<String>> = rows
        .iter()
        .map(|row| row.value.as_deref().map(text))
        .collect();
    // Everybody inserts in the same order, so two writers cannot deadlock. Existing rows are not inserted,
    // because each attempt would use up a number.
    client.execute(
        "INSERT INTO assay.subject (kind, key)
         SELECT DISTINCT new.kind, new.key FROM unnest($1::bigint[], $2::text[]) AS new (kind, key)
         WHERE NOT EXISTS (SELECT 1 FROM assay.subject AS old
                           WHERE old.kind = new.kind AND md5(old.key) = md5(new.key))
         ORDER BY 1, 2 ON CONFLICT DO NOTHING",
        &[&kinds, &keys],
    )?;
    client.execute(
        "INSERT INTO assay.value (text)
         SELECT DISTINCT new.text FROM unnest($1::text[]) AS new (text)
         WHERE new.text IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM assay.value AS old WHERE md5(old.text) = md5(new.text))
         ORDER BY 1 ON CONFLICT DO NOTHING",
        &[&values],
    )?;
    client.execute(
        "INSERT INTO assay.span (host, subject, since, seen, value)
         SELECT $1, subject.id, new.since, new.seen, value.id
         FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[])
              AS new (kind, key, since, seen, value)
         JOIN assay.subject ON subject.kind = new.kind AND md5(subject.key) = md5(new.key)
         LEFT JOIN assay.value ON md5(value.text) = md5(new.value)
         ON CONFLICT (host, subject, since) DO UPDATE SET seen = excluded.seen, value = excluded.value",
        &[&host, &kinds, &keys, &since, &seen, &values],
    )?;
    Ok(())
}
