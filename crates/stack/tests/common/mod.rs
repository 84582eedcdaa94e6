//! Shared functions of the tests on real machines.

use assay_model::stack::{Layer, LayerKind, Stack};

/// Returns the nearest layer of a kind, which may be the top layer itself.
pub fn layer(stack: &Stack, kind: LayerKind) -> &Layer {
    let found = stack.layers.iter().find(|layer| layer.kind == kind);
    found.unwrap_or_else(|| panic!("no {kind:?} in {stack:#?}"))
}

/// Returns the kinds of the layers from the top downwards. At a branch, follows the first lower layer.
pub fn chain(stack: &Stack) -> Vec<LayerKind> {
    let mut kinds = Vec::new();
    let mut at = 0;
    while let Some(layer) = stack.layers.get(at) {
        assert!(kinds.len() < 64, "a circle: {stack:#?}");
        kinds.push(layer.kind);
        match layer.below.first() {
            Some(below) => at = *below,
            None => break,
        }
    }
    kinds
}
