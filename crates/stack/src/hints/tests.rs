//! Tests that each hint appears where it applies, and nowhere else.

use super::collect_hints;
use assay_model::stack::{Layer, LayerKind, Stack};

/// Returns a chain of layers, each above the next one. Settings are given as `key=value`.
fn chain(layers: &[(LayerKind, &str, &[&str])]) -> Stack {
    let count = layers.len();
    let make = |(at, (kind, name, settings)): (usize, &(LayerKind, &str, &[&str]))| {
        let mut layer = Layer::new(*kind, *name);
        for setting in *settings {
            let (key, value) = setting.split_once('=').unwrap();
            layer.settings.insert(key.to_owned(), value.to_owned());
        }
        if at + 1 < count {
            layer.below.push(at + 1);
        }
        layer
    };
    Stack {
        target: "t".to_owned(),
        layers: layers.iter().enumerate().map(make).collect(),
    }
}

fn said(layers: &[(LayerKind, &str, &[&str])]) -> Vec<(usize, String)> {
    let found = collect_hints(&chain(layers));
    assert!(found.iter().all(|hint| !hint.source.is_empty()));
    for page in found.iter().map(|hint| &hint.page) {
        assert!(
            include_str!("../../../../docs/src/SUMMARY.md").contains(&format!("/{page}.md)")),
            "there is no page {page}"
        );
    }
    found
        .into_iter()
        .map(|hint| (hint.layer, hint.because))
        .collect()
}

#[test]
fn blocks_smaller_than_those_of_the_disk() {
    let with = |ashift: &str, size: &str| {
        said(&[
            (LayerKind::Vdev, "mirror-0", &[ashift, "class=data"]),
            (LayerKind::Disk, "sda", &[size]),
        ])
    };
    let because = "ashift 9, physical_block_size 4k".to_owned();
    assert_eq!(with("ashift=9", "physical_block_size=4k"), [(0, because)]);
    assert!(with("ashift=12", "physical_block_size=4k").is_empty());
    assert!(with("ashift=99", "physical_block_size=4k").is_empty());
    assert!(with("ashift=9", "physical_block_size=512").is_empty());
}

#[test]
fn room_that_small_blocks_take_on_raidz() {
    let with = |block: &str, kind: &str| {
        said(&[
            (LayerKind::Zvol, "tank/v", &[block]),
            (LayerKind::Pool, "tank", &[]),
            (
                LayerKind::Vdev,
                "v",
                &["class=data", "ashift=12", "devices=6", kind],
            ),
        ])
    };
    assert_eq!(with("volblocksize=8k", "kind=raidz2").len(), 1);
    assert!(with("volblocksize=16k", "kind=raidz2").is_empty());
    assert!(with("volblocksize=8k", "kind=mirror").is_empty());
}

#[test]
fn a_guest_on_zfs() {
    let found = said(&[
        (LayerKind::Guest, "web", &[]),
        (LayerKind::VirtualDisk, "d", &["bus=ide", "cache=none"]),
        (LayerKind::Image, "qcow2", &["cluster_size=8k", "size=100G"]),
        (LayerKind::File, "/tank/vm/web.qcow2", &[]),
        (LayerKind::Dataset, "tank/vm", &["sync=disabled"]),
        (LayerKind::Pool, "tank", &["zfs=2.1.11-1", "capacity=93"]),
    ]);
    let expected = [
        (1, "bus ide"),
        (1, "cache none on a dataset, OpenZFS 2.1.11-1"),
        (2, "qcow2 on the dataset tank/vm"),
        (2, "cluster_size 8k, size 100G"),
        (4, "sync disabled"),
        (5, "capacity 93 %"),
    ];
    let expected = expected.map(|(at, text)| (at, text.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn caches_that_flush_always_or_never() {
    for (mode, count) in [
        ("writeback", 0),
        ("writethrough", 1),
        ("directsync", 1),
        ("unsafe", 1),
    ] {
        let setting = format!("cache={mode}");
        let found = said(&[(LayerKind::VirtualDisk, "d", &[&setting, "bus=sata"])]);
        assert_eq!(found.len(), count, "{mode}");
    }
}

#[test]
fn encryption() {
    let found = said(&[
        (
            LayerKind::Crypt,
            "c",
            &["cipher=aes-xts-plain64", "cpu_aes=no"],
        ),
        (LayerKind::Partition, "zd0p1", &["alignment_offset=512"]),
        (LayerKind::Zvol, "tank/v", &["compression=lz4"]),
    ]);
    let at: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
    assert_eq!(at, [0, 0, 1]);
    let fine = [(
        LayerKind::Crypt,
        "c",
        &["cipher=aes-xts-plain64", "cpu_aes=yes"][..],
    )];
    assert!(said(&fine).is_empty());
}

#[test]
fn an_iothread_without_effect_and_a_file_system_without_a_journal() {
    let disk = &["iothread=no", "iothread_asked=yes", "bus=lsi"][..];
    assert_eq!(said(&[(LayerKind::VirtualDisk, "scsi0", disk)]).len(), 1);
    assert_eq!(
        said(&[(LayerKind::FileSystem, "/", &["type=ext2"])]).len(),
        1
    );
}

#[test]
fn trim_that_a_layer_drops() {
    let with = |crypt: &[&str], disk: &str| {
        said(&[
            (LayerKind::LogicalVolume, "vg-root", &["discard=no"]),
            (LayerKind::Crypt, "vault", crypt),
            (LayerKind::Partition, "nvme0n1p3", &[]),
            (LayerKind::Disk, "nvme0n1", &[disk]),
        ])
    };
    let because = "discard_max_bytes 0".to_owned();
    assert_eq!(with(&["discard=no"], "discard=yes"), [(1, because.clone())]);
    assert_eq!(with(&[], "discard=yes"), [(0, because)]);
    assert!(with(&["discard=no"], "discard=no").is_empty());
}
