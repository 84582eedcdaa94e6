//! `assay lint`: reports which parts of a fio command or job file would not measure what the user expects.

use crate::context::{columns, print};
use crate::input;
use crate::status::Status;
use anyhow::{Context as _, bail};
use assay_fio::options::{self, Commands, Invocation, JobOptions, Surroundings, Text};
use assay_judge::doubts::other_tools::ExplainedCommand;
use assay_judge::doubts::{self, other_tools};
use assay_model::Doubt;
use assay_report::lint::{lint_to_json, lint_to_text, list_overwritten_devices};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  assay lint 'fio --name=t --rw=randread --bs=4k --iodepth=32 --sync=1'
  assay lint fio --name=t --rw=randread --bs=4k --iodepth=32
  assay lint bench.fio                      a job file, or a script that calls fio
  xclip -o | assay lint -                   a command copied from a page
  assay lint --set ncpus=8 bench.fio        with a value for $ncpus, or ${NAME}
  assay lint 'fio --name=t --rw=write' --json
  assay lint 'dd if=/dev/zero of=t bs=1M'   also sysbench fileio, bonnie++, hdparm, iozone, diskspd
                                            and results of CrystalDiskMark: what they
                                            really measure

Nothing is run. Before the doubts of a job stands what it really does. A command that measures what it
claims gives no output; --json describes it too.
Exit status: 0 nothing to doubt, 1 doubts, 2 cannot be understood, 3 cannot be read.";

/// Explain what a fio command or job file would really measure
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print one JSON object with the list `doubts`
    #[arg(long)]
    json: bool,
    /// Set a variable of a job file or script (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// fio command (quoted or not), a job file, or - for standard input
    #[arg(
        value_name = "COMMAND|FILE|-",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

/// Maximum size of the text in bytes; job files are much smaller.
const LARGEST: u64 = 16 << 20;

/// Runs `assay lint`, and returns the exit status.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    // fio has no such option, so it belongs to assay at any position.
    let own = OsStr::new("--json");
    let json = args.json || args.words.iter().any(|word| word == own);
    let words: Vec<&OsStr> = args
        .words
        .iter()
        .map(OsString::as_os_str)
        .filter(|word| *word != own)
        .collect();
    let mut judged: Vec<(JobOptions, Vec<Doubt>)> = Vec::new();
    let set: BTreeMap<String, String> = args.set.iter().cloned().collect();
    let read = read(&words, &set)?;
    let mut missing = Vec::new();
    for call in read.calls {
        for note in &call.mended {
            eprintln!("note: {note}");
        }
        // A job file starts after the previous one has ended.
        let mut together = vec![call.jobs.clone()];
        for file in &call.job_files {
            match job_file(&call, file, &read.place, &set) {
                Ok(inner) => together.extend(inner),
                Err(error) => missing.push((file.clone(), error)),
            }
        }
        for jobs in together {
            let doubts = doubts::judge_options(&jobs);
            judged.extend(jobs.into_iter().zip(doubts));
        }
    }
    let nothing = judged.is_empty() && read.others.is_empty();
    for (file, error) in missing {
        // A named call of fio stands for its job file, which a script may create.
        if nothing || read.place.is_empty() {
            return Err(error);
        }
        eprintln!(
            "note: the job file {} is not judged: {error:#}",
            file.escape_debug()
        );
    }
    tell_unknown(&judged);
    let others = &read.others;
    let found = judged.iter().any(|(_, doubts)| !doubts.is_empty())
        || others.iter().any(|other| !other.doubts.is_empty())
        || !list_overwritten_devices(&judged, others).is_empty();
    if json {
        print(&format!("{:#}\n", lint_to_json(&judged, others)))?;
    } else {
        print(&lint_to_text(&judged, others, columns()))?;
    }
    Ok(if found { Status::Findings } else { Status::Ok })
}

