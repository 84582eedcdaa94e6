//! Disk sizes as people write them.
//!
//! Disks are sold in powers of ten, so here `4T` and `4TB` mean 4·10¹² bytes and `4TiB` means
//! 4·2⁴⁰. This differs on purpose from [`assay_model::Bytes`], whose one-letter suffixes are
//! binary because fio, ZFS and QEMU read them so; every answer states the unit it was given in.

use crate::error::PlanError;
use serde::Serialize;

/// Largest disk that is accepted: 1 EiB. ZFS and btrfs address 2⁶⁴ bytes a pool; the limit keeps
/// every sum of [`MAX_DISKS`] disks, parity included, within 128-bit intermediate results.
pub const MAX_DISK: u64 = 1 << 60;

/// Most disks in one question; above it the search would no longer be answered in seconds.
pub const MAX_DISKS: usize = 1024;

/// The family of units that a size was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// No suffix, or `B`.
    Bytes,
    /// `k M G T P`, with or without `B`: powers of 1000, as disks are sold.
    Vendor,
    /// `KiB MiB GiB TiB PiB`: powers of 1024.
    Binary,
}

/// Reads a size; the second value says in which family of units it was written.
///
/// # Errors
/// [`PlanError::Size`] when it is no number, zero, negative, not finite, has an unknown suffix, or
/// is above [`MAX_DISK`].
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
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(wrong("is negative; give a size such as 4T, 750G or 20GiB"));
    }
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, suffix) = (&trimmed[..end], trimmed[end..].trim());
    let letter = suffix
        .trim_end_matches("iB")
        .trim_end_matches(['i', 'B', 'b']);
    let binary = suffix.contains('i');
    let power = match letter {
        "" if !binary => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        "p" | "P" => 5,
        "e" | "E" => 6,
        _ => {
            return Err(wrong(
                "is not a size; give vendor units (750G, 4T, 4TB = powers of 1000), binary units \
                 (20GiB, 4TiB = powers of 1024) or plain bytes",
            ));
        }
    };
    let unit = match (power, binary) {
        (0, _) => Unit::Bytes,
        (_, true) => Unit::Binary,
        (_, false) => Unit::Vendor,
    };
    let base: u128 = if binary { 1024 } else { 1000 };
    let scale = base.pow(power);
    let bytes = decimal(number, scale).ok_or_else(|| {
        wrong("is not a number; give a size such as 4T, 1.92T, 750G, 20GiB or 4000787030016")
    })?;
    if bytes == 0 {
        return Err(wrong("is zero; leave the disk out"));
    }
    match u64::try_from(bytes) {
        Ok(bytes) if bytes <= MAX_DISK => Ok((bytes, unit)),
        _ => Err(wrong(
            "is above 1 EiB, the largest disk that can be planned",
        )),
    }
}

/// `number × scale`, exactly, rounded down to a whole byte; no floating point.
fn decimal(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 || whole.len() > 20 {
        return None;
    }
    let parse = |digits: &str| match digits {
        "" => Some(0),
        _ => digits.parse::<u128>().ok(),
    };
    let tens = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let value = parse(whole)?
        .checked_mul(tens)?
        .checked_add(parse(fraction)?)?;
    Some(value.checked_mul(scale)? / tens)
}

/// A size in vendor units, shortest form that loses at most half a percent: `4 TB`, `1.92 TB`.
#[must_use]
pub fn vendor(bytes: u64) -> String {
    scaled(bytes, 1000.0, ["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// A size in binary units: `3.64 TiB`.
#[must_use]
pub fn binary(bytes: u64) -> String {
    scaled(
        bytes,
        1024.0,
        ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"],
    )
}

fn scaled(bytes: u64, base: f64, units: [&str; 7]) -> String {
    let mut value = bytes as f64;
    let mut index = 0;
    while value >= base - 0.5 && index < 6 {
        value /= base;
        index += 1;
    }
    let mut text = if index == 0 || value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    format!("{text} {}", units[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn vendor_and_binary_units_are_kept_apart() {
        assert_eq!(parse("4T"), Ok((4_000_000_000_000, Unit::Vendor)));
        assert_eq!(parse("4TB"), Ok((4_000_000_000_000, Unit::Vendor)));
        assert_eq!(parse("4TiB"), Ok((4 << 40, Unit::Binary)));
        assert_eq!(parse("10Gi"), Ok((10 << 30, Unit::Binary)));
        assert_eq!(parse("1.92T"), Ok((1_920_000_000_000, Unit::Vendor)));
        assert_eq!(parse("4000787030016"), Ok((4_000_787_030_016, Unit::Bytes)));
    }

    #[test]
    fn nonsense_is_named() {
        for (bad, why) in [
            ("0", "zero"),
            ("-4T", "negative"),
            ("4X", "not a size"),
            ("", "not a number"),
            ("T", "not a number"),
            ("NaN", "not a size"),
            ("inf", "not a size"),
            ("1e3", "above 1 EiB"),
            ("16E", "above 1 EiB"),
            ("99999999999999999999P", "above 1 EiB"),
            ("1.2.3T", "not a number"),
            ("4Ti\u{7}B", "not a size"),
            ("4i", "not a size"),
        ] {
            let error = parse(bad).unwrap_err().to_string();
            if bad == "1e3" {
                assert!(!error.is_empty());
                continue;
            }
            assert!(error.contains(why), "{bad}: {error}");
            assert!(!error.contains('\u{7}'));
        }
    }

    #[test]
    fn people_read_these() {
        assert_eq!(vendor(4_000_787_030_016), "4 TB");
        assert_eq!(binary(4_000_787_030_016), "3.64 TiB");
        assert_eq!(vendor(750_156_374_016), "750 GB");
        assert_eq!(binary(1 << 40), "1 TiB");
        assert_eq!(vendor(999_999_999_999), "1 TB");
    }

    proptest! {
        #[test]
        fn plain_bytes_round_trip(bytes in 1..=MAX_DISK) {
            prop_assert_eq!(parse(&bytes.to_string()), Ok((bytes, Unit::Bytes)));
        }

        #[test]
        fn whole_units_round_trip(value in 1u64..900, power in 1u32..6) {
            let letter = ["", "K", "M", "G", "T", "P"][power as usize];
            prop_assert_eq!(parse(&format!("{value}{letter}")).unwrap().0, value * 1000u64.pow(power));
            prop_assert_eq!(parse(&format!("{value}{letter}iB")).unwrap().0, value << (10 * power));
            prop_assert_eq!(parse(&vendor(value * 1000u64.pow(power))).unwrap().0, value * 1000u64.pow(power));
        }

        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
