//! Lists of records in PostgreSQL, without their bodies.

use super::{Postgres, machine};
use crate::StoreError;
use crate::database::{Kind, Listed, Listing, PartTime, RecordLists};
use ::postgres::Row;

impl RecordLists for Postgres {
    fn list(&self, kind: Kind, listing: &Listing<'_>) -> Result<Vec<Listed>, StoreError> {
        let sql = format!(
            "{} WHERE record.id < $1 AND ($2::text IS NULL OR record.name = $2) AND ($3::text IS NULL OR about = $3)
             ORDER BY record.id DESC LIMIT $4",
            select_listed(kind)
        );
        let (before, most) = (listing.before, listing.limit());
        self.all(
            &sql,
            &[&before, &listing.name, &listing.about, &most],
            listed,
        )
    }

    fn head(&self, kind: Kind, id: i64) -> Result<Option<Listed>, StoreError> {
        let sql = format!("{} WHERE record.id = $1", select_listed(kind));
        self.one(&sql, &[&id], listed)
    }

    fn newest(&self, kind: Kind, skipped: usize, most: usize) -> Result<Vec<i64>, StoreError> {
        let sql = format!(
            "SELECT id FROM assay.{} ORDER BY id DESC LIMIT $1 OFFSET $2",
            kind.table()
        );
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.all(&sql, &[&number(most), &number(skipped)], |row| row.get(0))
    }

    fn starting_with(&self, kind: Kind, digits: &str, most: usize) -> Result<Vec<i64>, StoreError> {
        let sql = format!(
            "SELECT id FROM assay.{} WHERE starts_with(uid, $1) ORDER BY id LIMIT $2",
            kind.table()
        );
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.all(&sql, &[&digits, &most], |row| row.get(0))
    }

    fn count_samples(&self, runs: &[i64]) -> Result<Vec<(i64, i64)>, StoreError> {
        // Counted by one query for all runs, not one query each.
        let sql = "SELECT run, count(*) FROM assay.sample WHERE run = ANY($1) GROUP BY run";
        self.all(sql, &[&runs], |row| (row.get(0), row.get(1)))
    }

    fn sample_times(&self, run: i64) -> Result<Option<[PartTime; 2]>, StoreError> {
        let end = |order: &str| {
            let sql = format!(
                "SELECT to_char(started AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), wall_ns
                 FROM assay.sample WHERE run = $1 ORDER BY slot {order} LIMIT 1"
            );
            self.one(&sql, &[&run], |row| (row.get(0), row.get(1)))
        };
        Ok(end("ASC")?.zip(end("DESC")?).map(<[PartTime; 2]>::from))
    }

    fn mark(&self) -> Result<String, StoreError> {
        // Two equal snapshots see the same rows.
        let sql = "SELECT txid_current_snapshot()::text";
        Ok(self.one(sql, &[], |row| row.get(0))?.unwrap_or_default())
    }
}

/// Returns the start of a query for [`listed`].
fn select_listed(kind: Kind) -> String {
    format!(
        "SELECT record.id, record.uid, started, ended, state, record.name, about, slots, machine.uid, machine.name
         FROM assay.{} AS record LEFT JOIN assay.machine ON machine.id = record.machine",
        kind.table()
    )
}

fn listed(row: &Row) -> Listed {
    Listed {
        id: row.get(0),
        uid: row.get(1),
        started: row.get(2),
        ended: row.get(3),
        state: row.get(4),
        name: row.get(5),
        about: row.get(6),
        planned: row.get(7),
        machine: machine(row, 8),
    }
}
