//! I/O limits of a virtual disk in QEMU, from throttling options on the command line, `<iotune>` of libvirt, or
//! `iops_rd=` of Proxmox VE.

use assay_model::Bytes;
use std::collections::BTreeMap;
use std::fmt;

/// Names of one limit: in QMP (`block_set_io_throttle`) and qm.conf(5), in libvirt's `<iotune>`, and in a throttle
/// group (qapi/block-core.json, ThrottleLimits). `of` describes the limited quantity.
struct Name {
    qmp: &'static str,
    libvirt: &'static str,
    group: &'static str,
    of: &'static str,
}

const fn name(
    qmp: &'static str,
    libvirt: &'static str,
    group: &'static str,
    of: &'static str,
) -> Name {
    Name {
        qmp,
        libvirt,
        group,
        of,
    }
}

const NAMES: [Name; 6] = [
    name("bps", "total_bytes_sec", "bps-total", "in all"),
    name("bps_rd", "read_bytes_sec", "bps-read", "read"),
    name("bps_wr", "write_bytes_sec", "bps-write", "written"),
    name("iops", "total_iops_sec", "iops-total", "in all"),
    name("iops_rd", "read_iops_sec", "iops-read", "of reads"),
    name("iops_wr", "write_iops_sec", "iops-write", "of writes"),
];

/// Throughput limits of a disk in bytes or operations per second, without burst limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits(BTreeMap<&'static str, u64>);

impl Limits {
    /// Returns whether the disk has no limit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses the limits in the settings of a drive (`throttling.iops-total`, or `iops` before QEMU 1.7) or of a
    /// throttle group (`x-iops-total` or `limits.iops-total`).
    pub(crate) fn of_qemu(map: &BTreeMap<String, String>) -> Self {
        Self::read(|name| {
            let keys = [
                format!("throttling.{}", name.group),
                format!("limits.{}", name.group),
                format!("x-{}", name.group),
                name.qmp.to_owned(),
            ];
            let value = keys.iter().find_map(|key| map.get(key))?;
            value.parse().ok()
        })
    }

    /// Reads the limits in `<iotune>`. `text` returns the text of an element by its name.
    pub(crate) fn of_libvirt(text: impl Fn(&str) -> Option<String>) -> Self {
        Self::read(|name| text(name.libvirt)?.trim().parse().ok())
    }

    /// Parses the limits in the options of a drive in qm.conf(5). `mbps=` is in MiB/s (PVE/QemuServer.pm multiplies by
    /// 1024 × 1024).
    pub(crate) fn of_proxmox(options: &BTreeMap<&str, &str>) -> Self {
        Self::read(|name| {
            let plain = options.get(name.qmp).and_then(|value| value.parse().ok());
            plain.or_else(|| {
                let key = format!("m{}", name.qmp);
                let mib: f64 = options.get(key.as_str())?.parse().ok()?;
                Some((mib * 1_048_576.0) as u64)
            })
        })
    }

    fn read(value: impl Fn(&Name) -> Option<u64>) -> Self {
        let limits = NAMES.iter().filter_map(|name| {
            let value = value(name).filter(|value| *value > 0)?;
            Some((name.qmp, value))
        });
        Self(limits.collect())
    }

    /// Formats the limits as elements of `<iotune>`.
    pub(crate) fn to_libvirt(&self) -> String {
        let elements = NAMES.iter().filter_map(|name| {
            let value = self.0.get(name.qmp)?;
            Some(format!("<{0}>{value}</{0}>", name.libvirt))
        });
        elements.collect()
    }

    /// Inserts the limits as text under [`THROTTLED`] into the settings of a disk, unless there are no limits.
    pub fn tell(&self, settings: &mut BTreeMap<String, String>) {
        if !self.is_empty() {
            settings.insert(THROTTLED.to_owned(), self.to_string());
        }
    }
}

/// Key of the limits in the settings of a disk. The value is the limits as text, or `yes` if the limits are set
/// elsewhere and therefore unknown.
pub const THROTTLED: &str = "throttled";

/// Returns whether a setting of a drive or object is an I/O limit.
pub(crate) fn is_limit(key: &str) -> bool {
    ["throttling.", "limits.", "x-bps", "x-iops", "bps", "iops"]
        .iter()
        .any(|start| key.starts_with(start))
}

/// Formats the limits as `100 MiB/s read, 500 IOPS in all`.
impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for name in &NAMES {
            let Some(value) = self.0.get(name.qmp) else {
                continue;
            };
            f.write_str(before)?;
            match name.qmp.starts_with("bps") {
                true => write!(f, "{}/s {}", Bytes(*value), name.of)?,
                false => write!(f, "{value} IOPS {}", name.of)?,
            }
            before = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_limit_in_every_language() {
        let told = "100 MiB/s read, 500 IOPS in all";
        for pairs in [
            [
                ("throttling.bps-read", "104857600"),
                ("throttling.iops-total", "500"),
            ],
            [("bps_rd", "104857600"), ("iops", "500")],
            [("x-bps-read", "104857600"), ("x-iops-total", "500")],
            [
                ("limits.bps-read", "104857600"),
                ("limits.iops-total", "500"),
            ],
        ] {
            let map = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(Limits::of_qemu(&map.into()).to_string(), told);
        }
        let options = [("mbps_rd", "100"), ("iops", "500"), ("iops_max", "9")];
        let limits = Limits::of_proxmox(&options.into());
        assert_eq!(limits.to_string(), told);
        let xml = limits.to_libvirt();
        let again = Limits::of_libvirt(|name| {
            let (_, rest) = xml.split_once(&format!("<{name}>"))?;
            Some(rest.split_once('<')?.0.to_owned())
        });
        assert_eq!(again, limits);
    }

    #[test]
    fn nothing_is_no_limit() {
        let options = [("mbps_rd", "0"), ("iops", "many"), ("iops_rd", "-1")];
        assert!(Limits::of_proxmox(&options.into()).is_empty());
    }
}
