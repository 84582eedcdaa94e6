//! Finds lines of crypttab that format a disk by a name that may change (crypttab(5)), and lines of fstab that mount a
//! disk of the network before the network is up (systemd.mount(5)), or that continue after errors of ext4 (ext4(5)).

use super::super::lines_of_files::read;
use super::Misuses;
use crate::gather::Gather;

const CRYPTTAB: &str = "/etc/crypttab";
/// Files with the command line of the kernel at the next boot.
const BOOT_LINES: [&str; 4] = [
    "/etc/default/grub",
    "/etc/kernel/cmdline",
    "/boot/firmware/cmdline.txt",
    "/boot/cmdline.txt",
];
const FSTAB: &str = "/etc/fstab";
/// Names of disks that depend on the order in which the kernel finds them.
const BY_ORDER: [&str; 6] = [
    "/dev/sd",
    "/dev/hd",
    "/dev/vd",
    "/dev/xvd",
    "/dev/nvme",
    "/dev/mmcblk",
];
/// Options with which systemd knows that a mount needs the network, or does not mount the disk at boot.
const LATE: [&str; 4] = ["_netdev", "noauto", "nofail", "x-systemd.automount"];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_crypttab(g);
    note_fstab(g);
    note_root_flags(g);
}

fn note_crypttab(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    for line in read(g, "crypttab_line", CRYPTTAB) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let [name, source, _, options, ..] = words[..] else {
            continue;
        };
        let formats = options
            .split(',')
            .any(|option| option == "swap" || option == "tmp" || option.starts_with("tmp="));
        // Of these kinds, cryptsetup opens only a partition that has their header.
        let needs_header = options
            .split(',')
            .any(|option| ["luks", "tcrypt", "bitlk"].contains(&option));
        if name.starts_with('#') || !formats || needs_header {
            continue;
        }
        let by_order = BY_ORDER.iter().any(|start| source.starts_with(start));
        found.add("formats_by_order", by_order, line.place);
    }
    found.note(g, "crypttab_line");
}

/// Notes `rootflags=` of the boot loader that let ext4 write metadata before the data.
fn note_root_flags(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    for path in BOOT_LINES {
        for line in read(g, "root_flags", path) {
            let text = line.text.trim();
            if text.starts_with('#') {
                continue;
            }
            let words = text.split(|letter: char| letter.is_whitespace() || "\"'".contains(letter));
            let flags = words
                .filter_map(|word| word.strip_prefix("rootflags="))
                .next_back();
            let data = flags.and_then(|flags| {
                flags
                    .split(',')
                    .rev()
                    .find_map(|flag| flag.strip_prefix("data="))
            });
            if let Some(data) = data {
                found.add("writeback", data == "writeback", line.place);
            }
        }
    }
    found.note(g, "root_flags");
}

fn note_fstab(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    for line in read(g, "fstab_disk", FSTAB) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let [source, _, kind, options, ..] = words[..] else {
            continue;
        };
        if source.starts_with('#') {
            continue;
        }
        let options: Vec<&str> = options.split(',').collect();
        let remote = source.starts_with("/dev/disk/by-path/") && source.contains("-iscsi-")
            || source.starts_with("/dev/nbd")
            || source.starts_with("/dev/rbd");
        if remote {
            let late = options.iter().any(|option| LATE.contains(option));
            found.add("early", !late, line.place.clone());
        }
        // The last value applies.
        let errors = options
            .iter()
            .rev()
            .find_map(|one| one.strip_prefix("errors="));
        if let (Some(errors), true) = (errors, kind.starts_with("ext")) {
            found.add("errors_continue", errors == "continue", line.place);
        }
    }
    found.note(g, "fstab_disk");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn lines_and_their_near_misses() {
        for (path, text, expected) in [
            (
                CRYPTTAB,
                "s /dev/sdb2 /dev/urandom swap,size=512\n",
                "formats_by_order=true",
            ),
            (
                CRYPTTAB,
                "s PARTUUID=1-2 /dev/urandom swap,size=512\n",
                "formats_by_order=false",
            ),
            (
                CRYPTTAB,
                "s /dev/vg/swap /dev/urandom swap\n",
                "formats_by_order=false",
            ),
            (
                CRYPTTAB,
                "t /dev/nvme0n1p3 /dev/urandom tmp=ext4\n",
                "formats_by_order=true",
            ),
            (CRYPTTAB, "d /dev/sdb2 none luks\n", ""),
            (CRYPTTAB, "s /dev/sdb2 /etc/keys/swap swap,luks\n", ""),
            (CRYPTTAB, "#s /dev/sdb2 /dev/urandom swap\n", ""),
            (
                FSTAB,
                "/dev/disk/by-path/ip-10.0.0.5:3260-iscsi-iqn.a-lun-0 /a xfs defaults 0 2\n",
                "early=true",
            ),
            (
                FSTAB,
                "/dev/disk/by-path/ip-10.0.0.5:3260-iscsi-iqn.a-lun-0 /a xfs _netdev 0 2\n",
                "early=false",
            ),
            (
                FSTAB,
                "/dev/disk/by-path/pci-0000:00:17.0-ata-1 /a xfs defaults 0 2\n",
                "",
            ),
            (
                FSTAB,
                "UUID=1 / ext4 errors=remount-ro,errors=continue 0 1\n",
                "errors_continue=true",
            ),
            (
                FSTAB,
                "UUID=1 / ext4 errors=continue,errors=remount-ro 0 1\n",
                "errors_continue=false",
            ),
            (FSTAB, "UUID=1 / ext4 defaults 0 1\n", ""),
            (
                BOOT_LINES[0],
                "GRUB_CMDLINE_LINUX=\"rootflags=noatime,data=writeback\"\n",
                "writeback=true",
            ),
            (
                BOOT_LINES[1],
                "root=/dev/sda1 rootflags=data=ordered\n",
                "writeback=false",
            ),
            (BOOT_LINES[1], "root=/dev/sda1 rootflags=subvol=@\n", ""),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
