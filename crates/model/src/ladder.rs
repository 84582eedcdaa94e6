//! A ladder: the same workload at every layer of a stack, each rung one layer more than the one it
//! stands on; and what was found out by it.

use crate::result::{CountedDoubt, Estimate};
use crate::stack::LayerKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the load generator of a rung runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RungPlace {
    /// On this machine, on a file or a block device.
    Host,
    /// On this machine, on an NBD export of QEMU's block layer.
    Nbd,
    /// In a guest.
    Guest,
}

/// A place to measure: everything that its parent has, and one layer more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rung {
    /// Unique; names the target in the plan and in samples.
    pub name: String,
    /// The rung that it adds a layer to; none for a bottom. It stands before this one.
    pub parent: Option<usize>,
    /// The layer it adds, as people call it: `qcow2`, `LUKS`, `ext4`.
    pub layer: String,
    /// What kind of layer that is.
    pub kind: LayerKind,
    /// Where the load runs.
    pub place: RungPlace,
    /// Settings that decide what it costs, by their field's own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What comes with this layer and cannot be told apart from it by this ladder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// The rung that this one is a second measurement of, in every round, on the same thing: for the
    /// whole, which is compared with the sum of the parts. Such a rung has no parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<usize>,
}

/// The rungs under a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ladder {
    /// The target as the user named it.
    pub target: String,
    /// The rungs; a parent stands before its children.
    pub rungs: Vec<Rung>,
    /// What runs the guest's instructions: `kvm` or `tcg`; none without a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accel: Option<String>,
    /// What could not be measured here, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Ladder {
    /// From a bottom up to a rung, both included. Empty when there is no such rung or its parents
    /// go in a circle.
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

    /// Rungs that nothing stands on, second measurements apart: the ends of the paths.
    #[must_use]
    pub fn tops(&self) -> Vec<usize> {
        let stood_on = |index| self.rungs.iter().any(|rung| rung.parent == Some(index));
        (0..self.rungs.len())
            .filter(|&index| self.rungs[index].again.is_none() && !stood_on(index))
            .collect()
    }

    /// The second measurement of a rung.
    #[must_use]
    pub fn again(&self, of: usize) -> Option<usize> {
        self.rungs.iter().position(|rung| rung.again == Some(of))
    }
}

/// What the rungs say of one workload. Latencies are means over all operations, in nanoseconds; a
/// write's includes the flush that follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waterfall {
    /// Its name in the plan.
    pub workload: String,
    /// One line for people.
    pub description: String,
    /// Each rung, in the order of the ladder.
    pub levels: Vec<Level>,
    /// Each layer, in the order of the ladder.
    pub steps: Vec<Step>,
    /// Each path from a bottom to a top, that which is checked first.
    pub wholes: Vec<Whole>,
}

/// One rung.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Level {
    /// Index into [`Ladder::rungs`].
    pub rung: usize,
    /// Mean time of an I/O, ns, over the rounds; none without a valid sample.
    pub latency: Option<Estimate>,
    /// I/Os per second; shown, never added up.
    pub iops: Option<Estimate>,
    /// Rounds without a figure: the sample was void or failed.
    pub left_out: u32,
    /// Doubts of its samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<CountedDoubt>,
}

/// What one layer adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// The rung below, index into [`Ladder::rungs`].
    pub from: usize,
    /// The rung with the layer.
    pub to: usize,
    /// Time that it adds to an I/O, ns: mean of the differences of paired rounds. Negative when the
    /// layer makes I/O faster. None without a pair.
    pub added: Option<Estimate>,
    /// Time with it ÷ time without it: geometric mean over paired rounds.
    pub ratio: Option<Estimate>,
    /// Whether the interval of `added` excludes zero.
    pub told: bool,
    /// Share of the whole of the first path it is on, when both are told from nothing.
    pub share: Option<f64>,
}

/// A path from a bottom to a top.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Whole {
    /// The bottom, index into [`Ladder::rungs`].
    pub bottom: usize,
    /// The top.
    pub top: usize,
    /// Indices into [`Waterfall::steps`], bottom first.
    pub steps: Vec<usize>,
    /// Time added by all layers together, measured from bottom to top, ns; on samples of its own
    /// when `separate`.
    pub added: Option<Estimate>,
    /// Time at the top ÷ time at the bottom.
    pub ratio: Option<Estimate>,
    /// Sum of the parts over the rounds in which all rungs have a figure.
    pub sum: Option<Estimate>,
    /// Sum of the parts less the whole, over the rounds in which both have a figure; none when the
    /// whole has no samples of its own, because the sum is the whole then whatever was measured.
    pub closing: Option<Estimate>,
    /// Whether bottom and top were measured a second time for the whole.
    pub separate: bool,
    /// The layers to look at first, indices into [`Waterfall::steps`]: the one that costs most for
    /// certain, then those that may cost as much, the dearest first. Empty when no layer costs
    /// anything that can be told.
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
