//! Parses numbers by fio's rules (`parse.c`: `get_mult_bytes`, `get_mult_time`).

use assay_model::Nanos;

/// Parses `text` into bytes. With `kb_base` 1024, fio's default, `k` and `kb` mean 1024 but `kib` means 1000. With
/// `kb_base` 1000, the meanings are swapped. `0x` means hexadecimal.
#[must_use]
pub fn parse_bytes(text: &str, kb_base: u64) -> Option<u64> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let suffix = suffix.to_ascii_lowercase();
    let power = match suffix.chars().next() {
        None | Some('b') => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return None,
    };
    let unit = match (is_swapped_suffix(&suffix), kb_base) {
        (false, base) => base,
        (true, 1000) => 1024,
        (true, _) => 1000,
    };
    let unit = unit.checked_pow(power)?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let value = number.parse::<f64>().ok()? * unit as f64;
    (value.is_finite() && value < u64::MAX as f64).then_some(value as u64)
}

/// Returns whether a suffix is one of those with swapped meaning: `kib`, `mib` and so on.
fn is_swapped_suffix(suffix: &str) -> bool {
    suffix.len() == 3 && suffix.ends_with("ib")
}

/// Returns fio's value of `text` and the value that was probably intended, if they differ. For example, `4kib` is 4000
/// for fio.
#[must_use]
pub fn unit_trap(text: &str, kb_base: u64) -> Option<(u64, u64)> {
    if kb_base == 1000 {
        return None;
    }
    let start = text.find(|c: char| c.is_ascii_alphabetic())?;
    let suffix = text[start..].trim().to_ascii_lowercase();
    if !is_swapped_suffix(&suffix) {
        return None;
    }
    let got = parse_bytes(text, kb_base)?;
    let meant = parse_bytes(text, 1000)?;
    (got != meant).then_some((got, meant))
}

/// Parses `text` as a time. Without a suffix, the unit is seconds.
#[must_use]
pub(super) fn parse_time(text: &str) -> Option<Nanos> {
    let text = text.trim().to_ascii_lowercase();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let unit: u64 = match suffix {
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "" | "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit).map(Nanos);
    }
    let value = number.parse::<f64>().ok()? * unit as f64;
    (value.is_finite() && value < u64::MAX as f64).then_some(Nanos(value as u64))
}

/// Evaluates an integer expression with `+ - * / %` and brackets; `None` if the expression is invalid.
#[must_use]
pub(super) fn sum(text: &str) -> Option<u64> {
    let chars: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut at = 0;
    let value = parse_sum(&chars, &mut at, 0)?;
    (at == chars.len()).then(|| u64::try_from(value).ok())?
}

/// Maximum nesting of brackets in an expression.
const DEEPEST: usize = 32;

fn parse_sum(chars: &[char], at: &mut usize, depth: usize) -> Option<i128> {
    let mut value = parse_product(chars, at, depth)?;
    while let Some(sign @ ('+' | '-')) = chars.get(*at) {
        *at += 1;
        let next = parse_product(chars, at, depth)?;
        value = match sign {
            '+' => value.checked_add(next)?,
            _ => value.checked_sub(next)?,
        };
    }
    Some(value)
}

fn parse_product(chars: &[char], at: &mut usize, depth: usize) -> Option<i128> {
    let mut value = parse_number(chars, at, depth)?;
    while let Some(sign @ ('*' | '/' | '%')) = chars.get(*at) {
        *at += 1;
        let next = parse_number(chars, at, depth)?;
        value = match sign {
            '*' => value.checked_mul(next)?,
            '/' => value.checked_div(next)?,
            _ => value.checked_rem(next)?,
        };
    }
    Some(value)
}

fn parse_number(chars: &[char], at: &mut usize, depth: usize) -> Option<i128> {
    if chars.get(*at) == Some(&'(') && depth < DEEPEST {
        *at += 1;
        let value = parse_sum(chars, at, depth + 1)?;
        let closed = chars.get(*at) == Some(&')');
        *at += 1;
        return closed.then_some(value);
    }
    let rest = chars.get(*at..)?;
    let digits: String = rest.iter().take_while(|c| c.is_ascii_digit()).collect();
    *at += digits.len();
    digits.parse().ok()
}
