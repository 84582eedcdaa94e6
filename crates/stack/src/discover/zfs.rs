//! ZFS: datasets and volumes, the pool, its top-level vdevs and their devices.

use super::{Finder, shorten_size};
use assay_facts::block::Device;
use assay_facts::zpool::{self, Ashifts, Vdev};
use assay_host::{Limits, kstat};
use assay_model::stack::{Layer, LayerKind};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Properties of datasets that affect performance. Each has the value that costs nothing, which is not shown.
const PROPERTIES: [(&str, &str); 20] = [
    ("recordsize", ""),
    ("volblocksize", ""),
    ("volsize", ""),
    ("compression", ""),
    ("compressratio", "1.00"),
    ("sync", ""),
    ("logbias", "latency"),
    ("atime", ""),
    ("relatime", ""),
    ("primarycache", "all"),
    ("secondarycache", "all"),
    ("dedup", "off"),
    ("checksum", "on"),
    ("copies", "1"),
    ("encryption", "off"),
    ("special_small_blocks", "0"),
    ("redundant_metadata", "all"),
    ("direct", "standard"),
    ("origin", "-"),
    ("refreservation", ""),
];

/// Properties of pools that affect performance. Each has the value that costs nothing, which is not shown.
const POOL: [(&str, &str); 8] = [
    ("health", ""),
    ("size", ""),
    ("capacity", ""),
    ("fragmentation", ""),
    ("autotrim", ""),
    ("dedupratio", "1.00"),
    ("failmode", "wait"),
    ("checkpoint", "-"),
];

/// Limits of zdb, which takes longer than other tools because it reads the pool's configuration from the devices.
const ZDB: Limits = Limits {
    timeout: Duration::from_secs(60),
};

const SIZES: [&str; 6] = [
    "recordsize",
    "volblocksize",
    "volsize",
    "special_small_blocks",
    "refreservation",
    "size",
];

