//! Treats Dovecot's blocks and includes as settings: turns them on and off with comments, or changes their order.
//! Adding `#` in the first column disables a line, and removing the `#` restores it. Both changes are therefore exact
//! to the byte.

use crate::FoundSetting;
use crate::error::ConfError;
use crate::languages::parse;
use crate::select::{block_head, matching_blocks, parse_condition};
use crate::text::{line_end, line_number, line_ranges, line_start, splice_text};
use crate::tree::{Block, Item};
use assay_model::change::ConfigLanguage as Language;
use std::ops::Range;

/// A key with a special meaning, which refers to blocks or includes.
#[derive(Debug)]
pub enum Switch<'a> {
    /// `!include FILE` or `NAME[KEY=VALUE]`. The value is `on` or `off`.
    OnOff(&'a str),
    /// `NAME[KEY]`. The value is the order of the blocks.
    Order {
        key: &'a str,
        name: &'a str,
        by: &'a str,
    },
}

/// Parses a special key. Returns `None` for an ordinary key.
pub fn parse_switch(language: Language, key: &str) -> Option<Switch<'_>> {
    if language != Language::Dovecot {
        return None;
    }
    if key.starts_with("!include") {
        return Some(Switch::OnOff(key));
    }
    let (name, by) = parse_condition(key)?;
    Some(match by.contains('=') {
        true => Switch::OnOff(key),
        false => Switch::Order { key, name, by },
    })
}

impl Switch<'_> {
    pub fn get(&self, text: &[u8], blocks: &[&Block]) -> Result<Option<FoundSetting>, ConfError> {
        let found = |value: String, at: usize| FoundSetting {
            value,
            line: line_number(text, at),
            rivals: Vec::new(),
        };
        match self {
            Self::OnOff(key) => Ok(find(text, blocks, key)?
                .map(|(on, lines)| found(if on { "on" } else { "off" }.to_owned(), lines.start))),
            Self::Order { key, name, by } => {
                let slots = find_slots(text, blocks, key, name, by)?;
                let first = slots.first().map_or(0, |(_, span)| span.start);
                let values: Vec<&str> = slots.iter().map(|(value, _)| &value[..]).collect();
                Ok((!slots.is_empty()).then(|| found(values.join(" "), first)))
            }
        }
    }

    pub fn set(&self, text: &[u8], blocks: &[&Block], value: &str) -> Result<Vec<u8>, ConfError> {
        let refused = |key: &str, why| ConfError::Value {
            key: key.to_owned(),
            value: value.to_owned(),
            why,
        };
        match self {
            Self::OnOff(key) => {
                let Some((now, range)) = find(text, blocks, key)? else {
                    let why = "there is no such block or include, not even commented out";
                    return Err(refused(key, why));
                };
                let on = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(refused(key, "it is neither `on` nor `off`")),
                };
                if on == now {
                    return Ok(text.to_vec());
                }
                let lines = text[range.clone()].split_inclusive(|&byte| byte == b'\n');
                let new: Vec<u8> = match on {
                    true => lines.flat_map(|line| &line[1..]).copied().collect(),
                    false => lines.flat_map(|line| [b"#", line].concat()).collect(),
                };
                let new = splice_text(text, range, &new);
                parse(Language::Dovecot, &new)?;
                Ok(new)
            }
            Self::Order { key, name, by } => {
                let slots = find_slots(text, blocks, key, name, by)?;
                if slots.is_empty() {
                    return Err(refused(key, "there is no such block"));
                }
                let wanted: Vec<&str> = value.split_ascii_whitespace().collect();
                let mut new = text.to_vec();
                let mut there: Vec<&str> = slots.iter().map(|(value, _)| &value[..]).collect();
                let mut sorted = wanted.clone();
                there.sort_unstable();
                sorted.sort_unstable();
                if there != sorted {
                    return Err(refused(key, "it is not another order of the same blocks"));
                }
                for ((_, slot), wanted) in slots.iter().zip(wanted).rev() {
                    if let Some((_, span)) = slots.iter().find(|(value, _)| value == wanted) {
                        new = splice_text(&new, slot.clone(), &text[span.clone()]);
                    }
                }
                Ok(new)
            }
        }
    }
}

