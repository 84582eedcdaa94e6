//! Tests the doubts about command lines. Results are tested in the submodules.

mod imported_results;
mod samples;

use super::*;
use assay_fio::options::command_line;
use assay_model::doubt::Severity;
use std::collections::BTreeSet;

fn lint(text: &str) -> Vec<Doubt> {
    let calls = command_line(text).unwrap();
    calls
        .iter()
        .flat_map(|call| judge_options(&call.jobs))
        .flatten()
        .collect()
}

fn codes_of(doubts: &[Doubt]) -> Vec<&str> {
    doubts.iter().map(|doubt| doubt.code.as_str()).collect()
}

/// Applies `change` to a command line without doubts, and returns the doubts about the changed command line.
fn lint_with(change: &str) -> Vec<Doubt> {
    lint(&format!(
        "fio --name=t --filename=/srv/t --size=4G --direct=1 --ioengine=libaio --iodepth=16 \
         --rw=randwrite --bs=4k --time_based --runtime=60 --ramp_time=5 --refill_buffers \
         --randrepeat=0 {change}"
    ))
}

#[test]
fn published_commands_are_doubted_for_the_right_reasons() {
    let text = include_str!("../../fixtures/commands/seeds.txt");
    let mut lines = text.lines();
    let mut seen = 0;
    while let (Some(command), Some(expected)) = (lines.next(), lines.next()) {
        let doubts = lint(command);
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(codes_of(&doubts), expected, "{command}");
        seen += 1;
    }
    assert_eq!(seen, 10);
}

#[test]
fn correct_commands_pass_without_a_word() {
    for command in include_str!("../../fixtures/commands/correct.txt").lines() {
        assert_eq!(lint(command), [], "{command}");
    }
}

#[test]
fn each_option_that_spoils_a_command_is_found() {
    for (change, expected) in [
        ("", &[][..]),
        ("--ioengine=psync", &["depth-not-reached"]),
        ("--ioengine=null", &["null-engine"]),
        ("--filename=/dev/shm/x", &["tmpfs"]),
        ("--allow_mounted_write=1", &["device-in-use"]),
        ("--ioengine=nbd --sync=1", &["engine-dependent"]),
        (
            "--direct=0",
            &["depth-not-reached", "page-cache-write", "unflushed-write"],
        ),
        (
            "--direct=0 --ioengine=io_uring",
            &["page-cache-write", "unflushed-write"],
        ),
        (
            "--direct=0 --ioengine=io_uring --end_fsync=1",
            &["page-cache-write"],
        ),
        (
            "--direct=0 --ioengine=io_uring --fsync=1",
            &["flush-hidden"],
        ),
        (
            "--rw=write --bs=1m --direct=0 --ioengine=io_uring --end_fsync=1",
            &[],
        ),
        ("--ioengine=posixaio", &["depth-not-reached"]),
        ("--ioengine=posixaio --nrfiles=16", &[]),
        ("--ioengine=libpmem", &["depth-not-reached"]),
        (
            "--ioengine=http",
            &["engine-dependent", "depth-not-reached"],
        ),
        (
            "--ioengine=dev-dax --direct=0 --iodepth=1 --rw=randread",
            &[],
        ),
        ("--ioengine=io_urnig", &["unknown-option"]),
        ("--refill_buffers=0 --verify=crc32c", &[]),
        ("--rate_process=poisson", &[]),
        ("--thinktime=1000", &["rate-capped"]),
        ("--runtime=0", &["no-time-based"]),
        (
            "--rw=randread --direct=0 --ioengine=io_uring",
            &["page-cache-read"],
        ),
        (
            "--rw=randread --direct=0 --ioengine=io_uring --pre_read=1",
            &["page-cache-read"],
        ),
        ("--rw=randread --sync=1", &["sync-on-read"]),
        ("--refill_buffers=0", &["compressible-data"]),
        ("--refill_buffers=0 --bs=1m", &[]),
        ("--zero_buffers", &["compressible-data"]),
        ("--buffer_compress_percentage=50", &["compressible-data"]),
        (
            "--refill_buffers=0 --scramble_buffers=0 --bs=1m",
            &["compressible-data"],
        ),
        ("--time_based=0", &["no-time-based"]),
        ("--runtime=5", &["too-short"]),
        ("--randrepeat=1", &["repeated-offsets"]),
        ("--randrepeat=1 --randseed=9", &[]),
        ("--norandommap", &[]),
        (
            "--norandommap --runtime=0",
            &["no-time-based", "no-random-map"],
        ),
        ("--rw=write --numjobs=4", &["jobs-overlap"]),
        ("--rw=write --numjobs=4 --offset_increment=1g", &[]),
        (
            "--numjobs=4 --direct=0 --ioengine=io_uring --end_fsync=1",
            &["page-cache-write", "many-jobs-one-file"],
        ),
        ("--numjobs=4 --group_reporting", &["grouped-jobs"]),
        ("--size=64m", &["small-target"]),
        ("--size=64m --sync=dsync", &[]),
        ("--size=64m --rw=randread", &["small-target"]),
        ("--size=64m --numjobs=16", &["small-target"]),
        ("--rwmixread=70", &["mix-ignored"]),
        ("--rw=randrw --rwmixread=70", &[]),
        ("--bs=4kib", &["unit-trap"]),
        ("--bs=4kib --kb_base=1000", &[]),
        ("--rate_iops=500", &["coordinated-omission"]),
        ("--iodetph=32", &["unknown-option"]),
        ("--io_submit_mode=offload", &["offload-hang"]),
    ] {
        let doubts = lint_with(change);
        assert_eq!(codes_of(&doubts), expected, "{change}");
    }
    let severity = |change| lint_with(change)[0].severity;
    assert_eq!(severity("--ioengine=psync"), Severity::Void);
    assert_eq!(severity("--randrepeat=1"), Severity::Suspect);
}