impl Finder<'_> {
    /// Adds a ZFS file system, mounted or not.
    pub(super) fn dataset(&mut self, name: &str, mounted: Option<&Path>) -> usize {
        let mut layer = Layer::new(LayerKind::Dataset, name);
        layer.place = mounted.map(Path::to_owned);
        let name = name.to_owned();
        self.enter(format!("zfs:{name}"), layer, |finder, at| {
            finder.properties(at, &name);
            finder.stand_on_pool(at, &name);
        })
    }

    /// Adds a volume by its device, which is identified only by the links in /dev/zvol.
    pub(super) fn zvol(&mut self, at: usize, device: &Device) {
        let listed = self.ask_text(&["zfs", "list", "-H", "-o", "name", "-t", "volume"]);
        let names = match listed {
            Ok(names) => names,
            Err(reason) => return self.unknown(at, format!("which volume it is: {reason}")),
        };
        let mine = names.lines().find(|name| {
            let link = Path::new("/dev/zvol").join(name);
            let stat = self.host.stat(&link);
            stat.is_ok_and(|stat| stat.rdev == device.number)
        });
        let Some(name) = mine.map(str::to_owned) else {
            return self.unknown(at, "which volume it is: no link in /dev/zvol leads to it");
        };
        let layer = &mut self.stack.layers[at];
        layer.name.clone_from(&name);
        layer.place = Some(Path::new("/dev/zvol").join(&name));
        layer.settings.remove("size");
        self.properties(at, &name);
        self.stand_on_pool(at, &name);
    }

    fn properties(&mut self, at: usize, name: &str) {
        let argv = ["zfs", "get", "-Hp", "-o", "property,value", "all", name];
        match self.ask_text(&argv) {
            Ok(text) => {
                let values = parse_two_columns(&text);
                self.take(at, &PROPERTIES, &values);
                // A volume without a full reservation is sparse (zfsprops(7)).
                let layer = &mut self.stack.layers[at];
                match layer.settings.remove("refreservation").as_deref() {
                    Some("0") if values.contains_key("volsize") => {
                        layer.settings.insert("sparse".to_owned(), "yes".to_owned());
                    }
                    _ => {}
                }
            }
            Err(reason) => self.unknown(at, format!("its properties: {reason}")),
        }
    }

    fn take(&mut self, at: usize, wanted: &[(&str, &str)], values: &BTreeMap<&str, &str>) {
        for (key, silent) in wanted {
            if let Some(value) = values.get(key).filter(|value| *value != silent) {
                let value = match SIZES.contains(key) {
                    true => shorten_size(value),
                    false => (*value).to_owned(),
                };
                self.set(at, key, value);
            }
        }
    }

    fn stand_on_pool(&mut self, at: usize, dataset: &str) {
        let pool = dataset.split(['/', '@']).next().unwrap_or(dataset);
        let layer = Layer::new(LayerKind::Pool, pool);
        let pool = pool.to_owned();
        let below = self.enter(format!("pool:{pool}"), layer, |finder, at| {
            finder.pool(at, &pool);
        });
        self.stand(at, below);
    }

    fn pool(&mut self, at: usize, pool: &str) {
        match self.ask_text(&["zpool", "get", "-Hp", "-o", "property,value", "all", pool]) {
            Ok(text) => self.take(at, &POOL, &parse_two_columns(&text)),
            Err(reason) => self.unknown(at, format!("its properties: {reason}")),
        }
        if let Some(version) = self.line(Path::new("/sys/module/zfs/version")) {
            self.set(at, "zfs", version);
        }
        self.arc(at);
        let status = match self.ask_text(&["zpool", "status", "-LP", pool]) {
            Ok(status) => status,
            Err(reason) => return self.unknown(at, format!("its devices: {reason}")),
        };
        let vdevs = zpool::vdevs(&status, pool);
        let (ashifts, reason) = match self.ashifts(pool, &vdevs) {
            Ok(ashifts) => (ashifts, None),
            Err(reason) => (Ashifts::default(), Some(reason)),
        };
        for vdev in vdevs {
            // A spare is unused until it replaces a device.
            if vdev.class != "spare" {
                let below = self.vdev(pool, &vdev, &ashifts, reason.as_deref());
                self.stand(at, below);
            }
        }
    }

    /// Adds the limit and the hit rate of the ZFS read cache (ARC) to a layer.
    fn arc(&mut self, at: usize) {
        let Ok(text) = self.host.read_text(Path::new(kstat::ARCSTATS)) else {
            return;
        };
        for (stat, key) in [("c_max", "arc_max"), ("size", "arc_size")] {
            if let Some(bytes) = kstat::find_counter(&text, stat) {
                let mib = bytes >> 20;
                self.set(at, key, format!("{mib}M"));
            }
        }
    }

    /// Returns the ashift of each top-level vdev. Since OpenZFS 2.2 this is a property. For older versions, and for
    /// vdevs without this property, it comes from the configuration that zdb prints.
    fn ashifts(&self, pool: &str, vdevs: &[Vdev]) -> Result<Ashifts, String> {
        let told = self.ask_text(&Ashifts::query(pool)).ok();
        let told = told.map(|text| Ashifts::of_properties(&text));
        let whole = |found: &Ashifts| found.is_whole(vdevs);
        let mut found = match told {
            Some(found) if whole(&found) => found,
            part => {
                // The cache file of all pools is read at once; a pool that is not in it is read from its devices.
                let cached = self.ask_text(&zpool::CACHED).ok();
                let cached =
                    cached.and_then(|text| zpool::find_cached(&text, pool).map(zpool::ashifts));
                match cached.filter(whole) {
                    Some(found) => found,
                    None => {
                        let argv = ["zdb", "-C", pool].map(OsStr::new);
                        let output = self.ask_within(&argv, ZDB);
                        let output = output.map(|output| zpool::ashifts(&output.text()));
                        // Only root may do so; a part of the result is better than none.
                        output.or_else(|why| part.ok_or(why))?
                    }
                }
            }
        };
        // The pool records links; `zpool status -L` prints their destinations.
        let real = found.by_path.iter().filter_map(|(path, ashift)| {
            let real = self.host.realpath(Path::new(path)).ok()?;
            Some((real.to_string_lossy().into_owned(), *ashift))
        });
        let real: Vec<(String, u32)> = real.collect();
        found.by_path.extend(real);
        Ok(found)
    }

    fn vdev(&mut self, pool: &str, vdev: &Vdev, ashifts: &Ashifts, reason: Option<&str>) -> usize {
        let single = vdev.kind == "disk";
        let name = match single {
            true => vdev.name.rsplit('/').next().unwrap_or(&vdev.name),
            false => &vdev.name,
        };
        let mut layer = Layer::new(LayerKind::Vdev, name);
        let mut set = |key: &str, value: String| layer.settings.insert(key.to_owned(), value);
        set("class", vdev.class.to_owned());
        set("kind", vdev.kind.clone());
        if !single {
            set("devices", vdev.leaves.len().to_string());
        }
        if vdev.state != "ONLINE" {
            set("state", vdev.state.clone());
        }
        let ashift = ashifts
            .of_group(&vdev.name)
            .filter(|_| !single)
            .or_else(|| ashifts.by_path.get(&vdev.name).copied());
        match ashift {
            Some(ashift) => drop(set("ashift", ashift.to_string())),
            // Caches are not part of the pool's configuration.
            None if vdev.class == "cache" => {}
            None => {
                let why = reason.unwrap_or("the pool's configuration does not say");
                layer.unknown.push(format!("its ashift: {why}"));
            }
        }
        let bad: Vec<&str> = vdev
            .leaves
            .iter()
            .filter(|(_, state)| state != "ONLINE" && state != "AVAIL")
            .map(|(_, state)| state.as_str())
            .collect();
        if !bad.is_empty() && !single {
            set("not_online", bad.join(" "));
        }
        let key = format!("vdev:{pool}:{}", vdev.name);
        self.enter(key, layer, |finder, at| {
            for (leaf, state) in &vdev.leaves {
                match leaf.starts_with('/') {
                    true => finder.stand_on_node(at, Path::new(leaf)),
                    false => finder.unknown(at, format!("the device {leaf}, which is {state}")),
                }
            }
        })
    }
}

/// Parses lines with two columns that are separated by a tab.
fn parse_two_columns(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .filter_map(|line| line.split_once('\t'))
        .collect()
}
