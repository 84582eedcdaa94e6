//! `assay trial --host`: the trial is carried out on another machine, with the journal there.

use super::Args;
use super::begin::asks;
use super::look::{Seen, print_all};
use crate::context;
use crate::global::Global;
use crate::input;
use crate::remote::{Asked, Named, SentFile, Value, Way};
use crate::status::Status;
use assay_model::trial::TrialState;
use std::io::IsTerminal as _;
use std::path::Path;

/// Bytes of the longest page of advice.
const LONGEST_PAGE: u64 = 1 << 20;

/// Runs the verb there.
pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    anyhow::ensure!(
        !args.list && args.show.is_none(),
        "the store of this machine contains remote trials too: leave out --host"
    );
    anyhow::ensure!(
        args.confirm.is_none(),
        "--confirm does not work over ssh: run `assay trial --confirm` on the machine itself"
    );
    let mut asked = asked(args, global)?;
    args.remote.go(args.quiet, |way| {
        let unsaid = !args.yes && !args.dry_run && !args.recover && args.resume.is_none();
        if unsaid && std::io::stdin().is_terminal() {
            let status = dry_run(way, &mut asked, global)?;
            if status != Status::Ok {
                return Ok(status);
            }
            if !asks("Begin there?")? {
                eprintln!("nothing was changed");
                return Ok(Status::Ok);
            }
            asked.more.push("--yes".into());
        }
        carry(way, &asked, args, global)
    })
}

/// Shows what would be done there.
fn dry_run(way: &mut Way<'_>, asked: &mut Asked, global: &Global) -> anyhow::Result<Status> {
    asked.more.push("--dry-run".into());
    let done = way.carry(asked, global)?;
    asked.more.pop();
    done.pass_on(false)?;
    Ok(done.status())
}

fn carry(way: &mut Way<'_>, asked: &Asked, args: &Args, global: &Global) -> anyhow::Result<Status> {
    let done = way.carry(asked, global)?;
    let trials = &done.records.trials;
    if trials.is_empty() {
        done.pass_on(args.shape.json)?;
        return Ok(done.status());
    }
    let seen: Vec<Seen> = trials
        .iter()
        .map(|(trial, slots)| Seen::of(trial.clone(), slots.clone()))
        .collect();
    print_all(&seen, args, global)?;
    for (trial, _) in trials {
        if trial.state != TrialState::Complete {
            eprintln!(
                "here it is trial {0}: `assay trial --resume {0}` with the same --host goes on",
                trial.id
            );
        }
    }
    Ok(done.status())
}

/// What is to be done there.
fn asked(args: &Args, global: &Global) -> anyhow::Result<Asked> {
    let mut asked = Asked {
        cut: vec![("--html", Value::One), ("--resume", Value::Optional)],
        quiet: args.quiet,
        ..Asked::default()
    };
    for word in &args.words {
        let path = Path::new(word);
        if path.extension().is_some_and(|ending| ending == "md") {
            asked.files.push(SentFile {
                named: Named::Word(word.into()),
                path: path.to_owned(),
                content: input::bytes(path, LONGEST_PAGE, "a page of advice")?,
            });
        }
    }
    if let Some(name) = &args.resume {
        let store = context::open_store(global)?;
        let id = store.resolve_trial(name)?;
        let trial = store.trial(id)?;
        asked.more.push(format!("--resume={}", trial.uid).into());
        asked.records.machine = store.machine_of_trial(id)?;
        asked.records.trials.push((trial, store.slots(id)?));
    }
    Ok(asked)
}
