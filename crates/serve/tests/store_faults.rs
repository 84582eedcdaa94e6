//! Tests requests while the store is missing, replaced, locked or newer, and while clients do not read.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

#[path = "site/test_server.rs"]
mod test_server;

use assay_store::Store;
use std::io::Write as _;
use std::time::Duration;
use test_server::{TestServer, fill_hostile};

#[test]
fn a_store_that_is_gone_or_foreign_is_named() {
    let server = TestServer::start(fill_hostile);
    assert!(server.get("/api/v1/runs").body.contains("\"uid\""));
    // Moved away: nothing is read through the old file.
    let moved = server.dir.path().join("moved.db");
    std::fs::rename(server.store(), &moved).unwrap();
    let wait = || std::thread::sleep(Duration::from_millis(2_100));
    wait();
    assert!(!server.get("/api/v1/runs").body.contains("\"uid\""));
    // A reading that began before the move may still end.
    let is_empty = || server.get("/").body.contains("class=\"empty\"");
    assert!((0..30).any(|_| is_empty() || (wait(), false).1));
    // Another program's file in its place.
    std::fs::write(
        server.store(),
        "not a database, but long enough to be looked at",
    )
    .unwrap();
    wait();
    let answer = server.get("/runs");
    assert!(
        answer.status == 503 && answer.body.contains("not a SQLite database"),
        "{}",
        answer.body
    );
    assert_eq!(
        std::fs::read(server.store()).unwrap().len(),
        47,
        "it is left as it is"
    );
    std::fs::remove_file(server.store()).unwrap();
    std::fs::rename(&moved, server.store()).unwrap();
    wait();
    assert_eq!(server.get("/runs").status, 200);
}

/// Puts a copy of the store in its place, after executing `change` on the copy.
fn replace(server: &TestServer, change: &str) -> rusqlite::Connection {
    let copy = server.dir.path().join("copy.db");
    std::fs::copy(server.store(), &copy).unwrap();
    let connection = rusqlite::Connection::open(&copy).unwrap();
    connection
        .execute_batch(&format!("PRAGMA journal_mode = DELETE; {change}"))
        .unwrap();
    std::fs::rename(&copy, server.store()).unwrap();
    std::thread::sleep(Duration::from_millis(2_100));
    connection
}

#[test]
fn a_store_that_is_locked_or_newer_is_an_answer_and_the_rest_goes_on() {
    let server = TestServer::start(|store, _| drop(Store::open(store).unwrap()));
    assert_eq!(server.get("/api/v1/runs").status, 200);
    let lock = replace(&server, "BEGIN EXCLUSIVE");
    let locked = server.get("/api/v1/runs");
    assert_eq!(locked.status, 503, "{}", locked.body);
    assert_eq!(server.get("/about").status, 200);
    drop(lock);
    assert_eq!(server.get("/api/v1/runs").status, 200);
    drop(replace(&server, "PRAGMA user_version = 9999"));
    let newer = server.get("/api/v1/runs");
    assert!(
        newer.status == 503 && newer.body.contains("newer"),
        "{} {}",
        newer.status,
        newer.body
    );
}

#[test]
fn attack_clients_that_read_nothing_keep_nobody_waiting() {
    let server = TestServer::start_demo();
    let idle: Vec<_> = (0..30)
        .map(|_| {
            let mut stream = server.connect();
            for _ in 0..3 {
                let request = format!("GET /machines HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
                let _ = stream.write_all(request.as_bytes());
            }
            stream
        })
        .collect();
    for path in ["/", "/machines/db1", "/about"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    drop(idle);
    assert_eq!(server.get("/advice").status, 200);
}
