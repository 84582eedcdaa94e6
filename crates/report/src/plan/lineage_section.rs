//! The clone tree as a chart. The clone tree as text is in `clones_text`.

use super::planner_page::{BarLine, BarPart, PlanSection};
use assay_model::size::Convention::Binary;
use assay_planner::clones::{Graph, LineageReport};
use std::collections::HashMap;

/// Builds the section of datasets with clones, their snapshots and the clones. It shows at most `most` clones; the
/// remaining ones are counted and summed. `found` is the report on the same graph and `dataset`.
#[must_use]
pub fn build_lineage_section(
    graph: &Graph,
    found: &LineageReport,
    dataset: Option<&str>,
    most: usize,
) -> PlanSection {
    let shared: HashMap<&str, u64> = found
        .clones
        .iter()
        .map(|clone| (clone.name.as_str(), clone.shared))
        .collect();
    let cloned = |at: usize| !graph.nodes[at].clones.is_empty();
    let within = |name: &str| {
        dataset.is_none_or(|root| {
            name.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '@']))
        })
    };
    // A tree begins at a dataset without a shown origin above it.
    let roots = (0..graph.nodes.len()).filter(|&at| {
        let node = &graph.nodes[at];
        let above = node.origin.and_then(|origin| graph.nodes[origin].parent);
        !node.is_snapshot()
            && within(&node.record.name)
            && (above.is_none_or(|above| !within(&graph.nodes[above].record.name)))
            && (node.origin.is_some() || node.snapshots.iter().any(|&s| cloned(s)))
    });
    let mut stack: Vec<(usize, usize)> = roots.map(|root| (root, 0)).collect();
    stack.reverse();
    let mut rows = Vec::new();
    let (mut rest, mut rest_used) = (0u64, 0u64);
    while let Some((at, depth)) = stack.pop() {
        let node = &graph.nodes[at];
        let record = &node.record;
        let below = match node.is_snapshot() {
            true => node.clones.clone(),
            false => {
                let snapshots = node.snapshots.iter().copied();
                snapshots.filter(|&s| cloned(s)).collect()
            }
        };
        stack.extend(below.into_iter().rev().map(|next| (next, depth + 1)));
        if rows.len() >= most {
            rest += 1;
            rest_used = rest_used.saturating_add(record.used);
            continue;
        }
        let own = if node.is_snapshot() {
            Some(record.used)
        } else if let Some(&shared) = shared.get(record.name.as_str()) {
            Some(record.referenced.saturating_sub(shared))
        } else {
            record.written
        };
        let own = own.map(|own| own.min(record.referenced));
        let others = record.referenced - own.unwrap_or(0);
        rows.push(BarLine {
            label: record.name.clone(),
            depth,
            lanes: vec![vec![
                BarPart {
                    colour: if own.is_some() { "copy" } else { "idle" },
                    amount: others as f64,
                    says: match own {
                        Some(_) => format!("shared {}", Binary.show(others)),
                        None => format!(
                            "{}, how much is shared is not recorded",
                            Binary.show(others)
                        ),
                    },
                },
                BarPart {
                    colour: "data",
                    amount: own.unwrap_or(0) as f64,
                    says: format!("its own {}", Binary.show(own.unwrap_or(0))),
                },
            ]],
            cells: vec![
                Binary.show(record.used),
                Binary.show(record.referenced),
                own.map_or("unknown".into(), |_| Binary.show(others)),
                own.map_or("unknown".into(), |own| Binary.show(own)),
            ],
            ..BarLine::default()
        });
    }
    let mut notes = vec![
        "A clone's own bytes are at most what is shown, when it has snapshots of its own: what they \
         wrote may be gone from it. A snapshot's own bytes are its `used`; those of another dataset \
         what was written since its latest snapshot."
            .to_owned(),
    ];
    if rest > 0 {
        notes.push(format!(
            "{rest} more datasets and snapshots are not drawn; the sum of their `used` is {}, in \
             which a dataset counts its snapshots and children again.",
            Binary.show(rest_used)
        ));
    }
    if rows.is_empty() {
        notes = vec!["No clone is recorded here.".into()];
    }
    PlanSection {
        heading: "Lineage".into(),
        about: "Each bar is what a dataset or snapshot refers to: first what it shares with where \
                it came from, then its own."
            .into(),
        columns: vec!["name", "used", "referenced", "shared", "its own"],
        rows,
        notes,
        ..PlanSection::default()
    }
}
