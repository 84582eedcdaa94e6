//! Parses and formats ages of files.

use assay_render::units::format_plural;

/// Formats nanoseconds in the largest unit that gives a whole number, such as `7d`.
pub fn exact(nanos: i64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (number, unit) = [(86_400, 'd'), (3600, 'h'), (60, 'm')]
        .into_iter()
        .find(|(length, _)| seconds % length == 0)
        .map_or((seconds, 's'), |(length, unit)| (seconds / length, unit));
    format!("{number}{unit}")
}

/// Formats nanoseconds for people in the largest suitable unit, such as `3 days`.
pub fn show(nanos: i64) -> String {
    let seconds = (nanos / 1_000_000_000).max(0).unsigned_abs();
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format_plural(number, unit, &format!("{unit}s"))
}

/// Parses `90s`, `15m`, `12h`, `7d`, `4w`, `1y` to nanoseconds.
pub fn parse(text: &str) -> Result<i64, String> {
    let wrong =
        || format!("`{text}` is no age; expected a number and s, m, h, d, w or y, e.g. 30d");
    let split = text
        .len()
        .checked_sub(1)
        .filter(|at| text.is_char_boundary(*at));
    let (number, unit) = text.split_at(split.ok_or_else(wrong)?);
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let seconds: i64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "y" => 365 * 86_400,
        _ => return Err(wrong()),
    };
    i64::from(number)
        .checked_mul(seconds)
        .and_then(|seconds| seconds.checked_mul(1_000_000_000))
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        assert_eq!(parse("2d"), Ok(172_800_000_000_000));
        assert!(parse("").is_err());
        assert!(parse("7 days").is_err());
    }
}
