//! Collects the virtual machines of this host: QEMU processes, and the definitions of libvirt and Proxmox.

use super::daemons::lines::at_line;
use super::proxmox_guests;
use crate::gather::{Gather, lossy};
use crate::qemu::{self, Storage, VirtualDisk};
use crate::{libvirt, proxmox};
use assay_host::Host;
use assay_model::{FactKind, FactPlace, Span};
use serde_json::Value;
use std::path::Path;

const LIBVIRT: &str = "/etc/libvirt/qemu";
/// Error number of a read from /proc after the process has ended (ESRCH).
const ESRCH: i32 = 3;
const STORES: &str = "/etc/pve/storage.cfg";

/// Collects all guests. With `unredacted`, which is the machine itself without redaction, the facts contain the names
/// of guests, so that the user recognises a guest in a finding. Captures contain no names.
pub(crate) fn collect(g: &mut Gather<'_>, with_identity: bool, unredacted: Option<&dyn Host>) {
    let named = unredacted.is_some() || with_identity;
    note_processes(g, with_identity, unredacted);
    of_libvirt(g, with_identity, named);
    of_proxmox(g, with_identity);
}

/// Notes `vm.PID` for each running guest.
fn note_processes(g: &mut Gather<'_>, with_identity: bool, unredacted: Option<&dyn Host>) {
    for entry in g.list("vm", "/proc") {
        let pid = lossy(&entry);
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        // The name is read first, so that a capture contains no other command lines. Processes may
        // end at any time.
        let (key, path) = (format!("vm.{pid}"), format!("/proc/{pid}/cmdline"));
        let comm = format!("/proc/{pid}/comm");
        match g.host.read_text(Path::new(&comm)) {
            Ok(comm) if qemu::is_qemu(comm.trim()) => {}
            Ok(_) => continue,
            Err(error) if error.errno() == Some(ESRCH) => continue,
            Err(error) => {
                g.fault(&key, &error, FactKind::Runtime, &comm);
                continue;
            }
        }
        let line = match g.host.read(Path::new(&path)) {
            Ok(line) if line.is_empty() => continue,
            Ok(line) => qemu::redact(&line, with_identity),
            Err(error) => {
                g.fault(&key, &error, FactKind::Runtime, &path);
                g.about(["vm", &pid]);
                continue;
            }
        };
        let machine = qemu::parse(&qemu::argv(&line));
        let name = match unredacted.map(|host| host.read(Path::new(&path))) {
            Some(line) => line
                .ok()
                .and_then(|line| qemu::parse(&qemu::argv(&line)).name),
            None => machine.name.filter(|_| with_identity),
        };
        if let Some(name) = name.as_deref().filter(|_| with_identity) {
            known(g, &key, "name", name, FactKind::Runtime, &path);
        }
        let guest = machine.id.clone().or(name).unwrap_or_else(|| pid.clone());
        known(g, &key, "guest", guest.as_str(), FactKind::Runtime, &path);
        if let Some(id) = machine.id {
            known(g, &key, "id", id, FactKind::Runtime, &path);
        }
        for (name, value) in machine.settings {
            known(g, &key, &name, value, FactKind::Runtime, &path);
        }
        disks(
            g,
            (&key, &guest),
            &machine.disks,
            FactKind::Runtime,
            &|_| FactPlace::from(&path),
            with_identity,
        );
    }
}

/// Notes `vm.UNIT` for the guest that a systemd unit defines, unless this guest is running.
pub(crate) fn note_defined(
    g: &mut Gather<'_>,
    unit: &str,
    guest: &str,
    argv: &[String],
    place: &FactPlace,
) {
    let machine = qemu::parse(argv);
    let (key, kind) = (format!("vm.{unit}"), FactKind::Configured);
    known(g, &key, "guest", guest, kind, place.clone());
    for (name, value) in machine.settings {
        known(g, &key, &name, value, kind, place.clone());
    }
    let place = |_: &str| place.clone();
    disks(g, (&key, guest), &machine.disks, kind, &place, false);
}

