//! Tests a real guest with all kinds of layers, which are read from inside through the guest's agent, and from outside
//! by the process of QEMU.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look for the image of guests"
)]

mod common;

use assay_host::{Faulty, Host, Limits, LiveHost, Recording, Root};
use assay_lab::disk::{Bus, CacheMode, DiskFormat};
use assay_lab::{Cache, Disk, Guest, GuestOptions, GuestRegistry};
use assay_loads::Cancel;
use assay_model::stack::LayerKind::{
    self, Crypt, Dataset, File, FileSystem, Image, LogicalVolume, Loop, Md, Partition, Pool, Vdev,
    VirtualDisk, VolumeGroup, Zvol,
};
use assay_model::stack::Stack;
use assay_stack::{StackTarget, collect_hints, discover};
use common::{chain, layer};
use std::ffi::OsStr;
use std::time::Duration;

fn disk(name: &str, bus: Bus) -> Disk {
    Disk {
        bus,
        ..Disk::scratch(name, 256 << 20)
    }
}

fn inside(guest: &dyn Host, path: &str) -> Stack {
    discover(guest, &StackTarget::Path(path.into())).unwrap()
}

fn text(stack: &Stack, kind: LayerKind, setting: &str) -> String {
    let found = layer(stack, kind).get(setting);
    found
        .unwrap_or_else(|| panic!("no {setting} of {kind:?} in {stack:#?}"))
        .to_owned()
}

