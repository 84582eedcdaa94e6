//! Pools with faults, and their remedies.

use crate::Remedy;

/// Pools of small partitions, so that one boot has all of them:
/// - `tank`: datasets, a volume, a log, a cache and a spare; the latter two lose their labels
/// - `damaged`: one device, whose blocks are overwritten
/// - `group`: a raidz1 with errors, and with one device offline
/// - `broken`: a mirror with one device overwritten, and a log
/// - `small`: sectors of 512 bytes on a disk of 4096
/// - `raided`: on an array of md
/// - `full`: what is left fills nine tenths
pub(crate) const SETUP: &str = r#"
for disk in 1 2 3 4; do
    printf 'label: gpt\n,96M\n,96M\n,96M\n,96M\n,96M\n' | sfdisk -q "/dev/disk/by-id/virtio-d$disk"
done
modprobe scsi_debug dev_size_mb=88 physblk_exp=3 add_host=4 lbpu=1 delay=0 per_host_store=1
udevadm settle
lsblk -dno NAME,MODEL | awk '$2 == "scsi_debug" { print "/dev/" $1 }' > /root/scsi
rm -f /etc/cron.d/zfsutils-linux
overwrite() { dd if=/dev/zero of="$1" bs=1M count=96 status=none; }
garble() { dd if=/dev/urandom of="$1" bs=1M seek=6 count=20 conv=notrunc status=none; }
fill() { head -c "$1" /dev/zero | openssl enc -aes-128-ctr -pass pass:x -pbkdf2 > "$2"; }

create -o ashift=12 tank $(part 1 1) log $(part 1 2) cache $(part 1 3) spare $(part 1 4)
zfs create -o sync=always tank/always
zfs create -o sync=disabled tank/disabled
zfs create -o compression=off tank/plain
zfs create -s -V 64M -o compression=off tank/zeros
fill 8M /tank/plain/kept
zfs snapshot tank/plain@kept
rm /tank/plain/kept
create -o ashift=12 damaged $(part 2 1)
create -o ashift=12 group raidz $(part 2 2) $(part 3 2) $(part 4 2)
zfs create -V 16M -b 8K group/old
create -o ashift=12 broken mirror $(part 2 3) $(part 3 3) log $(part 1 5)
create -o ashift=9 small "$(head -1 /root/scsi)"
echo kept > /small/kept
yes | mdadm --create /dev/md9 --level=1 --raid-devices=2 --assume-clean $(part 3 1) $(part 4 1)
create -o ashift=12 raided /dev/md9
echo kept > /raided/kept

fill 20M /damaged/lost
fill 20M /group/repaired
zpool export damaged
zpool export group
garble $(part 2 1)
garble $(part 3 2)
zpool import -d /dev/disk/by-id damaged
zpool import -d /dev/disk/by-id group
zpool scrub -w damaged
zpool scrub -w group
zpool offline group $(part 4 2)
zpool export broken
overwrite $(part 3 3)
zpool import -d /dev/disk/by-id broken
zpool export tank
overwrite $(part 1 3)
overwrite $(part 1 4)
zpool import -d /dev tank

create -o ashift=12 full /dev/disk/by-id/virtio-d6
zfs create -o compression=off -o checksum=off -o recordsize=1M -o copies=3 full/data
write() { dd if=/dev/zero of=/full/data/$1 bs=1M count=10 status=none; }
for file in $(seq 19); do write $file; done
zfs snapshot full/data@kept
rm /full/data/1*
for file in $(seq 20 60); do write $file || break; done
echo 268435456 > /sys/module/zfs/parameters/zfs_arc_min
echo 134217728 > /sys/module/zfs/parameters/zfs_arc_max
"#;

