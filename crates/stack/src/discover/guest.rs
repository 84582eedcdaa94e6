//! Virtual machines whose QEMU runs on this machine, and virtual machines that libvirt or Proxmox define.

use super::{Finder, StackError};
use assay_facts::libvirt;
use assay_facts::proxmox;
use assay_facts::qemu::{self, Storage, VirtualDisk};
use assay_host::{FileKind, HostError};
use assay_model::stack::{Layer, LayerKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directories of libvirt's running and defined guests.
const LIBVIRT: [&str; 2] = ["/run/libvirt/qemu", "/etc/libvirt/qemu"];
/// Key of a setting. The value `no` marks a guest that is defined but not running.
pub const RUNS: &str = "runs";
const PROXMOX: &str = "/etc/pve/qemu-server";
/// Bit of O_DIRECT in the flags of /proc/PID/fdinfo (open(2)) on x86. Other architectures have other bits.
const O_DIRECT: u64 = 0o40000;
/// Minimum size of a disk in bytes. A smaller file to which QEMU writes is not a disk.
const SMALLEST: u64 = 1 << 20;

/// A guest that was found, running or only defined.
struct Found {
    name: String,
    pid: Option<u32>,
    settings: BTreeMap<String, String>,
    disks: Vec<VirtualDisk>,
    unknown: Vec<String>,
}

/// A running process of QEMU, with its virtual machine.
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) machine: qemu::QemuMachine,
}

