//! Remedies that the host of a guest executes: another processor, another bus of a disk.

use super::{Remedy, command, find, findings, paste};
use crate::common::pools::Lab;
use assay_lab::disk::Bus;
use assay_lab::{Disk, GuestOptions, Zfs};

/// A disk that is unlocked when the guest starts.
const SETUP: &str = "echo 'vault /dev/disk/by-id/virtio-own none luks' > /etc/crypttab";

const fn remedy(page: &'static str, about: &'static str) -> Remedy {
    Remedy {
        page,
        about,
        steps: "",
        undo: "",
    }
}

#[test]
fn remedies_on_the_host_clear_findings_of_its_guest() {
    let Some(lab) = Lab::new(Zfs::Stable) else {
        return;
    };
    let remedies = [
        remedy("guest-disk-emulated", ""),
        remedy("encrypted-disk-without-aes", ""),
    ];
    let old = |options: &mut GuestOptions| {
        options.cpu_model = Some("max,-aes".to_owned());
        options.disks = vec![Disk {
            bus: Bus::Sata,
            ..Disk::scratch("own", 64 << 20)
        }];
    };
    let guest = lab.boot_with("host", old);
    guest.sh(SETUP);
    let before = findings(&guest);
    let [disk, aes] = remedies.each_ref().map(|remedy| find(&before, remedy));
    let disk = disk.expect("guest-disk-emulated does not fire");
    let aes = aes.expect("encrypted-disk-without-aes does not fire");
    guest.sh(&paste(disk, "@[update-initramfs -u]").unwrap());
    // The commands for Proxmox VE and libvirt choose what the lab chooses by `-cpu` of QEMU.
    command(aes, "qm set VMID --cpu").unwrap();
    drop(guest);
    let new = |options: &mut GuestOptions| {
        options.cpu_model = Some("max".to_owned());
        options.disks = vec![Disk::scratch("own", 64 << 20)];
    };
    let guest = lab.boot_with("host", new);
    guest.sh(SETUP);
    let after = findings(&guest);
    for remedy in &remedies {
        assert_eq!(find(&after, remedy), None, "{}", remedy.page);
    }
    // The encrypted disk is worth the flag: the kernel has the module for it.
    guest.sh("grep -qw aes /proc/cpuinfo");
}
