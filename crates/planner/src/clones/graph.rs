//! Graph of datasets, snapshots and clones.

use super::record::Record;
use crate::error::PlannerError;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// A dataset or snapshot as a node of the graph. Other nodes are referenced by their index.
#[derive(Clone, Debug)]
pub struct Node {
    /// Properties of the dataset or snapshot, as recorded by `zfs get`.
    pub record: Record,
    /// Index of the dataset that a snapshot belongs to, or of the parent of a dataset.
    pub parent: Option<usize>,
    /// For a dataset, its snapshots, the oldest first.
    pub snapshots: Vec<usize>,
    /// For a dataset, its direct children.
    pub children: Vec<usize>,
    /// For a clone, its origin snapshot.
    pub origin: Option<usize>,
    /// For a snapshot, its clones.
    pub clones: Vec<usize>,
    /// For a snapshot, its position in the list of its dataset's snapshots.
    pub place: usize,
}

impl Node {
    /// Returns whether the node is a snapshot.
    #[must_use]
    pub fn is_snapshot(&self) -> bool {
        self.record.name.contains('@')
    }
}

/// All datasets and snapshots of a pool, with their relations.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Datasets and snapshots in the recorded order.
    pub nodes: Vec<Node>,
    names: HashMap<String, usize>,
}

/// Recursion option of `zfs destroy`. It decides what may be destroyed together with the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recursion {
    /// Plain `destroy`: nothing else is destroyed.
    None,
    /// `-r`: child datasets and snapshots are destroyed too.
    Children,
    /// `-R`: clones are destroyed too, anywhere in the pool.
    Dependents,
}

/// What a `zfs destroy` would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Destroy {
    /// Name of the dataset or snapshots to destroy.
    pub target: String,
    /// Recursion option of the destroy.
    pub recursion: Recursion,
    /// Names of everything that would be destroyed, dependents first.
    pub takes: Vec<String>,
    /// Reasons why ZFS would refuse the destroy; empty if the destroy would succeed.
    pub refused: Vec<String>,
    /// Minimum number of bytes that the destroy frees.
    pub frees_at_least: u64,
    /// Maximum number of bytes that the destroy frees. The maximum equals the minimum if the recorded properties
    /// determine the amount.
    pub frees_at_most: u64,
}

impl Graph {
    /// Builds the graph from recorded properties.
    ///
    /// # Errors
    /// [`PlannerError::Lineage`]: a snapshot has no dataset, an origin is missing or is not a snapshot, a dataset
    /// descends from itself, or a dataset is a clone of its own snapshot.
    pub fn new(records: Vec<Record>) -> Result<Self, PlannerError> {
        let mut names = HashMap::with_capacity(records.len());
        let mut nodes: Vec<Node> = Vec::with_capacity(records.len());
        for record in records {
            names.insert(record.name.clone(), nodes.len());
            nodes.push(Node {
                record,
                parent: None,
                snapshots: Vec::new(),
                children: Vec::new(),
                origin: None,
                clones: Vec::new(),
                place: 0,
            });
        }
        let wrong = |text: String| Err(PlannerError::Lineage(text));
        for at in 0..nodes.len() {
            let name = nodes[at].record.name.clone();
            if let Some((dataset, _)) = name.split_once('@') {
                let Some(&owner) = names.get(dataset) else {
                    return wrong(format!(
                        "snapshot {} is recorded, its dataset is not; record with -t \
                         filesystem,volume,snapshot",
                        name.escape_debug()
                    ));
                };
                if nodes[at].record.origin.is_some() {
                    return wrong(format!("snapshot {} has an origin", name.escape_debug()));
                }
                nodes[at].parent = Some(owner);
                nodes[owner].snapshots.push(at);
                continue;
            }
            if let Some((above, _)) = name.rsplit_once('/')
                && let Some(&above) = names.get(above)
            {
                nodes[at].parent = Some(above);
                nodes[above].children.push(at);
            }
            if let Some(origin) = nodes[at].record.origin.clone() {
                let Some(&snapshot) = names.get(&origin) else {
                    return wrong(format!(
                        "{} is a clone of {}, which is not recorded; record the whole pool",
                        name.escape_debug(),
                        origin.escape_debug()
                    ));
                };
                if !origin.contains('@') {
                    return wrong(format!(
                        "{} has the origin {}, which is no snapshot",
                        name.escape_debug(),
                        origin.escape_debug()
                    ));
                }
                nodes[at].origin = Some(snapshot);
                nodes[snapshot].clones.push(at);
            }
        }
        let mut graph = Self { nodes, names };
        for at in 0..graph.nodes.len() {
            let mut snapshots = std::mem::take(&mut graph.nodes[at].snapshots);
            // Records are in order of time. createtxg decides if all snapshots have it.
            if snapshots
                .iter()
                .all(|&s| graph.nodes[s].record.createtxg.is_some())
            {
                snapshots.sort_by_key(|&s| graph.nodes[s].record.createtxg);
            }
            for (place, &snapshot) in snapshots.iter().enumerate() {
                graph.nodes[snapshot].place = place;
            }
            graph.nodes[at].snapshots = snapshots;
        }
        graph.check_cycles()?;
        Ok(graph)
    }

