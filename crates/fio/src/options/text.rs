//! Decodes text files that various editors and shells wrote.

/// Decodes UTF-8, or UTF-16 as PowerShell's `>` and some editors write it. UTF-16 is recognised by a byte order mark,
/// or because every other byte is zero. Returns `None` for other bytes.
#[must_use]
pub fn decode(bytes: Vec<u8>) -> Option<String> {
    let (big, rest) = match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => (false, rest),
        [0xfe, 0xff, rest @ ..] => (true, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => return String::from_utf8(rest.to_vec()).ok(),
        [0, first, ..] if *first != 0 => (true, bytes.as_slice()),
        [first, 0, ..] if *first != 0 => (false, bytes.as_slice()),
        _ => return String::from_utf8(bytes).ok(),
    };
    if rest.len() % 2 != 0 {
        return None;
    }
    let unit = |pair: &[u8]| match big {
        true => u16::from_be_bytes([pair[0], pair[1]]),
        false => u16::from_le_bytes([pair[0], pair[1]]),
    };
    let units: Vec<u16> = rest.chunks_exact(2).map(unit).collect();
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_is_read_in_both_orders_with_and_without_its_mark() {
        let wanted = "[t]\nrw=write # ü€";
        let little: Vec<u8> = wanted.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = wanted.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = |mark: [u8; 2], bytes: &[u8]| [&mark[..], bytes].concat();
        for bytes in [
            little.clone(),
            big.clone(),
            marked([0xff, 0xfe], &little),
            marked([0xfe, 0xff], &big),
            wanted.as_bytes().to_vec(),
            [&[0xef, 0xbb, 0xbf], wanted.as_bytes()].concat(),
        ] {
            assert_eq!(decode(bytes).as_deref(), Some(wanted));
        }
        assert_eq!(decode(vec![0xff, 0xfe, 0x41]), None);
        assert_eq!(decode(vec![0x41, 0xff]), None);
        assert_eq!(decode(Vec::new()).as_deref(), Some(""));
    }
}
