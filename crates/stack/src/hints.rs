//! What is known of settings: short remarks, each with the facts it rests on and who says so.
//!
//! A remark is where to look, not a verdict: what a setting costs here is what a trial or a
//! measurement of the layers tells.

mod guest;
mod storage;

use assay_model::stack::{Hint, Layer, LayerKind, Stack};

/// A rule looks at one layer, and at what it stands on.
type Rule = fn(&Look<'_>) -> Option<Said>;

/// What a rule says.
struct Said {
    text: String,
    because: String,
    /// The page of the catalogue about it, which tells what is true today and how to try it.
    page: &'static str,
    source: &'static str,
}

/// A layer and the stack it is part of.
struct Look<'a> {
    stack: &'a Stack,
    at: usize,
    layer: &'a Layer,
}

impl Look<'_> {
    fn is(&self, kind: LayerKind) -> bool {
        self.layer.kind == kind
    }

    fn says(&self, key: &str, value: &str) -> bool {
        self.layer.get(key) == Some(value)
    }

    /// Layers of a kind below, nearest first.
    fn below(&self, kind: LayerKind) -> impl Iterator<Item = &Layer> {
        let under = self.stack.under(self.at).into_iter();
        under.filter_map(move |at| {
            let layer = self.stack.layers.get(at)?;
            (layer.kind == kind).then_some(layer)
        })
    }
}

/// Remarks on the layers of a stack, in their order.
#[must_use]
pub fn collect_hints(stack: &Stack) -> Vec<Hint> {
    let rules: Vec<Rule> = storage::RULES
        .iter()
        .chain(&guest::RULES)
        .copied()
        .collect();
    let mut found = Vec::new();
    for (at, layer) in stack.layers.iter().enumerate() {
        let look = Look { stack, at, layer };
        for said in rules.iter().filter_map(|rule| rule(&look)) {
            found.push(Hint {
                layer: at,
                text: said.text,
                because: said.because,
                page: said.page.to_owned(),
                source: said.source.to_owned(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests;
