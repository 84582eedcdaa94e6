//! Runs the real fio to check the meaning of options and results, which a recorded result cannot show. Each
//! case runs for at most half a second.
#![allow(
    clippy::disallowed_methods,
    reason = "runs the real program on scratch files"
)]

use assay_fio::{job, json};
use assay_judge::doubts::judge_result;
use assay_model::workload::{Durability, Engine, Pattern};
use assay_model::{Bytes, Nanos, Workload};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether fio is installed; prints the reason if not.
fn have_fio() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    if !found {
        assay_testing::skipped("fio", "fio is not installed");
    }
    found
}

fn fio(arguments: &[&str]) -> json::FioDocument {
    let output = Command::new("fio")
        .args(arguments)
        .arg("--output-format=json+")
        .output()
        .unwrap();
    let documents = json::parse(&output.stdout);
    documents
        .unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&output.stderr)))
        .pop()
        .unwrap()
}

fn codes(document: &json::FioDocument) -> Vec<String> {
    let judged = judge_result(document);
    judged
        .into_iter()
        .flat_map(|jobs| jobs.doubts)
        .map(|doubt| doubt.code)
        .collect()
}

fn write_job(dir: &Path, text: &str) -> String {
    let path = dir.join("job.fio");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn workload(pattern: Pattern, engine: Engine, durability: Durability) -> Workload {
    Workload {
        name: "w".to_owned(),
        pattern,
        block_size: Bytes(4096),
        queue_depth: 1,
        jobs: 1,
        read_percent: None,
        engine,
        direct: false,
        durability,
        runtime: Some(Nanos(300_000_000)),
        ramp: Some(Nanos(50_000_000)),
    }
}

#[test]
fn a_synchronous_engine_does_not_queue() {
    if !have_fio() {
        return;
    }
    let scratch = Scratch::new("depth");
    let file = format!("--filename={}", scratch.0.join("f").display());
    let document = fio(&[
        "--name=t",
        &file,
        "--size=4M",
        "--rw=randwrite",
        "--ioengine=psync",
        "--iodepth=32",
        "--runtime=300ms",
        "--time_based=1",
        "--fsync=32",
    ]);
    assert!(codes(&document).contains(&"depth-not-reached".to_owned()));
    assert!(document.jobs[0].fio.iodepth_level["1"] > 90.0);
}

#[test]
fn runtime_alone_ends_with_the_file() {
    if !have_fio() {
        return;
    }
    let scratch = Scratch::new("time");
    let file = format!("--filename={}", scratch.0.join("f").display());
    let document = fio(&["--name=t", &file, "--size=4M", "--rw=read", "--runtime=30"]);
    assert!(codes(&document).contains(&"no-time-based".to_owned()));
}

#[test]
fn flushes_are_reported_apart() {
    if !have_fio() {
        return;
    }
    let scratch = Scratch::new("flush");
    let file = format!("--filename={}", scratch.0.join("f").display());
    let document = fio(&[
        "--name=t",
        &file,
        "--size=1M",
        "--rw=write",
        "--fdatasync=1",
    ]);
    let job = &document.jobs[0];
    let (flushes, writes) = (job.flush().unwrap().count, job.write().unwrap().count);
    // fio 3.33 omits the flush after the last write.
    assert!(
        flushes == writes || flushes + 1 == writes,
        "{flushes} of {writes}"
    );
    assert!(codes(&document).contains(&"flush-hidden".to_owned()));
}

#[test]
fn an_error_of_the_kernel_is_seen() {
    if !have_fio() || !Path::new("/dev/full").exists() {
        return;
    }
    let document = fio(&[
        "--name=t",
        "--filename=/dev/full",
        "--size=64k",
        "--rw=write",
    ]);
    assert_eq!(document.jobs[0].fio.error, 28);
    assert!(codes(&document).contains(&"io-error".to_owned()));
}

#[test]
fn jobs_that_assay_writes_run_and_are_believed() {
    if !have_fio() {
        return;
    }
    let scratch = Scratch::new("render");
    let file = scratch.0.join("f");
    let layout = job::layout_job(&file, Bytes(4 << 20), 1).unwrap();
    let laid = fio(&[&write_job(&scratch.0, &layout)]);
    assert_eq!(laid.jobs[0].fio.error, 0);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 4 << 20);
    for durability in [Durability::Dsync, Durability::Fdatasync, Durability::Fsync] {
        let workload = workload(Pattern::RandWrite, Engine::Psync, durability);
        let text = job::render(&workload, &file, Bytes(4 << 20), 7).unwrap();
        let document = fio(&[&write_job(&scratch.0, &text)]);
        let job = &document.jobs[0];
        assert_eq!(job.fio.error, 0, "{durability:?}");
        let io = job.write().unwrap();
        assert_eq!(io.bytes.0, io.count * 4096);
        assert!(job.runtime >= Nanos(250_000_000));
        let doubts = judge_result(&document).remove(0).doubts;
        let void = doubts
            .iter()
            .find(|d| d.severity == assay_model::Severity::Void);
        assert_eq!(void, None, "{durability:?}");
    }
}

#[test]
fn sequential_jobs_do_not_meet() {
    if !have_fio() {
        return;
    }
    let scratch = Scratch::new("shares");
    let file = scratch.0.join("f");
    fio(&[&write_job(
        &scratch.0,
        &job::layout_job(&file, Bytes(1 << 20), 1).unwrap(),
    )]);
    let mut workload = workload(Pattern::Write, Engine::Psync, Durability::None);
    workload.jobs = 4;
    let text = job::render(&workload, &file, Bytes(1 << 20), 7).unwrap();
    // One pass over the file instead of a fixed time, so that every offset occurs once.
    let text = text
        .replace("time_based=1\n", "")
        .replace("ramp_time=50ms\n", "")
        .replace(
            "refill_buffers=1",
            "verify=crc32c\ndo_verify=0\nverify_state_save=0\nverify_pattern=%o",
        );
    let document = fio(&[&write_job(&scratch.0, &text)]);
    let written: u64 = document
        .jobs
        .iter()
        .map(|job| job.write().unwrap().bytes.0)
        .sum();
    assert_eq!(document.jobs.len(), 4);
    assert_eq!(written, 1 << 20);
    // Each block was written by one job and contains its own offset; no block of the layout remains.
    let bytes = std::fs::read(&file).unwrap();
    assert!(
        bytes.chunks(4096).all(|block| block[..2] == [0xca, 0xac]),
        "verify header missing"
    );
    assert!(!codes(&document).contains(&"jobs-overlap".to_owned()));
}

#[test]
fn awkward_names_reach_the_same_file() {
    if !have_fio() {
        return;
    }
    let scratch = Scratch::new("names");
    for name in [
        "a b", "a:b", "a::b", "a\"b", "a'b", "a%b", "a\\b", "a[b]", "a=b", "=b", "a,b", "a$b", "ä",
        "~x", "a *", "(a)",
    ] {
        let file = scratch.0.join(name);
        let text = job::layout_job(&file, Bytes(4096), 1).unwrap();
        let document = fio(&[&write_job(&scratch.0, &text)]);
        assert_eq!(document.jobs[0].fio.error, 0, "{name}");
        assert_eq!(
            std::fs::metadata(&file).map(|meta| meta.len()).ok(),
            Some(4096),
            "{name}"
        );
        std::fs::remove_file(&file).unwrap();
    }
    let left: Vec<_> = std::fs::read_dir(&scratch.0)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["job.fio"]);
}
