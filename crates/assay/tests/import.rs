//! Tests `assay import` as a user runs it.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::Home;
use std::path::PathBuf;

fn fixture(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path);
    root.to_str().unwrap().to_owned()
}

fn json(stdout: &str) -> serde_json::Value {
    serde_json::from_str(stdout).unwrap()
}

#[test]
fn a_clean_result_is_explained_and_kept_once() {
    let home = Home::new();
    let file = fixture("judge/fixtures/fio-3.33/clean-dsync.json");
    let out = home.assay(&["import", &file]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    // The position of the first line break depends on the length of the file name.
    let (head, rest) = out.stdout.split_once("\n\n").unwrap();
    let head: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(
        head.join(" "),
        format!("{file}: fio-3.33, 2026-11-21 12:14 UTC")
    );
    insta::assert_snapshot!(rest, @r"
    clean-dsync: randwrite, 4 KiB, psync, iodepth 1, direct, 11.0 s
      write: 7,186 IOPS, 29.4 MB/s; p50 108 µs, p99 301 µs, p99.9 4.01 ms,
      max 16.5 ms
      0.98 in flight on average; 28 % of a CPU; one at a time: the latency was the
      limit
    kept as run 1
    ");
    let again = home.assay(&["import", &file, "--json"]);
    common::schemas::holds("import", &again.stdout, &["/files/0", "/files/0/jobs/0"]);
    let value = json(&again.stdout);
    assert_eq!(value["files"][0]["run"], 1, "the same file is the same run");
    assert_eq!(value["doubts"].as_array().unwrap().len(), 0);
}

#[test]
fn what_a_result_did_not_measure() {
    let home = Home::new();
    let file = fixture("judge/fixtures/fio-3.33/depth-psync.json");
    let out = home.assay(&["import", "--json", "--no-store", &file]);
    assert_eq!(out.code, Some(1), "{}", out.stderr);
    let value = json(&out.stdout);
    let doubt = &value["doubts"][0];
    assert_eq!(
        (&doubt["code"], &doubt["severity"]),
        (&"depth-not-reached".into(), &"void".into())
    );
    assert_eq!(doubt["job"], "depth-psync");
    assert!(value["files"][0]["run"].is_null());
    assert!(
        !home.dir.path().join("store.db").exists(),
        "--no-store keeps nothing"
    );
}

#[test]
fn text_stays_within_80_columns() {
    let home = Home::new();
    for name in [
        "fio/fixtures/fio-3.33-status-interval.json",
        "fio/fixtures/fio-3.33-fdatasync.json",
    ] {
        std::fs::copy(fixture(name), home.dir.path().join("r.json")).unwrap();
        let mut command = home.command(&["import", "--no-store", "r.json"]);
        let out = common::ran(command.current_dir(home.dir.path()).output().unwrap());
        for line in out.stdout.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

/// Output of PowerShell's `fio … > result.json`, and a result from standard input.
#[test]
fn utf_16_is_read_and_standard_input() {
    let home = Home::new();
    let text =
        std::fs::read_to_string(fixture("judge/fixtures/fio-3.33/depth-psync.json")).unwrap();
    let wide = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff)
            .chain(text.encode_utf16())
            .flat_map(order)
            .collect()
    };
    for (name, bytes) in [
        ("le", wide(u16::to_le_bytes)),
        ("be", wide(u16::to_be_bytes)),
    ] {
        let path = home.dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        let out = home.assay(&["import", "--json", path]);
        assert_eq!(out.code, Some(1), "{}", out.stderr);
        let value = json(&out.stdout);
        assert_eq!(value["doubts"][0]["code"], "depth-not-reached");
        assert_eq!(
            value["files"][0]["run"], 1,
            "the same result is the same run"
        );
    }
    let mut command = home.command(&["import", "--json", "--no-store", "-"]);
    let file = std::fs::File::open(fixture("judge/fixtures/fio-3.33/depth-psync.json")).unwrap();
    let out = common::ran(command.stdin(file).output().unwrap());
    assert_eq!(out.code, Some(1), "{}", out.stderr);
}

#[test]
fn bad_input_is_one_clear_error_and_keeps_nothing() {
    let home = Home::new();
    let good = fixture("judge/fixtures/fio-3.33/clean-read.json");
    let write = |name: &str, bytes: &[u8]| {
        let path = home.dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let whole = std::fs::read(&good).unwrap();
    let cut = write("cut.json", &whole[..whole.len() / 2]);
    let empty = write("empty.json", b"");
    let garbage = write("garbage\n.json", &[0xff, 0x00, 0x7b, 0x1b]);
    let nested = write(
        "nested.json",
        "{\"jobs\":[{\"x\":".repeat(50_000).as_bytes(),
    );
    let mut said = String::new();
    for (path, code) in [
        (cut.as_str(), 2),
        (&empty, 2),
        (&garbage, 2),
        (&nested, 2),
        ("/no/such.json", 3),
        ("/", 3),
    ] {
        let out = home.assay(&["import", &good, path]);
        assert_eq!(out.code, Some(code), "{path:?} {}", out.stderr);
        assert_eq!(out.stdout, "");
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
        said += &home.told(&out.stderr);
        assert!(
            !home.dir.path().join("store.db").exists(),
            "nothing is kept"
        );
    }
    insta::assert_snapshot!(said, @r#"
    assay: HOME/cut.json: cut off at line 362 (byte 9898): the end of the JSON is missing; no complete document and no complete job of the cut one could still be read; run fio again, or copy the whole file
    assay: HOME/empty.json: it is empty: fio wrote no result; it was killed, or its output went elsewhere (--output)
    assay: cannot import HOME/garbage\n.json: it contains no result of fio, CrystalDiskMark, ATTO, HD Tune, pveperf, dd, sysbench, iozone or bonnie++
    assay: HOME/nested.json: cut off at line 1 (byte 700000): the end of the JSON is missing; no complete document and no complete job of the cut one could still be read; run fio again, or copy the whole file
    assay: cannot read /no/such.json: No such file or directory (os error 2); expected a result of a benchmark
    assay: cannot read /: Is a directory (os error 21); expected a result of a benchmark
    "#);
}

#[test]
fn an_exported_run_comes_back() {
    let home = Home::new();
    let file = fixture("judge/fixtures/fio-3.33/clean-dsync.json");
    let text = std::fs::read(&file).unwrap();
    let documents = assay_fio::json::parse(text).unwrap();
    let about = assay_fio::import::Context {
        file: "clean-read.json".to_owned(),
        uid: "5eed".to_owned(),
        version: "0".to_owned(),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    let (run, samples) = assay_fio::import::run(&documents[0], &about);
    let export = home.dir.path().join("run.json");
    std::fs::write(&export, assay_store::to_json(&run, &samples, None).unwrap()).unwrap();
    for _ in 0..2 {
        let out = home.assay(&["import", "--json", export.to_str().unwrap()]);
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        assert_eq!(json(&out.stdout)["files"][0]["run"], 1);
    }
    let newer = home.dir.path().join("newer.json");
    std::fs::write(&newer, "{\"assay\": \"run\", \"schema\": 999}").unwrap();
    let out = home.assay(&["import", newer.to_str().unwrap()]);
    assert_eq!(out.code, Some(2));
    assert!(out.stderr.contains("newer"), "{}", out.stderr);
}

#[test]
fn texts_of_fio_and_other_tools_are_kept_and_compared() {
    let home = Home::new();
    let import = |path: &str| {
        let out = home.assay(&["import", "--json", &fixture(path)]);
        assert_eq!(out.code, Some(1), "{path}: {}", out.stderr);
        json(&out.stdout)
    };
    for (path, workloads) in [
        ("imports/fixtures/made-crystaldiskmark-3.txt", 8),
        ("imports/fixtures/made-crystaldiskmark-8.txt", 12),
        ("imports/fixtures/made-bonnie-1.96.txt", 4),
        ("imports/fixtures/made-iozone.txt", 4),
        ("imports/fixtures/sysbench-1.0.20.txt", 1),
    ] {
        let value = import(path);
        let file = &value["files"][0];
        assert_eq!(
            file["workloads"].as_array().unwrap().len(),
            workloads,
            "{path}"
        );
        assert!(file["run"].is_number() && !value["doubts"].as_array().unwrap().is_empty());
    }
    for path in [
        "fio/fixtures/fio-3.33-mix.txt",
        "fio/fixtures/fio-3.33-terse-5.txt",
    ] {
        let value = import(path);
        assert_eq!(value["files"][0]["tool"], "fio-3.33");
    }
    // The two results of CrystalDiskMark name their tests differently.
    let out = home.assay(&["compare", "1", "2", "--json"]);
    let value = json(&out.stdout);
    assert_eq!(value["by_shape"], true, "{}", out.stderr);
    let sizes = value["factors"].as_array().unwrap().iter();
    let sizes: Vec<u64> = sizes
        .map(|one| one["block_size"].as_u64().unwrap())
        .collect();
    assert_eq!(sizes, [4096]);
    assert!(value["environment"].as_array().unwrap().is_empty());
    let text = home.assay(&["compare", "1", "2"]).stdout;
    let (head, _) = text.split_once("Figures").unwrap();
    assert!(
        head.contains("4 KiB") && !head.contains("Environment"),
        "{head}"
    );
}

#[test]
fn a_text_with_a_broken_line_names_it_and_keeps_nothing() {
    let home = Home::new();
    let text =
        std::fs::read_to_string(fixture("imports/fixtures/made-crystaldiskmark-6.txt")).unwrap();
    let broken = home.dir.path().join("broken.txt");
    std::fs::write(&broken, text.replace("85.090", "quick")).unwrap();
    let out = home.assay(&["import", broken.to_str().unwrap()]);
    assert_eq!(out.code, Some(2), "{}", out.stderr);
    assert!(
        out.stderr.contains("line 9") && out.stderr.contains("quick"),
        "{}",
        out.stderr
    );
    assert!(!home.dir.path().join("store.db").exists());
}
