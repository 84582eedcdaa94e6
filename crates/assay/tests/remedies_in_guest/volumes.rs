//! Arrays of md, logical volumes, encrypted devices and partitions with faults, and their remedies.

use crate::Remedy;

/// `md1` has lost a disk, `md2` is rebuilt slowly, `md3` does not run, the parity of `md4` is wrong; the group `lost`
/// has lost a disk, `vols` has a full thin pool and a full snapshot; the second disk of scsi_debug has a partition
/// between two blocks and an encrypted file system.
pub(crate) const SETUP: &str = r#"
# udev assembles what is found, and would be faster than these commands.
ln -s /dev/null /etc/udev/rules.d/64-md-raid-assembly.rules
udevadm control --reload
disk=/dev/disk/by-id/virtio-d5
printf 'label: gpt\n,24M\n,24M\n,24M\n,24M\n,24M\n,24M\n,24M\n,24M\n,24M\n,24M\n,24M\n,96M\n,64M\n' | sfdisk -q "$disk"
udevadm settle
array() { yes | mdadm --create "$@"; }
array /dev/md1 --level=1 --raid-devices=2 --assume-clean $(part 5 1) $(part 5 2)
mdadm /dev/md1 --fail $(part 5 2) --remove $(part 5 2)
array /dev/md3 --level=1 --raid-devices=2 --assume-clean $(part 5 3) $(part 5 4)
mdadm --stop /dev/md3
mdadm --zero-superblock $(part 5 4)
mdadm --incremental $(part 5 3)
dd if=/dev/urandom of=$(part 5 5) bs=1M count=4 seek=2 status=none
array /dev/md4 --level=5 --raid-devices=3 --assume-clean $(part 5 5) $(part 5 6) $(part 5 7)
dd if=/dev/urandom of=$(part 5 6) bs=1M count=4 seek=4 conv=notrunc status=none
echo check > /sys/block/md4/md/sync_action
idle
array /dev/md2 --level=1 --raid-devices=2 --assume-clean --spare-devices=1 $(part 5 8) $(part 5 9) $(part 5 10)
echo 1 > /proc/sys/dev/raid/speed_limit_min
echo 1 > /proc/sys/dev/raid/speed_limit_max
mdadm /dev/md2 --fail $(part 5 9)

set -- $(cat /root/scsi)
vgcreate -q lost "$3" "$4"
lvcreate -q -y --type raid1 -m 1 -L 16M -n twice lost
lvchange --syncaction check lost/twice 2>/dev/null || true
vgcreate -q vols $(part 5 12)
lvcreate -q -y -T -L 16M vols/pool
lvcreate -q -y -V 32M -T vols/pool -n thin
dd if=/dev/urandom of=/dev/vols/thin bs=1M count=15 oflag=direct status=none
lvcreate -q -y -L 12M -n origin vols
lvcreate -q -y -s -L 8M -n old vols/origin
dd if=/dev/urandom of=/dev/vols/origin bs=512K count=15 oflag=direct status=none
echo 1 > "/sys/block/${4#/dev/}/device/delete"
dd if=/dev/urandom of=/dev/lost/twice bs=1M count=4 oflag=direct status=none

printf 'label: dos\nunit: sectors\n63,32768,83\n49152,65536,83\n' | sfdisk -q "$2"
udevadm settle
mkfs.ext4 -q "${2}1"
mkdir -p /srv/odd /srv/secret
mount "${2}1" /srv/odd
echo kept > /srv/odd/kept
printf secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "${2}2" -
printf secret | cryptsetup open "${2}2" vault -d -
mkfs.ext4 -q /dev/mapper/vault
mount /dev/mapper/vault /srv/secret
systemctl enable fstrim.timer
"#;

pub(crate) const REMEDIES: &[Remedy] = &[
    Remedy {
        page: "md-rebuilding",
        about: "md2",
        steps: "echo 200000 > /proc/sys/dev/raid/speed_limit_max
            @[mdadm --detail] | grep faulty
            idle
            mdadm /dev/md2 --remove failed
            @[mdadm /dev/md2 --add|/dev/NEW=$(part 5 9)]
            @[cat /proc/mdstat]",
        undo: "",
    },
    Remedy {
        page: "md-degraded",
        about: "md1",
        steps: "@[mdadm --detail] | grep removed
            @[mdadm /dev/md1 --add|/dev/NEW=$(part 5 2)]
            idle",
        undo: "@[mdadm /dev/md1 --fail|/dev/NEW=$(part 5 2)]",
    },
    Remedy {
        page: "md-stopped",
        about: "inactive",
        steps: "@[mdadm --examine] $(part 5 3)
            @[mdadm --stop]
            @[mdadm --assemble|DISKS=$(part 5 3)]
            mdadm $(ls /dev/md3 /dev/md127 2>/dev/null | head -1) --add $(part 5 4)
            idle",
        undo: "",
    },
    Remedy {
        page: "md-mismatch",
        about: "md4",
        steps: "@[echo repair]
            idle
            @[echo check]
            idle",
        undo: "",
    },
    Remedy {
        page: "lvm-not-whole",
        about: "lost/twice",
        steps: "@[lvs -a]
            @[vgextend|GROUP=lost|/dev/NEW=$(part 5 13)]
            yes | @[lvconvert --repair]",
        undo: "",
    },
    Remedy {
        page: "lvm-disk-missing",
        about: "lost",
        steps: "@[pvs -o]
            @[vgreduce]",
        undo: "",
    },
    Remedy {
        page: "lvm-thin-nearly-full",
        about: "vols/pool",
        steps: "@[lvextend --size|+10G=+8M]
            @[lvextend --poolmetadatasize|+256M=+4M]",
        undo: "",
    },
    Remedy {
        page: "lvm-snapshot-nearly-full",
        about: "vols/old",
        steps: "@[lvextend --size|+10G=+4M]
            yes | @[lvremove]",
        undo: "",
    },
    Remedy {
        page: "trim-swallowed",
        about: "/srv/secret",
        steps: "printf secret | @[cryptsetup --allow-discards] --key-file -
            @[fstrim]",
        undo: "printf secret | @[cryptsetup --persistent refresh] --key-file -",
    },
    Remedy {
        page: "dm-crypt-work-queues",
        about: "vault",
        steps: "printf secret | @[cryptsetup refresh] --key-file -",
        undo: "printf secret | cryptsetup --persistent refresh vault --key-file -",
    },
    Remedy {
        page: "partition-misaligned",
        about: "1",
        steps: "disk=$(sed -n 2p /root/scsi)
            cp /srv/odd/kept /root/odd
            umount /srv/odd
            printf '2048,32768,83\n' | sfdisk -q --no-reread -N 1 $disk
            blockdev --rereadpt $disk 2>/dev/null || partx -u $disk
            test $(cat /sys/block/${disk#/dev/}/${disk#/dev/}1/alignment_offset) = 0
            mkfs.ext4 -q -F ${disk}1
            mount ${disk}1 /srv/odd
            cp /root/odd /srv/odd/kept",
        undo: "",
    },
];
