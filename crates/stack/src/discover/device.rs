//! Block devices: their kind, their settings and the devices below them.

use super::{Finder, shorten_size, yes_or_no};
use assay_facts::block::Device;
use assay_model::Bytes;
use assay_model::stack::{Layer, LayerKind};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Name prefixes of devices whose data is on another machine.
const REMOTE: [&str; 4] = ["nbd", "rbd", "drbd", "etherd"];

impl Finder<'_> {
    /// Adds a block device and all layers below it.
    pub(super) fn device(&mut self, device: &Device) -> usize {
        let name = device.name.as_str();
        let starts = |prefix: &str| {
            let rest = name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let partition = device.is_partition(self.host).unwrap_or(false);
        let kind = match () {
            () if partition => LayerKind::Partition,
            () if name.starts_with("dm-") => self.mapped_kind(device),
            () if starts("md") => LayerKind::Md,
            () if starts("loop") => LayerKind::Loop,
            () if starts("zd") => LayerKind::Zvol,
            () if REMOTE.iter().any(|prefix| starts(prefix)) => LayerKind::Network,
            () => LayerKind::Disk,
        };
        let mut layer = Layer::new(kind, name);
        layer.place = Some(Path::new("/dev").join(name.replace('!', "/")));
        if let Ok(size) = device.size(self.host) {
            let size = Bytes(size).short();
            layer.settings.insert("size".to_owned(), size);
        }
        // A layer that does not support TRIM passes none to lower layers. Disks have another file
        // for it.
        let queue = device.dir.join("queue/discard_max_bytes");
        if kind != LayerKind::Disk && self.number(&queue) == Some(0) {
            let no = yes_or_no(false);
            layer.settings.insert("discard".to_owned(), no.to_owned());
        }
        let key = format!("device:{}", device.number);
        self.enter(key, layer, |finder, at| match kind {
            LayerKind::Partition => finder.partition(at, device),
            LayerKind::LogicalVolume => finder.logical_volume(at, device),
            LayerKind::Crypt => finder.crypt(at, device),
            LayerKind::Mapped => finder.mapped(at, device),
            LayerKind::Md => finder.md(at, device),
            LayerKind::Loop => finder.loop_device(at, device),
            LayerKind::Zvol => finder.zvol(at, device),
            LayerKind::Network => {
                finder.unknown(
                    at,
                    "what lies below is on another machine, or in another process",
                );
            }
            _ => finder.disk(at, device),
        })
    }

    fn partition(&mut self, at: usize, device: &Device) {
        if let Some(start) = self.number(&device.dir.join("start")) {
            self.set(at, "start", Bytes(start.saturating_mul(512)).short());
        }
        // Offset in bytes between the start of the device and a boundary of its physical blocks
        // (sysfs-block).
        if let Some(off) = self.number(&device.dir.join("alignment_offset")) {
            self.set(at, "alignment_offset", off.to_string());
        }
        match device.disk(self.host) {
            Ok(Some(disk)) => {
                let below = self.device(&disk);
                self.stand(at, below);
            }
            // A partition that device mapper made.
            Ok(None) => self.slaves(at, device),
            Err(error) => self.unknown(at, format!("the disk it lies on: {error}")),
        }
    }

    /// Adds the devices below a device, which sysfs lists as its slaves.
    pub(super) fn slaves(&mut self, at: usize, device: &Device) {
        match device.slaves(self.host) {
            Ok(slaves) => {
                if slaves.is_empty() {
                    self.unknown(at, "what lies below: the kernel names no device");
                }
                for slave in slaves {
                    let below = self.device(&slave);
                    self.stand(at, below);
                }
            }
            Err(error) => self.unknown(at, format!("what lies below: {error}")),
        }
    }

    fn mapped_kind(&self, device: &Device) -> LayerKind {
        let uuid = self.line(&device.dir.join("dm/uuid")).unwrap_or_default();
        match assay_facts::dm_kind(&uuid) {
            "lvm" => LayerKind::LogicalVolume,
            "crypt" => LayerKind::Crypt,
            "partition" => LayerKind::Partition,
            _ => LayerKind::Mapped,
        }
    }

    /// Sets the device-mapper name of a layer, and parses its table. Returns the target type and its parameters.
    pub(super) fn mapper(&mut self, at: usize, device: &Device) -> Option<(String, Vec<String>)> {
        let name = self.line(&device.dir.join("dm/name"))?;
        self.stack.layers[at].name.clone_from(&name);
        // Names are escaped in /dev (`\x2f`), so this path may not exist.
        let place = Path::new("/dev/mapper").join(&name);
        if self.host.exists(&place).unwrap_or(false) {
            self.stack.layers[at].place = Some(place);
        }
        let argv = ["dmsetup", "table", "--"].map(OsStr::new);
        let argv: Vec<&OsStr> = argv.into_iter().chain([OsStr::new(&name)]).collect();
        match self.ask(&argv) {
            Ok(output) => {
                let text = output.text();
                let line = text.lines().next().unwrap_or_default();
                // START LENGTH TARGET PARAMETERS…
                let words = line.split_whitespace().skip(2).map(str::to_owned);
                Some((name, words.collect()))
            }
            Err(reason) => {
                self.unknown(at, format!("its settings: {reason}"));
                Some((name, Vec::new()))
            }
        }
    }

    fn mapped(&mut self, at: usize, device: &Device) {
        let table = self.mapper(at, device);
        if let Some(target) = table.as_ref().and_then(|(_, words)| words.first()) {
            self.set(at, "target", target.clone());
        }
        self.slaves(at, device);
    }

    fn md(&mut self, at: usize, device: &Device) {
        let dir = device.dir.join("md");
        for (file, key) in [
            ("level", "level"),
            ("raid_disks", "raid_disks"),
            ("bitmap/location", "bitmap"),
            ("consistency_policy", "consistency_policy"),
            ("sync_action", "sync_action"),
            ("metadata_version", "metadata"),
        ] {
            if let Some(value) = self.line(&dir.join(file)) {
                self.set(at, key, value);
            }
        }
        for (file, key) in [
            ("chunk_size", "chunk_size"),
            ("stripe_cache_size", "stripe_cache_size"),
            ("degraded", "degraded"),
        ] {
            match self.number(&dir.join(file)) {
                // A mirror has no chunks, and is usually not degraded.
                Some(0) | None => {}
                Some(number) if key == "chunk_size" => self.set(at, key, Bytes(number).short()),
                Some(number) => self.set(at, key, number.to_string()),
            }
        }
        self.slaves(at, device);
    }

    fn loop_device(&mut self, at: usize, device: &Device) {
        if let Some(direct) = self.number(&device.dir.join("loop/dio")) {
            self.set(at, "direct_io", yes_or_no(direct == 1));
        }
        if let Some(size) = self.line(&device.dir.join("queue/logical_block_size")) {
            self.set(at, "logical_block_size", shorten_size(&size));
        }
        match device.backing_file(self.host) {
            Ok(Some(file)) => self.stand_on_node(at, &strip_deleted_mark(file)),
            Ok(None) => self.unknown(at, "what lies below: it is not set up"),
            Err(error) => self.unknown(at, format!("what lies below: {error}")),
        }
    }

    /// Reads an integer from a file.
    pub(super) fn number(&self, path: &Path) -> Option<u64> {
        self.line(path)?.parse().ok()
    }
}

/// Removes the mark ` (deleted)` that the kernel appends to the name of a deleted file.
fn strip_deleted_mark(file: PathBuf) -> PathBuf {
    match file
        .to_str()
        .and_then(|text| text.strip_suffix(" (deleted)"))
    {
        Some(name) => name.into(),
        None => file,
    }
}
