//! File names are bytes: how they are shown, and how none is lost.

use std::fmt::Write as _;

/// A name as people can read it: UTF-8 as it is, control characters (also the invisible ones that
/// turn text around) and invalid bytes escaped as `\n`, `\t`, `\u{…}` and `\xNN`.
///
/// Two different names can look alike here; programs use [`lossless`].
pub fn format_readable(name: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(name)
        && name.iter().all(|byte| (0x20..0x7f).contains(byte))
    {
        return text.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if c.is_control() || is_format(c) => {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// A name in STFU-8, as fclones writes and reads it: what is printable UTF-8 stands for itself, a
/// backslash is doubled, other bytes stand as `\t`, `\n`, `\r` and `\xNN`. No two names look alike.
pub(crate) fn encode_stfu8(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                c if c.is_ascii_control() => {
                    let _ = write!(out, "\\x{:02X}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02X}");
        }
    }
    out
}

/// Characters that hide or reorder what surrounds them (Unicode bidirectional controls, joiners).
fn is_format(c: char) -> bool {
    matches!(
        u32::from(c),
        0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb
            | 0xe0000..=0xe007f
    )
}

/// The bytes of a name as lower-case hexadecimal digits when it is not UTF-8, else nothing, because
/// then a JSON string carries it exactly.
pub fn encode_lossless(name: &[u8]) -> Option<String> {
    std::str::from_utf8(name).is_err().then(|| encode_hex(name))
}

/// Bytes as lower-case hexadecimal digits.
pub fn encode_hex(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    push_hex(&mut out, bytes);
    out.into_iter().map(char::from).collect()
}

/// The same, added to text.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|byte| {
        [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]
    }));
}

/// The string that stands for a name in JSON: the name itself when it is UTF-8 (JSON escapes what
/// it must), else [`readable`].
pub fn for_json(name: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) => text.into(),
        Err(_) => format_readable(name).into(),
    }
}

/// Folder and name of a path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (b"/", &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_visible_and_harmless() {
        assert_eq!(
            format_readable(b"a\nb\x1b[31m\xff"),
            "a\\nb\\u{1b}[31m\\xff"
        );
        assert_eq!(format_readable("\u{202e}gpj".as_bytes()), "\\u{202e}gpj");
        assert_eq!(
            encode_stfu8(b"a\n\\b\x1b\xff \xc3\xbc"),
            "a\\n\\\\b\\x1B\\xFF ü"
        );
        assert_eq!(encode_lossless("grün".as_bytes()), None);
        assert_eq!(encode_lossless(b"\xff\x00"), Some("ff00".into()));
    }
}
