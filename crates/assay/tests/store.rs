//! Tests a store in PostgreSQL: measured into, read, copied there and back.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_testing::servers::postgres::Postgres;
use common::Home;
use common::schemas::{holds, json};

#[test]
fn a_shared_store_is_filled_and_looked_at_by_its_url() {
    let Some(server) = Postgres::start() else {
        return;
    };
    if !common::fio() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let dir = target.path().to_str().unwrap();
    let url = server.url("postgres").display().to_string();
    let secret = url.replace("assay@", "assay:s3cret@");
    let there = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("ASSAY_STORE", &secret);
        let ran = common::ended(command);
        assert!(
            !format!("{}{}", ran.stdout, ran.stderr).contains("s3cret"),
            "{}",
            ran.stderr
        );
        ran
    };
    let none = there(&["runs"]);
    assert_eq!(none.code, Some(0), "{}", none.stderr);
    let short = [
        "--bs",
        "4k",
        "--size",
        "4M",
        "--runtime",
        "200ms",
        "--ramp",
        "0s",
        "--rounds",
        "2",
    ];
    let ran = there(&[&["run", dir, "--rw", "randread"], &short[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let runs = json(&there(&["runs", "--json"]).stdout);
    assert_eq!(runs["runs"][0]["samples"], 2);
    assert_eq!(there(&["show", "last"]).code, Some(0));
    // Copied to a file, twice.
    let copy = home.dir.path().join("copy.db");
    let copy = copy.to_str().unwrap();
    let moved = there(&["store", "move", &secret, copy, "--json"]);
    assert_eq!(moved.code, Some(0), "{}", moved.stderr);
    holds("store-move", &moved.stdout, &[]);
    assert_eq!(json(&moved.stdout)["new"], 1);
    let again = there(&["store", "move", &secret, copy, "--json"]);
    assert_eq!(json(&again.stdout)["known"], 1);
    let here = json(&home.assay(&["--store", copy, "runs", "--json"]).stdout);
    assert_eq!(here["runs"][0]["uid"], runs["runs"][0]["uid"]);
    // Invalid copies.
    for (from, to, code) in [
        (copy, copy, 2),
        (secret.as_str(), url.as_str(), 2),
        ("/nonexistent.db", copy, 3),
        (
            "postgresql://assay:s3cret@/nowhere?host=/nonexistent",
            copy,
            3,
        ),
    ] {
        let ran = there(&["store", "move", from, to]);
        assert_eq!(ran.code, Some(code), "{from} {to}: {}", ran.stderr);
    }
}
