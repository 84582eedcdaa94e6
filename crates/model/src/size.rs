//! Sizes in bytes, with one syntax for all of assay.
//!
//! `KiB`, `MiB` … are always powers of 1024; `kB`, `MB` … are always powers of 1000. Tools disagree about a single
//! letter: `4T` is 4·2⁴⁰ for fio, ZFS and QEMU, but 4·10¹² for disk vendors. Every caller therefore states its
//! [`Convention`], and printed sizes show it. (fio's own syntax, in which `kib` may be 1000, is in `assay-fio`.)

use serde::Serialize;

/// Meaning of a single letter as a unit (`4T`), and the units of printed sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Convention {
    /// Powers of 1000, as on the labels of disks: `4T` is 4·10¹², printed as `4 TB`.
    Decimal,
    /// Powers of 1024, as in fio, ZFS, QEMU and file systems: `4T` is 4·2⁴⁰, printed as `4 TiB`.
    Binary,
}

/// Family of units to which the unit of a parsed size belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// The size has no suffix, or the suffix `B`.
    Bytes,
    /// The suffix is a power of 1000, such as `MB`.
    Decimal,
    /// The suffix is a power of 1024, such as `MiB`.
    Binary,
}

/// Reason why a text is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The number is negative.
    Negative,
    /// The text before the suffix is not a number.
    Number,
    /// The suffix is unknown.
    Suffix,
    /// The value does not fit into 64 bits.
    TooLarge,
}

/// Error for a text that is not a size. The message contains a suggestion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` {}; {}", .input.escape_debug(), .problem.words(), .convention.examples())]
pub struct SizeError {
    /// The text that was parsed.
    pub input: String,
    /// Why the text is not a size.
    pub problem: Problem,
    /// Convention by which the text was parsed.
    pub convention: Convention,
}

impl Problem {
    /// Returns the reason as the end of a sentence.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Negative => "is negative",
            Self::Number => "is not a number of bytes",
            Self::Suffix => "is not a size",
            Self::TooLarge => "is more than 64 bits can count, 16 EiB",
        }
    }
}

const LETTERS: &str = "KMGTPE";

impl Convention {
    /// Returns examples of valid sizes, with the meaning of their units.
    #[must_use]
    pub fn examples(self) -> &'static str {
        match self {
            Self::Decimal => {
                "give a size such as 4T, 1.92TB or 20GiB (T and TB are 10^12, TiB is 2^40) or a \
                 number of bytes"
            }
            Self::Binary => {
                "give a size such as 4k, 64KiB, 1.5M or 2GB (k and KiB are 2^10, kB is 10^3) or a \
                 number of bytes"
            }
        }
    }

    /// Parses a size and returns it in bytes, rounded down to an integer. The computation is exact.
    ///
    /// # Errors
    /// The text is not a size, or the size exceeds 64 bits.
    ///
    /// # Examples
    /// ```
    /// use assay_model::size::Convention::{Binary, Decimal};
    /// assert_eq!(Decimal.parse("4T"), Ok(4_000_000_000_000));
    /// assert_eq!(Binary.parse("4T"), Ok(4 << 40));
    /// assert_eq!(Binary.parse("4TB"), Decimal.parse("4TB"));
    /// ```
    pub fn parse(self, text: &str) -> Result<u64, SizeError> {
        self.parse_with_unit(text).map(|(bytes, _)| bytes)
    }

    /// Parses a size. Also returns the family of its unit.
    ///
    /// # Errors
    /// As [`Convention::parse`].
    pub fn parse_with_unit(self, text: &str) -> Result<(u64, Unit), SizeError> {
        let wrong = |problem| SizeError {
            input: text.to_owned(),
            problem,
            convention: self,
        };
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(wrong(Problem::Negative));
        }
        let end = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, suffix) = (&trimmed[..end], trimmed[end..].trim_start());
        let (power, unit) = self.suffix(suffix).ok_or_else(|| wrong(Problem::Suffix))?;
        let base: u128 = if unit == Unit::Binary { 1024 } else { 1000 };
        let bytes = scale_decimal(number, base.pow(power)).ok_or_else(|| wrong(Problem::Number))?;
        match u64::try_from(bytes) {
            Ok(bytes) => Ok((bytes, unit)),
            Err(_) => Err(wrong(Problem::TooLarge)),
        }
    }

    /// Returns the exponent of a suffix, and the family to which the suffix belongs.
    fn suffix(self, suffix: &str) -> Option<(u32, Unit)> {
        let upper = suffix.to_ascii_uppercase();
        let (letter, rest) = match upper.chars().next() {
            None => return Some((0, Unit::Bytes)),
            Some('B') if upper.len() == 1 => return Some((0, Unit::Bytes)),
            Some(letter) => upper.split_at(letter.len_utf8()),
        };
        let power = u32::try_from(LETTERS.find(letter)?).ok()? + 1;
        let unit = match (rest, self) {
            ("I" | "IB", _) | ("", Self::Binary) => Unit::Binary,
            ("B", _) | ("", Self::Decimal) => Unit::Decimal,
            _ => return None,
        };
        Some((power, unit))
    }

    /// Formats a size with three significant digits: `3.64 TiB`, `750 GB`, `1.5 GiB`.
    #[must_use]
    pub fn show(self, bytes: u64) -> String {
        let (base, units) = match self {
            Self::Decimal => (1000.0, ["B", "kB", "MB", "GB", "TB", "PB", "EB"]),
            Self::Binary => (1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]),
        };
        let (mut value, mut unit) = (bytes as f64, 0);
        // A value that rounds to the base is shown in the next unit.
        while value >= base - 0.5 && unit + 1 < units.len() {
            value /= base;
            unit += 1;
        }
        let decimals = match value {
            _ if unit == 0 => 0,
            v if v < 9.995 => 2,
            v if v < 99.95 => 1,
            _ => 0,
        };
        let text = format!("{value:.decimals$}");
        let text = match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.'),
            false => &text,
        };
        format!("{text} {}", units[unit])
    }
}