/// Parses the argument `NAME=VALUE` of `--set`.
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            let name = name.trim_start_matches('$').trim_matches(['{', '}']);
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Prints on standard error the options whose values are unknown to assay.
fn tell_unknown(judged: &[(JobOptions, Vec<Doubt>)]) {
    // Loops of a script make many jobs with the same unknown values.
    let mut jobs_by_keys: Vec<(Vec<String>, Vec<&str>)> = Vec::new();
    for (job, _) in judged.iter().filter(|(job, _)| !job.unknown.is_empty()) {
        let keys = job.unknown.iter().map(|key| key.escape_debug().to_string());
        let keys: Vec<String> = keys.collect();
        let name: &str = &job.name;
        match jobs_by_keys.iter_mut().find(|(known, _)| *known == keys) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => jobs_by_keys.push((keys, vec![name])),
        }
    }
    for (keys, names) in jobs_by_keys {
        let [first, rest @ ..] = &names[..] else {
            continue;
        };
        let first = first.escape_debug();
        let jobs = match rest.len() {
            0 => format!("job {first}"),
            more => format!("job {first} and {more} more"),
        };
        let (values, them) = match &keys[..] {
            [key] => (format!("the value of {key} is"), "it"),
            keys => (format!("the values of {} are", keys.join(", ")), "them"),
        };
        eprintln!("note: {jobs}: {values} not known; what depends on {them} is not judged");
    }
}

/// Returns the jobs of the job file to which a fio command refers. A script may write this file or pass it on standard
/// input; otherwise the file is read from disk.
fn job_file(
    call: &Invocation,
    file: &str,
    script: &str,
    set: &BTreeMap<String, String>,
) -> anyhow::Result<Vec<Vec<JobOptions>>> {
    let mut known = call.environment.clone();
    known.extend(set.clone());
    let written = match file {
        "-" => call.input.as_ref(),
        name => call.files.get(name),
    };
    // Of `$DIR/name.fio` only the file name is known.
    let file = match file.rsplit_once(options::UNKNOWN) {
        Some((_, rest)) => rest.trim_start_matches('/'),
        None => file,
    };
    let inner = match written {
        Some(text) => from_text(text.clone(), file, &known)?,
        None => {
            let beside = Path::new(script).with_file_name(file);
            let path = match Path::new(file).exists() || !beside.exists() {
                true => Path::new(file),
                false => &beside,
            };
            from_file(path.as_os_str(), &known)?
        }
    };
    for note in inner.calls.iter().flat_map(|inner| &inner.mended) {
        eprintln!("note: {}: {note}", file.escape_debug());
    }
    let jobs = inner.calls.into_iter().map(|inner| {
        let mut jobs = inner.jobs;
        jobs.iter_mut()
            .for_each(|job| job.chosen.clone_from(&call.chosen));
        jobs
    });
    Ok(jobs.collect())
}

/// fio commands that the arguments or the text contain.
#[derive(Default)]
struct Read {
    calls: Vec<Invocation>,
    others: Vec<ExplainedCommand>,
    /// Name of the file that contains the commands, or a description, for messages.
    place: String,
}

fn read(words: &[&OsStr], set: &BTreeMap<String, String>) -> anyhow::Result<Read> {
    let utf8 = |word: &OsStr| {
        let text = word.to_str().map(str::to_owned);
        text.with_context(|| format!("`{}` is not UTF-8", word.to_string_lossy().escape_debug()))
    };
    match words {
        [] => bail!("nothing to lint: give a fio command, a job file, or - for standard input"),
        [one] if *one == "-" => from_text(
            input::text(Path::new("-"), LARGEST, EXPECTED)?,
            "standard input",
            set,
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
                return match other_tools::explain_command(&words) {
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
                    true => from_file(word, set)?,
                    false => {
                        understood(options::read_commands(&text, set)?, text.trim().is_empty())?
                    }
                };
                found.calls.extend(one.calls);
                found.others.extend(one.others);
                found.place = one.place;
            }
            Ok(found)
        }
    }
}

/// Returns whether the only argument is a command, not a path.
fn is_command(text: &str) -> bool {
    text.trim().is_empty()
        || text.contains(char::is_whitespace)
        || text.starts_with(['-', '–', '—'])
        || text == "fio"
}

