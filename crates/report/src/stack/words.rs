//! The words that all forms of a stack share.

use super::View;
use assay_model::stack::{Hint, Layer};
use assay_render::text::clean;

/// Who says so, and where more is said.
pub(super) fn from(hint: &Hint) -> String {
    format!("Source: {}. More: assay advice {}", hint.source, hint.page)
}

/// Settings that say most come first; all others follow in the order of the alphabet.
const FIRST: [&str; 30] = [
    "type",
    "bus",
    "cache",
    "o_direct",
    "aio",
    "iothread",
    "class",
    "kind",
    "level",
    "segtype",
    "format",
    "cipher",
    "recordsize",
    "volblocksize",
    "cluster_size",
    "ashift",
    "compression",
    "sync",
    "direct_io",
    "logical_block_size",
    "physical_block_size",
    "block_size",
    "sector_size",
    "key_size",
    "model",
    "rotational",
    "write_cache",
    "scheduler",
    "machine",
    "cpu",
];

/// All settings, those that say most first.
pub(super) fn settings(layer: &Layer) -> Vec<(String, String)> {
    let rank = |key: &str| FIRST.iter().position(|first| *first == key);
    let mut found: Vec<(&String, &String)> = layer.settings.iter().collect();
    found.sort_by_key(|(key, _)| (rank(key).unwrap_or(FIRST.len()), *key));
    found
        .into_iter()
        .map(|(key, value)| (clean(key), clean(value)))
        .collect()
}

/// Settings as text: `type ext4, block_size 4k`.
pub(super) fn settings_text(layer: &Layer) -> String {
    let pairs = settings(layer).into_iter();
    let words: Vec<String> = pairs.map(|(key, value)| format!("{key} {value}")).collect();
    words.join(", ")
}

/// A layer's kind and name: `disk sda`. Where the name says the kind, it stands alone.
pub(super) fn title(layer: &Layer) -> String {
    let (label, name) = (layer.kind.label(), clean(&layer.name));
    match name.strip_prefix("virtual ") {
        Some(rest) if label == "virtual disk" => format!("{label} {rest}"),
        _ => format!("{label} {name}"),
    }
}

/// The numbers of the remarks on a layer, from 1.
pub(super) fn marks(view: &View<'_>, at: usize) -> Vec<usize> {
    let hints = view.hints.iter().enumerate();
    hints
        .filter(|(_, hint)| hint.layer == at)
        .map(|(number, _)| number + 1)
        .collect()
}

/// What is not known, with the layers it is not known of.
pub(super) fn unknown(view: &View<'_>) -> Vec<(String, String)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for layer in &view.stack.layers {
        for what in &layer.unknown {
            let what = clean(what);
            match found.iter_mut().find(|(known, _)| *known == what) {
                Some((_, layers)) => layers.push(title(layer)),
                None => found.push((what, vec![title(layer)])),
            }
        }
    }
    found
        .into_iter()
        .map(|(what, layers)| (layers.join(", "), what))
        .collect()
}

/// The heading.
pub(super) fn heading(view: &View<'_>) -> String {
    format!("The layers under {}", clean(&view.stack.target))
}
