//! `assay dups undo`: restores files that a run of `act` changed, and repairs interrupted runs.

use super::act::refusals;
use super::age;
use super::documents::{ActRuns, Refused, TakenBack, UndoCost};
use super::explore::print_json;
use super::index_location::Place;
use crate::context::print;
use crate::status::Status;
use assay_dups::Index;
use assay_dups::act::execute::find_unfinished_journals;
use assay_dups::act::journal::{Journal, Loaded, StepState};
use assay_dups::act::undo::{
    UndoOptions, UndoPlan, Undone, plan_undo, recover, undo_journal as take_back,
};
use assay_dups::name::format_readable;
use assay_model::SCHEMA_VERSION;
use assay_model::size::Convention::Binary;
use assay_render::units::{format_grouped, format_plural};
use clap::Args;
use std::fmt::Write as _;

/// Arguments of `assay dups undo`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  assay dups undo                        lists the runs of `act`
  assay dups undo 1795263600000000000    takes that run back: moved files return, linked and
                                         deleted ones become files of their own again
  assay dups undo 1795263600000000000 --dry-run
                                         how many bytes that takes

Names that were one file before the run become one file again. Where undo would take more than the
run has freed, or more than there is, nothing is changed unless --despite-cost is given.")]
pub struct Undo {
    /// Number of the run to undo; lists all runs if omitted
    run: Option<String>,
    /// Repair a run of `act` that a crash interrupted
    #[arg(long, conflicts_with = "run")]
    recover: bool,
    /// Show what undo would do and how much space it needs; change nothing
    #[arg(long, requires = "run")]
    dry_run: bool,
    /// Undo even if that needs more space than the run freed
    #[arg(long, requires = "run")]
    despite_cost: bool,
}

/// Recovers runs that crashed, and prints which files were recovered. Returns false if a file could not be recovered.
pub(super) fn finish_crashed(index: &std::path::Path) -> anyhow::Result<bool> {
    let mut all = true;
    for journal in find_unfinished_journals(index)? {
        let undone = recover(&journal)?;
        if undone.interrupted {
            let run = journal.file_stem().unwrap_or_default().to_string_lossy();
            eprintln!(
                "assay: an undo ended in the middle; `assay dups undo {run}` goes on with it"
            );
            refusals(&undone.refused);
            all &= undone.refused.is_empty();
            continue;
        }
        eprintln!(
            "assay: an earlier run ended in the middle: {} finished, {} as before",
            format_plural(undone.finished, "step was", "steps were"),
            format_plural(undone.restored, "file is", "files are"),
        );
        refusals(&undone.refused);
        all &= undone.refused.is_empty();
    }
    Ok(all)
}

/// Runs `assay dups undo`.
pub fn run(args: &Undo, place: &Place) -> anyhow::Result<Status> {
    let path = place.path()?;
    if args.recover {
        let _held = Index::open(&path)?;
        if find_unfinished_journals(&path)?.is_empty() {
            eprintln!("assay: nothing is half done");
        }
        return Ok(match finish_crashed(&path)? {
            true => Status::Ok,
            false => Status::Findings,
        });
    }
    let journals = Journal::all(&path)?;
    let Some(run) = &args.run else {
        if journals.is_empty() {
            eprintln!("assay: `assay dups act` has not run with this index");
        }
        let runs = journals.iter().map(|journal| Run::of(journal));
        let runs = runs.collect::<anyhow::Result<Vec<Run>>>()?;
        match place.json {
            true => print_json(&ActRuns {
                schema: SCHEMA_VERSION,
                runs,
            })?,
            false => print(&runs.iter().map(Run::to_string).collect::<String>())?,
        }
        return Ok(Status::Ok);
    };
    let journal = journals
        .iter()
        .find(|journal| journal.file_stem().is_some_and(|stem| stem == run.as_str()))
        .ok_or_else(|| anyhow::anyhow!("unknown run {run}: `assay dups undo` lists the runs"))?;
    let _held = Index::open(&path)?;
    if !args.dry_run {
        finish_crashed(&path)?;
    }
    let plan = plan_undo(journal)?;
    let carried_out = !args.dry_run && (args.despite_cost || !plan.is_costly());
    let options = UndoOptions {
        despite_cost: args.despite_cost,
        ..UndoOptions::default()
    };
    let undone = match carried_out {
        true => take_back(journal, &options)?,
        false => Undone {
            refused: plan.refused.clone(),
            ..Undone::default()
        },
    };
    if place.json {
        print_json(&TakenBack {
            schema: SCHEMA_VERSION,
            restored: undone.restored,
            refused: Refused::all(&undone.refused),
            cost: UndoCost::of(&plan),
            carried_out,
        })?;
    } else {
        print_cost(&plan)?;
        match carried_out {
            true => print(&format!(
                "restored {}\n",
                format_plural(undone.restored, "file", "files")
            ))?,
            false if args.dry_run => print("nothing was changed\n")?,
            false => print("nothing was changed; --despite-cost undoes it nevertheless\n")?,
        }
        if undone.restored > 0 {
            eprintln!("assay: the index learns of it by `assay dups refresh`");
        }
        refusals(&undone.refused);
    }
    let whole = undone.refused.is_empty() && (carried_out || !plan.is_costly());
    Ok(match whole {
        true => Status::Ok,
        false => Status::Findings,
    })
}

