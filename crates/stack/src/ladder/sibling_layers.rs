//! Determines which layers below a target assay may create a second time, as siblings. Performs no I/O.

use super::error::MeasureError;
use assay_model::LayerKind;
use assay_model::stack::{Layer, Stack};
use std::collections::BTreeMap;

/// Where assay may create volumes, and with which properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    /// ZFS file system below which file systems and volumes are created; `None` creates none.
    pub dataset: Option<String>,
    /// Properties of the created volumes, in addition to the inherited properties and the properties that assay sets.
    pub properties: BTreeMap<String, String>,
    /// LVM volume group in which a logical volume is created; `None` creates none.
    pub group: Option<String>,
    /// Thin pool in the volume group, in which a thin volume is created; `None` creates a normal volume.
    pub thin_pool: Option<String>,
}

/// A volume that assay creates for the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Volume {
    /// A file in a separate ZFS file system.
    Dataset {
        parent: String,
        properties: BTreeMap<String, String>,
    },
    /// A ZFS volume (zvol).
    Zvol {
        parent: String,
        properties: BTreeMap<String, String>,
    },
    /// An LVM logical volume.
    Logical {
        group: String,
        thin_pool: Option<String>,
    },
}

impl Volume {
    pub fn is_zfs(&self) -> bool {
        !matches!(self, Self::Logical { .. })
    }
}

/// A volume to create, with the same kind and the same properties as a volume below the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    pub volume: Volume,
    /// Names of the layers between this volume and the next measured layer above it, from the top, such as `LUKS` and
    /// `ext4`. These layers are not measured separately.
    pub above: Vec<String>,
    /// Names of the layers below this volume, which are not measured separately.
    pub below: Vec<String>,
}

/// Layers below the target that are created a second time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiblingLayers {
    /// Volumes, the lowest first.
    pub bases: Vec<Base>,
    /// New file system of the pool for all files; `None` if the target is not a file system of this pool.
    pub home: Option<Volume>,
    /// Volume that is measured beside the file, if the target is a file system of the pool; else `None`.
    pub instead: Option<Volume>,
    /// Paths of the pool's devices, whose counters are read.
    pub pool_devices: Vec<std::path::PathBuf>,
}

/// Properties that only file systems have (zfsprops(7)).
const OF_FILES: [&str; 8] = [
    "recordsize",
    "atime",
    "relatime",
    "xattr",
    "acltype",
    "dnodesize",
    "special_small_blocks",
    "direct",
];

/// Determines the positions of the new volumes among the measured layers, from the layers below the target.
///
/// # Errors
/// The target is not on the pool or the volume group.
pub(crate) fn find_sibling_layers(
    stack: &Stack,
    scratch: &Scratch,
) -> Result<SiblingLayers, MeasureError> {
    let mut found = SiblingLayers::default();
    let mut holders: Vec<(usize, Volume)> = Vec::new();
    if let Some(group) = &scratch.group {
        let at = find_holder(
            stack,
            LayerKind::VolumeGroup,
            group,
            &[LayerKind::LogicalVolume],
        )
        .map_err(|reason| MeasureError::ground("--scratch-vg", group, reason))?;
        let volume = Volume::Logical {
            group: group.clone(),
            thin_pool: scratch.thin_pool.clone(),
        };
        holders.push((at, volume));
    }
    if let Some(parent) = &scratch.dataset {
        let pool = parent.split('/').next().unwrap_or_default();
        let kinds = [LayerKind::Dataset, LayerKind::Zvol];
        let at = find_holder(stack, LayerKind::Pool, pool, &kinds)
            .map_err(|reason| MeasureError::ground("--scratch-dataset", parent, reason))?;
        found.pool_devices = pool_devices(stack, pool);
        let layer = &stack.layers[at];
        let make = |kind| make(kind, parent, scratch, layer);
        let home = stack.layers[0].below.contains(&at) && layer.kind == LayerKind::Dataset;
        match home {
            true => {
                found.home = Some(make(LayerKind::Dataset));
                found.instead = Some(make(LayerKind::Zvol));
            }
            false => holders.push((at, make(layer.kind))),
        }
    }
    // The lower one comes first.
    if let [(upper, _), (lower, _)] = &holders[..]
        && stack.under(*upper).contains(lower)
    {
        holders.reverse();
    }
    for (index, (at, volume)) in holders.iter().enumerate() {
        let next = holders.get(index + 1).map_or(0, |(next, _)| *next);
        found.bases.push(Base {
            volume: volume.clone(),
            above: layers_between(stack, next, *at),
            below: layers_below(stack, *at),
        });
    }
    Ok(found)
}

