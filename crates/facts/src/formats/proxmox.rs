//! Parses Proxmox VE's `/etc/pve/qemu-server/VMID.conf` (qm.conf(5)) and `/etc/pve/storage.cfg` (pvesm(1)). The
//! settings of a running guest may differ, because changes are pending until its next start.

pub(crate) mod processor;

use crate::limits::{Limits, is_limit};
use crate::qemu::{Storage, VirtualDisk, cache_mode};
use assay_model::secrets::is_plain;
use std::collections::BTreeMap;

/// The configuration of a Proxmox guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Name of the guest, which need not be unique.
    pub name: Option<String>,
    /// Settings of the guest: `machine`, `cpu` and `scsihw`.
    pub settings: BTreeMap<String, String>,
    /// Disks of the guest with their storages.
    pub disks: Vec<VirtualDisk>,
    /// Key of the line that sets the processor: `args` if `args` overrides `cpu`.
    pub cpu_key: &'static str,
}

/// A storage of `storage.cfg`: its type and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxmoxStorage {
    kind: String,
    settings: BTreeMap<String, String>,
}

/// Parses all storages, by name. A section is a line `TYPE: NAME`, followed by indented lines `KEY VALUE`.
#[must_use]
pub fn stores(text: &str) -> BTreeMap<String, ProxmoxStorage> {
    let mut found: BTreeMap<String, ProxmoxStorage> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        let indented = line.starts_with(char::is_whitespace);
        match (indented, line.split_once(':')) {
            _ if line.trim().is_empty() || line.starts_with('#') => {}
            (true, _) => {
                let store = current.as_ref().and_then(|name| found.get_mut(name));
                let words = line.trim().split_once(char::is_whitespace);
                let (key, value) = words.unwrap_or((line.trim(), "1"));
                if let Some(store) = store {
                    let value = value.trim().to_owned();
                    store.settings.insert(key.to_owned(), value);
                }
            }
            (false, Some((kind, name))) => {
                let store = ProxmoxStorage {
                    kind: kind.to_owned(),
                    settings: BTreeMap::new(),
                };
                found.insert(name.trim().to_owned(), store);
                current = Some(name.trim().to_owned());
            }
            (false, None) => current = None,
        }
    }
    found
}

/// Parses the configuration of a guest. The sections of snapshots, which follow the configuration, are ignored.
#[must_use]
pub fn parse(text: &str, stores: &BTreeMap<String, ProxmoxStorage>) -> Config {
    let lines = text.lines().take_while(|line| !line.starts_with('['));
    let values: BTreeMap<&str, &str> = lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    let first = |key: &str| {
        let value = values.get(key)?;
        let word = value.split(',').next()?;
        Some(
            word.rsplit_once('=')
                .map_or(word, |(_, value)| value)
                .to_owned(),
        )
    };
    let mut config = Config {
        name: first("name"),
        ..Config::default()
    };
    // The defaults of qm.conf(5).
    processor::note(&mut config, &values);
    for (key, default) in [("machine", "pc"), ("scsihw", "lsi")] {
        let value = first(key).unwrap_or_else(|| default.to_owned());
        config.settings.insert(key.to_owned(), value);
    }
    if let Some(system) = first("ostype") {
        config.settings.insert("ostype".to_owned(), system);
    }
    let hardware = config.settings["scsihw"].clone();
    for (key, value) in &values {
        let Some(bus) = bus(key, &hardware) else {
            continue;
        };
        if let Some(disk) = disk(key, bus, value, &hardware, stores) {
            config.disks.push(disk);
        }
    }
    config
}

fn bus<'a>(key: &str, hardware: &'a str) -> Option<&'a str> {
    let number = key.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let kind = &key[..key.len() - number.len()];
    number.parse::<u8>().ok()?;
    match kind {
        "virtio" => Some("virtio-blk"),
        "sata" => Some("sata"),
        "ide" => Some("ide"),
        "scsi" if hardware.starts_with("virtio-scsi") => Some("virtio-scsi"),
        "scsi" => Some(hardware),
        _ => None,
    }
}

