//! Tests on this machine: loop devices with real file systems, images with real headers, misleading names.
#![allow(clippy::disallowed_methods, reason = "tests make what they look at")]

mod common;

use assay_host::{Faulty, LiveHost, Recording, Root};
use assay_model::stack::LayerKind::{File, FileSystem, Image, Loop, Path as TopPath};
use assay_stack::{StackError, StackTarget, discover};
use common::{chain, layer};
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(argv: &[&str]) -> Option<String> {
    let output = Command::new(argv[0]).args(&argv[1..]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// A file system on a loop device. Dropping the value removes all objects.
struct Mounted {
    dir: tempfile::TempDir,
    device: String,
}

impl Mounted {
    /// Creates the file system; returns `None` and prints a message if this machine does not support it.
    fn new(make: &[&str], name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            assay_testing::skipped("loop", "needs root for loop devices");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join(name);
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(320 << 20).unwrap();
        let mut argv = make.to_vec();
        let path = image.to_str().unwrap();
        argv.push(path);
        if run(&argv).is_none() {
            assay_testing::skipped("program", format_args!("{} is not installed", make[0]));
            return None;
        }
        let Some(device) = run(&["losetup", "--find", "--show", path]) else {
            assay_testing::skipped("loop", "no loop devices here");
            return None;
        };
        let mounted = Self { dir, device };
        std::fs::create_dir(mounted.point()).unwrap();
        match run(&["mount", &mounted.device, mounted.point().to_str().unwrap()]) {
            Some(_) => Some(mounted),
            None => {
                assay_testing::skipped("mount", "cannot be mounted here");
                None
            }
        }
    }

    fn point(&self) -> PathBuf {
        self.dir.path().join("mo unt\u{e9}")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(&["umount", self.point().to_str().unwrap()]);
        run(&["losetup", "--detach", &self.device]);
    }
}

#[test]
fn file_systems_on_loop_devices() {
    for (make, name) in [
        (&["mkfs.ext4", "-q", "-F"][..], "a b.img"),
        (&["mkfs.xfs", "-q", "-f"][..], "x\n.img"),
        (&["mkfs.btrfs", "-q", "-f"][..], "\u{202e}.img"),
    ] {
        let Some(mounted) = Mounted::new(make, name) else {
            continue;
        };
        let inner = mounted.point().join("deeper");
        std::fs::create_dir(&inner).unwrap();
        let stack = discover(&LiveHost, &StackTarget::Path(inner)).unwrap();
        assert_eq!(chain(&stack)[..4], [TopPath, FileSystem, Loop, File]);
        let fs = layer(&stack, FileSystem);
        assert_eq!(fs.get("type"), make[0].strip_prefix("mkfs."));
        assert_eq!(fs.place.as_deref(), Some(&*mounted.point()));
        assert!(fs.bytes("block_size").is_some_and(u64::is_power_of_two));
        if make[0] == "mkfs.btrfs" {
            assert_eq!(fs.get("data_profile"), Some("single"));
            assert_eq!(fs.get("metadata_profile"), Some("dup"));
        }
        let device = layer(&stack, Loop);
        assert_eq!(device.place.as_deref(), Some(Path::new(&mounted.device)));
        assert_eq!(device.bytes("size"), Some(320 << 20));
        assert!(layer(&stack, File).name.ends_with(name));
        let block = discover(&LiveHost, &StackTarget::Path(mounted.device.clone().into())).unwrap();
        assert_eq!(block.layers[0].kind, Loop);
    }
}

/// Repeats the search with captures in which one call fails: for every n, the n-th call. The search must not panic or
/// hang, and must report the missing parts.
#[test]
fn things_that_cannot_be_read_are_said() {
    let Some(mounted) = Mounted::new(&["mkfs.ext4", "-q", "-F"], "a.img") else {
        return;
    };
    let target = StackTarget::Path(mounted.point());
    let dir = tempfile::tempdir().unwrap();
    let recording = Recording::new(&LiveHost, dir.path()).unwrap();
    let whole = discover(&recording, &target).unwrap();
    recording.finish(std::collections::BTreeMap::new()).unwrap();
    let root = Root::open(dir.path()).unwrap();
    assert_eq!(
        discover(&root, &target).unwrap().layers.len(),
        whole.layers.len()
    );
    let mut told = 0;
    for n in 1..=80 {
        let faulty = Faulty::new(&root, n);
        let Ok(stack) = discover(&faulty, &target) else {
            continue;
        };
        if stack.layers.len() < whole.layers.len() {
            let said = stack.layers.iter().any(|layer| !layer.unknown.is_empty());
            assert!(said, "call {n}: {stack:#?}");
            told += 1;
        }
    }
    assert!(told > 5, "{told}");
}

#[test]
fn an_image_and_what_it_is_based_on() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (base, over) = (at("base.raw"), at("o ver.qcow2"));
    std::fs::write(&base, vec![0; 1 << 20]).unwrap();
    let options = "cluster_size=128k,extended_l2=on";
    let made = run(&[
        "qemu-img", "create", "-q", "-f", "qcow2", "-o", options, "-b", &base, "-F", "raw", &over,
    ]);
    if made.is_none() {
        return assay_testing::skipped("qemu-img", "qemu-img is not installed");
    }
    let stack = discover(&LiveHost, &StackTarget::Path(over.clone().into())).unwrap();
    let top = &stack.layers[0];
    assert_eq!((top.kind, top.name.as_str()), (Image, "qcow2"));
    assert_eq!(top.bytes("cluster_size"), Some(128 << 10));
    assert_eq!(top.get("extended_l2"), Some("on"));
    let below: Vec<&str> = top
        .below
        .iter()
        .map(|at| stack.layers[*at].name.as_str())
        .collect();
    assert_eq!(below, [over.as_str(), base.as_str()]);

    // A cyclic chain, which QEMU refuses to create.
    let (a, b) = (at("a.qcow2"), at("b.qcow2"));
    run(&["qemu-img", "create", "-q", "-f", "qcow2", &a, "1M"]).unwrap();
    run(&[
        "qemu-img", "create", "-q", "-f", "qcow2", "-b", &a, "-F", "qcow2", &b,
    ])
    .unwrap();
    run(&[
        "qemu-img", "rebase", "-u", "-f", "qcow2", "-b", &b, "-F", "qcow2", &a,
    ])
    .unwrap();
    let stack = discover(&LiveHost, &StackTarget::Path(a.into())).unwrap();
    let said = stack.layers.iter().flat_map(|layer| &layer.unknown);
    assert!(
        said.into_iter().any(|what| what.contains("leads back")),
        "{stack:#?}"
    );

    // An image based on a file that must not be opened, and one on a missing file.
    let pipe = at("pipe");
    run(&["mkfifo", &pipe]).unwrap();
    for backing in [pipe.as_str(), "/no/such", "nbd://192.0.2.1/x"] {
        let c = at("c.qcow2");
        let argv = [
            "qemu-img", "create", "-q", "-u", "-f", "qcow2", "-b", backing, "-F", "raw", &c, "1M",
        ];
        run(&argv).unwrap();
        let stack = discover(&LiveHost, &StackTarget::Path(c.into())).unwrap();
        assert_eq!(stack.layers[0].unknown.len(), 1, "{backing}: {stack:#?}");
    }
}

#[test]
fn what_is_no_target() {
    let missing = discover(&LiveHost, &StackTarget::Path("/no/such".into()));
    assert!(matches!(missing, Err(StackError::Path(_))));
    let null = discover(&LiveHost, &StackTarget::Path("/dev/null".into()));
    assert!(matches!(null, Err(StackError::Path(_))));
    for name in ["no-such-guest", "../../etc/passwd", "-x", ""] {
        let guest = discover(&LiveHost, &StackTarget::Guest(name.to_owned()));
        assert!(
            matches!(guest, Err(StackError::NoGuest { .. })),
            "{name}: {guest:?}"
        );
    }
    let proc = discover(&LiveHost, &StackTarget::Path("/proc".into())).unwrap();
    assert_eq!(proc.layers.len(), 2);
}
