//! `assay report show`: shows one run, judged by the current rules.

use super::runs::store_with_runs;
use crate::context::{self, print};
use crate::global::Global;
use crate::pages;
use crate::status::Status;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Judged, JudgedSample};
use assay_render::table::render_table;
use assay_render::text::escape_line;
use assay_render::units::{format_value, quantity_heading};

const EXAMPLES: &str = "\
Examples:
  assay report show              the newest run
  assay report show 12           run 12
  assay report show last~1       the one before the newest
  assay report show 12 --verbose with all that is known of each workload
  assay report show 12 --samples every sample by itself
  assay report show 12 --json    one JSON document with every sample's percentiles and doubts

The samples are stored raw and judged anew each time, so a run made by an older assay is
judged by the rules of this one.

Exit status: 0 done, 1 a criterion of the run was missed, 2 error.";

/// Show one run: figures, intervals, doubts and what limited it
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Number, `last`, `last~N` or the beginning of the uid
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Show every sample
    #[arg(long, conflicts_with = "json")]
    samples: bool,
    /// Show all details of each workload
    #[arg(long, short, conflicts_with_all = ["json", "samples"])]
    verbose: bool,
}

/// Runs `assay report show`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let store = store_with_runs(global)?;
    let id = store.resolve(&args.run)?;
    let (run, samples) = (store.run(id)?, store.samples(id)?);
    let judged = assay_judge::judge_run(&run, &samples);
    let style = context::style(global);
    let text = if args.json {
        format!(
            "{:#}\n",
            assay_report::json::run_to_json(&run, &judged, &samples)
        )
    } else if args.samples {
        table(&judged)
    } else if args.verbose {
        assay_report::terminal::render_run_verbose(&run, &judged, style)
    } else if let Some(stored) = pages::web(&run, &samples) {
        assay_report::web::terminal(&stored.web(), style)
    } else {
        assay_report::terminal::render_run(&run, &judged, style)
    };
    print(&text)?;
    match judged.criteria.iter().all(|criterion| criterion.met) {
        true => Ok(Status::Ok),
        false => Ok(Status::Findings),
    }
}

const SHOWN: [Quantity; 5] = [
    Quantity::Iops,
    Quantity::Throughput,
    Quantity::P50,
    Quantity::P99,
    Quantity::P999,
];

/// Formats the samples as one table per workload and target, with a row for each sample.
fn table(judged: &Judged) -> String {
    let mut out = String::new();
    for result in &judged.results {
        let own =
            |one: &&JudgedSample| one.workload == result.workload && one.target == result.target;
        let rows: Vec<Vec<String>> = judged.samples.iter().filter(own).map(cells).collect();
        let title = format!(
            "{} on {}",
            escape_line(&result.workload),
            escape_line(&result.target)
        );
        out.push_str(&format!("{title}\n"));
        let figures = SHOWN.map(quantity_heading);
        let heads: Vec<&str> = ["round"]
            .into_iter()
            .chain(figures)
            .chain(["doubts"])
            .collect();
        out.push_str(&render_table(2, "rrrrrrl", &heads, &rows));
    }
    out
}

fn cells(sample: &JudgedSample) -> Vec<String> {
    let mut cells = vec![sample.round.to_string()];
    for quantity in SHOWN {
        let figure = sample.figures.get(&Metric::all(quantity));
        cells.push(figure.map_or("-".to_owned(), |figure| format_value(quantity, *figure)));
    }
    let codes: Vec<&str> = sample
        .doubts
        .iter()
        .map(|doubt| doubt.code.as_str())
        .collect();
    let void = match sample.validity {
        Validity::Void => "void: ",
        _ => "",
    };
    cells.push(format!("{void}{}", codes.join(", ")));
    cells
}
