//! Plans which objects are created, where, and how large they are. Performs no I/O.

use super::rungs::{On, Recipe};
use super::sibling_layers::Volume;
use assay_changes::side_by_side::LoopLayer;
use assay_model::Bytes;
use assay_model::change::ImageFormat;
use assay_model::ladder::{Ladder, Rung};

/// An object that the measurement will create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Name of the measured layer that needs the object.
    pub rung: String,
    /// Description of the object, such as `file`, `qcow2 image over NBD` or `guest disk, LUKS, ext4`.
    pub what: String,
    /// Where the object is created.
    pub within: Within,
    /// Maximum number of bytes that the object takes.
    pub space: Bytes,
}

/// Where an object of the measurement is created.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    /// The scratch directory for files and images.
    Directory,
    /// A new ZFS dataset below this file system.
    Dataset(String),
    /// The LVM volume group with this name.
    Group(String),
}

/// Number of bytes that a file system writes to a new image for its own metadata, such as log and tables.
const OWN: u64 = 160 << 20;

/// Returns the objects of all layers, except second measurements.
pub(super) fn plan_scratch(ladder: &Ladder, recipes: &[Recipe], size: Bytes) -> Vec<Made> {
    // All files go to a separate file system, if there is one.
    let home = recipes.iter().find_map(|recipe| match recipe {
        Recipe::Home(Volume::Dataset { parent, .. }) => Some(Within::Dataset(parent.clone())),
        _ => None,
    });
    let files = home.unwrap_or(Within::Directory);
    let made = |(rung, recipe): (&Rung, &Recipe)| {
        let (what, space) = match recipe {
            Recipe::Again(_) => return None,
            Recipe::File => ("file".to_owned(), size.0),
            Recipe::Home(_) => ("file in a new file system".to_owned(), own_blocks(size)),
            Recipe::Volume(volume) => {
                return Some(Made {
                    rung: rung.name.clone(),
                    what: volume_name(volume).to_owned(),
                    within: volume_parent(volume),
                    space: Bytes(needed_space(volume, size)),
                });
            }
            Recipe::Image(arm) => {
                let format = match arm.format {
                    ImageFormat::Raw => "raw",
                    ImageFormat::Qcow2 => "qcow2",
                };
                (
                    format!("{format} image over NBD"),
                    size.0 + size.0 / 32 + (4 << 20),
                )
            }
            Recipe::LoopDevice(layer) => {
                let what = match layer {
                    LoopLayer::Plain => "raw image on a loop device",
                    LoopLayer::Linear => "dm-linear on a loop device",
                    LoopLayer::Crypt => "dm-crypt on a loop device",
                };
                (what.to_owned(), size.0 + (1 << 20))
            }
            Recipe::Loop(system) => (
                format!("{} on a loop device", system.name()),
                size.0 + size.0 / 16 + (128 << 20),
            ),
            Recipe::Disk { disk, on } => {
                let layers = on.iter().map(|on| match on {
                    On::Luks => "LUKS",
                    On::Lvm => "LVM",
                    On::FileSystem(system) => system.name(),
                });
                let layers: Vec<&str> = std::iter::once("disk of a guest").chain(layers).collect();
                let own = if disk.size > size.0 + size.0 / 4 {
                    OWN
                } else {
                    32 << 20
                };
                (
                    format!("{} {}", disk.format.name(), layers.join(", ")),
                    size.0 + size.0 / 16 + own,
                )
            }
        };
        Some(Made {
            rung: rung.name.clone(),
            what,
            within: files.clone(),
            space: Bytes(space),
        })
    };
    ladder.rungs.iter().zip(recipes).filter_map(made).collect()
}

fn volume_parent(volume: &Volume) -> Within {
    match volume {
        Volume::Dataset { parent, .. } | Volume::Zvol { parent, .. } => {
            Within::Dataset(parent.clone())
        }
        Volume::Logical { group, .. } => Within::Group(group.clone()),
    }
}

fn volume_name(volume: &Volume) -> &'static str {
    match volume {
        Volume::Dataset { .. } => "file in a new file system",
        Volume::Zvol { .. } => "zvol",
        Volume::Logical {
            thin_pool: None, ..
        } => "logical volume",
        Volume::Logical { .. } => "thin logical volume",
    }
}

fn needed_space(volume: &Volume, size: Bytes) -> u64 {
    match volume {
        Volume::Dataset { .. } => own_blocks(size),
        // On raidz small blocks need up to twice their size, which ZFS counts as used.
        Volume::Zvol { .. } => size.0 * 2,
        // One extent more.
        Volume::Logical { .. } => size.0 + (4 << 20),
    }
}

/// Returns the maximum size in bytes of a file on ZFS, including its indirect blocks.
fn own_blocks(size: Bytes) -> u64 {
    size.0 + size.0 / 16 + (16 << 20)
}
