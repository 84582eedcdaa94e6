//! Tests that each file which is not a usable store stays unchanged, and that the error explains the reason.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at files and mount one file system"
)]

mod common;

use assay_model::RunId;
use assay_store::{Store, StoreError};
use common::{run, sample};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/assay/assay.db");
    (dir, path)
}

/// Opens a path that must be refused, and checks that the file is unchanged.
fn refused(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap_or_default();
    let error = Store::open(path).unwrap_err();
    assert_eq!(before, fs::read(path).unwrap_or_default(), "{error}");
    error
}

#[test]
fn only_the_owner_can_read_it() {
    let (_dir, path) = place();
    Store::open(&path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[test]
fn names_of_runs() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let said = store.resolve("last").unwrap_err();
    insta::assert_snapshot!(assay_testing::normalize_output(said, &[(&path, "STORE")]), @"there is no run `last`; nothing has been measured yet: `assay run quick .`");
    for uid in ["a1b2c3d4", "a1b2ffff", "00112233", "12345678"] {
        store.create_run(&mut run(uid)).unwrap();
    }
    let resolve = |name: &str| store.resolve(name).map(|id| id.0);
    assert_eq!(resolve("3").unwrap(), 3);
    assert_eq!(resolve("last").unwrap(), 4);
    assert_eq!(resolve("last~3").unwrap(), 1);
    assert_eq!(resolve("a1b2c").unwrap(), 1);
    assert_eq!(resolve("A1B2F").unwrap(), 2);
    assert_eq!(
        resolve("1234").unwrap(),
        4,
        "digits that are no number of a run"
    );
    let several = resolve("a1b2").unwrap_err();
    assert!(
        matches!(&several, StoreError::Ambiguous { ids, .. } if ids == "1, 2"),
        "{several}"
    );
    let said = |name: &str| resolve(name).unwrap_err().to_string();
    insta::assert_snapshot!(said("99"), @"there is no run `99`; there are 4, 3, 2, 1 (`assay report runs` lists them)");
    insta::assert_snapshot!(said("last~4"), @"there is no run `last~4`; there are 4, 3, 2, 1 (`assay report runs` lists them)");
    for bad in [
        "",
        "quick",
        "last~x",
        "last~-1",
        "a1b",
        "\x1b[31m",
        "1; drop table runs",
        "lastly",
        "ü",
    ] {
        assert!(
            matches!(resolve(bad), Err(StoreError::Name { .. })),
            "{bad}: {}",
            said(bad)
        );
        assert!(!said(bad).contains('\x1b'));
    }
}

#[test]
fn a_deleted_run_is_gone_and_its_number_stays_unused() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let mut one = run("aaaa0001");
    store.create_run(&mut one).unwrap();
    store.add_sample(one.id, &sample(0, 1.0)).unwrap();
    store.delete_run(one.id).unwrap();
    assert!(matches!(store.run(one.id), Err(StoreError::Missing { .. })));
    assert!(matches!(
        store.delete_run(one.id),
        Err(StoreError::Missing { .. })
    ));
    assert!(store.samples(one.id).unwrap().is_empty());
    let mut next = run("aaaa0002");
    store.create_run(&mut next).unwrap();
    assert_eq!(next.id, RunId(2));
    assert!(matches!(
        store.add_sample(one.id, &sample(0, 1.0)),
        Err(StoreError::Missing { .. })
    ));
}

#[test]
fn what_json_cannot_hold_is_not_written() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    let mut one = run("eeee0000");
    store.create_run(&mut one).unwrap();
    let said = store.add_sample(one.id, &sample(0, f64::NAN)).unwrap_err();
    assert!(matches!(said, StoreError::Row { .. }), "{said}");
    assert!(store.samples(one.id).unwrap().is_empty());
}

#[test]
fn a_missing_store_is_made_only_on_request() {
    let (_dir, path) = place();
    assert!(Store::open_existing(&path).unwrap().is_none());
    assert!(!path.exists());
    Store::open(&path).unwrap();
    assert!(Store::open_existing(&path).unwrap().is_some());
}

#[test]
fn an_empty_file_becomes_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("touched.db");
    fs::write(&path, "").unwrap();
    Store::open(&path)
        .unwrap()
        .create_run(&mut run("ff"))
        .unwrap();
}

#[test]
fn other_files_are_refused_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("text.db"), "these are my notes\n").unwrap();
    let said = refused(&at("text.db")).to_string();
    assert!(
        said.contains("text.db") && said.contains("--store"),
        "{said}"
    );

    let foreign = Connection::open(at("foreign.db")).unwrap();
    foreign
        .execute_batch("CREATE TABLE mail (id); PRAGMA user_version = 1")
        .unwrap();
    drop(foreign);
    assert!(matches!(
        refused(&at("foreign.db")),
        StoreError::Foreign { .. }
    ));

    let foreign = Connection::open(at("firefox.db")).unwrap();
    foreign
        .execute_batch("PRAGMA application_id = 42; CREATE TABLE t (id)")
        .unwrap();
    drop(foreign);
    let said = refused(&at("firefox.db"));
    insta::assert_snapshot!(assay_testing::normalize_output(said, &[(dir.path(), "DIR")]), @"DIR/firefox.db is not a store of assay's: it is the SQLite database of another program; name another file with --store, or move this one away");

    fs::create_dir(at("dir.db")).unwrap();
    let said = Store::open(&at("dir.db")).unwrap_err();
    insta::assert_snapshot!(assay_testing::normalize_output(said, &[(dir.path(), "DIR")]), @"DIR/dir.db is not a store of assay's: it is a directory; name another file with --store, or move this one away");
    let said = Store::open(&at("text.db").join("assay.db"))
        .unwrap_err()
        .to_string();
    assert!(said.contains("text.db"), "{said}");
    let said = Store::open(Path::new("/dev/null")).unwrap_err();
    insta::assert_snapshot!(assay_testing::normalize_output(said, &[(dir.path(), "DIR")]), @"/dev/null is not a store of assay's: it is not a regular file; name another file with --store, or move this one away");
}

