//! Parses fio command lines that people typed or copied.

use super::runner::{Runs, is_fio, is_no_job, looks_like_a_job, looks_like_fio, resolve};
use super::shell::UNKNOWN;
use super::windows_lines::rewrite_windows_lines;
use super::{ALIASES, JobOptions, NAMES, OptionSource, OptionsError, canonical_name, is_flag};
use assay_model::secrets;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Options of fio itself whose value is the next word (`fio --help`, 3.33).
const OWN_WITH_VALUE: [&str; 22] = [
    "output",
    "output-format",
    "terse-version",
    "debug",
    "eta",
    "eta-newline",
    "status-interval",
    "section",
    "alloc-size",
    "max-jobs",
    "server",
    "daemonize",
    "client",
    "remote-config",
    "idle-prof",
    "inflate-log",
    "trigger-file",
    "trigger-timeout",
    "trigger",
    "trigger-remote",
    "aux-path",
    "profile",
];
/// Options of fio itself that have no value.
const OWN: [&str; 11] = [
    "parse-only",
    "merge-blktrace-only",
    "bandwidth-log",
    "minimal",
    "append-terse",
    "version",
    "help",
    "cpuclock-test",
    "showcmd",
    "readonly",
    "warnings-fatal",
];

/// One call of fio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Invocation {
    /// Jobs on the command line, in order.
    pub jobs: Vec<JobOptions>,
    /// Paths of the job files.
    pub job_files: Vec<String>,
    /// Corrections that were necessary to parse the text, for example of a dash that a web page changed.
    pub mended: Vec<String>,
    /// Environment variables that the job files may use.
    pub environment: BTreeMap<String, String>,
    /// Files that the surrounding script writes, by name. Job files may include them.
    pub files: Arc<BTreeMap<String, String>>,
    /// Text of the standard input, which fio reads as the job file `-`.
    pub input: Option<String>,
    /// Values of loop variables and branches in the script that give this call: `NAME=VALUE …`.
    pub chosen: String,
}

/// All commands in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commands {
    /// Calls of fio. A call in a loop is listed once for each value.
    pub calls: Vec<Invocation>,
    /// Commands of other programs, beginning with the name of the program. Unknown values are `$…`.
    pub others: Vec<Vec<String>>,
    /// Calls of fio that could not be parsed, with the reasons.
    pub unread: Vec<OptionsError>,
    /// Notes on corrections of the text, and on parts of the script that could not be evaluated.
    pub notes: Vec<String>,
    /// Whether the text calls fio without a job, as in `fio --version`.
    pub without_job: bool,
    /// Calls that are already in `calls`, because a loop may repeat a call.
    seen: BTreeSet<String>,
}

const NO_JOB: &str =
    "no job in it: fio needs --name=… for a job on the command line, or a job file";

/// Maximum nesting of command texts within command texts (`ssh host "sh -c '…'"`).
const DEEPEST: usize = 6;

/// Parses every call of fio in `text`. The text may contain a prompt, line continuations, redirections, and other
/// commands before and after fio. The word `fio` may be missing.
///
/// # Errors
/// Unbalanced quotes, no call of fio, no job, or a value that fio would reject.
pub fn command_line(text: &str) -> Result<Vec<Invocation>, OptionsError> {
    let mut found = read_commands(text, &BTreeMap::new())?;
    if let Some(error) = found
        .unread
        .into_iter()
        .next()
        .filter(|_| found.calls.is_empty())
    {
        return Err(error);
    }
    let without_job = found.without_job;
    let Some(first) = found.calls.first_mut() else {
        if without_job {
            return Err(OptionsError::new(NO_JOB));
        }
        let what = if text.trim().is_empty() {
            "nothing to read"
        } else {
            "no call of fio in it"
        };
        return Err(OptionsError::new(format!(
            "{what}: expected `fio --name=… --rw=…` or the path of a job file"
        )));
    };
    found.notes.append(&mut first.mended);
    first.mended = found.notes;
    Ok(found.calls)
}

