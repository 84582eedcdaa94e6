//! Lists of records in SQLite, without their bodies.

use super::{Sqlite, machine};
use crate::StoreError;
use crate::database::{Kind, Listed, Listing, PartTime, RecordLists};
use rusqlite::Row;

impl RecordLists for Sqlite {
    fn list(&self, kind: Kind, listing: &Listing<'_>) -> Result<Vec<Listed>, StoreError> {
        let sql = format!(
            "{} WHERE record.id < ?1 AND (?2 IS NULL OR record.name = ?2) AND (?3 IS NULL OR about = ?3)
             ORDER BY record.id DESC LIMIT ?4",
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
        let sql = format!("{} WHERE record.id = ?1", select_listed(kind));
        Ok(self.all(&sql, &[&id], listed)?.pop())
    }

    fn newest(&self, kind: Kind, skipped: usize, most: usize) -> Result<Vec<i64>, StoreError> {
        let sql = format!(
            "SELECT id FROM {} ORDER BY id DESC LIMIT ?1 OFFSET ?2",
            kind.table()
        );
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.all(&sql, &[&number(most), &number(skipped)], |row| row.get(0))
    }

    fn starting_with(&self, kind: Kind, digits: &str, most: usize) -> Result<Vec<i64>, StoreError> {
        // `g` follows the hexadecimal digits: this is a range of the index on uids.
        let sql = format!(
            "SELECT id FROM {} WHERE uid >= ?1 AND uid < ?1 || 'g' ORDER BY id LIMIT ?2",
            kind.table()
        );
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.all(&sql, &[&digits, &most], |row| row.get(0))
    }

    fn count_samples(&self, runs: &[i64]) -> Result<Vec<(i64, i64)>, StoreError> {
        let mut counts = Vec::with_capacity(runs.len());
        for run in runs {
            let sql = "SELECT count(*) FROM sample WHERE run = ?1";
            let count = self.all(sql, &[run], |row| row.get(0))?;
            counts.extend(count.into_iter().map(|count| (*run, count)));
        }
        Ok(counts)
    }

    fn sample_times(&self, run: i64) -> Result<Option<[PartTime; 2]>, StoreError> {
        let end = |order: &str| {
            let sql = format!(
                "SELECT started, wall_ns FROM sample WHERE run = ?1 ORDER BY slot {order} LIMIT 1"
            );
            Ok(self
                .all(&sql, &[&run], |row| Ok((row.get(0)?, row.get(1)?)))?
                .pop())
        };
        Ok(end("ASC")?.zip(end("DESC")?).map(<[PartTime; 2]>::from))
    }

    fn mark(&self) -> Result<String, StoreError> {
        // Changes when another connection has committed (https://sqlite.org/pragma.html#pragma_data_version), and
        // `total_changes` when this one has written.
        let version: Vec<i64> = self.all("PRAGMA data_version", &[], |row| row.get(0))?;
        Ok(format!("{version:?} {}", self.connection.total_changes()))
    }
}

/// Returns the start of a query for [`listed`].
fn select_listed(kind: Kind) -> String {
    format!(
        "SELECT record.id, record.uid, started, ended, state, record.name, about, slots, machine.uid, machine.name
         FROM {} AS record LEFT JOIN machine ON machine.id = record.machine",
        kind.table()
    )
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        id: row.get(0)?,
        uid: row.get(1)?,
        started: row.get(2)?,
        ended: row.get(3)?,
        state: row.get(4)?,
        name: row.get(5)?,
        about: row.get(6)?,
        planned: row.get(7)?,
        machine: machine(row, 8)?,
    })
}
