//! Which rungs there are: pure.

use super::part::{FileSystem, Part};
use assay_lab::Disk;
use assay_lab::disk::Format;
use assay_model::LayerKind;
use assay_model::change::{ImageArm, ImageFormat};
use assay_model::ladder::{Ladder, Rung, RungPlace};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// A layer that assay puts on a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Luks,
    Lvm,
    FileSystem(FileSystem),
}

/// How a rung is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recipe {
    /// A scratch file in the target directory.
    File,
    /// A scratch image, served over NBD.
    Image(ImageArm),
    /// A scratch disk of the guest with this on it.
    Disk { disk: Disk, on: Vec<On> },
    /// What another rung measures.
    Again(usize),
}

/// What is wanted, and what this machine can do of it.
#[derive(Clone, Debug)]
pub(crate) struct Choice<'a> {
    pub target: &'a str,
    pub parts: &'a BTreeSet<Part>,
    /// The virtual disk; its size is that of the test file.
    pub disk: &'a Disk,
    /// Why there are no images over NBD.
    pub no_image: Option<String>,
    /// Why there is no guest.
    pub no_guest: Option<String>,
}

/// Room beyond the test file on a disk that holds only headers (LUKS2 16 MiB, LVM 1 to 4 MiB).
const HEADERS: u64 = 64 << 20;
/// Smallest file system beyond its file: mkfs.xfs wants 300 MiB in all, btrfs 109 MiB. The image is
/// sparse.
const TABLES: u64 = 512 << 20;

/// The ladder, and how each rung is made.
pub(crate) fn settle(choice: &Choice<'_>) -> (Ladder, Vec<Recipe>) {
    let mut building = Building {
        choice,
        ladder: Ladder {
            target: choice.target.to_owned(),
            ..Ladder::default()
        },
        recipes: Vec::new(),
    };
    building.all();
    (building.ladder, building.recipes)
}

struct Building<'a> {
    choice: &'a Choice<'a>,
    ladder: Ladder,
    recipes: Vec<Recipe>,
}

impl Building<'_> {
    fn all(&mut self) {
        let file = self.add(None, "file", "file", LayerKind::File, Recipe::File);
        let mut top = file;
        if self.wants(Part::Image) {
            match &self.choice.no_image {
                None => top = self.images(file),
                Some(why) => self.leave_out(&[Part::Image], why),
            }
        }
        let in_guest: Vec<Part> = Part::ALL
            .into_iter()
            .filter(|part| *part != Part::Image && self.wants(*part))
            .collect();
        if !in_guest.is_empty() {
            match &self.choice.no_guest {
                None => top = self.guest(file),
                Some(why) => self.leave_out(&in_guest, why),
            }
        }
        if top != file {
            for of in [file, top] {
                self.again(of);
            }
        }
    }

    fn wants(&self, part: Part) -> bool {
        self.choice.parts.contains(&part)
    }

    fn leave_out(&mut self, parts: &[Part], why: &str) {
        let names: Vec<&str> = parts.iter().map(|part| part.name()).collect();
        self.ladder
            .left_out
            .push(format!("{}: {why}", names.join(", ")));
    }

    fn add(
        &mut self,
        parent: Option<usize>,
        name: &str,
        layer: &str,
        kind: LayerKind,
        recipe: Recipe,
    ) -> usize {
        self.ladder.rungs.push(Rung {
            name: name.to_owned(),
            parent,
            layer: layer.to_owned(),
            kind,
            place: match recipe {
                Recipe::File | Recipe::Again(_) => RungPlace::Host,
                Recipe::Image(_) => RungPlace::Nbd,
                Recipe::Disk { .. } => RungPlace::Guest,
            },
            settings: BTreeMap::new(),
            holds: Vec::new(),
            again: None,
        });
        self.recipes.push(recipe);
        self.ladder.rungs.len() - 1
    }

    fn set(&mut self, rung: usize, settings: &[(&str, String)]) {
        let settings = settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()));
        self.ladder.rungs[rung].settings.extend(settings);
    }

    fn holds(&mut self, rung: usize, what: &str) {
        self.ladder.rungs[rung].holds.push(what.to_owned());
    }

    /// Says that the host's memory is part of a step, where it is.
    fn cached(&mut self, rung: usize) {
        if !self.choice.disk.cache.direct() {
            self.holds(
                rung,
                "the host's page cache: what it answers never reaches the disk that the file is on",
            );
        }
    }

    /// Whether the image has a format of its own.
    fn formatted(&self) -> bool {
        self.choice.disk.format != Format::Raw
    }

    fn images(&mut self, file: usize) -> usize {
        let disk = self.choice.disk;
        let raw = Disk {
            format: Format::Raw,
            ..disk.clone()
        };
        let name = "raw image over NBD";
        let recipe = Recipe::Image(image(&raw));
        let mut top = self.add(Some(file), "nbd-raw", name, LayerKind::Network, recipe);
        self.set(top, &opened(disk));
        self.holds(
            top,
            "QEMU's block layer, its NBD server, the socket and fio's NBD client",
        );
        self.cached(top);
        if self.formatted() {
            let recipe = Recipe::Image(image(disk));
            let name = format!("nbd-{}", disk.format.name());
            top = self.add(
                Some(top),
                &name,
                disk.format.name(),
                LayerKind::Image,
                recipe,
            );
            self.set(top, &options(disk.format));
        }
        top
    }

    /// The rung that the others in the guest are compared with, up to the first file system.
    fn guest(&mut self, file: usize) -> usize {
        let disk = self.choice.disk;
        let raw = Disk {
            format: Format::Raw,
            ..disk.clone()
        };
        let bus = disk.bus.name();
        let name = format!("virtual disk ({bus})");
        let recipe = self.on_disk(&raw, "disk-raw", &[]);
        let mut top = self.add(
            Some(file),
            "disk-raw",
            &name,
            LayerKind::VirtualDisk,
            recipe,
        );
        self.set(top, &opened(disk));
        self.set(
            top,
            &[
                ("bus", bus.to_owned()),
                ("iothread", disk.iothread.to_string()),
            ],
        );
        self.holds(
            top,
            "QEMU's block layer, the controller, the exits of the guest, the guest's kernel and fio in \
             the guest",
        );
        self.cached(top);
        if self.formatted() {
            let name = format!("disk-{}", disk.format.name());
            let recipe = self.on_disk(disk, &name, &[]);
            top = self.add(
                Some(top),
                &name,
                disk.format.name(),
                LayerKind::Image,
                recipe,
            );
            self.set(top, &options(disk.format));
        }
        let mut on = Vec::new();
        if self.wants(Part::Luks) {
            on.push(On::Luks);
            let recipe = self.on_disk(disk, "luks", &on);
            top = self.add(Some(top), "luks", "LUKS", LayerKind::Crypt, recipe);
            self.set(top, &[("cipher", "aes-xts-plain64".to_owned())]);
        }
        if self.wants(Part::Lvm) {
            on.push(On::Lvm);
            let recipe = self.on_disk(disk, "lvm", &on);
            top = self.add(Some(top), "lvm", "LVM", LayerKind::LogicalVolume, recipe);
        }
        let mut first = None;
        for system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
            if !self.wants(Part::FileSystem(system)) {
                continue;
            }
            let name = system.name();
            let mut on = on.clone();
            on.push(On::FileSystem(system));
            let recipe = self.on_disk(disk, name, &on);
            let rung = self.add(Some(top), name, name, LayerKind::FileSystem, recipe);
            self.holds(rung, "its journal or log, and the writes it makes of one");
            first = first.or(Some(rung));
        }
        first.unwrap_or(top)
    }

    fn on_disk(&self, disk: &Disk, name: &str, on: &[On]) -> Recipe {
        let tables = on.iter().any(|on| matches!(on, On::FileSystem(_)));
        let size = disk.size;
        let more = if tables { size / 4 + TABLES } else { HEADERS };
        Recipe::Disk {
            disk: Disk {
                name: name.to_owned(),
                size: (size + more).next_multiple_of(1 << 20),
                ..disk.clone()
            },
            on: on.to_vec(),
        }
    }

    fn again(&mut self, of: usize) {
        let rung = &self.ladder.rungs[of];
        let (name, layer, place) = (rung.name.clone(), rung.layer.clone(), rung.place);
        let kind = rung.kind;
        let again = self.add(
            None,
            &format!("{name}-again"),
            &layer,
            kind,
            Recipe::Again(of),
        );
        self.ladder.rungs[again].again = Some(of);
        self.ladder.rungs[again].place = place;
    }
}

