//! Dovecot 2.3: parses line by line, like `config_parse_line` of `src/config/config-parser.c`.

use super::syntax::{DEEPEST, syntax_error};
use crate::error::ConfError;
use crate::text::{Logical, is_blank, line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Inclusion, Item};
use assay_model::change::ConfigLanguage as Language;
use std::ops::Range;

pub fn parse(text: &[u8]) -> Result<Block, ConfError> {
    let mut open: Vec<Block> = vec![Block::default()];
    let mut logical = Logical::default();
    for line in line_ranges(text) {
        let content = trim(text, line.clone());
        if content.is_empty() || text[content.start] == b'#' {
            if !logical.bytes.is_empty() {
                let what = "a comment or empty line after a backslash; Dovecot forgets the line";
                return Err(syntax_error(Language::Dovecot, text, line.start, what));
            }
            continue;
        }
        let content = trim(text, without_comment(text, content));
        if text[content.clone()].last() == Some(&b'\\') {
            logical.push(text, trim(text, content.start..content.end - 1));
            continue;
        }
        logical.push(text, content);
        let logical = std::mem::take(&mut logical);
        if !logical.bytes.is_empty() {
            line_of(text, &logical, &mut open)?;
        }
    }
    if !logical.bytes.is_empty() {
        let what = "the last line ends with a backslash";
        return Err(syntax_error(Language::Dovecot, text, text.len(), what));
    }
    match (open.pop(), open.is_empty()) {
        (Some(root), true) => Ok(root),
        (block, _) => {
            let at = block.map_or(0, |block| block.span.start);
            Err(syntax_error(
                Language::Dovecot,
                text,
                at,
                "a `{` is not closed",
            ))
        }
    }
}

/// Returns the range of a line up to a `#` outside of quotes.
fn without_comment(text: &[u8], line: Range<usize>) -> Range<usize> {
    let mut at = line.start;
    while at < line.end {
        match text[at] {
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < line.end && text[at] != quote {
                    at += 1 + usize::from(text[at] == b'\\');
                }
            }
            b'#' => return line.start..at,
            _ => {}
        }
        at += 1;
    }
    line
}

fn line_of(text: &[u8], logical: &Logical, open: &mut Vec<Block>) -> Result<(), ConfError> {
    let bytes = &logical.bytes[..];
    let span = logical.span(0);
    let error = |what: &str| Err(syntax_error(Language::Dovecot, text, span.start, what));
    let end = bytes
        .iter()
        .position(|&byte| is_blank(byte) || byte == b'=');
    let key = &bytes[..end.unwrap_or(bytes.len())];
    let rest = trim(bytes, key.len()..bytes.len());
    if key == b"}" && rest.is_empty() {
        let block = open.pop().filter(|_| !open.is_empty());
        let (Some(mut block), Some(outer)) = (block, open.last_mut()) else {
            return error("a `}` without `{`");
        };
        block.span.end = span.end;
        block.close = Some(span.start);
        outer.items.push(Item::Block(block));
        return Ok(());
    }
    let key = to_lossy_text(key);
    if key == "!include" || key == "!include_try" {
        let pattern = to_lossy_text(&bytes[rest]);
        push(open, Item::Inclusion(Inclusion { key, pattern, span }));
        return Ok(());
    }
    match bytes[rest.clone()].first() {
        Some(b'=') if !key.is_empty() => {
            let value = trim(bytes, rest.start + 1..rest.end);
            let (quote, mut meant) = unquote_value(&bytes[value.clone()]);
            if let (None, Some(file)) = (quote, meant.strip_prefix(b"<")) {
                meant = [b"<", file.trim_ascii_start()].concat();
            }
            let value_span = match value.is_empty() {
                true => span.end..span.end,
                false => logical.span(value.start),
            };
            push(
                open,
                Item::Directive(Directive {
                    key,
                    value: meant,
                    quote,
                    span,
                    value_span,
                    words: Vec::new(),
                    inner: Vec::new(),
                }),
            );
            Ok(())
        }
        _ if bytes.last() == Some(&b'{') && !rest.is_empty() => {
            let Some(name) = section_name(&bytes[rest]) else {
                return error("`{` was expected after the name of the section");
            };
            if open.len() > DEEPEST {
                return error("blocks in too many blocks");
            }
            let mut head = vec![key];
            head.extend((!name.is_empty()).then(|| to_lossy_text(name)));
            open.push(Block {
                head,
                open: span.end,
                span,
                ..Block::default()
            });
            Ok(())
        }
        _ => error("neither `key = value` nor `name {` nor `}`"),
    }
}

/// Returns the name of a section from the text after its type, which ends with `{`. The name is a word, or text between
/// double quotes. Single quotes are part of a word, and a backslash does not escape anything. `None` if anything else
/// is before the `{`.
fn section_name(text: &[u8]) -> Option<&[u8]> {
    let (name, rest) = match text {
        [b'{', ..] => (&text[..0], text),
        [b'"', inner @ ..] => {
            let end = inner.iter().position(|&byte| byte == b'"')?;
            (&inner[..end], &inner[end + 1..])
        }
        _ => text.split_at(text.iter().position(|&byte| is_blank(byte))?),
    };
    (rest.trim_ascii() == b"{").then_some(name)
}

fn push(open: &mut [Block], item: Item) {
    if let Some(block) = open.last_mut() {
        block.items.push(item);
    }
}

/// Removes one pair of quotes around the whole value, and unescapes it like `str_unescape`: a backslash and a character
/// stand for the character.
fn unquote_value(value: &[u8]) -> (Option<u8>, Vec<u8>) {
    // Dovecot treats a single quote character as both the opening and the closing quote.
    if let &[quote @ (b'"' | b'\'')] = value {
        return (Some(quote), Vec::new());
    }
    let (&[quote @ (b'"' | b'\''), ref inner @ .., last], true) = (value, value.len() > 1) else {
        return (None, value.to_vec());
    };
    if quote != last {
        return (None, value.to_vec());
    }
    let mut out = Vec::new();
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        out.extend(match byte {
            b'\\' => bytes.next().copied(),
            byte => Some(byte),
        });
    }
    (Some(quote), out)
}

pub fn write_value(value: &str, quote: Option<u8>) -> Result<String, &'static str> {
    // `<` stays outside quotes: it replaces the value by the content of a file.
    let needed = value.trim() != value
        || value.contains('#')
        || value.starts_with(['"', '\''])
        || value.ends_with('\\');
    let quote = match (quote, needed) {
        (None, false) => return Ok(value.to_owned()),
        (quote, _) => char::from(quote.unwrap_or(b'"')),
    };
    let mut out = String::from(quote);
    for letter in value.chars() {
        if letter == quote || letter == '\\' {
            out.push('\\');
        }
        out.push(letter);
    }
    out.push(quote);
    Ok(out)
}
