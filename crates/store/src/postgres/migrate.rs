//! Which version a store has, and bringing an old one up to date. Whoever comes at the same time waits, and
//! then has nothing to do.

use super::connect::Address;
use crate::StoreError;
use ::postgres::{Client, GenericClient};

/// Migrations in order; the n-th brings a store to version n.
const MIGRATIONS: [&str; 3] = [
    include_str!("../../migrations/postgres/0001.sql"),
    include_str!("../../migrations/postgres/0002.sql"),
    include_str!("../../migrations/postgres/0003.sql"),
];

/// Number of the advisory lock: "assa".
const LOCK: i64 = 0x6173_7361;

/// Whether the database has a store.
pub(super) fn is_there(address: &Address, client: &mut Client) -> Result<bool, StoreError> {
    let found = version(client).map_err(|failed| address.error(&failed))?;
    Ok(found.is_some())
}

/// The version of the store; none when there is none.
fn version(client: &mut impl GenericClient) -> Result<Option<i64>, ::postgres::Error> {
    // Not by to_regclass: it may answer from a cache that has not yet heard of what another assay just made.
    let there = "SELECT EXISTS (
        SELECT FROM pg_catalog.pg_class AS class
        JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
        WHERE space.nspname = 'assay' AND class.relname = 'version')";
    let row = client.query_one(there, &[])?;
    if !row.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = client.query_opt("SELECT version FROM assay.version", &[])?;
    Ok(row.map(|row| row.get(0)))
}

/// All missing migrations in one transaction.
pub(super) fn up(address: &Address, client: &mut Client) -> Result<(), StoreError> {
    let fail = |failed: ::postgres::Error| address.error(&failed);
    let known = MIGRATIONS.len() as i64;
    let check = |found: Option<i64>| match found {
        Some(found) if found > known => Err(StoreError::Newer {
            path: address.shown.clone(),
            found,
            known,
        }),
        found => Ok(found),
    };
    if check(version(client).map_err(fail)?)? == Some(known) {
        return Ok(());
    }
    let mut transaction = client.transaction().map_err(fail)?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .map_err(fail)?;
    let found = check(version(&mut transaction).map_err(fail)?)?;
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
