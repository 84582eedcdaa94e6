//! The ZFS pool of the guest.

use super::build::{FENCE, FILLER, LIMIT, POOL};
use super::guest_or_dataset::Ground;
use super::settings::{Form, Pool};
use crate::StudyError;
use crate::guest::{self, run_command};
use assay_lab::{Disk, Guest};
use assay_model::Bytes;

/// Returns the disks of the pool, whose files are in the guest's directory on the host.
pub(super) fn pool_disks(pool: &Pool) -> Vec<Disk> {
    let data = (1..=pool.disks).map(|number| Disk::scratch(&format!("pool{number}"), pool.size.0));
    let log = pool.log.map(|size| Disk::scratch("log", size.0));
    let cache = pool.cache.map(|size| Disk::scratch("cache", size.0));
    data.chain(log).chain(cache).collect()
}

/// Creates the pool and two datasets for the tests of a full pool. Loads the kernel module nbd.
///
/// # Errors
/// ZFS refuses to create the pool or a dataset.
pub(super) fn make(guest: &Guest, pool: &Pool) -> Result<(), StudyError> {
    let names: Vec<String> = pool_disks(pool).into_iter().map(|disk| disk.name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let devices = guest.devices(&names)?;
    let mut argv = vec!["-o".to_owned(), format!("ashift={}", pool.ashift)];
    for (key, value) in &pool.properties {
        argv.extend(["-O".to_owned(), format!("{key}={value}")]);
    }
    argv.push(POOL.to_owned());
    if !pool.layout.is_empty() {
        argv.push(pool.layout.clone());
    }
    for (name, device) in names.iter().zip(&devices) {
        if matches!(*name, "log" | "cache") {
            argv.push((*name).to_owned());
        }
        argv.push(device.display().to_string());
    }
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    guest.create_pool(&words, LIMIT)?;
    run_command(
        guest,
        &["zfs", "create", "-o", "mountpoint=none", FILLER],
        LIMIT,
    )?;
    run_command(guest, &["zfs", "create", FENCE], LIMIT)?;
    run_command(guest, &["modprobe", "nbd"], LIMIT)?;
    Ok(())
}

/// Returns a description of this machine and the user's pool for the study's record, including inherited properties.
pub(super) fn machine_here(ground: &Ground<'_>) -> Vec<(String, String)> {
    let parent = ground.parent();
    let pool = parent.split('/').next().unwrap_or_default();
    let properties = "recordsize,compression,sync,atime,primarycache,logbias,checksum";
    let all: [(&str, &[&str]); 6] = [
        ("kernel", &["uname", "-srm"]),
        ("OpenZFS", &["cat", "/sys/module/zfs/version"]),
        ("QEMU", &["qemu-system-x86_64", "--version"]),
        ("pool", &["zpool", "list", "-v", pool]),
        (
            "ashift",
            &["zpool", "get", "-H", "-o", "value", "ashift", pool],
        ),
        (
            "inherited",
            &[
                "zfs",
                "get",
                "-H",
                "-o",
                "property,value",
                properties,
                parent,
            ],
        ),
    ];
    let mut lines = vec![("below".to_owned(), parent.to_owned())];
    for (name, argv) in all {
        if let Ok(text) = ground.command(argv) {
            let limit = if name == "QEMU" { 1 } else { usize::MAX };
            let rows = text.lines().take(limit).map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.join(" ")
            });
            lines.push((name.to_owned(), rows.collect::<Vec<_>>().join("; ")));
        }
    }
    let counted = "of all pools of this machine together, also what others cause";
    lines.push(("commits of the intent log".to_owned(), counted.to_owned()));
    lines
}

/// Returns a description of the guest's pool for the study's record.
///
/// # Errors
/// The guest does not answer.
pub(super) fn describe_machine(
    guest: &Guest,
    form: &Form,
) -> Result<Vec<(String, String)>, StudyError> {
    let mut lines = guest::describe_guest(guest);
    let zfs = run_command(guest, &["cat", "/sys/module/zfs/version"], LIMIT)?;
    lines.push(("OpenZFS".to_owned(), zfs.trim().to_owned()));
    let qemu = run_command(guest, &["qemu-nbd", "--version"], LIMIT)?;
    let version = qemu.lines().next().unwrap_or_default();
    lines.push(("QEMU in the guest".to_owned(), version.trim().to_owned()));
    let pool = &form.pool;
    let device = |name: &str, size: Option<Bytes>| {
        size.map_or_else(String::new, |size| format!(", {name} {size}"))
    };
    lines.push((
        "pool".to_owned(),
        format!(
            "{} of {} virtual disks of {}{}{}, ashift {}",
            if pool.layout.is_empty() {
                "stripe"
            } else {
                &pool.layout
            },
            pool.disks,
            pool.size,
            device("log", pool.log),
            device("cache", pool.cache),
            pool.ashift
        ),
    ));
    Ok(lines)
}