/// Two sections use one file, although the author meant two separate measurements.
#[test]
fn sections_that_run_at_once_on_one_file_are_found() {
    let base = "fio --filename=/srv/t --size=4G --direct=1 --ioengine=libaio --iodepth=16 --rw=randread --bs=4k \
                --time_based --runtime=60 --ramp_time=5 --randrepeat=0 --name=a";
    let second = "--size=4G --direct=1 --ioengine=libaio --iodepth=16 --rw=randread --bs=4k --time_based \
                  --runtime=60 --ramp_time=5 --randrepeat=0";
    let with = |rest: &str| {
        let doubts = lint(&format!(
            "{base} --name=b --filename=/srv/t {second} {rest}"
        ));
        codes_of(&doubts)
            .iter()
            .filter(|code| **code == "jobs-together")
            .count()
    };
    assert_eq!(with(""), 2);
    assert_eq!(with("--stonewall"), 0);
    assert_eq!(with("--wait_for=a"), 0);
    let apart = lint(&format!("{base} --name=b --filename=/srv/u {second}"));
    assert_eq!(codes_of(&apart), [""; 0]);
}

#[test]
fn codes_are_unique_and_have_a_page() {
    let page = include_str!("../../../../docs/src/doubts.md");
    let mut seen = BTreeSet::new();
    for code in list_rule_codes() {
        assert!(seen.insert(code), "{code} twice");
        assert!(
            page.contains(&format!("\n### `{code}`\n")),
            "{code} has no section"
        );
    }
    for section in page.lines().filter_map(|line| line.strip_prefix("### `")) {
        let code = section.trim_end_matches('`');
        assert!(seen.contains(code), "{code} is no rule");
    }
}

#[test]
fn hostile_values_cannot_break_a_line() {
    let text = clean_text("a\u{1b}[2J\nb");
    assert_eq!(text, "a\\u{1b}[2J\\nb");
    assert_eq!(clean_text(&"x".repeat(500)).chars().count(), 81);
}
