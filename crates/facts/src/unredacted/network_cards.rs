//! Collects the drivers of network cards. In a virtual machine, an emulated card costs CPU time.

use super::lines_of_files::note;
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;

const CARDS: &str = "/sys/class/net";
/// Drivers of cards that QEMU emulates.
const EMULATED: [&str; 5] = ["e1000", "e1000e", "8139cp", "8139too", "ne2k-pci"];

pub(super) fn collect(g: &mut Gather<'_>) {
    for (number, name) in g.list("network_card", CARDS).iter().enumerate() {
        let path = format!("{CARDS}/{}/device/uevent", lossy(name));
        // Interfaces without hardware do not have this file.
        let Ok(text) = g.host.read_text(std::path::Path::new(&path)) else {
            continue;
        };
        let driver = text.lines().find_map(|line| line.strip_prefix("DRIVER="));
        let Some(driver) = driver else { continue };
        let emulated = EMULATED.contains(&driver.trim());
        let properties = [
            ("emulated", emulated.into()),
            ("driver", driver.trim().into()),
        ];
        let which = (number + 1).to_string();
        note(
            g,
            "network_card",
            &which,
            &FactPlace::from(path.as_str()),
            &properties,
        );
    }
}
