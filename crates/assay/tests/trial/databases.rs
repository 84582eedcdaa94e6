//! Trials of databases: a reload, a restart, a variable of a running server. The load itself records the setting in
//! effect.

use super::common::{Home, Ran, ended};
use super::{SHORT, args, json, text};
use assay_testing::servers::mariadb::MariaDb;
use assay_testing::servers::postgres::Postgres;
use std::fs;

/// Runs a short trial of two pairs.
fn tried(home: &Home, words: &[&str], sets: &[String], clients: &[(&str, String)]) -> Ran {
    let mut all = args(&["trial"], &SHORT);
    all.extend(args(words, &["--yes", "--json", "--pairs", "2"]));
    for set in sets {
        all.extend(["--set".into(), set.into()]);
    }
    let mut command = home.command(&all);
    command.envs(clients.iter().cloned());
    ended(command)
}

/// Starts a server with a table for the load's records, and returns its original configuration.
fn postgres() -> Option<(Postgres, Home, Vec<u8>)> {
    let server = Postgres::kept()?;
    if assay_testing::servers::skip(&["psql", "pgbench"], false) {
        return None;
    }
    server.sql("postgres", "CREATE TABLE seen (value text)");
    let before = fs::read(server.config()).unwrap();
    Some((server, Home::new(), before))
}

fn sets(server: &Postgres, reload: (&str, Vec<String>), load: &str) -> Vec<String> {
    vec![
        format!("config={}", text(&server.config())),
        format!("{}={}", reload.0, reload.1.join(" ")),
        format!("load={load}"),
    ]
}

/// Returns the values of a setting that the load recorded.
fn seen(server: &Postgres) -> String {
    let sql = "SELECT string_agg(DISTINCT value, ' ' ORDER BY value) FROM seen";
    server.sql("postgres", sql)
}

fn load(setting: &str) -> String {
    format!("psql -qXc \"INSERT INTO seen SELECT current_setting('{setting}')\" postgres")
}

#[test]
fn postgresql_reads_its_file_or_is_restarted_for_each_side() {
    let Some((server, home, before)) = postgres() else {
        return;
    };
    let tried = |words: &[&str], sets: &[String]| tried(&home, words, sets, &server.environment());
    let own = sets(
        &server,
        ("reload", server.reload()),
        &load("random_page_cost"),
    );
    let ran = tried(&["postgresql-random-page-cost"], &own);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json(&ran)["pairs"].as_array().map(Vec::len), Some(2));
    assert_eq!(seen(&server), "1.1 4");
    assert_eq!(fs::read(server.config()).unwrap(), before);

    server.sql("postgres", "TRUNCATE seen");
    let mut own = sets(
        &server,
        ("restart", server.restart()),
        &load("shared_buffers"),
    );
    let validate = format!("validate={}", server.validate().join(" "));
    own.extend([validate, "size=32MB".to_owned()]);
    let ran = tried(&["postgresql-shared-buffers"], &own);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(seen(&server), "128MB 32MB");
    assert_eq!(fs::read(server.config()).unwrap(), before);
    let now = || server.sql("postgres", "SHOW shared_buffers");
    assert_eq!(now(), "128MB", "and the server runs with it");

    // An invalid file is never installed; without validation the server does not start with it, and
    // both the file and the server are restored.
    let started = || server.sql("postgres", "SELECT pg_postmaster_start_time()");
    *own.last_mut().unwrap() = "size=banana".to_owned();
    for looked_at in [true, false] {
        let up = started();
        if !looked_at {
            own.retain(|set| !set.starts_with("validate="));
            own.push("validate=true".to_owned());
        }
        let ran = tried(&["postgresql-shared-buffers"], &own);
        assert_eq!(ran.code, Some(2), "{} {}", ran.stdout, ran.stderr);
        assert_eq!(fs::read(server.config()).unwrap(), before);
        assert_eq!(now(), "128MB");
        assert_eq!(up == started(), looked_at, "{}", ran.stderr);
    }
}

#[test]
fn what_loses_data_is_never_kept_and_needs_a_target() {
    let Some((server, home, before)) = postgres() else {
        return;
    };
    let tried = |words: &[&str], sets: &[String]| tried(&home, words, sets, &server.environment());
    let own = sets(
        &server,
        ("reload", server.reload()),
        &load("full_page_writes"),
    );
    let page = "postgresql-fsync-off";
    let nowhere = tried(&[page], &own);
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.stdout);
    let mut own = own;
    own.push("key=full_page_writes".to_owned());
    let kept = tried(&[page, "localhost", "--keep"], &own);
    assert_ne!(kept.code, Some(0), "{}", kept.stdout);
    assert_eq!(fs::read(server.config()).unwrap(), before);
    let ran = tried(&[page, "localhost"], &own);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(seen(&server), "off on");
    assert_eq!(fs::read(server.config()).unwrap(), before);
}

#[test]
fn variables_of_a_running_mariadb_are_toggled_and_come_back() {
    let Some(server) = MariaDb::start() else {
        return;
    };
    let home = Home::new();
    let _ = server.sql("CREATE TABLE bench.seen (value BIGINT)");
    for (page, value, variable) in [
        (
            "mariadb-flush-log-at-trx-commit",
            "method=2",
            "innodb_flush_log_at_trx_commit",
        ),
        (
            "mariadb-buffer-pool",
            "size=67108864",
            "innodb_buffer_pool_size",
        ),
    ] {
        let ask = format!("SELECT @@GLOBAL.{variable}");
        let before = server.sql(&ask);
        let load = format!(
            "{} bench -e \"INSERT INTO seen {ask}\"",
            server.client("mariadb").join(" ")
        );
        let sets = [
            value.to_owned(),
            format!("client={}", server.client("mariadb").join(" ")),
            format!("load={load}"),
        ];
        let ran = tried(&home, &[page, "localhost"], &sets, &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(json(&ran)["pairs"].as_array().map(Vec::len), Some(2));
        let changed = value.split_once('=').unwrap().1;
        for one in [&*before, changed] {
            let count = server.sql(&format!(
                "SELECT COUNT(*) > 0 FROM bench.seen WHERE value = {one}"
            ));
            assert_eq!(count, "1", "{page}: {one} was in force while the load ran");
        }
        assert_eq!(server.sql(&ask), before);
    }
}
