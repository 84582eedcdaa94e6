//! A stack as Markdown, for issues and wikis.

use super::View;
use super::rows::rows;
use super::words::{from, heading, marks, settings_text, title, unknown};
use assay_render::markdown::plain;

/// A table of the layers, in which a branch is marked by how far it is indented; then remarks and
/// what is not known.
#[must_use]
pub fn markdown(view: &View<'_>) -> String {
    let mut out = format!(
        "# {}\n\n| layer | settings |\n|---|---|\n",
        plain(&heading(view))
    );
    for row in rows(view.stack) {
        let layer = &view.stack.layers[row.at];
        let settings = match row.again {
            true => "as above".to_owned(),
            false => settings_text(layer),
        };
        let numbers: String = marks(view, row.at)
            .iter()
            .map(|number| format!(" ({number})"))
            .collect();
        let lead = row.lead().replace(' ', "&nbsp;");
        let name = plain(&title(layer));
        out += &format!("| {lead}{name}{numbers} | {} |\n", plain(&settings));
    }
    if !view.hints.is_empty() {
        out += "\n## Worth a look\n\n";
        for (number, hint) in view.hints.iter().enumerate() {
            let layer = view.stack.layers.get(hint.layer);
            let name = layer.map(title).unwrap_or_default();
            let text = format!("{name}: {} ({}).", hint.text, hint.because);
            let source = plain(&from(hint));
            out += &format!("{}. {} {source}\n", number + 1, plain(&text));
        }
    }
    let unknown = unknown(view);
    if !unknown.is_empty() {
        out += "\n## Not known\n\n";
        for (layers, what) in unknown {
            out += &format!("- {}: {}\n", plain(&layers), plain(&what));
        }
    }
    out
}
