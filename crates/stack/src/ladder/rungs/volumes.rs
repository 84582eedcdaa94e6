//! Measured layers below the file: new volumes of the same kinds as the volumes below the target.

use super::{Building, Recipe};
use crate::ladder::sibling_layers::{Base, Volume};
use assay_model::LayerKind;

/// Text for the report about costs that every layer on ZFS includes, in addition to its properties.
const ZFS: &str = "what a transaction group writes after a sample, the checksums and copies it makes \
    then; with primarycache=metadata every read comes from the disks, and a write smaller than a block \
    or record reads the rest of it first";

impl Building<'_> {
    /// Adds the volumes, each on the previous one, and the file on the topmost volume. Returns the index of the file.
    pub(super) fn ground(&mut self) -> usize {
        let mut under = None;
        let mut above: &[String] = &[];
        for base in &self.choice.ground.bases {
            under = Some(self.base(under, base, above));
            above = &base.above;
        }
        self.file(under, above)
    }

    fn base(&mut self, parent: Option<usize>, base: &Base, above: &[String]) -> usize {
        let rung = self.volume(parent, &base.volume, None);
        if !above.is_empty() {
            self.holds(rung, &format!("what lies between: {}", above.join(", ")));
        }
        if !base.below.is_empty() && parent.is_none() {
            let below = base.below.join(", ");
            self.holds(
                rung,
                &format!("what it lies on: {below}; no rung is below it"),
            );
        }
        rung
    }

    /// Adds a volume. Its name is `called`; without `called`, the name of its kind.
    pub(super) fn volume(
        &mut self,
        parent: Option<usize>,
        volume: &Volume,
        called: Option<&str>,
    ) -> usize {
        let (name, layer, kind) = match volume {
            Volume::Dataset { .. } => ("dataset", "file of a dataset", LayerKind::Dataset),
            Volume::Zvol { .. } => ("zvol", "zvol", LayerKind::Zvol),
            Volume::Logical {
                thin_pool: None, ..
            } => ("lv", "LV", LayerKind::LogicalVolume),
            Volume::Logical { .. } => ("thin-lv", "thin LV", LayerKind::LogicalVolume),
        };
        let layer = called.unwrap_or(layer);
        let rung = self.add(parent, name, layer, kind, Recipe::Volume(volume.clone()));
        self.describe(rung, volume);
        rung
    }

    fn describe(&mut self, rung: usize, volume: &Volume) {
        match volume {
            Volume::Dataset { parent, properties } | Volume::Zvol { parent, properties } => {
                self.set(rung, &[("parent", parent.clone())]);
                for (name, value) in properties {
                    self.set(rung, &[(name, value.clone())]);
                }
                self.holds(rung, ZFS);
            }
            Volume::Logical { group, thin_pool } => {
                self.set(rung, &[("group", group.clone())]);
                if let Some(pool) = thin_pool {
                    self.set(rung, &[("thin_pool", pool.clone())]);
                }
            }
        }
    }

    /// Adds the file below all other layers, in the target or in a file system of the pool.
    fn file(&mut self, parent: Option<usize>, above: &[String]) -> usize {
        let home = self.choice.ground.home.as_ref();
        let layer = match (parent, home, above) {
            (None, None, _) | (Some(_), None, []) => "file".to_owned(),
            (_, Some(_), _) => "file of a dataset".to_owned(),
            (Some(_), None, above) => above.join(" on "),
        };
        let kind = match (parent, home) {
            (_, Some(_)) => LayerKind::Dataset,
            (Some(_), None) => LayerKind::FileSystem,
            (None, None) => LayerKind::File,
        };
        let recipe = match home {
            Some(home) => Recipe::Home(home.clone()),
            None => Recipe::File,
        };
        let file = self.add(parent, "file", &layer, kind, recipe);
        if let Some(home) = home {
            self.describe(file, home);
        }
        if parent.is_some() && home.is_none() {
            self.holds(
                file,
                "that the target is as old and as full as it is, and lies on other blocks of the disks \
                 than the rung below",
            );
            if above.len() > 1 {
                let together = above.join(" and ");
                self.holds(
                    file,
                    &format!("{together}: assay makes no second one of either"),
                );
            }
        }
        file
    }
}