fn opened(disk: &Disk) -> [(&'static str, String); 2] {
    [
        ("cache", disk.cache.name().to_owned()),
        ("aio", disk.aio.name().to_owned()),
    ]
}

/// The options of a format, as `qemu-img create -o` names them.
fn options(format: Format) -> Vec<(&'static str, String)> {
    let Format::Qcow2 {
        cluster,
        preallocated,
        extended_l2,
        lazy_refcounts,
    } = format
    else {
        return Vec::new();
    };
    let mut options = vec![("cluster_size", cluster.to_string())];
    let on = |on: bool| if on { "on" } else { "off" }.to_owned();
    if preallocated {
        options.push(("preallocation", "metadata".to_owned()));
    }
    if extended_l2 {
        options.push(("extended_l2", on(extended_l2)));
    }
    if lazy_refcounts {
        options.push(("lazy_refcounts", on(lazy_refcounts)));
    }
    options
}

/// The image that a guest's disk has, without the guest.
fn image(disk: &Disk) -> ImageArm {
    let options = options(disk.format).into_iter();
    ImageArm {
        format: match disk.format {
            Format::Qcow2 { .. } => ImageFormat::Qcow2,
            Format::Raw | Format::Luks => ImageFormat::Raw,
        },
        options: options
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        cache: named(disk.cache.name()),
        aio: named(disk.aio.name()),
        luks: disk.format == Format::Luks,
        filled: true,
    }
}

/// Cache mode and aio have the same names wherever they stand; a default where one should not.
fn named<T: DeserializeOwned + Default>(name: &str) -> T {
    serde_json::from_value(name.into()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::change::CacheMode;

    fn choice<'a>(parts: &'a BTreeSet<Part>, disk: &'a Disk) -> Choice<'a> {
        Choice {
            target: "/srv",
            parts,
            disk,
            no_image: None,
            no_guest: None,
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
        let parts: BTreeSet<Part> = Part::ALL.into();
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
        let parts: BTreeSet<Part> = [Part::Image, Part::Luks, "xfs".parse().unwrap()].into();
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
        assert_eq!(ladder.left_out, ["image: no QEMU", "luks, xfs: no image"]);
        // Through the page cache, unlike the disk of the other test.
        let (ladder, _) = settle(&choice(&parts, &disk));
        assert!(
            ladder.rungs[1].holds[1].contains("page cache"),
            "{ladder:?}"
        );
        assert!("floppy".parse::<Part>().unwrap_err().contains("btrfs"));
    }
}
