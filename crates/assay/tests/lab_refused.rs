//! Tests `assay lab` where it cannot work: each error contains a way out, and nothing is left. No guest is booted.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, Ran, ended, entries, ran, root};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the user's images; without one no guest can boot.
fn images() -> Option<PathBuf> {
    let listed = Home::new().assay(&["lab", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let images = listed["images"].as_array().unwrap();
    let ours = images.iter().find(|image| image["zfs"] == "stable");
    let dir = ours.map(|image| PathBuf::from(image["dir"].as_str().unwrap()));
    if dir.is_none() {
        assay_testing::skipped("guest-image", "no guest image; `assay lab build` makes one");
    }
    Some(dir?.parent()?.to_owned())
}

/// Runs assay with a small file system mounted at `at`.
fn with_small(home: &Home, cache: &Path, at: &Path, options: &str, args: &[&str]) -> Ran {
    std::fs::create_dir_all(at).unwrap();
    let script = "mount -t tmpfs -o \"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private"])
        .args(["sh", "-c", script, "sh", options])
        .arg(at)
        .arg(env!("CARGO_BIN_EXE_assay"))
        .args(args)
        .env("ASSAY_STATE", home.state())
        .env("ASSAY_LAB_CACHE", cache);
    ran(command.output().unwrap())
}

