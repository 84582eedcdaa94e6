//! Remedies that convert, extend or remount file systems, executed on loop devices.

use super::{Disks, alone, commands, found, remedy, run};
use assay_model::finding::Finding;

/// Returns the command that has this prefix, in the steps or in the undo steps.
fn command(finding: &Finding, beginning: &str) -> String {
    let remedy = remedy(finding);
    let text = remedy.steps.join(" ") + " " + &remedy.undo.join(" ");
    let found = commands(&text, beginning);
    let first = found.into_iter().next();
    first.unwrap_or_else(|| panic!("no {beginning}: {text}"))
}

#[test]
fn parity_of_a_btrfs_is_converted_to_mirrors() {
    if !alone("conversions::parity_of_a_btrfs_is_converted_to_mirrors") {
        return;
    }
    let Some(disks) = Disks::make(3, "mkfs.btrfs") else {
        return;
    };
    let name = disks.loops[0].trim_start_matches("/dev/").to_owned();
    let point = disks.point().display().to_string();
    run(&format!(
        "mkfs.btrfs -q -f -d raid5 -m raid5 {}",
        disks.loops.join(" ")
    ))
    .unwrap();
    disks.mount("rw").unwrap();
    run(&format!("head -c 20M /dev/urandom > {point}/f && sync")).unwrap();
    let finding = found("btrfs-raid56", &name).unwrap();
    let balance = command(&finding, "btrfs balance start -mconvert");
    run(&balance.replace("MOUNTPOINT", &point)).unwrap();
    assert!(found("btrfs-raid56", &name).is_none());
    let undo = command(&finding, "btrfs balance start -dconvert=raid5");
    run(&undo.replace("MOUNTPOINT", &point)).unwrap();
    assert!(found("btrfs-raid56", &name).is_some());
}

#[test]
fn a_mirror_of_uneven_disks_gets_another_disk() {
    if !alone("conversions::a_mirror_of_uneven_disks_gets_another_disk") {
        return;
    }
    let Some(disks) = Disks::make(3, "mkfs.btrfs") else {
        return;
    };
    let [first, second, third] = disks.loops.as_slice() else {
        panic!("three devices");
    };
    let image = disks.dir.path().join("0.img");
    run(&format!(
        "truncate -s 900M {} && losetup -c {first}",
        image.display()
    ))
    .unwrap();
    let name = first.trim_start_matches("/dev/");
    let point = disks.point().display().to_string();
    run(&format!(
        "mkfs.btrfs -q -f -d raid1 -m raid1 {first} {second}"
    ))
    .unwrap();
    disks.mount("rw").unwrap();
    let finding = found("btrfs-uneven-mirror", name).unwrap();
    let add = |command: String| {
        command
            .replace("DEVICE", third)
            .replace("MOUNTPOINT", &point)
    };
    // The third device is as large as the unmirrored data.
    let image = disks.dir.path().join("2.img");
    run(&format!(
        "truncate -s 700M {} && losetup -c {third}",
        image.display()
    ))
    .unwrap();
    run(&add(command(&finding, "btrfs device add"))).unwrap();
    let balance = add(command(&finding, "btrfs balance start"));
    // Without filters btrfs waits ten seconds, so that a user can abort.
    run(&balance).unwrap();
    assert!(found("btrfs-uneven-mirror", name).is_none());
    run(&add(command(&finding, "btrfs device remove"))).unwrap();
    assert!(found("btrfs-uneven-mirror", name).is_some());
}