pub(crate) const REMEDIES: &[Remedy] = &[
    Remedy {
        page: "zfs-sync-always",
        about: "tank/always",
        steps: "@[zfs set sync=standard]",
        undo: "@[zfs set sync=always]",
    },
    Remedy {
        page: "zfs-sync-disabled",
        about: "tank/disabled",
        steps: "@[zfs set sync=standard]",
        undo: "@[zfs set sync=disabled]",
    },
    Remedy {
        page: "zfs-compression-off-set",
        about: "tank/plain",
        steps: "@[zfs set compression=lz4]",
        undo: "@[zfs set compression=off]",
    },
    Remedy {
        page: "zfs-zero-fill-uncompressed",
        about: "tank/zeros",
        steps: "@[zfs set compression=lz4]",
        undo: "@[zfs set compression=off]",
    },
    Remedy {
        page: "zfs-thin-promised",
        about: "tank",
        steps: "@[zfs list -t snapshot] | grep kept
            @[zfs destroy -nv|SNAPSHOT=tank/plain@kept]
            @[zfs destroy SNAPSHOT|SNAPSHOT=tank/plain@kept]
            @[zpool add|DISKS=$(part 4 4)]",
        undo: "",
    },
    Remedy {
        page: "zfs-kernel-names",
        about: "tank vdev 0",
        steps: "@[zpool export|POOL=tank]
            @[zpool import -d /dev/disk/by-id|POOL=tank]",
        undo: "@[zpool export|POOL=tank]
            @[zpool import -d /dev POOL|POOL=tank]",
    },
    Remedy {
        page: "zfs-log-alone",
        about: "broken vdev 1",
        steps: "@[zpool attach|POOL=broken|LOGDEVICE=$(part 1 5)|NEWDEVICE=$(part 2 5)]",
        undo: "@[zpool detach|POOL=broken|NEWDEVICE=$(part 2 5)]",
    },
    Remedy {
        page: "zfs-log-write-cache",
        about: "tank vdev",
        steps: "@[zpool remove|POOL=tank|LOGDEVICE=$(part 1 2)]",
        undo: "@[zpool add|POOL=tank|DEVICE=$(part 1 2)]",
    },
    Remedy {
        page: "zfs-nearly-full",
        about: "full",
        steps: "@[zfs list -o space] | grep kept || zfs list -t snapshot
            @[zfs destroy -nv|SNAPSHOT=full/data@kept]
            @[zfs destroy SNAPSHOT|SNAPSHOT=full/data@kept]
            zpool sync full",
        undo: "",
    },
    Remedy {
        page: "zfs-spare-lost",
        about: "tank",
        steps: "@[zpool status -LP]
            @[zpool remove tank DEVICE|DEVICE=$(part 1 3)]
            @[zpool remove tank DEVICE|DEVICE=$(part 1 4)]
            @[zpool add tank spare|NEW=$(part 1 4)]
            @[zpool add tank cache|NEW=$(part 1 3)]",
        undo: "",
    },
    Remedy {
        page: "zfs-data-errors",
        about: "damaged",
        steps: "@[zpool status -v] | grep /damaged/lost
            rm /damaged/lost
            @[zpool scrub]
            zpool wait -t scrub damaged
            @[zpool clear]
            @[zpool scrub]
            zpool wait -t scrub damaged",
        undo: "",
    },
    Remedy {
        page: "zfs-parity-small-blocks",
        about: "group/old",
        steps: "@[zfs create -b|SIZE=16M|NEW=group/new]
            udevadm settle
            @[qemu-img convert|NEW=group/new]
            @[qemu-img compare|NEW=group/new]
            zfs destroy group/old",
        undo: "",
    },
    Remedy {
        page: "zfs-pool-not-whole",
        about: "group",
        steps: "@[zpool status -x]
            @[zpool online|DEVICE=$(part 4 2)]
            zpool wait -t resilver group",
        undo: "@[zpool offline|DEVICE=$(part 4 2)]",
    },
    Remedy {
        page: "zfs-device-errors",
        about: "group",
        steps: "@[zpool scrub]
            zpool wait -t scrub group
            @[zpool clear]",
        undo: "",
    },
    Remedy {
        page: "zfs-pool-not-whole",
        about: "broken",
        steps: "@[zpool replace|OLD=$(part 3 3)|NEW=$(part 4 3)]
            zpool wait -t resilver broken",
        undo: "",
    },
    Remedy {
        page: "zfs-ashift-small",
        about: "small",
        steps: "@[zpool create|NEW=large|DISKS=$(part 2 4)]
            @[zfs snapshot -r POOL@moved|POOL=small]
            @[zfs send -R POOL|POOL=small|NEW=large]
            echo last > /small/last
            @[zfs snapshot -r POOL@last|POOL=small]
            @[zfs send -R -I|POOL=small|NEW=large]
            @[zpool export|POOL=small]
            @[zfs mount -a]
            grep kept /large/kept
            grep last /large/last",
        undo: "",
    },
    Remedy {
        page: "zfs-on-raid",
        about: "raided",
        steps: "cp /raided/kept /root/kept
            @[zpool destroy|POOL=raided]
            @[mdadm --stop]
            @[mdadm --zero-superblock|DISKS=$(part 3 1) $(part 4 1)]
            @[zpool create|POOL=raided|DISKS=$(part 3 1) $(part 4 1)]
            cp /root/kept /raided/kept",
        undo: "",
    },
    Remedy {
        page: "zfs-no-scrub",
        about: "damaged",
        steps: "@[systemctl enable --now]
            @[zpool scrub]
            @[zpool status]",
        undo: "@[systemctl disable --now]",
    },
    Remedy {
        page: "zfs-arc-max-below-min",
        about: "zfs_arc_max=134217728",
        steps:
            "@[echo 67108864]
            @[echo 134217728]
            test \"$(awk '$1 == \"c_max\" { print $3 }' /proc/spl/kstat/zfs/arcstats)\" = 134217728",
        undo: "",
    },
];
