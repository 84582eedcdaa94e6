//! Computes the reservation of a volume and the size of block pointers.

use super::vdev::{DEFLATE_BLOCK, VdevKind};
use super::version::Version;

/// Returns the `refreservation` in bytes that `zfs create -V volsize -b block` sets.
///
/// Source: `zvol_volsize_to_reservation`, `volsize_from_vdevs` (libzfs_dataset.c, OpenZFS 2.1.11). The reservation is a
/// sum of two parts. The first part is the data blocks, scaled by their cost on the worst raidz or dRAID vdev relative
/// to a 128 KiB block. The second part is twice the indirect blocks: at each level an uncompressed block of 128 KiB per
/// 1024 blocks. Before version 0.8.2, data counted with its plain size, even on raidz (`zvol_volsize_to_reservation` of
/// version 0.8.1).
#[must_use]
pub fn zvol_refreservation(
    vdevs: &[VdevKind],
    ashift: u32,
    volsize: u64,
    block: u64,
    version: Version,
) -> u64 {
    let mut blocks = volsize / block;
    let scaled = vdevs
        .iter()
        .filter(|_| version.reservation_counts_raidz())
        .filter_map(|&kind| match kind {
            VdevKind::Raidz { .. } | VdevKind::Draid { .. } => Some(
                u128::from(blocks)
                    * u128::from(kind.allocated(block, ashift))
                    * u128::from(DEFLATE_BLOCK)
                    / u128::from(kind.allocated(DEFLATE_BLOCK, ashift)),
            ),
            _ => None,
        })
        .max()
        .unwrap_or(u128::from(blocks) * u128::from(block));
    let mut indirect = 7u128;
    while blocks > 1 {
        blocks = blocks.div_ceil(1024);
        indirect += u128::from(blocks);
    }
    u64::try_from(scaled + indirect * 2 * (128 << 10)).unwrap_or(u64::MAX)
}

/// Size of a block pointer in bytes, `sizeof (blkptr_t)` (spa.h).
const POINTER: u64 = 128;
/// Number of block pointers in an indirect block of 128 KiB, which is the default size (`DN_MAX_INDBLKSHIFT` 17,
/// dnode.h).
const POINTERS: u64 = 1024;

/// Returns the maximum number of bytes of block pointers for `data` bytes in blocks of `block` bytes. Indirect blocks
/// are stored twice (`redundant_metadata=all`, zfsprops(7)); their compression is ignored. Indirect blocks are the
/// largest part of what a special vdev stores. In addition, each file has a dnode of at least 512 bytes, also stored
/// twice.
#[must_use]
pub fn block_pointer_bytes(data: u64, block: u64) -> u64 {
    let mut blocks = data.div_ceil(block.max(1));
    let mut indirect = 0u128;
    while blocks > 1 {
        indirect += u128::from(blocks);
        blocks = blocks.div_ceil(POINTERS);
    }
    u64::try_from(indirect * 2 * u128::from(POINTER)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// openzfs/zfs#8973: reservations of volumes on raidz, before and after the fix.
    #[test]
    fn raidz_counts_since_0_8_2() {
        let raidz = |parity, children| [VdevKind::Raidz { parity, children }];
        let tib = 1u64 << 40;
        let of = |kinds: &[VdevKind], size, block, version: &str| {
            zvol_refreservation(kinds, 12, size, block, version.parse().unwrap()) as f64
                / tib as f64
        };
        for (version, wanted) in [
            ("0.7", 15.47),
            ("0.7.13", 15.47),
            ("0.8.0", 15.47),
            ("0.8.1", 15.47),
            ("0.8.2", 24.47),
            ("0.8", 24.47),
            ("2.0.2", 24.47),
        ] {
            let ours = of(&raidz(1, 5), 15 * tib, 8192, version);
            assert!((ours - wanted).abs() < 0.02, "{version}: {ours}");
        }
        // The cost on mirrors is unchanged.
        let mirror = [VdevKind::Mirror { children: 2 }];
        assert_eq!(of(&mirror, tib, 8192, "0.7"), of(&mirror, tib, 8192, "2.4"));
        // Blocks of the reference size cost nothing extra.
        assert_eq!(
            of(&raidz(2, 6), tib, 128 << 10, "0.8.1"),
            of(&raidz(2, 6), tib, 128 << 10, "0.8.2")
        );
        assert!(of(&raidz(3, 8), tib, 4096, "0.8.1") < of(&raidz(3, 8), tib, 4096, "0.8.2"));
    }

    #[test]
    fn pointers_take_a_share_that_the_block_size_decides() {
        let tib = 1u64 << 40;
        // 2^23 records: 1024 per indirect block; further levels point to indirect blocks.
        let level: u64 = (1 << 23) + (1 << 13) + (1 << 3);
        assert_eq!(block_pointer_bytes(tib, 128 << 10), level * 256);
        assert_eq!(block_pointer_bytes(4096, 4096), 0);
        assert!(
            block_pointer_bytes(tib, 8 << 10) > tib / 33
                && block_pointer_bytes(tib, 8 << 10) < tib / 31
        );
        assert_eq!(block_pointer_bytes(u64::MAX, 0), u64::MAX);
    }
}