/// Returns `number × scale`, rounded down; `None` if `number` is not a decimal number. A product above 128 bits becomes
/// the largest 128-bit value, which is also above the limit of 64 bits.
fn scale_decimal(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let value = |digits: &str| match digits {
        "" => 0,
        // The text has only digits, so parsing fails only on overflow.
        digits => digits.parse::<u128>().unwrap_or(u128::MAX),
    };
    // Digits after the eighteenth are worth less than a byte, even in EiB.
    let fraction = &fraction[..fraction.len().min(18)];
    let tens = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = value(fraction) * scale / tens;
    Some(value(whole).saturating_mul(scale).saturating_add(part))
}

#[cfg(test)]
mod tests {
    use super::Convention::{Binary, Decimal};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_a_letter_alone_depends_on_the_convention() {
        for (text, decimal, binary) in [
            ("4T", 4_000_000_000_000, 4 << 40),
            ("4k", 4_000, 4_096),
            ("4TB", 4_000_000_000_000, 4_000_000_000_000),
            ("2GB", 2_000_000_000, 2_000_000_000),
            ("4TiB", 4 << 40, 4 << 40),
            ("10Gi", 10 << 30, 10 << 30),
            ("1.92 TB", 1_920_000_000_000, 1_920_000_000_000),
            ("1.5m", 1_500_000, 3 << 19),
            ("4000787030016", 4_000_787_030_016, 4_000_787_030_016),
            ("7b", 7, 7),
        ] {
            assert_eq!(Decimal.parse(text), Ok(decimal), "{text}");
            assert_eq!(Binary.parse(text), Ok(binary), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_for_its_reason() {
        for (text, problem) in [
            ("-4T", Problem::Negative),
            ("", Problem::Number),
            ("T", Problem::Number),
            (".", Problem::Number),
            ("1.2.3T", Problem::Number),
            ("NaN", Problem::Suffix),
            ("inf", Problem::Suffix),
            ("1e3", Problem::Suffix),
            ("4X", Problem::Suffix),
            ("4i", Problem::Suffix),
            ("4TiBB", Problem::Suffix),
            ("4Ti\u{7}B", Problem::Suffix),
            ("4µ", Problem::Suffix),
            ("16E", Problem::TooLarge),
            ("18446744073709551616", Problem::TooLarge),
            (
                "99999999999999999999999999999999999999999P",
                Problem::TooLarge,
            ),
        ] {
            let error = Binary.parse(text).unwrap_err();
            assert_eq!(error.problem, problem, "{text}");
            assert!(!error.to_string().contains('\u{7}'));
        }
    }

    #[test]
    fn people_read_these() {
        assert_eq!(Decimal.show(4_000_787_030_016), "4 TB");
        assert_eq!(Binary.show(4_000_787_030_016), "3.64 TiB");
        assert_eq!(Decimal.show(750_156_374_016), "750 GB");
        assert_eq!(Decimal.show(999_999_999_999), "1 TB");
        assert_eq!(Binary.show((1 << 20) - 1), "1 MiB");
        assert_eq!(Binary.show(3 << 29), "1.5 GiB");
        assert_eq!(Binary.show(0), "0 B");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back_within_its_precision(bytes in any::<u64>(), shift in 0u32..64) {
            let bytes = bytes >> shift;
            for convention in [Decimal, Binary] {
                let shown = convention.show(bytes);
                // 16 EiB minus one byte is shown as 16 EiB, which is too large to parse.
                let Ok(read) = convention.parse(&shown) else {
                    prop_assert!(bytes > u64::MAX - (u64::MAX >> 7), "{shown}");
                    continue;
                };
                let off = read.abs_diff(bytes) as f64;
                // Half a unit of the third digit, and the rounding to a whole byte.
                prop_assert!(off <= bytes as f64 * 0.00501 + 1.0, "{bytes}: {shown} is {read}");
            }
        }

        #[test]
        fn bytes_are_read_exactly(bytes in any::<u64>(), whole in 1u64..900, power in 1usize..6) {
            for convention in [Decimal, Binary] {
                prop_assert_eq!(convention.parse_with_unit(&bytes.to_string()), Ok((bytes, Unit::Bytes)));
                let letter = &LETTERS[power - 1..power];
                prop_assert_eq!(convention.parse(&format!("{whole}{letter}B")), Ok(whole * 1000u64.pow(power as u32)));
                prop_assert_eq!(convention.parse(&format!("{whole}{letter}iB")), Ok(whole << (10 * power)));
            }
        }

        #[test]
        fn any_text_is_a_size_or_an_error(text in "\\PC*", number in "[0-9.]{0,60}[kKmMgGtTpPeE]?[i]?[bB]?") {
            for convention in [Decimal, Binary] {
                let _ = convention.parse(&text);
                let _ = convention.parse(&number);
            }
        }
    }
}
