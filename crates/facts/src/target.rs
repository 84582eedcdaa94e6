//! Finds what is below a path: its mount, the block devices directly under the mount, and the disks at the bottom.

use crate::block::{Device, MAX_DEPTH};
use crate::mountinfo::{self, MOUNTINFO, Mount};
use assay_host::{DeviceNumber, FileKind, Host, HostError, Limits};
use assay_model::target::TargetKind;
use assay_model::{Bytes, TargetInfo};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Reasons why the layers under a path cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The path does not exist.
    #[error("{}: no such file or directory", path.display())]
    Missing {
        /// The missing path.
        path: PathBuf,
    },
    /// The path is not a directory, a file or a block device.
    #[error("{}: neither a directory, a file nor a block device", path.display())]
    NotStorage {
        /// The path of another type.
        path: PathBuf,
    },
    /// A source could not be read.
    #[error("{}: cannot find out what lies below it: {error}", path.display())]
    Unreadable {
        /// The path whose layers were requested.
        path: PathBuf,
        /// Error of the source that could not be read.
        #[source]
        error: HostError,
    },
    /// The table of mounts is malformed.
    #[error("{}: line {line} of {MOUNTINFO} cannot be understood", path.display())]
    NoMount {
        /// The path whose layers were requested.
        path: PathBuf,
        /// Number of the malformed line, counted from 1.
        line: usize,
    },
}

/// Describes what is below a path. `devices` and `disks` are empty if there is no block device (tmpfs, network file
/// systems), or if the devices are unknown (a pool without `zpool`). `size` is the size of a file or device in bytes,
/// and 0 for a directory. Host names in the sources of network file systems are removed.
///
/// # Errors
/// The path is missing or is not storage, or /proc or /sys cannot be read.
pub fn target(host: &dyn Host, path: &Path) -> Result<TargetInfo, TargetError> {
    let unreadable = |error: HostError| match error {
        error if error.is_absent() => TargetError::Missing {
            path: path.to_owned(),
        },
        error => TargetError::Unreadable {
            path: path.to_owned(),
            error,
        },
    };
    let below = |error| TargetError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let stat = host.stat(path).map_err(unreadable)?;
    let kind = match stat.kind {
        FileKind::Directory => TargetKind::Directory,
        FileKind::Regular => TargetKind::File,
        FileKind::BlockDevice => TargetKind::BlockDevice,
        FileKind::Other => {
            return Err(TargetError::NotStorage {
                path: path.to_owned(),
            });
        }
    };
    let mut info = TargetInfo {
        name: path.to_string_lossy().into_owned(),
        kind,
        fs_type: None,
        mount_point: None,
        mount_options: None,
        mount_source: None,
        devices: Vec::new(),
        disks: Vec::new(),
        size: Bytes(0),
        free: None,
    };
    let devices = if kind == TargetKind::BlockDevice {
        let device = Device::of_number(host, stat.rdev).map_err(below)?;
        info.size = Bytes(device.size(host).map_err(below)?);
        vec![device]
    } else {
        let real = host.realpath(path).map_err(unreadable)?;
        let mounts = read_mounts(host, path)?;
        let mount = mountinfo::of(&mounts, &real);
        let lossy = |text: &OsStr| text.to_string_lossy().into_owned();
        if let Some(mount) = mount {
            info.fs_type = Some(mount.fs_type.clone());
            info.mount_point = Some(lossy(mount.point.as_os_str()));
            info.mount_options = Some(crate::redact::mount_options(&mount.all_options()));
            let source = lossy(&mount.source);
            info.mount_source = Some(crate::redact::mount_source(&mount.fs_type, &source));
        }
        info.free = host.statfs(path).ok().map(|found| Bytes(found.available));
        if kind == TargetKind::File {
            info.size = Bytes(stat.size);
        }
        match mount {
            Some(mount) => devices_of(host, &mounts, mount, 0).map_err(below)?,
            // The root directory of a chroot need not be a mount, so its file system is unknown. If
            // the file system has a device, the number of the directory is the number of that
            // device.
            None if stat.dev.major != 0 => find_numbered_device(host, stat.dev).map_err(below)?,
            None => Vec::new(),
        }
    };
    let mut disks = Vec::new();
    for device in &devices {
        bottoms(host, device, 0, &mut disks).map_err(below)?;
    }
    let names = |mut names: Vec<String>| {
        names.sort();
        names.dedup();
        names
    };
    info.devices = names(devices.into_iter().map(|device| device.name).collect());
    info.disks = names(disks);
    Ok(info)
}

