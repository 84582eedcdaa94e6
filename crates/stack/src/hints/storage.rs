//! Checks for hints on file systems, ZFS, encryption and partitions.

use super::{Look, Rule, Said};
use assay_model::Bytes;
use assay_model::stack::LayerKind;

pub(super) const RULES: [Rule; 9] = [
    small_ashift,
    small_volume_blocks,
    sync_disabled,
    nearly_full,
    cipher_by_hand,
    encrypted_on_compressed,
    misaligned_hint,
    no_journal,
    trim_dropped,
];

/// Hint: the ashift of a vdev is smaller than the physical block size of its disk.
fn small_ashift(look: &Look<'_>) -> Option<Said> {
    let ashift: u32 = look.layer.get("ashift")?.parse().ok()?;
    let unit = 1u64.checked_shl(ashift)?;
    let mut disks = look.below(LayerKind::Disk);
    let disk = disks.find(|disk| {
        let size = disk.bytes("physical_block_size");
        size.is_some_and(|size| size > unit)
    })?;
    let size = Bytes(disk.bytes("physical_block_size")?).short();
    Some(Said {
        text: format!(
            "its blocks are smaller than those of {}, which then reads before it writes; the \
             ashift of a vdev cannot be changed",
            disk.name
        ),
        because: format!("ashift {ashift}, physical_block_size {size}"),
        page: "zfs-ashift-small",
        source: "zpoolprops(7), ashift",
    })
}

/// Hint: the volblocksize is small for raidz, so a volume needs much more space than the layout suggests.
fn small_volume_blocks(look: &Look<'_>) -> Option<Said> {
    if !look.is(LayerKind::Zvol) {
        return None;
    }
    let block = look.layer.bytes("volblocksize")?;
    let vdev = look.below(LayerKind::Vdev).find(|vdev| {
        let raidz = vdev
            .get("kind")
            .is_some_and(|kind| kind.starts_with("raidz"));
        raidz && vdev.get("class") == Some("data")
    })?;
    let ashift: u32 = vdev.get("ashift")?.parse().ok()?;
    let width: u64 = vdev.get("devices")?.parse().ok()?;
    let parity: u64 = vdev.get("kind")?.strip_prefix("raidz")?.parse().ok()?;
    let (share, ideal) = data_share(block, ashift, width, parity)?;
    (share < ideal * 0.9).then(|| Said {
        text: format!(
            "of each byte on the disks {:.0} % hold data; blocks large enough to fill the stripe \
             would come near {:.0} %",
            share * 100.0,
            ideal * 100.0
        ),
        because: format!(
            "volblocksize {}, {} of {width} devices, ashift {ashift}",
            Bytes(block).short(),
            vdev.get("kind").unwrap_or("raidz")
        ),
        page: "zfs-parity-small-blocks",
        source: "OpenZFS, module/zfs/vdev_raidz.c, vdev_raidz_psize_to_asize",
    })
}

/// For one incompressible block on raidz, returns the fraction of the allocated raw space that is data. Also returns
/// the fraction of the devices that remains after subtracting the parity devices.
fn data_share(block: u64, ashift: u32, width: u64, parity: u64) -> Option<(f64, f64)> {
    let unit = 1u64.checked_shl(ashift)?;
    let data = width.checked_sub(parity).filter(|data| *data > 0)?;
    let sectors = block.div_ceil(unit).max(1);
    let all = (sectors + parity * sectors.div_ceil(data)).next_multiple_of(parity + 1);
    Some((sectors as f64 / all as f64, data as f64 / width as f64))
}

/// Hint: `sync=disabled`, so that acknowledged writes are lost in a power cut.
fn sync_disabled(look: &Look<'_>) -> Option<Said> {
    look.says("sync", "disabled").then(|| Said {
        text: "acknowledged writes of a program or guest are lost in a power cut".to_owned(),
        because: "sync disabled".to_owned(),
        page: "zfs-sync-disabled",
        source: "zfsprops(7), sync",
    })
}

/// Hint: the pool is more than 90 % full.
fn nearly_full(look: &Look<'_>) -> Option<Said> {
    if !look.is(LayerKind::Pool) {
        return None;
    }
    let used: u32 = look.layer.get("capacity")?.parse().ok()?;
    (used > 90).then(|| Said {
        text: "with less than 10 % free, ZFS looks longer for room on every write".to_owned(),
        because: format!("capacity {used} %"),
        page: "zfs-nearly-full",
        source: "OpenZFS documentation, Workload Tuning, Free Space",
    })
}

