//! `kill -9` of the process that owns arms. Its servers must end with it, and recovery must remove the rest.
#![allow(clippy::disallowed_methods, reason = "it kills its own child")]

use crate::bench::alive;
use assay_changes::side_by_side::{ArmSite, build};
use assay_changes::{Foreign, Journal};
use assay_host::LiveHost;
use assay_loads::Cancel;
use assay_model::Bytes;
use assay_model::change::{Aio, Arm, CacheMode, ImageArm, ImageFormat};
use assay_model::trial::Side;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const OWNER: &str = "ASSAY_TEST_OWNER";

fn arms() -> Vec<Arm> {
    let mut arms = vec![Arm::Image(ImageArm {
        format: ImageFormat::Qcow2,
        options: [].into(),
        cache: CacheMode::None,
        aio: Aio::Threads,
        luks: false,
        filled: true,
    })];
    if rustix::process::geteuid().is_root() {
        arms.push(Arm::FileSystem {
            fstype: "ext4".to_owned(),
            mkfs: vec![],
            mount: vec![],
        });
    }
    arms
}

/// Not a test: the code of the process that is killed. It prints its servers and repeats the power-cut proof
/// until it is killed, so that the proof is interrupted too.
#[test]
#[ignore = "run by the other test"]
fn owner() {
    let Some(dir) = std::env::var_os(OWNER).map(PathBuf::from) else {
        return;
    };
    let journal = Journal::open(&dir.join("journal")).unwrap();
    let session = journal.begin("a test", "here").unwrap();
    let mut built = Vec::new();
    for (index, arm) in arms().iter().enumerate() {
        let place = ArmSite {
            dir: dir.join("arms"),
            name: format!("arm{index}"),
            size: Bytes(8 << 20),
        };
        let arm = build(&LiveHost, &session, arm, &place, &Cancel::default()).unwrap();
        if let Some(pid) = arm.server_pid() {
            println!("server {pid}");
        }
        built.push(arm);
    }
    println!("ready");
    loop {
        built[0]
            .prove_durability(Side::Now, &Cancel::default())
            .unwrap();
    }
}

fn start(dir: &Path) -> (Child, Vec<u32>) {
    std::fs::create_dir_all(dir.join("arms")).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::owner", "--ignored", "--nocapture"])
        .env(OWNER, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut servers = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(pid) = line.rsplit_once("server ").map(|(_, pid)| pid) {
            servers.push(pid.parse().unwrap());
        } else if line == "ready" {
            return (child, servers);
        }
    }
    panic!("the owner ended: {:?}", child.wait());
}

/// Recovers on drop, so that a failed test leaves nothing.
struct Recover<'a>(&'a Path);

impl Drop for Recover<'_> {
    fn drop(&mut self) {
        if let Ok(journal) = Journal::open(&self.0.join("journal")) {
            let _ = journal.recover(&LiveHost, Foreign::Leave);
        }
    }
}

#[test]
fn nothing_is_left_after_recovery() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let _recover = Recover(dir.path());
    for wait in [0, 300] {
        let (mut child, servers) = start(dir.path());
        std::thread::sleep(std::time::Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        // A server that is just being forked holds the session's lock until it is killed too.
        let mut patience = 0..500;
        while journal.pending().unwrap().is_empty() {
            assert!(patience.next().is_some(), "the lock is never released");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        for recovered in journal.recover(&LiveHost, Foreign::Leave).unwrap() {
            let outcome = format!("{:?}", recovered.outcome);
            assert!(!outcome.contains("Failed"), "{}: {outcome}", recovered.what);
        }
        for pid in servers {
            assert!(!alive(pid));
        }
        assert_eq!(dir.path().join("arms").read_dir().unwrap().count(), 0);
        assert_eq!(journal.pending().unwrap(), []);
        let name = dir.path().to_str().unwrap();
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(name), "{mounts}");
    }
}
