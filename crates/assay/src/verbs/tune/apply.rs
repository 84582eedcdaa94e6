//! `assay tune --apply`: tries the changes that a session kept on other machines, one ring (group of machines) after
//! the other. Each machine tests all changes together against its own baseline. `ring.rs` changes the machines of one
//! ring.

mod ring;

use super::super::advice::catalogue;
use super::super::trial::asks;
use super::Args;
use super::remote::send_file;
use crate::context::{self, print};
use crate::global::Global;
use crate::remote::{RemoteWork, Value, without_options};
use crate::status::Status;
use anyhow::{Context as _, bail, ensure};
use assay_host::{Host as _, LiveHost};
use assay_model::secrets::WITHHELD;
use assay_render::text::escape_line;
use assay_tune::{Ending, Row, TuneId, TuneRecord};
use ring::RingWork;
use serde_json::{Value as Json, json};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::Path;

/// Maximum number of machines in all rings together.
const MOST_HOSTS: usize = 1000;

/// Options of the original command line that are replaced or dropped for the other machines.
const REPLACED: [(&str, Value); 22] = [
    ("--only", Value::One),
    ("--seed", Value::One),
    ("--html", Value::One),
    ("--json", Value::None),
    ("--markdown", Value::None),
    ("--dry-run", Value::None),
    ("--yes", Value::None),
    ("-y", Value::None),
    ("--quiet", Value::None),
    ("-q", Value::None),
    ("--whole", Value::None),
    ("--anyway", Value::None),
    ("--no-boot-undo", Value::None),
    ("--resume", Value::Optional),
    ("--goal", Value::One),
    ("--host", Value::One),
    ("--sudo", Value::None),
    ("--ssh-config", Value::One),
    ("--deadline", Value::One),
    ("--remote-assay", Value::One),
    ("--silence", Value::One),
    ("--store", Value::One),
];

/// Outcome of applying the changes on one machine.
struct Applied {
    host: String,
    is_confirmed: bool,
    /// Whether the changes are in effect on this machine.
    is_kept: bool,
    /// The result as one line for the user.
    outcome: String,
    /// Id of this machine's session in the local store.
    session: Option<TuneId>,
    gain: Option<f64>,
}

impl Applied {
    fn failed(host: &str, outcome: String) -> Self {
        Self {
            host: host.to_owned(),
            is_confirmed: false,
            is_kept: false,
            outcome,
            session: None,
            gain: None,
        }
    }
}

/// Runs `assay tune --apply`, and returns the exit status.
pub(super) fn run(args: &Args, asked: &str, global: &Global) -> anyhow::Result<Status> {
    let store = context::open_store(global)?;
    let id = store.resolve_tune(asked)?;
    let record = store.tune(id)?;
    drop(store);
    let session = record.replay()?;
    let Some(Ending::Kept { row }) = session.ending() else {
        bail!("nothing to apply: session {id} kept nothing");
    };
    let rings = read_rings(args.remote.hosts())?;
    let work = describe_work(args, &record, row)?;
    show_plan(id, &record, row, &rings);
    if !args.yes && !args.dry_run {
        ensure!(
            std::io::stdin().is_terminal(),
            "cannot ask before changing settings of other machines: there is no terminal. Look at the plan with \
             --dry-run, then use --yes."
        );
        if !asks("Begin there?")? {
            eprintln!("nothing was changed");
            return Ok(Status::Ok);
        }
    }
    let cancel = context::on_signals()?;
    let ring_work = RingWork {
        work: &work,
        args,
        global,
        cancel: &cancel,
    };
    let mut done: Vec<Vec<Applied>> = Vec::new();
    for ring in &rings {
        let applied = ring_work.apply(ring, &|one| {
            if !args.shape.json {
                // A closed output ends nothing: the machines go on.
                let _ = print(&format!("{}: {}\n", escape_line(&one.host), one.outcome));
            }
        });
        let is_confirmed = applied.iter().all(|one| one.is_confirmed);
        done.push(applied);
        if cancel.is_cancelled() || !is_confirmed && !args.dry_run {
            break;
        }
    }
    if cancel.is_cancelled() {
        undo_all(&ring_work, &mut done);
        report(args, id, &rings, &done)?;
        return Ok(Status::Interrupted);
    }
    report(args, id, &rings, &done)
}

