//! `assay lint`: what a fio command or job file would not measure.

use crate::context::{columns, print};
use crate::input;
use crate::status::Status;
use anyhow::{Context as _, bail};
use assay_fio::options::{self, Invocation, JobOptions};
use assay_judge::doubts::other_tools::OtherTool;
use assay_judge::doubts::{self, other_tools};
use assay_model::Doubt;
use assay_report::lint::{overwritten, to_json, to_text};
use std::ffi::{OsStr, OsString};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  assay lint 'fio --name=t --rw=randread --bs=4k --iodepth=32 --sync=1'
  assay lint fio --name=t --rw=randread --bs=4k --iodepth=32
  assay lint bench.fio                      a job file, or a script that calls fio
  xclip -o | assay lint -                   a command copied from a page
  assay lint 'fio --name=t --rw=write' --json
  assay lint 'dd if=/dev/zero of=t bs=1M'   also sysbench fileio, bonnie++, hdparm, iozone, diskspd
                                            and results of CrystalDiskMark: what they
                                            really measure

Nothing runs. A command that measures what it says passes without a word.
Exit status: 0 nothing to doubt, 1 doubts, 2 cannot be understood, 3 cannot be read.";

/// Say what a fio command or job file would not measure
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print one JSON object with the list `doubts`
    #[arg(long)]
    json: bool,
    /// A command of fio in quotes or as it is, a job file, or - for standard input
    #[arg(
        value_name = "COMMAND|FILE|-",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

/// Largest text that is read; job files are much smaller.
const LARGEST: u64 = 16 << 20;

/// Runs the verb.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    // fio has no option of this name, so it is ours wherever it stands.
    let own = OsStr::new("--json");
    let json = args.json || args.words.iter().any(|word| word == own);
    let words: Vec<&OsStr> = args
        .words
        .iter()
        .map(OsString::as_os_str)
        .filter(|word| *word != own)
        .collect();
    let mut judged: Vec<(JobOptions, Vec<Doubt>)> = Vec::new();
    let read = read(&words)?;
    for call in read.calls {
        for note in &call.mended {
            eprintln!("note: {note}");
        }
        // A job file begins when the one before it has ended.
        let mut together = vec![call.jobs];
        for file in &call.job_files {
            together.extend(
                from_file(OsStr::new(file))?
                    .calls
                    .into_iter()
                    .map(|inner| inner.jobs),
            );
        }
        for jobs in together {
            let doubts = doubts::judge_options(&jobs);
            judged.extend(jobs.into_iter().zip(doubts));
        }
    }
    let others = &read.others;
    let found = judged.iter().any(|(_, doubts)| !doubts.is_empty())
        || others.iter().any(|other| !other.doubts.is_empty())
        || !overwritten(&judged, others).is_empty();
    if json {
        print(&format!("{:#}\n", to_json(&judged, others)))?;
    } else {
        print(&to_text(&judged, others, columns()))?;
    }
    Ok(if found { Status::Findings } else { Status::Ok })
}

/// What was understood of the words or the text.
#[derive(Default)]
struct Read {
    calls: Vec<Invocation>,
    others: Vec<OtherTool>,
}

fn read(words: &[&OsStr]) -> anyhow::Result<Read> {
    let utf8 = |word: &OsStr| {
        let text = word.to_str().map(str::to_owned);
        text.with_context(|| format!("`{}` is not UTF-8", word.to_string_lossy().escape_debug()))
    };
    match words {
        [] => bail!("nothing to read: give a command of fio, a job file, or - for standard input"),
        [one] if *one == "-" => from_text(
            input::text(Path::new("-"), LARGEST, EXPECTED)?,
            "standard input",
        ),
        [first, rest @ ..] => {
            let text = utf8(first)?;
            let split = !rest.is_empty()
                && !text.contains(char::is_whitespace)
                && (rest
                    .iter()
                    .any(|word| utf8(word).is_ok_and(|word| word.starts_with('-')))
                    || matches!(text.as_str(), "fio" | "dd"));
            if split {
                let words: Vec<String> = words
                    .iter()
                    .map(|word| utf8(word))
                    .collect::<anyhow::Result<_>>()?;
                return match other_tools::other_tool(&words) {
                    Some(other) if !words.iter().any(|word| is_fio(word)) => Ok(Read {
                        others: vec![other],
                        ..Read::default()
                    }),
                    _ => Ok(Read {
                        calls: vec![options::command_words(&words)?],
                        ..Read::default()
                    }),
                };
            }
            let mut found = Read::default();
            for word in words {
                let text = utf8(word)?;
                let a_path = Path::new(word).exists() || !is_command(&text);
                let one = match a_path {
                    true => from_file(word)?,
                    false => understood(&text, options::command_line(&text).map_err(Into::into))?,
                };
                found.calls.extend(one.calls);
                found.others.extend(one.others);
            }
            Ok(found)
        }
    }
}

/// Whether a single word on the command line is meant as a command rather than a path.
fn is_command(text: &str) -> bool {
    text.trim().is_empty()
        || text.contains(char::is_whitespace)
        || text.starts_with(['-', '–', '—'])
        || text == "fio"
}

/// What is expected of a file.
const EXPECTED: &str = "a job file, or a command in quotes";

fn from_file(path: &OsStr) -> anyhow::Result<Read> {
    let shown = path.to_string_lossy().escape_debug().to_string();
    let text = input::text(Path::new(path), LARGEST, EXPECTED)?;
    from_text(text, &shown)
}

fn from_text(text: String, name: &str) -> anyhow::Result<Read> {
    let calls = options::read_text_with(&text, name, &mut |file| included(name, file));
    understood(&text, calls.map_err(Into::into))
}

fn is_fio(word: &str) -> bool {
    word.rsplit('/').next() == Some("fio")
}

/// Calls of fio in a text, and commands of other tools. Without any call of fio the others are the answer.
fn understood(text: &str, calls: anyhow::Result<Vec<Invocation>>) -> anyhow::Result<Read> {
    let commands = options::commands(text);
    let of_fio = |words: &Vec<String>| words.iter().any(|word| is_fio(word));
    let others = commands.iter().filter(|words| !of_fio(words));
    let mut others: Vec<OtherTool> = others
        .filter_map(|words| other_tools::other_tool(words))
        .collect();
    // Job files that copy its patterns name it, too.
    if calls.is_err() {
        others.extend(other_tools::crystal_disk_mark(text));
    }
    match calls {
        Ok(calls) => Ok(Read { calls, others }),
        Err(_) if !others.is_empty() && !commands.iter().any(of_fio) => Ok(Read {
            calls: Vec::new(),
            others,
        }),
        Err(error) => Err(error),
    }
}

/// The text of a file that a job file includes: as it is named, else beside the one that names it
/// (`__parse_jobs_ini`, fio init.c).
#[allow(
    clippy::disallowed_methods,
    reason = "the job file that the user named names this file"
)]
fn included(from: &str, file: &str) -> Result<String, String> {
    let named = Path::new(file);
    let beside = Path::new(from).with_file_name(file);
    let path = if named.exists() { named } else { &beside };
    // A pipe or a device would wait or never end.
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("no regular file".to_owned());
    }
    input::text(path, LARGEST, "job options").map_err(|error| error.to_string())
}
