//! Postfix main.cf: follows postconf(5), and `readllines` of Postfix 3.7 (`src/util/readlline.c`).

use super::syntax::syntax_error;
use crate::error::ConfError;
use crate::text::{Logical, is_blank, line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Item};
use assay_model::change::ConfigLanguage as Language;
use std::ops::Range;

pub fn parse(text: &[u8]) -> Result<Block, ConfError> {
    let mut root = Block::default();
    if let Some(at) = find_stray_continuation(text) {
        let what = "a continuation line before any parameter";
        return Err(syntax_error(Language::Postfix, text, at, what));
    }
    for logical in logical_lines(text) {
        root.items.extend(parse_item(text, &logical)?);
    }
    Ok(root)
}

/// Finds a continuation line, which begins with a blank, that has no line before it.
fn find_stray_continuation(text: &[u8]) -> Option<usize> {
    let mut meant = line_ranges(text).filter(|line| {
        let content = trim(text, line.clone());
        !content.is_empty() && text[content.start] != b'#'
    });
    let first = meant.next()?;
    is_blank(text[first.start]).then_some(first.start)
}

/// Returns the logical lines of main.cf and master.cf. A line that begins with a blank continues the previous line.
/// Comments and empty lines between the two belong to neither.
pub fn logical_lines(text: &[u8]) -> Vec<Logical> {
    let mut all: Vec<Logical> = Vec::new();
    // Comment lines and blank lines that belong inside if another continuation line follows.
    let mut pending: Vec<Range<usize>> = Vec::new();
    for line in line_ranges(text) {
        let content = trim(text, line.clone());
        if content.is_empty() || text[content.start] == b'#' {
            pending.push(line);
            continue;
        }
        match all.last_mut() {
            Some(logical) if is_blank(text[line.start]) => {
                logical.inner.append(&mut pending);
                logical.push(text, content);
            }
            // Postfix warns of a first line that begins with a blank, and ignores it.
            None if is_blank(text[line.start]) => {}
            _ => {
                pending.clear();
                let mut logical = Logical::default();
                logical.push(text, content);
                all.push(logical);
            }
        }
    }
    all
}

fn parse_item(text: &[u8], logical: &Logical) -> Result<Option<Item>, ConfError> {
    let bytes = &logical.bytes;
    let span = logical.span(0);
    let Some(equals) = bytes.iter().position(|&byte| byte == b'=') else {
        let what = "a parameter without `=`";
        return Err(syntax_error(Language::Postfix, text, span.start, what));
    };
    let key = trim(bytes, 0..equals);
    if key.is_empty() || bytes[key.clone()].iter().any(|&byte| is_blank(byte)) {
        let what = "no single name before `=`";
        return Err(syntax_error(Language::Postfix, text, span.start, what));
    }
    let value = trim(bytes, equals + 1..bytes.len());
    let value_span = match value.is_empty() {
        true => span.end..span.end,
        false => logical.span(value.start),
    };
    Ok(Some(Item::Directive(Directive {
        key: to_lossy_text(&bytes[key]),
        value: bytes[value].to_vec(),
        quote: None,
        span,
        value_span,
        words: Vec::new(),
        inner: logical.inner.clone(),
    })))
}
