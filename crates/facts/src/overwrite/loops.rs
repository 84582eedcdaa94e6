//! Finds the files and devices behind loop devices. The kernel's device and inode numbers identify them, not the path.
//! A renamed or deleted file is therefore still found.

use crate::overwrite::{Found, processes};
use assay_host::held::{Held, Identity};
use assay_host::loops::{Backing, read_backing};
use assay_host::{DeviceNumber, Host};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Returns all configured loop devices with their backing files.
fn list_loops(host: &dyn Host) -> Result<Vec<(String, Backing)>, String> {
    let mut all = Vec::new();
    let base = Path::new("/sys/block");
    let names = host.list(base).map_err(|error| error.to_string())?;
    let is_loop = |name: &&OsString| name.as_bytes().starts_with(b"loop");
    for name in names.iter().filter(is_loop) {
        // Only configured loop devices have this directory; others are not opened.
        match host.exists(&base.join(name).join("loop")) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => return Err(error.to_string()),
        }
        let name = name.to_string_lossy().into_owned();
        let opened = Held::device(&Path::new("/dev").join(&name));
        match opened.and_then(|device| read_backing(&device)) {
            Ok(Some(backing)) => all.push((name, backing)),
            Ok(None) => {}
            Err(error) => return Err(format!("what is behind {name}: {}", error.reason())),
        }
    }
    Ok(all)
}

/// Returns the loop devices that are backed by a file.
pub(crate) fn of_file(host: &dyn Host, file: Identity) -> Found {
    let all = list_loops(host)?;
    let behind = all.iter().filter(|(_, backing)| backing.file == file);
    Ok(behind
        .map(|(name, _)| format!("behind /dev/{name}"))
        .collect())
}

/// Returns the loop devices that are backed by a device. If the device is itself a loop device, also returns other loop
/// devices on its backing file, because a write would change their data too.
pub(crate) fn of_device(host: &dyn Host, held: &Held) -> Found {
    let Some(number) = held.device_number().map_err(|error| error.to_string())? else {
        return Ok(Vec::new());
    };
    let all = list_loops(host)?;
    let mut found = Vec::new();
    for (name, backing) in &all {
        if backing.device == Some(number) {
            found.push(format!("behind /dev/{name}"));
        }
    }
    let Some(own) = loop_of(host, number).map_err(|error| error.to_string())? else {
        return Ok(found);
    };
    let Some((_, file)) = all.iter().find(|(name, _)| *name == own) else {
        return Ok(found);
    };
    for (name, backing) in &all {
        if *name != own && backing.file == file.file {
            found.push(format!(
                "the same file is behind /dev/{own} and /dev/{name}"
            ));
        }
    }
    let users = processes::users(host, file.file, None);
    for user in users.found {
        found.push(format!("the file behind /dev/{own} is {user}"));
    }
    Ok(found)
}

/// Returns the name of the loop device with this number, or of the loop device whose partition has this number.
fn loop_of(host: &dyn Host, number: DeviceNumber) -> Result<Option<String>, assay_host::HostError> {
    let dir = host.realpath(Path::new(&format!("/sys/dev/block/{number}")))?;
    let name = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.into_owned()
    };
    let names = [name(&dir), dir.parent().map(name).unwrap_or_default()];
    Ok(names.into_iter().find(|name| name.starts_with("loop")))
}