/// Undoes the changes that the machines of all rings kept. Called after an interruption.
fn undo_all(ring_work: &RingWork<'_>, done: &mut [Vec<Applied>]) {
    let mut kept: Vec<&mut Applied> = done
        .iter_mut()
        .flatten()
        .filter(|one| one.is_kept)
        .collect();
    if kept.is_empty() {
        return;
    }
    let hosts: Vec<&str> = kept.iter().map(|one| one.host.as_str()).collect();
    eprintln!("interrupted: undoing on {}", escape_line(&hosts.join(", ")));
    ring_work.undo(&mut kept);
}

/// Prints the result of each machine, and the command that undoes the changes.
fn report(
    args: &Args,
    id: TuneId,
    rings: &[Vec<String>],
    done: &[Vec<Applied>],
) -> anyhow::Result<Status> {
    let is_confirmed = |ring: &Vec<Applied>| ring.iter().all(|one| one.is_confirmed);
    if args.shape.json {
        let host = |one: &Applied| {
            json!({"host": one.host, "confirmed": one.is_confirmed, "outcome": one.outcome,
                   "session": one.session.map(|id| id.0), "gain": one.gain})
        };
        let ring = |ring: &Vec<Applied>| {
            let hosts: Vec<Json> = ring.iter().map(host).collect();
            json!({"confirmed": is_confirmed(ring), "hosts": hosts})
        };
        let all: Vec<Json> = done.iter().map(ring).collect();
        let document = json!({"schema": assay_model::SCHEMA_VERSION, "applied": id.0, "rings": all,
                              "rings_left": rings.len() - done.len()});
        print(&format!("{document:#}\n"))?;
    }
    if args.dry_run {
        return Ok(Status::Ok);
    }
    for one in done.iter().flatten() {
        if let (Some(session), true) = (one.session, one.is_kept) {
            let host = escape_line(&one.host);
            eprintln!("undo on {host}: `assay tune --undo {session} --host {host}`");
        }
    }
    if done.iter().all(is_confirmed) {
        return Ok(Status::Ok);
    }
    let left: Vec<&str> = rings[done.len()..]
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    eprintln!(
        "ring {} did not confirm session {id}{}",
        done.len(),
        match left.is_empty() {
            true => String::new(),
            false => format!(": not tried on {}", escape_line(&left.join(", "))),
        }
    );
    Ok(Status::Findings)
}

fn show_plan(id: TuneId, record: &TuneRecord, row: &Row, rings: &[Vec<String>]) {
    eprintln!("what session {id} kept, all of it together, against each machine as it is:");
    for change in row
        .iter()
        .filter_map(|at| record.changes.get(*at)?.as_ref())
    {
        let value = change.value.as_deref().unwrap_or("no line for it");
        eprintln!("  {} = {}", escape_line(&change.name), escape_line(value));
    }
    for (number, ring) in (1..).zip(rings) {
        eprintln!("ring {number}: {}", escape_line(&ring.join(", ")));
    }
}

/// Parses the rings. Each `--host` is one ring: a host, or several hosts separated by commas. A value with a `/` is the
/// path of a file with one host per line.
fn read_rings(hosts: &[String]) -> anyhow::Result<Vec<Vec<String>>> {
    let mut rings = Vec::new();
    for word in hosts {
        let text = match word.contains('/') {
            true => LiveHost
                .read_text(Path::new(word))
                .context("a ring with a / is a file with one host a line")?,
            false => word.replace(',', "\n"),
        };
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default().trim());
        let ring: Vec<String> = lines
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        ensure!(
            !ring.is_empty(),
            "the ring {} names no host",
            word.escape_debug()
        );
        rings.push(ring);
    }
    let mut all: Vec<&String> = rings.iter().flatten().collect();
    ensure!(
        all.len() <= MOST_HOSTS,
        "{} hosts are more than {MOST_HOSTS}",
        all.len()
    );
    all.sort();
    if let Some(two) = all.windows(2).find(|two| two[0] == two[1]) {
        bail!("{} stands in the rings twice", two[0].escape_debug());
    }
    Ok(rings)
}