#[test]
fn every_layer_from_inside_and_from_outside() {
    let Some(image) = Cache::of_user().ok().and_then(|cache| cache.find()) else {
        return assay_testing::skipped(
            "guest-image",
            "no guest image; `assay lab build` makes one",
        );
    };
    let dir = tempfile::tempdir().unwrap();
    let state = GuestRegistry::open(dir.path()).unwrap();
    let name = format!("stack-{}", std::process::id());
    let options = GuestOptions {
        disks: vec![
            disk("m1", Bus::VirtioBlk),
            Disk {
                format: DiskFormat::QCOW2,
                cache: CacheMode::None,
                ..disk("m2", Bus::Sata)
            },
            disk("z1", Bus::Nvme),
            disk("z2", Bus::VirtioScsi),
        ],
        boot_limit: Duration::from_secs(600),
        ..GuestOptions::new(&name)
    };
    let guest = Guest::boot(&image, &options, &state, &Cancel::default()).unwrap();

    let script = include_str!("guest/setup.sh");
    let argv = ["sh", "-c", script].map(OsStr::new);
    let limits = Limits {
        timeout: Duration::from_secs(400),
    };
    let made = Host::run(&guest, &argv, limits).unwrap();
    assert!(made.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let stack = inside(&guest, "/srv/lo op");
    let expected = [
        LayerKind::Path,
        FileSystem,
        Loop,
        File,
        FileSystem,
        LogicalVolume,
        VolumeGroup,
        Crypt,
        Md,
        LayerKind::Disk,
        VirtualDisk,
    ];
    assert_eq!(chain(&stack), expected, "{stack:#?}");
    assert_eq!(layer(&stack, LogicalVolume).name, "vg-a/data");
    assert_eq!(text(&stack, VolumeGroup, "extent_size"), "4M");
    for (setting, value) in [
        ("format", "LUKS2"),
        ("cipher", "aes-xts-plain64"),
        ("key_size", "512"),
        ("sector_size", "4k"),
        ("flags", "allow_discards no_read_workqueue"),
        ("pbkdf", "pbkdf2"),
    ] {
        assert_eq!(text(&stack, Crypt, setting), value);
    }
    assert_eq!(text(&stack, Md, "level"), "raid1");
    assert_eq!(layer(&stack, Md).below.len(), 2);
    assert_eq!(text(&stack, Loop, "direct_io"), "yes");
    assert_eq!(text(&stack, VirtualDisk, "hypervisor"), "QEMU");

    let thin = inside(&guest, "/dev/mapper/vg--a-thin");
    assert_eq!(thin.layers[0].name, "vg-a/thin");
    assert_eq!(thin.layers[0].get("segtype"), Some("thin"));
    let pool = &thin.layers[thin.layers[0].below[0]];
    assert_eq!(pool.get("segtype"), Some("thin-pool"));
    assert_eq!(pool.bytes("chunk_size"), Some(64 << 10));
    assert_eq!(pool.below.len(), 2);

    // The results of all reads are kept, to repeat the search with faults.
    let kept = tempfile::tempdir().unwrap();
    let recording = Recording::new(&guest, kept.path()).unwrap();
    let stack = inside(&recording, "/srv/z");
    recording.finish(std::collections::BTreeMap::new()).unwrap();
    let expected = [
        LayerKind::Path,
        FileSystem,
        Partition,
        Zvol,
        Pool,
        Vdev,
        Partition,
        LayerKind::Disk,
        VirtualDisk,
    ];
    assert_eq!(chain(&stack), expected, "{stack:#?}");
    assert_eq!(layer(&stack, Zvol).name, "tank/vol");
    assert_eq!(text(&stack, Zvol, "volblocksize"), "8k");
    assert_eq!(text(&stack, Zvol, "sparse"), "yes");
    let vdevs: Vec<(&str, Option<&str>, Option<&str>)> = layer(&stack, Pool)
        .below
        .iter()
        .map(|at| &stack.layers[*at])
        .map(|vdev| (vdev.name.as_str(), vdev.get("class"), vdev.get("ashift")))
        .collect();
    let log = vdevs.iter().find(|(_, class, _)| *class == Some("log"));
    assert_eq!(vdevs[0], ("mirror-0", Some("data"), Some("12")));
    assert_eq!(log.unwrap().2, Some("12"));

    let data = inside(&guest, "/tank/data");
    assert_eq!(text(&data, Dataset, "recordsize"), "64k");
    assert_eq!(text(&data, Dataset, "compression"), "zstd");
    assert_eq!(collect_hints(&data), []);

    // From outside, by the process of QEMU.
    let outside = discover(&LiveHost, &StackTarget::Guest(format!("assay-lab-{name}"))).unwrap();
    let by_pid = discover(
        &LiveHost,
        &StackTarget::Guest(guest.entry().pid.to_string()),
    )
    .unwrap();
    assert_eq!(by_pid.layers.len(), outside.layers.len());
    let named = |name: &str| {
        let mut layers = outside.layers.iter();
        layers
            .find(|layer| layer.kind == VirtualDisk && layer.name == name)
            .unwrap()
    };
    assert_eq!(named("z1").get("bus"), Some("nvme"));
    assert_eq!(named("z2").get("bus"), Some("virtio-scsi"));
    let m2 = named("m2");
    assert_eq!(
        (m2.get("bus"), m2.get("cache")),
        (Some("sata"), Some("none"))
    );
    // The kernel's flags of the open file, not the requested ones.
    assert_eq!(m2.get("o_direct"), Some("yes"));
    assert_eq!(named("m1").get("o_direct"), Some("no"));
    let format = &outside.layers[m2.below[0]];
    assert_eq!(
        (format.kind, format.bytes("cluster_size")),
        (Image, Some(64 << 10))
    );
    let file = guest.disk_file(&options.disks[1]);
    assert_eq!(
        outside.layers[format.below[0]].place.as_deref(),
        Some(&*file)
    );
    drop(guest);

    let root = Root::open(kept.path()).unwrap();
    let target = StackTarget::Path("/srv/z".into());
    assert_eq!(discover(&root, &target).unwrap(), stack);
    for n in 1..=150 {
        let Ok(part) = discover(&Faulty::new(&root, n), &target) else {
            continue;
        };
        let said = part.layers.iter().any(|layer| !layer.unknown.is_empty());
        assert!(
            part.layers.len() == stack.layers.len() || said,
            "call {n}: {part:#?}"
        );
    }
}