/// Expected content of a file, for error messages.
const EXPECTED: &str = "a job file, or a command in quotes";

fn from_file(path: &OsStr, set: &BTreeMap<String, String>) -> anyhow::Result<Read> {
    let shown = path.to_string_lossy().escape_debug().to_string();
    let text = input::text(Path::new(path), LARGEST, EXPECTED)?;
    from_text(text, &shown, set)
}

fn from_text(text: String, name: &str, set: &BTreeMap<String, String>) -> anyhow::Result<Read> {
    let mut include = |file: &str| included(name, file);
    // A script sets its own variables; a job file takes them from the environment.
    let is_job_file = text.trim_start().starts_with(['[', ';', '#']);
    let mut known = match is_job_file {
        true => std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        false => BTreeMap::new(),
    };
    known.extend(set.clone());
    if text.trim_start().starts_with("#!") {
        known.clone_from(set);
    }
    let mut around = Surroundings {
        included: Some(&mut include),
        set: known,
    };
    let read = match options::read_text_in(&text, name, &mut around) {
        Ok(Text::JobFile(jobs, mended)) => Ok(Read {
            calls: vec![Invocation {
                jobs,
                mended,
                ..Invocation::default()
            }],
            ..Read::default()
        }),
        Ok(Text::Commands(commands)) => {
            understood(commands, false).with_context(|| name.to_owned())
        }
        Err(error) => Err(error.into()),
    };
    // Results of CrystalDiskMark are pasted as text, and job files that copy its patterns mention
    // its name.
    match (read, other_tools::explain_crystal_disk_mark(&text)) {
        (Ok(read), _) => Ok(Read {
            place: name.to_owned(),
            ..read
        }),
        (Err(_), Some(other)) => Ok(Read {
            others: vec![other],
            ..Read::default()
        }),
        (Err(error), None) => Err(error),
    }
}

fn is_fio(word: &str) -> bool {
    word.rsplit('/').next() == Some("fio")
}

/// Returns the fio commands of a text, and the commands of other benchmark tools. Fails if the text contains neither.
fn understood(commands: Commands, empty: bool) -> anyhow::Result<Read> {
    let mut calls = commands.calls;
    let tools = commands.others.iter();
    let tools = tools.filter(|words| {
        words
            .first()
            .is_some_and(|first| other_tools::is_tool(first))
    });
    let others: Vec<ExplainedCommand> = tools
        .filter_map(|words| other_tools::explain_command(words))
        .collect();
    let mut unread = commands.unread.into_iter();
    if calls.is_empty()
        && let Some(error) = unread.next()
    {
        return Err(error.into());
    }
    if calls.is_empty() && others.is_empty() {
        if empty {
            bail!("nothing to lint: expected `fio --name=… --rw=…` or the path of a job file");
        }
        bail!(match commands.without_job {
            true => "the command contains no job: fio needs --name=… or a job file",
            false =>
                "the text contains no fio command: expected `fio --name=… --rw=…` or the path of a job file",
        });
    }
    let mut notes = commands.notes;
    notes.extend(unread.map(|error| format!("a call of fio is not judged: {error}")));
    match calls.first_mut() {
        Some(first) => first.mended.splice(0..0, notes).for_each(drop),
        None => notes.iter().for_each(|note| eprintln!("note: {note}")),
    }
    Ok(Read {
        calls,
        others,
        place: String::new(),
    })
}

/// Reads an included file. The path is tried as given, then relative to the including file (`__parse_jobs_ini`, fio
/// init.c).
#[allow(
    clippy::disallowed_methods,
    reason = "the job file that the user named names this file"
)]
fn included(from: &str, file: &str) -> Result<String, String> {
    let named = Path::new(file);
    let beside = Path::new(from).with_file_name(file);
    let path = if named.exists() { named } else { &beside };
    // A pipe or device could block or never end.
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("no regular file".to_owned());
    }
    input::text(path, LARGEST, "job options").map_err(|error| error.to_string())
}
