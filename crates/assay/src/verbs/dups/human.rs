//! Numbers as people read them.

/// Bytes with a binary unit and three digits: `1.23 GiB`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1000.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" {
        return format!("{bytes} B");
    }
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// Bytes in the largest unit that needs no fraction, as a size is given: `64K`.
pub fn exact(bytes: u64) -> String {
    let fitting = [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')]
        .into_iter()
        .find(|(bits, _)| bytes >> bits != 0 && bytes.is_multiple_of(1 << bits));
    fitting.map_or_else(
        || bytes.to_string(),
        |(bits, unit)| format!("{}{unit}", bytes >> bits),
    )
}

/// Nanoseconds in the largest unit that needs no fraction, as an age is given: `7d`.
pub fn exact_age(nanos: i64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (number, unit) = [(86_400, 'd'), (3600, 'h'), (60, 'm')]
        .into_iter()
        .find(|(length, _)| seconds % length == 0)
        .map_or((seconds, 's'), |(length, unit)| (seconds / length, unit));
    format!("{number}{unit}")
}

/// A count with thousands apart: `214,038`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 group`, `2 groups`.
pub fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A span of time in its largest fitting unit: `3 days`.
pub fn age(nanos: i64) -> String {
    let seconds = (nanos / 1_000_000_000).max(0).unsigned_abs();
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    plural(number, unit, &format!("{unit}s"))
}

/// Nanoseconds out of `90s`, `15m`, `12h`, `7d`, `4w`, `1y`.
pub fn parse_age(text: &str) -> Result<i64, String> {
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
    fn numbers() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(bytes(5_362_000_000), "4.99 GiB");
        assert_eq!(count(214_038), "214,038");
        assert_eq!(parse_age("2d"), Ok(172_800_000_000_000));
        assert!(parse_age("").is_err());
        assert!(parse_age("7 days").is_err());
    }
}
