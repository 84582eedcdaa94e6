//! Executes the commands of findings on real file systems. The finding must disappear, and the undo commands must bring
//! it back.
#![allow(
    clippy::disallowed_methods,
    reason = "tests make file systems and run the commands that pages print"
)]

mod conversions;

use assay_advice::{Catalogue, findings};
use assay_facts::{CollectOptions, collect};
use assay_host::LiveHost;
use assay_model::finding::{Certainty, Finding, Fix, Remedy};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// Lock that lets only one test run at a time, because every losetup opens loop devices.
static ONE: Mutex<()> = Mutex::new(());

/// Variable that is set in the processes of [`alone`].
const ALONE: &str = "ASSAY_TEST_ALONE";

/// Runs a test in a process with its own mount namespace, one test at a time. Returns whether this is that process.
///
/// Programs of other tests copy all mounts into their namespaces. A device that is mounted at that moment stays in use
/// there after this test unmounts it.
fn alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() || run("unshare --mount true").is_err() {
        return true;
    }
    let _one = ONE.lock();
    let mut child = Command::new("unshare");
    child.arg("--mount").arg(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("running 1 test"), "{text}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{complaint}");
    false
}

fn run(line: &str) -> Result<String, String> {
    let output = Command::new("sh").args(["-ec", line]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("{line}: {}", complaint.trim())),
    }
}

/// Loop devices on files in a directory, and the mount point of a file system on these devices.
struct Disks {
    dir: tempfile::TempDir,
    loops: Vec<String>,
}

