//! Builds QEMU's command line for a guest.

use crate::accel::Accel;
use crate::devices::Places;
use crate::disk::Disk;
use crate::error::LabError;
use crate::files::DiskFiles;
use crate::image::Image;
use crate::options::GuestOptions;
use crate::tools;
use assay_protocol::{PORT_NAME, PORTS};
use serde_json::json;
use std::ffi::OsString;

/// Returns QEMU's arguments. QEMU works in the guest's directory, so the names of sockets, console and initramfs are
/// relative.
pub(crate) fn qemu_arguments(
    image: &Image,
    options: &GuestOptions,
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
    // panic=-1 with -no-reboot: a guest that panics ends. no_timer_check: on a busy host an emulated timer is
    // late, and the kernel would panic. fastboot: without fsck, because mounting replays the journal. machine_id: the
    // image has none (all zeros), without which systemd-journald does not start a second time; there is no network, so
    // any id will do.
    add(&[
        "-append",
        "root=/dev/vda rootfstype=ext4 rw fastboot console=ttyS0 quiet panic=-1 no_timer_check net.ifnames=0 \
         systemd.unit=lab.target systemd.show_status=0 systemd.log_level=warning \
         systemd.machine_id=6173736179206c61622067756573740a",
    ]);
    arguments.push("-kernel".into());
    arguments.push(image.kernel().into());
    arguments.push("-initrd".into());
    arguments.push("initrd".into());
    // Changes go to an unnamed temporary file, so the image stays unchanged.
    let mut root = OsString::from("if=none,id=root,format=raw,snapshot=on,cache=unsafe,file=");
    root.push(assay_qemu::escape_path(image.root()));
    arguments.push("-drive".into());
    arguments.push(root);
    arguments.push("-device".into());
    arguments.push("virtio-blk-pci,drive=root,serial=assay-root".into());
    let mut places = Places::default();
    for (disk, files) in disks {
        for part in places.parts(disk, files)? {
            let (option, value) = part.option();
            arguments.extend([option.into(), value.to_string().into()]);
        }
    }
    if options.assay.is_some() {
        // Last, so that the names of other disks do not depend on it.
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
