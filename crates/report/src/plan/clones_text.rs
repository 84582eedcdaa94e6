//! Answers of `assay plan clones` as text. The chart of the same clone tree is in `lineage_section`.

use assay_model::size::Convention::Binary;
use assay_planner::clones::{Destroy, Graph, LineageReport, Recursion};
use std::fmt::Write as _;

/// Formats the clone tree as an indented list. Snapshots with clones are below their dataset, and clones below their
/// snapshot.
#[must_use]
pub fn format_clone_tree(graph: &Graph, dataset: Option<&str>, limit: usize) -> String {
    let mut text = String::new();
    let mut lines = 0usize;
    let roots = graph.nodes.iter().enumerate().filter(|(_, node)| {
        !node.is_snapshot()
            && node.origin.is_none()
            && node
                .snapshots
                .iter()
                .any(|&s| !graph.nodes[s].clones.is_empty())
    });
    for (root, node) in roots {
        if dataset.is_some_and(|dataset| !node.record.name.starts_with(dataset)) {
            continue;
        }
        let mut stack = vec![(root, 0usize)];
        while let Some((at, depth)) = stack.pop() {
            lines += 1;
            if lines > limit * 4 {
                text.push_str("  …\n");
                return text;
            }
            let node = &graph.nodes[at];
            let mark = if depth == 0 { "" } else { "└ " };
            let _ = writeln!(
                text,
                "{:indent$}{mark}{}  {} used, {} referenced",
                "",
                node.record.name.escape_debug(),
                Binary.show(node.record.used),
                Binary.show(node.record.referenced),
                indent = depth.min(12) * 2
            );
            let below: Vec<usize> = match node.is_snapshot() {
                true => node.clones.clone(),
                false => node
                    .snapshots
                    .iter()
                    .copied()
                    .filter(|&s| !graph.nodes[s].clones.is_empty())
                    .collect(),
            };
            stack.extend(below.into_iter().rev().map(|n| (n, depth + 1)));
        }
    }
    text
}

/// Formats how much data clones share with their origins, and which snapshots they keep alive; at most `limit` of each.
#[must_use]
pub fn format_clone_overview(report: &LineageReport, limit: usize) -> String {
    let mut text = format!(
        "\n{} datasets, {} snapshots, {} clones\n",
        report.datasets,
        report.snapshots,
        report.clones.len()
    );
    for clone in report.clones.iter().take(limit) {
        let share = clone.shared as f64 / clone.referenced.max(1) as f64 * 100.0;
        let _ = writeln!(
            text,
            "\n{} (clone of {})\n  still shared           {}{} of {} ({share:.0} %)",
            clone.name.escape_debug(),
            clone.origin.escape_debug(),
            if clone.exact { "" } else { "at least " },
            Binary.show(clone.shared),
            Binary.show(clone.referenced),
        );
        let _ = writeln!(
            text,
            "  a full copy            needs {}, then frees {} and {} in the origin",
            Binary.show(clone.copy_out.needs),
            Binary.show(clone.copy_out.frees),
            Binary.show(clone.copy_out.origin_frees)
        );
        let _ = writeln!(
            text,
            "  zfs promote            moves {} snapshot{} to it and frees nothing; {}",
            clone.promote.moves,
            if clone.promote.moves == 1 { "" } else { "s" },
            match clone.promote.then_frees {
                Some(bytes) => format!("the old origin could then go for {}", Binary.show(bytes)),
                None => "what the old origin then holds is not in the records".into(),
            }
        );
    }
    if report.clones.len() > limit {
        let _ = writeln!(text, "\nand {} more clones", report.clones.len() - limit);
    }
    if !report.hostages.is_empty() {
        text.push_str("\nSnapshots that cannot go because clones hang on them\n");
    }
    for hostage in report.hostages.iter().take(limit) {
        let _ = writeln!(
            text,
            "  {}: holds {} that nothing else needs, {} clone{}{}",
            hostage.snapshot.escape_debug(),
            Binary.show(hostage.hostage),
            hostage.clones.len(),
            if hostage.clones.len() == 1 { "" } else { "s" },
            match (hostage.destroy_takes, hostage.destroy_frees) {
                (Some(takes), Some(frees)) => format!(
                    "; destroy -R would take {takes} and free at least {}",
                    Binary.show(frees)
                ),
                _ => "; ask with --destroy what would go with it".into(),
            }
        );
    }
    if report.hostages.len() > limit {
        let _ = writeln!(text, "  and {} more", report.hostages.len() - limit);
    }
    text
}

/// Formats the consequences of `zfs destroy`.
#[must_use]
pub fn format_destroy_outcome(destroy: &Destroy) -> String {
    let flag = match destroy.recursion {
        Recursion::None => "",
        Recursion::Children => " -r",
        Recursion::Dependents => " -R",
    };
    let mut text = format!("\nzfs destroy{flag} {}", destroy.target.escape_debug());
    if !destroy.refused.is_empty() {
        text.push_str(" would be refused\n");
        for reason in destroy.refused.iter().take(20) {
            let _ = writeln!(text, "  {reason}");
        }
        return text;
    }
    text.push_str(" would destroy\n");
    for name in destroy.takes.iter().take(40) {
        let _ = writeln!(text, "  {}", name.escape_debug());
    }
    if destroy.takes.len() > 40 {
        let _ = writeln!(text, "  and {} more", destroy.takes.len() - 40);
    }
    let _ = match destroy.frees_at_least == destroy.frees_at_most {
        true => writeln!(text, "and free {}", Binary.show(destroy.frees_at_least)),
        false => writeln!(
            text,
            "and free {} to {}; `zfs destroy -nvp` on the machine says it exactly",
            Binary.show(destroy.frees_at_least),
            Binary.show(destroy.frees_at_most)
        ),
    };
    text
}