impl Finder<'_> {
    /// Adds the guest with this name and all of its disks.
    pub(super) fn guest(&mut self, name: &str) -> Result<(), StackError> {
        let processes = self.processes().map_err(StackError::Unreadable)?;
        let fits = |process: &&Process| {
            let id = process.machine.id.as_deref();
            process.machine.name.as_deref() == Some(name)
                || id == Some(name)
                || process.pid.to_string() == name
        };
        let running: Vec<&Process> = processes.iter().filter(fits).collect();
        let found = match running.as_slice() {
            [process] => {
                let mut found = running_guest(process);
                self.limits(process, &mut found.disks);
                found
            }
            [] => match self.defined(name) {
                Some(found) => found,
                None => {
                    let known = processes.iter().map(|process| {
                        let id = process.machine.id.as_ref();
                        let told = id.or(process.machine.name.as_ref()).cloned();
                        told.unwrap_or_else(|| process.pid.to_string())
                    });
                    return Err(StackError::NoGuest {
                        name: name.to_owned(),
                        known: known.collect(),
                    });
                }
            },
            several => {
                return Err(StackError::Ambiguous {
                    name: name.to_owned(),
                    pids: several.iter().map(|process| process.pid).collect(),
                });
            }
        };
        let mut layer = Layer::new(LayerKind::Guest, found.name.clone());
        layer.settings.clone_from(&found.settings);
        if found.pid.is_none() {
            layer.settings.insert(RUNS.to_owned(), "no".to_owned());
        }
        layer.unknown.clone_from(&found.unknown);
        layer.unknown.push(
            "file systems, LVM and encryption inside: only the guest can tell (`assay stack` there)"
                .to_owned(),
        );
        self.enter(format!("guest:{name}"), layer, |finder, at| {
            let open = found.pid.map(|pid| finder.open_files(at, pid));
            for disk in &found.disks {
                let below = finder.virtual_disk(disk, found.pid, open.as_ref());
                finder.stand(at, below);
            }
            if let Some(open) = &open {
                finder.plugged_later(at, open);
            }
        });
        Ok(())
    }

    /// Returns all processes of QEMU. Skips a process that ends while it is read.
    pub(super) fn processes(&self) -> Result<Vec<Process>, HostError> {
        let mut found = Vec::new();
        for entry in self.host.list(Path::new("/proc"))? {
            let Some(pid) = entry.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let dir = PathBuf::from(format!("/proc/{pid}"));
            let comm = self.line(&dir.join("comm"));
            if !comm.is_some_and(|comm| qemu::is_qemu(&comm)) {
                continue;
            }
            if let Ok(line) = self.host.read(&dir.join("cmdline")) {
                let machine = qemu::parse(&qemu::argv(&line));
                // Threads and helpers of QEMU have no command line of a machine.
                if !line.is_empty() {
                    found.push(Process { pid, machine });
                }
            }
        }
        Ok(found)
    }

    /// Returns a guest by its definition, for a guest that does not run or whose process is not visible.
    fn defined(&self, name: &str) -> Option<Found> {
        if !is_file_name(name) {
            return None;
        }
        self.of_proxmox(name).or_else(|| self.of_libvirt(name))
    }

    /// Adds limits that libvirt or Proxmox VE set through QEMU's monitor, from their own records. The monitor itself is
    /// not used, because it accepts only one client.
    fn limits(&self, process: &Process, disks: &mut [VirtualDisk]) {
        let machine = &process.machine;
        let named = machine.name.as_deref().filter(|name| is_file_name(name));
        let libvirt = named.and_then(|name| self.domain(name));
        let libvirt = libvirt.filter(|domain| domain.pid.is_none_or(|pid| pid == process.pid));
        let number = machine.id.as_deref().and_then(|id| id.parse::<u32>().ok());
        let proxmox = number.and_then(|id| self.configured(&format!("{id}.conf")));
        let libvirt = libvirt.map(|domain| domain.disks).unwrap_or_default();
        let proxmox = proxmox.map(|config| config.disks).unwrap_or_default();
        for disk in disks.iter_mut().filter(|disk| disk.limits.is_empty()) {
            let same = |told: &&VirtualDisk| {
                let place =
                    told.storage == disk.storage && matches!(told.storage, Storage::File(_));
                place || told.id == disk.id.strip_prefix("drive-").unwrap_or(&disk.id)
            };
            if let Some(told) = libvirt.iter().chain(&proxmox).find(same) {
                disk.limits = told.limits.clone();
                disk.limits.tell(&mut disk.settings);
            }
        }
    }

    fn domain(&self, name: &str) -> Option<libvirt::Domain> {
        let files = LIBVIRT.map(|dir| Path::new(dir).join(format!("{name}.xml")));
        let text = files.iter().find_map(|file| self.host.read_text(file).ok());
        // Members of the libvirt group may query the service, but not read its files.
        let text = text.or_else(|| self.ask_text(&[&libvirt::DUMP[..], &[name]].concat()).ok())?;
        libvirt::parse(&text).ok()
    }

    fn configured(&self, file: &str) -> Option<proxmox::Config> {
        let stores = self.host.read_text(Path::new("/etc/pve/storage.cfg"));
        let stores = proxmox::stores(&stores.unwrap_or_default());
        let text = self.host.read_text(&Path::new(PROXMOX).join(file)).ok()?;
        Some(proxmox::parse(&text, &stores))
    }

    fn of_libvirt(&self, name: &str) -> Option<Found> {
        let domain = self.domain(name)?;
        Some(Found {
            name: domain.name,
            pid: None,
            settings: domain.settings,
            disks: domain.disks,
            unknown: vec![
                "what it runs with: this is how libvirt defines it, it does not run here"
                    .to_owned(),
            ],
        })
    }

    fn of_proxmox(&self, name: &str) -> Option<Found> {
        let number = name.parse::<u32>().ok();
        let by_number = number.and_then(|number| self.configured(&format!("{number}.conf")));
        let config = by_number.or_else(|| {
            let files = self.host.list(Path::new(PROXMOX)).ok()?;
            let names = files.iter().filter_map(|file| file.to_str());
            names
                .filter_map(|file| self.configured(file))
                .find(|config| config.name.as_deref() == Some(name))
        })?;
        Some(Found {
            name: config.name.unwrap_or_else(|| name.to_owned()),
            pid: None,
            settings: config.settings,
            disks: config.disks,
            unknown: vec![
                "what it runs with: this is its configuration, it does not run here".to_owned(),
            ],
        })
    }

    fn virtual_disk(
        &mut self,
        disk: &VirtualDisk,
        pid: Option<u32>,
        open: Option<&BTreeMap<PathBuf, u64>>,
    ) -> usize {
        let mut layer = Layer::new(LayerKind::VirtualDisk, disk.id.clone());
        layer.settings.clone_from(&disk.settings);
        // The name of the cache mode contains these three.
        for key in ["direct", "no_flush", "write_cache"] {
            layer.settings.remove(key);
        }
        layer.settings.insert("bus".to_owned(), disk.bus.clone());
        let key = format!("virtual:{}", disk.id);
        self.enter(key, layer, |finder, at| match &disk.storage {
            Storage::File(path) => {
                let path = finder.as_qemu_sees(path, pid);
                finder.really_open(at, disk, &path, open);
                let below = finder.formats(disk, &path);
                finder.stand(at, below);
            }
            Storage::Elsewhere(driver) => {
                let mut layer = Layer::new(LayerKind::Network, driver.clone());
                layer
                    .unknown
                    .push("what lies below is elsewhere".to_owned());
                let below = finder.enter(format!("elsewhere:{}", disk.id), layer, |_, _| ());
                finder.stand(at, below);
            }
            Storage::Nothing => {}
        })
    }

    /// Adds the format layers of a disk that the command line declares, from the top. The last format is the format of
    /// the file.
    fn formats(&mut self, disk: &VirtualDisk, path: &Path) -> usize {
        let filters = disk.formats.split_last();
        let (last, filters) = match filters {
            Some((last, filters)) => (Some(last.as_str()), filters),
            None => (None, &[][..]),
        };
        let bottom = self.image_file(path, last.or(Some("raw")));
        // A group without limits has no effect; the device lists the limits.
        let real = filters.iter().filter(|name| *name != "throttle").rev();
        real.fold(bottom, |below, name| {
            let layer = Layer::new(LayerKind::Image, name.clone());
            let key = format!("filter:{name}:{}", disk.id);
            self.enter(key, layer, |finder, at| finder.stand(at, below))
        })
    }

    /// Returns a path as the process resolves it, that is relative to its directory and in its mount namespace.
    pub(super) fn as_qemu_sees(&self, path: &Path, pid: Option<u32>) -> PathBuf {
        let Some(pid) = pid else {
            return path.to_owned();
        };
        let dir = self.host.link(Path::new(&format!("/proc/{pid}/cwd")));
        let whole = dir.map_or_else(|_| path.to_owned(), |dir| dir.join(path));
        match self.host.exists(&whole) {
            Ok(false) => {
                let inside = whole.strip_prefix("/").unwrap_or(&whole);
                let there = PathBuf::from(format!("/proc/{pid}/root")).join(inside);
                match self.host.exists(&there) {
                    Ok(true) => there,
                    _ => whole,
                }
            }
            _ => whole,
        }
    }

    /// Returns the open files of a process with their flags.
    fn open_files(&mut self, at: usize, pid: u32) -> BTreeMap<PathBuf, u64> {
        let dir = PathBuf::from(format!("/proc/{pid}/fd"));
        let names = match self.host.list(&dir) {
            Ok(names) => names,
            Err(error) => {
                self.unknown(at, format!("what it has open: {error}"));
                return BTreeMap::new();
            }
        };
        let flags = |name: &std::ffi::OsStr| {
            let info = PathBuf::from(format!("/proc/{pid}/fdinfo")).join(name);
            let text = self.host.read_text(&info).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
            u64::from_str_radix(line.trim(), 8).ok()
        };
        let open = names.iter().filter_map(|name| {
            let target = self.host.link(&dir.join(name)).ok()?;
            let file = target.is_absolute() && !target.starts_with("/dev/null");
            file.then(|| Some((target, flags(name)?)))?
        });
        open.collect()
    }

    /// Records whether QEMU opened the file in the way that the command line requests, for example with O_DIRECT.
    fn really_open(
        &mut self,
        at: usize,
        disk: &VirtualDisk,
        path: &Path,
        open: Option<&BTreeMap<PathBuf, u64>>,
    ) {
        let Some(open) = open.filter(|open| !open.is_empty()) else {
            return;
        };
        let real = self.host.realpath(path);
        let real = real.unwrap_or_else(|_| path.to_owned());
        let Some(flags) = open.get(&real).or_else(|| open.get(path)) else {
            return self.unknown(
                at,
                "whether it is still there: QEMU does not have its file open",
            );
        };
        if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
            let direct = flags & O_DIRECT != 0;
            let asked = disk
                .settings
                .get("direct")
                .is_some_and(|value| value == "on");
            self.set(at, "o_direct", super::yes_or_no(direct));
            if direct != asked {
                let told = if asked { "with" } else { "without" };
                self.unknown(
                    at,
                    format!("why its file is not open {told} O_DIRECT, as its cache mode says"),
                );
            }
        }
    }

    /// Adds open files that do not belong to a disk of the command line, such as disks that were attached later.
    fn plugged_later(&mut self, at: usize, open: &BTreeMap<PathBuf, u64>) {
        let known: Vec<PathBuf> = self
            .stack
            .layers
            .iter()
            .filter_map(|layer| layer.place.clone())
            .collect();
        let strange = open.iter().filter(|(path, flags)| {
            let writes = **flags & 3 != 0;
            let disk = self.host.stat(path).is_ok_and(|stat| match stat.kind {
                FileKind::BlockDevice => true,
                FileKind::Regular => stat.size >= SMALLEST,
                _ => false,
            });
            let node = self.host.realpath(path).ok();
            writes
                && disk
                && !known.contains(path)
                && !node.is_some_and(|node| known.contains(&node))
        });
        let names: Vec<String> = strange
            .map(|(path, _)| path.display().to_string())
            .collect();
        if !names.is_empty() {
            let names = names.join(", ");
            self.unknown(
                at,
                format!("what QEMU does with {names}, perhaps disks plugged in later"),
            );
        }
    }
}

/// Returns whether a name can safely become a part of a path.
fn is_file_name(name: &str) -> bool {
    !name.contains('/') && !name.starts_with('.')
}

fn running_guest(process: &Process) -> Found {
    let machine = &process.machine;
    let name = machine.name.clone().or_else(|| machine.id.clone());
    Found {
        name: name.unwrap_or_else(|| process.pid.to_string()),
        pid: Some(process.pid),
        settings: machine.settings.clone(),
        disks: machine.disks.clone(),
        unknown: machine.unknown.clone(),
    }
}
