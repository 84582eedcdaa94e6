//! `assay why`: finds what slows down a machine or a part of it.

mod mounted_share;
mod other_machine;
mod past_answers;
mod recorded_file;
mod target_path;

use crate::context;
use crate::global::Global;
use crate::progress::Meter;
use crate::remote::Remote;
use crate::shape::Shape;
use crate::status::Status;
use assay_host::{Host, LiveHost};
use assay_model::Nanos;
use assay_report::why::{
    answer_to_json, bound_answer, render_answer_markdown, render_answer_page, render_answer_text,
};
use assay_why::{
    MachineSnapshot, RecordingHeader, SlownessAnswer, WatchPace, WatchSubject, WatchWindow,
    judge_window, resolve_word, watch,
};
use recorded_file::RecordingFile;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  assay why                         what this machine waits for, and who is to blame
  assay why --for 10s               the same in ten seconds
  assay why 4711                    why this process is slow
  assay why postgresql.service      why this unit is slow; also a container, a guest or a process name
  assay why /srv/data               why what lies under this path is slow; also nfs://nas/srv, where it is mounted
  assay why --record slow.jsonl     record the observations, for a helper
  assay why --replay slow.jsonl     judge it again, on any machine
  assay why --host root@box         another machine: nothing has to be installed there
  assay why --show last             the newest stored answer; --list shows all

Nothing is changed and no load is made. The answer is stored. Root sees more: what other users' processes wait for.
The exit status is 1 when there are suspects, and 0 when there are none.";

/// Find out what makes this machine slow right now
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Pid, unit, container, guest, program or path [default: this machine]
    #[arg(value_name = "THING")]
    thing: Option<PathBuf>,
    /// Watch for this long: 10s, 2m
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "60s",
        value_parser = parse_length,
        conflicts_with = "replay"
    )]
    length: Duration,
    /// Write the recording to FILE, to judge it elsewhere; - is stdout
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Judge a recording instead of this machine
    #[arg(long, value_name = "FILE", conflicts_with = "thing")]
    replay: Option<PathBuf>,
    /// List the stored answers, newest first
    #[arg(long, conflicts_with_all = ["thing", "replay", "record", "show", "markdown", "html"])]
    list: bool,
    /// Show a stored answer: its number, last or last~1
    #[arg(long, value_name = "N", conflicts_with_all = ["thing", "replay", "record"])]
    show: Option<String>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    shape: Shape,
    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,
}

/// Parses a duration from 1 second to 1 hour.
fn parse_length(text: &str) -> Result<Duration, String> {
    let (number, factor) = match text.strip_suffix('m') {
        Some(number) => (number, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "give a time such as 10s or 2m".to_owned())?;
    match number.checked_mul(factor) {
        Some(seconds @ 1..=3600) => Ok(Duration::from_secs(seconds)),
        _ => Err("give 1s to 60m".to_owned()),
    }
}

/// Runs `assay why`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if args.list {
        return past_answers::list(args, global);
    }
    if let Some(asked) = &args.show {
        return past_answers::show(asked, args, global);
    }
    let (header, looks, is_interrupted) = match &args.replay {
        Some(file) => {
            let recording = recorded_file::read(file)?;
            (recording.header, recording.looks, false)
        }
        None if args.remote.is_meant()? => match other_machine::record(args, global)? {
            Err(status) => return Ok(status),
            Ok((recording, bytes)) => {
                if let Some(path) = &args.record {
                    recorded_file::write(path, &bytes)?;
                }
                (recording.header, recording.looks, false)
            }
        },
        None => watch_machine(args)?,
    };
    if args.record.as_deref() == Some(Path::new("-")) {
        return Ok(Status::Ok);
    }
    if looks.len() < 2 {
        anyhow::bail!("interrupted before the second sample: there is no result yet");
    }
    let window = WatchWindow::new(&looks, &header.subject);
    let mut answer = judge_window(&window, &header.subject)?;
    answer.machine = header.machine;
    answer.started_ms = header.started_ms;
    if args.replay.is_some() || args.remote.is_meant()? {
        answer = bound_answer(answer);
    }
    print_answer(&answer, args, global)?;
    // A recording may be of any machine and time.
    if args.replay.is_none() {
        past_answers::keep(&answer, args.remote.is_meant()?, global);
    }
    Ok(match (is_interrupted, answer.suspects.is_empty()) {
        (true, _) => Status::Interrupted,
        (false, true) => Status::Ok,
        (false, false) => Status::Findings,
    })
}

