//! Tests the checks before overwriting on real block devices: each kind of use is refused with its reason. Needs root
//! and loop devices; without them, the tests report a skip and pass.
#![allow(clippy::disallowed_methods, reason = "prepares real devices")]

use assay_facts::{DeviceInUse, device_use, target};
use assay_host::{Faulty, Host, LiveHost};
use assay_model::target::TargetKind;
use std::ffi::OsStr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

fn run(argv: &[&OsStr]) -> Output {
    Command::new(argv[0])
        .args(&argv[1..])
        .output()
        .unwrap_or_else(|error| panic!("{argv:?}: {error}"))
}

fn must(words: &[&str]) -> String {
    let argv: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    let output = run(&argv);
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns whether some process hides its open files from this process.
fn hides_processes() -> bool {
    let dirs = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path().join("fd"));
    let denied = |error: std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
    dirs.filter(|dir| dir.exists() || dir.symlink_metadata().is_ok())
        .any(|dir| match std::fs::read_dir(dir) {
            Ok(mut handles) => handles
                .next()
                .and_then(Result::ok)
                .is_some_and(|handle| std::fs::metadata(handle.path()).is_err_and(denied)),
            Err(error) => denied(error),
        })
}

/// Lock that lets only one test run at a time, because losetup opens every loop device that is being set up.
static ONE: Mutex<()> = Mutex::new(());

