//! `assay plan clones`.

use super::read;
use super::show::{print_json, write_page};
use crate::context::print;
use crate::status::Status;
use assay_model::size::Convention::Binary;
use assay_planner::PlanError;
use assay_planner::clones::{Destroy, Graph, PROPERTIES, Recursion, Report, parse_zfs_get, report};
use assay_report::plan as picture;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay plan clones tank/vm                     from the pool here
  assay plan clones --from zfs-get.txt          from recorded output
  assay plan clones --from zfs-get.txt --destroy tank/gold@v1 --dependents
  assay plan clones --from zfs-get.txt --destroy tank/vm@first%last
  zfs get -Hp -r -t filesystem,volume,snapshot type,used,referenced,written,origin,\\
usedbysnapshots,usedbydataset,usedbychildren,createtxg,userrefs tank | assay plan clones --from -

A lineage that does not exist yet is written in the same format: name, property, value, separated
by tabs; values may carry units (64MiB). Nothing is ever changed.";

/// Show what snapshots and clones share, hold hostage, and take with them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Dataset to look at, with everything below it
    #[arg(value_name = "DATASET")]
    dataset: Option<String>,
    /// Recorded output of `zfs get -Hp`, or - for standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// What would `zfs destroy` of this dataset, snapshot or range do
    #[arg(long, value_name = "NAME")]
    destroy: Option<String>,
    /// As destroy -r: with children and snapshots
    #[arg(long, requires = "destroy")]
    children: bool,
    /// As destroy -R: with clones as well
    #[arg(long, requires = "destroy", conflicts_with = "children")]
    dependents: bool,
    /// Show at most N clones and N hostages
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
    /// Write a page with pictures: no script, no request
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON; sizes in bytes
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, schemars::JsonSchema)]
pub(super) struct Answer<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    destroy: &'a Option<Destroy>,
}

/// Runs the question.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    let (source, text) = match &args.from {
        Some(path) => {
            let name = path.display().to_string().escape_debug().to_string();
            (name, read::file(path)?)
        }
        None => {
            let Some(dataset) = &args.dataset else {
                return Err(PlanError::value(
                    "no dataset",
                    "name one of this machine, or recorded output with --from FILE",
                )
                .into());
            };
            if dataset.starts_with('-') {
                return Err(PlanError::value("dataset", "a name cannot begin with -").into());
            }
            // Origins may lie anywhere in the pool.
            let pool = dataset.split(['/', '@']).next().unwrap_or(dataset);
            let argv = [
                "zfs",
                "get",
                "-Hp",
                "-r",
                "-t",
                "filesystem,volume,snapshot",
                PROPERTIES,
                pool,
            ];
            ("zfs get -Hp".to_owned(), read::command(&argv)?)
        }
    };
    let graph = Graph::new(parse_zfs_get(&source, &text)?)?;
    let mut found = report(&graph, args.dataset.as_deref())?;
    let recursion = match (args.dependents, args.children) {
        (true, _) => Recursion::Dependents,
        (_, true) => Recursion::Children,
        _ => Recursion::None,
    };
    let destroy = match &args.destroy {
        Some(target) => Some(graph.destroy(target, recursion)?),
        None => None,
    };
    if let Some(path) = &args.html {
        let dataset = args.dataset.as_deref();
        let section = picture::lineage(&graph, &found, dataset, args.limit.clamp(1, 250) * 4);
        let mut intro = vec![format!(
            "{} datasets, {} snapshots, {} clones",
            found.datasets,
            found.snapshots,
            found.clones.len()
        )];
        intro.extend(destroy.iter().map(outcome));
        write_page(Some(path), "Snapshots and clones", &intro, &[section])?;
    }
    if args.json {
        print_json(
            "clones",
            &Answer {
                report: &found,
                destroy: &destroy,
            },
        )?;
    } else {
        found
            .clones
            .sort_by(|a, b| a.shared.cmp(&b.shared).then_with(|| a.name.cmp(&b.name)));
        found
            .hostages
            .sort_by_key(|hostage| std::cmp::Reverse(hostage.hostage));
        let mut text = tree(&graph, args.dataset.as_deref(), args.limit);
        text.push_str(&overview(&found, args.limit));
        if let Some(destroy) = &destroy {
            text.push_str(&outcome(destroy));
        }
        print(&text)?;
    }
    let refused = destroy.is_some_and(|destroy| !destroy.refused.is_empty());
    Ok(if refused {
        Status::Findings
    } else {
        Status::Ok
    })
}

/// Lineage as an indented list: snapshots with clones below their dataset, clones below them.
fn tree(graph: &Graph, dataset: Option<&str>, limit: usize) -> String {
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

fn overview(report: &Report, limit: usize) -> String {
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

fn outcome(destroy: &Destroy) -> String {
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