/// Notes `libvirt.NAME` for each defined guest. Without names (`named` is false), the guests are numbered in the order
/// of their file names.
fn of_libvirt(g: &mut Gather<'_>, with_identity: bool, named: bool) {
    let files = g.list("libvirt", LIBVIRT);
    let files = files.iter().filter(|file| lossy(file).ends_with(".xml"));
    for (number, file) in files.enumerate() {
        let path = format!("{LIBVIRT}/{}", lossy(file));
        let name = match named {
            true => lossy(file).trim_end_matches(".xml").to_owned(),
            false => number.to_string(),
        };
        let key = format!("libvirt.{name}");
        let Some(text) = g.read(&key, &path) else {
            continue;
        };
        // The file name is the name of the guest.
        let source = match named {
            true => path,
            false => LIBVIRT.to_owned(),
        };
        match libvirt::parse(&text) {
            Ok(domain) => {
                let kind = FactKind::Configured;
                if with_identity {
                    known(g, &key, "name", domain.name, kind, &source);
                }
                known(g, &key, "guest", name.as_str(), kind, &source);
                for (name, value) in domain.settings {
                    let line = domain.cpu_line.filter(|_| named && name == "cpu");
                    let place = line
                        .map_or_else(|| FactPlace::from(&source), |line| at_line(&source, line));
                    known(g, &key, &name, value, kind, place);
                }
                let place = |id: &str| {
                    let at = domain.disks.iter().position(|disk| disk.id == id);
                    match at.and_then(|at| domain.lines.get(at)) {
                        Some(line) if named => FactPlace::File {
                            path: source.clone(),
                            line: Some(*line),
                            span: None,
                        },
                        _ => FactPlace::from(&source),
                    }
                };
                disks(g, (&key, &name), &domain.disks, kind, &place, with_identity);
            }
            Err(reason) => {
                g.facts.unknown(&key, reason, FactKind::Configured, source);
                g.about(["libvirt", &name]);
            }
        }
    }
}

/// Notes `proxmox.VMID` for each configured guest.
fn of_proxmox(g: &mut Gather<'_>, with_identity: bool) {
    let guests = proxmox_guests::directory(g, "qemu-server");
    let files = g.list("proxmox", &guests);
    if files.is_empty() {
        return;
    }
    let stores = g.read("proxmox.storage", STORES).unwrap_or_default();
    let stores = proxmox::stores(&stores);
    for file in files {
        let file = lossy(&file);
        let Some(number) = file.strip_suffix(".conf") else {
            continue;
        };
        let (key, path) = (format!("proxmox.{number}"), format!("{guests}/{file}"));
        let Some(text) = g.read(&key, &path) else {
            continue;
        };
        let config = proxmox::parse(&text, &stores);
        let kind = FactKind::Configured;
        if let Some(name) = config.name.filter(|_| with_identity) {
            known(g, &key, "name", name, kind, &path);
        }
        for (name, value) in config.settings {
            let line = match name.as_str() {
                "cpu" | "aes" => config.cpu_key,
                other => other,
            };
            let place = line_of(&path, &text, line);
            known(g, &key, &name, value, kind, place);
        }
        let place = |id: &str| line_of(&path, &text, id);
        disks(
            g,
            (&key, number),
            &config.disks,
            kind,
            &place,
            with_identity,
        );
    }
}

/// Returns the place of the last line that sets a key for the guest itself. Lines of snapshots do not count. If there
/// is no such line, the place is the whole file.
fn line_of(path: &str, text: &str, key: &str) -> FactPlace {
    let own = text.lines().take_while(|line| !line.starts_with('['));
    let said = own.enumerate().filter(|(_, line)| {
        let name = line.split_once(':').map(|(name, _)| name.trim());
        name == Some(key)
    });
    let found = said.last();
    FactPlace::File {
        path: path.to_owned(),
        line: found.map(|(at, _)| at + 1),
        span: found.map(|(_, line)| Span {
            column: 1,
            length: line.trim_end().len(),
        }),
    }
}

/// Returns instructions for changing the settings of a virtual disk. They depend on the manager of the guest (Proxmox,
/// libvirt or none).
fn edit_with(manager: &str, guest: &str, disk: &str) -> String {
    match manager {
        "proxmox" => format!(
            "`qm set {guest} --{disk} VOLUME,OPTIONS`, with the volume and the other options that `qm config {guest}` shows"
        ),
        "libvirt" => format!("`virsh edit {guest}`, at its disk {disk}"),
        _ => "where the command line of this QEMU is made".to_owned(),
    }
}

fn known(
    g: &mut Gather<'_>,
    key: &str,
    name: &str,
    value: impl Into<Value>,
    kind: FactKind,
    place: impl Into<FactPlace>,
) {
    g.facts.known(format!("{key}.{name}"), value, kind, place);
}

