//! Reports clones, the data that they share, and the snapshots that cannot be destroyed because of them.

use super::graph::{Graph, Recursion};
use crate::error::PlannerError;
use serde::Serialize;

/// A clone and its relation to its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CloneReport {
    /// Full name of the clone.
    pub name: String,
    /// Name of the origin snapshot.
    pub origin: String,
    /// Bytes that the clone references.
    pub referenced: u64,
    /// Minimum number of bytes that the clone still shares with its origin.
    pub shared: u64,
    /// Whether `shared` is the exact number and not only a minimum. It is exact if the clone has no snapshots of its
    /// own and `written` is known.
    pub exact: bool,
    /// What promoting the clone would do.
    pub promote: Promote,
    /// What replacing the clone by a full copy would need and free.
    pub copy_out: CopyOut,
}

/// What `zfs promote` would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Promote {
    /// Number of snapshots that would move to the clone.
    pub moves: usize,
    /// `used` of the origin's dataset after the promotion; `None` if the recorded properties do not determine it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_used_after: Option<u64>,
    /// `used` of the clone after the promotion; `None` if the recorded properties do not determine it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clone_used_after: Option<u64>,
    /// Bytes that are freed if the origin's dataset is destroyed after the promotion, which then affects no other
    /// dataset. The promotion itself frees nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then_frees: Option<u64>,
}

/// Effect of replacing the clone by a full copy (`zfs send | zfs receive`). The clone is destroyed afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CopyOut {
    /// Bytes that the full copy needs.
    pub needs: u64,
    /// Bytes that are freed when the clone is destroyed.
    pub frees: u64,
    /// Additional bytes that are freed when the origin snapshot is destroyed afterwards, if it has no other clone.
    pub origin_frees: u64,
}

/// A snapshot that cannot be destroyed, because it has clones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct HostageReport {
    /// Full name of the snapshot.
    pub snapshot: String,
    /// Direct clones of the snapshot.
    pub clones: Vec<String>,
    /// Bytes that only this snapshot references. They cannot be freed while the clones exist.
    pub hostage: u64,
    /// Number of datasets and snapshots that `destroy -R` would destroy, including this snapshot. `None` in large
    /// graphs, where the number is computed only on request.
    pub destroy_takes: Option<usize>,
    /// Minimum number of bytes that `destroy -R` would free.
    pub destroy_frees: Option<u64>,
}

/// Report on the clones of a pool, or of a dataset and its children.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Report")]
pub struct LineageReport {
    /// Number of datasets in the report.
    pub datasets: usize,
    /// Number of snapshots in the report.
    pub snapshots: usize,
    /// The clones, with what they share with their origins.
    pub clones: Vec<CloneReport>,
    /// Snapshots that cannot be destroyed because they have clones.
    pub hostages: Vec<HostageReport>,
}

/// Maximum number of datasets to visit when the effect of `destroy -R` is computed for all snapshots with clones.
/// Without the limit, long chains of clones would take quadratic time.
const DESTROY_BUDGET: usize = 300_000;

/// Reports on `dataset` and its children, or on the whole pool.
///
/// # Errors
/// [`PlannerError::Lineage`] if `dataset` does not exist.
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
    // Bytes written since the origin: since the newest snapshot, plus `written` of each earlier one.
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

/// Computes the effect of `zfs promote`. The origin's dataset becomes a clone of the snapshot that is moved, and uses
/// only what was written to it since that snapshot. The sum of the `used` of both datasets does not change
/// (`dsl_dataset_promote_sync`, dsl_dataset.c, OpenZFS 2.1.11).
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
