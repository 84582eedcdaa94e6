//! Encodes journal lines with a line number and a checksum: `{"n":3,"set":{…},"sum":"…"}`.
//!
//! The checksum covers all bytes before it. Bit errors and lines of other programs are therefore detected.

use serde::Serialize;

const FIRST: &[u8] = b"{\"n\":";
const SEAL: &[u8] = b",\"sum\":\"";
const LAST: &[u8] = b"\"}";
/// Number of hexadecimal digits of the checksum, which has 64 bits.
const DIGITS: usize = 16;

/// Encodes a line, including its line end. `what` must serialise to a non-empty object.
pub fn seal(number: u64, what: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let body = serde_json::to_vec(what)?;
    let inner = body.get(1..body.len().saturating_sub(1));
    let mut line = FIRST.to_vec();
    line.extend(number.to_string().as_bytes());
    line.push(b',');
    line.extend(inner.unwrap_or_default());
    let sum = sum(&line);
    line.extend(SEAL);
    line.extend(sum.as_bytes());
    line.extend(LAST);
    line.push(b'\n');
    Ok(line)
}

/// Decodes a line without its line end into its number and its object; `None` if the line is damaged.
pub fn unseal(line: &[u8]) -> Option<(u64, Vec<u8>)> {
    let line = line.strip_suffix(LAST)?;
    let (line, digits) = line.split_at_checked(line.len().checked_sub(DIGITS)?)?;
    let line = line.strip_suffix(SEAL)?;
    if sum(line).as_bytes() != digits {
        return None;
    }
    let rest = line.strip_prefix(FIRST)?;
    let comma = rest.iter().position(|byte| *byte == b',')?;
    let number = std::str::from_utf8(&rest[..comma]).ok()?.parse().ok()?;
    let mut body = vec![b'{'];
    body.extend(&rest[comma + 1..]);
    body.push(b'}');
    Some((number, body))
}

/// Returns whether these bytes can be the start of line `number` after a crash lost the rest of the line.
pub fn is_torn_line(line: &[u8], number: u64) -> bool {
    let first = [FIRST, number.to_string().as_bytes(), b","].concat();
    let begins = match line.len() < first.len() {
        true => first.starts_with(line),
        false => line.starts_with(&first),
    };
    begins && !is_long(line)
}

/// Returns whether these bytes contain a checksum, which may be invalid.
pub fn has_seal(line: &[u8]) -> bool {
    line.windows(SEAL.len()).any(|window| window == SEAL)
}

/// Returns whether the bytes are at least as long as a complete line.
fn is_long(line: &[u8]) -> bool {
    let at = line.windows(SEAL.len()).rposition(|window| window == SEAL);
    at.is_some_and(|at| line.len() >= at + SEAL.len() + DIGITS + LAST.len())
}

/// Returns the first 64 bits of the BLAKE3 hash of the bytes, as 16 hexadecimal digits.
pub fn sum(bytes: &[u8]) -> String {
    let mut hex = blake3::hash(bytes).to_hex().to_string();
    hex.truncate(DIGITS);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_survives_no_flipped_bit_and_no_cut() {
        let what = serde_json::json!({"set": {"id": 1, "value": "a\n,\"sum\":\""}});
        let line = seal(12, &what).unwrap();
        let (line, end) = line.split_at(line.len() - 1);
        assert_eq!(end, b"\n");
        let (number, body) = unseal(line).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((number, body), (12, what));
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut flipped = line.to_vec();
                flipped[at] ^= 1 << bit;
                assert_eq!(unseal(&flipped), None, "{at} {bit}");
            }
            assert_eq!(unseal(&line[..at]), None, "{at}");
            assert!(is_torn_line(&line[..at], 12), "{at}");
            assert_eq!(is_torn_line(&line[..at], 13), at <= 6, "{at}");
        }
        assert!(!is_torn_line(&[line, b"}"].concat(), 12));
    }
}
