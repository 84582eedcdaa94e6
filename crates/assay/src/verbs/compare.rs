//! `assay report compare`: compares two runs.

use super::runs::store_with_runs;
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use assay_model::criterion::Metric;
use assay_model::result::{FactDifference, RunComparison};
use assay_model::{Machine, SCHEMA_VERSION};
use assay_store::Store;

const EXAMPLES: &str = "\
Examples:
  assay report compare 3 4                       run 4 against run 3
  assay report compare last~1 last               the newest against the one before
  assay report compare 3 4 --metric p99 --metric read.iops
                                                 only these figures
  assay report compare 3 4 --json | jq '.rows[] | select(.verdict == \"worse\")'

Two runs on one target: what differs in the environment comes first, as it may be the reason.
Two targets, or an imported result: the factors by block size come first. Workloads with different
names are matched by pattern, block size and depth.
Each ratio has a 95 % interval from the rounds of both runs; with a single round there is none.
Two runs are made one after the other, so what the machine did in between is part of the
difference.

Exit status: 0 done, 2 error.";

/// Compare two runs: each figure as a ratio, and what differs
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Baseline run
    #[arg(value_name = "A")]
    a: String,
    /// Run to compare with the baseline
    #[arg(value_name = "B")]
    b: String,
    /// Compare only this figure, such as p99 or read.iops (repeatable)
    #[arg(long, value_name = "METRIC")]
    metric: Vec<Metric>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Document of `assay report compare`: comparison of two runs.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document<'a> {
    #[serde(flatten)]
    comparison: &'a RunComparison,
    schema: u32,
    machines: Machines,
}

/// Machines on which the two runs were measured, if known.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Machines {
    a: Option<Machine>,
    b: Option<Machine>,
}

/// Runs `assay report compare`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let store = store_with_runs(global)?;
    let load = |name: &str| -> anyhow::Result<_> {
        let id = store.resolve(name)?;
        Ok((store.run(id)?, store.samples(id)?))
    };
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let mut comparison = assay_judge::compare_runs((&a.0, &a.1), (&b.0, &b.1));
    let machines = name_machines(&store, &mut comparison)?;
    if !args.metric.is_empty() {
        comparison
            .rows
            .retain(|row| args.metric.contains(&row.metric));
    }
    if args.json {
        let (a, b) = machines;
        let document = serde_json::json!(Document {
            comparison: &comparison,
            schema: SCHEMA_VERSION,
            machines: Machines { a, b },
        });
        print(&format!("{document:#}\n"))?;
    } else {
        let style = context::style(global);
        print(&match args.metric.is_empty() {
            true => assay_report::terminal::render_comparison(&comparison, style),
            false => assay_report::terminal::render_full_comparison(&comparison, style),
        })?;
    }
    Ok(Status::Ok)
}

/// Prints a note if the runs are from two machines. Returns both machines, if known.
pub fn name_machines(
    store: &Store,
    comparison: &mut RunComparison,
) -> anyhow::Result<(Option<Machine>, Option<Machine>)> {
    let a = store.machine_of_run(comparison.a)?;
    let b = store.machine_of_run(comparison.b)?;
    if let (Some(a), Some(b)) = (&a, &b)
        && a.id != b.id
    {
        let shown = |one: &Machine, other| Some(one.shown_among([other].into_iter()).into());
        let difference = FactDifference {
            key: "machine".to_owned(),
            a: shown(a, b),
            b: shown(b, a),
        };
        comparison.environment.insert(0, difference);
    }
    Ok((a, b))
}
