//! Parses disk sizes. Prefixes are decimal, because disks are sold in powers of ten: `4T` means 4·10¹² bytes. Every
//! answer contains the unit of its input.

use crate::error::PlannerError;
use assay_model::size::Convention::Decimal;
use assay_model::size::{Problem, Unit};

/// Maximum size of a disk in bytes: 1 EiB. ZFS and btrfs address 2⁶⁴ bytes per pool. The limit keeps every sum over
/// [`MAX_DISKS`] disks, including parity, within 128 bits.
pub const MAX_DISK: u64 = 1 << 60;

/// Maximum number of disks in a question, so that the search takes only seconds.
pub const MAX_DISKS: usize = 1024;

/// Parses a size. The second value is the family of units of the input.
///
/// # Errors
/// [`PlannerError::Unreadable`] if the text is not a size, [`PlannerError::Size`] if it is zero or above
/// [`MAX_DISK`].
///
/// # Examples
/// ```
/// use assay_planner::size::parse;
/// assert_eq!(parse("4T").unwrap().0, 4_000_000_000_000);
/// assert_eq!(parse("4TiB").unwrap().0, 4 << 40);
/// assert!(parse("-1T").is_err());
/// ```
pub fn parse(text: &str) -> Result<(u64, Unit), PlannerError> {
    let wrong = |reason: &str| PlannerError::Size {
        input: text.escape_debug().to_string(),
        reason: reason.to_owned(),
    };
    let large = || wrong("is above 1 EiB, the largest disk that can be planned");
    if text.is_empty() {
        return Err(wrong("is missing: write it after the count, as in 5x4T"));
    }
    match Decimal.parse_with_unit(text) {
        Ok((0, _)) => Err(wrong("is zero; leave the disk out")),
        Ok((bytes, unit)) if bytes <= MAX_DISK => Ok((bytes, unit)),
        Err(error) if error.problem != Problem::TooLarge => Err(error.into()),
        Ok(_) | Err(_) => Err(large()),
    }
}

/// Parses the size of an option that is not about a disk, such as the memory of guests.
///
/// # Errors
/// The text is not a size, or the size is zero or above [`MAX_DISK`].
pub fn parse_amount(text: &str) -> Result<u64, PlannerError> {
    let wrong = |reason| PlannerError::value(format!("size {}", text.escape_debug()), reason);
    match Decimal.parse_with_unit(text) {
        Ok((0, _)) => Err(wrong("must be more than zero; leave the option out")),
        Ok((bytes, _)) if bytes <= MAX_DISK => Ok(bytes),
        Err(error) if error.problem != Problem::TooLarge => Err(PlannerError::Amount(error)),
        Ok(_) | Err(_) => Err(wrong(
            "is above 1 EiB, the largest size that can be planned",
        )),
    }
}

/// Minimum and maximum block size of ZFS in bytes (`SPA_MINBLOCKSIZE`, `SPA_MAXBLOCKSIZE`).
const BLOCKS: std::ops::RangeInclusive<u64> = 512..=16 << 20;

/// Parses a recordsize or volblocksize, which must be a power of two. `8k` means 8000 bytes and is refused, with a
/// message that suggests the nearest valid sizes.
///
/// # Errors
/// As [`parse`], or the size is not a valid block size.
pub fn parse_block(text: &str) -> Result<u64, PlannerError> {
    let bytes = match Decimal.parse_with_unit(text) {
        Ok((bytes, _)) => bytes,
        Err(error) if error.problem != Problem::TooLarge => {
            return Err(PlannerError::Amount(error));
        }
        Err(_) => u64::MAX,
    };
    check_block(bytes, text)?;
    Ok(bytes)
}

/// Checks a recordsize or volblocksize. `shown` is the size as the error message shows it.
///
/// # Errors
/// The size is not a power of two from 512 bytes to 16 MiB.
pub fn check_block(bytes: u64, shown: &str) -> Result<(), PlannerError> {
    use assay_model::size::Convention::Binary;
    let what = || format!("block size {}", shown.escape_debug());
    if !BLOCKS.contains(&bytes) {
        return Err(PlannerError::value(what(), "must be 512 bytes to 16 MiB"));
    }
    if bytes.is_power_of_two() {
        return Ok(());
    }
    let above = bytes.next_power_of_two();
    let (near, far) = match above - bytes < bytes - above / 2 {
        true => (above, above / 2),
        false => (above / 2, above),
    };
    let write = |bytes: u64| Binary.show(bytes).replace(' ', "");
    Err(PlannerError::value(
        what(),
        format!(
            "{bytes} bytes is no power of two, so no recordsize or volblocksize: write {} or {}",
            write(near),
            write(far)
        ),
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_block_is_a_power_of_two_or_refused_with_both_candidates() {
        for (good, bytes) in [
            ("8KiB", 8192),
            ("512", 512),
            ("16MiB", 16 << 20),
            ("4096", 4096),
            ("131072", 131_072),
        ] {
            assert_eq!(parse_block(good), Ok(bytes), "{good}");
        }
        for (bad, wanted) in [
            ("8k", "write 8KiB or 4KiB"),
            ("16K", "write 16KiB or 8KiB"),
            ("128k", "write 128KiB or 64KiB"),
            ("12KiB", "write 8KiB or 16KiB"),
            ("1M", "write 1MiB or 512KiB"),
            ("20KiB", "write 16KiB or 32KiB"),
            ("4kB", "write 4KiB or 2KiB"),
            ("1000", "write 1KiB or 512B"),
            ("1", "must be 512 bytes to 16 MiB"),
            ("0", "must be 512 bytes to 16 MiB"),
            ("99E", "must be 512 bytes to 16 MiB"),
            ("", "not a number"),
            ("32MiB", "must be 512 bytes to 16 MiB"),
        ] {
            let error = parse_block(bad).unwrap_err().to_string();
            assert!(error.contains(wanted), "{bad}: {error}");
        }
    }

    use super::*;

    #[test]
    fn an_option_is_no_disk() {
        assert_eq!(parse_amount("40GiB"), Ok(40 << 30));
        for (bad, wanted) in [
            ("0", "more than zero"),
            ("99E", "above 1 EiB"),
            ("-1G", "negative"),
        ] {
            let error = parse_amount(bad).unwrap_err().to_string();
            assert!(error.contains(wanted) && !error.contains("disk"), "{error}");
        }
    }

    #[test]
    fn a_disk_is_more_than_nothing_and_at_most_an_exbibyte() {
        assert_eq!(parse("4T"), Ok((4_000_000_000_000, Unit::Decimal)));
        assert_eq!(parse("1EiB"), Ok((MAX_DISK, Unit::Binary)));
        for (bad, why) in [
            ("0", "zero"),
            ("0.4B", "zero"),
            ("1025PiB", "above 1 EiB"),
            ("99E", "above 1 EiB"),
            ("-4T", "negative"),
            ("4Ti\u{7}B", "not a size"),
            ("", "after the count"),
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(
                error.contains(why) && !error.contains('\u{7}'),
                "{bad}: {error}"
            );
        }
    }
}
