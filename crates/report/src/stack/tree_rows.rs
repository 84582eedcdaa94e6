//! The layers in the order in which they are drawn. A chain goes straight down. Branches begin only at a layer on top
//! of several others.

use assay_model::stack::Stack;

/// A row of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeRow {
    /// Index of the layer in the stack.
    pub(super) at: usize,
    /// For each branch above the layer, whether a sibling branch follows below.
    pub(super) open: Vec<bool>,
    /// Whether the layer begins the last branch in `open`.
    pub(super) begins: bool,
    /// Whether an earlier row already shows the layer, with everything below it.
    pub(super) again: bool,
}

/// Builds all rows of a stack.
pub(super) fn build_rows(stack: &Stack) -> Vec<TreeRow> {
    let mut rows = Vec::new();
    let mut drawn = vec![false; stack.layers.len()];
    // Rows still to be drawn, the next one last. A list instead of recursion allows a deep stack.
    let mut pending = vec![(0, Vec::new(), false)];
    while let Some((at, open, begins)) = pending.pop() {
        let Some(layer) = stack.layers.get(at) else {
            continue;
        };
        let again = drawn[at];
        drawn[at] = true;
        let branches: Vec<usize> = layer
            .below
            .iter()
            .copied()
            .filter(|below| *below < stack.layers.len())
            .collect();
        rows.push(TreeRow {
            at,
            open: open.clone(),
            begins,
            again: again && !branches.is_empty(),
        });
        if again {
            continue;
        }
        match branches.as_slice() {
            [only] => pending.push((*only, open, false)),
            several => {
                for (number, below) in several.iter().enumerate().rev() {
                    let mut open = open.clone();
                    open.push(number + 1 < several.len());
                    pending.push((*below, open, true));
                }
            }
        }
    }
    rows
}

impl TreeRow {
    /// Returns the prefix before the layer's name, such as `│  ├─ `.
    pub(super) fn name_prefix(&self) -> String {
        self.branch_prefix(self.begins)
    }

    /// Returns the prefix of the layer's lines after the first.
    pub(super) fn line_prefix(&self) -> String {
        self.branch_prefix(false)
    }

    fn branch_prefix(&self, begins: bool) -> String {
        let last = self.open.len().saturating_sub(1);
        let part = |(number, open): (usize, &bool)| match (begins && number == last, open) {
            (true, true) => "├─ ",
            (true, false) => "└─ ",
            (false, true) => "│  ",
            (false, false) => "   ",
        };
        self.open.iter().enumerate().map(part).collect()
    }
}
