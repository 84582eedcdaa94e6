//! What a volume reserves.

use super::vdev::{DEFLATE_BLOCK, Kind};

/// `refreservation` that `zfs create -V volsize -b block` sets, in bytes.
///
/// Source: `zvol_volsize_to_reservation`, `volsize_from_vdevs` (libzfs_dataset.c, OpenZFS 2.1.11):
/// the data blocks, scaled by what they cost on the worst raidz or dRAID vdev against a 128 KiB
/// block, and an uncompressed 128 KiB indirect block for every 128 blocks of each level, twice.
#[must_use]
pub fn refreservation(vdevs: &[Kind], ashift: u32, volsize: u64, block: u64) -> u64 {
    let mut blocks = volsize / block;
    let scaled = vdevs
        .iter()
        .filter_map(|&kind| match kind {
            Kind::Raidz { .. } | Kind::Draid { .. } => Some(
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
