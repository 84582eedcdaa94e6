//! Hints: short remarks on settings, each with its facts and its source.
//!
//! A hint suggests what to examine and is not a verdict. A trial, or a measurement of the layers, shows what a setting
//! costs on this machine.

mod guest;
mod storage;

use assay_model::stack::{Hint, Layer, LayerKind, Stack};

/// A check of one layer and the layers below it. Returns a hint if it applies.
type Rule = fn(&Look<'_>) -> Option<Said>;

/// Hint of a check, before its layer is added.
struct Said {
    text: String,
    because: String,
    /// Id of the advice page on the subject, which has the current state of knowledge and a trial.
    page: &'static str,
    source: &'static str,
}

/// The layer that a check examines, with its stack.
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

    /// Returns the layers of a kind below this layer, nearest first.
    fn below(&self, kind: LayerKind) -> impl Iterator<Item = &Layer> {
        let under = self.stack.under(self.at).into_iter();
        under.filter_map(move |at| {
            let layer = self.stack.layers.get(at)?;
            (layer.kind == kind).then_some(layer)
        })
    }
}

/// Returns the hints on the layers of a stack, in order.
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
