//! Shell assignments, one per line: /etc/default/*, /etc/environment, /etc/default/grub. Only simple values are treated
//! as settings: one word, or one quoted string without backslashes and commands. Other lines are left unchanged.

use crate::text::{is_blank, line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Item};
use std::ops::Range;

pub fn parse(text: &[u8]) -> Block {
    let mut root = Block::default();
    for line in line_ranges(text) {
        root.items
            .extend(parse_line(text, trim(text, line)).map(Item::Directive));
    }
    root
}

fn parse_line(text: &[u8], line: Range<usize>) -> Option<Directive> {
    let exported = text[line.clone()].starts_with(b"export ");
    let begin = trim(text, line.start + if exported { 7 } else { 0 }..line.end).start;
    let equals = begin
        + text[begin..line.end]
            .iter()
            .position(|&byte| byte == b'=')?;
    let name = &text[begin..equals];
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if name.is_empty() || name[0].is_ascii_digit() || !name.iter().all(is_name) {
        return None;
    }
    let rest = equals + 1..line.end;
    let quote = text[rest.clone()]
        .first()
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\''));
    let (value, value_span) = match quote {
        Some(quote) => {
            let length = text[rest.start + 1..rest.end]
                .iter()
                .position(|&byte| byte == quote)?;
            let inner = rest.start + 1..rest.start + 1 + length;
            (inner.clone(), rest.start..inner.end + 1)
        }
        None => {
            let length = text[rest.clone()].iter().position(|&byte| is_blank(byte));
            let word = rest.start..length.map_or(rest.end, |length| rest.start + length);
            (word.clone(), word)
        }
    };
    let after = &text[trim(text, value_span.end..line.end)];
    let comment =
        after.first() == Some(&b'#') && text.get(value_span.end).copied().is_some_and(is_blank);
    if !(after.is_empty() || comment) || write(&text[value.clone()], quote).is_none() {
        return None;
    }
    Some(Directive {
        key: to_lossy_text(name),
        value: text[value].to_vec(),
        quote,
        span: line.start..value_span.end,
        value_span,
        words: Vec::new(),
        inner: Vec::new(),
    })
}

/// Returns a value as written in the given quotes; `None` if it is not a simple value.
fn write(value: &[u8], quote: Option<u8>) -> Option<Vec<u8>> {
    let hard = |byte: &u8| matches!(byte, b'\\' | b'`' | b'\n') || *byte == quote.unwrap_or(b'"');
    let word = |byte: &u8| {
        byte.is_ascii_alphanumeric() || b"_./:=,@%+-$".contains(byte) || !byte.is_ascii()
    };
    let plain = match quote {
        Some(_) => !value.iter().any(hard) && !value.windows(2).any(|two| two == b"$("),
        None => value.iter().all(word),
    };
    let quote: Vec<u8> = quote.into_iter().collect();
    plain.then(|| [&quote[..], value, &quote[..]].concat())
}

pub fn write_value(value: &str, quote: Option<u8>) -> Result<String, &'static str> {
    let written = write(value.as_bytes(), quote).or_else(|| write(value.as_bytes(), Some(b'"')));
    let written = written.and_then(|bytes| String::from_utf8(bytes).ok());
    written.ok_or("it needs quotes that are not written here")
}

#[cfg(test)]
mod tests {
    use crate::{get, set};
    use assay_model::change::ConfigLanguage::Shell;

    #[test]
    fn plain_values_only() {
        let text =
            b"# A=0\nexport A='x y' # c\nB=1 run\nC=\"a\\\"b\"\n  D=/a:/b\nE=\"$(id)\"\nA=\n";
        let read = |key: &str| get(Shell, text, &[], key).unwrap().map(|found| found.value);
        assert_eq!(read("A").as_deref(), Some(""), "the last one holds");
        assert_eq!(read("D").as_deref(), Some("/a:/b"));
        for key in ["B", "C", "E"] {
            assert_eq!(read(key), None, "{key}");
        }
        let new = set(Shell, b"G='a b c' # d\n", &[], "G", "a c").unwrap();
        assert_eq!(new, b"G='a c' # d\n");
        assert_eq!(
            set(Shell, b"G=a\n", &[], "G", "a b").unwrap(),
            b"G=\"a b\"\n"
        );
        assert!(set(Shell, b"G=a\n", &[], "G", "`a`").is_err());
    }
}
