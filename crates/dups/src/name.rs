//! Formats file names, which are arbitrary bytes, for people and for programs.

use std::fmt::Write as _;

/// Formats a name for people: valid UTF-8 stays; control characters (including invisible ones that change the
/// text direction) and invalid bytes are escaped as `
/// `, `\t`, `\u{…}` and `\xNN`.
///
/// Different names may look alike. Programs use [`encode_lossless`].
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

/// Encodes a name in STFU-8, as fclones does: printable UTF-8 stays, a backslash is doubled, other bytes
/// become `\t`, `
/// `, `\r` or `\xNN`. Different names always look different.
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

/// Returns whether a character hides or reorders its neighbours (Unicode bidirectional controls, joiners).
fn is_format(c: char) -> bool {
    matches!(
        u32::from(c),
        0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb
            | 0xe0000..=0xe007f
    )
}

/// Returns the bytes of a name in hexadecimal if it is not UTF-8. Returns `None` for UTF-8, which a JSON
/// string contains exactly.
pub fn encode_lossless(name: &[u8]) -> Option<String> {
    std::str::from_utf8(name).is_err().then(|| encode_hex(name))
}

/// Encodes bytes in lower-case hexadecimal.
pub fn encode_hex(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    push_hex(&mut out, bytes);
    out.into_iter().map(char::from).collect()
}

/// Appends bytes in lower-case hexadecimal.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|byte| {
        [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]
    }));
}

/// Returns the JSON string for a name: the name itself if it is UTF-8, else [`format_readable`].
pub fn for_json(name: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) => text.into(),
        Err(_) => format_readable(name).into(),
    }
}

/// Splits a path into its folder and the last name.
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
