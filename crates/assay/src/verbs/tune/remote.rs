//! `assay tune --host`: runs the session on another machine, which also keeps the journal. The record of the session is
//! stored on this machine.

use super::super::trial::{agree_there, report_after_loss};
use super::Args;
use super::past_sessions::print_one;
use crate::context;
use crate::global::Global;
use crate::input;
use crate::remote::{NamedFile, RemoteConnection, RemoteWork, SentFile, Value};
use crate::status::Status;
use assay_store::Store;
use assay_tune::{KeptState, TuneId, TuneState};
use std::io::IsTerminal as _;
use std::path::Path;

/// Maximum size of a page or goal file in bytes.
const LONGEST: u64 = 1 << 20;

/// Runs `assay tune` on the other machine.
pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    anyhow::ensure!(
        !args.list && args.show.is_none(),
        "the store of this machine contains remote sessions too: leave out --host"
    );
    let is_new = args.resume.is_none() && args.undo.is_none() && args.confirm.is_none();
    anyhow::ensure!(
        !is_new || !args.want.is_empty() || args.goal.is_some(),
        "name the goal with --want or --goal: the questions are asked on the machine itself only"
    );
    let mut asked = describe_work(args, global)?;
    let host = args.remote.host().to_owned();
    let mut is_lost = false;
    let done = args.remote.go(args.quiet, |way| {
        if is_new && !args.yes && !args.dry_run {
            anyhow::ensure!(
                std::io::stdin().is_terminal(),
                "cannot ask before changing settings of {host} for the time of the session: there is no terminal. \
                 Look at the plan with --dry-run, then use --yes."
            );
            if let Some(status) = agree_there(way, &mut asked, global)? {
                return Ok(status);
            }
        }
        let done = carry(way, &asked, args, global);
        is_lost = way.is_lost();
        done
    });
    if is_lost && !args.dry_run {
        report_after_loss(&args.remote);
    }
    done
}

fn carry(
    way: &mut RemoteConnection<'_>,
    asked: &RemoteWork,
    args: &Args,
    global: &Global,
) -> anyhow::Result<Status> {
    let done = way.carry(asked, global)?;
    let host = args.remote.host();
    let tunes = &done.records.tunes;
    if tunes.is_empty() || args.undo.is_some() || args.confirm.is_some() {
        // Undo and confirm print sentences, with --json too.
        let is_document = args.undo.is_none() && args.confirm.is_none();
        done.pass_on(args.shape.json && is_document)?;
        return Ok(done.status());
    }
    for (id, record) in tunes {
        print_one(*id, record, args, global)?;
        if record.state != TuneState::Complete {
            eprintln!(
                "here it is session {id}: `assay tune --resume {id} --host {host}` continues it"
            );
        }
        if matches!(record.kept, KeptState::Kept { .. }) {
            eprintln!(
                "here it is session {id}: `assay tune --undo {id} --host {host}` reverts what it kept there"
            );
        }
    }
    Ok(done.status())
}

/// Returns the command for the other machine, with the files and records to which it refers.
fn describe_work(args: &Args, global: &Global) -> anyhow::Result<RemoteWork> {
    let mut asked = RemoteWork {
        cut: vec![
            ("--html", Value::One),
            ("--only", Value::One),
            ("--resume", Value::Optional),
            ("--undo", Value::Optional),
            ("--confirm", Value::Optional),
        ],
        quiet: args.quiet,
        ..RemoteWork::default()
    };
    for word in &args.only {
        match Path::new(word).extension().is_some_and(|end| end == "md") {
            true => asked
                .files
                .push(send_file("--only", word, "a page of advice")?),
            false => asked.more.push(format!("--only={word}").into()),
        }
    }
    if let Some(goal) = &args.goal {
        let name = goal.to_string_lossy();
        asked.files.push(send_file("--goal", &name, "a goal")?);
    }
    if let Some(ca) = &args.ca {
        let name = ca.to_string_lossy();
        asked.files.push(send_file("--ca", &name, "certificates")?);
    }
    for (option, session) in [
        ("--resume", &args.resume),
        ("--undo", &args.undo),
        ("--confirm", &args.confirm),
    ] {
        if let Some(session) = session {
            let store = context::open_store(global)?;
            let uid = add_record(&mut asked, &store, store.resolve_tune(session)?)?;
            asked.more.push(format!("{option}={uid}").into());
        }
    }
    Ok(asked)
}

/// Adds the record of a stored session to the work, so that the other machine can continue the session. Returns the uid
/// of the session.
pub(super) fn add_record(
    asked: &mut RemoteWork,
    store: &Store,
    id: TuneId,
) -> anyhow::Result<String> {
    let record = store.tune(id)?;
    let uid = record.uid.clone();
    asked.records.machine = store.machine_of_tune(id)?;
    asked.records.tunes.push((id, record));
    Ok(uid)
}

pub(super) fn send_file(option: &'static str, name: &str, what: &str) -> anyhow::Result<SentFile> {
    let path = Path::new(name);
    Ok(SentFile {
        named: NamedFile::Option(option, ""),
        path: path.to_owned(),
        content: input::bytes(path, LONGEST, what)?,
    })
}