fn read_mounts(host: &dyn Host, path: &Path) -> Result<Vec<Mount>, TargetError> {
    let text = host
        .read(Path::new(MOUNTINFO))
        .map_err(|error| TargetError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
    mountinfo::parse(&text).map_err(|line| TargetError::NoMount {
        path: path.to_owned(),
        line,
    })
}

/// Returns the device with this number. The result is empty if sysfs is not mounted, as in a bare root directory.
fn find_numbered_device(host: &dyn Host, number: DeviceNumber) -> Result<Vec<Device>, HostError> {
    let without_sysfs = || {
        matches!(
            host.stat(Path::new("/sys/dev")),
            Err(HostError::NotFound { .. })
        )
    };
    match Device::of_number(host, number) {
        Err(HostError::NotFound { .. }) if without_sysfs() => Ok(Vec::new()),
        device => device.map(|device| vec![device]),
    }
}

/// Returns the block devices directly under a mount.
pub(crate) fn devices_of(
    host: &dyn Host,
    mounts: &[Mount],
    mount: &Mount,
    depth: usize,
) -> Result<Vec<Device>, HostError> {
    if depth > MAX_DEPTH {
        return Ok(Vec::new());
    }
    if mount.dev.major != 0 {
        return find_numbered_device(host, mount.dev);
    }
    match mount.fs_type.as_str() {
        "zfs" => pool_devices(host, &mount.source),
        "overlay" => {
            let Some(upper) = mount.super_option("upperdir") else {
                return Ok(Vec::new());
            };
            let upper = PathBuf::from(OsString::from_vec(mountinfo::unescape(upper.as_bytes())));
            // In a container the directory may be outside of the visible tree; then no device can
            // be named.
            let Ok(real) = host.realpath(&upper) else {
                return Ok(Vec::new());
            };
            match mountinfo::of(mounts, &real) {
                Some(below) if below != mount => devices_of(host, mounts, below, depth + 1),
                _ => Ok(Vec::new()),
            }
        }
        "btrfs" => {
            let Some(device) = find_node(host, &mount.source)? else {
                return Ok(Vec::new());
            };
            btrfs_members(host, device)
        }
        // The source of bcachefs is a list of members: `/dev/sda:/dev/sdb`.
        _ => {
            let sources = mount.source.as_bytes().split(|&byte| byte == b':');
            let nodes = sources.filter(|source| source.starts_with(b"/dev/"));
            let found = nodes
                .map(|source| find_node(host, OsStr::from_bytes(source)))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(found.into_iter().flatten().collect())
        }
    }
}

fn find_node(host: &dyn Host, source: &OsStr) -> Result<Option<Device>, HostError> {
    match Device::of_node(host, Path::new(source)) {
        Err(error) if error.is_absent() => Ok(None),
        other => other,
    }
}

/// Returns all members of a btrfs file system from sysfs, because the mount has only one of the members as its source.
fn btrfs_members(host: &dyn Host, device: Device) -> Result<Vec<Device>, HostError> {
    let base = Path::new("/sys/fs/btrfs");
    for uuid in host.list(base).unwrap_or_default() {
        let Ok(members) = host.list(&base.join(&uuid).join("devices")) else {
            continue;
        };
        if members.iter().any(|member| member == device.name.as_str()) {
            return members
                .iter()
                .map(|member| Device::of_name(host, member))
                .collect();
        }
    }
    Ok(vec![device])
}

/// Returns the leaf devices of the pool of a dataset from `zpool status -LP`.
fn pool_devices(host: &dyn Host, dataset: &OsStr) -> Result<Vec<Device>, HostError> {
    let pool = dataset
        .as_bytes()
        .split(|&byte| byte == b'/')
        .next()
        .unwrap_or_default();
    let argv = ["zpool", "status", "-LP"].map(OsStr::new);
    let argv: Vec<&OsStr> = argv.into_iter().chain([OsStr::from_bytes(pool)]).collect();
    let Ok(output) = host.run(&argv, Limits::default()) else {
        return Ok(Vec::new());
    };
    let leaves = crate::zpool::leaves(&output.text());
    let found = leaves
        .iter()
        .map(|leaf| below_file(host, Path::new(leaf), 1))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Returns the disks at the bottom of a device: below partitions, device mapper, md and the files
/// of loop devices.
pub(crate) fn bottoms(
    host: &dyn Host,
    device: &Device,
    depth: usize,
    out: &mut Vec<String>,
) -> Result<(), HostError> {
    if depth > MAX_DEPTH {
        return Ok(());
    }
    if let Some(disk) = device.disk(host)? {
        return bottoms(host, &disk, depth + 1, out);
    }
    let mut below = device.slaves(host)?;
    if let Some(file) = device.backing_file(host)? {
        below.extend(below_file(host, &file, depth + 1)?);
    }
    if below.is_empty() {
        out.push(device.name.clone());
    }
    below
        .iter()
        .try_for_each(|device| bottoms(host, device, depth + 1, out))
}

/// Returns the device at a path, or the devices under a file that is used as a device. The result is empty if the path
/// is not visible.
fn below_file(host: &dyn Host, file: &Path, depth: usize) -> Result<Vec<Device>, HostError> {
    match host.stat(file) {
        Ok(stat) if stat.kind == FileKind::BlockDevice => {
            return Device::of_number(host, stat.rdev).map(|device| vec![device]);
        }
        Ok(_) => {}
        Err(_) => return Ok(Vec::new()),
    }
    let Ok(real) = host.realpath(file) else {
        return Ok(Vec::new());
    };
    let Ok(mounts) = mountinfo::parse(&host.read(Path::new(MOUNTINFO))?) else {
        return Ok(Vec::new());
    };
    match mountinfo::of(&mounts, &real) {
        Some(mount) => devices_of(host, &mounts, mount, depth),
        None => Ok(Vec::new()),
    }
}