/// Parses every command in `text`. `known` contains variables that are set outside of the text.
///
/// # Errors
/// A quotation mark is not closed.
pub fn read_commands(
    text: &str,
    known: &BTreeMap<String, String>,
) -> Result<Commands, OptionsError> {
    let mut found = Commands::default();
    let text = undo_typography(&rewrite_windows_lines(text), &mut found.notes);
    let read = |text: &str, found: &mut Commands| {
        collect(text, known, found, &Given::default(), 0).map_err(|_| {
            OptionsError::new("a quotation mark is not closed: add the missing ' or \"")
        })
    };
    // A line that starts with an option continues a command.
    let bare = text.trim_start();
    let text = match strip_dashes(bare.split_whitespace().next().unwrap_or_default()) {
        Some(_) => format!("fio {bare}"),
        None => text,
    };
    read(&text, &mut found)?;
    if found.calls.is_empty() && found.unread.is_empty() && !text.starts_with("#!") {
        // The prompt of root looks like a comment.
        let prompted: Vec<&str> = text
            .lines()
            .map(|line| line.trim_start().strip_prefix("# ").unwrap_or(line))
            .collect();
        let mut again = Commands::default();
        if read(&prompted.join("\n"), &mut again).is_ok()
            && !(again.calls.is_empty() && again.unread.is_empty())
        {
            again.notes.splice(0..0, found.notes);
            found = again;
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.notes.retain(|note| seen.insert(note.clone()));
    Ok(found)
}

/// Values that the surrounding commands define for a text: variables, files and standard input.
#[derive(Clone, Default)]
struct Given {
    chosen: Vec<(String, String)>,
    files: Arc<BTreeMap<String, String>>,
}

fn collect(
    text: &str,
    known: &BTreeMap<String, String>,
    found: &mut Commands,
    given: &Given,
    depth: usize,
) -> Result<(), super::shell::Unclosed> {
    let script = super::shell::read(text, known)?;
    found.notes.extend(script.notes);
    let mut files = given.files.as_ref().clone();
    files.extend(script.files);
    let mut around = Given {
        chosen: Vec::new(),
        files: Arc::new(files),
    };
    for command in script.commands {
        around.chosen.clone_from(&given.chosen);
        around.chosen.extend(command.chosen.iter().cloned());
        let inner = match resolve(&command.words) {
            Runs::Nothing => Vec::new(),
            Runs::Text(text) => vec![text],
            Runs::Program(words, environment) => {
                let environment = command.environment.into_iter().chain(environment);
                let what = (words, environment.collect(), command.input);
                take_program(what, found, &around)
            }
        };
        for text in inner.iter().filter(|_| depth < DEEPEST) {
            // Quotes of another shell need not be closed for this one.
            let _ = collect(text, &BTreeMap::new(), found, &around, depth + 1);
        }
    }
    Ok(())
}

/// The words of a program call, its environment variables, and its standard input.
type Program = (Vec<String>, BTreeMap<String, String>, Option<String>);

/// Records a call of fio or of another program. Returns the words that another shell will interpret as commands.
fn take_program(
    (words, environment, input): Program,
    found: &mut Commands,
    around: &Given,
) -> Vec<String> {
    let at = words.iter().position(|word| is_fio(word));
    // A variable contains the program.
    let named = words.first().is_some_and(|first| first.contains(UNKNOWN));
    let at = at.or_else(|| (named && looks_like_fio(&words[1..])).then_some(0));
    let is_call = match at {
        Some(0) => !is_no_job(&words[1..]),
        Some(at) => looks_like_a_job(&words[at + 1..]),
        None => false,
    };
    found.without_job |= at == Some(0) && !is_call;
    let Some(at) = at.filter(|_| is_call) else {
        let inner = texts_within(&words);
        let shown: Vec<String> = words.iter().map(|word| show_unknown_parts(word)).collect();
        if inner.is_empty() && at.is_none() && !found.others.contains(&shown) {
            found.others.push(shown);
        }
        return inner;
    };
    let mut mended = Vec::new();
    // A continuation without its line break leaves an escaped blank before the next word.
    let arguments = words[at + 1..].iter().map(|word| word.trim().to_owned());
    let arguments: Vec<String> = arguments
        .filter(|word| !word.is_empty() && word != "\\")
        .collect();
    match parse_invocation(&arguments, &mut mended) {
        Ok(call)
            if found
                .seen
                .insert(format!("{call:?} {environment:?} {input:?}")) =>
        {
            let chosen: Vec<String> = around
                .chosen
                .iter()
                .map(|(name, value)| {
                    format!("{}={}", name.escape_debug(), show_unknown_parts(value))
                })
                .collect();
            let chosen = chosen.join(" ");
            let mut call = Invocation {
                environment,
                input,
                files: around.files.clone(),
                chosen: chosen.clone(),
                ..call
            };
            call.jobs
                .iter_mut()
                .for_each(|job| job.chosen.clone_from(&chosen));
            found.notes.append(&mut mended);
            found.calls.push(call);
        }
        Ok(_) => {}
        Err(error) if !found.unread.contains(&error) => found.unread.push(error),
        Err(_) => {}
    }
    Vec::new()
}

/// Returns the words of an unknown program that contain commands, for example if the program is a function in another
/// file. These are words after `eval`, and quoted words that start with a call of fio.
fn texts_within(words: &[String]) -> Vec<String> {
    if let Some(at) = words.iter().position(|word| word == "eval") {
        return vec![words[at + 1..].join(" ")];
    }
    let begins = |word: &&String| {
        let script = super::shell::read(word, &BTreeMap::new()).unwrap_or_default();
        let first = script
            .commands
            .first()
            .map(|command| resolve(&command.words));
        matches!(first, Some(Runs::Program(words, _))
            if words.first().is_some_and(|first| is_fio(first)) && looks_like_a_job(&words[1..]))
    };
    let quoted = words
        .iter()
        .skip(1)
        .filter(|word| word.contains("fio ") && word.contains(' '));
    quoted.filter(begins).cloned().collect()
}

/// Parses one call of fio that was already split into words.
///
/// # Errors
/// As [`command_line`].
pub fn command_words(words: &[String]) -> Result<Invocation, OptionsError> {
    let mut mended = Vec::new();
    let none = || OptionsError::new("no call of fio in it: expected `fio --name=… --rw=…`");
    let arguments = match words.first() {
        Some(first) if strip_dashes(first).is_some() => words,
        _ => {
            let at = words
                .iter()
                .position(|word| is_fio(word))
                .ok_or_else(none)?;
            &words[at + 1..]
        }
    };
    let mut call = parse_invocation(arguments, &mut mended)?;
    call.mended = mended;
    Ok(call)
}

/// Formats a word. Its unknown parts become `$…`.
fn show_unknown_parts(word: &str) -> String {
    let shown = word.replace(UNKNOWN, "$…");
    secrets::withhold_in_text(&shown).escape_debug().to_string()
}

/// Reverts typographic changes by web pages and word processors. Records each kind of change in `mended`.
fn undo_typography(text: &str, mended: &mut Vec<String>) -> String {
    let mut out = text.replace("\r\n", "\n");
    for (from, to) in [('“', '"'), ('”', '"'), ('‘', '\''), ('’', '\'')] {
        if out.contains(from) {
            mended.push(format!("read `{from}` as `{to}`"));
            out = out.replace(from, &to.to_string());
        }
    }
    out = out.replace('\u{a0}', " ");
    // Blanks after a continuation.
    let mut joined = String::with_capacity(out.len());
    for line in out.split_inclusive('\n') {
        match line.trim_end().strip_suffix('\\') {
            Some(body) if !body.ends_with('\\') => {
                joined.push_str(body);
                joined.push(' ');
            }
            _ => joined.push_str(line),
        }
    }
    joined
}

/// Returns the name of an option after its dashes, which may be typographic dashes.
fn strip_dashes(word: &str) -> Option<(&str, bool)> {
    let dashes = ['-', '–', '—', '−', '‐', '‑'];
    let rest = word.trim_start_matches(dashes);
    let mended = word[..word.len() - rest.len()].contains(&dashes[1..]);
    let first = rest.chars().next()?;
    (rest.len() < word.len() && first.is_ascii_alphabetic()).then_some((rest, mended))
}

fn parse_invocation(
    words: &[String],
    mended: &mut Vec<String>,
) -> Result<Invocation, OptionsError> {
    let mut result = Invocation::default();
    let mut global: Vec<(String, String)> = Vec::new();
    let mut job: Option<(String, Vec<(String, String)>)> = None;
    // A completely unknown word may be any option.
    let mut open = false;
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some((rest, pasted)) = strip_dashes(word) else {
            match word.contains(UNKNOWN) && !is_job_file(word) {
                true => {
                    open = true;
                    mended.push(format!(
                        "`{}` may be any option: the text does not say what it is, so what is not given \
                         counts as unknown",
                        show_unknown_parts(word)
                    ));
                }
                false => result.job_files.push(word.clone()),
            }
            continue;
        };
        let (key, value) = match rest.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (rest, None),
        };
        if pasted {
            mended.push(format!(
                "read `{}` as `--{}`",
                secrets::withhold_in_text(word).escape_debug(),
                secrets::withhold_in_text(rest).escape_debug()
            ));
        }
        let key = expand_abbreviation(key);
        if OWN.contains(&key) {
            continue;
        }
        if OWN_WITH_VALUE.contains(&key) {
            if value.is_none() {
                words.next();
            }
            continue;
        }
        let key = canonical_name(key);
        let value = match value {
            Some(value) => value,
            None if is_flag(&key) => String::new(),
            None => words
                .next_if(|next| strip_dashes(next).is_none())
                .cloned()
                .ok_or_else(|| {
                    OptionsError::new(format!("--{} has no value", key.escape_debug()))
                })?,
        };
        // Names are only displayed.
        let value = match key == "name" {
            true => show_unknown_parts(&value),
            false => value,
        };
        if key == "name" {
            finish(job.take(), open, &mut global, &mut result)?;
            job = Some((value, Vec::new()));
        } else if let Some((_, options)) = job.as_mut() {
            options.push((key, value));
        } else {
            // Before the first --name, an option applies to all jobs.
            global.push((key, value));
        }
    }
    finish(job, open, &mut global, &mut result)?;
    if result.jobs.is_empty() && result.job_files.is_empty() && open {
        return Err(OptionsError::new(
            "the text does not say which job fio runs: it stands in a variable that is set elsewhere",
        ));
    }
    if result.jobs.is_empty() && result.job_files.is_empty() {
        return Err(OptionsError::new(NO_JOB));
    }
    Ok(result)
}

