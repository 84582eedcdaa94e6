//! Unit types for bytes and nanoseconds, with their input syntax and output format.
//!
//! [`Bytes`] use the binary convention of [`crate::size`]: `4k` is 4096, as in fio, ZFS and QEMU. Rates are always
//! printed in MB/s = 10⁶ bytes per second.

use crate::size::{Convention, SizeError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A duration in nanoseconds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// Error for a text that is not a valid quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{input}` is not {expected}")]
pub struct UnitError {
    /// The text that was parsed.
    pub input: String,
    /// Expected form with an example.
    pub expected: &'static str,
}

const TIME: &str = "a duration such as 250us, 20ms, 10s, 5m or 1h, of at most 8760h";

/// Maximum duration in nanoseconds: one year. The sum of hundreds of such durations still fits into 64 bits.
const LONGEST_TIME: u64 = 8760 * 3_600_000_000_000;

/// Splits a text such as `12.5ms` into the number and the suffix.
fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// Returns `number × unit`, rounded down to an integer.
fn scale_number(number: &str, unit: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let value: f64 = number.parse().ok()?;
    let scaled = value * unit as f64;
    (scaled.is_finite() && scaled >= 0.0 && scaled < u64::MAX as f64)
        .then_some(scaled.round() as u64)
}

impl FromStr for Bytes {
    type Err = SizeError;
    fn from_str(text: &str) -> Result<Self, SizeError> {
        Convention::Binary.parse(text).map(Bytes)
    }
}

impl Bytes {
    /// Returns a short form that `FromStr` parses to the same value: `4k`, `1M`, `1000`.
    #[must_use]
    pub fn short(self) -> String {
        for (shift, suffix) in [(40, "T"), (30, "G"), (20, "M"), (10, "k")] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return format!("{}{suffix}", self.0 >> shift);
            }
        }
        self.0.to_string()
    }
}

impl fmt::Display for Bytes {
    /// Formats in binary units: `4 KiB`, `1.5 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Convention::Binary.show(self.0))
    }
}

impl Nanos {
    /// Converts seconds; negative and non-finite values become zero.
    #[must_use]
    pub fn from_secs_f64(seconds: f64) -> Self {
        let nanos = seconds * 1e9;
        Self(if nanos.is_finite() && nanos > 0.0 {
            nanos as u64
        } else {
            0
        })
    }

    /// Returns the duration in seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the sum. If the sum exceeds 64 bits, returns the largest `u64` value.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, suffix) = split_number(text);
        let unit = match suffix {
            "ns" => Some(1),
            "us" | "µs" | "μs" => Some(1_000),
            "ms" => Some(1_000_000),
            "s" | "sec" | "" => Some(1_000_000_000),
            "m" | "min" => Some(60_000_000_000),
            "h" => Some(3_600_000_000_000),
            _ => None,
        };
        unit.and_then(|unit| scale_number(number, unit))
            .filter(|nanos| *nanos <= LONGEST_TIME)
            .map(Nanos)
            .ok_or_else(|| UnitError {
                input: text.to_owned(),
                expected: TIME,
            })
    }
}

impl fmt::Display for Nanos {
    /// Formats three significant digits in a suitable unit: `850 ns`, `12.3 µs`, `1.50 ms`, `2 m 05
    /// s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        if ns >= 60e9 {
            let seconds = (ns / 1e9).round() as u64;
            if seconds >= 3600 {
                return write!(f, "{} h {:02} m", seconds / 3600, seconds % 3600 / 60);
            }
            return write!(f, "{} m {:02} s", seconds / 60, seconds % 60);
        }
        let (value, unit) = if ns >= 1e9 {
            (ns / 1e9, "s")
        } else if ns >= 1e6 {
            (ns / 1e6, "ms")
        } else if ns >= 1e3 {
            (ns / 1e3, "µs")
        } else {
            return write!(f, "{} ns", self.0);
        };
        let decimals = if value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        write!(f, "{value:.decimals$} {unit}")
    }
}

impl Nanos {
    /// Returns a short form that `FromStr` parses to the same value: `1500ms`, `10s`.
    #[must_use]
    pub fn short(self) -> String {
        for (unit, suffix) in [
            (60_000_000_000, "m"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
        ] {
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return format!("{}{suffix}", self.0 / unit);
            }
        }
        format!("{}ns", self.0)
    }
}

/// Deserialises an integer in the base unit, or a string with a suffix.
macro_rules! deserialize_quantity {
    ($type:ident, $expecting:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<$type, E> {
                        Ok($type(value))
                    }
                    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<$type, E> {
                        u64::try_from(value)
                            .map($type)
                            .map_err(|_| E::custom(format!("{value} is negative")))
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }
    };
}
deserialize_quantity!(Bytes, "a size such as \"4k\" or a number of bytes");
deserialize_quantity!(
    Nanos,
    "a duration such as \"20ms\" or a number of nanoseconds"
);

/// Formats a rate in MB/s (10⁶ bytes per second) with three significant digits: `0.52`, `43.1`,
/// `1240`.
#[must_use]
pub fn mb_per_s(bytes_per_second: f64) -> String {
    format_significant(bytes_per_second / 1e6)
}

/// Formats a count such as IOPS. Up to 9,999, it has three significant digits; above, it is an integer with thousands
/// separators.
#[must_use]
pub fn format_significant(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1000.0 {
        let whole = format!("{:.0}", value.abs());
        let mut out = String::new();
        for (i, digit) in whole.chars().enumerate() {
            if i > 0 && (whole.len() - i).is_multiple_of(3) {
                out.push(',');
            }
            out.push(digit);
        }
        if value < 0.0 { format!("-{out}") } else { out }
    } else if magnitude >= 100.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_letter_suffixes_are_binary_and_kb_is_decimal() {
        assert_eq!("4k".parse(), Ok(Bytes(4096)));
        assert_eq!("1MB".parse(), Ok(Bytes(1_000_000)));
        assert_eq!("20ms".parse(), Ok(Nanos(20_000_000)));
    }

    #[test]
    fn nonsense_names_the_input() {
        for bad in ["", "k", "-4k", "4x", "1e99P", "..", "99999999999999999999P"] {
            let error = bad.parse::<Bytes>().unwrap_err();
            assert!(error.to_string().contains(bad));
        }
        for bad in ["-1s", "4000000h", "8761h", "99999999999h"] {
            assert!(bad.parse::<Nanos>().is_err(), "{bad}");
        }
        assert_eq!("8760h".parse(), Ok(Nanos(LONGEST_TIME)));
    }

    #[test]
    fn people_read_these() {
        assert_eq!(Bytes(4096).to_string(), "4 KiB");
        assert_eq!(Bytes(1_610_612_736).to_string(), "1.5 GiB");
        assert_eq!(Nanos(1_234_567).to_string(), "1.23 ms");
        assert_eq!(Nanos(125_000_000_000).to_string(), "2 m 05 s");
        assert_eq!(mb_per_s(43_100_000.0), "43.1");
        assert_eq!(format_significant(123_456.0), "123,456");
    }

    proptest! {
        #[test]
        fn short_forms_read_back(value in any::<u64>()) {
            prop_assert_eq!(Bytes(value).short().parse(), Ok(Bytes(value)));
            let time = Nanos(value % (LONGEST_TIME + 1));
            prop_assert_eq!(time.short().parse(), Ok(time));
        }
    }
}
