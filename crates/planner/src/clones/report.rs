//! What an administrator wants to know of a lineage.

use super::graph::{Graph, Recursion};
use crate::error::PlannerError;
use serde::Serialize;

/// A clone and its tie to where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CloneReport {
    /// Its name.
    pub name: String,
    /// Snapshot it hangs on.
    pub origin: String,
    /// Bytes it refers to.
    pub referenced: u64,
    /// Bytes of them still shared with the origin, at least.
    pub shared: u64,
    /// Whether `shared` is exact: the clone has no snapshots of its own and `written` is known.
    pub exact: bool,
    /// What promoting it would do.
    pub promote: Promote,
    /// What replacing it by a full copy would do.
    pub copy_out: CopyOut,
}

/// What `zfs promote` would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Promote {
    /// Snapshots that would move to the clone.
    pub moves: usize,
    /// `used` of the old origin dataset afterwards, where the records decide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_used_after: Option<u64>,
    /// `used` of the clone afterwards, where the records decide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clone_used_after: Option<u64>,
    /// Bytes that destroying the old origin dataset would then free, with nothing else lost. The
    /// promotion itself frees nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then_frees: Option<u64>,
}

/// What a full copy (`zfs send | zfs receive`) and destroying the clone would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CopyOut {
    /// Bytes the copy needs.
    pub needs: u64,
    /// Bytes that the clone's end frees.
    pub frees: u64,
    /// Bytes more that its origin snapshot then frees, when no other clone hangs on it.
    pub origin_frees: u64,
}

/// A snapshot that cannot go because clones hang on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct HostageReport {
    /// Its name.
    pub snapshot: String,
    /// Clones directly on it.
    pub clones: Vec<String>,
    /// Bytes only it refers to: lost to anything else.
    pub hostage: u64,
    /// Datasets and snapshots that `destroy -R` of it would take, itself included; none in lineages
    /// so large that it is worked out only on request.
    pub destroy_takes: Option<usize>,
    /// Bytes `destroy -R` of it would free, at least.
    pub destroy_frees: Option<u64>,
}

/// The whole of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Report")]
pub struct LineageReport {
    /// Datasets.
    pub datasets: usize,
    /// Snapshots.
    pub snapshots: usize,
    /// Clones.
    pub clones: Vec<CloneReport>,
    /// Snapshots with clones.
    pub hostages: Vec<HostageReport>,
}

/// Datasets visited for `destroy -R` of all hostages together. Long chains of clones would take
/// the square of their length otherwise.
const DESTROY_BUDGET: usize = 300_000;

/// Looks at `dataset` and everything below it, or at all.
///
/// # Errors
/// [`PlanError::Lineage`] when `dataset` is not recorded.
pub fn report(graph: &Graph, dataset: Option<&str>) -> Result<LineageReport, PlannerError> {
    if let Some(name) = dataset {
        graph.find(name)?;
    }
    let within = |name: &str| match dataset {
        None => true,
        Some(root) => name
            .strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '@'])),
    };
    let mut report = LineageReport {
        datasets: 0,
        snapshots: 0,
        clones: Vec::new(),
        hostages: Vec::new(),
    };
    let mut budget = DESTROY_BUDGET;
    for (at, node) in graph.nodes.iter().enumerate() {
        if !within(&node.record.name) {
            continue;
        }
        if node.is_snapshot() {
            report.snapshots += 1;
            if !node.clones.is_empty() {
                let destroy = match budget {
                    0 => None,
                    _ => Some(graph.destroy(&node.record.name, Recursion::Dependents)?),
                };
                let visited = destroy.as_ref().map_or(0, |destroy| destroy.takes.len());
                budget = budget.saturating_sub(visited);
                report.hostages.push(HostageReport {
                    snapshot: node.record.name.clone(),
                    clones: node
                        .clones
                        .iter()
                        .map(|&c| graph.nodes[c].record.name.clone())
                        .collect(),
                    hostage: node.record.used,
                    destroy_takes: destroy.as_ref().map(|destroy| destroy.takes.len()),
                    destroy_frees: destroy.as_ref().map(|destroy| destroy.frees_at_least),
                });
            }
        } else {
            report.datasets += 1;
            if let Some(origin) = node.origin {
                report.clones.push(clone_report(graph, at, origin));
            }
        }
    }
    Ok(report)
}

fn clone_report(graph: &Graph, at: usize, origin: usize) -> CloneReport {
    let node = &graph.nodes[at];
    // What was written since the origin: since the newest snapshot, and each one's part before.
    let born = node
        .snapshots
        .iter()
        .chain([&at])
        .map(|&n| graph.nodes[n].record.written)
        .try_fold(0u64, |sum, written| Some(sum.saturating_add(written?)));
    let shared = node
        .record
        .referenced
        .saturating_sub(born.unwrap_or(u64::MAX));
    let snapshot = &graph.nodes[origin];
    CloneReport {
        name: node.record.name.clone(),
        origin: snapshot.record.name.clone(),
        referenced: node.record.referenced,
        shared,
        exact: born.is_some() && node.snapshots.is_empty(),
        promote: promote_clone(graph, at, origin),
        copy_out: CopyOut {
            needs: node.record.referenced,
            frees: node.record.used,
            origin_frees: match snapshot.clones.len() {
                1 => snapshot.record.used,
                _ => 0,
            },
        },
    }
}

/// The origin dataset becomes a clone of the moved snapshot; what it then uses is what it wrote
/// since. The sum of both stays (`dsl_dataset_promote_sync`, dsl_dataset.c, OpenZFS 2.1.11).
fn promote_clone(graph: &Graph, at: usize, origin: usize) -> Promote {
    let snapshot = &graph.nodes[origin];
    let owner = snapshot.parent.map(|owner| &graph.nodes[owner]);
    let latest = owner.is_some_and(|owner| owner.snapshots.last() == Some(&origin));
    let lone = owner.is_some_and(|owner| owner.children.is_empty());
    let after = match owner {
        Some(owner) if latest && lone => owner.record.written,
        _ => None,
    };
    let clone_after = after.zip(owner).map(|(after, owner)| {
        (graph.nodes[at]
            .record
            .used
            .saturating_add(owner.record.used))
        .saturating_sub(after)
    });
    Promote {
        moves: snapshot.place + 1,
        origin_used_after: after,
        clone_used_after: clone_after,
        then_frees: after,
    }
}
