//! Tests which layers are measured for each kind of target.

use super::*;
use crate::ladder::sibling_layers::Base;
use assay_model::change::CacheMode;

static NONE: SiblingLayers = SiblingLayers {
    bases: Vec::new(),
    home: None,
    instead: None,
    pool_devices: Vec::new(),
};

fn choice<'a>(parts: &'a BTreeSet<LadderPart>, disk: &'a Disk) -> Choice<'a> {
    Choice {
        target: "/srv",
        parts,
        disk,
        ground: &NONE,
        no_image: None,
        no_guest: None,
        no_loop: Err("needs root".to_owned()),
    }
}

fn shown(ladder: &Ladder) -> Vec<String> {
    let name = |index: Option<usize>| index.map_or("-", |index| &ladder.rungs[index].name);
    let rungs = ladder.rungs.iter();
    rungs
        .map(|rung| format!("{} on {}", rung.name, name(rung.parent.or(rung.again))))
        .collect()
}

#[test]
fn each_rung_adds_one_layer_to_its_parent() {
    let parts: BTreeSet<LadderPart> = LadderPart::ALL.into();
    let disk = Disk::parse("256M,format=qcow2,cluster=128k,cache=none", "d").unwrap();
    let (ladder, recipes) = settle(&choice(&parts, &disk));
    assert_eq!(
        shown(&ladder),
        [
            "file on -",
            "nbd-raw on file",
            "nbd-qcow2 on nbd-raw",
            "disk-raw on file",
            "disk-qcow2 on disk-raw",
            "luks on disk-qcow2",
            "lvm on luks",
            "ext4 on lvm",
            "xfs on lvm",
            "btrfs on lvm",
            "file-again on file",
            "ext4-again on ext4",
        ]
    );
    assert_eq!(ladder.tops(), [2, 7, 8, 9]);
    let Recipe::Image(arm) = &recipes[2] else {
        panic!("{:?}", recipes[2]);
    };
    assert_eq!(arm.options["cluster_size"], "131072");
    assert_eq!(arm.cache, CacheMode::None);
    for recipe in &recipes {
        if let Recipe::Disk { disk, .. } = recipe {
            disk.check().unwrap();
            assert!(disk.size > 256 << 20);
        }
    }
}

#[test]
fn what_is_not_wanted_or_cannot_be_had_is_left_out() {
    let disk = Disk::scratch("d", 64 << 20);
    let parts: BTreeSet<LadderPart> =
        [LadderPart::Image, LadderPart::Luks, "xfs".parse().unwrap()].into();
    let (ladder, _) = settle(&choice(&parts, &disk));
    let expected = [
        "file",
        "nbd-raw",
        "disk-raw",
        "luks",
        "xfs",
        "file-again",
        "xfs-again",
    ];
    let names: Vec<&str> = ladder.rungs.iter().map(|rung| rung.name.as_str()).collect();
    assert_eq!(names, expected);
    let none = Choice {
        no_image: Some("no QEMU".to_owned()),
        no_guest: Some("no image".to_owned()),
        ..choice(&parts, &disk)
    };
    let (ladder, recipes) = settle(&none);
    assert_eq!(recipes, [Recipe::File]);
    assert_eq!(
        ladder.left_out,
        ["image: no QEMU", "luks, xfs: needs root; no image"]
    );
    // Through the page cache, in contrast to the disk of the other test.
    let (ladder, _) = settle(&choice(&parts, &disk));
    assert!(
        ladder.rungs[1].holds[1].contains("page cache"),
        "{ladder:?}"
    );
    assert!(
        "floppy"
            .parse::<LadderPart>()
            .unwrap_err()
            .contains("btrfs")
    );
}