/// Prints the space that the undo needs, if any, and the reasons why the undo needs more than is available.
fn print_cost(plan: &UndoPlan) -> anyhow::Result<()> {
    let mut text = String::new();
    if plan.copies > 0 {
        let _ = writeln!(
            text,
            "undo takes {} for {} ({}); the run freed {}",
            Binary.show(plan.bytes),
            format_plural(plan.copies, "file", "files"),
            format_plural(plan.names, "name", "names"),
            Binary.show(plan.freed),
        );
    }
    for one in &plan.short {
        let _ = writeln!(
            text,
            "the file system of {} has {} free and needs {}",
            format_readable(&one.folder),
            Binary.show(one.free),
            Binary.show(one.needed),
        );
    }
    for one in &plan.apart {
        let path = format_readable(&one.path);
        let _ = writeln!(text, "{path} would become a file of its own: {}", one.why);
    }
    print(&text)
}

/// A run of `assay dups act` in a list.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::verbs) struct Run {
    run: String,
    action: &'static str,
    done: u64,
    untouched: u64,
    undone: u64,
    half_done: u64,
    /// Number of unreadable lines in the journal of the run.
    damaged: u64,
}

impl Run {
    fn of(journal: &std::path::Path) -> anyhow::Result<Self> {
        let Loaded {
            entries, damaged, ..
        } = Journal::load(journal)?;
        let count = |state: StepState| {
            let those = entries.values().filter(|entry| entry.state == state);
            those.count() as u64
        };
        let name = journal.file_stem().unwrap_or_default();
        let first = entries.values().next();
        Ok(Self {
            run: name.to_string_lossy().into_owned(),
            action: first.map_or("nothing", |entry| entry.step.action.word()),
            done: count(StepState::Done),
            untouched: count(StepState::Untouched),
            undone: count(StepState::Undone),
            half_done: count(StepState::Open),
            damaged: damaged.len() as u64,
        })
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The id of a run is its start time.
        let age = self.run.parse().map_or_else(
            |_| String::new(),
            |begun: i64| format!("{} ago, ", age::show(assay_dups::unix_nanos() - begun)),
        );
        let half_done = match self.half_done {
            0 => String::new(),
            open => format!(", {} half done (--recover)", format_grouped(open)),
        };
        let damaged = match self.damaged {
            0 => String::new(),
            lines => format!(
                ", {} of its journal damaged",
                format_plural(lines, "line", "lines")
            ),
        };
        writeln!(
            f,
            "{}  {age}{}: {} done, {} left alone, {} undone{half_done}{damaged}",
            self.run,
            self.action,
            format_grouped(self.done),
            format_grouped(self.untouched),
            format_grouped(self.undone),
        )
    }
}
