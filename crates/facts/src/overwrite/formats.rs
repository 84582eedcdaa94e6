//! Detects formats that blkid does not detect on a device: disk images, archives, compressed files, and signatures at
//! the end or at other offsets. The result is only for the message: unknown content is refused as well.

/// Position at which a signature is searched.
enum At {
    /// Offset from the start of the file or device.
    Head(usize),
    /// Offset from the end, counted backwards.
    Tail(usize),
}

use At::{Head, Tail};

/// Signatures, as (name, position, bytes). Sources: QEMU's block/{qcow2,qed,vmdk,vdi,vhdx,vpc,parallels}.c; file(1)'s
/// magic; libblkid's superblocks.
const MARKS: [(&str, At, &[u8]); 35] = [
    ("a qcow image", Head(0), b"QFI\xfb"),
    ("a QED image", Head(0), b"QED\0"),
    ("a VMDK image", Head(0), b"KDMV"),
    ("a VMDK image", Head(0), b"COWD"),
    ("a VMDK description", Head(0), b"# Disk DescriptorFile"),
    ("a VHDX image", Head(0), b"vhdxfile"),
    ("a VHD image", Head(0), b"conectix"),
    ("the end of a VHD image", Tail(512), b"conectix"),
    ("a VDI image", Head(0x40), b"\x7f\x10\xda\xbe"),
    ("a Parallels image", Head(0), b"WithoutFreeSpace"),
    ("a Parallels image", Head(0), b"WithouFreSpacExt"),
    ("a bochs image", Head(0), b"Bochs Virtual HD Image"),
    ("a tar archive", Head(257), b"ustar"),
    ("a gzip file", Head(0), b"\x1f\x8b\x08"),
    ("a zstd file", Head(0), b"\x28\xb5\x2f\xfd"),
    ("an xz file", Head(0), b"\xfd7zXZ\0"),
    ("a bzip2 file", Head(0), b"BZh"),
    ("an lz4 file", Head(0), b"\x04\x22\x4d\x18"),
    ("a zip archive", Head(0), b"PK\x03\x04"),
    ("a 7z archive", Head(0), b"7z\xbc\xaf\x27\x1c"),
    ("a cpio archive", Head(0), b"07070"),
    ("a Proxmox backup (vma)", Head(0), b"VMA\0"),
    ("a SQLite database", Head(0), b"SQLite format 3\0"),
    ("an ISO 9660 file system", Head(0x8001), b"CD001"),
    ("an ext file system", Head(0x438), b"\x53\xef"),
    ("an XFS file system", Head(0), b"XFSB"),
    ("a btrfs file system", Head(0x10040), b"_BHRfS_M"),
    ("an NTFS file system", Head(3), b"NTFS    "),
    ("a LUKS header", Head(0), b"LUKS\xba\xbe"),
    ("the second header of LUKS2", Head(0x4000), b"SKUL\xba\xbe"),
    ("a physical volume of LVM", Head(0x218), b"LVM2 001"),
    ("a member of Linux RAID", Head(0x1000), b"\xfc\x4e\x2b\xa9"),
    ("a partition table (GPT)", Head(512), b"EFI PART"),
    ("the second partition table (GPT)", Tail(512), b"EFI PART"),
    ("a partition table or boot sector", Head(510), b"\x55\xaa"),
];

/// Size of a ZFS label in bytes (OpenZFS include/sys/vdev_impl.h).
const ZFS_LABEL: usize = 256 << 10;
const ZFS_UBERBLOCKS: usize = 128 << 10;
/// Magic number of a ZFS uberblock (`UBERBLOCK_MAGIC`).
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// Returns the names of the detected formats. `size` is the length in bytes; `head` and `tail` are its first and last
/// bytes, at most one MiB each.
pub(crate) fn known(head: &[u8], tail: &[u8], size: u64) -> Vec<String> {
    let mut known = Vec::new();
    for (name, at, bytes) in MARKS {
        let (found, place) = match at {
            Head(at) => (head.get(at..), at as u64),
            Tail(back) => {
                let at = tail.len().checked_sub(back);
                (
                    at.and_then(|at| tail.get(at..)),
                    size.saturating_sub(back as u64),
                )
            }
        };
        if found.is_some_and(|found| found.starts_with(bytes)) {
            known.push(format!("{name} at byte {place}"));
        }
    }
    for label in 0..4u64 {
        let at = match label {
            0 | 1 => label * ZFS_LABEL as u64,
            // The labels at the end start at a multiple of their size.
            _ => match (size / ZFS_LABEL as u64 * ZFS_LABEL as u64)
                .checked_sub((4 - label) * ZFS_LABEL as u64)
            {
                Some(at) => at,
                None => continue,
            },
        };
        let bytes = match label {
            0 | 1 => head.get(at as usize..),
            _ => at
                .checked_sub(size.saturating_sub(tail.len() as u64))
                .and_then(|at| tail.get(at as usize..)),
        };
        if bytes.is_some_and(is_zfs_label) {
            known.push(format!("label {label} of a ZFS pool at byte {at}"));
        }
    }
    known.sort();
    known.dedup();
    known
}

/// Returns whether the bytes are a ZFS label with at least one uberblock. blkid is stricter: it requires four
/// uberblocks, and all labels.
fn is_zfs_label(bytes: &[u8]) -> bool {
    let end = bytes.len().min(ZFS_LABEL);
    let Some(blocks) = bytes.get(ZFS_UBERBLOCKS..end) else {
        return false;
    };
    // The smallest uberblock has 1 KiB.
    blocks.chunks_exact(1024).any(|block| {
        let magic: [u8; 8] = std::array::from_fn(|at| block[at]);
        [u64::from_le_bytes(magic), u64::from_be_bytes(magic)].contains(&ZFS_MAGIC)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 8 << 20;
    const EDGE: usize = 1 << 20;

    fn named(at: usize, bytes: &[u8]) -> Vec<String> {
        let mut all = vec![0u8; SIZE + 512];
        all[at..at + bytes.len()].copy_from_slice(bytes);
        known(&all[..EDGE], &all[all.len() - EDGE..], all.len() as u64)
    }

    #[test]
    fn each_mark_is_known_in_its_place_and_not_beside_it() {
        for (name, at, bytes) in MARKS {
            let place = match at {
                Head(at) => at,
                Tail(back) => SIZE + 512 - back,
            };
            assert_eq!(named(place, bytes), [format!("{name} at byte {place}")]);
            let beside = match place {
                0 => 1,
                place => place - 1,
            };
            assert_eq!(named(beside, bytes), [] as [&str; 0], "{name}");
        }
    }

    #[test]
    fn a_label_of_zfs_is_known_in_all_four_places() {
        for (label, at) in [0, ZFS_LABEL, SIZE - 2 * ZFS_LABEL, SIZE - ZFS_LABEL]
            .iter()
            .enumerate()
        {
            for magic in [ZFS_MAGIC.to_le_bytes(), ZFS_MAGIC.to_be_bytes()] {
                let found = named(at + ZFS_UBERBLOCKS + 1024, &magic);
                assert_eq!(found, [format!("label {label} of a ZFS pool at byte {at}")]);
            }
        }
    }

    #[test]
    fn what_is_too_short_has_nothing() {
        for size in [0usize, 1, 511, 512, 4096] {
            let bytes = vec![0; size];
            assert_eq!(known(&bytes, &bytes, size as u64), [] as [&str; 0]);
        }
    }
}