fn disk(
    id: &str,
    bus: &str,
    value: &str,
    hardware: &str,
    stores: &BTreeMap<String, ProxmoxStorage>,
) -> Option<VirtualDisk> {
    let mut parts = value.split(',');
    let volume = parts.next()?;
    let volume = volume.strip_prefix("file=").unwrap_or(volume);
    let options: BTreeMap<&str, &str> = parts
        .map(|part| part.split_once('=').unwrap_or((part, "1")))
        .collect();
    if volume == "none" || options.get("media").is_some_and(|media| *media == "cdrom") {
        return None;
    }
    let store = volume.split_once(':').and_then(|(id, _)| stores.get(id));
    // PVE/QemuServer.pm of qemu-server, drive_uses_cache_direct: O_DIRECT by default, except for
    // btrfs, because O_DIRECT breaks its checksums.
    let breaks = store.is_some_and(|store| {
        store.kind == "btrfs" && store.settings.get("nocow").is_none_or(|nocow| nocow == "0")
    });
    let default = if breaks { "writeback" } else { "none" };
    let mode = options.get("cache").copied().unwrap_or(default);
    let on = |on: bool| if on { "on" } else { "off" }.to_owned();
    let direct = matches!(mode, "none" | "directsync");
    let no_flush = mode == "unsafe";
    let write_cache = !matches!(mode, "writethrough" | "directsync");
    // It has an effect only for a disk with its own controller.
    let asked = options.get("iothread").is_some_and(|value| *value == "1");
    let thread = asked && (bus == "virtio-blk" || hardware == "virtio-scsi-single");
    let mut settings: BTreeMap<String, String> = [
        (
            "cache",
            cache_mode(write_cache, direct, no_flush).to_owned(),
        ),
        ("direct", on(direct)),
        ("no_flush", on(no_flush)),
        ("write_cache", on(write_cache)),
        ("iothread", if thread { "yes" } else { "no" }.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    let set = |name: &str| {
        let value = options.get(name);
        value.is_some_and(|value| matches!(*value, "1" | "on" | "yes" | "true"))
    };
    if set("snapshot") {
        settings.insert("snapshot".to_owned(), "on".to_owned());
    }
    if set("ro") {
        settings.insert("read_only".to_owned(), "yes".to_owned());
    }
    if asked && !thread {
        settings.insert("iothread_asked".to_owned(), "yes".to_owned());
    }
    for (name, key) in [("aio", "aio"), ("detect_zeroes", "detect_zeroes")] {
        if let Some(value) = options.get(name) {
            settings.insert(key.to_owned(), (*value).to_owned());
        }
    }
    let discard = match options.get("discard") {
        Some(&"on") => "unmap",
        _ => "ignore",
    };
    settings.insert("discard".to_owned(), discard.to_owned());
    let limits = Limits::of_proxmox(&options);
    limits.tell(&mut settings);
    let (storage, format) = place(volume, stores);
    Some(VirtualDisk {
        id: id.to_owned(),
        bus: bus.to_owned(),
        settings,
        formats: vec![format.to_owned()],
        limits,
        storage,
    })
}

/// Returns the path of a volume `STORAGE:NAME`, and its format according to the file name extension.
fn place(volume: &str, stores: &BTreeMap<String, ProxmoxStorage>) -> (Storage, &'static str) {
    let format = match volume.rsplit_once('.') {
        Some((_, "qcow2")) => "qcow2",
        Some((_, "vmdk")) => "vmdk",
        _ => "raw",
    };
    if volume.starts_with('/') {
        return (Storage::File(volume.into()), format);
    }
    let found = volume
        .split_once(':')
        .and_then(|(store, name)| Some((store, stores.get(store)?, name)));
    let Some((id, store, name)) = found else {
        return (
            Storage::Elsewhere("a storage that is not configured".to_owned()),
            format,
        );
    };
    let get = |key: &str| store.settings.get(key).cloned();
    let mounted = || get("path").or_else(|| Some(format!("/mnt/pve/{id}")));
    let path = match store.kind.as_str() {
        "zfspool" => get("pool").map(|pool| format!("/dev/zvol/{pool}/{name}")),
        "lvm" | "lvmthin" => get("vgname").map(|vg| format!("/dev/{vg}/{name}")),
        "dir" => get("path").map(|path| format!("{path}/images/{name}")),
        // Each raw image has its own subvolume (PVE/Storage/BTRFSPlugin.pm of libpve-storage-perl).
        "btrfs" => get("path").map(|path| match name.strip_suffix(".raw") {
            Some(name) => format!("{path}/images/{name}/disk.raw"),
            None => format!("{path}/images/{name}"),
        }),
        "nfs" | "cifs" | "cephfs" => mounted().map(|path| format!("{path}/images/{name}")),
        _ => None,
    };
    match path {
        Some(path) => (Storage::File(path.into()), format),
        None => (Storage::Elsewhere(store.kind.clone()), format),
    }
}

/// Redacts a line of a guest's configuration: keeps only what becomes facts. With `identity`, keeps the name of the
/// guest.
pub(crate) fn redact(line: &str, identity: bool) -> String {
    const KEPT: [&str; 6] = ["cpu", "machine", "scsihw", "arch", "ostype", "kvm"];
    let plain = |text: &str| is_plain(&text.trim().replace(['=', ';'], "-"));
    const OPTIONS: [&str; 8] = [
        "snapshot",
        "ro",
        "cache",
        "aio",
        "iothread",
        "discard",
        "detect_zeroes",
        "media",
    ];
    let Some((key, value)) = line.split_once(':') else {
        // The head of a snapshot ends the relevant part; its name is dropped.
        return if line.starts_with('[') {
            "[]".to_owned()
        } else {
            String::new()
        };
    };
    if key == "args" {
        // Of the arguments for QEMU only the processor type is kept: the last plain one.
        let words: Vec<&str> = value.split_ascii_whitespace().collect();
        let mut named = words
            .windows(2)
            .filter(|pair| matches!(pair[0], "-cpu" | "--cpu") && plain(pair[1]));
        let last = named.next_back();
        return last.map_or_else(String::new, |pair| format!("args: -cpu {}", pair[1]));
    }
    if KEPT.contains(&key) || (identity && key == "name") {
        return if plain(value) { line } else { "" }.to_owned();
    }
    if bus(key, "lsi").is_none() {
        return String::new();
    }
    let mut parts = value.trim().split(',').map(str::trim);
    let volume = parts.next().unwrap_or_default();
    let kept = parts.filter(|part| {
        let name = part.split('=').next().unwrap_or_default();
        let limit = is_limit(name.strip_prefix('m').unwrap_or(name));
        (OPTIONS.contains(&name) || limit) && plain(part)
    });
    // `STORE:VOLUME` or the path of a device; a URL is neither.
    let volume = if plain(volume) { volume } else { "none" };
    let volume = without_name(volume);
    let words: Vec<&str> = std::iter::once(volume.as_str()).chain(kept).collect();
    format!("{key}: {}", words.join(","))
}

/// Redacts a volume: keeps image names that Proxmox generated, and drops serial numbers in device names.
fn without_name(volume: &str) -> String {
    const KINDS: [&str; 6] = ["raw", "qcow2", "qcow", "vmdk", "img", "iso"];
    let Some((dir, name)) = volume.rsplit_once('/') else {
        return volume.to_owned();
    };
    if dir.starts_with("/dev") && !dir.starts_with("/dev/disk") {
        return volume.to_owned();
    }
    let (stem, kind) = match name.rsplit_once('.') {
        Some((stem, kind)) if KINDS.contains(&kind) => (stem, format!(".{kind}")),
        _ => (name, String::new()),
    };
    match is_given(stem) && !dir.starts_with("/dev") {
        true => format!("{dir}/{stem}{kind}"),
        false => format!("{dir}/left-out{kind}"),
    }
}

/// Returns whether Proxmox generated the name: `vm-100-disk-0`, `base-100-disk-1`, `vm-100-cloudinit`.
fn is_given(stem: &str) -> bool {
    let number = |word: &str| {
        !word.is_empty() && word.len() <= 9 && word.bytes().all(|byte| byte.is_ascii_digit())
    };
    match stem.split('-').collect::<Vec<_>>()[..] {
        ["vm" | "base", guest, "disk", disk] => number(guest) && number(disk),
        ["vm", guest, "cloudinit"] => number(guest),
        _ => false,
    }
}

/// Redacts a line of `storage.cfg`: drops servers, users and passwords.
pub(crate) fn redact_store(line: &str) -> String {
    const KEPT: [&str; 6] = ["pool", "vgname", "thinpool", "path", "sparse", "nocow"];
    let indented = line.starts_with(char::is_whitespace);
    let key = line.trim().split(char::is_whitespace).next();
    let plain = line.split_whitespace().all(is_plain);
    let kept = !indented || key.is_some_and(|key| KEPT.contains(&key));
    if plain && kept { line } else { "" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A configuration written from qm.conf(5) and pvesm(1) of Proxmox VE 9.1, not recorded.
    const CONFIG: &str = include_str!("../../fixtures/proxmox-from-documentation-100.conf");
    const STORES: &str = include_str!("../../fixtures/proxmox-from-documentation-storage.cfg");

    #[test]
    fn disks_and_where_they_lie() {
        let config = parse(CONFIG, &stores(STORES));
        assert_eq!(config.name.as_deref(), Some("web"));
        assert_eq!(config.settings["cpu"], "x86-64-v2-AES");
        let limits: Vec<String> = config
            .disks
            .iter()
            .map(|disk| disk.limits.to_string())
            .collect();
        assert_eq!(limits, ["", "100 MiB/s read, 500 IOPS of writes", "", ""]);
        let found: Vec<(&str, &str, &str, &Storage)> = config
            .disks
            .iter()
            .map(|disk| {
                let cache = disk.settings["cache"].as_str();
                (disk.id.as_str(), disk.bus.as_str(), cache, &disk.storage)
            })
            .collect();
        let file = |path: &str| Storage::File(path.into());
        assert_eq!(
            found,
            [
                (
                    "ide1",
                    "ide",
                    "writeback",
                    &file("/srv/vm/images/100/vm-100-disk-1.qcow2")
                ),
                (
                    "scsi0",
                    "virtio-scsi",
                    "none",
                    &file("/dev/zvol/rpool/data/vm-100-disk-0")
                ),
                (
                    "scsi1",
                    "virtio-scsi",
                    "none",
                    &Storage::Elsewhere("rbd".to_owned())
                ),
                (
                    "virtio2",
                    "virtio-blk",
                    "unsafe",
                    &file("/dev/pve/vm-100-disk-2")
                ),
            ]
        );
        assert_eq!(config.disks[0].formats, ["qcow2"]);
        assert_eq!(config.disks[1].settings["iothread"], "yes");
        assert_eq!(config.disks[1].settings["discard"], "unmap");
    }

    #[test]
    fn btrfs_is_not_opened_directly_and_keeps_raw_images_in_subvolumes() {
        let config = "scsi0: b:100/vm-100-disk-0.raw\nscsi1: b:100/vm-100-disk-1.raw,cache=none\n";
        let found = |settings: &str| {
            let stores = stores(&format!("btrfs: b\n\tpath /srv/b\n{settings}"));
            let disks = parse(config, &stores).disks;
            let modes = disks.iter().map(|disk| disk.settings["cache"].clone());
            (disks[0].storage.clone(), modes.collect::<Vec<_>>())
        };
        let file = Storage::File("/srv/b/images/100/vm-100-disk-0/disk.raw".into());
        let modes = |first: &str| vec![first.to_owned(), "none".to_owned()];
        assert_eq!(found(""), (file.clone(), modes("writeback")));
        assert_eq!(found("\tnocow 1\n"), (file, modes("none")));
    }

    #[test]
    fn a_thread_that_has_no_effect() {
        let config = parse("scsihw: lsi\nscsi0: a:b,iothread=1\n", &BTreeMap::new());
        assert_eq!(config.disks[0].settings["iothread"], "no");
        assert_eq!(config.disks[0].settings["iothread_asked"], "yes");
        assert_eq!(config.settings["cpu"], "kvm64");
    }

    #[test]
    fn what_a_capture_keeps_gives_the_same_disks() {
        let lines = |text: &str, clean: fn(&str) -> String| {
            text.lines().map(clean).collect::<Vec<_>>().join("\n")
        };
        let kept = lines(CONFIG, |line| redact(line, false));
        assert!(!kept.contains("web") && !kept.contains("S3RIAL"), "{kept}");
        let places = lines(STORES, redact_store);
        assert!(!places.contains("192.0.2"), "{places}");
        let again = parse(&kept, &stores(&places));
        assert_eq!(again.disks, parse(CONFIG, &stores(STORES)).disks);
    }

    #[test]
    fn names_of_images_and_serial_numbers_stay() {
        for (line, kept) in [
            (
                "scsi0: local:100/vm-100-disk-1.qcow2,cache=none",
                "scsi0: local:100/vm-100-disk-1.qcow2,cache=none",
            ),
            (
                "scsi0: local:100/payroll-acme.qcow2",
                "scsi0: local:100/left-out.qcow2",
            ),
            (
                "scsi0: local:iso/acme-install.iso,media=cdrom",
                "scsi0: local:iso/left-out.iso,media=cdrom",
            ),
            ("virtio1: /srv/vm/acme", "virtio1: /srv/vm/left-out"),
            (
                "scsi0: local:100/vm-acme-disk-1.raw",
                "scsi0: local:100/left-out.raw",
            ),
            (
                "scsi2: /dev/disk/by-id/ata-WDC_WD40-WCC7K1234567",
                "scsi2: /dev/disk/by-id/left-out",
            ),
            ("scsi2: /dev/sdb", "scsi2: /dev/sdb"),
            (
                "scsi2: local-lvm:vm-100-disk-0",
                "scsi2: local-lvm:vm-100-disk-0",
            ),
            ("ide2: none,media=cdrom", "ide2: none,media=cdrom"),
        ] {
            assert_eq!(redact(line, false), kept);
            assert_eq!(redact(kept, false), kept);
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-zé0-9:,=\\n \\[.]{0,80}") {
            let _ = parse(&text, &stores(&text));
            text.lines().for_each(|line| drop(redact(line, false)));
        }
    }
}
