//! Reads the version of a store and migrates an old store. If several processes do this at the same time, one migrates
//! the store; the others wait and have nothing to do.

use super::connect::Address;
use super::guard::Guard;
use crate::StoreError;
use ::postgres::{Client, GenericClient};
use std::collections::BTreeSet;

/// Migrations in order. The n-th migration produces version n.
const MIGRATIONS: [&str; 6] = [
    include_str!("../../migrations/postgres/0001.sql"),
    include_str!("../../migrations/postgres/0002.sql"),
    include_str!("../../migrations/postgres/0003.sql"),
    include_str!("../../migrations/postgres/0004.sql"),
    include_str!("../../migrations/postgres/0005.sql"),
    include_str!("../../migrations/postgres/0006.sql"),
];

/// Key of the PostgreSQL advisory lock ("assa" in ASCII).
const LOCK: i64 = 0x6173_7361;

/// Returns whether the database contains a store.
pub(super) fn is_there(
    address: &Address,
    client: &mut Client,
    guard: &Guard,
) -> Result<bool, StoreError> {
    let found = look(client).map_err(|failed| address.guarded_error(&failed, guard))?;
    version(address, &found).map(|version| version.is_some())
}

/// Tables and versions that were found in the schema of a store.
struct Found {
    /// Names of the tables.
    tables: BTreeSet<String>,
    /// Rows of the version table.
    versions: Vec<i64>,
}

fn look(client: &mut impl GenericClient) -> Result<Found, ::postgres::Error> {
    // Not with to_regclass, which may answer from a cache that is older than another process's migration.
    let there = "SELECT class.relname::text FROM pg_catalog.pg_class AS class
        JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
        WHERE space.nspname = 'assay' AND class.relkind IN ('r', 'p')";
    let rows = client.query(there, &[])?;
    let tables: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let versions = match tables.contains("version") {
        true => client.query("SELECT version FROM assay.version LIMIT 2", &[])?,
        false => Vec::new(),
    };
    Ok(Found {
        tables,
        versions: versions.iter().map(|row| row.get(0)).collect(),
    })
}

/// Returns the names of the tables that a store of this version has.
fn tables_of(version: i64) -> impl Iterator<Item = &'static str> {
    let count = usize::try_from(version).unwrap_or(0);
    MIGRATIONS.iter().take(count).flat_map(|migration| {
        let made = migration.split("CREATE TABLE assay.").skip(1);
        made.filter_map(|rest| rest.split([' ', '(']).next())
    })
}

/// Returns the version of the store; `None` if the schema contains no store.
fn version(address: &Address, found: &Found) -> Result<Option<i64>, StoreError> {
    let known = MIGRATIONS.len() as i64;
    let damaged = |reason: String| {
        Err(StoreError::Incomplete {
            path: address.shown.clone(),
            reason,
            way_out: "Restore its schema `assay` from a backup, or `DROP SCHEMA assay CASCADE` and begin a new one"
                .to_owned(),
        })
    };
    let has = |table: &str| found.tables.contains(table);
    match found.versions.as_slice() {
        [] if !has("version") && !tables_of(known).any(has) => Ok(None),
        [] if has("version") => damaged("its table `assay.version` has no row".to_owned()),
        [] => damaged("its table `assay.version` is missing".to_owned()),
        [found] if *found > known => Err(StoreError::Newer {
            path: address.shown.clone(),
            found: *found,
            known,
        }),
        [found] => {
            let missing: Vec<&str> = tables_of(*found).filter(|table| !has(table)).collect();
            match (missing.is_empty(), *found >= 1) {
                (_, false) => damaged(format!("its version is {found}")),
                (false, _) => damaged(format!("these tables are missing: {}", missing.join(", "))),
                (true, true) => Ok(Some(*found)),
            }
        }
        _ => damaged("its table `assay.version` has several rows".to_owned()),
    }
}

/// Runs all missing migrations in one transaction.
pub(super) fn up(address: &Address, client: &mut Client, guard: &Guard) -> Result<(), StoreError> {
    let fail = |failed: ::postgres::Error| address.guarded_error(&failed, guard);
    let known = MIGRATIONS.len() as i64;
    if version(address, &look(client).map_err(fail)?)? == Some(known) {
        return Ok(());
    }
    let mut transaction = client.transaction().map_err(fail)?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .map_err(fail)?;
    let found = version(address, &look(&mut transaction).map_err(fail)?)?;
    if found.is_none() {
        let make = "CREATE SCHEMA IF NOT EXISTS assay;
                    CREATE TABLE assay.version (version bigint NOT NULL);
                    INSERT INTO assay.version VALUES (0)";
        transaction.batch_execute(make).map_err(fail)?;
    }
    let from = usize::try_from(found.unwrap_or(0)).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(from) {
        transaction.batch_execute(migration).map_err(fail)?;
    }
    transaction
        .execute("UPDATE assay.version SET version = $1", &[&known])
        .map_err(fail)?;
    transaction.commit().map_err(fail)
}