/// Returns the blocks to order, as the values that identify them and their positions.
fn find_slots(
    text: &[u8],
    blocks: &[&Block],
    key: &str,
    name: &str,
    by: &str,
) -> Result<Vec<(String, Range<usize>)>, ConfError> {
    let mut slots = Vec::new();
    for block in blocks.iter().flat_map(|block| block.blocks()) {
        let told = block.directives().rfind(|directive| directive.key == by);
        if let (true, Some(told)) = (block_head(block) == name, told) {
            slots.push((crate::text::to_lossy_text(&told.value), block.span.clone()));
        }
    }
    let twice = |value: &str| slots.iter().filter(|(other, _)| other == value).count() > 1;
    if slots
        .iter()
        .any(|(value, _)| twice(value) || value.contains(' '))
    {
        return Err(ConfError::Ambiguous {
            what: key.to_owned(),
            lines: slots
                .iter()
                .map(|(_, span)| line_number(text, span.start))
                .collect(),
            way_out: "the blocks must differ in it to be put in order",
        });
    }
    Ok(slots)
}

type State = (bool, Range<usize>);

/// Returns whether the block or include is on, and its lines.
fn find(text: &[u8], blocks: &[&Block], key: &str) -> Result<Option<State>, ConfError> {
    let mut found: Vec<State> = Vec::new();
    for block in blocks {
        let spans = fitting_ranges(block, key);
        let whole = |span: &Range<usize>| line_start(text, span.start)..line_end(text, span.end);
        found.extend(spans.iter().map(|span| (true, whole(span))));
    }
    if found.is_empty() {
        for block in blocks {
            found.extend(commented_ranges(text, block, key).map(|lines| (false, lines)));
        }
    }
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => Err(ConfError::Ambiguous {
            what: key.to_owned(),
            lines: found
                .iter()
                .map(|(_, lines)| line_number(text, lines.start))
                .collect(),
            way_out: "choose a setting that only one of them has",
        }),
    }
}

/// Returns the ranges of the items directly in this block that match the key.
fn fitting_ranges(block: &Block, key: &str) -> Vec<Range<usize>> {
    let words: Vec<&str> = key.split_ascii_whitespace().collect();
    if key.starts_with("!include") {
        return block
            .inclusions()
            .filter(|inclusion| words == [&inclusion.key[..], &inclusion.pattern[..]])
            .map(|inclusion| inclusion.span.clone())
            .collect();
    }
    let inner: Vec<&Block> = block.blocks().collect();
    let fits = matching_blocks(Language::Dovecot, &inner, key);
    fits.iter().map(|block| block.span.clone()).collect()
}

/// Returns the ranges of matching items directly in this block that are commented out.
fn commented_ranges<'a>(
    text: &'a [u8],
    block: &'a Block,
    key: &'a str,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let all: Vec<Range<usize>> = line_ranges(text).collect();
    let inside = |line: &Range<usize>| {
        let body = block.open..block.close.unwrap_or(text.len());
        let nested = |item: &Item| item.span().contains(&line.start);
        line.start >= body.start && line.end <= body.end && !block.items.iter().any(nested)
    };
    let starts: Vec<usize> = (0..all.len())
        .filter(|&at| inside(&all[at]) && text[all[at].clone()].starts_with(b"#"))
        .collect();
    let wants_block = !key.starts_with("!include");
    starts.into_iter().filter_map(move |first| {
        let mut plain = Vec::new();
        for line in &all[first..] {
            let content = text[line.clone()].strip_prefix(b"#")?;
            plain.extend(content);
            plain.push(b'\n');
            let content = content.trim_ascii();
            let ends = match wants_block {
                true => content == b"}",
                false => true,
            };
            if wants_block && line.start == all[first].start && !content.ends_with(b"{") {
                return None;
            }
            if ends && let Ok(tree) = parse(Language::Dovecot, &plain) {
                let fits = tree.items.len() == 1 && fitting_ranges(&tree, key).len() == 1;
                return fits.then(|| all[first].start..line_end(text, line.end));
            }
            if !wants_block {
                return None;
            }
        }
        None
    })
}
