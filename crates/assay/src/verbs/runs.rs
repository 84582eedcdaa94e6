//! `assay report runs`: lists past runs.

use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use anyhow::bail;
use assay_model::run::RunState;
use assay_model::{Machine, RunId, SCHEMA_VERSION};
use assay_render::table::TableColumns;
use assay_render::text::{escape_line, pad_right, wrap_lines};
use assay_render::units::{format_count, format_timestamp};
use assay_store::{RunRow, Store};
use std::collections::BTreeSet;

const EXAMPLES: &str = "\
Examples:
  assay report runs                    all runs, newest first
  assay report runs --plan matrix      only runs of one plan
  assay report runs --target /srv -n 5 the newest five on one target
  assay report runs --json | jq '.runs[0].id'
  assay report runs delete 3 4 --yes   remove two runs and their samples

A run is named by its number, by `last`, `last~1` (the one before), or by the first
characters of its uid, in every command.

Exit status: 0 done, 2 error.";

/// List past runs
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// List only runs of this plan
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// List only runs on this target
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// List only the newest N runs
    #[arg(long, short = 'n', value_name = "N")]
    newest: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Delete runs and their samples permanently
    Delete {
        /// Runs to delete
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
        /// Delete them; without this, only list what would be deleted
        #[arg(long)]
        yes: bool,
    },
}

/// Document of `assay report runs`: past runs.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document<'a> {
    schema: u32,
    /// The runs, newest first.
    runs: &'a [RunRow],
}

/// Runs `assay report runs`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if let Some(Action::Delete { runs, yes }) = &args.action {
        return delete(runs, *yes, global);
    }
    let store = context::existing_store(global)?;
    let mut rows = match &store {
        Some(store) => store.runs()?,
        None => Vec::new(),
    };
    let any = !rows.is_empty();
    rows.retain(|row| {
        args.plan.as_ref().is_none_or(|plan| *plan == row.plan)
            && args
                .target
                .as_ref()
                .is_none_or(|target| row.targets.contains(target))
    });
    rows.truncate(args.newest.unwrap_or(usize::MAX));
    if args.json {
        let document = serde_json::json!(Document {
            schema: SCHEMA_VERSION,
            runs: &rows,
        });
        print(&format!("{document:#}\n"))?;
    } else if rows.is_empty() {
        match any {
            true => eprintln!("no run fits; `assay report runs` lists all"),
            false => eprintln!("{}", context::nothing_measured(global)?),
        }
    } else {
        print(&table(&rows, context::style(global).width))?;
    }
    Ok(Status::Ok)
}

/// Opens the store for a verb that needs at least one run. Fails if there is none.
pub fn store_with_runs(global: &Global) -> anyhow::Result<Store> {
    match context::existing_store(global)? {
        Some(store) => Ok(store),
        None => bail!(context::nothing_measured(global)?),
    }
}

/// Returns the machine column of lists. `None` if all runs are from one machine, so that the column is omitted.
fn machines(rows: &[RunRow]) -> Option<Vec<String>> {
    let known: BTreeSet<&Machine> = rows.iter().filter_map(|row| row.machine.as_ref()).collect();
    let shown = |row: &RunRow| match &row.machine {
        Some(machine) => escape_line(&machine.shown_among(known.iter().copied())),
        None => "unknown".to_owned(),
    };
    (known.len() > 1).then(|| rows.iter().map(shown).collect())
}

fn table(rows: &[RunRow], columns: usize) -> String {
    let machines = machines(rows);
    let mut heads = vec!["run", "started", "plan", "samples"];
    heads.extend(machines.as_ref().map(|_| "machine"));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| {
            let samples = match row.planned {
                0 => row.samples.to_string(),
                planned => format!("{}/{planned}", row.samples),
            };
            let plan = escape_line(&row.plan);
            let mut cells = vec![
                row.id.to_string(),
                format_timestamp(row.started),
                plan,
                samples,
            ];
            cells.extend(machines.as_ref().map(|all| all[at].clone()));
            cells
        })
        .collect();
    let heads: Vec<String> = heads.into_iter().map(str::to_owned).collect();
    let table = TableColumns::fit("rllrl", [&heads].into_iter().chain(&cells));
    // The last column is left-aligned, so its cells are padded.
    let line = |cells: &[String]| pad_right(&table.format_row(cells), table.width());
    let indent = table.width() + 2;
    let mut out = format!("{}  targets\n", line(&heads));
    for (row, cells) in rows.iter().zip(&cells) {
        let targets: Vec<String> = row
            .targets
            .iter()
            .map(|target| escape_line(target))
            .collect();
        let mut what = targets.join(", ");
        what.push_str(match row.state {
            RunState::Complete => "",
            RunState::Interrupted => " (interrupted)",
            RunState::Failed => " (failed)",
            RunState::Running => " (running, or cut off)",
        });
        for (i, text) in wrap_lines(&what, columns.saturating_sub(indent).max(20))
            .iter()
            .enumerate()
        {
            let lead = if i == 0 {
                line(cells)
            } else {
                " ".repeat(indent - 2)
            };
            out.push_str(&format!("{lead}  {text}\n"));
        }
    }
    out
}

fn delete(names: &[String], yes: bool, global: &Global) -> anyhow::Result<Status> {
    let mut store = store_with_runs(global)?;
    // All names are resolved before anything is deleted, because `last` changes with each deletion.
    let ids: BTreeSet<RunId> = names
        .iter()
        .map(|name| store.resolve(name))
        .collect::<Result<_, _>>()?;
    let rows = store.runs()?;
    for id in &ids {
        let row = rows.iter().find(|row| row.id == *id);
        let samples = row.map_or(0, |row| row.samples as usize);
        let plan = row.map_or("", |row| row.plan.as_str());
        let what = format!(
            "run {id} ({}, {})",
            escape_line(plan),
            format_count(samples, "sample")
        );
        if yes {
            store.delete_run(*id)?;
            eprintln!("removed {what}");
        } else {
            eprintln!("would remove {what}");
        }
    }
    if !yes {
        bail!("nothing was deleted: use --yes to delete these runs permanently");
    }
    Ok(Status::Ok)
}
