//! Parses QEMU's block graph on the command line: a chain of nodes from the format at the top to the file at the
//! bottom.

use super::options::{Map, is_on};
use crate::limits::Limits;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the data of a disk are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A file or block device. A relative path is relative to QEMU's working directory.
    File(PathBuf),
    /// Another protocol or driver, such as `nbd`, `rbd` or `null-co`. Its address is dropped.
    Elsewhere(String),
    /// A drive without a medium.
    Nothing,
}

/// The layers between a virtual disk and its storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// Drivers from the top, such as `throttle` and `qcow2`. `probed` stands for a format that QEMU detects.
    pub(super) formats: Vec<String>,
    pub(super) storage: Storage,
    /// Whether the node that opens the file uses O_DIRECT (`direct`), and whether it ignores flushes (`no_flush`).
    pub(super) direct: bool,
    pub(super) no_flush: bool,
    /// I/O backend with which QEMU opens the file: `threads`, `native` or `io_uring`.
    pub(super) aio: String,
    /// Whether all layers pass discard requests to the storage.
    pub(super) discard: bool,
    pub(super) detect_zeroes: Option<String>,
    pub(super) read_only: bool,
    /// I/O limits of the drive itself. Limits of its throttle group are in the group.
    pub(super) limits: Limits,
    /// Name of the throttle group that limits the drive.
    pub(super) group: Option<String>,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            formats: Vec::new(),
            storage: Storage::Nothing,
            direct: false,
            no_flush: false,
            aio: "threads".to_owned(),
            discard: true,
            detect_zeroes: None,
            read_only: false,
            limits: Limits::default(),
            group: None,
        }
    }
}

/// Drivers that open a file or a device of this machine.
const FILES: [&str; 5] = [
    "file",
    "host_device",
    "host_cdrom",
    "io_uring",
    "virtio-blk-vfio-pci",
];

/// Maximum number of layers; a longer chain is treated as a cycle.
const DEPTH: usize = 16;

/// Nodes of `-blockdev`, by name.
pub(super) type Nodes = BTreeMap<String, Map>;

impl Chain {
    /// Returns the chain from a named node down to its file.
    pub(super) fn of_node(nodes: &Nodes, name: &str) -> Option<Self> {
        let mut chain = Self::default();
        chain.node(nodes, nodes.get(name)?, "", 0);
        Some(chain)
    }

    fn node(&mut self, nodes: &Nodes, map: &Map, prefix: &str, depth: usize) {
        let get = |key: &str| map.get(&format!("{prefix}{key}")).map(String::as_str);
        let flag = |key: &str| get(key).map(is_on);
        let driver = get("driver").unwrap_or("probed");
        // An inner node inherits its cache flags from the outer node (block.c,
        // bdrv_inherited_options); a named node has its own.
        if prefix.is_empty() {
            (self.direct, self.no_flush) = (false, false);
        }
        self.direct = flag("cache.direct").unwrap_or(self.direct);
        self.no_flush = flag("cache.no-flush").unwrap_or(self.no_flush);
        // By default a named node ignores discards and an inner node passes them on.
        let passes =
            get("discard").map_or(!prefix.is_empty(), |value| matches!(value, "unmap" | "on"));
        self.discard &= passes;
        if let Some(zeroes) = get("detect-zeroes") {
            self.detect_zeroes = Some(zeroes.to_owned());
        }
        self.read_only |= flag("read-only").unwrap_or(false);
        if let Some(group) = get("throttle-group").filter(|_| driver == "throttle") {
            self.group = Some(group.to_owned());
        }
        if let Some(aio) = get("aio") {
            aio.clone_into(&mut self.aio);
        }
        if let Some(file) = get("filename").filter(|_| FILES.contains(&driver)) {
            self.storage = Storage::File(file.into());
            return;
        }
        self.formats.push(driver.to_owned());
        for child in ["file", "image", "test"] {
            if depth >= DEPTH {
                break;
            }
            let inner = format!("{prefix}{child}.");
            if let Some(next) = get(child).and_then(|name| nodes.get(name)) {
                return self.node(nodes, next, "", depth + 1);
            }
            if map.keys().any(|key| key.starts_with(&inner)) {
                return self.node(nodes, map, &inner, depth + 1);
            }
        }
        // There is no lower layer: the driver itself stores the data.
        self.formats.pop();
        self.storage = Storage::Elsewhere(driver.to_owned());
    }

    /// Parses the argument of `-drive`, in which `cache=` and `file=` are abbreviations of several settings (qemu(1)).
    pub(super) fn of_drive(map: &Map) -> Self {
        let mut map = map.clone();
        let mut chain = Self::default();
        if let Some(format) = map.remove("format") {
            map.entry("driver".to_owned()).or_insert(format);
        }
        if let Some(mode) = map.get("cache").cloned() {
            let (direct, no_flush) = match mode.as_str() {
                "none" | "off" | "directsync" => ("on", "off"),
                "unsafe" => ("off", "on"),
                _ => ("off", "off"),
            };
            for (key, value) in [("cache.direct", direct), ("cache.no-flush", no_flush)] {
                map.entry(key.to_owned())
                    .or_insert_with(|| value.to_owned());
            }
        }
        for (short, long) in [("readonly", "read-only")] {
            if let Some(value) = map.remove(short) {
                map.insert(long.to_owned(), value);
            }
        }
        chain.limits = Limits::of_qemu(&map);
        match map.remove("file") {
            Some(file) => {
                if let Some(json) = file.strip_prefix("json:") {
                    for (key, value) in super::options::settings(json, "") {
                        map.entry(format!("file.{key}")).or_insert(value);
                    }
                } else {
                    map.insert("file.driver".to_owned(), protocol(&file).to_owned());
                    map.insert("file.filename".to_owned(), local(&file).to_owned());
                }
            }
            None if !map.keys().any(|key| key.starts_with("file.")) => return chain,
            None => {
                map.entry("file.driver".to_owned())
                    .or_insert_with(|| "file".to_owned());
            }
        }
        chain.node(&Nodes::new(), &map, "", 0);
        chain
    }
}

/// Returns the protocol of a file name. QEMU reads the text before a colon as a protocol, unless a slash precedes the
/// colon (block.c, path_has_protocol).
#[must_use]
pub fn protocol(file: &str) -> &str {
    let end = file.find(['/', ':']).unwrap_or(file.len());
    match file[end..].starts_with(':') {
        true => &file[..end],
        false => "file",
    }
}

fn local(file: &str) -> &str {
    file.strip_prefix("file:").unwrap_or(file)
}
