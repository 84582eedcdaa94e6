//! The Markdown report of a stack, for issues and wikis. Shared text is in `layer_text`.

use super::StackView;
use super::layer_text::{
    format_heading, format_hint_source, format_settings, layer_title, list_hint_numbers,
    list_unknown,
};
use super::tree_rows::build_rows;
use assay_render::markdown::escape_markdown;

/// Renders a table of the layers (indentation marks a branch), followed by the hints and the unknown facts.
#[must_use]
pub fn render_stack_markdown(view: &StackView<'_>) -> String {
    let mut out = format!(
        "# {}\n\n| layer | settings |\n|---|---|\n",
        escape_markdown(&format_heading(view))
    );
    for row in build_rows(view.stack) {
        let layer = &view.stack.layers[row.at];
        let settings = match row.again {
            true => "as above".to_owned(),
            false => format_settings(layer),
        };
        let numbers: String = list_hint_numbers(view, row.at)
            .iter()
            .map(|number| format!(" ({number})"))
            .collect();
        let lead = row.name_prefix().replace(' ', "&nbsp;");
        let name = escape_markdown(&layer_title(layer));
        out += &format!(
            "| {lead}{name}{numbers} | {} |\n",
            escape_markdown(&settings)
        );
    }
    if !view.hints.is_empty() {
        out += "\n## Worth a look\n\n";
        for (number, hint) in view.hints.iter().enumerate() {
            let layer = view.stack.layers.get(hint.layer);
            let name = layer.map(layer_title).unwrap_or_default();
            let text = format!("{name}: {} ({}).", hint.text, hint.because);
            let source = escape_markdown(&format_hint_source(hint));
            out += &format!("{}. {} {source}\n", number + 1, escape_markdown(&text));
        }
    }
    let unknown = list_unknown(view);
    if !unknown.is_empty() {
        out += "\n## Not known\n\n";
        for (layers, what) in unknown {
            out += &format!(
                "- {}: {}\n",
                escape_markdown(&layers),
                escape_markdown(&what)
            );
        }
    }
    out
}