    /// Follows the origins of every dataset. Fails if the origins form a cycle. Visits each dataset once.
    fn check_cycles(&self) -> Result<(), PlannerError> {
        let mut state = vec![0u8; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut path = Vec::new();
            let mut at = Some(start);
            while let Some(here) = at {
                match state[here] {
                    2 => break,
                    1 => {
                        return Err(PlannerError::Lineage(format!(
                            "{} descends from itself: the origins form a circle",
                            self.nodes[here].record.name.escape_debug()
                        )));
                    }
                    _ => {}
                }
                state[here] = 1;
                path.push(here);
                at = self.nodes[here]
                    .origin
                    .and_then(|snapshot| self.nodes[snapshot].parent);
            }
            for here in path {
                state[here] = 2;
            }
        }
        Ok(())
    }

    /// Finds a dataset or snapshot by its full name.
    ///
    /// # Errors
    /// [`PlannerError::Lineage`] if it does not exist.
    pub fn find(&self, name: &str) -> Result<usize, PlannerError> {
        self.names.get(name).copied().ok_or_else(|| {
            PlannerError::Lineage(format!("{} is not among the records", name.escape_debug()))
        })
    }

    /// Returns the targets, and everything that must be destroyed with them. Dependents precede the objects on which
    /// they depend.
    fn dependents(&self, targets: &[usize], recursion: Recursion) -> Vec<usize> {
        let mut order = Vec::new();
        let mut seen = HashSet::new();
        // Iterative, because a long chain of clones would overflow the stack.
        let mut stack: Vec<(usize, bool)> = targets.iter().map(|&t| (t, false)).collect();
        while let Some((at, done)) = stack.pop() {
            if done {
                order.push(at);
                continue;
            }
            if !seen.insert(at) {
                continue;
            }
            stack.push((at, true));
            let node = &self.nodes[at];
            if recursion != Recursion::None {
                stack.extend(
                    node.snapshots
                        .iter()
                        .chain(&node.children)
                        .map(|&n| (n, false)),
                );
            }
            if recursion == Recursion::Dependents {
                stack.extend(node.clones.iter().map(|&n| (n, false)));
            }
        }
        order
    }

    /// Simulates `zfs destroy [-r|-R] target`. `target` may be a range of snapshots, `pool/set@first%last`.
    ///
    /// # Errors
    /// [`PlannerError::Lineage`] for an unknown name or an invalid range.
    pub fn destroy(&self, target: &str, recursion: Recursion) -> Result<Destroy, PlannerError> {
        let targets = self.targets(target)?;
        let order = self.dependents(&targets, recursion);
        let going: HashSet<usize> = order.iter().copied().collect();
        let mut refused = Vec::new();
        for &at in &order {
            let node = &self.nodes[at];
            let name = node.record.name.escape_debug();
            if node.record.holds > 0 {
                refused.push(format!("{name} is held (zfs release)"));
            }
            let left = |others: &[usize]| others.iter().filter(|n| !going.contains(n)).count();
            let clones = left(&node.clones);
            if clones > 0 {
                refused.push(format!(
                    "{name} has {clones} dependent clone(s); -R takes them along"
                ));
            }
            let below = left(&node.snapshots) + left(&node.children);
            if below > 0 {
                refused.push(format!(
                    "{name} has {below} snapshot(s) or child(ren); -r takes them along"
                ));
            }
        }
        let (least, most) = self.freed(&order, &going);
        Ok(Destroy {
            target: target.to_owned(),
            recursion,
            takes: order
                .iter()
                .map(|&at| self.nodes[at].record.name.clone())
                .collect(),
            refused,
            frees_at_least: least,
            frees_at_most: most,
        })
    }

