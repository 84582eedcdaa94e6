//! Measured layers on loop devices of the host: the bare loop device, and each further layer on its own loop device.

use super::{Building, Recipe};
use crate::ladder::layer_names::LadderPart;
use assay_changes::side_by_side::LoopLayer;
use assay_model::LayerKind;

impl Building<'_> {
    /// Adds each layer that this host can create. Returns the index of the first file system; without a file system,
    /// the index of the last layer.
    pub(super) fn loop_rungs(&mut self, file: usize, parts: &[LadderPart]) -> Option<usize> {
        let missing = match &self.choice.no_loop {
            Ok(missing) => missing.clone(),
            Err(why) => {
                let why = match &self.choice.no_guest {
                    Some(no_guest) => format!("{why}; {no_guest}"),
                    None => why.clone(),
                };
                self.leave_out(parts, &why);
                return None;
            }
        };
        for part in parts {
            if let Some(why) = missing.get(part) {
                self.leave_out(&[*part], why);
            }
        }
        let parts: Vec<_> = parts
            .iter()
            .filter(|part| !missing.contains_key(part))
            .collect();
        if parts.is_empty() {
            return None;
        }
        let name = "raw image on a loop device";
        let recipe = Recipe::LoopDevice(LoopLayer::Plain);
        let below = self.add(Some(file), "loop", name, LayerKind::Loop, recipe);
        self.holds(below, "the loop device of the host, with direct I/O");
        let (mut first_system, mut last) = (None, below);
        for part in parts {
            last = match part {
                LadderPart::Luks => {
                    let recipe = Recipe::LoopDevice(LoopLayer::Crypt);
                    let name = "dm-crypt, as LUKS has it";
                    let rung = self.add(Some(below), "loop-luks", name, LayerKind::Crypt, recipe);
                    self.set(rung, &[("cipher", "aes-xts-plain64".to_owned())]);
                    rung
                }
                LadderPart::Lvm => {
                    let recipe = Recipe::LoopDevice(LoopLayer::Linear);
                    let name = "dm-linear, as LVM has it";
                    let kind = LayerKind::LogicalVolume;
                    self.add(Some(below), "loop-lvm", name, kind, recipe)
                }
                LadderPart::FileSystem(system) => {
                    let name = format!("loop-{}", system.name());
                    let recipe = Recipe::Loop(*system);
                    let kind = LayerKind::FileSystem;
                    let rung = self.add(Some(below), &name, system.name(), kind, recipe);
                    self.holds(rung, "its journal or log, and the writes it makes of one");
                    first_system = first_system.or(Some(rung));
                    rung
                }
                LadderPart::File | LadderPart::Image | LadderPart::Guest => continue,
            };
        }
        Some(first_system.unwrap_or(last))
    }
}
