//! postgresql.conf, and the file that ALTER SYSTEM writes: `name = value`, parsed like
//! `src/backend/utils/misc/guc-file.l` of PostgreSQL 15. The `=` is optional, names are case-insensitive, and the last
//! line of a name takes effect.

use crate::text::{is_blank, line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Inclusion, Item};
use std::ops::Range;

pub fn parse(text: &[u8]) -> Block {
    let mut root = Block::default();
    for line in line_ranges(text) {
        root.items.extend(parse_line(text, trim(text, line)));
    }
    root
}

fn parse_line(text: &[u8], line: Range<usize>) -> Option<Item> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let bytes = &text[line.clone()];
    let length = bytes
        .iter()
        .position(|byte| !is_name(byte))
        .unwrap_or(bytes.len());
    if length == 0 || bytes[0].is_ascii_digit() {
        return None;
    }
    let name = line.start..line.start + length;
    let mut rest = trim(text, name.end..line.end);
    if text[rest.clone()].first() == Some(&b'=') {
        rest = trim(text, rest.start + 1..rest.end);
    }
    let (value, value_span, quote) = parse_value(text, rest)?;
    let after = &text[trim(text, value_span.end..line.end)];
    if !matches!(after.first(), None | Some(b'#')) {
        return None;
    }
    let key = to_lossy_text(&text[name.clone()]);
    let span = name.start..value_span.end;
    if ["include", "include_dir", "include_if_exists"]
        .iter()
        .any(|one| key.eq_ignore_ascii_case(one))
    {
        let pattern = to_lossy_text(&value);
        return Some(Item::Inclusion(Inclusion { key, pattern, span }));
    }
    Some(Item::Directive(Directive {
        key,
        value,
        quote,
        span,
        value_span,
        words: Vec::new(),
        inner: Vec::new(),
    }))
}

/// Returns a value without its quotes, its range including quotes, and the quote character.
fn parse_value(text: &[u8], rest: Range<usize>) -> Option<(Vec<u8>, Range<usize>, Option<u8>)> {
    if text[rest.clone()].first() != Some(&b'\'') {
        let ends = |byte: &u8| is_blank(*byte) || *byte == b'#';
        let length = text[rest.clone()]
            .iter()
            .position(ends)
            .unwrap_or(rest.len());
        let span = rest.start..rest.start + length;
        let value = text[span.clone()].to_vec();
        return (!value.is_empty() && !value.contains(&b'\'')).then_some((value, span, None));
    }
    let (mut value, mut at) = (Vec::new(), rest.start + 1);
    while at < rest.end {
        match (text[at], text.get(at + 1)) {
            (b'\'', Some(b'\'')) if at + 1 < rest.end => {
                value.push(b'\'');
                at += 2;
            }
            (b'\'', _) => return Some((value, rest.start..at + 1, Some(b'\''))),
            // Escapes have several meanings; such a line is not edited.
            (b'\\', _) => return None,
            (byte, _) => {
                value.push(byte);
                at += 1;
            }
        }
    }
    None
}

pub fn write_value(value: &str, quote: Option<u8>) -> Result<String, &'static str> {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    match () {
        () if value.contains('\\') => Err("it has a backslash"),
        () if quote.is_none() && !value.is_empty() && value.bytes().all(bare) => {
            Ok(value.to_owned())
        }
        () => Ok(format!("'{}'", value.replace('\'', "''"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::{find_includes, get, remove, set};
    use assay_model::change::ConfigLanguage::Postgresql;

    const TEXT: &[u8] = b"# fsync = off\nFSYNC off # why\nssl_ciphers = 'HIGH:''x'  # c\n\
        search_path='\\'\ninclude_dir = 'conf.d'\nport=5432\n";

    #[test]
    fn values_as_the_server_reads_them() {
        let read = |key: &str| {
            get(Postgresql, TEXT, &[], key)
                .unwrap()
                .map(|found| found.value)
        };
        assert_eq!(read("fsync").as_deref(), Some("off"));
        assert_eq!(read("ssl_ciphers").as_deref(), Some("HIGH:'x"));
        assert_eq!(read("search_path"), None, "escapes are not edited");
        assert_eq!(
            find_includes(Postgresql, TEXT).unwrap()[0].pattern,
            "conf.d"
        );
        let new = set(Postgresql, TEXT, &[], "fsync", "on").unwrap();
        assert_eq!(
            String::from_utf8_lossy(&new),
            String::from_utf8_lossy(TEXT).replace("FSYNC off", "FSYNC on")
        );
        let new = set(Postgresql, TEXT, &[], "port", "a b").unwrap();
        assert!(new.ends_with(b"port='a b'\n"));
        assert!(
            !remove(Postgresql, TEXT, &[], "port")
                .unwrap()
                .ends_with(b"5432\n")
        );
        assert!(set(Postgresql, TEXT, &[], "port", "a\\").is_err());
    }
}