/// A loop device of 64 MiB that is attached to a temporary file.
struct Loop {
    node: PathBuf,
    dir: tempfile::TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Loop {
    fn new() -> Option<Self> {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().ok()?;
        let file = dir.path().join("disk");
        std::fs::File::create(&file).ok()?.set_len(64 << 20).ok()?;
        let argv = ["losetup", "--show", "-f"].map(OsStr::new);
        // Another process may take the free number between the query and the setup.
        for _ in 0..5 {
            let Ok(output) = Command::new(argv[0]).args(&argv[1..]).arg(&file).output() else {
                break;
            };
            if output.status.success() {
                let node = String::from_utf8_lossy(&output.stdout).trim().into();
                return Some(Self {
                    node,
                    dir,
                    _one: one,
                });
            }
        }
        assay_testing::skipped("loop", "no loop device can be set up here (needs root)");
        None
    }

    fn node(&self) -> &str {
        self.node.to_str().unwrap()
    }

    /// Asserts that the device may be overwritten. In a sandbox that hides processes even from root, asserts that the
    /// hidden processes are the only reason of the refusal.
    fn passes(&self) {
        let mut last = None;
        // udev and other programs hold new devices open for a moment.
        for _ in 0..20 {
            match device_use(&LiveHost, &self.node) {
                Ok(()) => return,
                Err(error) if error.reasons == error.unchecked && hides_processes() => {
                    assert_eq!(error.unchecked.len(), 1, "{error}");
                    assert!(
                        error.unchecked[0].contains(": what these processes"),
                        "{error}"
                    );
                    return eprintln!("partly skipped: {error}");
                }
                Err(error) => last = Some(error),
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("refused: {last:?}");
    }

    fn refusal(&self) -> String {
        Self::reasons(&device_use(&LiveHost, &self.node).expect_err("must be refused"))
    }

    /// Returns the reasons for a snapshot, one per line. Of blkid's output, only the detected content is kept. Hidden
    /// processes and open files of other processes are left out.
    fn reasons(refused: &DeviceInUse) -> String {
        let own = format!("open in process {} (", std::process::id());
        let mut lines = Vec::new();
        for reason in &refused.reasons {
            let line = match reason.split_once(" blkid finds ") {
                _ if refused.unchecked.contains(reason) => continue,
                Some((lead, found)) => {
                    let types = found.split(' ').filter(|word| word.contains("TYPE="));
                    format!("{lead} blkid finds {}", types.collect::<Vec<_>>().join(" "))
                }
                None if reason.starts_with(&own) => "open in process SELF".to_owned(),
                None if reason.starts_with("open in process") => continue,
                None => reason.clone(),
            };
            lines.push(line);
        }
        lines.join("\n")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.node).output();
    }
}

#[test]
fn an_empty_device_passes() {
    let Some(disk) = Loop::new() else { return };
    disk.passes();
    let info = target(&LiveHost, &disk.node).unwrap();
    assert_eq!(
        (info.kind, info.size.0),
        (TargetKind::BlockDevice, 64 << 20)
    );
    assert_eq!(
        info.devices,
        [disk.node.file_name().unwrap().to_str().unwrap()]
    );
}

#[test]
fn a_file_system_is_refused() {
    let Some(disk) = Loop::new() else { return };
    must(&["mkfs.ext4", "-q", disk.node()]);
    insta::assert_snapshot!(disk.refusal(), @r"
    not empty: blkid finds TYPE=ext4
    not empty: wipefs finds ext4 at 0x438
    ");
}

#[test]
fn a_mounted_device_is_refused_and_what_lies_below_is_found() {
    let Some(disk) = Loop::new() else { return };
    must(&["mkfs.ext4", "-q", disk.node()]);
    let point = disk.dir.path().join("a mount\\point");
    std::fs::create_dir(&point).unwrap();
    let mounted = run(&["mount".as_ref(), disk.node.as_ref(), point.as_ref()]);
    if !mounted.status.success() {
        assay_testing::skipped("mount", "cannot mount here");
        return;
    }
    let (refusal, info) = (disk.refusal(), target(&LiveHost, &point));
    run(&["umount".as_ref(), point.as_ref()]);
    insta::assert_snapshot!(assay_testing::normalize_output(refusal, &[(&point, "POINT")]), @r"
    mounted at POINT
    not empty: blkid finds TYPE=ext4
    not empty: wipefs finds ext4 at 0x438
    claimed by the kernel or by a process (it cannot be opened exclusively)
    ");
    let info = info.unwrap();
    assert_eq!(info.fs_type.as_deref(), Some("ext4"));
    assert_eq!(info.mount_point.as_deref(), point.to_str());
    assert_eq!(
        info.devices,
        [disk.node.file_name().unwrap().to_str().unwrap()]
    );
    // The disk below the backing file, not the loop device.
    assert!(!info.disks.contains(&info.devices[0]), "{info:?}");
}

#[test]
fn swap_is_refused() {
    let Some(disk) = Loop::new() else { return };
    must(&["mkswap", disk.node()]);
    insta::assert_snapshot!(disk.refusal(), @r"
    not empty: blkid finds TYPE=swap
    not empty: wipefs finds swap at 0xff6
    ");
    if run(&["swapon".as_ref(), disk.node.as_ref()])
        .status
        .success()
    {
        let refusal = disk.refusal();
        run(&["swapoff".as_ref(), disk.node.as_ref()]);
        insta::assert_snapshot!(refusal, @r"
        used as swap
        not empty: blkid finds TYPE=swap
        not empty: wipefs finds swap at 0xff6
        claimed by the kernel or by a process (it cannot be opened exclusively)
        ");
    } else {
        eprintln!("partly skipped: swapon is not allowed here");
    }
}

#[test]
fn a_partition_table_is_refused() {
    let Some(disk) = Loop::new() else { return };
    let script = disk.dir.path().join("script");
    std::fs::write(&script, "label: gpt\n,,\n").unwrap();
    let done = Command::new("sfdisk")
        .args(["-q", "--no-reread", "--no-tell-kernel", disk.node()])
        .stdin(std::fs::File::open(&script).unwrap())
        .output();
    match done {
        Ok(output) if output.status.success() => {}
        _ => {
            // Writes a protective partition table: 0x55AA and one entry of type 0x83.
            let mut sector = [0u8; 512];
            sector[446 + 4] = 0x83;
            sector[446 + 8] = 8;
            sector[446 + 13] = 1;
            sector[510..].copy_from_slice(&[0x55, 0xaa]);
            std::fs::write(&disk.node, sector).unwrap();
        }
    }
    let refusal = disk.refusal();
    assert!(refusal.contains("PTTYPE="), "{refusal}");
    // A second loop device whose partitions the kernel scans.
    let file = disk.dir.path().join("disk");
    let scanned = must(&["losetup", "--show", "-P", "-f", file.to_str().unwrap()]);
    let name = scanned.trim_start_matches("/dev/").to_owned();
    let refusal = device_use(&LiveHost, Path::new(&scanned));
    let seen = Path::new("/sys/block")
        .join(&name)
        .join(format!("{name}p1"))
        .exists();
    must(&["losetup", "-d", &scanned]);
    match seen {
        true => assert!(
            refusal
                .unwrap_err()
                .reasons
                .contains(&format!("partitioned: {name}p1"))
        ),
        false => {
            eprintln!("partly skipped: this kernel does not look for partitions on loop devices")
        }
    }
}

#[test]
fn an_exclusive_and_a_shared_handle_are_refused() {
    let Some(disk) = Loop::new() else { return };
    const O_EXCL: i32 = 0o200;
    let exclusive = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(O_EXCL)
        .open(&disk.node)
        .unwrap();
    insta::assert_snapshot!(disk.refusal(), @r"
    open in process SELF
    claimed by the kernel or by a process (it cannot be opened exclusively)
    ");
    drop(exclusive);
    let shared = std::fs::File::open(&disk.node).unwrap();
    insta::assert_snapshot!(disk.refusal(), @"open in process SELF");
    drop(shared);
    disk.passes();
}

#[test]
fn a_device_behind_a_loop_device_is_refused() {
    let Some(disk) = Loop::new() else { return };
    let above = must(&["losetup", "--show", "-f", disk.node()]);
    let refusal = device_use(&LiveHost, &disk.node);
    must(&["losetup", "-d", &above]);
    let above = above.trim_start_matches("/dev/");
    let reasons = Loop::reasons(&refusal.unwrap_err());
    insta::assert_snapshot!(assay_testing::normalize_output(reasons, &[(above, "ABOVE")]), @"behind ABOVE");
}

#[test]
fn a_read_only_device_is_refused() {
    let Some(disk) = Loop::new() else { return };
    must(&["blockdev", "--setro", disk.node()]);
    let refusal = disk.refusal();
    // The kernel keeps the flag for the next user of the number.
    must(&["blockdev", "--setrw", disk.node()]);
    insta::assert_snapshot!(refusal, @"read-only");
}

#[test]
fn what_is_no_device_itself_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let reason = |path: &Path| device_use(&LiveHost, path).unwrap_err().reasons.join("\n");
    insta::assert_snapshot!(reason(&dir.path().join("missing")), @"no such device");
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    insta::assert_snapshot!(reason(&file), @"not a block device");
    let Some(disk) = Loop::new() else { return };
    let link = dir.path().join("by-id");
    std::os::unix::fs::symlink(&disk.node, &link).unwrap();
    insta::assert_snapshot!(assay_testing::normalize_output(reason(&link), &[(&disk.node, "NODE")]), @"a link to NODE: name the device itself, NODE");
}

/// If any call fails during the check of an empty device, the device is refused.
#[test]
fn a_check_that_fails_refuses() {
    let Some(disk) = Loop::new() else { return };
    let whole = Faulty::new(&LiveHost, 0);
    let unchecked = |host: &dyn Host| {
        device_use(host, &disk.node).map_or_else(|error| error.unchecked, |()| Vec::new())
    };
    let usual = unchecked(&whole);
    let calls = whole.calls();
    // All calls of the first checks, and a part of those of the long search over processes.
    for n in (1..=60).chain((61..calls * 3 / 4).step_by(41)) {
        let host = Faulty::once(&LiveHost, n);
        let found = unchecked(&host);
        // If processes ended, the search makes fewer calls and may not reach this one.
        if n > 60 && n >= host.calls() * 3 / 4 {
            continue;
        }
        assert!(
            !found.is_empty() && found != usual,
            "call {n} of {calls} failed without a word"
        );
    }
}
