//! Postfix main.cf: postconf(5), `readllines` of Postfix 3.7 (`src/util/readlline.c`).

use super::{Language, syntax};
use crate::error::ConfError;
use crate::text::{Logical, blank, lines, lossy, trim};
use crate::tree::{Block, Directive, Item};
use std::ops::Range;

pub fn parse(text: &[u8]) -> Result<Block, ConfError> {
    let mut root = Block::default();
    let mut logical = Logical::default();
    // Comment and blank lines that belong inside when another continuation line follows.
    let mut pending: Vec<Range<usize>> = Vec::new();
    for line in lines(text) {
        let content = trim(text, line.clone());
        if content.is_empty() || text[content.start] == b'#' {
            pending.push(line);
        } else if blank(text[line.start]) {
            if logical.bytes.is_empty() {
                let what = "a continuation line before any parameter";
                return Err(syntax(Language::Postfix, text, line.start, what));
            }
            logical.inner.append(&mut pending);
            logical.push(text, content);
        } else {
            root.items.extend(item(text, &logical)?);
            pending.clear();
            logical = Logical::default();
            logical.push(text, content);
        }
    }
    root.items.extend(item(text, &logical)?);
    Ok(root)
}

fn item(text: &[u8], logical: &Logical) -> Result<Option<Item>, ConfError> {
    if logical.bytes.is_empty() {
        return Ok(None);
    }
    let bytes = &logical.bytes;
    let span = logical.span(0);
    let Some(equals) = bytes.iter().position(|&byte| byte == b'=') else {
        let what = "a parameter without `=`";
        return Err(syntax(Language::Postfix, text, span.start, what));
    };
    let key = trim(bytes, 0..equals);
    if key.is_empty() || bytes[key.clone()].iter().any(|&byte| blank(byte)) {
        let what = "no single name before `=`";
        return Err(syntax(Language::Postfix, text, span.start, what));
    }
    let value = trim(bytes, equals + 1..bytes.len());
    let value_span = match value.is_empty() {
        true => span.end..span.end,
        false => logical.span(value.start),
    };
    Ok(Some(Item::Directive(Directive {
        key: lossy(&bytes[key]),
        value: bytes[value].to_vec(),
        quote: None,
        span,
        value_span,
        words: Vec::new(),
        inner: logical.inner.clone(),
    })))
}
