//! Tests `assay dups` from outside: output, exit statuses, hostile names.
#![allow(clippy::disallowed_methods, missing_docs)]

mod killed;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let root = place.root();
        std::fs::create_dir_all(root.join("sub")).unwrap();
        let content = "fifteen letters".repeat(20_000);
        for name in ["big", "sub/big too"] {
            std::fs::write(root.join(name), &content).unwrap();
        }
        for name in [
            OsStr::new("plain"),
            OsStr::from_bytes(b"new\nline \xff\x1b[31m"),
        ] {
            std::fs::write(root.join(name), "small").unwrap();
        }
        std::fs::write(root.join("sub/lone"), "nothing like it").unwrap();
        std::os::unix::fs::symlink("big", root.join("link")).unwrap();
        std::fs::write(root.join("empty"), "").unwrap();
        place
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("tree")
    }

    fn dups(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_assay"))
            .arg("dups")
            .args(arguments)
            .env("ASSAY_DUPS_INDEX", self.0.path().join("index.db"))
            .env_remove("NO_COLOR")
            .current_dir(self.root())
            .output()
            .unwrap()
    }

    /// Starts it, and kills it with SIGKILL after this many milliseconds.
    fn kill_after(&self, wait: u64, arguments: &[&str]) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_assay"))
            .arg("dups")
            .args(arguments)
            .env("ASSAY_DUPS_INDEX", self.0.path().join("index.db"))
            .current_dir(self.root())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Returns standard output without the directory's path; checks the status.
    fn text(&self, arguments: &[&str], status: i32) -> String {
        let output = self.dups(arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {errors}"
        );
        let own = self.root().display().to_string();
        String::from_utf8(output.stdout)
            .unwrap()
            .replace(&own, "TREE")
    }
}

