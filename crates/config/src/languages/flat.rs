//! Languages with one setting per line: nsswitch.conf(5), `key = value`, and INI. Lines that are neither comment,
//! section nor setting are left unchanged.

use crate::text::{line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Item};

pub fn parse(text: &[u8], separator: u8, sections: bool) -> Block {
    let mut root = Block::default();
    let mut block: Option<Block> = None;
    for line in line_ranges(text) {
        let line = trim(text, line);
        let bytes = &text[line.clone()];
        if matches!(bytes.first(), None | Some(b'#' | b';')) {
            continue;
        }
        if let (true, [b'[', name @ .., b']']) = (sections, bytes) {
            root.items.extend(block.take().map(Item::Block));
            block = Some(Block {
                head: vec![to_lossy_text(name)],
                open: line.end,
                span: line,
                ..Block::default()
            });
            continue;
        }
        let Some(place) = bytes.iter().position(|&byte| byte == separator) else {
            continue;
        };
        let key = trim(text, line.start..line.start + place);
        let mut value = trim(text, line.start + place + 1..line.end);
        if separator == b':' {
            // Only nsswitch.conf allows comments after a value.
            let comment = text[value.clone()].iter().position(|&byte| byte == b'#');
            let end = comment.map_or(value.end, |at| value.start + at);
            value = trim(text, value.start..end);
        }
        if key.is_empty() {
            continue;
        }
        let place = block.as_mut().unwrap_or(&mut root);
        let span = line.start..value.end.max(line.start + 1);
        place.span.end = span.end;
        place.items.push(Item::Directive(Directive {
            key: to_lossy_text(&text[key]),
            value: text[value.clone()].to_vec(),
            quote: None,
            span,
            value_span: value,
            words: Vec::new(),
            inner: Vec::new(),
        }));
    }
    root.items.extend(block.map(Item::Block));
    root
}
