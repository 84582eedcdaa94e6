//! A ladder: the same workload measured at every layer of a storage stack. Each rung adds one layer to the rung below
//! it.

use crate::result::{CountedDoubt, Estimate};
use crate::stack::LayerKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the load generator of a rung runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RungPlace {
    /// On this machine, against a file or a block device.
    Host,
    /// On this machine, against an NBD export of QEMU's block layer.
    Nbd,
    /// In a guest.
    Guest,
}

/// A rung: a measured target that consists of the layers of its parent and one more layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rung {
    /// Unique name of the target in the plan and in samples.
    pub name: String,
    /// Index of the rung below; `None` for a bottom rung. A parent precedes its children.
    pub parent: Option<usize>,
    /// Common name of the added layer: `qcow2`, `LUKS`, `ext4`.
    pub layer: String,
    /// Kind of the added layer.
    pub kind: LayerKind,
    /// Where the load runs.
    pub place: RungPlace,
    /// Settings that affect the cost of the layer, by the layer's own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Other effects that this ladder cannot separate from the cost of the layer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// Index of the rung that this rung repeats: the same object is measured a second time in every round. The second
    /// measurement gives the total, which is compared with the sum of the layers. Such a rung has no parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<usize>,
}

/// All rungs of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ladder {
    /// The target as the user named it.
    pub target: String,
    /// The rungs; a parent precedes its children.
    pub rungs: Vec<Rung>,
    /// Accelerator of the guest: `kvm` or `tcg`; `None` without a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accel: Option<String>,
    /// Layers that could not be measured, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Ladder {
    /// Returns the rungs from a bottom rung to `top`, both included. Empty if `top` does not exist or its parents form
    /// a cycle.
    #[must_use]
    pub fn path(&self, top: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = Some(top);
        while let Some(index) = at {
            match self.rungs.get(index) {
                Some(rung) if path.len() <= self.rungs.len() => {
                    path.push(index);
                    at = rung.parent;
                }
                _ => return Vec::new(),
            }
        }
        path.reverse();
        path
    }

    /// Returns the rungs without children, except second measurements: the ends of the paths.
    #[must_use]
    pub fn tops(&self) -> Vec<usize> {
        let stood_on = |index| self.rungs.iter().any(|rung| rung.parent == Some(index));
        (0..self.rungs.len())
            .filter(|&index| self.rungs[index].again.is_none() && !stood_on(index))
            .collect()
    }

    /// Returns the rung that measures a rung the second time, if there is one.
    #[must_use]
    pub fn again(&self, of: usize) -> Option<usize> {
        self.rungs.iter().position(|rung| rung.again == Some(of))
    }
}

/// Results of one workload on all rungs. Latencies are means over all operations in nanoseconds;
/// the latency of a write includes the flush after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waterfall {
    /// Name of the workload in the plan.
    pub workload: String,
    /// Description on one line.
    pub description: String,
    /// Results of the rungs, in the order of the ladder.
    pub levels: Vec<Level>,
    /// Costs of the layers, in the order of the ladder.
    pub steps: Vec<Step>,
    /// Totals of the paths from a bottom to a top rung. The path whose total was measured separately comes first.
    pub wholes: Vec<Whole>,
}

/// Result of one rung.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Level {
    /// Index into [`Ladder::rungs`].
    pub rung: usize,
    /// Mean time of an I/O over the rounds, ns; `None` without a valid sample.
    pub latency: Option<Estimate>,
    /// I/Os per second; shown, but never summed.
    pub iops: Option<Estimate>,
    /// Rounds without a figure, because the sample was void or failed.
    pub left_out: u32,
    /// Doubts of its samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<CountedDoubt>,
}

/// Cost of one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// The rung below, index into [`Ladder::rungs`].
    pub from: usize,
    /// The rung with the layer, index into [`Ladder::rungs`].
    pub to: usize,
    /// Time that the layer adds to an I/O, in ns: mean difference over rounds in which both rungs have a figure.
    /// Negative if the layer makes I/O faster. `None` without such a round.
    pub added: Option<Estimate>,
    /// Time with the layer ÷ time without it: geometric mean over rounds in which both rungs have a figure.
    pub ratio: Option<Estimate>,
    /// Whether the cost is significant: the interval of `added` excludes zero.
    pub told: bool,
    /// Fraction of the total of the first path that contains the layer; `None` unless both differ significantly from
    /// zero.
    pub share: Option<f64>,
}

/// Total of a path from a bottom to a top.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Whole {
    /// The bottom, index into [`Ladder::rungs`].
    pub bottom: usize,
    /// The top, index into [`Ladder::rungs`].
    pub top: usize,
    /// Indices into [`Waterfall::steps`], bottom first.
    pub steps: Vec<usize>,
    /// Time that all layers of the path add together, in ns. Computed from separate samples if `separate`.
    pub added: Option<Estimate>,
    /// Time at the top ÷ time at the bottom.
    pub ratio: Option<Estimate>,
    /// Sum of the layers in ns, over the rounds in which all rungs have a figure.
    pub sum: Option<Estimate>,
    /// Sum of the layers minus the total in ns, over the rounds in which both have a figure. `None` if the total has no
    /// separate samples, because then both are equal by construction.
    pub closing: Option<Estimate>,
    /// Whether bottom and top were measured a second time for the total.
    pub separate: bool,
    /// Layers to inspect first, as indices into [`Waterfall::steps`]. First the layer with the largest significant
    /// cost, then the layers that may cost as much, the most expensive first. Empty if no layer has a significant cost.
    pub first: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(name: &str, parent: Option<usize>, again: Option<usize>) -> Rung {
        Rung {
            name: name.to_owned(),
            parent,
            layer: name.to_owned(),
            kind: LayerKind::File,
            place: RungPlace::Host,
            settings: BTreeMap::new(),
            holds: Vec::new(),
            again,
        }
    }

    #[test]
    fn paths_begin_at_the_bottom_and_a_circle_has_none() {
        let mut ladder = Ladder {
            rungs: vec![
                rung("file", None, None),
                rung("raw", Some(0), None),
                rung("ext4", Some(1), None),
                rung("xfs", Some(1), None),
                rung("file again", None, Some(0)),
            ],
            ..Ladder::default()
        };
        assert_eq!(ladder.path(3), [0, 1, 3]);
        assert_eq!(ladder.tops(), [2, 3]);
        assert_eq!((ladder.again(0), ladder.again(1)), (Some(4), None));
        ladder.rungs[0].parent = Some(1);
        assert_eq!(ladder.path(3), [0usize; 0]);
        assert_eq!(ladder.path(9), [0usize; 0]);
    }
}
