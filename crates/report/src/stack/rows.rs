//! The layers in the order of drawing. A chain goes straight down; only where a layer stands on
//! several, branches begin.

use assay_model::stack::Stack;

/// A line of the drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Index of the layer.
    pub(super) at: usize,
    /// For each branch on the way to it: whether another one of its kind follows below.
    pub(super) open: Vec<bool>,
    /// It begins the last of these branches.
    pub(super) begins: bool,
    /// It was drawn before with all that is below it.
    pub(super) again: bool,
}

/// All rows of a stack.
pub(super) fn rows(stack: &Stack) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut drawn = vec![false; stack.layers.len()];
    // What is still to be drawn, the next one last: a stack may be deep.
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
        rows.push(Row {
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

impl Row {
    /// What stands before its name: `│  ├─ `.
    pub(super) fn lead(&self) -> String {
        self.prefix(self.begins)
    }

    /// What stands before a further line of it.
    pub(super) fn margin(&self) -> String {
        self.prefix(false)
    }

    fn prefix(&self, begins: bool) -> String {
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
