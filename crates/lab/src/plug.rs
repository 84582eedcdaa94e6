//! Plugs disks into a running guest, and unplugs them.

use crate::devices::{Names, Part, Places, SCSI_ID, SECRET_ID};
use crate::disk::{Bus, Disk};
use crate::error::{Cause, LabError};
use crate::files;
use crate::guest::Guest;
use crate::state;
use assay_host::lockfile;
use assay_qemu::{Qmp, QmpError};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::File;
use std::time::{Duration, Instant};

/// Maximum time until an emulated guest on a busy machine notices a plugged or unplugged disk.
pub(crate) const GUEST_NOTICES_WITHIN: Duration = Duration::from_secs(90);
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

impl Guest {
    /// Plugs in a disk and waits until the guest sees it.
    ///
    /// # Errors
    /// The disk is SATA, IDE or a host block device, QEMU refuses (no free slot), or the guest does not see the disk.
    /// In these cases the disk is removed again.
    pub fn plug(&mut self, disk: &Disk) -> Result<(), LabError> {
        disk.check()?;
        if matches!(disk.bus, Bus::Sata | Bus::Ide) {
            return Err(disk.refuse(format!(
                "QEMU 7.2 cannot plug {} disks into a running guest: give it at boot, or choose \
                 virtio-blk, virtio-scsi or nvme",
                disk.bus.name()
            )));
        }
        if disk.device.is_some() {
            return Err(disk.refuse("a block device of the host has to be there at boot"));
        }
        let _one = self.alone()?;
        if self.entry.disks.iter().any(|(name, _)| *name == disk.name) {
            return Err(disk.refuse("the guest has a disk of this name already"));
        }
        let files = files::disk_file_names(&self.place.dir, disk);
        self.entry.disks.push((disk.name.clone(), disk.size));
        let outside = files::list_outside_files(&self.place.dir, std::slice::from_ref(disk));
        self.entry.files.extend(outside);
        self.place.enter(&self.entry)?;
        let plugged = self
            .make(disk, files)
            .and_then(|made| self.add(disk, &made))
            .and_then(|()| self.devices(&[&disk.name]).map(drop));
        if plugged.is_err() {
            // The first error is the important one.
            let _ = self.take_away(&disk.name);
        }
        plugged
    }

    /// Unplugs a disk like a drive that is pulled out. The guest is notified, but cannot refuse. Removes the disk's
    /// files.
    ///
    /// # Errors
    /// The disk does not exist, its bus does not permit it, or the guest does not release it.
    pub fn unplug(&mut self, name: &str) -> Result<(), LabError> {
        let _one = self.alone()?;
        self.check_disk(name)?;
        self.take_away(name)
    }

    /// Takes the lock for changing the guest's disks. Then reads the changes that other processes have made.
    pub(crate) fn alone(&mut self) -> Result<File, LabError> {
        let path = self.place.dir.join("plug.lock");
        let lock = lockfile::wait(&path).map_err(LabError::io(&path))?;
        if let Some(entry) = self.place.entered() {
            self.entry = entry;
        }
        Ok(lock)
    }

    fn add(&self, disk: &Disk, files: &files::DiskFiles) -> Result<(), LabError> {
        let mut monitor = self.monitor()?;
        let mut places = Places {
            secret: has(&mut monitor, "/objects", SECRET_ID)?,
            scsi: has(&mut monitor, "/machine/peripheral", SCSI_ID)?,
            ..Places::default()
        };
        for part in places.parts(disk, files)? {
            let (command, value) = part.command();
            monitor
                .execute(command, value.clone())
                .map_err(|error| explain(disk, &part, error))?;
        }
        Ok(())
    }

    fn take_away(&mut self, name: &str) -> Result<(), LabError> {
        let names = Names::of(name);
        let mut monitor = self.monitor()?;
        for device in &names.devices {
            if has(&mut monitor, "/machine/peripheral", device)? {
                self.eject(&mut monitor, name, device)?;
            }
        }
        let nodes = monitor.execute("query-named-block-nodes", json!({ "flat": true }))?;
        for node in &names.nodes {
            if list_contains(&nodes, "node-name", node) {
                monitor.execute("blockdev-del", json!({ "node-name": node }))?;
            }
        }
        for object in &names.objects {
            if has(&mut monitor, "/objects", object)? {
                monitor.execute("object-del", json!({ "id": object }))?;
            }
        }
        drop(monitor);
        let ours = files::find_disk_files(&self.place.dir, name, &self.entry.files);
        for file in &ours {
            state::remove_file(file, &self.entry.known)?;
        }
        self.entry.disks.retain(|(known, _)| known != name);
        self.entry.files.retain(|file| !ours.contains(file));
        let names: Vec<_> = ours.iter().filter_map(|file| file.file_name()).collect();
        self.entry
            .known
            .retain(|name, _| !names.contains(&OsStr::new(name)));
        // Only then their space is free.
        self.held.retain(|file| {
            let name = file.shown().file_name();
            name.is_none_or(|name| !names.contains(&name))
        });
        self.place.enter(&self.entry)
    }

    /// Removes a device and waits until the guest has released it.
    fn eject(&self, monitor: &mut Qmp, name: &str, device: &str) -> Result<(), LabError> {
        let refuse = |source: Cause| LabError::Disk {
            name: name.to_owned(),
            source,
        };
        monitor
            .execute("device_del", json!({ "id": device }))
            .map_err(|error| refuse(error.into()))?;
        let deadline = Instant::now() + GUEST_NOTICES_WITHIN;
        while Instant::now() < deadline {
            self.watch()?;
            // Any command: events arrive with its answer.
            monitor.execute("query-status", json!({}))?;
            for event in monitor.take_events() {
                if event["data"]["device"] == device {
                    match event["event"].as_str() {
                        Some("DEVICE_DELETED") => return Ok(()),
                        Some("DEVICE_UNPLUG_GUEST_ERROR") => {
                            return Err(refuse("the guest refuses to let go of it".into()));
                        }
                        _ => {}
                    }
                }
            }
            std::thread::sleep(PAUSE);
        }
        let waited = GUEST_NOTICES_WITHIN.as_secs();
        Err(refuse(
            format!("the guest has not let go of it for {waited} s; it is still there").into(),
        ))
    }
}

/// Returns whether QEMU's object tree contains an object `name` below `path`.
pub(crate) fn has(monitor: &mut Qmp, path: &str, name: &str) -> Result<bool, LabError> {
    let listed = monitor.execute("qom-list", json!({ "path": path }))?;
    Ok(list_contains(&listed, "name", name))
}

fn list_contains(list: &Value, key: &str, name: &str) -> bool {
    let mut items = list.as_array().into_iter().flatten();
    items.any(|item| item[key] == name)
}

fn explain(disk: &Disk, part: &Part, error: QmpError) -> LabError {
    match (part, error) {
        (Part::Device(_), QmpError::Refused { reason, .. }) if reason.contains("no slot") => disk
            .refuse(format!(
                "{reason}: disks of virtio-scsi share a slot; `assay lab unplug` frees one"
            )),
        (_, QmpError::Refused { reason, .. }) => disk.refuse(reason),
        (_, other) => other.into(),
    }
}
