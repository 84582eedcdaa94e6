//! Tests command lines of plain QEMU, of libvirt and of Proxmox.

use super::*;

fn machine(lines: &str) -> QemuMachine {
    let argv: Vec<String> = lines.lines().map(str::to_owned).collect();
    parse(&argv)
}

/// Formats `id bus cache aio iothread formats storage` of each disk.
fn table(machine: &QemuMachine) -> Vec<String> {
    let row = |disk: &VirtualDisk| {
        let get = |key: &str| disk.settings.get(key).map_or("?", String::as_str);
        let storage = match &disk.storage {
            Storage::File(path) => path.display().to_string(),
            Storage::Elsewhere(driver) => format!("[{driver}]"),
            Storage::Nothing => "-".to_owned(),
        };
        format!(
            "{} {} {} {} {} {} {storage}",
            disk.id,
            disk.bus,
            get("cache"),
            get("aio"),
            get("iothread"),
            disk.formats.join(">")
        )
    };
    machine.disks.iter().map(row).collect()
}

/// The command line was recorded with libvirt 9.0.0 and QEMU 7.2: a transient domain of type qemu.
#[test]
fn libvirt() {
    let found = machine(include_str!(
        "../../../fixtures/qemu-7.2-libvirt-9.0-cmdline.txt"
    ));
    assert_eq!(found.name.as_deref(), Some("web"));
    assert_eq!(found.settings["machine"], "pc-q35-7.2");
    assert_eq!(found.settings["cpu"], "qemu64");
    assert_eq!(found.settings["accel"], "tcg");
    assert_eq!(
        table(&found),
        [
            "virtio-disk0 virtio-blk none native yes qcow2 /var/lib/libvirt/images/over.qcow2",
            "sata0-0-0 sata writethrough threads no raw /var/lib/libvirt/images/raw.img",
            "scsi0-0-0-1 virtio-scsi unsafe threads no qcow2 /var/lib/libvirt/images/v3.qcow2",
        ]
    );
    assert_eq!(found.disks[0].settings["discard"], "unmap");
    assert_eq!(found.disks[1].settings["discard"], "ignore");
    assert!(!format!("{found:?}").contains("S3RIAL"));
}

/// The libvirt XML of the domain in the previous test gives the same settings as the QEMU command line of this domain.
#[test]
fn libvirt_and_its_command_line_agree() {
    let status = include_str!("../../../fixtures/libvirt-9.0-domstatus.xml");
    let domain = crate::libvirt::parse(status).unwrap();
    let found = machine(include_str!(
        "../../../fixtures/qemu-7.2-libvirt-9.0-cmdline.txt"
    ));
    assert_eq!(domain.name, "web");
    assert!(domain.pid.is_some());
    assert_eq!(domain.disks.len(), found.disks.len());
    for (xml, line) in domain.disks.iter().zip(&found.disks) {
        for key in [
            "cache",
            "aio",
            "discard",
            "iothread",
            "direct",
            "write_cache",
        ] {
            assert_eq!(xml.settings.get(key), line.settings.get(key), "{key}");
        }
        let told = (&xml.bus, &xml.storage, &xml.formats);
        assert_eq!(told, (&line.bus, &line.storage, &line.formats));
    }
    let redacted = crate::libvirt::redact(status, false);
    assert!(!redacted.contains("web") && !redacted.contains("over.qcow2"));
    let again = crate::libvirt::parse(&redacted).unwrap();
    let settings = |domain: &crate::libvirt::Domain| -> Vec<_> {
        let disks = domain.disks.iter();
        disks
            .map(|disk| (disk.bus.clone(), disk.settings.clone()))
            .collect()
    };
    assert_eq!(settings(&again), settings(&domain));
}

