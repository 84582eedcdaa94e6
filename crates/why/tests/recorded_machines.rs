//! Recordings of machines with a planted fault, and of busy ones without: each page fires where its fault was, and
//! stays quiet elsewhere. The recordings were made by `bench/why/run --record` and shortened by `bench/why/trim`.
#![allow(clippy::disallowed_methods, reason = "tests read recordings")]

use assay_why::{WatchWindow, judge_window, read_recording};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Recordings, and the pages of which one is to fire.
const PLANTED: [(&str, &[&str]); 17] = [
    ("slow_pipe", &["slow-reader"]),
    ("file_lock", &["file-lock"]),
    ("lock_convoy", &["lock-convoy"]),
    ("deadlock", &["lock-convoy"]),
    ("stopped_server", &["stopped"]),
    ("zero_window", &["unread-data"]),
    ("silent_peer", &["unanswered-data"]),
    ("no_inodes", &["inodes-used-up"]),
    ("local_queue", &["local-queue"]),
    ("zombies", &["zombies"]),
    ("throttled_guest", &["guest-disk-limit"]),
    ("hung_share", &["network-share"]),
    ("supervisor_hangs", &["supervisor"]),
    ("page_server_hangs", &["page-server"]),
    ("automount_hangs", &["network-share"]),
    ("lease_kept", &["file-lock"]),
    ("container_not_accepting", &["accept-queue"]),
];

const HEALTHY: [&str; 5] = [
    "web_server",
    "file_transfer",
    "thread_pool",
    "nice_backup",
    "pipeline",
];

/// Pages that a machine fires whose CPUs others used while it was recorded.
const OF_OTHERS: [&str; 6] = [
    "cpu-saturated",
    "cpu-hog",
    "cpu-affinity",
    "guest-cpu",
    "fork-storm",
    "memory-limit",
];

fn suspects(name: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let file = File::open(folder.join(format!("{name}.jsonl"))).unwrap();
    let recording = read_recording(&mut BufReader::new(file)).unwrap();
    let thing = &recording.header.subject;
    let answer = judge_window(&WatchWindow::new(&recording.looks, thing), thing).unwrap();
    let ids = answer.suspects.into_iter().map(|suspect| suspect.id);
    ids.filter(|id| !OF_OTHERS.contains(&id.as_str())).collect()
}

#[test]
fn a_planted_fault_is_the_first_suspect_but_for_what_others_did() {
    for (name, pages) in PLANTED {
        let found = suspects(name);
        let is_named = |page: &&str| found.iter().take(3).any(|id| id == page);
        assert!(pages.iter().any(is_named), "{name}: {found:?}");
    }
}

#[test]
fn a_busy_machine_without_a_fault_has_no_suspect() {
    for name in HEALTHY {
        assert_eq!(suspects(name), [""; 0], "{name}");
    }
}
