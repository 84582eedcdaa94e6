//! Rungs of file systems on the host: each in an image on a loop device, beside the file.

use super::{Building, Recipe};
use crate::ladder::layer_names::LadderPart;
use assay_model::LayerKind;

impl Building<'_> {
    /// Adds a rung for each file system that this host can make; returns the first.
    pub(super) fn host_file_systems(
        &mut self,
        file: usize,
        systems: &[LadderPart],
    ) -> Option<usize> {
        let missing = match &self.choice.no_loop {
            Ok(missing) => missing.clone(),
            Err(why) => {
                let why = match &self.choice.no_guest {
                    Some(no_guest) => format!("{why}; {no_guest}"),
                    None => why.clone(),
                };
                self.leave_out(systems, &why);
                return None;
            }
        };
        let mut first = None;
        for part in systems {
            let LadderPart::FileSystem(system) = part else {
                continue;
            };
            if let Some(why) = missing.get(system) {
                self.leave_out(&[*part], why);
                continue;
            }
            let name = format!("loop-{}", system.name());
            let layer = format!("{} on a loop device", system.name());
            let rung = self.add(
                Some(file),
                &name,
                &layer,
                LayerKind::FileSystem,
                Recipe::Loop(*system),
            );
            self.holds(rung, "the loop device of the host, with direct I/O");
            self.holds(rung, "its journal or log, and the writes it makes of one");
            first = first.or(Some(rung));
        }
        first
    }
}
