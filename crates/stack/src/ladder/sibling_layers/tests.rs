//! Tests which volumes are created, for different layers below a target.

use super::*;

/// Returns a stack without branches, from the top downwards.
fn stack(layers: &[(LayerKind, &str)]) -> Stack {
    let last = layers.len() - 1;
    let layer = |(at, (kind, name)): (usize, &(LayerKind, &str))| {
        let mut layer = Layer::new(*kind, *name);
        if at < last {
            layer.below = vec![at + 1];
        }
        if *kind == LayerKind::FileSystem {
            layer.settings.insert("type".to_owned(), (*name).to_owned());
        }
        if *kind == LayerKind::Zvol {
            layer
                .settings
                .insert("volblocksize".to_owned(), "16k".to_owned());
        }
        layer
    };
    Stack {
        target: "/srv".to_owned(),
        layers: layers.iter().enumerate().map(layer).collect(),
    }
}

fn scratch(dataset: Option<&str>, group: Option<&str>) -> Scratch {
    Scratch {
        dataset: dataset.map(str::to_owned),
        group: group.map(str::to_owned),
        ..Scratch::default()
    }
}

use LayerKind::{
    Crypt, Dataset, Disk, FileSystem, LogicalVolume, Path, Pool, Vdev, VolumeGroup, Zvol,
};

#[test]
fn a_file_system_on_luks_on_a_volume() {
    let chain = stack(&[
        (Path, "/srv"),
        (FileSystem, "ext4"),
        (Crypt, "vault"),
        (LogicalVolume, "vg/data"),
        (VolumeGroup, "vg"),
        (Crypt, "disk"),
        (Disk, "sda"),
    ]);
    let found = find_sibling_layers(&chain, &scratch(None, Some("vg"))).unwrap();
    assert_eq!(found.bases.len(), 1);
    assert_eq!(found.bases[0].above, ["ext4", "LUKS"]);
    assert_eq!(found.bases[0].below, ["LUKS", "disk"]);
    let refused = |scratch| find_sibling_layers(&chain, &scratch).unwrap_err();
    insta::assert_snapshot!(refused(scratch(None, Some("other"))), @"--scratch-vg other: /srv does not lie on the volume group other, so a volume there says nothing of it: it lies on vg");
    insta::assert_snapshot!(refused(scratch(Some("tank/x"), None)), @"--scratch-dataset tank/x: /srv does not lie on the pool tank, so a volume there says nothing of it: there is no pool under it");
}

#[test]
fn files_go_into_a_file_system_of_the_pool_or_on_a_zvol() {
    let own = stack(&[
        (Path, "/tank/a"),
        (Dataset, "tank/a"),
        (Pool, "tank"),
        (Vdev, "sda"),
        (Disk, "sda"),
    ]);
    let found = find_sibling_layers(&own, &scratch(Some("tank/x"), None)).unwrap();
    assert_eq!(found.bases, []);
    let Some(Volume::Dataset { parent, properties }) = &found.home else {
        panic!("{found:?}");
    };
    assert_eq!(parent, "tank/x");
    assert_eq!(properties["primarycache"], "metadata");
    assert!(matches!(found.instead, Some(Volume::Zvol { .. })));
    let on_zvol = stack(&[
        (Path, "/srv"),
        (FileSystem, "xfs"),
        (Zvol, "tank/vol"),
        (Pool, "tank"),
        (LogicalVolume, "vg/z"),
        (VolumeGroup, "vg"),
        (Disk, "sda"),
    ]);
    let mut both = scratch(Some("tank"), Some("vg"));
    both.properties = [("recordsize", "1M"), ("primarycache", "all")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let found = find_sibling_layers(&on_zvol, &both).unwrap();
    assert!(matches!(found.bases[0].volume, Volume::Logical { .. }));
    let Volume::Zvol { properties, .. } = &found.bases[1].volume else {
        panic!("{found:?}");
    };
    let told: Vec<(&str, &str)> = properties
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(told, [("primarycache", "all"), ("volblocksize", "16k")]);
    assert_eq!(found.bases[0].above, ["pool"]);
    assert_eq!(found.bases[1].above, ["xfs"]);
    assert!(found.home.is_none() && found.instead.is_none());
}
