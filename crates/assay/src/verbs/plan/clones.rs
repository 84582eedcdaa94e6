//! `assay plan clones`: shows which space ZFS snapshots and clones share, and what `zfs destroy` would free.

use super::read;
use super::show::{print_json, write_page};
use crate::context::print;
use crate::status::Status;
use assay_planner::PlannerError;
use assay_planner::clones::{
    Destroy, Graph, LineageReport, PROPERTIES, Recursion, parse_zfs_get, report,
};
use assay_report::plan::{self as picture, clones_text};
use serde::Serialize;
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

/// Show what ZFS snapshots and clones share and keep from being freed
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Dataset to look at, with everything below it
    #[arg(value_name = "DATASET")]
    dataset: Option<String>,
    /// Read output of `zfs get -Hp` from FILE; - is standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Show what `zfs destroy` of this dataset or snapshot would free
    #[arg(long, value_name = "NAME")]
    destroy: Option<String>,
    /// Include children and snapshots, as destroy -r does
    #[arg(long, requires = "destroy")]
    children: bool,
    /// Include clones as well, as destroy -R does
    #[arg(long, requires = "destroy", conflicts_with = "children")]
    dependents: bool,
    /// Show at most N clones and N blocked snapshots
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
    /// Write a self-contained page with diagrams (no scripts)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON; sizes in bytes
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, schemars::JsonSchema)]
pub(super) struct Answer<'a> {
    #[serde(flatten)]
    report: &'a LineageReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    destroy: &'a Option<Destroy>,
}

/// Computes the answer of `assay plan clones` and prints it.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    let (source, text) = match &args.from {
        Some(path) => {
            let name = path.display().to_string().escape_debug().to_string();
            (name, read::file(path)?)
        }
        None => {
            let Some(dataset) = &args.dataset else {
                return Err(PlannerError::value(
                    "no dataset",
                    "name one of this machine, or recorded output with --from FILE",
                )
                .into());
            };
            if dataset.starts_with('-') {
                return Err(PlannerError::value("dataset", "a name cannot begin with -").into());
            }
            // Origins may be anywhere in the pool.
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
        let section =
            picture::build_lineage_section(&graph, &found, dataset, args.limit.clamp(1, 250) * 4);
        let mut intro = vec![format!(
            "{} datasets, {} snapshots, {} clones",
            found.datasets,
            found.snapshots,
            found.clones.len()
        )];
        intro.extend(destroy.iter().map(clones_text::format_destroy_outcome));
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
        let mut text = clones_text::format_clone_tree(&graph, args.dataset.as_deref(), args.limit);
        text.push_str(&clones_text::format_clone_overview(&found, args.limit));
        if let Some(destroy) = &destroy {
            text.push_str(&clones_text::format_destroy_outcome(destroy));
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
