//! Determines which layers are measured and how each is created. Performs no I/O.

mod guest;
mod image;
mod loop_devices;
mod volumes;

use super::layer_names::{FileSystem, LadderPart};
use super::sibling_layers::{SiblingLayers, Volume};
use assay_changes::side_by_side::LoopLayer;
use assay_lab::Disk;
use assay_lab::disk::DiskFormat;
use assay_model::LayerKind;
use assay_model::change::ImageArm;
use assay_model::ladder::{Ladder, Rung, RungPlace};
use image::{format_options, open_options, to_image_arm};
use std::collections::{BTreeMap, BTreeSet};

/// A layer that assay creates on a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Luks,
    Lvm,
    FileSystem(FileSystem),
}

/// How a measured layer is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recipe {
    /// As a scratch file in the target directory.
    File,
    /// As a file in a file system of the pool, which also contains all images.
    Home(Volume),
    /// As a volume in the pool or volume group.
    Volume(Volume),
    /// As a scratch image, which is served over NBD.
    Image(ImageArm),
    /// As a loop device of the host, either bare or with one device-mapper layer.
    LoopDevice(LoopLayer),
    /// As a file system of the host, in an image on a loop device.
    Loop(FileSystem),
    /// As a scratch disk of the guest with these layers on it.
    Disk { disk: Disk, on: Vec<On> },
    /// As a second measurement of the layer with this index.
    Again(usize),
}

/// Layers that the user selected, and what this machine supports.
#[derive(Clone, Debug)]
pub(crate) struct Choice<'a> {
    pub target: &'a str,
    pub parts: &'a BTreeSet<LadderPart>,
    /// Settings of the virtual disk. Its size is the size of the test file.
    pub disk: &'a Disk,
    /// Volumes below the file.
    pub ground: &'a SiblingLayers,
    /// Reason why images cannot be served over NBD; `None` if they can.
    pub no_image: Option<String>,
    /// Reason why there is no guest; `None` if there is one.
    pub no_guest: Option<String>,
    /// Layers that the host cannot create on loop devices, with the reasons. The error is the reason why the host
    /// cannot create any layer.
    pub no_loop: Result<BTreeMap<LadderPart, String>, String>,
}

/// Returns the ladder, and for each of its layers how it is created.
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
        let file = self.ground();
        let bottom = self.ladder.path(file).first().copied().unwrap_or(file);
        let mut top = file;
        if let Some(zvol) = &self.choice.ground.instead {
            let beside = self.volume(Some(file), zvol, Some("zvol instead of the file"));
            if bottom == file {
                top = beside;
            }
        }
        if self.wants(LadderPart::Image) {
            match &self.choice.no_image {
                None => top = self.images(file),
                Some(why) => self.leave_out(&[LadderPart::Image], why),
            }
        }
        let in_guest: Vec<LadderPart> = LadderPart::ALL
            .into_iter()
            .filter(|part| {
                !matches!(part, LadderPart::File | LadderPart::Image) && self.wants(*part)
            })
            .collect();
        let is_file_system = |part: &LadderPart| matches!(part, LadderPart::FileSystem(_));
        match &self.choice.no_guest {
            // File systems alone need no guest.
            _ if in_guest.is_empty() => {}
            None if !in_guest.iter().all(is_file_system) || self.choice.no_loop.is_err() => {
                top = self.guest(file);
            }
            no_guest => {
                let (on_host, others): (Vec<_>, Vec<_>) = in_guest
                    .into_iter()
                    .partition(|part| *part != LadderPart::Guest);
                if let (Some(why), false) = (no_guest, others.is_empty()) {
                    self.leave_out(&others, why);
                }
                top = self.loop_rungs(file, &on_host).unwrap_or(top);
            }
        }
        if top != bottom {
            for of in [bottom, top] {
                self.again(of);
            }
        }
    }

    fn wants(&self, part: LadderPart) -> bool {
        self.choice.parts.contains(&part)
    }

    fn leave_out(&mut self, parts: &[LadderPart], why: &str) {
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
                Recipe::File
                | Recipe::Home(_)
                | Recipe::Volume(_)
                | Recipe::LoopDevice(_)
                | Recipe::Loop(_)
                | Recipe::Again(_) => RungPlace::Host,
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

    /// Records that a layer includes the host's page cache, unless the disk uses O_DIRECT.
    fn cached(&mut self, rung: usize) {
        if !self.choice.disk.cache.direct() {
            self.holds(
                rung,
                "the host's page cache: what it answers never reaches the disk that the file is on",
            );
        }
    }

    /// Returns whether the image has a format other than raw.
    fn formatted(&self) -> bool {
        self.choice.disk.format != DiskFormat::Raw
    }

    fn images(&mut self, file: usize) -> usize {
        let disk = self.choice.disk;
        let raw = Disk {
            format: DiskFormat::Raw,
            ..disk.clone()
        };
        let name = "raw image over NBD";
        let recipe = Recipe::Image(to_image_arm(&raw));
        let mut top = self.add(Some(file), "nbd-raw", name, LayerKind::Network, recipe);
        self.set(top, &open_options(disk));
        self.holds(
            top,
            "QEMU's block layer, its NBD server, the socket and fio's NBD client",
        );
        self.cached(top);
        if self.formatted() {
            let name = format!("nbd-{}", disk.format.name());
            top = self.image(top, disk, &name, Recipe::Image(to_image_arm(disk)));
        }
        top
    }

    /// Adds a layer for the image format, above the layer of the same image without the format.
    fn image(&mut self, below: usize, disk: &Disk, name: &str, recipe: Recipe) -> usize {
        let format = disk.format;
        let rung = self.add(Some(below), name, format.name(), LayerKind::Image, recipe);
        self.set(rung, &format_options(format));
        rung
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

#[cfg(test)]
mod tests;