/// The command line was recorded: a guest of `assay lab`, QEMU 7.2.
#[test]
fn plain() {
    let found = machine(include_str!("../../../fixtures/qemu-7.2-plain-cmdline.txt"));
    assert!(found.name.unwrap().starts_with("assay-lab"));
    let root = &found.disks[0];
    assert_eq!(
        (root.id.as_str(), root.bus.as_str()),
        ("root", "virtio-blk")
    );
    assert_eq!(root.settings["cache"], "unsafe");
    assert_eq!(root.settings["snapshot"], "on");
    let second = &found.disks[1];
    assert_eq!(second.settings["cache"], "writeback");
    assert_eq!(second.settings["discard"], "unmap");
    assert_eq!(second.formats, ["raw"]);
}

/// The command lines are modelled on those of qemu-server (6.x with `-drive`, 9.x with `-blockdev`), but not recorded.
#[test]
fn proxmox() {
    let six = "/usr/bin/kvm\n-id\n100\n-name\nweb\n-smp\n4,sockets=1,cores=4,maxcpus=4\n-nodefaults\n\
        -cpu\nkvm64,enforce,+kvm_pv_eoi\n-object\niothread,id=iothread-virtioscsi0\n\
        -readconfig\n/usr/share/qemu-server/pve-q35-4.0.cfg\n\
        -drive\nif=none,id=drive-ide2,media=cdrom,aio=io_uring\n\
        -device\nide-cd,bus=ide.1,unit=0,drive=drive-ide2,id=ide2\n\
        -device\nvirtio-scsi-pci,id=virtioscsi0,bus=pci.3,addr=0x1,iothread=iothread-virtioscsi0\n\
        -drive\nfile=/dev/zvol/rpool/data/vm-100-disk-0,if=none,id=drive-scsi0,format=raw,cache=none,aio=io_uring,detect-zeroes=on\n\
        -device\nscsi-hd,bus=virtioscsi0.0,channel=0,scsi-id=0,lun=0,drive=drive-scsi0,id=scsi0,bootindex=100\n\
        -drive\nfile=rbd:pool/vm-100-disk-1:mon_host=192.0.2.1,if=none,id=drive-virtio1,format=raw\n\
        -device\nvirtio-blk-pci,drive=drive-virtio1,id=virtio1\n\
        -machine\ntype=q35+pve0\n";
    let found = machine(six);
    assert_eq!(found.id.as_deref(), Some("100"));
    assert_eq!(found.settings["machine"], "q35+pve0");
    assert_eq!(found.unknown, Vec::<String>::new());
    assert_eq!(
        table(&found),
        [
            "scsi0 virtio-scsi none io_uring yes raw /dev/zvol/rpool/data/vm-100-disk-0",
            "virtio1 virtio-blk writeback threads no raw [rbd]",
        ]
    );
    let nine = r#"/usr/bin/kvm
-id
101
-blockdev
{"driver":"throttle","detect-zeroes":"unmap","discard":"unmap","file":{"driver":"qcow2","cache":{"direct":true,"no-flush":false},"discard":"unmap","file":{"aio":"io_uring","driver":"file","cache":{"direct":true,"no-flush":false},"filename":"/var/lib/vz/images/101/vm-101-disk-0.qcow2","discard":"unmap"}},"node-name":"drive-virtio0","throttle-group":"throttle-drive-virtio0"}
-device
virtio-blk-pci,drive=drive-virtio0,id=virtio0,iothread=iothread-virtio0,write-cache=on
-machine
hpet=off,type=pc+pve0
"#;
    let found = machine(nine);
    assert_eq!(
        table(&found),
        [
            "virtio0 virtio-blk none io_uring yes throttle>qcow2 /var/lib/vz/images/101/vm-101-disk-0.qcow2"
        ]
    );
    let disk = &found.disks[0];
    assert_eq!(disk.settings["detect_zeroes"], "unmap");
    assert_eq!(disk.settings["discard"], "unmap");
    // On Proxmox the group exists even without a limit.
    assert!(!disk.settings.contains_key("throttled"));
}

