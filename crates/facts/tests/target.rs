//! Tests the description of layers under a path, on recorded device trees.

use assay_facts::{TargetError, target};
use assay_host::Recorded;
use std::path::Path;

const MOUNTS: &str = "\
27 1 254:2 / / rw,relatime - ext4 /dev/vda2 rw,discard
30 27 0:40 / /pool rw,noatime - zfs tank/data rw,xattr
31 27 0:41 / /box rw - overlay overlay rw,lowerdir=/l,upperdir=/upper\\040dir,workdir=/w
32 27 0:42 / /b rw - btrfs /dev/sda rw,subvol=/
33 27 253:1 / /secret rw - xfs /dev/mapper/home rw
34 27 0:43 / /mem rw - tmpfs tmpfs rw
35 27 0:44 / /net rw - nfs4 files.example.org:/a rw,addr=10.0.0.1
36 27 7:0 / /image rw - ext4 /dev/loop0 rw
";

/// Devices of the tests: vda with two partitions; sda and sdb; dm-1 (crypt) on dm-0 (LVM) on sdc1; loop0 on a file of
/// /.
fn host() -> Recorded {
    let status = "config:\n\n\tNAME        STATE\n\ttank        ONLINE\n\t  /dev/sda  ONLINE\n\t  /dev/sdb  ONLINE\n";
    let mut host = Recorded::new()
        .file("/proc/self/mountinfo", MOUNTS)
        .command(&["zpool", "status", "-LP", "tank"], status)
        .file("/image.img", "12345678")
        .file("/sys/d/loop0/loop/backing_file", "/image.img\n")
        .linked("/sys/fs/btrfs/0000/devices/sda", "/sys/d/sda")
        .linked("/sys/fs/btrfs/0000/devices/sdb", "/sys/d/sdb")
        .linked("/sys/d/dm-1/slaves/dm-0", "/sys/d/dm-0")
        .linked("/sys/d/dm-0/slaves/sdc1", "/sys/d/sdc/sdc1");
    for (dir, major, minor) in [
        ("vda", 254, 0),
        ("vda/vda2", 254, 2),
        ("sda", 8, 0),
        ("sdb", 8, 16),
        ("sdc", 8, 32),
        ("sdc/sdc1", 8, 33),
        ("dm-0", 253, 0),
        ("dm-1", 253, 1),
        ("loop0", 7, 0),
    ] {
        let name = dir.rsplit('/').next().unwrap_or(dir);
        let path = format!("/sys/d/{dir}");
        host = host
            .file(&format!("{path}/dev"), format!("{major}:{minor}\n"))
            .file(&format!("{path}/size"), "2048\n")
            .linked(&format!("/sys/dev/block/{major}:{minor}"), &path)
            .linked(&format!("/sys/class/block/{name}"), &path)
            .device(&format!("/dev/{name}"), major, minor);
        if dir.contains('/') {
            host = host.file(&format!("{path}/partition"), "1\n");
        }
    }
    for dir in [
        "pool",
        "box",
        "b",
        "secret",
        "mem",
        "net",
        "image",
        "upper dir",
    ] {
        host = host.file(&format!("/{dir}/file"), "x");
    }
    host
}

fn below(path: &str) -> (Vec<String>, Vec<String>) {
    let info = target(&host(), Path::new(path)).unwrap_or_else(|error| panic!("{error}"));
    (info.devices, info.disks)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn each_file_system_is_followed_to_its_disks() {
    assert_eq!(below("/image.img"), (names(&["vda2"]), names(&["vda"])));
    assert_eq!(
        below("/pool"),
        (names(&["sda", "sdb"]), names(&["sda", "sdb"]))
    );
    assert_eq!(below("/box"), (names(&["vda2"]), names(&["vda"])));
    assert_eq!(
        below("/b/file"),
        (names(&["sda", "sdb"]), names(&["sda", "sdb"]))
    );
    assert_eq!(below("/secret"), (names(&["dm-1"]), names(&["sdc"])));
    assert_eq!(below("/image"), (names(&["loop0"]), names(&["vda"])));
    assert_eq!(below("/mem"), (vec![], vec![]));
    assert_eq!(below("/net"), (vec![], vec![]));
    assert_eq!(below("/dev/sdc1"), (names(&["sdc1"]), names(&["sdc"])));
}

#[test]
fn what_is_told_of_the_mount() {
    let info = target(&host(), Path::new("/net")).unwrap();
    assert_eq!(info.mount_source.as_deref(), Some("(left out):/a"));
    assert_eq!(
        info.mount_options.as_deref(),
        Some("rw,addr=(value withheld)")
    );
    let info = target(&host(), Path::new("/dev/sda")).unwrap();
    assert_eq!((info.size.0, info.fs_type), (2048 * 512, None));
    let info = target(&host(), Path::new("/image.img")).unwrap();
    assert_eq!((info.size.0, info.fs_type.as_deref()), (8, Some("ext4")));
}

#[test]
fn what_cannot_be_told_is_an_error() {
    let missing = target(&host(), Path::new("/nothing")).unwrap_err();
    assert!(matches!(missing, TargetError::Missing { .. }), "{missing}");
    let denied = target(&host().denied("/proc/self/mountinfo"), Path::new("/pool")).unwrap_err();
    assert_eq!(
        denied.to_string(),
        "/pool: cannot find out what lies below it: /proc/self/mountinfo: Permission denied"
    );
    let garbage = host().file("/proc/self/mountinfo", "garbage\n");
    insta::assert_snapshot!(target(&garbage, Path::new("/pool")).unwrap_err(), @"/pool: line 1 of /proc/self/mountinfo cannot be understood");
}

/// A root directory that is not a mount has an unknown file system.
#[test]
fn a_chroot_has_no_file_system_that_anybody_names() {
    let proc = "22 21 0:21 / /proc rw - proc proc rw\n";
    let chroot = host().file("/proc/self/mountinfo", proc);
    let info = target(&chroot, Path::new("/pool")).unwrap();
    assert_eq!((info.fs_type, info.mount_point), (None, None));
    assert_eq!(info.devices, Vec::<String>::new());
    assert_eq!(target(&chroot, Path::new("/image.img")).unwrap().size.0, 8);
}

/// Without sysfs, a device has a number but no name. The device is unknown, and the description continues.
#[test]
fn without_sysfs_no_device_can_be_named() {
    let mounts = "27 1 254:2 / / rw - ext4 /dev/vda2 rw\n";
    let bare = Recorded::new()
        .file("/proc/self/mountinfo", mounts)
        .file("/srv/file", "12345678");
    let info = target(&bare, Path::new("/srv/file")).unwrap();
    assert_eq!(info.fs_type.as_deref(), Some("ext4"));
    assert_eq!(
        (info.devices, info.disks),
        (Vec::<String>::new(), Vec::new())
    );
    // With sysfs, a device that is missing there is still an error.
    let strange = bare.file("/sys/dev/block/8:0", "");
    assert!(target(&strange, Path::new("/srv/file")).is_err());
}
