# Every layer that Linux has, stacked on four empty disks: m1, m2, z1, z2.
set -e
disk() { ls /dev/disk/by-id/*"$1" | head -1; }
# md, LUKS, LVM, ext4, a file in it, a loop device on that, ext4
mdadm --create /dev/md0 --run --metadata=1.2 --level=1 --raid-devices=2 "$(disk m1)" "$(disk m2)"
printf secret | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 \
    --pbkdf-force-iterations 1000 --sector-size 4096 /dev/md0 -
printf secret | cryptsetup open --perf-no_read_workqueue --allow-discards /dev/md0 vault -d -
pvcreate -q /dev/mapper/vault
vgcreate -q vg-a /dev/mapper/vault
lvcreate -q -y -n data -L 120M vg-a
lvcreate -q -y -T -L 32M vg-a/pool
lvcreate -q -y -V 64M -T vg-a/pool -n thin
mkfs.ext4 -q /dev/vg-a/data
mkdir -p /srv/a "/srv/lo op" /srv/z
mount /dev/vg-a/data /srv/a
truncate -s 80M "/srv/a/im age.img"
loop=$(losetup -f --show --direct-io=on "/srv/a/im age.img")
mkfs.ext4 -q "$loop"
mount "$loop" "/srv/lo op"
# partitions, a pool with a log, a zvol, a partition in it, ext4; and a dataset
for z in z1 z2; do printf 'label: gpt\n,100M\n,\n' | sfdisk -q "$(disk $z)"; done
udevadm settle
zpool create -f -o ashift=12 tank mirror "$(disk z1-part1)" "$(disk z2-part1)" log "$(disk z1-part2)"
zfs create -o recordsize=64k -o compression=zstd tank/data
zfs create -s -V 64M -b 8k tank/vol
udevadm settle
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e /dev/zvol/tank/vol ] && break; sleep 1; done
printf 'label: gpt\n,\n' | sfdisk -q /dev/zvol/tank/vol
udevadm settle
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e /dev/zvol/tank/vol-part1 ] && break; sleep 1; done
mkfs.ext4 -q /dev/zvol/tank/vol-part1
mount /dev/zvol/tank/vol-part1 /srv/z