#[test]
fn volumes_lie_below_the_file_or_beside_it() {
    let parts: BTreeSet<LadderPart> = [LadderPart::Image].into();
    let disk = Disk::scratch("d", 64 << 20);
    let parent = "tank/x".to_owned();
    let properties = BTreeMap::from([("volblocksize".to_owned(), "16k".to_owned())]);
    let zvol = Volume::Zvol {
        parent: parent.clone(),
        properties,
    };
    let base = |volume: Volume, above: &[&str]| Base {
        volume,
        above: above.iter().map(|&name| name.to_owned()).collect(),
        below: vec!["raid1".to_owned()],
    };
    let logical = Volume::Logical {
        group: "vg".to_owned(),
        thin_pool: None,
    };
    let stacked = SiblingLayers {
        bases: vec![
            base(logical, &["pool"]),
            base(zvol.clone(), &["ext4", "LUKS"]),
        ],
        ..SiblingLayers::default()
    };
    let (ladder, _) = settle(&Choice {
        ground: &stacked,
        ..choice(&parts, &disk)
    });
    let expected = [
        "lv on -",
        "zvol on lv",
        "file on zvol",
        "nbd-raw on file",
        "lv-again on lv",
        "nbd-raw-again on nbd-raw",
    ];
    assert_eq!(shown(&ladder), expected);
    assert_eq!(ladder.rungs[2].layer, "ext4 on LUKS");
    assert!(ladder.rungs[0].holds[0].contains("raid1"));
    assert_eq!(ladder.rungs[1].settings["volblocksize"], "16k");

    let dataset = Volume::Dataset {
        parent,
        properties: BTreeMap::new(),
    };
    let beside = SiblingLayers {
        home: Some(dataset.clone()),
        instead: Some(zvol),
        ..SiblingLayers::default()
    };
    let none = BTreeSet::new();
    let (ladder, recipes) = settle(&Choice {
        ground: &beside,
        ..choice(&none, &disk)
    });
    let expected = [
        "file on -",
        "zvol on file",
        "file-again on file",
        "zvol-again on zvol",
    ];
    assert_eq!(shown(&ladder), expected);
    assert_eq!(recipes[0], Recipe::Home(dataset));
}

#[test]
fn file_systems_are_made_on_the_host_where_nothing_else_needs_a_guest() {
    let disk = Disk::scratch("d", 64 << 20);
    let (ext4, xfs) = (FileSystem::Ext4, FileSystem::Xfs);
    let parts: BTreeSet<LadderPart> = [
        LadderPart::Luks,
        LadderPart::FileSystem(ext4),
        LadderPart::FileSystem(xfs),
    ]
    .into();
    let no_xfs = BTreeMap::from([(LadderPart::FileSystem(xfs), "no mkfs".to_owned())]);
    let without = Choice {
        no_guest: Some("no image".to_owned()),
        no_loop: Ok(no_xfs),
        ..choice(&parts, &disk)
    };
    let (ladder, recipes) = settle(&without);
    assert_eq!(ladder.left_out, ["xfs: no mkfs"]);
    assert_eq!(
        recipes[..4],
        [
            Recipe::File,
            Recipe::LoopDevice(LoopLayer::Plain),
            Recipe::LoopDevice(LoopLayer::Crypt),
            Recipe::Loop(FileSystem::Ext4)
        ]
    );
    let parents: Vec<_> = ladder.rungs.iter().map(|rung| rung.parent).collect();
    assert_eq!(parents[..4], [None, Some(0), Some(1), Some(1)]);
    // With a guest, the layers stand on each other in it.
    let with = Choice {
        no_loop: Ok(BTreeMap::new()),
        ..choice(&parts, &disk)
    };
    let (_, recipes) = settle(&with);
    assert!(!recipes.iter().any(|one| matches!(one, Recipe::Loop(_))));
    let alone: BTreeSet<LadderPart> = [LadderPart::FileSystem(ext4)].into();
    let (_, recipes) = settle(&Choice {
        parts: &alone,
        ..with
    });
    assert_eq!(recipes[2], Recipe::Loop(ext4));
}
