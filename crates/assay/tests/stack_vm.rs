//! Tests `assay stack VM --measure`: scratch disks with the settings of a running virtual machine.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and look at what it leaves"
)]

mod common;

use assay_testing::servers::skip;
use common::{Home, entries};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A QEMU without a guest, and a disk with unusual settings.
struct Machine(Child);

impl Machine {
    fn start(name: &str, image: &Path) -> Option<Self> {
        let drive = format!(
            "driver=qcow2,node-name=top,cache.direct=off,discard=unmap,file.driver=file,\
             file.filename={},file.aio=threads,file.cache.direct=off,file.discard=unmap",
            image.display()
        );
        let started = std::process::Command::new("qemu-system-x86_64")
            .args(["-name", name, "-S", "-M", "q35,accel=tcg", "-m", "16"])
            .args(["-display", "none", "-nodefaults", "-monitor", "none"])
            .args([
                "-object",
                "iothread,id=io",
                "-device",
                "virtio-scsi-pci,id=scsi0,iothread=io",
            ])
            .args([
                "-blockdev",
                &drive,
                "-device",
                "scsi-hd,bus=scsi0.0,drive=top,id=disk0",
            ])
            .stdin(Stdio::null())
            .spawn();
        if started.is_err() {
            assay_testing::skipped("qemu", "no qemu-system-x86_64");
        }
        started.ok().map(Self)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn scratch_disks_are_like_the_one_of_a_machine_that_runs() {
    if skip(&["fio", "qemu-img", "qemu-nbd"], false) {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let image = target.path().join("web.qcow2");
    let made = std::process::Command::new("qemu-img")
        .args(["create", "-q", "-f", "qcow2", "-o", "cluster_size=128k"])
        .args([image.as_os_str(), "64M".as_ref()])
        .status();
    assert!(made.unwrap().success());
    let path = image.to_str().unwrap();
    // No process uses it: the image itself is the only source.
    let dry = home.assay(&["stack", path, "--measure", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(
        dry.stdout.contains("cluster=128k (from the header of"),
        "{}",
        dry.stdout
    );
    assert!(
        dry.stdout.contains("no virtual machine here uses it"),
        "{}",
        dry.stdout
    );

    let name = format!("assay-follow-{}", std::process::id());
    let Some(_machine) = Machine::start(&name, &image) else {
        return;
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while home.assay(&["stack", &name]).code != Some(0) {
        assert!(Instant::now() < deadline, "QEMU does not start");
        std::thread::sleep(Duration::from_millis(100));
    }
    let before = std::fs::read(&image).unwrap();
    // By its name or by its image: the same disk.
    for asked in [&name, path] {
        let dry = home.assay(&["stack", asked, "--measure", "--dry-run"]);
        assert_eq!(dry.code, Some(0), "{}", dry.stderr);
        for said in [
            "bus=virtio-scsi",
            "cache=writeback",
            "iothread=on",
            "cluster=128k",
        ] {
            assert!(dry.stdout.contains(said), "{asked}, {said}: {}", dry.stdout);
        }
        assert!(
            dry.stdout.contains(target.path().to_str().unwrap()),
            "{}",
            dry.stdout
        );
    }
    let words = "--measure --yes --quiet --json --layers image --rounds 2 --runtime 300ms --ramp 50ms \
                 --size 16M --rw randread --disk cache=none";
    let words: Vec<&str> = ["stack", &name]
        .into_iter()
        .chain(words.split_whitespace())
        .collect();
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rungs = &document["run"]["ladder"]["rungs"];
    assert_eq!(rungs[2]["settings"]["cluster_size"], "131072");
    assert_eq!(rungs[1]["settings"]["cache"], "none");
    let remarks = document["run"]["remarks"].to_string();
    assert!(remarks.contains("cache=none (from --disk)"), "{remarks}");
    assert_eq!(entries(target.path()), ["web.qcow2"]);
    assert_eq!(std::fs::read(&image).unwrap(), before);
    let wrong = home.assay(&["stack", &name, "--measure", "--vm-disk", "sdz"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("disk0"), "{}", wrong.stderr);
}
