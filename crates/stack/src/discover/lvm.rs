//! LVM: logical volumes, their parts, and the volume group below them.

use super::{Finder, shorten_size};
use assay_facts::block::Device;
use assay_facts::lvm::{self, Row};
use assay_model::stack::{Layer, LayerKind};

/// Suffixes of the internal device-mapper devices between a volume and its parts.
const INNER: [&str; 3] = ["-tpool", "-real", "-cow"];

/// Fields of a segment that affect performance.
const FIELDS: [&str; 7] = [
    "segtype",
    "stripes",
    "stripe_size",
    "chunk_size",
    "cache_mode",
    "origin",
    "data_percent",
];

impl Finder<'_> {
    pub(super) fn logical_volume(&mut self, at: usize, device: &Device) {
        let dm_name = self.line(&device.dir.join("dm/name")).unwrap_or_default();
        let Some((vg, mut lv)) = lvm::names(&dm_name) else {
            self.unknown(at, "its name: device mapper does not say");
            return self.slaves(at, device);
        };
        for inner in INNER {
            if let Some(name) = lv.strip_suffix(inner) {
                lv = name.to_owned();
            }
        }
        self.stack.layers[at].name = format!("{vg}/{lv}");
        let place = std::path::Path::new("/dev/mapper").join(&dm_name);
        self.stack.layers[at].place = Some(place);
        match self.reports() {
            Ok(rows) => self.segments(at, &rows, &vg, &lv),
            Err(reason) => self.unknown(at, format!("its settings: {reason}")),
        }
        let slaves = match device.slaves(self.host) {
            Ok(slaves) => slaves,
            Err(error) => return self.unknown(at, format!("what lies below: {error}")),
        };
        if slaves.is_empty() {
            self.unknown(at, "what lies below: the kernel names no device");
        }
        // Volumes of the same group are parts of this one; other devices contain the group.
        for slave in slaves {
            let name = self.line(&slave.dir.join("dm/name"));
            let uuid = self.line(&slave.dir.join("dm/uuid"));
            let lvm = uuid.is_some_and(|uuid| assay_facts::dm_kind(&uuid) == "lvm");
            let part = name.and_then(|name| lvm::names(&name));
            let below = match part {
                Some((group, _)) if lvm && group == vg => self.device(&slave),
                _ => self.volume_group(&vg, &slave),
            };
            self.stand(at, below);
        }
    }

    fn segments(&mut self, at: usize, rows: &[Row], vg: &str, lv: &str) {
        let get = |row: &Row, key: &str| row.get(key).cloned().unwrap_or_default();
        // Hidden volumes have brackets around their names.
        let mine: Vec<&Row> = rows
            .iter()
            .filter(|row| {
                let name = get(row, "lv_name");
                get(row, "vg_name") == vg && name.trim_matches(['[', ']']) == lv
            })
            .collect();
        let Some(first) = mine.first() else {
            return self.unknown(at, "its settings: lvs does not list it");
        };
        for field in FIELDS {
            let value = match field {
                "stripe_size" | "chunk_size" => shorten_size(&get(first, field)),
                _ => get(first, field),
            };
            let idle = value.is_empty()
                || value == "0"
                || (field == "stripes" && value == "1")
                || value == "0.00";
            if !idle {
                self.set(at, field, value);
            }
        }
        if mine.len() > 1 {
            self.set(at, "segments", mine.len().to_string());
        }
    }

    /// Lists all logical volumes of the machine. They are read once.
    fn reports(&mut self) -> Result<Vec<Row>, String> {
        if self.lvm.is_none() {
            let rows = self.ask_text(&lvm::LVS).and_then(|text| lvm::rows(&text));
            self.lvm = Some(rows);
        }
        self.lvm
            .clone()
            .unwrap_or_else(|| Err("not asked".to_owned()))
    }

    /// Adds the volume group as a layer, above the devices that contain the volumes found until now.
    fn volume_group(&mut self, vg: &str, device: &Device) -> usize {
        let layer = Layer::new(LayerKind::VolumeGroup, vg);
        let at = self.enter(format!("vg:{vg}"), layer, |finder, at| {
            let rows = finder.ask_text(&lvm::VGS).and_then(|text| lvm::rows(&text));
            let found = rows.map(|rows| {
                let mut rows = rows.into_iter();
                rows.find(|row| row.get("vg_name").is_some_and(|name| name == vg))
            });
            match found {
                Ok(Some(row)) => {
                    for (field, key) in [
                        ("vg_extent_size", "extent_size"),
                        ("vg_size", "size"),
                        ("vg_free", "free"),
                        ("pv_count", "pvs"),
                    ] {
                        if let Some(value) = row.get(field) {
                            finder.set(at, key, shorten_size(value));
                        }
                    }
                }
                Ok(None) => finder.unknown(at, "its settings: vgs does not list it"),
                Err(reason) => finder.unknown(at, format!("its settings: {reason}")),
            }
        });
        self.above.push(at);
        let below = self.device(device);
        self.above.pop();
        self.stand(at, below);
        at
    }
}