fn disks(
    g: &mut Gather<'_>,
    (key, guest): (&str, &str),
    disks: &[VirtualDisk],
    kind: FactKind,
    source: &dyn Fn(&str) -> FactPlace,
    with_identity: bool,
) {
    let Some((of, number)) = key.split_once('.') else {
        return;
    };
    for disk in disks {
        let key = format!("{key}.disk.{}", disk.id);
        let source = source(&disk.id);
        known(g, &key, "guest", guest, kind, &source);
        known(g, &key, "id", disk.id.as_str(), kind, &source);
        known(
            g,
            &key,
            "edit_with",
            edit_with(of, guest, &disk.id),
            kind,
            &source,
        );
        known(g, &key, "bus", disk.bus.clone(), kind, &source);
        for (name, value) in &disk.settings {
            known(g, &key, name, value.clone(), kind, &source);
        }
        let formats: Value = disk.formats.iter().cloned().collect();
        known(g, &key, "formats", formats, kind, &source);
        let storage = match &disk.storage {
            Storage::File(path) => Some(qemu::redact_file(&path.to_string_lossy(), with_identity)),
            Storage::Elsewhere(driver) => Some(driver.clone()),
            Storage::Nothing => None,
        };
        if let Some(storage) = storage {
            // The dataset below the guest's disk; a removed name leads to none.
            let zvol = storage.strip_prefix("/dev/zvol/");
            if let Some(zvol) = zvol.filter(|zvol| !zvol.contains('(')) {
                known(g, &key, "zvol", zvol, kind, &source);
            }
            known(g, &key, "storage", storage, kind, &source);
        }
        g.about([of, number, "disk", &disk.id]);
    }
    g.about([of, number]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    const LINE: &str = include_str!("../../fixtures/qemu-7.2-libvirt-9.0-cmdline.txt");
    const STATUS: &str = include_str!("../../fixtures/libvirt-9.0-domstatus.xml");
    const CONFIG: &str = include_str!("../../fixtures/proxmox-from-documentation-100.conf");
    const PLACES: &str = include_str!("../../fixtures/proxmox-from-documentation-storage.cfg");

    fn host() -> Recorded {
        Recorded::new()
            .file("/proc/77/comm", "qemu-system-x86\n")
            .file("/proc/77/cmdline", LINE.replace('\n', "\0"))
            .file("/proc/78/comm", "bash\n")
            .file("/proc/78/cmdline", "bash\0secret\0")
            .file("/etc/libvirt/qemu/web.xml", STATUS)
            .file("/etc/libvirt/qemu/bad.xml", "<domain")
            .file("/etc/pve/qemu-server/100.conf", CONFIG)
            .file("/etc/pve/storage.cfg", PLACES)
    }

    #[test]
    fn what_runs_and_what_is_defined() {
        let host = host();
        let mut g = Gather::new(&host);
        collect(&mut g, false, None);
        let facts = &g.facts;
        let disk = "vm.77.disk.virtio-disk0";
        assert_eq!(facts.str(&format!("{disk}.cache")), Some("none"));
        assert_eq!(facts.str(&format!("{disk}.bus")), Some("virtio-blk"));
        let storage = facts.str(&format!("{disk}.storage"));
        assert_eq!(storage, Some("/var/lib/libvirt/images/(left out)"));
        assert_eq!(facts.str("libvirt.1.disk.vda.cache"), Some("none"));
        assert!(facts.map.contains_key("libvirt.0"));
        assert_eq!(facts.str("proxmox.100.disk.virtio2.cache"), Some("unsafe"));
        let zvol = facts.str("proxmox.100.disk.scsi0.storage");
        assert_eq!(zvol, Some("/dev/zvol/rpool/data/vm-100-disk-0"));
        let zvol = facts.str("proxmox.100.disk.scsi0.zvol");
        assert_eq!(zvol, Some("rpool/data/vm-100-disk-0"));
        let text = format!("{facts:?}");
        for secret in ["web", "S3RIAL", "secret", "over.qcow2"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }

    #[test]
    fn names_when_they_are_asked_for() {
        let host = host();
        let mut g = Gather::new(&host);
        collect(&mut g, true, Some(&host));
        assert_eq!(g.facts.str("vm.77.name"), Some("web"));
        assert_eq!(g.facts.str("libvirt.web.name"), Some("web"));
        let cache = &g.facts.map["libvirt.web.disk.vda.cache"];
        let place = cache.place.to_string();
        assert!(place.starts_with("/etc/libvirt/qemu/web.xml:"), "{place}");
        assert_eq!(g.facts.str("proxmox.100.name"), Some("web"));
    }

    #[test]
    fn processes_keep_their_name_and_defaults_through_redaction() {
        let line =
            "/usr/bin/qemu-system-x86_64\0-enable-kvm\0-name\0web\0-snapshot\0-hda\0/srv/a.img\0";
        let host = Recorded::new()
            .file("/proc/77/comm", "qemu-system-x86\n")
            .file("/proc/77/cmdline", line);
        let redacted = crate::Redacted::new(&host, false);
        for (unredacted, guest) in [(Some(&host as &dyn Host), "web"), (None, "77")] {
            let mut g = Gather::new(&redacted);
            collect(&mut g, false, unredacted);
            assert_eq!(g.facts.str("vm.77.guest"), Some(guest));
            assert_eq!(g.facts.str("vm.77.cpu"), Some(qemu::DEFAULT_CPU));
            let snapshot = g.facts.map.keys().find(|key| key.ends_with(".snapshot"));
            assert_eq!(snapshot.and_then(|key| g.facts.str(key)), Some("on"));
        }
    }
}
