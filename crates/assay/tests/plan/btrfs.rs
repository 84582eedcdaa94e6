//! Compares with a real btrfs on loop devices.

use super::json;
use std::path::PathBuf;
use std::process::Command;

/// Loop devices and a mount with their files, removed in any case.
struct Loops {
    dir: tempfile::TempDir,
    devices: Vec<String>,
    mounted: bool,
}

impl Drop for Loops {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg(self.mount()).output();
        }
        for device in &self.devices {
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
    }
}

impl Loops {
    fn mount(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }
}

fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!(
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Creates a btrfs on sparse files, fills it and returns the stored bytes; or the reason why it
/// cannot.
fn stored_for_real(sizes: &[u64], data: &str, metadata: &str) -> Result<u64, String> {
    if run("id", &["-u"])? != "0" {
        return Err("needs root for loop devices".into());
    }
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut loops = Loops {
        dir,
        devices: Vec::new(),
        mounted: false,
    };
    for (i, size) in sizes.iter().enumerate() {
        let path = loops.dir.path().join(format!("{i}.img"));
        let file = std::fs::File::create(&path).map_err(|error| error.to_string())?;
        file.set_len(*size).map_err(|error| error.to_string())?;
        let device = run("losetup", &["-f", "--show", path.to_str().unwrap()])?;
        loops.devices.push(device);
    }
    let mut args = vec!["-f", "-K", "-q", "-d", data, "-m", metadata];
    args.extend(loops.devices.iter().map(String::as_str));
    run("mkfs.btrfs", &args)?;
    let mount = loops.mount();
    std::fs::create_dir(&mount).map_err(|error| error.to_string())?;
    run(
        "mount",
        &["-t", "btrfs", &loops.devices[0], mount.to_str().unwrap()],
    )?;
    loops.mounted = true;
    let (mut stored, mut step, mut files) = (0u64, 1u64 << 30, 0);
    while step >= 4096 {
        let path = mount.join(files.to_string());
        match run(
            "fallocate",
            &["-l", &step.to_string(), path.to_str().unwrap()],
        ) {
            Ok(_) => stored += step,
            Err(_) => {
                let _ = std::fs::remove_file(&path);
                step /= 2;
            }
        }
        files += 1;
    }
    Ok(stored)
}

#[test]
fn a_real_btrfs_stores_what_was_planned() {
    let gib = 1u64 << 30;
    for (sizes, data, metadata) in [
        (vec![3 * gib, 2 * gib, 2 * gib, gib], "raid1", "raid1"),
        (vec![5 * gib, 2 * gib, 3 * gib], "raid1c3", "raid1c3"),
        (vec![2 * gib, 4 * gib, 2 * gib, 3 * gib], "raid10", "raid1"),
    ] {
        let stored = match stored_for_real(&sizes, data, metadata) {
            Ok(stored) => stored,
            Err(reason) => {
                assay_testing::skipped("btrfs", format_args!("{reason}"));
                return;
            }
        };
        let layout = format!("btrfs-{data}");
        let disks: Vec<String> = sizes.iter().map(u64::to_string).collect();
        let mut args = vec!["layout", "--only", &layout, "--metadata", metadata];
        args.extend(disks.iter().map(String::as_str));
        let plan = json(&args)["layouts"][0].clone();
        let chunk = plan["btrfs"]["chunk"].as_u64().unwrap();
        let planned = plan["stored"].as_u64().unwrap();
        assert!(
            planned.abs_diff(stored) <= chunk,
            "{layout} {sizes:?}: planned {planned}, stored {stored}"
        );
    }
}
