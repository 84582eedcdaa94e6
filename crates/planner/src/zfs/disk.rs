//! Computes how much of a whole disk `zpool create` leaves for data.

use crate::error::PlannerError;

/// Returns the size in bytes of partition 1 when ZFS gets a whole disk of `bytes` bytes with sectors of `lba` bytes.
///
/// ZFS writes a GPT label: 33 sectors at each end for 512-byte sectors (5 for 4 KiB). The data partition starts at
/// sector 2048. After it, 16,384 sectors are reserved (partition 9, 8 MiB with 512-byte sectors, 64 MiB with native 4
/// KiB sectors). The length is rounded down to 2048 sectors.
///
/// Source: `zpool_label_disk` (lib/libzfs/os/linux/libzfs_pool_os.c), `efi_alloc_and_init` (lib/libefi/rdwr_efi.c),
/// `NEW_START_BLOCK` and `PARTITION_END_ALIGNMENT` (vdev_disk.h), OpenZFS 2.1.11; the same in 0.7 to 2.4.
///
/// # Errors
/// [`PlannerError::Size`] if no space remains, [`PlannerError::Value`] if the sector size is neither 512 nor 4096.
pub fn partition_bytes(bytes: u64, lba: u64) -> Result<u64, PlannerError> {
    if lba != 512 && lba != 4096 {
        return Err(PlannerError::value(
            format!("logical sector size {lba}"),
            "disks have sectors of 512 or 4096 bytes",
        ));
    }
    // 9 partition entries of 128 bytes need less than the 16 KiB that GPT prescribes.
    let label = 16_384 / lba + 1;
    let sectors = bytes / lba;
    let left = sectors
        .checked_sub(1 + label)
        .and_then(|last_usable| (last_usable + 1).checked_sub(16_384 + 2_048))
        .map_or(0, |size| size / 2048 * 2048);
    if left == 0 {
        return Err(PlannerError::Size {
            input: bytes.to_string(),
            reason: "too small for the partitions ZFS makes on a whole disk".into(),
        });
    }
    Ok(left * lba)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_4k_disks_lose_eight_times_as_much() {
        assert_eq!(
            partition_bytes(4_000_787_030_016, 512),
            Ok(4_000_776_716_288)
        );
        assert!(partition_bytes(4_000_787_030_016, 4096).unwrap() < 4_000_787_030_016 - (64 << 20));
        assert!(partition_bytes(1 << 20, 512).is_err());
        assert!(partition_bytes(1 << 40, 520).is_err());
    }
}