/// Returns the command for the other machines. It is the original command line, except that the kept changes are the
/// only pages and are tested together.
fn describe_work(args: &Args, record: &TuneRecord, row: &Row) -> anyhow::Result<RemoteWork> {
    let mut replaced = REPLACED.to_vec();
    let mut more: Vec<OsString> = Vec::new();
    for (option, value) in [
        ("--load", args.load.clone()),
        ("--while-ok", args.while_ok.clone()),
        (
            "--budget",
            args.budget.map(|budget| format!("{}ns", budget.0)),
        ),
        ("--may", args.may.clone()),
    ] {
        if let Some(value) = value {
            replaced.push((option, Value::One));
            more.push(format!("{option}={value}").into());
        }
    }
    let line: Vec<OsString> = without_options(record.command.iter().map(OsString::from), &replaced);
    if let Some(word) = line
        .iter()
        .find(|word| word.to_string_lossy().contains(WITHHELD))
    {
        bail!(
            "the session was stored without its secrets: repeat --load or --while-ok as it was: {}",
            word.to_string_lossy()
        );
    }
    let mut work = RemoteWork {
        cut: vec![("--only", Value::One)],
        line: Some(line),
        quiet: true,
        ..RemoteWork::default()
    };
    let goal = value_of(&record.command, "--goal");
    if let Some(goal) = goal {
        work.files.push(send_file("--goal", &goal, "a goal")?);
    }
    let catalogue = catalogue(&args.own)?;
    let pages = catalogue.all();
    for at in row {
        let id = record.plan.candidates[*at].id.as_str();
        let (name, value) = match id.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (id, None),
        };
        let Some(page) = pages.iter().find(|page| page.id == name) else {
            let file = find_own_page(args, record, name)?;
            work.files
                .push(send_file("--only", &file, "a page of advice")?);
            continue;
        };
        more.push(format!("--only={name}").into());
        let takes =
            |choices: &[String]| value.is_some_and(|value| choices.iter().any(|one| one == value));
        let parameter = page.parameters.iter().find(|(_, one)| takes(&one.choices));
        if let (Some((parameter, _)), Some(value)) = (parameter, value) {
            more.push(format!("--set={name}.{parameter}={value}").into());
        }
    }
    more.push("--whole".into());
    more.push(if args.dry_run { "--dry-run" } else { "--yes" }.into());
    if args.no_boot_undo {
        more.push("--no-boot-undo".into());
    }
    work.more = more;
    Ok(work)
}

/// Returns the value of an option in a stored command line.
fn value_of(words: &[String], option: &str) -> Option<String> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == option {
            return words.next().cloned();
        }
        if let Some(value) = word
            .strip_prefix(option)
            .and_then(|rest| rest.strip_prefix('='))
        {
            return Some(value.to_owned());
        }
    }
    None
}

/// Returns the file of the user's own page `id`. The file is given by `--only` of this command line or of the original
/// one.
fn find_own_page(args: &Args, record: &TuneRecord, id: &str) -> anyhow::Result<String> {
    let then = value_of(&record.command, "--only").unwrap_or_default();
    let words = args.only.iter().map(String::as_str).chain(then.split(','));
    let is_page = |word: &&str| {
        Path::new(word).file_stem().is_some_and(|stem| stem == id) && word.ends_with(".md")
    };
    words
        .into_iter()
        .find(is_page)
        .map(str::to_owned)
        .with_context(|| {
            format!("the page `{id}` is not in the catalogue: name its file with --only")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_a_list_or_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ring");
        assay_host::write_output(&file, b"web2 # the quiet one\n\nweb3\n").unwrap();
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            read_rings(&words)
        };
        let path = file.to_str().unwrap();
        assert_eq!(
            read(&["web1", path, "a,root@b"]).unwrap(),
            [vec!["web1"], vec!["web2", "web3"], vec!["a", "root@b"]]
        );
        for wrong in [
            &["web1", "web1"][..],
            &["web2", path],
            &["./missing"],
            &[","],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
