//! `assay report store`: copies stores, removes old records, and manages stored facts.

mod prune;

#[cfg(feature = "schemas")]
pub(super) use prune::Document as PruneDocument;

use crate::context::{self, print};
use crate::global::Global;
use crate::progress::Meter;
use crate::status::{Status, Unreadable};
use assay_host::is_same_file;
use assay_model::{Nanos, SCHEMA_VERSION};
use assay_render::text::escape_line;
use assay_render::units::format_plural;
use assay_store::{Merged, Store, merge};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay report store move ~/.local/share/assay/assay.db postgresql://assay@/assay
                                               what was measured so far into a shared store
  assay report store move postgresql://assay@/assay copy.db
                                               and back into a file
  ASSAY_STORE=postgresql://assay@/assay assay report runs
                                               from then on, every verb uses it
  assay report store keep 400                  keep outdated facts for 400 days
  assay report store prune observations --older-than 90d --dry-run
                                               list old answers of why and net
  assay report store prune observations --older-than 90d --keep 20 --yes
                                               remove them, but keep the newest 20

Runs, trials and studies are known by names that are the same in every store: what is there already is not
stored twice, what has grown since grows there, and several machines may fill one store. The first
store stays as it is.

A store in PostgreSQL (15 or newer) lies in a schema `assay` of its own. The password comes from ~/.pgpass,
PGPASSFILE or PGPASSWORD; one in the URL works, but every user of this machine sees it in the list
of processes. A connection to another machine uses TLS.

`prune` removes observations or runs. It never removes trials, studies, sessions of tuning, or a run
that has not ended.

Exit status: 0 done, 2 error, 3 the first store cannot be read, 130 interrupted (what was copied stays).";

/// Copy stores, remove old records, and set how long old facts are kept
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show or set how many days outdated facts are kept
    Keep {
        /// Number of days to keep outdated facts
        #[arg(value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: Option<u32>,
    },
    /// Delete the recorded facts of a machine
    Forget {
        /// Name of the machine
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Remove old observations or runs
    Prune(prune::PruneArgs),
    /// Copy all records of one store into another
    Move {
        /// Store to read: a file or a URL
        #[arg(value_name = "FROM")]
        from: PathBuf,
        /// Store to fill; created if missing
        #[arg(value_name = "TO")]
        to: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// No progress on standard error
        #[arg(long, short)]
        quiet: bool,
    },
}

/// Document of `assay report store move`: what was copied.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document {
    schema: u32,
    #[serde(flatten)]
    merged: Merged,
}

/// Runs `assay report store`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let (from, to, json, quiet) = match &args.action {
        Action::Keep { days } => return keep(*days, global),
        Action::Forget { machine } => return forget(machine, global),
        Action::Prune(args) => return prune::run(args, global),
        Action::Move {
            from,
            to,
            json,
            quiet,
        } => (from, to, json, quiet),
    };
    let cancel = context::on_signals()?;
    let source = Store::open_existing(from).map_err(|error| Unreadable(error.to_string()))?;
    let Some(source) = source else {
        return Err(Unreadable(format!("{}: there is no store", shown(from))).into());
    };
    let mut target = Store::open(to)?;
    anyhow::ensure!(
        !is_same_file(from, to) && source.path() != target.path(),
        "both are the same store"
    );
    let mut meter = Meter::new(*quiet, Nanos(0));
    let begun = crate::progress::now();
    let merged = merge(&source, &mut target, &mut |done, of| {
        if done > 0 && begun.elapsed().as_secs() >= 2 {
            let left = begun.elapsed().mul_f64((of - done) as f64 / done as f64);
            meter.expect(left.into());
            meter.say(format!("{done} of {of} records"));
        }
        !cancel.is_cancelled()
    });
    meter.end();
    let merged = merged?;
    print(&match json {
        true => {
            let document = Document {
                schema: SCHEMA_VERSION,
                merged,
            };
            format!("{:#}\n", serde_json::json!(document))
        }
        false => format!(
            "{} new, {} grown, {} there already\n",
            format_plural(merged.new, "record", "records"),
            merged.grown,
            merged.known
        ),
    })?;
    Ok(match cancel.is_cancelled() {
        true => Status::Interrupted,
        false => Status::Ok,
    })
}

fn keep(days: Option<u32>, global: &Global) -> anyhow::Result<Status> {
    let mut store = context::open_store(global)?;
    if let Some(days) = days {
        store.keep_days(days)?;
    }
    let days = format_plural(store.days()?.into(), "day", "days");
    print(&format!(
        "what was true of a machine and is over is kept for {days}; what is so stays\n"
    ))?;
    Ok(Status::Ok)
}

fn forget(machine: &str, global: &Global) -> anyhow::Result<Status> {
    let mut store = context::open_store(global)?;
    anyhow::ensure!(
        store.forget_host(machine)?,
        "{}: no machine of that name was looked at",
        escape_line(machine)
    );
    Ok(Status::Ok)
}

/// Formats a path for people.
fn shown(path: &Path) -> String {
    let path = assay_store::shown(path);
    path.to_string_lossy().escape_debug().to_string()
}