#[test]
fn a_newer_store_is_refused_unchanged() {
    let (_dir, path) = place();
    Store::open(&path)
        .unwrap()
        .create_run(&mut run("01"))
        .unwrap();
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 1000).unwrap();
    drop(newer);
    let said = refused(&path);
    assert!(
        matches!(said, StoreError::Newer { found: 1000, .. }),
        "{said}"
    );

    // The version mark is only in the write-ahead log.
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 1001).unwrap();
    let said = refused(&path);
    assert!(
        matches!(said, StoreError::Newer { found: 1001, .. }),
        "{said}"
    );
}

#[test]
fn a_damaged_store_says_so() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    for n in 0..50 {
        let mut one = run(&format!("{n:08x}"));
        store.create_run(&mut one).unwrap();
        store.add_sample(one.id, &sample(0, 1.0)).unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    for cut in [20, 100, 1000, 4096, whole.len() / 2] {
        fs::write(&path, &whole[..cut]).unwrap();
        let outcome = Store::open(&path).and_then(|store| {
            let rows = store.runs()?;
            rows.iter().try_for_each(|row| {
                store.run(row.id)?;
                store.samples(row.id).map(|_| ())
            })
        });
        let said = outcome.expect_err(&format!("cut at {cut}")).to_string();
        assert!(said.contains("assay.db"), "{cut}: {said}");
    }
    let mut noise = whole.clone();
    for byte in &mut noise[4096..] {
        *byte ^= 0xa5;
    }
    fs::write(&path, &noise).unwrap();
    let said = Store::open(&path).and_then(|store| store.runs());
    assert!(said.unwrap_err().to_string().contains("assay.db"));
}

#[test]
fn one_damaged_record_does_not_hide_the_others() {
    let (_dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    for uid in ["0a", "0b"] {
        store.create_run(&mut run(uid)).unwrap();
    }
    let raw = Connection::open(&path).unwrap();
    raw.execute("UPDATE run SET body = x'00' WHERE id = 1", [])
        .unwrap();
    let said = store.run(RunId(1)).unwrap_err();
    assert!(
        matches!(&said, StoreError::Row { what, .. } if what == "run 1"),
        "{said}"
    );
    assert_eq!(store.run(RunId(2)).unwrap().uid, "0b");
    assert_eq!(store.runs().unwrap().len(), 2);
    store.delete_run(RunId(1)).unwrap();
}

/// A tmpfs of 1 MiB, which is unmounted when the value is dropped.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(dir.path())
            .stderr(Stdio::null())
            .status();
        mount
            .is_ok_and(|status| status.success())
            .then_some(Self(dir))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_read_only_file_system_is_said() {
    let Some(tiny) = Tiny::new() else {
        assay_testing::skipped("mount", "a tmpfs cannot be mounted here (needs root)");
        return;
    };
    let path = tiny.0.path().join("assay.db");
    Store::open(&path)
        .unwrap()
        .create_run(&mut run("f1"))
        .unwrap();
    let status = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(tiny.0.path())
        .status();
    assert!(status.unwrap().success());
    let said = Store::open(&path)
        .and_then(|store| store.run(RunId(1)))
        .unwrap_err();
    assert!(said.to_string().contains("read-only"), "{said}: {said:?}");
    let said = Store::open(&tiny.0.path().join("new.db")).unwrap_err();
    assert!(said.to_string().contains("read-only"), "{said}: {said:?}");
}

/// Creates a store with a run, and changes the store with SQL.
fn changed(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let (dir, path) = place();
    let mut store = Store::open(&path).unwrap();
    store.create_run(&mut run("a1b2c3d4")).unwrap();
    drop(store);
    let connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "foreign_keys", false)
        .unwrap();
    connection.execute_batch(sql).unwrap();
    drop(connection);
    (dir, path)
}

#[test]
fn a_store_that_lost_its_version_or_a_table_is_not_an_empty_one() {
    for sql in [
        "PRAGMA user_version = 0",
        "PRAGMA user_version = -1",
        "PRAGMA user_version = 3",
        "PRAGMA user_version = 4",
        "DROP TABLE run",
        "DROP TABLE machine",
        "DROP TABLE kept; DROP TABLE span",
        "ALTER TABLE run RENAME TO another",
        "PRAGMA user_version = 0; PRAGMA application_id = 0",
    ] {
        let (_dir, path) = changed(sql);
        let error = refused(&path);
        assert!(Store::open_existing(&path).is_err(), "{sql}");
        let damaged = matches!(&error, StoreError::Incomplete { path: told, .. } if *told == path);
        let foreign = matches!(&error, StoreError::Foreign { .. });
        // Without its mark the file may belong to another program.
        assert!(
            damaged || foreign && sql.contains("application_id"),
            "{sql}: {error}"
        );
    }
    // Objects that other programs added stay.
    let (_dir, path) = changed("CREATE VIEW mine AS SELECT * FROM run; CREATE TABLE own (a)");
    assert_eq!(
        Store::open_existing(&path)
            .unwrap()
            .unwrap()
            .runs()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn an_empty_file_is_no_store_without_runs() {
    let (_dir, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(hour_ago)
        .unwrap();
    let error = Store::open_existing(&path).unwrap_err();
    assert!(matches!(error, StoreError::Incomplete { .. }), "{error}");
    // The next measurement converts it.
    assert!(Store::open(&path).unwrap().runs().unwrap().is_empty());
    assert!(Store::open_existing(&path).unwrap().is_some());
}