#[test]
fn scan_says_what_it_found_and_what_it_left_out() {
    let place = Place::new();
    insta::assert_snapshot!(place.text(&["scan", "."], 0), @r"
    5 files, 586 KiB
    2 groups with 2 redundant files: 293 KiB to gain

    2 × 293 KiB  ff3d743d6ec70899
      TREE/big
      TREE/sub/big too

    2 × 5 B  b238588c90528b20
      TREE/new\nline \xff\u{1b}[31m
      TREE/plain
    left out: symbolic links 1, empty files 1

    Next: `assay dups report` lists all groups, `assay dups dirs` compares folders,
    `assay dups act --hardlink PATH` shows what linking would do.
    ");
    assert_eq!(place.text(&["uniques"], 0), "TREE/sub/lone\n");
    insta::assert_snapshot!(place.text(&["ls", "sub"], 0), @r"
      293 KiB      1 copy  big too
         15 B      unique  lone
    ");
    insta::assert_snapshot!(place.text(&["file", "big"], 0), @r"
    TREE/big: 293 KiB
      TREE/sub/big too
    ");
    assert_eq!(
        place.text(&["file", "sub/lone"], 1),
        "TREE/sub/lone: 15 B\nno copy\n"
    );
    place.text(&["file", "link"], 2);
    assert!(place.text(&["treemap"], 0).contains("<svg"));
    insta::assert_snapshot!(place.text(&["dirs"], 0), @r"
    no two folders are wholly equal

    equal in part: 1 pair of folders (each folder without its subfolders)

    293 KiB in 1 file
      100 % of TREE
      100 % of TREE/sub
    ");
    assert!(place.text(&["refresh"], 0).starts_with("5 files"));
    insta::assert_snapshot!(place.text(&["validate"], 0), @"2 groups compared byte by byte, 0 files no longer agree");
    std::fs::write(place.root().join("plain"), "sm4ll").unwrap();
    assert!(place.text(&["validate"], 1).contains("plain"));
}

/// Files in folders that were scanned separately are not reported as unique before they were
/// compared.
/// Links do not cross file systems, so the suggested command deletes.
#[test]
fn the_suggested_command_can_free_something() {
    let place = Place::new();
    let Ok(far) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let near = place.root().join("big");
    std::fs::copy(&near, far.path().join("big")).unwrap();
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    if device(&near) == device(far.path()) {
        return assay_testing::skipped("tmpfs", "/dev/shm is no other file system here");
    }
    assert!(place.text(&["scan", "."], 0).contains("act --hardlink"));
    for name in ["sub/big too", "plain"] {
        std::fs::remove_file(place.root().join(name)).unwrap();
    }
    let far = far.path().to_str().unwrap();
    let text = place.text(&["scan", ".", far], 0);
    assert!(!text.contains("act --hardlink"), "{text}");
    assert!(text.contains("act --delete"), "{text}");
    assert!(
        place
            .text(&["act", "--hardlink", far], 0)
            .contains("0 steps")
    );
    assert!(place.text(&["act", "--delete", far], 0).contains("1 step"));
}

#[test]
fn folders_scanned_apart_are_refreshed_together() {
    let place = Place::new();
    let content = "another fifteen".repeat(20_000);
    for (folder, name) in [("x", "one"), ("y", "two")] {
        std::fs::create_dir(place.root().join(folder)).unwrap();
        std::fs::write(place.root().join(folder).join(name), &content).unwrap();
    }
    // The times must be old enough to be trusted.
    std::thread::sleep(std::time::Duration::from_millis(200));
    place.text(&["scan", "x"], 0);
    place.text(&["scan", "y"], 0);
    let text = place.text(&["file", "x/one"], 1);
    insta::assert_snapshot!(text, @r"
    TREE/x/one: 293 KiB
    no copy known; not compared with all files of its size, `assay dups refresh` does
    ");
    assert!(place.text(&["ls", "x"], 0).contains("unknown"));
    for verb in ["uniques", "report"] {
        let output = place.dups(&[verb]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            text.lines()
                .filter(|line| line.contains("`assay dups refresh`"))
                .count(),
            1,
            "{text}"
        );
    }
    place.text(&["refresh"], 0);
    assert_eq!(
        place
            .text(&["report", "--format", "csv"], 0)
            .lines()
            .count(),
        2
    );
    assert_eq!(place.text(&["uniques"], 0), "");
    assert_eq!(
        place.dups(&["uniques"]).stderr,
        b"0 files without a copy, 0 B\n"
    );
}

/// A filter stays in effect until a scan without it.
#[test]
fn a_refresh_scans_as_before() {
    let place = Place::new();
    let told = |verb: &str| String::from_utf8(place.dups(&[verb]).stderr).unwrap();
    let files = |words: &[&str]| -> u64 {
        let text = place.text(words, 0);
        let (count, _) = text.split_once(" file").unwrap_or_else(|| panic!("{text}"));
        count.parse().unwrap_or_else(|_| panic!("{text}"))
    };
    let scan = ["scan", ".", "--min-size", "1k", "-g", "!sub/**"];
    assert_eq!(files(&scan), 1);
    assert_eq!(files(&["refresh"]), 1);
    let flags = ", with --min-size 1k --glob '!sub/**'\n";
    for verb in ["refresh", "report"] {
        assert!(told(verb).contains(flags), "{}", told(verb));
    }
    // The new filter stays in effect from now on.
    assert_eq!(files(&["refresh", "--max-size", "1k"]), 3);
    assert_eq!(files(&["refresh"]), 3);
    assert_eq!(files(&["scan", "."]), 5);
    assert_eq!(files(&["refresh"]), 5);
    assert!(!told("report").contains(", with"), "{}", told("report"));
    // A trailing slash does not change the folder.
    assert_eq!(files(&["scan", "./"]), 5);
    assert_eq!(files(&["refresh"]), 5);
    assert_eq!(told("report").lines().count(), 1);
}

#[test]
fn json_loses_no_name() {
    let place = Place::new();
    let text = place.text(&["scan", ".", "--json", "--no-index"], 0);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let list = place.text(&["scan", ".", "--format", "json", "--no-index"], 0);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list, value["groups"]);
    let groups = value["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!(groups[0]["size"], 300_000);
    assert_eq!(groups[0]["hash"].as_str().unwrap().len(), 32);
    let exact = groups[1]["bytes"]["0"].as_str().unwrap();
    assert!(exact.ends_with("6e65770a6c696e6520ff1b5b33316d"), "{exact}");
    assert_eq!(value["skipped"]["symlink"], 1);
    assert_eq!(value["summary"]["redundant_files"], 2);
    assert!(!place.0.path().join("index.db").exists());
    // The other hash: the same groups, twice as many digits.
    let text = place.text(
        &["scan", ".", "--json", "--no-index", "--hash", "blake3"],
        0,
    );
    let other: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["hash"], "xxh3-128");
    assert_eq!(other["hash"], "blake3");
    assert_eq!(other["groups"][0]["hash"].as_str().unwrap().len(), 64);
    assert_eq!(other["groups"][0]["files"], groups[0]["files"]);
    let csv = place.text(&["scan", ".", "--format", "csv", "--no-index"], 0);
    assert!(csv.starts_with("size,hash,count,files\n300000,"));
    // The format of fclones 0.35.0, header and names, which fclones parses.
    let report = place.text(&["scan", ".", "--format", "fclones", "--no-index"], 0);
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines[0], "# Report by fclones 0.35.0");
    assert_eq!(
        lines[4],
        "# Total: 600010 B (600010 B) in 4 files in 2 groups"
    );
    assert_eq!(lines[5], "# Redundant: 300005 B (300005 B) in 2 files");
    let (_, size) = lines[7].split_once(", ").unwrap();
    assert_eq!(size, "300000 B (300000 B) * 2:", "{report}");
    assert!(
        lines.contains(&"    TREE/new\\nline \\xFF\\x1B[31m"),
        "{report}"
    );
    let fdupes = place
        .dups(&["scan", ".", "--format", "nul", "--no-index"])
        .stdout;
    assert_eq!(
        fdupes
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .count(),
        4
    );
}

#[test]
fn acting_is_dry_until_told_and_can_be_taken_back() {
    let place = Place::new();
    place.text(&["scan", "."], 0);
    let (a, b) = (place.root().join("big"), place.root().join("sub/big too"));
    let ino = |path: &Path| std::fs::metadata(path).unwrap().ino();
    let dry = place.text(&["act", "--hardlink", "sub"], 0);
    insta::assert_snapshot!(dry, @r"
    hardlink TREE/sub/big too
      keeping TREE/big
    1 step, 293 KiB to gain; nothing was changed, --apply does it
    ");
    assert_ne!(ino(&a), ino(&b));
    let done = place.text(&["act", "--hardlink", "sub", "--apply"], 0);
    insta::assert_snapshot!(done.lines().next().unwrap(), @"hardlink: 1 file, 293 KiB gained");
    assert_eq!(ino(&a), ino(&b));
    let run = done
        .rsplit("undo ")
        .next()
        .unwrap()
        .trim()
        .trim_end_matches('`');
    insta::assert_snapshot!(place.text(&["undo", run], 0), @r"
    undo takes 296 KiB for 1 file (1 name); the run freed 293 KiB
    restored 1 file
    ");
    assert_ne!(ino(&a), ino(&b));
    let runs = place.text(&["undo"], 0);
    let (_, counts) = runs.split_once(", ").unwrap();
    insta::assert_snapshot!(counts, @"hardlink: 0 done, 0 left alone, 1 undone");
    // Changed since the scan: left alone and reported.
    place.text(&["refresh"], 0);
    std::fs::write(&b, "edited").unwrap();
    let output = place.dups(&["act", "--delete", "--apply"]);
    let own = place.root();
    let left = String::from_utf8_lossy(&output.stderr).into_owned();
    insta::assert_snapshot!(assay_testing::normalize_output(left, &[(own, "TREE")]), @"assay: left alone: TREE/sub/big too: changed since it was scanned; `assay dups refresh` looks again");
    assert_eq!(std::fs::read(&b).unwrap(), b"edited");
}

#[test]
fn what_is_moved_comes_back() {
    let place = Place::new();
    place.text(&["scan", "."], 0);
    let from = place.root().join("sub/big too");
    let below = place.0.path().join("aside");
    let to = below.join(from.strip_prefix("/").unwrap());
    let below = below.display().to_string();
    let dry = place.text(&["act", "--move", &below, "sub"], 0);
    insta::assert_snapshot!(assay_testing::normalize_output(dry, &[(&below, "BELOW")]), @r"
    move TREE/sub/big too to BELOW
      keeping TREE/big
    1 step, 293 KiB to move; nothing was changed, --apply does it
    ");
    let done = place.text(&["act", "--move", &below, "sub", "--apply"], 0);
    insta::assert_snapshot!(done.lines().next().unwrap(), @"move: 1 file, 293 KiB moved");
    assert!(to.exists() && !from.exists());
    let run = done.rsplit("undo ").next().unwrap().trim();
    let undone = place.text(&["undo", run.trim_end_matches('`')], 0);
    assert_eq!(undone, "restored 1 file\n");
    assert!(!to.exists() && from.exists());
}

#[test]
fn bad_input_is_named_with_the_way_out() {
    let place = Place::new();
    let mut said = String::new();
    for arguments in [
        &["scan", "nowhere"][..],
        &["scan", "plain"],
        &["scan", ".", "--min-size", "many"],
        &["scan", ".", "--older-than", "soon"],
        &["scan", ".", "-g", "a{b"],
        &["scan", ".", "--owner", "no such user"],
        &["report"],
        &["undo", "7"],
        &["merge", "x"],
        &["act"],
        &["browse"],
    ] {
        let output = place.dups(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        let line = text.lines().next().unwrap();
        said += &assay_testing::normalize_output(line, &[(place.0.path(), "OWN")]);
        said.push('\n');
        assert!(!text.contains("panicked"), "{text}");
    }
    insta::assert_snapshot!(said, @r"
    assay: OWN/tree/nowhere: cannot open: No such file or directory (os error 2)
    assay: OWN/tree/plain: not a folder; name the folder that holds the files
    error: invalid value 'many' for '--min-size <SIZE>': `many` is not a size; give a size such as 4k, 64KiB, 1.5M or 2GB (k and KiB are 2^10, kB is 10^3) or a number of bytes
    error: invalid value 'soon' for '--older-than <AGE>': `soon` is no age; expected a number and s, m, h, d, w or y, e.g. 30d
    assay: glob `a{b`: error parsing glob 'a{b': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
    error: invalid value 'no such user' for '--owner <USER>': no such user `no such user` in /etc/passwd; give the number instead
    assay: nothing was scanned yet: run `assay dups scan PATH` first
    assay: unknown run 7: `assay dups undo` lists the runs
    assay: `x`: expected NAME=FILE, e.g. nas=nas.db
    error: the following required arguments were not provided:
    assay: cannot browse: standard output is not a terminal. `assay dups report` prints the groups, `assay dups treemap` draws them.
    ");
    let act = place.dups(&["act"]).stderr;
    assert!(String::from_utf8_lossy(&act).contains("--hardlink"));
    place.text(&["scan", "."], 0);
    let output = place.dups(&["scan", ".", "--hash", "blake3"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let own = place.0.path();
    insta::assert_snapshot!(assay_testing::normalize_output(text, &[(own, "OWN")]), @"assay: index OWN/index.db holds xxh3-128 hashes; scan with --hash xxh3-128, or into another file with --index");
    std::fs::write(place.0.path().join("index.db"), "these are my notes").unwrap();
    let output = place.dups(&["scan", "."]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    insta::assert_snapshot!(assay_testing::normalize_output(text, &[(own, "OWN")]), @"assay: index OWN/index.db: this is no index of assay (nor any SQLite file); it was left alone. Name another file with --index, or move this one away");
    let notes = std::fs::read(place.0.path().join("index.db")).unwrap();
    assert_eq!(notes, b"these are my notes");
}

/// /proc as a root, and a folder that disappears: a message, no crash.
#[test]
fn a_kernel_file_system_is_left_out() {
    let place = Place::new();
    let text = place.text(&["scan", "/proc", "--no-index"], 0);
    insta::assert_snapshot!(text, @r"
    0 files, 0 B
    no duplicates
    left out: kernel file systems 1
    ");
    let output = place.dups(&["scan", "/proc", "--no-index"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    insta::assert_snapshot!(text, @"assay: left out: /proc: on a file system of the kernel");
}

/// A file with a name that was never scanned: undo reports its cost and requires an option.
#[test]
fn undo_that_costs_more_than_was_freed_is_refused() {
    let place = Place::new();
    let outside = place.0.path().join("outside");
    std::fs::hard_link(place.root().join("sub/big too"), &outside).unwrap();
    place.text(&["scan", "."], 0);
    let done = place.text(&["act", "--hardlink", "sub", "--apply"], 0);
    insta::assert_snapshot!(done.lines().next().unwrap(), @"hardlink: 1 file, 0 B gained");
    let run = done.rsplit("undo ").next().unwrap().trim();
    let run = run.trim_end_matches('`');
    insta::assert_snapshot!(place.text(&["undo", run], 1), @r"
    undo takes 296 KiB for 1 file (1 name); the run freed 0 B
    TREE/sub/big too would become a file of its own: no other name of its file can be found
    nothing was changed; --despite-cost undoes it nevertheless
    ");
    let document: serde_json::Value =
        serde_json::from_str(&place.text(&["undo", run, "--json", "--dry-run"], 1)).unwrap();
    assert_eq!(document["carried_out"], false);
    assert_eq!(document["cost"]["freed_bytes"], 0);
    assert_eq!(document["cost"]["apart"].as_array().unwrap().len(), 1);
    let undone = place.text(&["undo", run, "--despite-cost"], 0);
    assert!(undone.ends_with("restored 1 file\n"), "{undone}");
}

/// Regression: `report` of a folder that was never scanned printed "no duplicates".
#[test]
fn what_was_never_scanned_is_said() {
    let place = Place::new();
    assert!(place.dups(&["scan", "."]).status.success());
    let apart = tempfile::tempdir().unwrap();
    let apart = apart.path().to_str().unwrap();
    for verb in ["report", "dirs", "uniques"] {
        let output = place.dups(&[verb, apart]);
        assert_eq!(output.status.code(), Some(3), "{verb}");
        assert!(output.stdout.is_empty(), "{verb}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(apart));
        for known in ["sub", "..", "."] {
            assert_eq!(
                place.dups(&[verb, known]).status.code(),
                Some(0),
                "{verb} {known}"
            );
        }
    }
}