/// Returns whether a word that is partly unknown is the path of a job file.
fn is_job_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    !name.contains(UNKNOWN)
        && [".fio", ".job", ".ini"]
            .iter()
            .any(|end| name.ends_with(end))
}

fn finish(
    job: Option<(String, Vec<(String, String)>)>,
    open: bool,
    global: &mut Vec<(String, String)>,
    result: &mut Invocation,
) -> Result<(), OptionsError> {
    let Some((name, options)) = job else {
        return Ok(());
    };
    if name.starts_with("global") {
        global.extend(options);
        return Ok(());
    }
    let all = global.iter().cloned().chain(options);
    let mut job = with_unknown(&name, all)?;
    job.open = open;
    result.jobs.push(job);
    Ok(())
}

/// Returns the only option that starts with `key`, as getopt_long(3) does for fio. Returns `key` if it is an option
/// itself, or if no option or several options start with it. In job files, abbreviations are not permitted.
fn expand_abbreviation(key: &str) -> &str {
    let names = || {
        let aliases = ALIASES.iter().map(|(alias, _)| *alias);
        let own = OWN.iter().chain(&OWN_WITH_VALUE).copied();
        NAMES.lines().chain(aliases).chain(own)
    };
    if names().any(|name| name == key) {
        return key;
    }
    let mut found = names().filter(|name| name.starts_with(key));
    match found.next() {
        Some(first) if found.all(|name| name == first) => first,
        _ => key,
    }
}

/// Creates a job from options of which some have unknown values.
pub(super) fn with_unknown(
    name: &str,
    given: impl IntoIterator<Item = (String, String)>,
) -> Result<JobOptions, OptionsError> {
    let mut unknown = BTreeSet::new();
    let mut known: Vec<(String, String)> = Vec::new();
    for (key, value) in given {
        let key = canonical_name(&key);
        match value.contains(UNKNOWN) {
            true => {
                known.retain(|(one, _)| *one != key);
                unknown.insert(key);
            }
            false => {
                unknown.remove(&key);
                known.push((key, value));
            }
        }
    }
    let mut job = JobOptions::from_given(name, known, OptionSource::Complete)?;
    job.unknown = unknown;
    Ok(job)
}
