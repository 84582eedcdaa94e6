//! Checks whether the connection between the machine and the disk, SATA or PCI Express, limited the rate. Limits set by
//! software are in `rate_limit`.

use super::LimitEvidence;
use assay_model::Facts;
use assay_model::result::{Limit, LimitKind};
use assay_model::units::mb_per_s;

/// Fraction of the payload rate from which a SATA link counts as full. Frames take about 8 %.
const SATA: f64 = 0.85;
/// Fraction of the payload rate from which a PCI Express link counts as full. Packet headers take about 16 % with the
/// usual payload of 128 bytes.
const PCIE: f64 = 0.78;

struct DiskLink {
    /// Payload bytes per second in each direction.
    rate: f64,
    /// Fraction of the rate from which the connection counts as full.
    usable: f64,
    name: String,
}

pub(super) fn check_link(e: &LimitEvidence) -> Option<Limit> {
    let facts = e.facts?;
    // Data may be on any of several disks, so their links do not limit the sum.
    let [disk] = &e.disks[..] else { return None };
    // SATA is half duplex: one direction at a time.
    let both = e.read_per_s + e.write_per_s;
    let larger = e.read_per_s.max(e.write_per_s);
    let links = [
        (parse_sata_link(facts, disk), both),
        (parse_pcie_link(facts, disk), larger),
    ];
    links.into_iter().find_map(|(link, rate)| {
        let link = link?;
        (rate >= link.rate * link.usable).then(|| Limit {
            what: LimitKind::Link,
            evidence: format!(
                "{} MB/s is {:.0} % of what the link can carry ({disk}: {}, {} MB/s before headers)",
                mb_per_s(rate),
                rate / link.rate * 100.0,
                link.name,
                mb_per_s(link.rate)
            ),
        })
    })
}

/// Parses the line rate of a SATA link, such as `6.0 Gbps`. 8b/10b coding leaves 80 % of it (Serial ATA revision 3).
fn parse_sata_link(facts: &Facts, disk: &str) -> Option<DiskLink> {
    let speed = facts.str(&format!("disk.{disk}.sata_speed"))?;
    let gigabits: f64 = speed.strip_suffix("Gbps")?.trim().parse().ok()?;
    Some(DiskLink {
        rate: gigabits * 1e9 / 10.0,
        usable: SATA,
        name: format!("SATA {speed}"),
    })
}

/// Parses the speed (such as `8.0 GT/s PCIe`) and the lanes of a PCI Express link. Up to 5 GT/s the link uses 8b/10b
/// coding, from 8 GT/s 128b/130b coding (PCI Express Base Specification 3.0), and from 64 GT/s flits with 242 of 256
/// bytes of payload (6.0).
fn parse_pcie_link(facts: &Facts, disk: &str) -> Option<DiskLink> {
    let speed = facts.str(&format!("disk.{disk}.pcie_speed"))?;
    let lanes = facts.get(&format!("disk.{disk}.pcie_width"))?;
    let lanes = lanes.as_f64().or_else(|| lanes.as_str()?.parse().ok())?;
    let transfers: f64 = speed.split_once(" GT/s")?.0.trim().parse().ok()?;
    let coding = match transfers {
        ..6.0 => 0.8,
        ..60.0 => 128.0 / 130.0,
        _ => 242.0 / 256.0,
    };
    (transfers > 0.0 && lanes > 0.0).then(|| DiskLink {
        rate: transfers * 1e9 / 8.0 * coding * lanes,
        usable: PCIE,
        name: format!("PCIe {transfers} GT/s × {lanes}"),
    })
}