/// Prints an answer in the requested format.
fn print_answer(answer: &SlownessAnswer, args: &Args, global: &Global) -> anyhow::Result<()> {
    args.shape.report(|| render_answer_page(answer))?;
    args.shape.print(
        || answer_to_json(answer),
        || render_answer_markdown(answer),
        || render_answer_text(answer, context::style(global)),
    )
}

/// Watches this machine. Returns the header, the samples, and whether the user ended the watch.
fn watch_machine(args: &Args) -> anyhow::Result<(RecordingHeader, Vec<MachineSnapshot>, bool)> {
    let host: Arc<dyn Host> = Arc::new(LiveHost);
    let thing = match &args.thing {
        None => WatchSubject::Machine,
        Some(word) => find_thing(&host, word)?,
    };
    let line = |path: &str| {
        let text = host.read_text(Path::new(path)).unwrap_or_default();
        text.trim().to_owned()
    };
    let started = u64::try_from(context::now().as_millisecond()).unwrap_or(0);
    let header = RecordingHeader::new(
        line("/proc/sys/kernel/hostname"),
        line("/proc/sys/kernel/osrelease"),
        started,
        thing.clone(),
    );
    let mut file = match &args.record {
        Some(path) => Some(RecordingFile::create(path, &header)?),
        None => None,
    };
    let cancel = context::on_signals()?;
    let mut meter = Meter::new(args.quiet, Nanos::from(args.length));
    let mut looks: Vec<MachineSnapshot> = Vec::new();
    let mut fault = None;
    meter.say("watching".to_owned());
    let mut see = |look: MachineSnapshot| {
        meter.say(format!("sample {}", looks.len() + 1));
        if let Some(file) = &mut file
            && fault.is_none()
        {
            fault = file.add(&look).err();
        }
        looks.push(look);
    };
    watch(
        &host,
        &thing,
        WatchPace::lasting(args.length),
        &|| cancel.is_cancelled(),
        &mut see,
    );
    meter.end();
    if let Some(error) = fault {
        return Err(error);
    }
    if let Some(file) = file {
        file.finish()?;
    }
    Ok((header, looks, cancel.is_cancelled()))
}

/// Fails for the URL of a service, because a service cannot be watched without sending requests. The message contains
/// the command that measures the service.
fn refuse_service(scheme: &str, rest: &str) -> anyhow::Result<WatchSubject> {
    let rest = rest.trim_end_matches('/');
    let command = match scheme {
        "ssh" | "imap" | "smtp" => format!("assay login {scheme} {rest}"),
        "http" | "https" => format!("assay web {scheme}://{rest}"),
        _ => "assay why on the machine that serves it".to_owned(),
    };
    let machine = rest.rsplit('@').next().unwrap_or(rest);
    let machine = machine.split(['/', ':']).next().unwrap_or(machine);
    anyhow::ensure!(
        !["nfs", "smb", "cifs"].contains(&scheme),
        "{scheme}://{rest} is not mounted on this machine, so that nothing here waits for it. Measure it: assay run \
         {scheme}://{rest}. Watch the server: assay why --host {machine}"
    );
    anyhow::bail!(
        "assay why makes no load, and {scheme}://{rest} shows nothing unless somebody asks it. Measure it: {command}. \
         Watch the machine behind it: assay why --host {machine}"
    )
}

/// Resolves the argument THING. It is a path if it contains a slash or if no such name is known, else a name.
fn find_thing(host: &Arc<dyn Host>, word: &Path) -> anyhow::Result<WatchSubject> {
    let name = word.to_str();
    if let Some((scheme, rest)) = name.and_then(|name| name.split_once("://")) {
        return match mounted_share::find_directory(host.as_ref(), scheme, rest) {
            Some(directory) => target_path::resolve(host, &directory),
            None => refuse_service(scheme, rest),
        };
    }
    if let Some(name) = name.filter(|name| !name.contains('/') && !name.starts_with('.')) {
        match resolve_word(host.as_ref(), name) {
            Ok(thing) => return Ok(thing),
            Err(error) if std::fs::symlink_metadata(word).is_err() => {
                return Err(error.into());
            }
            Err(_) => {}
        }
    }
    target_path::resolve(host, word)
}
