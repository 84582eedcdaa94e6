//! Parses numbers with units in fio's text. [`crate::options`] parses those in options and job files.

/// Parses a size with fio's units, such as `4096B`, `16.0KiB`, `4K` (1024) or `6266.4MB` (factor 1024 before fio 3).
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = split_unit(text)?;
    let power = match unit.to_ascii_lowercase().trim_end_matches('b') {
        "" => 0,
        "k" | "ki" => 1,
        "m" | "mi" => 2,
        "g" | "gi" => 3,
        "t" | "ti" => 4,
        _ => return None,
    };
    Some((number * 1024f64.powi(power)).round() as u64)
}

/// Parses a count with an SI suffix, such as `12.3k` or `1.5M`.
pub(super) fn parse_count(text: &str) -> Option<f64> {
    let (number, unit) = split_unit(text.trim())?;
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        _ => return None,
    };
    Some(number * factor)
}

fn split_unit(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim()))
}
