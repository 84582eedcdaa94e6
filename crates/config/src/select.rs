//! Finds the block that a section selects.

use crate::error::ConfError;
use crate::languages::{merges_blocks, same_key};
use crate::text::line_number;
use crate::tree::Block;
use assay_model::change::ConfigLanguage as Language;

const WAY_OUT: &str = "say which one: by its whole head (`location /api`), a setting inside \
     (`server[server_name=example.org]`) or its place (`server[2]`)";

/// Returns the blocks that `section` selects. There may be several blocks only if the program merges them.
pub fn select<'a>(
    language: Language,
    text: &[u8],
    root: &'a Block,
    section: &[String],
) -> Result<Vec<&'a Block>, ConfError> {
    let mut chosen = vec![root];
    for selector in section {
        let there: Vec<&Block> = chosen.iter().flat_map(|block| block.blocks()).collect();
        chosen = matching_blocks(language, &there, selector);
        let Some(first) = chosen.first() else {
            return Err(ConfError::NoSection {
                section: selector.clone(),
                there: format_heads(&there),
            });
        };
        let one = merges_blocks(language, &first.head)
            && chosen.iter().all(|block| block.head == first.head);
        if chosen.len() > 1 && !one {
            return Err(ConfError::Ambiguous {
                what: selector.clone(),
                lines: chosen
                    .iter()
                    .map(|block| line_number(text, block.span.start))
                    .collect(),
                way_out: WAY_OUT,
            });
        }
    }
    Ok(chosen)
}

fn format_heads(blocks: &[&Block]) -> String {
    let mut heads: Vec<String> = blocks.iter().map(|block| block_head(block)).collect();
    heads.dedup();
    match heads.len() {
        0 => "none there".to_owned(),
        _ => heads.join(", "),
    }
}

/// Returns the head of a block on one line.
pub fn block_head(block: &Block) -> String {
    block.head.join(" ")
}

/// Parses a selector of the form `name[condition]`.
pub fn parse_condition(selector: &str) -> Option<(&str, &str)> {
    selector.strip_suffix(']')?.split_once('[')
}

/// Returns the blocks that match a selector: by the whole head, else by the first word, else by a condition.
pub fn matching_blocks<'a>(
    language: Language,
    blocks: &[&'a Block],
    selector: &str,
) -> Vec<&'a Block> {
    let named = by_name(language, blocks, selector);
    if !named.is_empty() {
        return named;
    }
    let Some((name, condition)) = parse_condition(selector) else {
        return named;
    };
    let named = by_name(language, blocks, name);
    if let Ok(place) = condition.parse::<usize>() {
        let at = place.checked_sub(1).and_then(|place| named.get(place));
        return at.copied().into_iter().collect();
    }
    let Some((key, value)) = condition.split_once('=') else {
        return Vec::new();
    };
    let says = |block: &&Block| {
        let mut directives = block.directives();
        directives.any(|d| same_key(language, &d.key, key) && d.value == value.as_bytes())
    };
    named.into_iter().filter(says).collect()
}

fn by_name<'a>(language: Language, blocks: &[&'a Block], name: &str) -> Vec<&'a Block> {
    let words = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = words(name);
    let fits = |text: &str| same_key(language, &words(text), &wanted);
    let whole = |block: &&&Block| fits(&block_head(block));
    let first = |block: &&&Block| block.head.first().is_some_and(|word| fits(word));
    let by_head: Vec<&Block> = blocks.iter().filter(whole).copied().collect();
    match by_head.is_empty() {
        true => blocks.iter().filter(first).copied().collect(),
        false => by_head,
    }
}
