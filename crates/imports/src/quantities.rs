//! Parses numbers with units in the forms that the programs print.

use assay_model::{Bytes, Nanos};

/// Splits a text such as `123.4MB/s` or `123.4 MB/s` into the number and the rest. The rest has no spaces at its ends.
pub(crate) fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')
        .unwrap_or(text.len());
    let number = parse_number(&text[..end])?;
    Some((number, text[end..].trim()))
}

/// Parses a number such as `1234.5`, `1234,5` (in some locales) or `1,234.5`.
pub(crate) fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = match (text.contains('.'), text.matches(',').count()) {
        (false, 1) => text.replace(',', "."),
        _ => text.replace(',', ""),
    };
    let number: f64 = plain.parse().ok()?;
    number.is_finite().then_some(number)
}

/// Returns the number of bytes of a unit. `kilo` is the value of a K without `i`, which is 1000 or 1024, depending on
/// the program.
pub(crate) fn unit_bytes(unit: &str, kilo: f64) -> Option<f64> {
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.trim_end_matches("ytes").trim_end_matches("yte");
    let unit = unit.trim_end_matches('b');
    let (letter, base) = match unit.strip_suffix('i') {
        Some(letter) => (letter, 1024.0_f64),
        None => (unit, kilo),
    };
    let power = match letter {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(base.powi(power))
}

/// Parses a size such as `64MiB`, `1.1719Gb`, `16K`.
pub(crate) fn parse_size(text: &str, kilo: f64) -> Option<Bytes> {
    let (number, unit) = split_number(text)?;
    Some(Bytes((number * unit_bytes(unit, kilo)?).round() as u64))
}

/// Splits `0.5 KB  1234  5678` into the size and the text after its unit.
pub(crate) fn split_size(text: &str, kilo: f64) -> Option<(Bytes, &str)> {
    let (number, rest) = split_number(text)?;
    let end = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let size = Bytes((number * unit_bytes(unit, kilo)?).round() as u64);
    (!unit.is_empty()).then_some((size, rest))
}

/// Parses a rate such as `555 MB/s`, `53.316Kb/sec`.
pub(crate) fn parse_rate(text: &str, kilo: f64) -> Option<f64> {
    let (number, unit) = split_number(text)?;
    let unit = unit
        .strip_suffix("/sec")
        .or_else(|| unit.strip_suffix("/s"))?;
    Some(number * unit_bytes(unit, kilo)?)
}

/// Converts milliseconds to the time type of the model.
pub(crate) fn from_ms(ms: f64) -> Nanos {
    Nanos((ms * 1e6).round() as u64)
}
