//! A stack as one HTML file with its picture, in the style of a run's report.

use super::View;
use super::rows::rows;
use super::words::{from, heading, marks, settings, settings_text, title, unknown};
use assay_render::html::page;
use assay_render::svg::stack::{Item, stack};
use assay_render::text::clean;
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

/// The page.
#[must_use]
pub fn html(view: &View<'_>) -> String {
    let layers = &view.stack.layers;
    let items: Vec<Item> = rows(view.stack)
        .iter()
        .map(|row| Item {
            depth: row.open.len(),
            begins: row.begins,
            heading: title(&layers[row.at]),
            text: match row.again {
                true => "as above".to_owned(),
                false => settings_text(&layers[row.at]),
            },
            marks: marks(view, row.at),
        })
        .collect();
    let head = heading(view);
    let description = format!("{} layers, each on the next", layers.len());
    let hints: Vec<HintView> = view
        .hints
        .iter()
        .map(|hint| HintView {
            name: layers.get(hint.layer).map(title).unwrap_or_default(),
            text: clean(&hint.text),
            because: clean(&hint.because),
            source: clean(&from(hint)),
        })
        .collect();
    let table: Vec<LayerView> = layers
        .iter()
        .map(|layer| LayerView {
            name: title(layer),
            settings: settings(layer),
        })
        .collect();
    page(
        &head,
        OWN_STYLE,
        TEMPLATE,
        context! {
            head => &head,
            picture => stack("layers", &head, &description, &items),
            hints => Serde(&hints),
            unknown => Serde(&unknown(view)),
            layers => Serde(&table),
        },
    )
}
