//! Disk sizes as people write them, by the decimal convention: disks are sold in powers of ten, so
//! here `4T` means 4·10¹² bytes. Every answer states the unit it was given in.

use crate::error::PlanError;
use assay_model::size::Convention::Decimal;
use assay_model::size::{Problem, Unit};

/// Largest disk that is accepted: 1 EiB. ZFS and btrfs address 2⁶⁴ bytes a pool; the limit keeps
/// every sum of [`MAX_DISKS`] disks, parity included, within 128-bit intermediate results.
pub const MAX_DISK: u64 = 1 << 60;

/// Most disks in one question; above it the search would no longer be answered in seconds.
pub const MAX_DISKS: usize = 1024;

/// Reads a size; the second value says in which family of units it was written.
///
/// # Errors
/// [`PlanError::Unreadable`] when it is no size, [`PlanError::Size`] when it is zero or above
/// [`MAX_DISK`].
///
/// # Examples
/// ```
/// use assay_planner::size::parse;
/// assert_eq!(parse("4T").unwrap().0, 4_000_000_000_000);
/// assert_eq!(parse("4TiB").unwrap().0, 4 << 40);
/// assert!(parse("-1T").is_err());
/// ```
pub fn parse(text: &str) -> Result<(u64, Unit), PlanError> {
    let wrong = |reason: &str| PlanError::Size {
        input: text.escape_debug().to_string(),
        reason: reason.to_owned(),
    };
    let large = || wrong("is above 1 EiB, the largest disk that can be planned");
    match Decimal.parse_with_unit(text) {
        Ok((0, _)) => Err(wrong("is zero; leave the disk out")),
        Ok((bytes, unit)) if bytes <= MAX_DISK => Ok((bytes, unit)),
        Err(error) if error.problem != Problem::TooLarge => Err(error.into()),
        Ok(_) | Err(_) => Err(large()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(
                error.contains(why) && !error.contains('\u{7}'),
                "{bad}: {error}"
            );
        }
    }
}
