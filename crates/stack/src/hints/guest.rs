//! Checks for hints on virtual disks and their images.

use super::{Look, Rule, Said};
use assay_facts::limits::THROTTLED;
use assay_model::Bytes;
use assay_model::stack::LayerKind;

pub(super) const RULES: [Rule; 8] = [
    throttled_hint,
    every_write_flushed,
    flushes_ignored,
    emulated_ide,
    thread_without_effect,
    copy_on_write_twice,
    direct_on_zfs,
    small_clusters,
];

fn cache_mode<'a>(look: &'a Look<'_>) -> Option<&'a str> {
    let disk = look.is(LayerKind::VirtualDisk);
    look.layer.get("cache").filter(|_| disk)
}

fn throttled_hint(look: &Look<'_>) -> Option<Said> {
    let limits = look.layer.get(THROTTLED)?;
    let amount = if limits == "yes" {
        "a limit that is not told here"
    } else {
        limits
    };
    look.is(LayerKind::VirtualDisk).then(|| Said {
        text: format!(
            "the disk is throttled on purpose: {amount}; no layer below can show more than that"
        ),
        because: format!("{THROTTLED} {limits}"),
        page: "disk-limited",
        source: "qemu(1), -drive throttling; libvirt, <iotune>; qm.conf(5), iops and mbps",
    })
}

/// Hint: the cache mode flushes every write (`writethrough`, `directsync`).
fn every_write_flushed(look: &Look<'_>) -> Option<Said> {
    let mode = cache_mode(look).filter(|mode| matches!(*mode, "writethrough" | "directsync"))?;
    Some(Said {
        text: "each write is flushed to the disk before the guest hears that it is done, whether \
               or not the guest asked for it"
            .to_owned(),
        because: format!("cache {mode}"),
        page: match mode {
            "directsync" => "cache-directsync",
            _ => "cache-writethrough",
        },
        source: "qemu(1), -drive cache",
    })
}

/// Hint: the cache mode ignores flushes (`unsafe`), so acknowledged writes can be lost.
fn flushes_ignored(look: &Look<'_>) -> Option<Said> {
    let mode = cache_mode(look).filter(|mode| mode.starts_with("unsafe"))?;
    Some(Said {
        text: "flushes of the guest are ignored: its acknowledged writes are lost when the host \
               loses power"
            .to_owned(),
        because: format!("cache {mode}"),
        page: "cache-unsafe",
        source: "qemu(1), -drive cache; `assay lab power-cut` shows it",
    })
}

/// Hint: the disk is on an emulated IDE controller.
fn emulated_ide(look: &Look<'_>) -> Option<Said> {
    (look.is(LayerKind::VirtualDisk) && look.says("bus", "ide")).then(|| Said {
        text: "IDE is meant for systems before 2003; virtio-blk and virtio-scsi are much faster"
            .to_owned(),
        because: "bus ide".to_owned(),
        page: "disk-on-ide",
        source: "Proxmox VE, qm(1), Hard Disk",
    })
}

/// Hint: an iothread is configured, but this controller does not use it.
fn thread_without_effect(look: &Look<'_>) -> Option<Said> {
    (look.says("iothread_asked", "yes") && look.says("iothread", "no")).then(|| Said {
        text: "its iothread has no effect: only VirtIO Block and VirtIO SCSI single have one for \
               a disk"
            .to_owned(),
        because: format!(
            "iothread=1, bus {}",
            look.layer.get("bus").unwrap_or("unknown")
        ),
        page: "iothread-without-effect",
        source: "Proxmox VE, qm(1), IO Thread",
    })
}

/// Hint: a qcow2 image is on ZFS, so that data is copied on write twice.
fn copy_on_write_twice(look: &Look<'_>) -> Option<Said> {
    if !(look.is(LayerKind::Image) && look.layer.name == "qcow2") {
        return None;
    }
    let (below, why) = look
        .below(LayerKind::Dataset)
        .chain(look.below(LayerKind::Zvol))
        .map(|layer| (layer, layer.kind.label()))
        .next()?;
    Some(Said {
        text: "what the guest writes is copied on write twice, by qcow2 and by ZFS; raw files and \
               zvols are not, so compare them here"
            .to_owned(),
        because: format!("qcow2 on the {why} {}", below.name),
        page: "image-raw",
        source: "OpenZFS documentation, Workload Tuning, Virtual machines",
    })
}

/// Hint: the cache mode uses O_DIRECT on a ZFS dataset. OpenZFS 2.3 changed the effect of O_DIRECT.
fn direct_on_zfs(look: &Look<'_>) -> Option<Said> {
    let mode = cache_mode(look).filter(|mode| matches!(*mode, "none" | "directsync"))?;
    look.below(LayerKind::Dataset).next()?;
    let pool = look.below(LayerKind::Pool).next()?;
    let version = pool.get("zfs")?;
    let mut numbers = version.split(['.', '-', '_']);
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let (major, minor) = (number()?, number()?);
    let text = match (major, minor) >= (2, 3) {
        true => "reads and writes of this disk go past the ARC (unless `direct` is disabled)",
        false => {
            "this OpenZFS takes O_DIRECT and caches all the same; from 2.3 on the same setting \
             goes past the ARC"
        }
    };
    Some(Said {
        text: text.to_owned(),
        because: format!("cache {mode} on a dataset, OpenZFS {version}"),
        page: "cache-none",
        source: "zfsprops(7), direct; OpenZFS 2.3.0 release notes",
    })
}

/// Hint: the clusters of a qcow2 image are so small that QEMU's default cache does not hold all L2 tables.
fn small_clusters(look: &Look<'_>) -> Option<Said> {
    let cluster = look
        .layer
        .bytes("cluster_size")
        .filter(|size| *size < 64 << 10)?;
    let size = look.layer.bytes("size")?;
    // By default QEMU caches 32 MiB of L2 tables on Linux; each entry represents a cluster and
    // takes eight bytes, or sixteen with subclusters.
    let entry = if look.says("extended_l2", "on") {
        16
    } else {
        8
    };
    let covered = (32u64 << 20) / entry * cluster;
    (size > covered).then(|| Said {
        text: format!(
            "QEMU's cache of its tables covers {}; random access beyond that reads tables too",
            Bytes(covered).short()
        ),
        because: format!(
            "cluster_size {}, size {}",
            Bytes(cluster).short(),
            Bytes(size).short()
        ),
        page: "qcow2-cluster-size",
        source: "QEMU, docs/qcow2-cache.txt",
    })
}
