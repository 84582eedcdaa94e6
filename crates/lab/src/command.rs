//! QEMU's command line for a guest.

use crate::accel::Accel;
use crate::disk::{self, Disk};
use crate::error::LabError;
use crate::guest::Options;
use crate::image::Image;
use crate::tools;
use crate::wire::{PORT_NAME, PORTS};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// Where a disk's data lie; for a disk whose writes are logged, also what it held at first, and the
/// log.
pub(crate) struct DiskFiles {
    pub(crate) data: PathBuf,
    pub(crate) logged: Option<Logged>,
}

/// Files of a disk whose writes are logged.
pub(crate) struct Logged {
    pub(crate) first: PathBuf,
    pub(crate) log: PathBuf,
}

/// QEMU could not be started at all.
pub(crate) fn start_error(error: std::io::Error) -> LabError {
    match error.kind() {
        std::io::ErrorKind::NotFound => LabError::Missing {
            tool: QEMU,
            package: "qemu-system-x86",
        },
        _ => LabError::Qemu(error.to_string()),
    }
}

/// A path within a comma-separated option: commas are doubled (qemu(1)).
pub(crate) fn escape(path: &OsStr) -> OsString {
    let mut bytes = Vec::with_capacity(path.len());
    for byte in path.as_bytes() {
        bytes.push(*byte);
        if *byte == b',' {
            bytes.push(b',');
        }
    }
    OsString::from_vec(bytes)
}

/// Arguments for a guest whose QEMU works in the guest's directory: the names of sockets, console
/// and initramfs are relative to it.
pub(crate) fn arguments(
    image: &Image,
    options: &Options,
    accel: Accel,
    disks: &[(Disk, DiskFiles)],
) -> Result<Vec<OsString>, LabError> {
    let (name, cpus, memory_mib) = (&options.name, options.cpus(), options.memory_mib());
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
    add(&["-name", &format!("assay-lab-{name}")]);
    add(&[
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
    ]);
    let (machine, cpu) = match accel {
        Accel::Kvm => ("kvm", "host"),
        Accel::Tcg => ("tcg,thread=multi", "max"),
    };
    let cpu = options.cpu_model.as_deref().unwrap_or(cpu);
    add(&["-machine", "pc", "-accel", machine, "-cpu", cpu]);
    add(&["-smp", &cpus.to_string(), "-m", &memory_mib.to_string()]);
    add(&["-device", "virtio-rng-pci"]);
    add(&["-qmp", "unix:qmp,server=on,wait=off"]);
    add(&["-chardev", "file,id=console,path=console.log"]);
    add(&["-serial", "chardev:console"]);
    add(&["-device", "virtio-serial-pci,id=serial"]);
    for port in 0..PORTS {
        add(&[
            "-chardev",
            &format!("socket,id=port{port},path=port.{port},server=on,wait=off"),
            "-device",
            &format!("virtserialport,chardev=port{port},name={PORT_NAME}{port}"),
        ]);
    }
    // panic=-1 with -no-reboot: a guest that panics ends. no_timer_check: on a busy machine an
    // emulator is so late with the first ticks that the kernel takes its timer for broken.
    add(&[
        "-append",
        "root=LABEL=assay-lab rw console=ttyS0 quiet panic=-1 no_timer_check net.ifnames=0 \
         systemd.unit=lab.target systemd.show_status=0 systemd.log_level=warning",
    ]);
    arguments.push("-kernel".into());
    arguments.push(image.kernel().into());
    arguments.push("-initrd".into());
    arguments.push("initrd".into());
    // Its changes go to a temporary file that has no name: the image stays as it is.
    let mut root = OsString::from("if=none,id=root,format=raw,snapshot=on,cache=unsafe,file=");
    root.push(escape(image.root().as_os_str()));
    arguments.push("-drive".into());
    arguments.push(root);
    arguments.push("-device".into());
    arguments.push("virtio-blk-pci,drive=root,serial=assay-root".into());
    if disks
        .iter()
        .any(|(disk, _)| disk.format == disk::Format::Luks)
    {
        let secret = json!({ "qom-type": "secret", "id": "secret", "data": disk::SECRET });
        arguments.push("-object".into());
        arguments.push(secret.to_string().into());
    }
    for (disk, files) in disks {
        disk.check()?;
        let text = |path: &PathBuf| {
            path.to_str()
                .map(str::to_owned)
                .ok_or_else(|| LabError::Disk {
                    name: disk.name.clone(),
                    reason: format!("{}: QEMU takes only names in UTF-8", path.display()),
                })
        };
        let log = files.logged.as_ref().map(|logged| text(&logged.log));
        let log = log.transpose()?;
        if let Some(group) = disk.throttle_group() {
            arguments.push("-object".into());
            arguments.push(group.to_string().into());
        }
        for node in disk.nodes(&text(&files.data)?, log.as_deref()) {
            arguments.push("-blockdev".into());
            arguments.push(node.to_string().into());
        }
    }
    let plain: Vec<Disk> = disks.iter().map(|(disk, _)| disk.clone()).collect();
    arguments.extend(disk::devices(&plain)?.into_iter().map(OsString::from));
    if options.assay.is_some() {
        // Last, so that the names of the other disks do not depend on it.
        let node = json!({
            "driver": "raw", "node-name": tools::SERIAL, "read-only": true,
            "file": { "driver": "file", "filename": tools::FILE },
        });
        let device = json!({
            "driver": "virtio-blk-pci", "drive": tools::SERIAL, "serial": tools::SERIAL,
        });
        arguments.extend(["-blockdev".into(), node.to_string().into()]);
        arguments.extend(["-device".into(), device.to_string().into()]);
    }
    Ok(arguments)
}
