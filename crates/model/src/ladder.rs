//! A ladder: the same workload measured at every layer of a storage stack. A rung is one measured target; it consists
//! of the layers of the rung below and one more layer.

use crate::result::{CountedDoubt, Estimate};
use crate::stack::LayerKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the load generator runs when it measures a rung.
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

/// One measured target of a ladder: the layers of its parent, and one more layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rung {
    /// Name of the target in the plan and in samples; unique in the ladder.
    pub name: String,
    /// Index of the rung below, which has one layer less; `None` for a bottom rung. A parent precedes its children.
    pub parent: Option<usize>,
    /// Common name of the added layer, such as `qcow2`, `LUKS` or `ext4`.
    pub layer: String,
    /// Kind of the added layer.
    pub kind: LayerKind,
    /// Where the load generator runs.
    pub place: RungPlace,
    /// Settings of the layer that affect its cost, with the names that the layer uses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Other effects that the figures of this rung also contain, and that this ladder cannot separate from the cost of
    /// the layer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// Index of the rung that this rung repeats: the same object is measured a second time in every round. The second
    /// measurement gives the total cost, which is compared with the sum of the layers. A repeated rung has no parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<usize>,
}

/// All measured layers of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ladder {
    /// The target as written on the command line.
    pub target: String,
    /// The measured targets. A parent precedes its children.
    pub rungs: Vec<Rung>,
    /// Accelerator of the guest: `kvm` or `tcg`; `None` without a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accel: Option<String>,
    /// Layers that could not be measured, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Ladder {
    /// Returns the path from a bottom rung to the rung `top`, including both. Empty if `top` does not exist, or if its
    /// parents form a cycle.
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

    /// Returns the rungs at the ends of the paths: those without children, except second measurements.
    #[must_use]
    pub fn tops(&self) -> Vec<usize> {
        let stood_on = |index| self.rungs.iter().any(|rung| rung.parent == Some(index));
        (0..self.rungs.len())
            .filter(|&index| self.rungs[index].again.is_none() && !stood_on(index))
            .collect()
    }

    /// Returns the rung that measures the rung `of` a second time, if there is one.
    #[must_use]
    pub fn again(&self, of: usize) -> Option<usize> {
        self.rungs.iter().position(|rung| rung.again == Some(of))
    }
}

/// Results of one workload at all layers. Latencies are means over all operations in nanoseconds. The latency of a
/// write includes the flush after the write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waterfall {
    /// Name of the workload in the plan.
    pub workload: String,
    /// Description of the workload on one line.
    pub description: String,
    /// Results of the measured targets, in the order of the ladder.
    pub levels: Vec<Level>,
    /// Costs of the layers, in the order of the ladder.
    pub steps: Vec<Step>,
    /// Total costs of the paths from a bottom to a top. If a total was measured separately, its path is first.
    pub wholes: Vec<Whole>,
}

/// Result of one measured target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Level {
    /// Index of the measured target in [`Ladder::rungs`].
    pub rung: usize,
    /// Mean time of an I/O over the rounds in nanoseconds; `None` without a valid sample.
    pub latency: Option<Estimate>,
    /// I/Os per second. Shown, but never used in sums.
    pub iops: Option<Estimate>,
    /// Number of rounds without a figure, because their sample is void or failed.
    pub left_out: u32,
    /// Doubts (reasons to distrust the figures) about the samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<CountedDoubt>,
}

/// Cost that one layer adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// Index of the rung without the layer in [`Ladder::rungs`].
    pub from: usize,
    /// Index of the rung with the layer in [`Ladder::rungs`].
    pub to: usize,
    /// Time in nanoseconds that the layer adds to an I/O: the mean difference over rounds in which both rungs have a
    /// figure. Negative if the layer makes I/O faster. `None` without such a round.
    pub added: Option<Estimate>,
    /// Time with the layer ÷ time without the layer: the geometric mean over rounds in which both rungs have a figure.
    pub ratio: Option<Estimate>,
    /// Whether the cost is significant, which means that the interval of `added` excludes zero.
    pub told: bool,
    /// Cost of the layer as a fraction of the total of the first path with this layer. `None` unless both the cost and
    /// the total differ significantly from zero.
    pub share: Option<f64>,
}

/// Total cost of a path from a bottom to a top.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Whole {
    /// Index of the bottom in [`Ladder::rungs`].
    pub bottom: usize,
    /// Index of the top in [`Ladder::rungs`].
    pub top: usize,
    /// Costs of the path's layers as indices into [`Waterfall::steps`], from the bottom.
    pub steps: Vec<usize>,
    /// Time in nanoseconds that all layers of the path together add to an I/O. Computed from separate samples if
    /// `separate` is true.
    pub added: Option<Estimate>,
    /// Time of an I/O at the top ÷ time at the bottom.
    pub ratio: Option<Estimate>,
    /// Sum of the layers' costs in nanoseconds, over the rounds in which all rungs have a figure.
    pub sum: Option<Estimate>,
    /// Sum of the layers' costs minus the total in nanoseconds, over the rounds in which both have a figure. `None` if
    /// the total has no samples of its own, because the two are then equal by construction.
    pub closing: Option<Estimate>,
    /// Whether the bottom and the top were measured a second time, to get the total.
    pub separate: bool,
    /// Layers to inspect first, as indices into [`Waterfall::steps`]. The layer with the largest significant cost comes
    /// first. The layers that may cost as much follow, the most expensive first. Empty if no layer has a significant
    /// cost.
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