/// Returns the index of the nearest layer among `holders` that is on the pool or volume group with this name.
fn find_holder(
    stack: &Stack,
    kind: LayerKind,
    name: &str,
    holders: &[LayerKind],
) -> Result<usize, String> {
    let under = stack.under(0);
    let of_kind = |at: &&usize| stack.layers[**at].kind == kind;
    let what = match kind {
        LayerKind::Pool => "pool",
        _ => "volume group",
    };
    let refuse = || {
        let names: Vec<&str> = under
            .iter()
            .filter(of_kind)
            .map(|at| stack.layers[*at].name.as_str())
            .collect();
        let lies = match &names[..] {
            [] => format!("there is no {what} under it"),
            names => format!("it lies on {}", names.join(", ")),
        };
        format!(
            "{} does not lie on the {what} {name}, so a volume there says nothing of it: {lies}",
            stack.target.escape_debug()
        )
    };
    let ground = under
        .iter()
        .find(|at| of_kind(at) && stack.layers[**at].name == name)
        .ok_or_else(refuse)?;
    under
        .iter()
        .copied()
        .find(|at| holders.contains(&stack.layers[*at].kind) && stack.under(*at).contains(ground))
        .ok_or_else(refuse)
}

/// Returns the names of the layers above `lower` and below `upper`, from the top.
fn layers_between(stack: &Stack, upper: usize, lower: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for at in stack.under(upper) {
        let name = layer_name(&stack.layers[at]);
        if stack.under(at).contains(&lower) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the names of the layers below a volume, which are the layers below its pool or volume group.
fn layers_below(stack: &Stack, at: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for at in stack.under(at) {
        let layer = &stack.layers[at];
        let kinds = [
            LayerKind::Crypt,
            LayerKind::Md,
            LayerKind::LogicalVolume,
            LayerKind::Loop,
            LayerKind::FileSystem,
            LayerKind::Vdev,
            LayerKind::VirtualDisk,
            LayerKind::Disk,
        ];
        let name = layer_name(layer);
        if kinds.contains(&layer.kind) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the name of a layer that engineers use.
fn layer_name(layer: &Layer) -> String {
    let own = match layer.kind {
        LayerKind::FileSystem => layer.get("type"),
        LayerKind::Crypt => Some("LUKS"),
        LayerKind::Md => layer.get("level"),
        LayerKind::Vdev => layer.get("kind").filter(|kind| *kind != "disk"),
        _ => None,
    };
    own.unwrap_or(layer.kind.label()).to_owned()
}

fn make(kind: LayerKind, parent: &str, scratch: &Scratch, like: &Layer) -> Volume {
    let volume = kind == LayerKind::Zvol;
    // A read that the ARC serves does not reach the disks, and a file of a few hundred MiB fits
    // into the ARC.
    let mut properties = BTreeMap::from([("primarycache".to_owned(), "metadata".to_owned())]);
    if let Some(size) = like.get("volblocksize").filter(|_| volume) {
        properties.insert("volblocksize".to_owned(), size.to_owned());
    }
    properties.extend(scratch.properties.clone());
    properties.retain(|name, _| match volume {
        true => !OF_FILES.contains(&name.as_str()),
        false => name != "volblocksize",
    });
    let parent = parent.to_owned();
    match volume {
        true => Volume::Zvol { parent, properties },
        false => Volume::Dataset { parent, properties },
    }
}

/// Returns the paths of the devices of a pool's top-level vdevs.
fn pool_devices(stack: &Stack, pool: &str) -> Vec<std::path::PathBuf> {
    let pools = stack.layers.iter();
    let vdevs = pools
        .filter(|layer| layer.kind == LayerKind::Pool && layer.name == pool)
        .flat_map(|layer| &layer.below);
    let leaves = vdevs.filter_map(|at| stack.layers.get(*at));
    let leaves = leaves.flat_map(|vdev| &vdev.below);
    leaves
        .filter_map(|at| stack.layers.get(*at)?.place.clone())
        .collect()
}

#[cfg(test)]
mod tests;