impl Disks {
    /// Creates the loop devices and the file system. `None` if loop devices or the mkfs tool are missing.
    fn make(count: usize, mkfs: &str) -> Option<Self> {
        let root = run("id -u").is_ok_and(|id| id == "0");
        if !root
            || run("test -e /dev/loop-control").is_err()
            || run(&format!("command -v {mkfs}")).is_err()
        {
            assay_testing::skipped("loop", format!("needs root, loop devices and {mkfs}"));
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut disks = Self {
            dir,
            loops: Vec::new(),
        };
        std::fs::create_dir(disks.point()).unwrap();
        for number in 0..count {
            let image = disks.dir.path().join(format!("{number}.img"));
            let image = image.display();
            let made = run(&format!(
                "truncate -s 300M {image} && losetup -f --show {image}"
            ));
            disks.loops.push(made.unwrap());
        }
        Some(disks)
    }

    fn point(&self) -> PathBuf {
        self.dir.path().join("m")
    }

    fn mount(&self, options: &str) -> Result<String, String> {
        run(&format!(
            "mount -o {options} {} {}",
            self.loops[0],
            self.point().display()
        ))
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        let _ = run(&format!("umount {}", self.point().display()));
        for node in &self.loops {
            let _ = run(&format!("losetup -d {node}"));
        }
    }
}

/// Returns the current finding of the page whose title contains `named`.
fn found(page: &str, named: &str) -> Option<Finding> {
    let catalogue = Catalogue::builtin().unwrap();
    let all = catalogue
        .all()
        .into_iter()
        .filter(|advice| advice.id == page);
    let facts = collect(&LiveHost, &CollectOptions::default());
    let found = findings(all, &facts).findings.into_iter();
    found
        .filter(|finding| finding.certainty == Certainty::Violated)
        .find(|finding| finding.title.contains(named))
}

fn remedy(finding: &Finding) -> &Remedy {
    match &finding.fix {
        Fix::Steps(remedy) => remedy,
        other => panic!("no remedy: {other:?}"),
    }
}

/// Returns the commands in a text: code between backticks that begins with a program.
fn commands(text: &str, program: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .filter(|command| command.starts_with(program))
        .map(str::to_owned)
        .collect()
}

#[test]
fn barriers_come_back_with_the_command_of_the_page() {
    if !alone("barriers_come_back_with_the_command_of_the_page") {
        return;
    }
    for (fstype, mkfs) in [("ext4", "mkfs.ext4 -q"), ("btrfs", "mkfs.btrfs -q -f")] {
        let Some(disks) = Disks::make(1, mkfs.split(' ').next().unwrap()) else {
            return;
        };
        run(&format!("{mkfs} {}", disks.loops[0])).unwrap();
        disks.mount("nobarrier").unwrap();
        let point = disks.point().display().to_string();
        let finding = found("barriers-off", &point).unwrap_or_else(|| panic!("{fstype}"));
        let remedy = remedy(&finding);
        let steps = commands(&remedy.steps.join(" "), "mount ");
        assert_eq!(steps.len(), 1, "{remedy:?}");
        run(&steps[0]).unwrap();
        assert!(
            found("barriers-off", &point).is_none(),
            "{fstype}: {steps:?}"
        );
        for undo in commands(&remedy.undo.join(" "), "mount ") {
            run(&undo).unwrap();
        }
        assert!(found("barriers-off", &point).is_some(), "{fstype}: undone");
    }
}

/// With each option in `fstab-option-refused`, mount fails. With similar options, it does not.
#[test]
fn options_that_are_said_to_be_refused_are() {
    if !alone("options_that_are_said_to_be_refused_are") {
        return;
    }
    let xfs: &[&str] = &[
        "nobarrier",
        "barrier",
        "delaylog",
        "nodelaylog",
        "ihashsize=3",
        "irixsgid",
        "osyncisdsync",
        "osyncisosync",
    ];
    let btrfs: &[&str] = &["barrier=1", "barrier=0", "inode_cache"];
    for (mkfs, refused, accepted) in [
        ("mkfs.xfs -q -f", xfs, &["noatime", "logbufs=8"][..]),
        ("mkfs.btrfs -q -f", btrfs, &["nobarrier", "barrier"]),
        (
            "mkfs.ext4 -q",
            &[],
            &["nobarrier", "barrier=0", "oldalloc", "bh"],
        ),
    ] {
        let Some(disks) = Disks::make(1, mkfs.split(' ').next().unwrap()) else {
            return;
        };
        run(&format!(
            "truncate -s 400M {}",
            disks.dir.path().join("0.img").display()
        ))
        .unwrap();
        run(&format!("losetup -c {0} && {mkfs} {0}", disks.loops[0])).unwrap();
        for option in refused {
            assert!(disks.mount(option).is_err(), "{mkfs}: {option} is accepted");
        }
        for option in accepted {
            disks.mount(option).unwrap();
            run(&format!("umount {}", disks.point().display())).unwrap();
        }
    }
}

/// A btrfs loses a device, which is replaced. A damaged copy is repaired, and its error counters are cleared.
#[test]
fn a_btrfs_is_made_whole_again() {
    if !alone("a_btrfs_is_made_whole_again") {
        return;
    }
    let Some(disks) = Disks::make(3, "mkfs.btrfs") else {
        return;
    };
    let [first, second, third] = disks.loops.as_slice() else {
        panic!("three devices");
    };
    let name = first.trim_start_matches("/dev/");
    let point = disks.point().display().to_string();
    run(&format!(
        "mkfs.btrfs -q -f -d raid1 -m raid1 {first} {second}"
    ))
    .unwrap();
    disks.mount("rw").unwrap();
    run(&format!("head -c 20M /dev/urandom > {point}/f && sync")).unwrap();
    assert!(found("btrfs-device-missing", name).is_none());
    run(&format!(
        "umount {point} && losetup -d {second} && btrfs device scan --forget"
    ))
    .unwrap();
    disks.mount("degraded").unwrap();
    let finding = found("btrfs-device-missing", name).unwrap();
    let steps = remedy(&finding).steps.join(" ");
    let replace = commands(&steps, "btrfs replace start").remove(0);
    let fill = |command: &str| {
        let command = command.replace("MOUNTPOINT", &point);
        command.replace("DEVID", "2").replace("/dev/NEW", third)
    };
    // Runs in the foreground to wait for the end.
    run(&fill(&replace).replace("replace start", "replace start -B")).unwrap();
    assert!(found("btrfs-device-missing", name).is_none());
    for balance in commands(&steps, "btrfs balance") {
        run(&fill(&balance)).unwrap();
    }

    run(&format!("umount {point}")).unwrap();
    let image = disks.dir.path().join("2.img");
    run(&format!(
        "dd if=/dev/zero of={} bs=1M seek=60 count=200 conv=notrunc status=none; losetup -c {third}",
        image.display()
    ))
    .unwrap();
    disks.mount("rw").unwrap();
    let _ = run(&format!("btrfs scrub start -B {point}"));
    let finding = found("btrfs-device-errors", name).unwrap();
    assert!(finding.title.contains("corruption"), "{}", finding.title);
    let steps = remedy(&finding).steps.join(" ");
    for command in commands(&steps, "btrfs ") {
        run(&command.replace("MOUNTPOINT", &point)).unwrap();
    }
    assert!(found("btrfs-device-errors", name).is_none());
}

/// Writes the sysctl settings of pages. Network settings are written in a separate namespace. Other settings are
/// written only if they already have the value.
#[test]
fn settings_that_pages_write_are_taken_by_the_kernel() {
    if run("id -u").is_ok_and(|id| id != "0")
        || run("unshare -n true && command -v sysctl").is_err()
    {
        assay_testing::skipped("sysctl", "needs root, network namespaces and sysctl");
        return;
    }
    let catalogue = Catalogue::builtin().unwrap();
    let mut tried = 0;
    for advice in catalogue.all() {
        let remedy = advice
            .check
            .as_ref()
            .and_then(|check| check.remedy.as_ref());
        let Some(remedy) = remedy.filter(|_| advice.id.starts_with("sysctl-")) else {
            continue;
        };
        for text in remedy.steps.iter().chain(&remedy.undo) {
            for command in commands(text, "sysctl -w ") {
                let (key, value) = command["sysctl -w ".len()..].split_once('=').unwrap();
                let now = run(&format!("sysctl -n {key}"));
                // Undo steps write the value from before.
                let value = match (value, &now) {
                    ("OLD", Ok(now)) => now.as_str(),
                    _ => value,
                };
                let write = format!("sysctl -w {key}={value}");
                match (key.starts_with("net."), &now) {
                    (true, Ok(_)) => drop(run(&format!("unshare -n {write}")).unwrap()),
                    (false, Ok(now)) if now == value => drop(run(&write).unwrap()),
                    // Not in this kernel, or set to another value.
                    _ => continue,
                }
                tried += 1;
            }
        }
    }
    assert!(tried >= 8, "{tried}");
}