    fn targets(&self, target: &str) -> Result<Vec<usize>, PlannerError> {
        let Some((dataset, range)) = target.split_once('@') else {
            return Ok(vec![self.find(target)?]);
        };
        let Some((first, last)) = range.split_once('%') else {
            return Ok(vec![self.find(target)?]);
        };
        let all = &self.nodes[self.find(dataset)?].snapshots;
        let place = |name: &str, otherwise: usize| match name {
            "" => Ok::<usize, PlannerError>(otherwise),
            _ => Ok(self.nodes[self.find(&format!("{dataset}@{name}"))?].place),
        };
        let from = place(first, 0)?;
        let to = place(last, all.len().saturating_sub(1))?;
        match all.get(from..=to) {
            Some(range) if !range.is_empty() => Ok(range.to_vec()),
            _ => Err(PlannerError::Lineage(format!(
                "{} is no range of snapshots",
                target.escape_debug()
            ))),
        }
    }

    /// Returns the minimum and maximum number of bytes that are freed if all of `going` is destroyed.
    ///
    /// If a dataset is destroyed with all its snapshots, it frees its own `used` minus the `used` of its children. If
    /// the dataset remains, each run of consecutive destroyed snapshots is considered separately. A run frees the
    /// blocks that were born after the snapshot before the run and that the snapshot after the run no longer
    /// references.
    ///
    /// Between the snapshots i and i+1, `written(i+1)` bytes were born, and `referenced(i) + written(i+1) −
    /// referenced(i+1)` bytes were removed.
    ///
    /// - A single snapshot frees its `used`.
    /// - A run that starts with the first snapshot frees the sum of the removed bytes.
    /// - Any other run frees at least the sum of `used`, and at most the smaller of the removed and the born bytes.
    fn freed(&self, order: &[usize], going: &HashSet<usize>) -> (u64, u64) {
        let (mut least, mut most) = (0u64, 0u64);
        for &at in order {
            let node = &self.nodes[at];
            if node.is_snapshot() {
                continue;
            }
            let below: u64 = node
                .children
                .iter()
                .map(|&child| self.nodes[child].record.used)
                .sum();
            let own = node.record.used.saturating_sub(below);
            least = least.saturating_add(own);
            most = most.saturating_add(own);
        }
        let mut owners: Vec<usize> = order
            .iter()
            .filter(|&&at| self.nodes[at].is_snapshot())
            .filter_map(|&at| self.nodes[at].parent)
            .filter(|owner| !going.contains(owner))
            .collect();
        owners.sort_unstable();
        owners.dedup();
        for owner in owners {
            let all = &self.nodes[owner].snapshots;
            let mut at = 0;
            while at < all.len() {
                if !going.contains(&all[at]) {
                    at += 1;
                    continue;
                }
                let start = at;
                while at < all.len() && going.contains(&all[at]) {
                    at += 1;
                }
                let (low, high) = self.run_freed(owner, start, at);
                least = least.saturating_add(low);
                most = most.saturating_add(high);
            }
        }
        (least, most)
    }

    /// Computes the result of [`Graph::freed`] for the snapshots `start..end` of one dataset.
    fn run_freed(&self, owner: usize, start: usize, end: usize) -> (u64, u64) {
        let all = &self.nodes[owner].snapshots;
        let record = |place: usize| match all.get(place) {
            Some(&snapshot) => &self.nodes[snapshot].record,
            None => &self.nodes[owner].record,
        };
        let used: u64 = (start..end).map(|p| record(p).used).sum();
        if end - start == 1 {
            return (used, used);
        }
        let mut deaths = Some(0u64);
        let mut births = Some(0u64);
        for place in start..end {
            let (here, next) = (record(place), record(place + 1));
            let died = next.written.and_then(|written| {
                (here.referenced.saturating_add(written)).checked_sub(next.referenced)
            });
            deaths = deaths.zip(died).map(|(sum, died)| sum.saturating_add(died));
            births = births
                .zip(here.written)
                .map(|(sum, born)| sum.saturating_add(born));
        }
        // Blocks that a clone shares with its origin are older than the clone. So the first snapshot of a
        // clone has predecessors, in another dataset.
        let first_of_all = start == 0 && self.nodes[owner].origin.is_none();
        match deaths {
            Some(deaths) if first_of_all => (deaths.max(used), deaths.max(used)),
            Some(deaths) => (used, deaths.min(births.unwrap_or(deaths)).max(used)),
            None => (used, used.max(births.unwrap_or(u64::MAX))),
        }
    }
}