#[test]
fn an_ext2_gets_a_journal() {
    if !alone("conversions::an_ext2_gets_a_journal") {
        return;
    }
    let Some(disks) = Disks::make(1, "mkfs.ext2") else {
        return;
    };
    let device = &disks.loops[0];
    let point = disks.point().display().to_string();
    run(&format!("mkfs.ext2 -q {device}")).unwrap();
    run(&format!("mount -t ext2 {device} {point}")).unwrap();
    let Some(finding) = found("ext2-mounted", &point) else {
        // A kernel whose ext4 driver mounts ext2 reports it as ext2; other kernels do not have
        // ext2.
        panic!("ext2-mounted is not found");
    };
    run(&format!("umount {point}")).unwrap();
    for beginning in ["e2fsck -f", "tune2fs -j"] {
        let command = command(&finding, beginning).replace("DEVICE", device);
        // It may ask on a terminal.
        run(&command.replace("e2fsck -f", "e2fsck -f -p")).unwrap();
    }
    run(&format!("mount -t ext4 {device} {point}")).unwrap();
    assert!(found("ext2-mounted", &point).is_none());
    run(&format!("umount {point}")).unwrap();
    let undo = command(&finding, "tune2fs -O");
    run(&undo.replace("DEVICE", device)).unwrap();
    run(&format!("mount -t ext2 {device} {point}")).unwrap();
    assert!(found("ext2-mounted", &point).is_some());
}

#[test]
fn an_ext3_is_copied_to_an_ext4() {
    if !alone("conversions::an_ext3_is_copied_to_an_ext4") {
        return;
    }
    let Some(disks) = Disks::make(2, "rsync") else {
        return;
    };
    let [old, new] = disks.loops.as_slice() else {
        panic!("two devices");
    };
    let point = disks.point().display().to_string();
    let other = disks.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let other = other.display().to_string();
    run(&format!("mkfs.ext3 -q {old} && mkfs.ext4 -q {new}")).unwrap();
    run(&format!("mount -t ext3 {old} {point}")).unwrap();
    run(&format!("echo kept > {point}/f; ln {point}/f {point}/g")).unwrap();
    let finding = found("ext3-mounted", &point).unwrap();
    run(&format!("mount {new} {other}")).unwrap();
    let copy = command(&finding, "rsync");
    let copied = run(&format!(
        "{copy} {point}/ {other}/ && cmp {point}/g {other}/g"
    ));
    run(&format!("umount {other}; umount {point}")).unwrap();
    copied.unwrap();
    run(&format!("mount -t ext4 {new} {point}")).unwrap();
    assert!(found("ext3-mounted", &point).is_none());
}

#[test]
fn data_is_ordered_from_the_next_mount() {
    if !alone("conversions::data_is_ordered_from_the_next_mount") {
        return;
    }
    let Some(disks) = Disks::make(1, "mkfs.ext4") else {
        return;
    };
    let device = &disks.loops[0];
    let point = disks.point().display().to_string();
    run(&format!("mkfs.ext4 -q -F {device}")).unwrap();
    disks.mount("data=writeback").unwrap();
    let finding = found("ext4-data-writeback", &point).unwrap();
    run(&format!("umount {point}")).unwrap();
    // Only tune2fs shows a default of the file system.
    run(&format!("tune2fs -o journal_data_writeback {device}")).unwrap();
    let options = format!(
        "/proc/fs/ext4/{}/options",
        device.trim_start_matches("/dev/")
    );
    let mode = || run(&format!("grep '^data=' {options}")).unwrap();
    disks.mount("rw").unwrap();
    assert_eq!(mode(), "data=writeback");
    run(&format!("umount {point}")).unwrap();
    let tune = command(&finding, "tune2fs -o");
    run(&tune.replace("DEVICE", device)).unwrap();
    disks.mount("rw").unwrap();
    assert_eq!(mode(), "data=ordered");
    assert!(found("ext4-data-writeback", &point).is_none());
}

#[test]
fn degraded_is_gone_with_the_next_mount() {
    if !alone("conversions::degraded_is_gone_with_the_next_mount") {
        return;
    }
    let Some(disks) = Disks::make(2, "mkfs.btrfs") else {
        return;
    };
    let point = disks.point().display().to_string();
    run(&format!(
        "mkfs.btrfs -q -f -d raid1 -m raid1 {}",
        disks.loops.join(" ")
    ))
    .unwrap();
    disks.mount("degraded").unwrap();
    let finding = found("btrfs-degraded-allowed", &point).unwrap();
    for beginning in ["btrfs device stats", "btrfs filesystem show"] {
        run(&command(&finding, beginning)).unwrap();
    }
    run(&format!("umount {point}")).unwrap();
    disks.mount("rw").unwrap();
    assert!(found("btrfs-degraded-allowed", &point).is_none());
}