/// Checks that it failed with this message, and that no guest is left.
fn refused(home: &Home, ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
    let lab = home.state().join("lab");
    let left = entries(&lab)
        .into_iter()
        .filter(|name| lab.join(name).is_dir());
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn no_space_and_no_permission_for_the_image() {
    if !root() {
        return;
    }
    let home = Home::new();
    let cache = home.dir.path().join("cache");
    let small = with_small(
        &home,
        &cache,
        &cache,
        "size=64m,mode=700",
        &["lab", "build"],
    );
    refused(&home, &small, &["MiB free", "ASSAY_LAB_CACHE"]);
    let fixed = with_small(
        &home,
        &cache,
        &cache,
        "ro,mode=700",
        &["lab", "up", "--yes"],
    );
    refused(&home, &fixed, &["Read-only file system", "ASSAY_LAB_CACHE"]);
}

#[test]
fn only_root_builds() {
    if !root() {
        return;
    }
    const NOBODY: u32 = 65534;
    let home = Home::new();
    std::os::unix::fs::chown(home.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    // Other users may not be able to read the build directory.
    let assay = home.dir.path().join("assay");
    std::fs::copy(env!("CARGO_BIN_EXE_assay"), &assay).unwrap();
    let mut command = Command::new(assay);
    command
        .args(["lab", "build"])
        .env("ASSAY_STATE", home.state())
        .env("ASSAY_LAB_CACHE", home.dir.path().join("cache"))
        .uid(NOBODY)
        .gid(NOBODY);
    let built = ran(command.output().unwrap());
    if built.stderr.contains("is not installed") {
        assay_testing::skipped("image-tools", format_args!("{}", built.stderr));
        return;
    }
    refused(&home, &built, &["needs root", "sudo assay lab build"]);
}

#[test]
fn no_mirror_and_no_namespaces_for_the_image() {
    if !root() {
        return;
    }
    let home = Home::new();
    let cache = home.dir.path().join("cache");
    let build = |within: &[&str]| {
        let mut command = Command::new(within[0]);
        command
            .args(&within[1..])
            .arg(env!("CARGO_BIN_EXE_assay"))
            .args(["lab", "build"])
            .env("ASSAY_STATE", home.state())
            .env("ASSAY_LAB_CACHE", &cache);
        ended(command)
    };
    let bound = build(&["setpriv", "--bounding-set=-sys_admin"]);
    if ["is not installed", "MiB free"]
        .iter()
        .any(|why| bound.stderr.contains(why))
    {
        assay_testing::skipped("image-tools", format_args!("{}", bound.stderr));
        return;
    }
    let words = ["namespaces and mounts", "Operation not permitted"];
    refused(&home, &bound, &words);
    let alone = build(&["unshare", "--net"]);
    refused(&home, &alone, &["the Debian mirror", "cannot be reached"]);
    assert_eq!(entries(&cache), ["lock"]);
}

#[test]
fn no_guest_builds_an_image_that_nobody_asked_for() {
    if assay_host::Host::which(&assay_host::LiveHost, "qemu-system-x86_64".as_ref()).is_none() {
        assay_testing::skipped("qemu", "qemu-system-x86_64 is not installed");
        return;
    }
    let home = Home::new();
    let cache = home.dir.path().join("cache");
    let packed = home.dir.path().join("packed").display().to_string();
    for words in [
        &["up"][..],
        &["run", "--", "true"],
        &["measure"],
        &["crypto"],
        &["pack", &packed],
    ] {
        let mut command = home.command(&[&["lab"], words].concat());
        command.env("ASSAY_LAB_CACHE", &cache);
        refused(&home, &ended(command), &["`assay lab build`", "--yes"]);
        assert!(!cache.exists(), "{words:?}: an image was begun");
    }
}

/// Regression: a missing QEMU was detected only after the image was built, minutes later.
#[test]
fn an_image_is_not_built_for_an_emulator_that_is_missing() {
    let home = Home::new();
    let tools = home.dir.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    for tool in ["mmdebstrap", "mke2fs", "unshare"] {
        // Never run: only the order of the searches is tested.
        let tool = tools.join(tool);
        std::fs::write(&tool, "#!/bin/sh\nexit 1\n").unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let cache = home.dir.path().join("cache");
    for args in [
        &["lab", "build"][..],
        &["lab", "run", "--yes", "--no-assay", "--", "true"],
    ] {
        let mut command = home.command(args);
        command.env("PATH", &tools).env("ASSAY_LAB_CACHE", &cache);
        let out = ran(command.output().unwrap());
        refused(&home, &out, &["qemu-system-x86"]);
        assert_eq!(entries(&cache), ["lock"], "nothing was begun");
    }
}

/// Regression: invalid arguments were detected only after the image was built, minutes later.
#[test]
fn an_image_is_not_built_for_a_guest_that_cannot_be_had() {
    if assay_host::Host::which(&assay_host::LiveHost, "qemu-system-x86_64".as_ref()).is_none() {
        assay_testing::skipped("qemu", "qemu-system-x86_64 is not installed");
        return;
    }
    let home = Home::new();
    let cache = home.dir.path().join("cache");
    let ide = ["--disk", "1M,bus=ide"];
    let twice = ["--disk", "1M,name=a", "--disk", "1M,name=a"];
    let (fifth, file) = (ide.repeat(5), ["--disk", "1M,dir=/etc/passwd"]);
    for (verb, args, words) in [
        ("run", &twice[..], ["two disks", "disk a"]),
        ("up", &fifth, ["four IDE disks", "disk5"]),
        ("measure", &file, ["/etc/passwd", "no directory"]),
        (
            "run",
            &["--disk", "1M,eio=1M+4k"],
            ["disk1", "inside the disk"],
        ),
        ("full", &["--cpu", "Pentium9"], ["Pentium9", "-cpu help"]),
        (
            "power-cut",
            &["--disk", "1M,device=/dev/null"],
            ["/dev/null", "--destroy-data"],
        ),
        (
            "run",
            &["--destroy-data", "--disk", "1M,device=/dev/null"],
            ["/dev/null", "not a block device"],
        ),
    ] {
        let mut all = vec!["lab", verb];
        all.extend(args);
        if verb == "run" {
            all.extend(["--", "true"]);
        }
        let mut command = home.command(&all);
        command.env("ASSAY_LAB_CACHE", &cache);
        refused(&home, &ended(command), &words);
        assert!(!cache.exists(), "{verb}: an image was begun");
    }
}

#[test]
fn a_guest_needs_qemu_room_and_disks_that_can_be_had() {
    let Some(images) = images() else { return };
    let home = Home::new();
    let no_qemu = home
        .command(&["lab", "run", "--no-assay", "--accel", "tcg", "--", "true"])
        .env("PATH", home.dir.path())
        .output();
    refused(
        &home,
        &ran(no_qemu.unwrap()),
        &["apt install qemu-system-x86"],
    );

    let run = |more: &[&str]| {
        let args = [&["lab", "run", "--accel", "tcg"], more, &["--", "true"]].concat();
        home.assay(&args)
    };
    refused(
        &home,
        &run(&["--cpu", "Pentium9"]),
        &["Pentium9", "-cpu help"],
    );
    refused(&home, &run(&["--disk", "1G,dir=/no/such"]), &["/no/such"]);
    let device = run(&["--disk", "1G,device=/dev/null"]);
    refused(&home, &device, &["/dev/null", "--destroy-data"]);
    let device = run(&["--destroy-data", "--disk", "1G,device=/dev/null"]);
    refused(&home, &device, &["not a block device"]);
    let many = vec!["--disk"; 40];
    let many: Vec<_> = many.into_iter().flat_map(|word| [word, "16M"]).collect();
    refused(&home, &run(&many), &["no slot", "virtio-scsi"]);

    if root() {
        let state = home.state();
        let args = ["lab", "run", "--accel", "tcg", "--", "true"];
        let small = with_small(&home, &images, &state, "size=64m,mode=700", &args);
        refused(&home, &small, &["MiB free", "ASSAY_STATE"]);
    }
}