/// Hint: AES encryption on a CPU without AES instructions, as far as they are visible.
fn cipher_by_hand(look: &Look<'_>) -> Option<Said> {
    let cipher = look.layer.get("cipher")?;
    let slow = look.is(LayerKind::Crypt) && look.says("cpu_aes", "no") && cipher.starts_with("aes");
    slow.then(|| Said {
        text: "the processor shows no AES instructions, so every byte is encrypted by plain \
               arithmetic; in a guest, its CPU model hides them"
            .to_owned(),
        because: format!("cipher {cipher}, no flag aes in /proc/cpuinfo"),
        page: "cpu-kvm64",
        source: "Proxmox VE, qm(1), CPU Type; compare `cryptsetup benchmark` on both sides",
    })
}

/// Hint: encryption above a compressed ZFS volume or dataset, whose compression then has no effect.
fn encrypted_on_compressed(look: &Look<'_>) -> Option<Said> {
    if !look.is(LayerKind::Crypt) {
        return None;
    }
    let below = look
        .below(LayerKind::Zvol)
        .chain(look.below(LayerKind::Dataset))
        .find(|layer| layer.get("compression").is_some_and(|value| value != "off"))?;
    Some(Said {
        text: format!(
            "what it encrypts no longer compresses, so the compression of {} finds nothing",
            below.name
        ),
        because: format!("compression {} below", below.get("compression")?),
        page: "zfs-volume-incompressible",
        source: "OpenZFS, module/zfs/zio.c, zio_get_compression_max_size: a block is kept \
                 compressed only when that saves an eighth",
    })
}

fn misaligned_hint(look: &Look<'_>) -> Option<Said> {
    let off = look
        .layer
        .bytes("alignment_offset")
        .filter(|off| *off > 0)?;
    look.is(LayerKind::Partition).then(|| Said {
        text: "it does not begin where a block of the disk does, so that a block of it touches \
               two of the disk"
            .to_owned(),
        because: format!("alignment_offset {off}"),
        page: "partition-misaligned",
        source: "Linux, Documentation/ABI/stable/sysfs-block, alignment_offset",
    })
}

/// Hint: ext2, a file system without a journal.
fn no_journal(look: &Look<'_>) -> Option<Said> {
    (look.is(LayerKind::FileSystem) && look.says("type", "ext2")).then(|| Said {
        text: "it has no journal: after a crash it needs a full check and may have lost files"
            .to_owned(),
        because: "type ext2".to_owned(),
        page: "ext2-mounted",
        source: "ext4(5)",
    })
}

/// Hint: a layer (dm-crypt, md, LVM, …) drops discards, so that a trim of the file system does not reach the disk.
fn trim_dropped(look: &Look<'_>) -> Option<Said> {
    let layers = [
        LayerKind::Crypt,
        LayerKind::Md,
        LayerKind::Mapped,
        LayerKind::LogicalVolume,
    ];
    if !layers.contains(&look.layer.kind) || !look.says("discard", "no") {
        return None;
    }
    let mut disks = look.below(LayerKind::Disk);
    let disk = disks.find(|disk| disk.get("discard") == Some("yes"))?;
    let same = look.stack.under(look.at).into_iter();
    // The lowest of several layers drops it.
    let lower = same
        .filter_map(|at| look.stack.layers.get(at))
        .any(|layer| layers.contains(&layer.kind) && layer.get("discard") == Some("no"));
    (!lower).then(|| Said {
        text: format!(
            "{} never learns which blocks are free: TRIM ends here",
            disk.name
        ),
        because: "discard_max_bytes 0".to_owned(),
        page: "trim-swallowed",
        source: "cryptsetup(8), --allow-discards; Linux, Documentation/ABI/stable/sysfs-block, \
                 discard_max_bytes",
    })
}

#[cfg(test)]
mod tests {
    use super::data_share;

    /// The expected value was computed by hand: data sectors, plus parity for each row of the stripe, rounded up to a
    /// multiple of parity + 1.
    #[test]
    fn shares_of_raw_space() {
        let percent = |block, width, parity| {
            let (share, _) = data_share(block, 12, width, parity).unwrap();
            (share * 1000.0).round() / 10.0
        };
        assert_eq!(percent(4096, 3, 1), 50.0);
        assert_eq!(percent(8192, 3, 1), 50.0);
        assert_eq!(percent(16384, 3, 1), 66.7);
        assert_eq!(percent(8192, 6, 2), 33.3);
        assert_eq!(percent(131_072, 8, 2), 71.1);
        assert_eq!(data_share(4096, 12, 1, 1), None);
        assert_eq!(data_share(4096, 70, 3, 1), None);
    }
}
