//! The HTML page of a stack with its diagram. `assay-render` renders the diagram.

use super::StackView;
use super::layer_text::{
    format_heading, format_hint_source, format_settings, layer_title, list_hint_numbers,
    list_settings, list_unknown,
};
use super::tree_rows::build_rows;
use assay_render::html::render_page;
use assay_render::svg::layer_diagram::{LayerBox, draw_stack};
use assay_render::text::escape_line;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TEMPLATE: &str = include_str!("page.html");
const OWN_STYLE: &str = "
svg .box { fill: var(--panel); stroke: var(--rule); stroke-width: 1 }
svg .noted { stroke: var(--warn); stroke-width: 1.5 }
svg .head { font-size: 13px; font-weight: 620 }
.picture { overflow-x: auto }
.picture svg { min-width: 44rem }
ol.hints li { margin: 0 0 .9rem; max-width: 60rem }
";

#[derive(Serialize)]
struct HintView {
    name: String,
    text: String,
    because: String,
    source: String,
}

#[derive(Serialize)]
struct LayerView {
    name: String,
    settings: Vec<(String, String)>,
}

/// Draws the layers of a stack as SVG. The page needs the classes `box`, `noted` and `head`.
#[must_use]
pub fn draw_stack_picture(view: &StackView<'_>) -> String {
    let layers = &view.stack.layers;
    let items: Vec<LayerBox> = build_rows(view.stack)
        .iter()
        .map(|row| LayerBox {
            depth: row.open.len(),
            begins: row.begins,
            heading: layer_title(&layers[row.at]),
            text: match row.again {
                true => "as above".to_owned(),
                false => format_settings(&layers[row.at]),
            },
            marks: list_hint_numbers(view, row.at),
        })
        .collect();
    let description = format!("{} layers, each on the next", layers.len());
    draw_stack("layers", &format_heading(view), &description, &items)
}

/// Renders the page of a stack.
#[must_use]
pub fn render_stack_page(view: &StackView<'_>) -> String {
    let layers = &view.stack.layers;
    let head = format_heading(view);
    let hints: Vec<HintView> = view
        .hints
        .iter()
        .map(|hint| HintView {
            name: layers.get(hint.layer).map(layer_title).unwrap_or_default(),
            text: escape_line(&hint.text),
            because: escape_line(&hint.because),
            source: escape_line(&format_hint_source(hint)),
        })
        .collect();
    let table: Vec<LayerView> = layers
        .iter()
        .map(|layer| LayerView {
            name: layer_title(layer),
            settings: list_settings(layer),
        })
        .collect();
    render_page(
        &head,
        OWN_STYLE,
        TEMPLATE,
        context! {
            head => &head,
            picture => draw_stack_picture(view),
            hints => Serde(&hints),
            unknown => Serde(&list_unknown(view)),
            layers => Serde(&table),
        },
    )
}
