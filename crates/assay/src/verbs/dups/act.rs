//! `assay dups act`: links, shares, deletes or moves redundant files.

use super::documents::{Acted, Planned, Refused};
use super::explore::print_json;
use super::index_location::{Place, absolute};
use super::undo::finish_crashed;
use super::{explore, progress};
use crate::context::{print, report_writer};
use crate::status::Status;
use assay_dups::Index;
use assay_dups::act::execute::{ActOptions, execute, find_unfinished_journals};
use assay_dups::act::journal::Journal;
use assay_dups::act::plan::{ActPlan, PlanRules, Prefer, plan};
use assay_dups::act::{Action, Refusal};
use assay_dups::name::format_readable;
use assay_model::SCHEMA_VERSION;
use assay_model::size::Convention::Binary;
use assay_render::units::format_plural;
use clap::{Args, ValueEnum};
use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Arguments of `assay dups act`.
#[derive(Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true),
    after_help = "\
Examples:
  assay dups act --hardlink /srv/photos                       what would be linked
  assay dups act --hardlink /srv/photos --apply               link it
  assay dups act --delete /mnt/import --keep-in /srv --apply  delete what /srv has already
  assay dups act --move /srv/trash --prefer oldest /srv/data
  assay dups undo                                             runs that can be undone

The duplicates come from the index. At the moment of acting each pair is opened again, locked against
writers by a lease, compared byte by byte, and replaced by an exchange of names; what changed since
the scan is left alone and named."
)]
pub struct Act {
    /// Act only on files at or below PATH [default: all in the index]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Replace redundant files by hard links to the copy that stays
    #[arg(long, group = "what")]
    hardlink: bool,
    /// Share the blocks of redundant files with the copy that stays
    #[arg(long, group = "what")]
    reflink: bool,
    /// Delete redundant files
    #[arg(long, group = "what")]
    delete: bool,
    /// Move redundant files below this folder, with their whole path
    #[arg(long = "move", group = "what", value_name = "DIR")]
    move_to: Option<PathBuf>,
    /// Change the files; nothing is changed without this
    #[arg(long)]
    apply: bool,
    /// Keep copies at or below this folder first (repeatable, in order)
    #[arg(long, value_name = "DIR")]
    keep_in: Vec<PathBuf>,
    /// Keep copies whose path matches this glob first
    #[arg(long, value_name = "GLOB")]
    keep: Vec<String>,
    /// Never act on files at or below this folder
    #[arg(long, value_name = "DIR")]
    protect: Vec<PathBuf>,
    /// Choose the copy that stays when nothing above decides
    #[arg(long, value_enum, default_value_t = PreferArg::Shortest, value_name = "WHICH")]
    prefer: PreferArg,
    /// Also act where no lease is possible (NFS, other users' files)
    #[arg(long)]
    without_lease: bool,
}

#[derive(ValueEnum, Clone, Copy)]
enum PreferArg {
    /// The copy with the shortest path.
    Shortest,
    /// The copy that was changed last.
    Newest,
    /// The copy that was changed first.
    Oldest,
    /// The copy whose path sorts first.
    First,
}

/// Runs `assay dups act`.
pub fn run(args: &Act, place: &Place) -> anyhow::Result<Status> {
    let path = place.path()?;
    let action = if args.hardlink {
        Action::Hardlink
    } else if args.reflink {
        Action::Reflink
    } else if let Some(target) = &args.move_to {
        Action::Move(
            assay_dups::make_absolute(target)?
                .as_os_str()
                .as_bytes()
                .to_vec(),
        )
    } else {
        Action::Delete
    };
    let rules = PlanRules {
        scope: absolute(&args.paths)?,
        keep_in: absolute(&args.keep_in)?,
        keep_matching: args.keep.clone(),
        protect: absolute(&args.protect)?,
        prefer: match args.prefer {
            PreferArg::Shortest => Prefer::Shortest,
            PreferArg::Newest => Prefer::Newest,
            PreferArg::Oldest => Prefer::Oldest,
            PreferArg::First => Prefer::First,
        },
    };
    // Held during the action, so that no scan writes files that are about to change.
    let mut held = match args.apply {
        true => {
            let index = Index::open(&path)?;
            finish_crashed(&path)?;
            Some(index)
        }
        false => {
            let crashed = find_unfinished_journals(&path)?;
            if !crashed.is_empty() {
                eprintln!(
                    "assay: an earlier run ended in the middle; `assay dups undo --recover` sets it right"
                );
            }
            None
        }
    };
    let (_, files, groups) = explore::load(place, &args.paths)?;
    let plan = plan(&files, &groups, &action, &rules)?;
    let Some(index) = &mut held else {
        print_plan(&plan, place.json)?;
        return Ok(Status::Ok);
    };
    if plan.steps.is_empty() {
        print_plan(&plan, place.json)?;
        return Ok(match plan.refused.is_empty() {
            true => Status::Ok,
            false => Status::Findings,
        });
    }
    let mut journal = Journal::begin(&path)?;
    let options = ActOptions {
        without_lease: args.without_lease,
        ..ActOptions::default()
    };
    let mut outcome = progress::watch(None, |control| {
        execute(&plan, &mut journal, &options, control)
    })??;
    outcome.refused.splice(0..0, plan.refused);
    let amended = index.amend(&outcome.changes);
    let run = journal
        .path()
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    if place.json {
        print_json(&Acted {
            schema: SCHEMA_VERSION,
            done: outcome.done,
            gained_bytes: outcome.gain,
            refused: Refused::all(&outcome.refused),
            run,
        })?;
    } else {
        print(&format!(
            "{}: {}, {} {}\n",
            action.word(),
            format_plural(outcome.done, "file", "files"),
            Binary.show(outcome.gain),
            // Moving files needs space on another file system.
            if matches!(action, Action::Move(_)) {
                "moved"
            } else {
                "gained"
            },
        ))?;
        if outcome.done > 0 && action != Action::Reflink {
            print(&format!("undo it with `assay dups undo {run}`\n"))?;
        }
        refusals(&outcome.refused);
    }
    amended?;
    Ok(match outcome.refused.is_empty() {
        true => Status::Ok,
        false => Status::Findings,
    })
}

pub(super) fn refusals(refused: &[Refusal]) {
    for one in refused {
        eprintln!(
            "assay: left alone: {}: {}",
            format_readable(&one.path),
            one.why
        );
    }
}

fn print_plan(plan: &ActPlan, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&Planned::of(plan));
    }
    let mut out = report_writer()?;
    for step in &plan.steps {
        let to = match &step.action {
            Action::Move(target) => format!(" to {}", format_readable(target)),
            _ => String::new(),
        };
        writeln!(
            out,
            "{} {}{to}\n  keeping {}",
            step.action.word(),
            format_readable(&step.remove.path),
            format_readable(&step.keep.path)
        )?;
    }
    writeln!(
        out,
        "{}, {} {}{}",
        format_plural(plan.steps.len() as u64, "step", "steps"),
        Binary.show(plan.gain()),
        match plan.steps.first().map(|step| &step.action) {
            Some(Action::Move(_)) => "to move",
            _ => "to gain",
        },
        if plan.steps.is_empty() {
            ""
        } else {
            "; nothing was changed, --apply does it"
        }
    )?;
    out.flush()?;
    refusals(&plan.refused);
    Ok(())
}
