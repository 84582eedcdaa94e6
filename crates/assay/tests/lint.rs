//! `assay lint` as a user runs it.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, ran};
use std::io::Write as _;
use std::process::Stdio;

const CORRECT: &str = "fio --name=t --filename=/srv/t --size=4G --direct=1 --ioengine=libaio \
    --iodepth=16 --rw=randread --bs=4k --time_based --runtime=60 --ramp_time=5 --randrepeat=0";
const WRONG: &str = "fio --filename=test --sync=1 --rw=randread --bs=4k --numjobs=1 --iodepth=4 \
    --group_reporting --name=test --filesize=10G --runtime=300 && rm test";

fn codes(stdout: &str) -> Vec<String> {
    let value: serde_json::Value = serde_json::from_str(stdout).unwrap();
    let doubts = value["doubts"].as_array().unwrap();
    for doubt in doubts {
        for key in ["code", "severity", "evidence", "remedy"] {
            assert!(
                doubt[key].as_str().is_some_and(|text| !text.is_empty()),
                "{key}"
            );
        }
    }
    doubts
        .iter()
        .map(|doubt| doubt["code"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_correct_command_passes_without_a_word() {
    let home = Home::new();
    let out = home.assay(&["lint", CORRECT]);
    assert_eq!(
        (out.code, out.stdout.as_str(), out.stderr.as_str()),
        (Some(0), "", "")
    );
    let out = home.assay(&["lint", CORRECT, "--json"]);
    assert_eq!(out.code, Some(0));
    assert!(codes(&out.stdout).is_empty());
}

#[test]
fn a_published_command_is_doubted() {
    let home = Home::new();
    let out = home.assay(&["lint", "--json", WRONG]);
    assert_eq!(out.code, Some(1), "{}", out.stderr);
    let expected = [
        "depth-not-reached",
        "page-cache-read",
        "no-time-based",
        "sync-on-read",
        "repeated-offsets",
    ];
    assert_eq!(codes(&out.stdout), expected);
    let out = home.assay(&["lint", WRONG]);
    assert_eq!(out.code, Some(1));
    assert!(
        out.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        out.stdout
    );
    for code in expected {
        assert!(out.stdout.contains(code));
    }
}

#[test]
fn scripts_includes_and_other_encodings_are_understood() {
    let home = Home::new();
    let write = |name: &str, bytes: &[u8]| {
        let path = home.dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let script = "E=psync\nfor d in 1 4 64; do\n  fio --name=t --rw=randread --direct=1 --ioengine=$E \\\n    \
                  --iodepth=$d --bs=$1 --size=4G\ndone\n";
    let out = home.assay(&["lint", "--json", &write("s.sh", script.as_bytes())]);
    assert!(
        codes(&out.stdout).contains(&"depth-not-reached".to_owned()),
        "{}",
        out.stderr
    );
    assert!(out.stderr.contains("bs"), "{}", out.stderr);
    write("common.inc", b"ioengine=psync\niodepth=16\n");
    let job = "[global]\ndirect=1\ninclude common.inc\n[t]\nrw=randread\nrandrepeat=0\n";
    let out = home.assay(&["lint", "--json", &write("a.fio", job.as_bytes())]);
    assert_eq!(codes(&out.stdout), ["depth-not-reached"], "{}", out.stderr);
    let wide: Vec<u8> = job
        .replace("include common.inc", "iodepth=16")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let out = home.assay(&["lint", "--json", &write("w.fio", &wide)]);
    assert_eq!(codes(&out.stdout), ["depth-not-reached"], "{}", out.stderr);
    // One that includes itself ends.
    let itself = write("self.fio", b"[t]\ninclude self.fio\n");
    let out = home.assay(&["lint", &itself]);
    assert_eq!(out.code, Some(2), "{}", out.stdout);
}

#[test]
fn other_tools_are_explained() {
    let home = Home::new();
    for words in [
        vec![
            "lint",
            "--json",
            "dd if=/dev/zero of=/srv/t bs=1M count=1024",
        ],
        vec!["lint", "--json", "dd", "if=/dev/zero", "of=/srv/t", "bs=1M"],
    ] {
        let out = home.assay(&words);
        assert_eq!(out.code, Some(1), "{words:?}: {}", out.stderr);
        let expected = ["page-cache-write", "unflushed-write", "compressible-data"];
        assert_eq!(codes(&out.stdout), expected, "{words:?}");
    }
    let out = home.assay(&["lint", "dd if=/dev/zero of=/dev/sdz bs=1M oflag=direct"]);
    assert!(
        out.stdout.lines().next().unwrap().contains("/dev/sdz"),
        "{}",
        out.stdout
    );
    // A call of fio that is wrong stays an error, whatever stands beside it.
    let out = home.assay(&["lint", "dd if=a of=b; fio --rw=read"]);
    assert_eq!(out.code, Some(2), "{}", out.stdout);
}

#[test]
fn what_overwrites_a_disk_says_so_first() {
    let home = Home::new();
    let right = CORRECT.replace("/srv/t", "/dev/nvme9n1");
    assert_eq!(home.assay(&["lint", &right]).code, Some(0));
    let wrong = right.replace("--rw=randread", "--rw=randwrite --refill_buffers");
    let out = home.assay(&["lint", &wrong]);
    assert_eq!(out.code, Some(1));
    assert!(
        out.stdout.lines().next().unwrap().contains("/dev/nvme9n1"),
        "{}",
        out.stdout
    );
    let out = home.assay(&["lint", "--json", &wrong]);
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(value["overwrites"], serde_json::json!(["/dev/nvme9n1"]));
}

#[test]
fn words_files_and_standard_input() {
    let home = Home::new();
    let out = home.assay(&[
        "lint",
        "fio",
        "--name=t",
        "--rw=randread",
        "--sync=1",
        "--json",
    ]);
    assert!(
        codes(&out.stdout).contains(&"sync-on-read".to_owned()),
        "{}",
        out.stderr
    );
    let file = home.dir.path().join("a b.fio");
    std::fs::write(
        &file,
        "[global]\ndirect=1\n[one]\nrw=randread\niodepth=8\n[two]\nrw=write\nbs=1m\n",
    )
    .unwrap();
    let path = file.to_str().unwrap();
    for words in [
        vec!["lint", "--json", path],
        vec!["lint", "--json", "fio", "--runtime=60", path],
    ] {
        let out = home.assay(&words);
        assert_eq!(
            codes(&out.stdout),
            ["depth-not-reached"],
            "{words:?} {}",
            out.stderr
        );
    }
    let mut child = home
        .command(&["lint", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(WRONG.as_bytes())
        .unwrap();
    let out = ran(child.wait_with_output().unwrap());
    assert_eq!(codes(&out.stdout).len(), 5);
}

#[test]
fn bad_input_is_one_clear_error() {
    let home = Home::new();
    let garbage = home.dir.path().join("garbage");
    std::fs::write(&garbage, [0xff, 0xfe, 0x00]).unwrap();
    let empty = home.dir.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let mut said = String::new();
    for (words, code) in [
        (vec!["lint", ""], 2),
        (vec!["lint", "fio"], 2),
        (vec!["lint", "fio --name='x"], 2),
        (vec!["lint", "ls -la"], 2),
        (vec!["lint", "fio --name=x --runtime=-3"], 2),
        (vec!["lint", "fio --name=x /no/such/job.fio"], 3),
        (vec!["lint", "/no/such/job.fio"], 3),
        (vec!["lint", "/"], 3),
        (vec!["lint", garbage.to_str().unwrap()], 2),
        (vec!["lint", empty.to_str().unwrap()], 2),
    ] {
        let out = home.assay(&words);
        assert_eq!(out.code, Some(code), "{words:?} {}", out.stderr);
        assert_eq!(out.stdout, "");
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
        said += &home.told(&out.stderr);
    }
    insta::assert_snapshot!(said, @r#"
    assay: nothing to read: expected `fio --name=… --rw=…` or the path of a job file
    assay: no job in it: fio needs --name=… for a job on the command line, or a job file
    assay: a quotation mark is not closed: add the missing ' or "
    assay: no call of fio in it: expected `fio --name=… --rw=…` or the path of a job file
    assay: runtime=-3: fio expects a time such as 60, 1500ms or 5m, not negative
    assay: /no/such/job.fio: No such file or directory (os error 2); expected a job file, or a command in quotes
    assay: /no/such/job.fio: No such file or directory (os error 2); expected a job file, or a command in quotes
    assay: /: Is a directory (os error 21); expected a job file, or a command in quotes
    assay: HOME/garbage: not text; expected a job file, or a command in quotes
    assay: HOME/empty: it is empty: expected a job file of fio or a command line
    "#);
}
