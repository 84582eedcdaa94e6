//! Languages with one statement per line, whose words are separated by spaces or tabs: HAProxy, Redis, sudoers(5),
//! exports(5), pg_hba.conf, login.defs(5), chrony.conf(5), upsmon.conf(5) and similar files. Indentation has no
//! meaning. A statement that continues in the next line is not treated as a setting, and is left unchanged.

use crate::text::{is_blank, line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Item};
use std::ops::Range;

pub fn parse(text: &[u8]) -> Block {
    let mut root = Block::default();
    let mut continues = false;
    for line in line_ranges(text) {
        let line = trim(text, line);
        let continued = std::mem::replace(&mut continues, text[line.clone()].ends_with(b"\\"));
        if continued || continues || matches!(text[line.clone()].first(), None | Some(b'#' | b';'))
        {
            continue;
        }
        let words = split_words(text, line);
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            continue;
        };
        root.items.push(Item::Directive(Directive {
            key: to_lossy_text(&text[first.clone()]),
            value: rest_of(text, &words, 1).1.to_vec(),
            quote: None,
            span: first.start..last.end,
            value_span: rest_of(text, &words, 1).0,
            words,
            inner: Vec::new(),
        }));
    }
    root
}

/// Returns the words of a line without its comment. A quoted string is a part of one word.
fn split_words(text: &[u8], line: Range<usize>) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let (mut start, mut quote) = (None, None);
    for at in line.clone() {
        let byte = text[at];
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'#') if start.is_none() => return words,
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                start.get_or_insert(at);
            }
            (None, _) if is_blank(byte) => words.extend(start.take().map(|start| start..at)),
            (None, _) => {
                start.get_or_insert(at);
            }
        }
    }
    words.extend(start.map(|start| start..line.end));
    words
}

/// Returns the text after the first `count` words, and its range.
fn rest_of<'a>(text: &'a [u8], words: &[Range<usize>], count: usize) -> (Range<usize>, &'a [u8]) {
    let end = words.last().map_or(0, |word| word.end);
    let start = words.get(count).map_or(end, |word| word.start);
    (start..end, &text[start..end])
}

/// Extends the key of a statement by more of its words, if these words are equal to the words of `key`.
pub fn with_longer_key(text: &[u8], directive: &Directive, key: &str) -> Option<Directive> {
    let wanted: Vec<&str> = key.split_ascii_whitespace().collect();
    let head = directive.words.get(..wanted.len())?;
    let same = head
        .iter()
        .zip(&wanted)
        .all(|(word, wanted)| text[word.clone()] == *wanted.as_bytes());
    (same && !wanted.is_empty()).then(|| {
        let (value_span, value) = rest_of(text, &directive.words, wanted.len());
        Directive {
            value: value.to_vec(),
            value_span,
            ..directive.clone()
        }
    })
}

pub fn write_value(value: &str) -> Result<String, &'static str> {
    let text = value.as_bytes();
    let words = split_words(text, 0..text.len());
    match () {
        () if value.trim() != value => Err("it begins or ends with a blank"),
        () if value.ends_with('\\') => Err("it ends with a backslash"),
        () if words.last().map_or(0, |word| word.end) != text.len() => {
            Err("a comment cannot be a value")
        }
        () => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::{get, remove, set};
    use assay_model::change::ConfigLanguage::Words;

    const TEXT: &[u8] =
        b"global\n  # bind no\n  bind :443 ssl # main\nbind :80\nlong a \\\n  bind :1\n\
        Defaults env_keep += \"A B\"\n";

    #[test]
    fn a_line_that_stands_twice_needs_more_words() {
        assert!(get(Words, TEXT, &[], "bind").is_err());
        let found = get(Words, TEXT, &[], "bind :443").unwrap().unwrap();
        assert_eq!((found.value.as_str(), found.line), ("ssl", 3));
        assert_eq!(
            get(Words, TEXT, &[], "bind :1").unwrap(),
            None,
            "it is part of another line"
        );
        let gone = remove(Words, TEXT, &[], "bind :80").unwrap();
        assert_eq!(
            String::from_utf8_lossy(&gone),
            String::from_utf8_lossy(TEXT).replace("bind :80\n", "")
        );
        let kept = set(Words, TEXT, &[], "bind :443", "ssl strict").unwrap();
        assert!(String::from_utf8_lossy(&kept).contains("  bind :443 ssl strict # main\n"));
        let value = get(Words, TEXT, &[], "Defaults env_keep")
            .unwrap()
            .unwrap()
            .value;
        assert_eq!(value, "+= \"A B\"");
    }
}
