//! Finds the layer between a file system and its drive that drops TRIM requests, from `discard_max_bytes` of each layer
//! (sysfs-block).

use crate::block::Device;
use assay_host::{Host, HostError};

/// Maximum number of layers. A deeper stack is treated as a cycle.
const DEEPEST: usize = 16;

/// A layer that drops TRIM requests above a drive that supports TRIM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Description of the layer for users, such as `dm-crypt (vault)`, `md0` or `the USB bridge of sdb`.
    pub(crate) by: String,
    /// Kind of the layer: `crypt`, `lvm`, `md`, `usb` or `other`.
    pub(crate) kind: &'static str,
    /// Name that command line tools use for the layer. For a device-mapper device this is the mapped name.
    pub(crate) layer: String,
    /// Name of the drive below the layer.
    pub(crate) disk: String,
}

/// Returns the lowest layer under a device that drops TRIM. Returns `None` if TRIM reaches the drive, if no drive
/// supports it, or if the kernel does not report this.
///
/// # Errors
/// A layer cannot be read.
pub(crate) fn dropped(host: &dyn Host, top: &Device) -> Result<Option<Dropped>, HostError> {
    below(host, top, 0)
}

fn below(host: &dyn Host, device: &Device, depth: usize) -> Result<Option<Dropped>, HostError> {
    if depth > DEEPEST {
        return Ok(None);
    }
    // A partition uses the queue of its disk.
    let device = device.disk(host)?.unwrap_or_else(|| device.clone());
    let slaves = device.slaves(host)?;
    for slave in &slaves {
        if let Some(lower) = below(host, slave, depth + 1)? {
            return Ok(Some(lower));
        }
    }
    if read_number(host, &device, "queue/discard_max_bytes")? != Some(0) {
        return Ok(None);
    }
    if slaves.is_empty() {
        // A USB bridge may hide the TRIM of its drive; the drive itself cannot be asked.
        let turns = read_number(host, &device, "queue/rotational")?;
        let usb = device.transport() == Some("usb") && turns == Some(0);
        return Ok(usb.then(|| Dropped {
            by: format!("the USB bridge of {}", device.name),
            kind: "usb",
            layer: device.name.clone(),
            disk: device.name.clone(),
        }));
    }
    for slave in slaves {
        let disk = slave.disk(host)?.unwrap_or(slave);
        let most = read_number(host, &disk, "queue/discard_max_bytes")?;
        if most.is_some_and(|most| most > 0) {
            return describe(host, &device, disk.name).map(Some);
        }
    }
    Ok(None)
}

fn describe(host: &dyn Host, device: &Device, disk: String) -> Result<Dropped, HostError> {
    let name = read(host, device, "dm/name")?.unwrap_or_default();
    let uuid = read(host, device, "dm/uuid")?.unwrap_or_default();
    let (kind, by) = match crate::dm::kind(&uuid) {
        _ if device.name.starts_with("md") => ("md", device.name.clone()),
        "crypt" => ("crypt", format!("dm-crypt ({name})")),
        "lvm" => ("lvm", format!("LVM ({name})")),
        _ => ("other", device.name.clone()),
    };
    let layer = if name.is_empty() {
        device.name.clone()
    } else {
        name
    };
    Ok(Dropped {
        by,
        kind,
        layer,
        disk,
    })
}

/// Reads a file in the directory of a device; `None` if the file does not exist.
pub(crate) fn read(
    host: &dyn Host,
    device: &Device,
    file: &str,
) -> Result<Option<String>, HostError> {
    match host.read_text(&device.dir.join(file)) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_number(host: &dyn Host, device: &Device, file: &str) -> Result<Option<u64>, HostError> {
    Ok(read(host, device, file)?.and_then(|text| text.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;
    use std::ffi::OsStr;

    /// Builds a stack of devices, beginning with the top. A device is (name, `discard_max_bytes`, UUID of device
    /// mapper).
    fn stack(layers: &[(&str, &str, &str)]) -> Recorded {
        let mut host = Recorded::new();
        for (at, (name, most, uuid)) in layers.iter().enumerate() {
            let dir = match layers.get(at + 1) {
                Some(_) => format!("/sys/devices/virtual/block/{name}"),
                None => format!("/sys/devices/pci0000:00/usb1/block/{name}"),
            };
            host = host
                .linked(&format!("/sys/class/block/{name}"), &dir)
                .file(&format!("{dir}/dev"), format!("25{at}:0\n"))
                .file(
                    &format!("{dir}/queue/discard_max_bytes"),
                    format!("{most}\n"),
                )
                .file(&format!("{dir}/queue/rotational"), "0\n")
                .file(&format!("{dir}/dm/name"), "vault\n")
                .file(&format!("{dir}/dm/uuid"), format!("{uuid}\n"));
            if let Some((below, ..)) = layers.get(at + 1) {
                let real = match layers.get(at + 2) {
                    Some(_) => format!("/sys/devices/virtual/block/{below}"),
                    None => format!("/sys/devices/pci0000:00/usb1/block/{below}"),
                };
                host = host.linked(&format!("{dir}/slaves/{below}"), &real);
            }
        }
        host
    }

    fn of(layers: &[(&str, &str, &str)]) -> Option<(String, String)> {
        let host = stack(layers);
        let top = Device::of_name(&host, OsStr::new(layers[0].0)).unwrap();
        dropped(&host, &top)
            .unwrap()
            .map(|found| (found.by, found.disk))
    }

    #[test]
    fn the_lowest_layer_that_drops_it() {
        let pair = |by: &str, disk: &str| Some((by.to_owned(), disk.to_owned()));
        let disk = ("nvme0n1", "2199023255040", "");
        let crypt = ("dm-0", "0", "CRYPT-LUKS2-");
        assert_eq!(of(&[crypt, disk]), pair("dm-crypt (vault)", "nvme0n1"));
        let lvm = ("dm-1", "0", "LVM-");
        assert_eq!(of(&[lvm, crypt, disk]), pair("dm-crypt (vault)", "nvme0n1"));
        assert_eq!(of(&[("md0", "0", ""), disk]), pair("md0", "nvme0n1"));
        assert_eq!(of(&[("dm-0", "2199023255040", "CRYPT-LUKS2-"), disk]), None);
        // No drive below supports TRIM.
        let bridge = pair("the USB bridge of sda", "sda");
        assert_eq!(of(&[crypt, ("sda", "0", "")]), bridge);
    }
}
