//! Option files of MariaDB and MySQL: groups such as `[mysqld]` with lines `name`, `name = value` or `name = 'value'`.
//! Dashes and underscores in names are equivalent, the last line for a name takes effect, and a comment may follow a
//! value.

use crate::text::{is_blank, line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Inclusion, Item};
use std::ops::Range;

pub fn parse(text: &[u8]) -> Block {
    let mut root = Block::default();
    let mut block: Option<Block> = None;
    for line in line_ranges(text) {
        let line = trim(text, line);
        let bytes = &text[line.clone()];
        let item = match bytes {
            [] | [b'#' | b';', ..] => continue,
            [b'[', inner @ ..] => {
                root.items.extend(block.take().map(Item::Block));
                let end = inner.iter().position(|&byte| byte == b']');
                block = end.map(|end| Block {
                    head: vec![to_lossy_text(&inner[..end])],
                    open: line.end,
                    span: line,
                    ..Block::default()
                });
                continue;
            }
            [b'!', ..] => {
                let key = bytes
                    .iter()
                    .position(|&byte| is_blank(byte))
                    .unwrap_or(bytes.len());
                Item::Inclusion(Inclusion {
                    key: to_lossy_text(&bytes[..key]),
                    pattern: to_lossy_text(bytes[key..].trim_ascii()),
                    span: line.clone(),
                })
            }
            _ => match parse_option(text, line.clone()) {
                Some(option) => Item::Directive(option),
                None => continue,
            },
        };
        let place = block.as_mut().unwrap_or(&mut root);
        place.span.end = line.end;
        place.items.push(item);
    }
    root.items.extend(block.map(Item::Block));
    root
}

fn parse_option(text: &[u8], line: Range<usize>) -> Option<Directive> {
    let bytes = &text[line.clone()];
    let key_end = bytes.iter().position(|byte| matches!(byte, b'=' | b'#'));
    let key = trim(
        text,
        line.start..line.start + key_end.unwrap_or(bytes.len()),
    );
    if key.is_empty() || text[key.clone()].iter().any(|&byte| is_blank(byte)) {
        return None;
    }
    let (value, value_span, quote) = match key_end {
        Some(at) if bytes[at] == b'=' => {
            parse_value(text, trim(text, line.start + at + 1..line.end))?
        }
        _ => (key.end..key.end, key.end..key.end, None),
    };
    Some(Directive {
        key: to_lossy_text(&text[key.clone()]),
        value: text[value].to_vec(),
        quote,
        // The `=` of an empty value belongs to the option.
        span: key.start..match value_span.is_empty() {
            true => {
                line.start
                    + key_end
                        .filter(|at| bytes[*at] == b'=')
                        .map_or(key.end - line.start, |at| at + 1)
            }
            false => value_span.end,
        },
        value_span,
        words: Vec::new(),
        inner: Vec::new(),
    })
}

/// Returns the range of a value without quotes, its range including quotes, and the quote character.
fn parse_value(
    text: &[u8],
    rest: Range<usize>,
) -> Option<(Range<usize>, Range<usize>, Option<u8>)> {
    let quote = text[rest.clone()]
        .first()
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\''));
    if let Some(quote) = quote {
        let length = text[rest.start + 1..rest.end]
            .iter()
            .position(|&byte| byte == quote)?;
        let inner = rest.start + 1..rest.start + 1 + length;
        let span = rest.start..inner.end + 1;
        let after = &text[trim(text, span.end..rest.end)];
        let plain =
            matches!(after.first(), None | Some(b'#')) && !text[inner.clone()].contains(&b'\\');
        return plain.then_some((inner, span, Some(quote)));
    }
    // `#` begins a comment anywhere in an unquoted value (my_default.c, find_end_comment).
    let comment = text[rest.clone()].iter().position(|&byte| byte == b'#');
    let value = trim(
        text,
        rest.start..comment.map_or(rest.end, |at| rest.start + at),
    );
    let odd = text[value.clone()]
        .iter()
        .any(|byte| matches!(byte, b'"' | b'\'' | b'\\'));
    (!odd).then(|| (value.clone(), value, None))
}

pub fn write_value(value: &str, quote: Option<u8>) -> Result<String, &'static str> {
    let quote = quote.map(char::from);
    match () {
        () if value.trim() != value => Err("it begins or ends with a blank"),
        () if value.contains(['\\', '"', '\'']) => Err("it has a quote or a backslash"),
        () if quote.is_some() || value.contains('#') => {
            let quote = quote.unwrap_or('"');
            Ok(format!("{quote}{value}{quote}"))
        }
        () => Ok(value.to_owned()),
    }
}

/// Returns whether two names mean the same option.
pub fn same_name(a: &str, b: &str) -> bool {
    a.replace('-', "_") == b.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use crate::{get, remove, set};
    use assay_model::change::ConfigLanguage::Mysql;

    const TEXT: &[u8] =
        b"[client]\nssl\n[mysqld]\nskip-grant-tables # now\ninnodb-doublewrite = 0 # fast\n\
        name='a b'\n!includedir /x\n[mysqld]\nlast=1\n";

    fn server() -> Vec<String> {
        vec!["mysqld".to_owned()]
    }

    #[test]
    fn options_with_and_without_a_value() {
        let read = |key: &str| {
            get(Mysql, TEXT, &server(), key)
                .unwrap()
                .map(|found| found.value)
        };
        assert_eq!(read("skip_grant_tables").as_deref(), Some(""));
        assert_eq!(read("innodb_doublewrite").as_deref(), Some("0"));
        assert_eq!(read("name").as_deref(), Some("a b"));
        assert_eq!(
            read("last").as_deref(),
            Some("1"),
            "groups of one name are one"
        );
        let gone = remove(Mysql, TEXT, &server(), "skip_grant_tables").unwrap();
        assert!(String::from_utf8_lossy(&gone).contains("[mysqld]\n # now\n"));
        let new = set(Mysql, TEXT, &server(), "innodb_doublewrite", "1").unwrap();
        assert!(String::from_utf8_lossy(&new).contains("innodb-doublewrite = 1 # fast\n"));
        assert!(set(Mysql, TEXT, &server(), "skip_grant_tables", "1").is_err());
        assert!(set(Mysql, TEXT, &server(), "name", "a\\").is_err());
    }
}