#[test]
fn short_forms() {
    let found = machine(
        "qemu-system-x86_64\n-hda\nold.img\n-drive\nfile=b.qcow2,if=virtio,cache=directsync\nimage.raw\n",
    );
    assert_eq!(
        table(&found),
        [
            "drive0 ide writeback threads no probed old.img",
            "drive1 virtio-blk directsync threads no probed b.qcow2",
            "drive2 ide writeback threads no probed image.raw",
        ]
    );
    let found = machine("qemu\n-M\nq35\n-hda\na\n-cdrom\nx.iso\n-pflash\nfw\n");
    assert_eq!(table(&found), ["drive0 sata writeback threads no probed a"]);
}

#[test]
fn a_circle_of_nodes_ends() {
    let found = machine(
        "qemu\n-blockdev\n{\"driver\":\"raw\",\"node-name\":\"a\",\"file\":\"b\"}\n-blockdev\n{\"driver\":\"raw\",\"node-name\":\"b\",\"file\":\"a\"}\n-device\nvirtio-blk-pci,drive=a\n",
    );
    assert_eq!(found.disks[0].storage, Storage::Elsewhere("raw".to_owned()));
}

/// The command line was recorded with QEMU 7.2.22. It has controllers without `id=` and disks without `bus=`. The
/// expected buses are those of `info qtree`.
#[test]
fn controllers_without_a_name() {
    let found = machine(include_str!(
        "../../../fixtures/qemu-7.2-controllers-without-id-cmdline.txt"
    ));
    assert_eq!(
        table(&found),
        [
            "d0 virtio-scsi writeback threads yes raw d0.img",
            "d1 virtio-scsi none native no raw d1.img",
            "d2 virtio-scsi writeback threads yes raw d2.img",
            "d3 virtio-blk writeback threads yes raw d3.img",
            "d4 virtio-blk writeback threads no raw d4.img",
            "d5 sata writeback threads no raw d5.img",
            "d6 ide writeback threads no raw d6.img",
        ]
    );
}

/// Bus names as `info qtree` of QEMU 7.2.22 prints them: only controllers without an id are counted, after the buses of
/// the board.
#[test]
fn buses_that_qemu_named() {
    let disks = |line: &str| table(&machine(&line.replace(' ', "\n")));
    let drives =
        "qemu -drive if=none,id=d0,file=a,format=raw -drive if=none,id=d1,file=b,format=raw";
    let both = |d0: &str, d1: &str| {
        let row = |id, file, middle: &str| {
            let (bus, thread) = middle.split_once(' ').unwrap();
            format!("{id} {bus} writeback threads {thread} raw {file}")
        };
        [row("d0", "a", d0), row("d1", "b", d1)]
    };
    assert_eq!(
        disks(&format!(
            "{drives} -device virtio-scsi-pci,id=x -device virtio-scsi-pci,iothread=io0 \
             -device scsi-hd,drive=d0,bus=scsi.0 -device scsi-hd,drive=d1,bus=x.0"
        )),
        both("virtio-scsi yes", "virtio-scsi no")
    );
    assert_eq!(
        disks(&format!(
            "{drives} -device lsi -device virtio-scsi-pci,id=z \
             -device scsi-hd,drive=d0 -device scsi-hd,drive=d1,bus=scsi.0"
        )),
        both("virtio-scsi no", "lsi no")
    );
    assert_eq!(
        disks(&format!(
            "{drives} -device ich9-ahci -device ide-hd,drive=d0,bus=ide.1 -device ide-hd,drive=d1,bus=ide.3"
        )),
        both("ide no", "sata no")
    );
    assert_eq!(
        disks(&format!(
            "{drives} -M q35 -device piix3-ide -device ide-hd,drive=d0,bus=ide.1 -device ide-hd,drive=d1"
        )),
        both("sata no", "ide no")
    );
}
