//! `assay trial --host`: runs the trial on another machine. The journal is on that machine, too.

use super::Args;
use super::begin::asks;
use super::past_trials::{Seen, print_all};
use crate::context;
use crate::global::Global;
use crate::input;
use crate::remote::{NamedFile, Remote, RemoteConnection, RemoteWork, SentFile, Value};
use crate::status::Status;
use assay_model::trial::TrialState;
use assay_render::text::escape_line;
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

/// Maximum size of a page of advice in bytes.
const LONGEST_PAGE: u64 = 1 << 20;

/// Runs `assay trial` on the other machine.
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
    let mut is_lost = false;
    let done = args.remote.go(args.quiet, |way| {
        let unsaid = !args.yes && !args.dry_run && !args.recover && args.resume.is_none();
        if unsaid
            && std::io::stdin().is_terminal()
            && let Some(status) = agree_there(way, &mut asked, global)?
        {
            return Ok(status);
        }
        let done = carry(way, &asked, args, global);
        is_lost = way.is_lost();
        done
    });
    if is_lost && !args.dry_run && !args.recover {
        report_after_loss(&args.remote);
    }
    done
}

/// Time limit for the other machine to revert its changes after the connection was lost.
const REVERT_LIMIT: Duration = Duration::from_secs(60);
/// Pause between two readings of the journal.
const PAUSE: Duration = Duration::from_secs(2);

/// Reads the journal of the other machine over a second connection. Prints which changes were reverted, and which
/// changes are still in effect.
pub(in crate::verbs) fn report_after_loss(remote: &Remote) {
    let host = escape_line(remote.host());
    eprintln!("lost the connection to {host}; reading its journal to see what was reverted");
    let answer = remote.go(true, |way| {
        let begun = crate::progress::now();
        let mut lines = Vec::new();
        loop {
            let journal = way.read_json(&["trial", "--recover", "--json"])?;
            let all = |name: &str| journal[name].as_array().cloned().unwrap_or_default();
            for one in all("recovered") {
                let line = escape_line(one["told"].as_str().unwrap_or_default());
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
            let busy = all("recovering").len() as u64 + journal["at_work"].as_u64().unwrap_or(0);
            if busy == 0 || begun.elapsed() >= REVERT_LIMIT {
                return Ok((lines, busy));
            }
            std::thread::sleep(PAUSE);
        }
    });
    match answer {
        Ok((lines, busy)) => {
            for line in &lines {
                eprintln!("{host}: {line}");
            }
            match (busy, lines.is_empty()) {
                (0, true) => {
                    eprintln!("{host}: every change was reverted; its journal is empty")
                }
                (0, false) => eprintln!("{host}: its journal contains nothing else"),
                _ => eprintln!(
                    "{host}: an assay is still running there. \
                     Run `assay trial --recover --host {host}` to see what is left."
                ),
            }
        }
        Err(error) => eprintln!(
            "cannot connect to {host} again ({}). {host} reverts the changes by itself. Run `assay trial --recover --host {host}` to see what is left.",
            escape_line(&format!("{error:#}"))
        ),
    }
}

/// Prints the plan of the other machine, and asks whether to begin. Returns the exit status if the trial should not
/// begin.
pub(in crate::verbs) fn agree_there(
    way: &mut RemoteConnection<'_>,
    asked: &mut RemoteWork,
    global: &Global,
) -> anyhow::Result<Option<Status>> {
    asked.more.push("--dry-run".into());
    let planned = way.carry(asked, global)?;
    asked.more.pop();
    planned.pass_on(false)?;
    if planned.status() != Status::Ok {
        return Ok(Some(planned.status()));
    }
    if !asks("Begin there?")? {
        eprintln!("nothing was changed");
        return Ok(Some(Status::Ok));
    }
    asked.more.push("--yes".into());
    Ok(None)
}

fn carry(
    way: &mut RemoteConnection<'_>,
    asked: &RemoteWork,
    args: &Args,
    global: &Global,
) -> anyhow::Result<Status> {
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

/// Returns the command to run on the other machine, with the files and records that it needs.
fn asked(args: &Args, global: &Global) -> anyhow::Result<RemoteWork> {
    let mut asked = RemoteWork {
        cut: vec![("--html", Value::One), ("--resume", Value::Optional)],
        quiet: args.quiet,
        ..RemoteWork::default()
    };
    for word in &args.words {
        let path = Path::new(word);
        if path.extension().is_some_and(|ending| ending == "md") {
            asked.files.push(SentFile {
                named: NamedFile::Word(word.into()),
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
