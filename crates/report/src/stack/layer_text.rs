//! Text that all reports of a stack share. The rows of the tree are in `tree_rows`.

use super::StackView;
use assay_model::stack::{Hint, Layer};
use assay_render::text::escape_line;

/// Formats the source of a hint, with a reference to further information.
pub(super) fn format_hint_source(hint: &Hint) -> String {
    format!("Source: {}. More: assay advice {}", hint.source, hint.page)
}

/// The most important settings, which are listed first. All other settings follow in alphabetical order.
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

/// Lists all settings, the most important first.
pub(super) fn list_settings(layer: &Layer) -> Vec<(String, String)> {
    let rank = |key: &str| FIRST.iter().position(|first| *first == key);
    let mut found: Vec<(&String, &String)> = layer.settings.iter().collect();
    found.sort_by_key(|(key, _)| (rank(key).unwrap_or(FIRST.len()), *key));
    found
        .into_iter()
        .map(|(key, value)| (escape_line(key), escape_line(value)))
        .collect()
}

/// Formats settings as text: `type ext4, block_size 4k`.
pub(super) fn format_settings(layer: &Layer) -> String {
    let pairs = list_settings(layer).into_iter();
    let words: Vec<String> = pairs.map(|(key, value)| format!("{key} {value}")).collect();
    words.join(", ")
}

/// Returns a layer's kind and name, such as `disk sda`; only the name if it contains the kind.
pub(super) fn layer_title(layer: &Layer) -> String {
    let (label, name) = (layer.kind.label(), escape_line(&layer.name));
    match name.strip_prefix("virtual ") {
        Some(rest) if label == "virtual disk" => format!("{label} {rest}"),
        _ => format!("{label} {name}"),
    }
}

/// Returns the numbers of the hints that concern a layer, from 1.
pub(super) fn list_hint_numbers(view: &StackView<'_>, at: usize) -> Vec<usize> {
    let hints = view.hints.iter().enumerate();
    hints
        .filter(|(_, hint)| hint.layer == at)
        .map(|(number, _)| number + 1)
        .collect()
}

/// Lists the unknown facts with the layers that they concern.
pub(super) fn list_unknown(view: &StackView<'_>) -> Vec<(String, String)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for layer in &view.stack.layers {
        for what in &layer.unknown {
            let what = escape_line(what);
            match found.iter_mut().find(|(known, _)| *known == what) {
                Some((_, layers)) => layers.push(layer_title(layer)),
                None => found.push((what, vec![layer_title(layer)])),
            }
        }
    }
    found
        .into_iter()
        .map(|(what, layers)| (layers.join(", "), what))
        .collect()
}

/// Formats the heading of a stack's report.
pub(super) fn format_heading(view: &StackView<'_>) -> String {
    format!("The layers under {}", escape_line(&view.stack.target))
}
